//! Shapes: fully known ([`Shape`]) and partly known ([`PartialShape`]).

use std::{fmt, ops::Deref};
use tenon_abi::{Code, MAX_RANK};
use thiserror::Error;

/// What is wrong with dimensions.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ShapeError {
    /// Too many dimensions.
    #[error("a tensor has at most {MAX_RANK} dimensions, found {rank}")]
    Rank {
        /// What was found.
        rank: usize,
    },
    /// A negative dimension.
    #[error("dimensions are at least 0, found {value} as dimension {index}")]
    Negative {
        /// Position.
        index: usize,
        /// What was found.
        value: i64,
    },
    /// The product does not fit.
    #[error("the number of elements or bytes of {dims:?} exceeds 2^63 - 1")]
    Overflow {
        /// The dimensions.
        dims: Vec<i64>,
    },
}

impl ShapeError {
    /// The canonical code.
    pub fn code(&self) -> Code {
        Code::INVALID_ARGUMENT
    }
}

/// A fully known shape: at most [`MAX_RANK`] dimensions, each at least 0, whose product fits an `i64`.
/// Held in place, so that making one allocates nothing.
#[derive(Clone, Copy)]
pub struct Shape {
    dims: [i64; MAX_RANK],
    rank: u8,
}

impl Shape {
    /// The shape of a scalar.
    pub const SCALAR: Shape = Shape { dims: [0; MAX_RANK], rank: 0 };

    /// Checks dimensions.
    ///
    /// # Errors
    /// Too many dimensions, a negative one, or a product beyond `i64`.
    #[inline]
    pub fn new(dims: &[i64]) -> Result<Shape, ShapeError> {
        if dims.len() > MAX_RANK {
            return Err(ShapeError::Rank { rank: dims.len() });
        }
        let mut elements: i64 = 1;
        let mut overflow = false;
        for (index, &value) in dims.iter().enumerate() {
            if value < 0 {
                return Err(ShapeError::Negative { index, value });
            }
            match elements.checked_mul(value.max(1)) {
                Some(product) => elements = product,
                None => overflow = true,
            }
        }
        if overflow {
            return Err(ShapeError::Overflow { dims: dims.to_vec() });
        }
        let mut held = [0; MAX_RANK];
        held[..dims.len()].copy_from_slice(dims);
        Ok(Shape { dims: held, rank: dims.len() as u8 })
    }

    /// The dimensions.
    #[inline]
    pub fn dims(&self) -> &[i64] {
        &self.dims[..usize::from(self.rank)]
    }

    /// Number of dimensions.
    #[inline]
    pub fn rank(&self) -> usize {
        usize::from(self.rank)
    }

    /// Number of elements: the product of the dimensions, 1 for a scalar.
    #[inline]
    pub fn elements(&self) -> usize {
        self.dims().iter().product::<i64>() as usize
    }
}

impl Deref for Shape {
    type Target = [i64];

    #[inline]
    fn deref(&self) -> &[i64] {
        self.dims()
    }
}

impl PartialEq for Shape {
    fn eq(&self, other: &Shape) -> bool {
        self.dims() == other.dims()
    }
}

impl Eq for Shape {}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.dims())
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.dims())
    }
}

/// A shape of which the rank or some dimensions may be unknown.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct PartialShape {
    dims: Option<Vec<i64>>,
}

impl PartialShape {
    /// Unknown rank.
    pub const UNKNOWN: PartialShape = PartialShape { dims: None };

    /// A shape of these dimensions; any negative one is unknown.
    ///
    /// # Errors
    /// Too many dimensions, or known ones whose product is beyond `i64`.
    pub fn new(dims: &[i64]) -> Result<PartialShape, ShapeError> {
        let known: Vec<i64> = dims.iter().map(|&d| if d < 0 { 1 } else { d }).collect();
        Shape::new(&known)?;
        Ok(PartialShape { dims: Some(dims.iter().map(|&d| d.max(-1)).collect()) })
    }

    /// The dimensions, -1 where unknown; `None` when the rank is unknown.
    pub fn dims(&self) -> Option<&[i64]> {
        self.dims.as_deref()
    }

    /// The rank, when known.
    pub fn rank(&self) -> Option<usize> {
        self.dims.as_ref().map(Vec::len)
    }

    /// The full shape, when every dimension is known.
    pub fn full(&self) -> Option<Shape> {
        Shape::new(self.dims()?).ok()
    }

    /// Whether a tensor of this shape fits what is known.
    #[inline]
    pub fn accepts(&self, shape: &[i64]) -> bool {
        match self.dims() {
            None => true,
            Some(dims) => {
                dims.len() == shape.len()
                    && dims.iter().zip(shape).all(|(&want, &have)| want < 0 || want == have)
            }
        }
    }
}

impl From<Shape> for PartialShape {
    fn from(shape: Shape) -> PartialShape {
        PartialShape { dims: Some(shape.dims().to_vec()) }
    }
}

impl fmt::Debug for PartialShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for PartialShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(dims) = self.dims() else { return f.write_str("<unknown>") };
        f.write_str("[")?;
        for (at, dim) in dims.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            match dim {
                -1 => write!(f, "{comma}?")?,
                value => write!(f, "{comma}{value}")?,
            }
        }
        f.write_str("]")
    }
}

/// Whether two shapes are equal. There are few dimensions: comparing them in place costs less than the call of
/// `memcmp` that `==` on slices becomes, which was two fifths of a call of a one-element `Add`.
#[inline(always)]
pub fn same_dims(a: &[i64], b: &[i64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_refuses_what_overflows_even_beside_a_zero() {
        assert!(matches!(Shape::new(&[i64::MAX, 2]), Err(ShapeError::Overflow { .. })));
        assert!(matches!(Shape::new(&[0, i64::MAX, 2]), Err(ShapeError::Overflow { .. })));
        assert!(matches!(Shape::new(&[3, -2]), Err(ShapeError::Negative { index: 1, value: -2 })));
        assert!(matches!(Shape::new(&[1; 17]), Err(ShapeError::Rank { rank: 17 })));
        assert_eq!(Shape::new(&[0, 5]).unwrap().elements(), 0);
        assert_eq!(Shape::SCALAR.elements(), 1);
    }

    #[test]
    fn a_partial_shape_accepts_what_agrees_with_it() {
        let shape = PartialShape::new(&[-1, 3]).unwrap();
        assert!(shape.accepts(&[7, 3]) && !shape.accepts(&[7, 4]) && !shape.accepts(&[3]));
        assert!(PartialShape::UNKNOWN.accepts(&[1, 2, 3]));
        assert_eq!(shape.to_string(), "[?,3]");
        assert_eq!(shape.full(), None);
    }
}
