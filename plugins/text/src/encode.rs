//! `EncodeBase64` and `DecodeBase64`.

use crate::shown;
use base64::{
    DecodeSliceError, Engine,
    alphabet::URL_SAFE,
    engine::{Config, DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use tenon_sdk::{
    Code, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    growth,
    reg::Numerics,
    register_kernel,
};

/// The web-safe alphabet; input may be padded or not, and excess bits of the last byte are ignored.
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
        let x = c.strings(0)?;
        c.write_texts(0, c.dims(0), |at, text| encode(&self.engine, x[at], text))
    }
}

fn encode(engine: &GeneralPurpose, x: &[u8], text: &mut Vec<u8>) -> Result<(), KernelError> {
    let bytes = base64::encoded_len(x.len(), engine.config().encode_padding());
    let bytes =
        bytes.ok_or_else(|| KernelError::new(Code::RESOURCE_EXHAUSTED, "too long a string"))?;
    growth::reserve(text, bytes)?;
    text.resize(bytes, 0);
    engine.encode_slice(x, text).map_err(|error| KernelError::internal(error.to_string()))?;
    Ok(())
}

fn decode(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (engine, x) = (engine(false), c.strings(0)?);
    c.write_texts(0, c.dims(0), |at, text| {
        let x = x[at];
        // One padding character in place of two is refused, as in TensorFlow.
        let padding = x.iter().rev().take_while(|byte| **byte == b'=').count();
        if padding > 0 && (!x.len().is_multiple_of(4) || padding > 2) {
            return Err(invalid(x, "its padding does not end a group of four"));
        }
        let most = base64::decoded_len_estimate(x.len());
        growth::reserve(text, most)?;
        text.resize(most, 0);
        let bytes = engine.decode_slice(x, text).map_err(|error| match error {
            DecodeSliceError::DecodeError(error) => invalid(x, error),
            DecodeSliceError::OutputSliceTooSmall => {
                KernelError::internal("the estimate is too low")
            }
        })?;
        text.truncate(bytes);
        Ok(())
    })
}

fn invalid(text: &[u8], why: impl std::fmt::Display) -> KernelError {
    let text = shown(text);
    KernelError::invalid_argument(format!("input '{text}' is not web-safe base 64: {why}"))
}

register_kernel!("EncodeBase64" on "CPU": Encode, numerics = Numerics::EXACT);
register_kernel!("DecodeBase64" on "CPU": fn decode, numerics = Numerics::EXACT);
