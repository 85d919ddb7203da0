//! Writes products to outputs: those of 16-bit floats are rounded once, and the epilogue is applied
//! to results while they are in the cache.

use super::{
    super::{
        matmul::convert_down,
        product::{Factor, Operand, Target},
    },
    blocks::Product,
    ending::{After, Ending},
    isa::Isa,
    left::Left,
    right::Right,
    spread,
};
use crate::{
    lane::Compute,
    panels::{as_narrow, as_wide, uninitialised},
    split::{Parts, for_units},
};
use tenon_sdk::{KernelError, author::ComputeContext};

/// The right factor of a product.
#[derive(Clone, Copy)]
pub enum Columns<'a, T: Compute> {
    /// A packed matrix.
    Packed(Right<'a, T::Wide>),
    /// A matrix.
    Matrix(Operand<'a, T>),
}

impl<T: Compute> Columns<'_, T> {
    fn count(&self) -> usize {
        match self {
            Columns::Packed(right) => right.columns(),
            Columns::Matrix(matrix) => matrix.cols,
        }
    }
}

/// Rows of an output: its elements, the beginning of the first row, and the distance to the next
/// one.
pub struct Rows<'y, T> {
    /// All elements.
    pub all: &'y mut [T],
    /// Index of the beginning of the first row.
    pub first: usize,
    /// Distance between rows.
    pub stride: usize,
}

/// Computes `left` times `columns` into rows, and the ending, whose columns and indices are counted
/// over all elements of the output.
///
/// # Errors
/// Out of memory; the call was cancelled.
pub fn write<T: Compute<Wide: Factor>>(
    c: &ComputeContext<'_>,
    isa: &'static Isa<T::Wide>,
    left: &dyn Left<T::Wide>,
    columns: Columns<'_, T>,
    to: Rows<'_, T>,
    ending: Ending<'_, T>,
) -> Result<(), KernelError> {
    let (rows, count) = (left.rows(), columns.count());
    if rows == 0 || count == 0 {
        return Ok(());
    }
    let Rows { all, first, stride } = to;
    let end = (rows - 1).checked_mul(stride).and_then(|last| last.checked_add(first + count));
    assert!(count <= stride && end.is_some_and(|end| end <= all.len()), "rows lie in the output");
    if let Some(wide) = as_wide(&mut *all) {
        let moved = ending.rest.map(|after| {
            move |at: usize, y: &mut [T::Wide]| {
                after(first + at, as_narrow(y).expect("the type computes in itself"));
            }
        });
        let rest = moved.as_ref().map(|after| after as &After<'_, T::Wide>);
        let finish = ending.finish.from(first % stride, first);
        let ending = Ending { finish, rest, all: None };
        // SAFETY: the rows are in the output, which nothing else uses.
        let target = unsafe { Target::new(wide[first..].as_mut_ptr(), rows, count, [stride, 1]) };
        return results(c, isa, left, columns, &target, ending);
    }
    let wide = uninitialised::<T::Wide>(c, rows.saturating_mul(count))?;
    // SAFETY: the target is the whole buffer.
    let target = unsafe { Target::new(wide.as_mut_ptr(), rows, count, [count, 1]) };
    results(c, isa, left, columns, &target, Ending::NONE)?;
    let parts = Parts::new(all);
    for_units(c, rows, count as f64, |range| {
        for row in range {
            let at = first + row * stride;
            // SAFETY: rows do not overlap, and each belongs to one range.
            let y = unsafe { parts.part(at..at + count) };
            convert_down(&wide[row * count..][..count], y);
            ending.all.iter().for_each(|after| after(at, y));
        }
    })
}

fn results<T: Compute<Wide: Factor>>(
    c: &ComputeContext<'_>,
    isa: &'static Isa<T::Wide>,
    left: &dyn Left<T::Wide>,
    columns: Columns<'_, T>,
    target: &Target<T::Wide>,
    ending: Ending<'_, T::Wide>,
) -> Result<(), KernelError> {
    match columns {
        Columns::Packed(right) => spread::compute(c, &Product::new(left, right, target, ending)),
        Columns::Matrix(matrix) => spread::multiply(c, isa, left, &matrix, target, ending),
    }
}
