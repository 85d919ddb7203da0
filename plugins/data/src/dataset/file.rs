//! Datasets of the records of files, one file after the other.

use super::{
    Context, Dataset, Elements, Next, Shared,
    element::whole,
    make::{Build, Make, number, text, unexpected},
};
use crate::{
    files::{Access, access, path_of},
    reader::{Compression, FixedSizes, Format, Source, failed},
};
use std::sync::Arc;
use tenon_files::Purpose;
use tenon_sdk::{growth, prelude::*};

/// Records of files.
#[derive(Clone)]
struct Files {
    names: Arc<Vec<Vec<u8>>>,
    /// Where the records of each file begin; none where all do at the file's beginning.
    offsets: Arc<Vec<u64>>,
    format: Format,
    access: Access,
}

struct MakeFiles {
    access: Access,
    kind: Kind,
}

/// What a record is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Line,
    Record,
    Fixed,
}

impl Build for MakeFiles {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let kind = match c.op() {
            "TextLineDataset" => Kind::Line,
            "FixedLengthRecordDataset" | "FixedLengthRecordDatasetV2" => Kind::Fixed,
            _ => Kind::Record,
        };
        Ok(MakeFiles { access: access(c)?, kind })
    }

    fn build(&self, c: &ComputeContext<'_>) -> Result<Shared, KernelError> {
        let names = match c.dims(0).len() {
            0 | 1 => growth::try_collected(c.strings(0)?.into_iter().map(growth::copied))?,
            _ => {
                return Err(KernelError::invalid_argument(format!(
                    "filenames: expected a scalar or a vector, found shape {:?}",
                    c.dims(0)
                )));
            }
        };
        let (format, mut offsets) = (self.format(c)?, Vec::new());
        if self.kind == Kind::Record && c.input_count() > 3 {
            offsets = byte_offsets(c, 3, names.len())?;
        }
        let (names, offsets) = (Arc::new(names), Arc::new(offsets));
        Ok(Arc::new(Files { names, offsets, format, access: self.access.clone() }))
    }
}

impl MakeFiles {
    fn format(&self, c: &ComputeContext<'_>) -> Result<Format, KernelError> {
        let at = if self.kind == Kind::Fixed { 5 } else { 1 };
        let mut how = Compression::None;
        if c.input_count() > at {
            how = Compression::named("compression_type", text(c, at, "compression_type")?)?;
        }
        let buffer = if self.kind == Kind::Fixed { 4 } else { 2 };
        // A size of -1 means that of the reader.
        let least = if self.kind == Kind::Record { -1 } else { 0 };
        let size = number(c, buffer, "buffer_size")?;
        if size < least {
            return Err(unexpected("buffer_size", &format!("at least {least}"), size));
        }
        Ok(match self.kind {
            Kind::Line => Format::Lines(0, how),
            Kind::Record => Format::Records(how),
            Kind::Fixed => {
                let record = at_least(c, 2, "record_bytes", 1)?;
                Format::Fixed(FixedSizes {
                    header: at_least(c, 1, "header_bytes", 0)?,
                    record,
                    footer: at_least(c, 3, "footer_bytes", 0)?,
                    hop: record,
                    compression: how,
                })
            }
        })
    }
}

/// A number of bytes; sums of a few fit 64 bits.
fn at_least(
    c: &ComputeContext<'_>,
    input: usize,
    name: &str,
    least: i64,
) -> Result<u64, KernelError> {
    let found = number(c, input, name)?;
    match u64::try_from(found) {
        Ok(bytes) if (least..=i64::MAX / 4).contains(&found) => Ok(bytes),
        _ => Err(unexpected(name, &format!("at least {least} bytes"), found)),
    }
}

fn byte_offsets(
    c: &ComputeContext<'_>,
    input: usize,
    files: usize,
) -> Result<Vec<u64>, KernelError> {
    let found = c.input::<i64>(input)?.data;
    if !found.is_empty() && found.len() != files {
        return Err(KernelError::invalid_argument(format!(
            "byte_offsets: expected one for each of {files} files, or none, found {}",
            found.len()
        )));
    }
    growth::try_collected(found.iter().map(|&offset| {
        u64::try_from(offset).map_err(|_| unexpected("byte_offsets", "at least 0", offset))
    }))
}

