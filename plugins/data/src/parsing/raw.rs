//! `DecodePaddedRaw` and `DecodeCompressed`.

use flate2::read::{MultiGzDecoder, ZlibDecoder};
use std::io::Read;
use tenon_sdk::{growth, prelude::*};

struct PaddedRaw {
    is_little_endian: bool,
}

impl Kernel for PaddedRaw {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(PaddedRaw { is_little_endian: c.attr("little_endian")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let length = c.integer(1, "fixed_length")?;
        let dtype = c.output_slot(0)?.dtype;
        let size = dtype.size().unwrap_or(1);
        let bytes = usize::try_from(length).ok().filter(|&bytes| bytes > 0 && bytes % size == 0);
        let bytes = bytes.ok_or_else(|| {
            KernelError::invalid_argument(format!(
                "fixed_length: expected a positive multiple of {size}, the bytes of a {dtype}, found {length}"
            ))
        })?;
        let texts = c.strings(0)?;
        let dims: Vec<i64> = c.dims(0).iter().copied().chain([(bytes / size) as i64]).collect();
        let output = c.output_bytes(0, &dims)?;
        for (to, text) in output.chunks_exact_mut(bytes).zip(texts) {
            let (filled, rest) = to.split_at_mut(text.len().min(bytes));
            filled.copy_from_slice(&text[..filled.len()]);
            rest.fill(0);
            if self.is_little_endian != cfg!(target_endian = "little") {
                to.chunks_exact_mut(size).for_each(<[u8]>::reverse);
            }
        }
        Ok(())
    }
}

register_kernel!("DecodePaddedRaw" on "CPU": PaddedRaw, types = ("out_type", &[
    DType::HALF, DType::FLOAT, DType::DOUBLE, DType::INT32, DType::UINT16, DType::UINT8,
    DType::INT16, DType::INT8, DType::INT64, DType::BFLOAT16,
]));

#[derive(Clone, Copy)]
enum Compressed {
    Not,
    Zlib,
    Gzip,
}

impl Kernel for Compressed {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        match c.attr::<&str>("compression_type")? {
            "" => Ok(Compressed::Not),
            "ZLIB" => Ok(Compressed::Zlib),
            "GZIP" => Ok(Compressed::Gzip),
            found => Err(KernelError::invalid_argument(format!(
                "compression_type: expected ZLIB, GZIP or nothing, found '{found}'"
            ))),
        }
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let texts = c.strings(0)?;
        c.write_texts(0, c.dims(0), |at, to| match self {
            Compressed::Not => growth::append(to, texts[at]),
            Compressed::Zlib => decompress(c, ZlibDecoder::new(texts[at]), to),
            Compressed::Gzip => decompress(c, MultiGzDecoder::new(texts[at]), to),
        })
    }
}

fn decompress(
    c: &ComputeContext<'_>,
    mut from: impl Read,
    to: &mut Vec<u8>,
) -> Result<(), KernelError> {
    let (watch, mut piece) = (c.watch(), [0; 1 << 12]);
    loop {
        watch.check()?;
        let read = from.read(&mut piece).map_err(|error| {
            KernelError::new(Code::DATA_LOSS, format!("bytes: cannot be decompressed: {error}"))
        })?;
        if read == 0 {
            return Ok(());
        }
        growth::append(to, &piece[..read])?;
    }
}

register_kernel!("DecodeCompressed" on "CPU": Compressed);
