//! `EncodeBase64`, `DecodeBase64` and `StringToHashBucketFast`.

use crate::{farmhash::fingerprint64, shown};
use base64::{
    Engine,
    alphabet::URL_SAFE,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    reg::Numerics,
    register_kernel,
};

/// The web-safe alphabet; what is decoded may be padded or not, and the bits that do not fill a byte are not looked
/// at.
const fn engine(pad: bool) -> GeneralPurpose {
    let config = GeneralPurposeConfig::new()
        .with_encode_padding(pad)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    GeneralPurpose::new(&URL_SAFE, config)
}

struct Encode {
    engine: GeneralPurpose,
}

impl Kernel for Encode {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Encode { engine: engine(c.attr("pad")?) })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let texts = c.strings(0)?.into_iter().map(|x| self.engine.encode(x));
        c.set_strings(0, c.dims(0), texts)
    }
}

fn decode(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let engine = engine(false);
    let decoded = |x: &[u8]| {
        // One sign of padding where two belong is refused, as by TensorFlow.
        let padding = x.iter().rev().take_while(|byte| **byte == b'=').count();
        if padding > 0 && (!x.len().is_multiple_of(4) || padding > 2) {
            return Err(invalid(x, "its padding does not end a group of four"));
        }
        engine.decode(x).map_err(|error| invalid(x, error))
    };
    let texts = c.strings(0)?.into_iter().map(decoded).collect::<Result<Vec<_>, _>>()?;
    c.set_strings(0, c.dims(0), texts.into_iter())
}

fn invalid(text: &[u8], why: impl std::fmt::Display) -> KernelError {
    let text = shown(text);
    KernelError::invalid_argument(format!("input '{text}' is not web-safe base 64: {why}"))
}

register_kernel!("EncodeBase64" on "CPU": Encode, numerics = Numerics::EXACT);
register_kernel!("DecodeBase64" on "CPU": fn decode, numerics = Numerics::EXACT);

struct HashBucket {
    buckets: u64,
}

impl Kernel for HashBucket {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let buckets: i64 = c.attr("num_buckets")?;
        let buckets =
            u64::try_from(buckets).ok().filter(|&buckets| buckets > 0).ok_or_else(|| {
                KernelError::invalid_argument(format!(
                    "num_buckets must be at least 1, found {buckets}"
                ))
            })?;
        Ok(HashBucket { buckets })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let y = c.output::<i64>(0, c.dims(0))?.data;
        for (y, x) in y.iter_mut().zip(c.strings(0)?) {
            *y = (fingerprint64(x) % self.buckets) as i64;
        }
        Ok(())
    }
}

register_kernel!("StringToHashBucketFast" on "CPU": HashBucket, numerics = Numerics::EXACT);
