//! Short forms of the nodes of which most gradients consist.

use super::GradientContext;
use tenon_abi::GraphValue;
use tenon_framework::{
    DType, KernelError, Tensor,
    element::{Complex, Element, bf16, f16},
};

type Made = Result<GraphValue, KernelError>;

/// A tensor of one type with these numbers.
fn numbers<T: Element>(
    dims: &[i64],
    values: &[f64],
    convert: impl Fn(f64) -> T,
) -> Result<Tensor, KernelError> {
    let values: Vec<T> = values.iter().map(|&value| convert(value)).collect();
    Tensor::from_slice(dims, &values).map_err(|error| KernelError::internal(error.to_string()))
}

impl GradientContext<'_> {
    /// A constant.
    ///
    /// # Errors
    /// The host refuses the node. So for all methods below.
    pub fn tensor(&self, value: Tensor) -> Made {
        self.op("Const").attr("dtype", value.dtype()).attr("value", value).done()
    }

    fn numbers_of(&self, dtype: DType, dims: &[i64], values: &[f64]) -> Made {
        let tensor = match dtype {
            DType::FLOAT => numbers(dims, values, |v| v as f32)?,
            DType::DOUBLE => numbers(dims, values, |v| v)?,
            DType::HALF => numbers(dims, values, f16::from_f64)?,
            DType::BFLOAT16 => numbers(dims, values, bf16::from_f64)?,
            DType::COMPLEX64 => numbers(dims, values, |v| Complex::new(v as f32, 0.0))?,
            DType::COMPLEX128 => numbers(dims, values, |v| Complex::new(v, 0.0))?,
            DType::INT8 => numbers(dims, values, |v| v as i8)?,
            DType::INT16 => numbers(dims, values, |v| v as i16)?,
            DType::INT32 => numbers(dims, values, |v| v as i32)?,
            DType::INT64 => numbers(dims, values, |v| v as i64)?,
            DType::UINT8 => numbers(dims, values, |v| v as u8)?,
            DType::UINT16 => numbers(dims, values, |v| v as u16)?,
            DType::UINT32 => numbers(dims, values, |v| v as u32)?,
            DType::UINT64 => numbers(dims, values, |v| v as u64)?,
            other => {
                let expected = "expected a number type";
                return Err(KernelError::unimplemented(format!(
                    "a constant of type {other}: {expected}"
                )));
            }
        };
        self.tensor(tensor)
    }

    /// A scalar constant of this type.
    ///
    /// # Errors
    /// The type has no numbers.
    pub fn number(&self, dtype: DType, value: f64) -> Made {
        self.numbers_of(dtype, &[], &[value])
    }

    /// A scalar constant of the type of `like`.
    ///
    /// # Errors
    /// The type has no numbers.
    pub fn scalar(&self, like: GraphValue, value: f64) -> Made {
        self.number(self.dtype(like), value)
    }

    /// A scalar constant of type int32.
    ///
    /// # Errors
    /// As [`GradientContext::tensor`].
    pub fn int(&self, value: i32) -> Made {
        self.number(DType::INT32, value.into())
    }

    /// A vector constant of type int32.
    ///
    /// # Errors
    /// A value does not fit the type.
    pub fn ints(&self, values: &[i64]) -> Made {
        let narrow = |value: &i64| {
            let name = self.node_name();
            i32::try_from(*value).map_err(|_| {
                KernelError::invalid_argument(format!(
                    "the gradient of node '{name}' needs a constant of type int32, found {value}"
                ))
            })
        };
        let values = values.iter().map(narrow).collect::<Result<Vec<i32>, _>>()?;
        let tensor = Tensor::from_slice(&[values.len() as i64], &values);
        self.tensor(tensor.map_err(|error| KernelError::internal(error.to_string()))?)
    }

    /// A node of an op of one input.
    ///
    /// # Errors
    /// As [`GradientContext::tensor`].
    pub fn unary(&self, op: &str, x: GraphValue) -> Made {
        self.op(op).input(x).done()
    }

    /// A node of an op of two inputs.
    ///
    /// # Errors
    /// As [`GradientContext::tensor`].
    pub fn binary(&self, op: &str, x: GraphValue, y: GraphValue) -> Made {
        self.op(op).input(x).input(y).done()
    }

    /// `x + y`, which broadcast.
    ///
    /// # Errors
    /// As [`GradientContext::tensor`].
    pub fn add(&self, x: GraphValue, y: GraphValue) -> Made {
        self.binary("AddV2", x, y)
    }

    /// `x - y`, which broadcast.
    ///
    /// # Errors
    /// As [`GradientContext::tensor`].
    pub fn sub(&self, x: GraphValue, y: GraphValue) -> Made {
        self.binary("Sub", x, y)
    }

    /// `x * y`, which broadcast.
    ///
    /// # Errors
    /// As [`GradientContext::tensor`].
    pub fn mul(&self, x: GraphValue, y: GraphValue) -> Made {
        self.binary("Mul", x, y)
    }

    /// `x / y`, which broadcast.
    ///
    /// # Errors
    /// As [`GradientContext::tensor`].
    pub fn div(&self, x: GraphValue, y: GraphValue) -> Made {
        self.binary("RealDiv", x, y)
    }

    /// `-x`.
    ///
    /// # Errors
    /// As [`GradientContext::tensor`].
    pub fn neg(&self, x: GraphValue) -> Made {
        self.unary("Neg", x)
    }

    /// `factor * x`.
    ///
    /// # Errors
    /// As [`GradientContext::number`].
    pub fn scale(&self, x: GraphValue, factor: f64) -> Made {
        self.mul(self.scalar(x, factor)?, x)
    }

    /// The complex conjugate; a real value as it is.
    ///
    /// # Errors
    /// As [`GradientContext::tensor`].
    pub fn conj(&self, x: GraphValue) -> Made {
        if self.dtype(x).is_complex() { self.unary("Conj", x) } else { Ok(x) }
    }

    /// Zeros of the type and shape of `x`.
    ///
    /// # Errors
    /// As [`GradientContext::tensor`].
    pub fn zeros_like(&self, x: GraphValue) -> Made {
        self.unary("ZerosLike", x)
    }

    /// The value in another type; as it is if it has that type.
    ///
    /// # Errors
    /// As [`GradientContext::tensor`].
    pub fn cast(&self, x: GraphValue, dtype: DType) -> Made {
        if self.dtype(x) == dtype {
            Ok(x)
        } else {
            self.op("Cast").input(x).attr("DstT", dtype).done()
        }
    }

    /// `yes` where `condition` holds and `no` elsewhere; all of them broadcast.
    ///
    /// # Errors
    /// As [`GradientContext::tensor`].
    pub fn select(&self, condition: GraphValue, yes: GraphValue, no: GraphValue) -> Made {
        self.op("SelectV2").input(condition).input(yes).input(no).done()
    }

    /// The shape of a value, a vector of type int32: a constant if it is known.
    ///
    /// # Errors
    /// As [`GradientContext::tensor`].
    pub fn shape_of(&self, x: GraphValue) -> Made {
        match self.known_dims(x) {
            Some(dims) if dims.iter().all(|&dim| i32::try_from(dim).is_ok()) => self.ints(&dims),
            _ => self.unary("Shape", x),
        }
    }

    /// The rank of a value, a scalar of type int32: a constant if it is known.
    ///
    /// # Errors
    /// As [`GradientContext::tensor`].
    pub fn rank_of(&self, x: GraphValue) -> Made {
        match self.rank(x) {
            Some(rank) => self.int(rank as i32),
            None => self.unary("Rank", x),
        }
    }

    /// The elements of `x` under the shape `shape`.
    ///
    /// # Errors
    /// As [`GradientContext::tensor`].
    pub fn reshape(&self, x: GraphValue, shape: GraphValue) -> Made {
        self.binary("Reshape", x, shape)
    }

    /// The elements of `x` under the shape of `like`.
    ///
    /// # Errors
    /// As [`GradientContext::tensor`].
    pub fn reshape_like(&self, x: GraphValue, like: GraphValue) -> Made {
        if self.same_shape(x, like) { Ok(x) } else { self.reshape(x, self.shape_of(like)?) }
    }

    /// The sum over these axes; `keep` leaves them as axes of size 1.
    ///
    /// # Errors
    /// As [`GradientContext::tensor`].
    pub fn sum(&self, x: GraphValue, axes: GraphValue, keep: bool) -> Made {
        self.op("Sum").input(x).input(axes).attr("keep_dims", keep).done()
    }

    /// Sums `gradient`, which has the shape that `x` broadcasts to with `other`, over the axes along which `x` was
    /// repeated, so that the result has the shape of `x`.
    ///
    /// # Errors
    /// As [`GradientContext::tensor`].
    pub fn reduce_to(&self, gradient: GraphValue, x: GraphValue, other: GraphValue) -> Made {
        if self.same_shape(gradient, x) || self.same_shape(x, other) {
            return Ok(gradient);
        }
        if let Some(axes) = self.repeated_axes(gradient, x) {
            let summed = match axes.is_empty() {
                true => gradient,
                false => self.sum(gradient, self.ints(&axes)?, false)?,
            };
            return self.reshape_like(summed, x);
        }
        let (own, others) = (self.shape_of(x)?, self.shape_of(other)?);
        let axes = self.op("BroadcastGradientArgs").input(own).input(others).done()?;
        let summed = self.sum(gradient, axes, false)?;
        self.reshape(summed, own)
    }

    /// The axes of `whole` along which `x` is repeated, if both shapes are known as far as that needs.
    fn repeated_axes(&self, whole: GraphValue, x: GraphValue) -> Option<Vec<i64>> {
        let (whole, own) = (self.known_dims(whole)?, self.known_dims(x)?);
        let added = whole.len().checked_sub(own.len())?;
        let repeated = |axis: &usize| match axis.checked_sub(added) {
            None => true,
            Some(at) => own[at] == 1 && whole[*axis] != 1,
        };
        Some((0..whole.len()).filter(repeated).map(|axis| axis as i64).collect())
    }

    /// Sets the gradients of the two inputs of an op that broadcasts them, each reduced to its input's shape. A formula
    /// runs only if its gradient is wanted.
    ///
    /// # Errors
    /// What the formulas give, and as [`GradientContext::tensor`].
    pub fn set_broadcast(
        &self,
        first: impl FnOnce() -> Made,
        second: impl FnOnce() -> Made,
    ) -> Result<(), KernelError> {
        let (x, y) = (self.input(0), self.input(1));
        if self.wants(0) {
            self.set(0, self.reduce_to(first()?, x, y)?)?;
        }
        if self.wants(1) {
            self.set(1, self.reduce_to(second()?, y, x)?)?;
        }
        Ok(())
    }
}
