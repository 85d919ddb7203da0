//! The right factor of a product: columns in panels as wide as a tile.
//!
//! In a panel the factors of its columns at one depth are contiguous, followed by those at the next
//! depth. A packed factor is one piece of memory, with 0 for missing columns of the last panel; if
//! there are few rows to multiply, or the matrix is small, it is read in place.

use super::{
    super::product::{Factor, Operand},
    isa::Isa,
};
use crate::{kernels::array::turn::turn_into, lane::Compute, panels::as_itself};
use std::{marker::PhantomData, ops::Range};
use tenon_sdk::{
    element::Number,
    pages::{Line, Lines},
};

/// Columns of factors for one instruction set.
#[derive(Debug)]
pub struct Right<'a, S: 'static> {
    isa: &'static Isa<S>,
    depth: usize,
    columns: usize,
    /// The first panel, and the distance between panels.
    first: *const S,
    panel_step: usize,
    /// Distance to the next factors along the depth.
    step: usize,
    /// The last panel, if it is incomplete.
    tail: *const S,
    tail_step: usize,
    life: PhantomData<&'a [S]>,
}

impl<S: 'static> Clone for Right<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: 'static> Copy for Right<'_, S> {}

// SAFETY: it is one or two borrowed slices.
unsafe impl<S: Sync + 'static> Sync for Right<'_, S> {}
// SAFETY: as for `Send`.
unsafe impl<S: Sync + 'static> Send for Right<'_, S> {}

impl<'a, S: 'static> Right<'a, S> {
    /// A factor that [`pack`] has written.
    ///
    /// Panics if the memory is not [`packed_len`] of the sizes.
    pub fn packed(isa: &'static Isa<S>, [depth, columns]: [usize; 2], data: &'a [S]) -> Self {
        assert_eq!(Some(data.len()), packed_len(isa, [depth, columns]), "memory for the panels");
        let panel_step = depth * isa.columns;
        let first = data.as_ptr();
        let tail = first.wrapping_add(columns / isa.columns * panel_step);
        let (step, life) = (isa.columns, PhantomData);
        Right { isa, depth, columns, first, panel_step, step, tail, tail_step: step, life }
    }

    /// Some panels of a factor of this size, for some of its depth, that [`pack`] has written from
    /// these rows of its matrix. Only these panels and depths are valid arguments of
    /// [`Right::panel`].
    ///
    /// Panics if there is too little memory.
    pub fn block(
        isa: &'static Isa<S>,
        [depth, columns]: [usize; 2],
        panels: &Range<usize>,
        depths: &Range<usize>,
        data: &'a [S],
    ) -> Self {
        let panel_step = depths.len() * isa.columns;
        assert!(panels.len() * panel_step <= data.len(), "memory for the panels");
        let skipped = panels.start * panel_step + depths.start * isa.columns;
        let first = data.as_ptr().wrapping_sub(skipped);
        let tail = first.wrapping_add(columns / isa.columns * panel_step);
        let (step, life) = (isa.columns, PhantomData);
        Right { isa, depth, columns, first, panel_step, step, tail, tail_step: step, life }
    }

    /// A matrix in place; `tail` is the panel of [`tail_of`] its columns, packed.
    ///
    /// Panics if it cannot be read in place.
    pub fn in_place(isa: &'static Isa<S>, matrix: &Operand<'a, S>, tail: &'a [S]) -> Self {
        let Operand { data, rows: depth, cols: columns, strides: [step, stride] } = *matrix;
        assert!(matrix.fits() && (stride == 1 || columns <= 1), "columns next to each other");
        let (first, panel_step) = (data.as_ptr(), isa.columns);
        let whole = columns / isa.columns * isa.columns;
        let (tail, tail_step) = match tail_of(isa, columns) {
            0 => (first.wrapping_add(whole), step),
            _ => {
                assert_eq!(tail.len(), depth * isa.columns, "the last panel");
                (tail.as_ptr(), isa.columns)
            }
        };
        Right { isa, depth, columns, first, panel_step, step, tail, tail_step, life: PhantomData }
    }

    /// The instruction set that it is packed for.
    pub fn isa(&self) -> &'static Isa<S> {
        self.isa
    }

    /// Number of factors of a column.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Whether it is read in place.
    pub fn is_in_place(&self) -> bool {
        self.step != self.isa.columns
    }

    /// Distance between panels, but for an incomplete last one that is elsewhere.
    pub fn panel_step(&self) -> usize {
        self.panel_step
    }

    /// Number of panels.
    pub fn panels(&self) -> usize {
        self.columns.div_ceil(self.isa.columns)
    }

    /// Number of columns of a panel.
    #[inline(always)]
    pub fn columns_of(&self, panel: usize) -> usize {
        (self.columns - panel * self.isa.columns).min(self.isa.columns)
    }

    /// The factors of a panel from a depth on, and the distance to the next depth.
    #[inline(always)]
    pub fn panel(&self, panel: usize, depth: usize) -> (*const S, usize) {
        if (panel + 1) * self.isa.columns <= self.columns {
            (self.first.wrapping_add(panel * self.panel_step + depth * self.step), self.step)
        } else {
            (self.tail.wrapping_add(depth * self.tail_step), self.tail_step)
        }
    }
}

