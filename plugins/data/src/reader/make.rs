//! Kernels that give readers.

use super::{
    Reader,
    source::{Compression, FixedSizes, Format},
};
use crate::place::{Maker, Naming, Place, find_or_make};
use tenon_sdk::prelude::*;

struct Make {
    place: Place,
    maker: Maker<Reader>,
    format: Format,
}

fn bytes(c: &CreateContext<'_>, attr: &str, least: i64) -> Result<u64, KernelError> {
    let found: i64 = c.attr(attr)?;
    // Sums of such numbers fit 64 bits.
    let bytes = u64::try_from(found).ok().filter(|_| (least..=i64::MAX / 4).contains(&found));
    bytes.ok_or_else(|| {
        KernelError::invalid_argument(format!(
            "{attr}: expected at least {least} bytes, found {found}"
        ))
    })
}

fn compression(c: &CreateContext<'_>, attr: &str) -> Result<Compression, KernelError> {
    Compression::named(attr, c.attr::<&str>(attr)?.as_bytes())
}

fn fixed(c: &CreateContext<'_>) -> Result<FixedSizes, KernelError> {
    let record = bytes(c, "record_bytes", 1)?;
    let hop = match bytes(c, "hop_bytes", 0)? {
        0 => record,
        hop => hop,
    };
    let compression = match c.op() {
        "FixedLengthRecordReaderV2" => compression(c, "encoding")?,
        _ => Compression::None,
    };
    let (header, footer) = (bytes(c, "header_bytes", 0)?, bytes(c, "footer_bytes", 0)?);
    Ok(FixedSizes { header, record, footer, hop, compression })
}

impl Kernel for Make {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let format = match c.op().trim_end_matches("V2") {
            "WholeFileReader" => Format::WholeFile,
            "TextLineReader" => {
                let skipped: i64 = c.attr("skip_header_lines")?;
                Format::Lines(u64::try_from(skipped).unwrap_or(0), Compression::None)
            }
            "FixedLengthRecordReader" => Format::Fixed(fixed(c)?),
            "TFRecordReader" => Format::Records(compression(c, "compression_type")?),
            _ => Format::Identity,
        };
        Ok(Make { place: Naming::new(c)?.by_node(), maker: Maker::new(c)?, format })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let make = |place| Ok(Reader::new(place, self.format));
        self.maker.output(c, &find_or_make(c, self.place.clone(), make)?)
    }
}

register_kernel!("WholeFileReader" on "CPU": Make);
register_kernel!("WholeFileReaderV2" on "CPU": Make);
register_kernel!("TextLineReader" on "CPU": Make);
register_kernel!("TextLineReaderV2" on "CPU": Make);
register_kernel!("FixedLengthRecordReader" on "CPU": Make);
register_kernel!("FixedLengthRecordReaderV2" on "CPU": Make);
register_kernel!("TFRecordReader" on "CPU": Make);
register_kernel!("TFRecordReaderV2" on "CPU": Make);
register_kernel!("IdentityReader" on "CPU": Make);
register_kernel!("IdentityReaderV2" on "CPU": Make);
