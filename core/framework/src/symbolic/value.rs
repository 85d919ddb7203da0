//! Integers that are known in part.

use super::shape::{Dimension, Symbol, SymbolicShape, Symbols};
use crate::{KernelError, Tensor};
use tenon_abi::{DType, MAX_RANK};

/// Longer vectors are not followed, because they are not shapes.
pub(crate) const MAX_ITEMS: usize = 64;

/// One integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item {
    /// This one.
    Known(i64),
    /// The size of this dimension.
    Dimension(Symbol),
    /// Any. Unlike a dimension it may be negative, and two of them may differ.
    Unknown,
}

impl From<Dimension> for Item {
    fn from(dim: Dimension) -> Item {
        match dim {
            Dimension::Known(value) => Item::Known(value),
            Dimension::Unknown(symbol) => Item::Dimension(symbol),
        }
    }
}

/// What is known of an integer scalar or vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SymbolicValue {
    items: Vec<Item>,
    scalar: bool,
}

impl SymbolicValue {
    /// A scalar.
    pub fn scalar(item: Item) -> SymbolicValue {
        SymbolicValue { items: vec![item], scalar: true }
    }

    /// A vector; `None` when it is too long to be a shape.
    pub fn vector(items: Vec<Item>) -> Option<SymbolicValue> {
        (items.len() <= MAX_ITEMS).then_some(SymbolicValue { items, scalar: false })
    }

    /// The values of a tensor in host memory; `None` unless it is a short vector or a scalar of int16,
    /// int32 or int64.
    pub fn from_tensor(tensor: &Tensor) -> Option<SymbolicValue> {
        fn items<T: crate::element::Element + Into<i64>>(tensor: &Tensor) -> Option<Vec<Item>> {
            let values = tensor.as_slice::<T>().ok()?;
            Some(values.iter().map(|&value| Item::Known(value.into())).collect())
        }
        if tensor.shape().rank() > 1 || tensor.elements() > MAX_ITEMS {
            return None;
        }
        let items = match tensor.dtype() {
            DType::INT16 => items::<i16>(tensor),
            DType::INT32 => items::<i32>(tensor),
            DType::INT64 => items::<i64>(tensor),
            _ => None,
        }?;
        Some(SymbolicValue { items, scalar: tensor.shape().rank() == 0 })
    }

    /// The integers, in order.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Whether it is a scalar.
    pub fn is_scalar(&self) -> bool {
        self.scalar
    }

    /// The integers, when all are known.
    pub fn known(&self) -> Option<Vec<i64>> {
        let known = |item: &Item| match item {
            Item::Known(value) => Some(*value),
            _ => None,
        };
        self.items.iter().map(known).collect()
    }

    /// Whether the known integers are values of an integer type.
    pub(crate) fn fits(&self, dtype: DType) -> bool {
        let bits = dtype.bits().clamp(1, 64);
        let most = i64::MAX >> (64 - bits);
        let fits = |item: &Item| match item {
            Item::Known(value) => (-most - 1..=most).contains(value),
            Item::Dimension(_) | Item::Unknown => true,
        };
        self.items.iter().all(fits)
    }

    /// The same integers as a scalar (rank 0) or vector (rank 1); `None` when there are not as many.
    pub(crate) fn with_rank(&self, rank: usize) -> Option<SymbolicValue> {
        let fits = rank == 1 || (rank == 0 && self.items.len() == 1);
        fits.then(|| SymbolicValue { items: self.items.clone(), scalar: rank == 0 })
    }

    /// The tensor of type int16, int32 or int64, when all integers are known and fit it.
    pub fn to_tensor(&self, dtype: DType) -> Option<Tensor> {
        let values = self.known()?;
        let length = [values.len() as i64];
        let dims: &[i64] = if self.scalar { &[] } else { &length };
        match dtype {
            DType::INT16 => Tensor::from_slice(dims, &narrowed::<i16>(&values)?).ok(),
            DType::INT32 => Tensor::from_slice(dims, &narrowed::<i32>(&values)?).ok(),
            DType::INT64 => Tensor::from_slice(dims, &values).ok(),
            _ => None,
        }
    }

    /// The shape with these dimensions, -1 and unknown integers being unknown ones. The scalar -1 is the
    /// shape of unknown rank.
    pub(crate) fn to_shape(&self, symbols: &mut Symbols) -> Result<SymbolicShape, KernelError> {
        if self.scalar {
            return match self.items[..] {
                [Item::Known(-1) | Item::Unknown] => Ok(SymbolicShape::UNKNOWN),
                _ => Err(KernelError::invalid_argument(
                    "a shape is given as a vector, or as the scalar -1 when it is unknown, found another scalar",
                )),
            };
        }
        if self.items.len() > MAX_RANK {
            let found = self.items.len();
            let message = format!("a tensor has at most {MAX_RANK} dimensions, found {found}");
            return Err(KernelError::invalid_argument(message));
        }
        let mut dims = Vec::with_capacity(self.items.len());
        for (at, &item) in self.items.iter().enumerate() {
            dims.push(match item {
                Item::Known(value) if value < -1 => {
                    return Err(KernelError::invalid_argument(format!(
                        "dimension {at} of a shape is at least 0, or -1 if unknown, found {value}"
                    )));
                }
                Item::Known(-1) | Item::Unknown => Dimension::Unknown(symbols.fresh()),
                Item::Known(value) => Dimension::Known(value),
                Item::Dimension(symbol) => Dimension::Unknown(symbol),
            });
        }
        SymbolicShape::new(dims).map_err(|error| KernelError::new(error.code(), error.to_string()))
    }
}

fn narrowed<T: TryFrom<i64>>(values: &[i64]) -> Option<Vec<T>> {
    values.iter().map(|&value| T::try_from(value).ok()).collect()
}
