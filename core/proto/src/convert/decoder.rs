//! The state of reading the values of one graph.

use prost::Message;
use tenon_framework::Tensor;
use tenon_framework::attr::FuncValue;

use super::ConvertError;
use crate::{FunctionLibrary, NameAttrList, TensorProto};

/// Default limit on the bytes to which one [`Decoder`] expands values beyond their encoding, 2 GiB.
pub const MAX_EXPANSION_BYTES: usize = 1 << 31;

/// Reads the attribute values and tensors of one graph.
///
/// ```
/// use tenon_proto::convert::Decoder;
/// use tenon_proto::{DataType, Dim, TensorProto, TensorShapeProto};
///
/// let dim = vec![Dim { size: 3, name: String::new() }];
/// let proto = TensorProto {
///     dtype: DataType::Float as i32,
///     tensor_shape: Some(TensorShapeProto { dim, unknown_rank: false }),
///     float_val: vec![1.0, 2.0],
///     ..TensorProto::default()
/// };
/// let tensor = Decoder::new().tensor(&proto)?;
/// assert_eq!(tensor.as_slice::<f32>()?, &[1.0, 2.0, 2.0], "the last value repeats");
/// # Ok::<(), tenon_proto::convert::ConvertError>(())
/// ```
#[derive(Debug)]
pub struct Decoder<'a> {
    functions: Option<&'a FunctionLibrary>,
    left: usize,
}

impl Default for Decoder<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a> Decoder<'a> {
    /// A decoder without functions that may expand values to [`MAX_EXPANSION_BYTES`].
    #[must_use]
    pub fn new() -> Decoder<'a> {
        Decoder { functions: None, left: MAX_EXPANSION_BYTES }
    }

    /// Sets the functions that attributes may name.
    #[must_use]
    pub fn with_library(mut self, library: &'a FunctionLibrary) -> Decoder<'a> {
        self.functions = Some(library);
        self
    }

    /// Sets the number of bytes that values may take beyond their encoding.
    #[must_use]
    pub fn with_expansion_limit(mut self, bytes: usize) -> Decoder<'a> {
        self.left = bytes;
        self
    }

    /// Subtracts bytes from the limit.
    pub(super) fn expand(
        &mut self,
        needed: Option<usize>,
        what: impl FnOnce() -> String,
    ) -> Result<(), ConvertError> {
        match needed.and_then(|needed| self.left.checked_sub(needed)) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(ConvertError::Expansion {
                what: what(),
                needed: needed.unwrap_or(usize::MAX),
                left: self.left,
            }),
        }
    }

    /// A function value: the call, and the definition if the library has it.
    pub(super) fn function(&mut self, call: &NameAttrList) -> Result<FuncValue, ConvertError> {
        let definition = match self.functions.and_then(|functions| functions.function(&call.name)) {
            Some(function) => {
                let what = || format!("the definition of function '{}'", call.name);
                self.expand(Some(function.encoded_len()), what)?;
                function.encode_to_vec()
            }
            None => Vec::new(),
        };
        Ok(FuncValue { name: call.name.clone(), call: call.encode_to_vec(), definition })
    }
}

/// Reads one tensor, which may expand to [`MAX_EXPANSION_BYTES`].
///
/// # Errors
/// As [`Decoder::tensor`].
pub fn tensor_from_proto(proto: &TensorProto) -> Result<Tensor, ConvertError> {
    Decoder::new().tensor(proto)
}