/// Number of numbers of a packed matrix; `None` if it overflows.
pub fn packed_len<S: 'static>(isa: &Isa<S>, [depth, columns]: [usize; 2]) -> Option<usize> {
    columns.div_ceil(isa.columns).checked_mul(isa.columns)?.checked_mul(depth)
}

/// Number of columns after the last whole vector of a matrix: if there are some, the last panel is
/// packed, because a vector would read beyond them.
pub fn tail_of<S: 'static>(isa: &Isa<S>, columns: usize) -> usize {
    columns % isa.lanes
}

/// Packs some panels of a matrix into memory for them.
pub fn pack<T: Compute<Wide: Factor>>(
    isa: &Isa<T::Wide>,
    matrix: &Operand<'_, T>,
    panels: Range<usize>,
    to: &mut [T::Wide],
) {
    let width = isa.columns;
    let len = matrix.rows * width;
    for (panel, to) in panels.zip(to.chunks_exact_mut(len.max(1))) {
        let columns = width.min(matrix.cols - panel * width);
        if columns < width {
            to.fill(T::Wide::ZERO);
        }
        pack_panel(matrix, panel * width..panel * width + columns, to, width);
    }
}

/// Packs some columns of a matrix, at most `width`, into a panel, or into a part of its depth.
pub fn pack_panel<T: Compute<Wide: Factor>>(
    matrix: &Operand<'_, T>,
    columns: Range<usize>,
    to: &mut [T::Wide],
    width: usize,
) {
    let [stride, column_stride] = matrix.strides;
    let from = &matrix.data[columns.start * column_stride..];
    if column_stride == 1 {
        return T::rows_up(from, stride, columns.len(), to, width);
    }
    if let Some(from) = as_itself(from).filter(|_| stride == 1) {
        return turn_into(from, column_stride, [columns.len(), matrix.rows], to, width);
    }
    for (k, to) in to.chunks_exact_mut(width).enumerate() {
        for (column, to) in to[..columns.len()].iter_mut().enumerate() {
            *to = from[k * stride + column * column_stride].up();
        }
    }
}

/// A packed matrix with its memory.
#[derive(Debug)]
pub struct PackedRight<S: 'static> {
    isa: &'static Isa<S>,
    size: [usize; 2],
    lines: Lines,
}

impl<S: Factor> PackedRight<S> {
    /// Packs a matrix; `None` when out of memory.
    pub fn new<T: Compute<Wide = S>>(
        isa: &'static Isa<S>,
        matrix: &Operand<'_, T>,
    ) -> Option<PackedRight<S>> {
        let size = [matrix.rows, matrix.cols];
        let len = packed_len(isa, size)?;
        let mut lines = Lines::zeroed_for::<S>(len)?;
        let panels = matrix.cols.div_ceil(isa.columns);
        pack(isa, matrix, 0..panels, &mut Line::numbers_mut(&mut lines)[..len]);
        Some(PackedRight { isa, size, lines })
    }

    /// Its depth and columns.
    pub fn size(&self) -> [usize; 2] {
        self.size
    }

    /// The matrix.
    pub fn view(&self) -> Right<'_, S> {
        let len = packed_len(self.isa, self.size).expect("it was packed");
        Right::packed(self.isa, self.size, &Line::numbers(&self.lines)[..len])
    }

    /// Writes the original matrix, row by row.
    ///
    /// Panics if there is not enough room.
    pub fn unpack(&self, to: &mut [S]) {
        let ([depth, columns], width) = (self.size, self.isa.columns);
        let packed = Line::numbers::<S>(&self.lines);
        for (k, to) in to.chunks_exact_mut(columns).take(depth).enumerate() {
            for (panel, to) in to.chunks_mut(width).enumerate() {
                to.copy_from_slice(&packed[(panel * depth + k) * width..][..to.len()]);
            }
        }
    }

    /// Bytes of memory that it takes.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.lines)
    }
}
