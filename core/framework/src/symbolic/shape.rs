//! Dimensions with identity, and shapes of them.

use crate::shape::{PartialShape, ShapeError};
use std::fmt;

/// An unknown dimension of a graph. Equal symbols are equal sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Symbol(u64);

impl Symbol {
    /// Its number in its graph, from 1.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// The source of the symbols of one graph.
#[derive(Debug, Clone, Default)]
pub struct Symbols {
    next: u64,
}

impl Symbols {
    /// A symbol that no other dimension of the graph has.
    pub fn fresh(&mut self) -> Symbol {
        self.next += 1;
        Symbol(self.next)
    }

    /// The number of symbols so far, which is the greatest number of a symbol.
    pub fn count(&self) -> u64 {
        self.next
    }

    /// Symbols of a graph that already has this number of symbols.
    pub fn continued(count: u64) -> Symbols {
        Symbols { next: count }
    }

    /// The symbol of a number; those up to it are taken from now on. 0 is not a number of a symbol.
    pub fn symbol(&mut self, number: u64) -> Option<Symbol> {
        if number == 0 {
            return None;
        }
        self.next = self.next.max(number);
        Some(Symbol(number))
    }
}

/// A dimension of a symbolic shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dimension {
    /// Of this size, at least 0.
    Known(i64),
    /// Of unknown size.
    Unknown(Symbol),
}

impl Dimension {
    /// Size; -1 when it is unknown.
    pub fn value(self) -> i64 {
        match self {
            Dimension::Known(value) => value,
            Dimension::Unknown(_) => -1,
        }
    }
}

/// A shape whose rank or dimensions may be unknown; unknown dimensions have identity.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SymbolicShape {
    dims: Option<Vec<Dimension>>,
}

impl SymbolicShape {
    /// Unknown rank.
    pub const UNKNOWN: SymbolicShape = SymbolicShape { dims: None };

    /// A shape of these dimensions.
    ///
    /// # Errors
    /// Too many dimensions, a negative one, known ones whose product is beyond `i64`.
    pub fn new(dims: Vec<Dimension>) -> Result<SymbolicShape, ShapeError> {
        for (index, dim) in dims.iter().enumerate() {
            if let &Dimension::Known(value) = dim
                && value < 0
            {
                return Err(ShapeError::Negative { index, value });
            }
        }
        let values: Vec<i64> = dims.iter().map(|dim| dim.value()).collect();
        PartialShape::new(&values)?;
        Ok(SymbolicShape { dims: Some(dims) })
    }

    /// A shape whose unknown dimensions are all new.
    pub fn from_partial(shape: &PartialShape, symbols: &mut Symbols) -> SymbolicShape {
        let dims = shape.dims().map(|dims| {
            dims.iter()
                .map(|&dim| match dim {
                    -1 => Dimension::Unknown(symbols.fresh()),
                    size => Dimension::Known(size),
                })
                .collect()
        });
        SymbolicShape { dims }
    }

    /// A shape of known dimensions, each at least 0, as every tensor has them.
    pub(crate) fn from_known(dims: &[i64]) -> SymbolicShape {
        SymbolicShape { dims: Some(dims.iter().map(|&dim| Dimension::Known(dim)).collect()) }
    }

    /// The dimensions; `None` when the rank is unknown.
    pub fn dims(&self) -> Option<&[Dimension]> {
        self.dims.as_deref()
    }

    /// The rank, when known.
    pub fn rank(&self) -> Option<usize> {
        self.dims.as_ref().map(Vec::len)
    }

    /// The shape without identities.
    pub fn partial(&self) -> PartialShape {
        let Some(dims) = &self.dims else { return PartialShape::UNKNOWN };
        let values: Vec<i64> = dims.iter().map(|dim| dim.value()).collect();
        // Checked when it was made.
        PartialShape::new(&values).unwrap_or(PartialShape::UNKNOWN)
    }
}

impl fmt::Display for SymbolicShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.partial(), f)
    }
}