impl Dataset for Files {
    fn elements(&self) -> Box<dyn Elements> {
        Box::new(Records { files: self.clone(), next: 0, source: None })
    }
}

struct Records {
    files: Files,
    /// Number of the file that is read, or is to be opened.
    next: usize,
    source: Option<Source>,
}

impl Elements for Records {
    fn next<'a>(&'a mut self, context: &'a Context) -> Next<'a> {
        Box::pin(async move {
            loop {
                context.check()?;
                let Some(source) = &mut self.source else {
                    if self.next == self.files.names.len() {
                        return Ok(None);
                    }
                    self.source = Some(self.files.open(self.next)?);
                    continue;
                };
                match source.next_value() {
                    Ok(Some(value)) => {
                        return whole([Kept::from_strings(&[], &[&value])?]).map(Some);
                    }
                    Ok(None) => {
                        let rest = self.files.check_rest(source, self.next);
                        self.leave();
                        rest?;
                    }
                    Err(error) => {
                        // What is left of a damaged file of records is left out, as in TensorFlow. Lines of a file that
                        // cannot be read are asked for again and again.
                        if !matches!(self.files.format, Format::Lines(..)) {
                            self.leave();
                        }
                        return Err(error);
                    }
                }
            }
        })
    }
}

impl Records {
    fn leave(&mut self) {
        self.source = None;
        self.next += 1;
    }
}

impl Files {
    fn open(&self, at: usize) -> Result<Source, KernelError> {
        let name = growth::copied(&self.names[at])?;
        if let Format::Fixed(sizes) = self.format {
            self.check_sizes(&name, &sizes)?;
        }
        let offset = self.offsets.get(at).copied().unwrap_or(0);
        Source::open_at(name, self.format, &self.access, offset)
    }

    /// Checks that a file that is not compressed has nothing but whole records between header and footer.
    fn check_sizes(&self, name: &[u8], sizes: &FixedSizes) -> Result<(), KernelError> {
        if sizes.compression != Compression::None {
            return Ok(());
        }
        let file = self.access.open("filenames", &path_of(name), Purpose::Read)?;
        let bytes = file.metadata().map_err(|error| failed(name, &error))?.len();
        let body = bytes.checked_sub(sizes.header + sizes.footer);
        if body.is_some_and(|body| body.is_multiple_of(sizes.record)) {
            return Ok(());
        }
        Err(KernelError::invalid_argument(format!(
            "{}, found {bytes} bytes in all",
            whole_records(name, sizes)
        )))
    }

    /// Checks that a compressed file ended with a whole record and the footer.
    fn check_rest(&self, source: &Source, at: usize) -> Result<(), KernelError> {
        let (Format::Fixed(sizes), Some(rest)) = (self.format, source.rest()) else {
            return Ok(());
        };
        if rest as u64 == sizes.footer {
            return Ok(());
        }
        Err(KernelError::new(
            Code::DATA_LOSS,
            format!(
                "{}, found {rest} bytes after the last record",
                whole_records(&self.names[at], &sizes)
            ),
        ))
    }
}

/// The beginning of the message of a file with a part of a record.
fn whole_records(name: &[u8], sizes: &FixedSizes) -> String {
    format!(
        "file '{}': expected records of {} bytes between a header of {} and a footer of {}",
        String::from_utf8_lossy(name),
        sizes.record,
        sizes.header,
        sizes.footer
    )
}

register_kernel!("TextLineDataset" on "CPU": Make<MakeFiles>);
register_kernel!("TFRecordDataset" on "CPU": Make<MakeFiles>);
register_kernel!("TFRecordDatasetV2" on "CPU": Make<MakeFiles>);
register_kernel!("FixedLengthRecordDataset" on "CPU": Make<MakeFiles>);
register_kernel!("FixedLengthRecordDatasetV2" on "CPU": Make<MakeFiles>);
