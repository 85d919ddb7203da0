//! Accumulates a tile of sums of products in registers, on any instruction set.
//!
//! A tile has up to [`Compiled::ROWS`] rows and up to [`Compiled::VECTORS`] vectors of columns. For
//! each factor along the depth it loads the vectors of `B` once, and broadcasts the factor of each
//! row of `A` to a vector: `rows * vectors` multiplications for `rows + vectors` loads. With 8 rows
//! and 3 vectors of AVX-512 that is 24 for 11, on a core that does as many of one as of the other:
//! 12 cycles, in which the second-level cache delivers the 192 bytes of `B` that they need.

use super::{
    ending::Finish,
    pieces::{Pieces, Rows, Walk},
    right::Right,
    vector::Vector,
};
use std::ops::Range;

/// Most rows of a tile on any instruction set.
pub const MOST_ROWS: usize = 8;
/// How far ahead memory is prefetched, in rows of `B`.
const AHEAD: usize = 24;

/// Number of parts in which each sum of a tile with few sums is kept: additions to one sum wait for
/// each other, so the parts alternate.
const fn parts(sums: usize) -> usize {
    match sums {
        ..=3 => 4,
        4..=6 => 2,
        _ => 1,
    }
}

/// An instruction set whose tiles are separate functions, compiled for it.
///
/// # Safety
/// - The implementation upholds what [`Vector`] requires.
pub unsafe trait Compiled {
    /// A vector of sums.
    type Vector: Vector;
    /// Rows of a tile.
    const ROWS: usize;
    /// Vectors of a row of a tile.
    const VECTORS: usize;
    /// [`strip`] for `ROWS` rows.
    ///
    /// # Safety
    /// - The caller upholds what [`strip`] requires.
    unsafe fn strip<const ROWS: usize>(strip: &Strip<'_, Scalar<Self>>);
}

/// The number type of an instruction set.
pub type Scalar<C> = <<C as Compiled>::Vector as Vector>::Scalar;

/// The operands of the tiles of a few rows.
#[derive(Debug)]
pub struct Strip<'a, S: 'static> {
    /// Number of rows.
    pub rows: usize,
    /// The rows' factors, and the distance between rows.
    pub left: *const S,
    /// See `left`.
    pub row_step: usize,
    /// The layout of a row's factors.
    pub pieces: Pieces,
    /// The columns' factors.
    pub right: Right<'a, S>,
    /// The range of the depth to sum.
    pub depths: Range<usize>,
    /// The panels of columns to compute.
    pub panels: Range<usize>,
    /// Destination of the sums of the first row, for all columns, and the distance to the next
    /// row's.
    pub to: *mut S,
    /// See `to`.
    pub to_step: usize,
    /// Whether the sums are added to the existing numbers.
    pub adds: bool,
    /// What its tiles prefetch.
    pub ahead: Ahead<S>,
    /// The operations on the sums before they are stored, for the first row and all columns.
    pub finish: Option<Finish<'a, S>>,
}

/// The columns' factors that are read after those of a strip. Each tile prefetches a vector of them
/// for each factor along the depth.
#[derive(Debug, Clone, Copy)]
pub struct Ahead<S> {
    /// The first factor.
    pub first: *const S,
    /// Distance between panels.
    pub panel_step: usize,
    /// Distance between the parts of a panel that tiles prefetch in turn, one part for each of its
    /// vectors.
    pub part_step: usize,
    /// Distance between the vectors that a tile prefetches.
    pub step: usize,
    /// Number of panels.
    pub panels: usize,
    /// Number of tiles that prefetch before those of this strip.
    pub before: usize,
}

impl<S> Ahead<S> {
    /// Nothing.
    pub const NONE: Ahead<S> = Ahead {
        first: std::ptr::null(),
        panel_step: 0,
        part_step: 0,
        step: 0,
        panels: 0,
        before: 0,
    };

    /// Where a tile of this strip begins to prefetch, and the distance to the next vector.
    #[inline(always)]
    fn of<const V: usize>(&self, tile: usize) -> Option<(*const S, usize)> {
        let at = self.before + tile;
        let (panel, part) = (at / V, at % V);
        let first = self.first.wrapping_add(panel * self.panel_step + part * self.part_step);
        (panel < self.panels).then_some((first, self.step))
    }
}

/// Computes the tiles of a strip.
///
/// # Safety
/// - The caller upholds what [`strip`] requires.
#[inline(always)]
pub unsafe fn run<C: Compiled>(strip: &Strip<'_, Scalar<C>>) {
    macro_rules! by_rows {
        ($($rows:literal)*) => {
            match strip.rows {
                // SAFETY: the caller upholds what `strip` requires; the strip has this number of
                // rows.
                $($rows if $rows <= C::ROWS => unsafe { C::strip::<$rows>(strip) },)*
                rows => unreachable!("a tile of {rows} rows"),
            }
        };
    }
    by_rows!(1 2 3 4 5 6 7 8)
}

/// Computes the tiles of `R` rows, the strip's number, each of up to `V` vectors.
///
/// # Safety
/// - The pointers of `strip` are valid as the fields of [`Strip`] say.
/// - Nothing else reads or writes these sums.
/// - The CPU has the instructions.
#[inline(always)]
pub unsafe fn strip<C: Compiled, const R: usize, const V: usize>(strip: &Strip<'_, Scalar<C>>) {
    const { assert!(R <= MOST_ROWS && V <= 3, "a tile of these sizes") };
    let lanes = C::Vector::LANES;
    for panel in strip.panels.clone() {
        let (right, step) = strip.right.panel(panel, strip.depths.start);
        let columns = strip.right.columns_of(panel);
        // SAFETY: the caller guarantees that the pointers are valid, that nothing else uses these
        // sums, and that the CPU has the instructions.
        unsafe {
            let first = panel * V * lanes;
            let to = strip.to.add(first);
            let later = strip.ahead.of::<V>(panel - strip.panels.start).unwrap_or((right, 0));
            let tile = Tile { strip, right, step, to, first, columns, later };
            match columns.div_ceil(lanes) {
                1 => tile.run::<C::Vector, R, 1>(),
                2 if V > 1 => tile.run::<C::Vector, R, 2>(),
                _ => tile.run::<C::Vector, R, V>(),
            }
        }
    }
}

/// A tile of a strip.
struct Tile<'t, S: 'static> {
    strip: &'t Strip<'t, S>,
    /// The first row of the columns' factors, and the distance to the next one.
    right: *const S,
    step: usize,
    to: *mut S,
    /// The first column, and the number of columns.
    first: usize,
    columns: usize,
    /// What to prefetch, and the distance to the next.
    later: (*const S, usize),
}

/// Sums of a tile of `R` rows and `V` vectors.
type Sums<T, const R: usize, const V: usize> = [[T; V]; R];

impl<S: Copy + 'static> Tile<'_, S> {
    /// # Safety
    /// - The caller upholds what [`strip`] requires.
    #[inline(always)]
    unsafe fn run<T: Vector<Scalar = S>, const R: usize, const V: usize>(&self) {
        // SAFETY: the caller upholds what `strip` requires; the strip has `R` rows and this tile
        // `V` vectors; prefetched memory need not exist.
        unsafe {
            for at in 0..R * V {
                let (row, column) = (at / V * self.strip.to_step, at % V * T::LANES);
                T::prefetch(self.to.wrapping_add(row + column));
            }
            self.prefetch_other::<T, R, V>();
            let mut sums = match parts(R * V) {
                4 => self.in_parts::<T, R, V, 4>(),
                2 => self.in_parts::<T, R, V, 2>(),
                _ => self.each::<T, R, V>(),
            };
            if self.strip.adds {
                self.add_rows(self.to, &mut sums);
            }
            if let Some(finish) = &self.strip.finish {
                self.finish(finish, &mut sums);
            }
            self.write(&sums);
        }
    }

    /// Adds all factors in turn.
    ///
    /// # Safety
    /// - Rows and columns have a factor for each of the strip's depths.
    /// - The CPU has the instructions.
    #[inline(always)]
    unsafe fn each<T: Vector<Scalar = S>, const R: usize, const V: usize>(&self) -> Sums<T, R, V> {
        let (mut left, mut walk) = Walk::new(self.strip);
        let (mut right, mut later) = (self.right, self.later.0);
        // SAFETY: the caller guarantees that the CPU has the instructions, and that rows and
        // columns have a factor for each of the strip's depths.
        unsafe {
            let mut sums = [[T::zero(); V]; R];
            while let Some(count) = walk.piece() {
                self.some(count, &mut left, &mut right, &mut later, &mut sums);
                walk.next(&mut left);
            }
            sums
        }
    }

    /// Adds some factors of a piece.
    ///
    /// # Safety
    /// - The factors of each step exist.
    /// - The CPU has the instructions.
    #[inline(always)]
    unsafe fn some<T: Vector<Scalar = S>, const R: usize, const V: usize>(
        &self,
        count: usize,
        left: &mut Rows<S>,
        right: &mut *const S,
        later: &mut *const S,
        sums: &mut Sums<T, R, V>,
    ) {
        let step = self.strip.pieces.step;
        // One by one: with two at a time, the compiler moves loads ahead until it runs out of
        // registers.
        for _ in 0..count {
            // SAFETY: the caller guarantees that the factors of each step exist, and that the CPU
            // has the instructions; prefetched memory need not exist.
            unsafe {
                self.step::<T, R, V>(left, *right, sums);
                T::prefetch_far(*later);
            }
            // After the last factor it may be outside of the matrix, and is not read.
            *right = right.wrapping_add(self.step);
            *later = later.wrapping_add(self.later.1);
            left.skip(step);
        }
    }

    /// Adds one factor of each row and column.
    ///
    /// # Safety
    /// - The rows' and the columns' factors exist.
    /// - The CPU has the instructions.
    #[inline(always)]
    unsafe fn step<T: Vector<Scalar = S>, const R: usize, const V: usize>(
        &self,
        left: &Rows<S>,
        right: *const S,
        sums: &mut Sums<T, R, V>,
    ) {
        // SAFETY: the caller guarantees that the rows' and the columns' factors exist, and that the
        // CPU has the instructions; prefetched memory need not exist.
        unsafe {
            let mut columns = [T::zero(); V];
            for (v, column) in columns.iter_mut().enumerate() {
                *column = T::load(right.add(v * T::LANES));
                T::prefetch(right.wrapping_add(AHEAD * self.step + v * T::LANES));
            }
            for (row, sums) in sums.iter_mut().enumerate() {
                let factor = T::spread(left.at(row));
                for (sum, &column) in sums.iter_mut().zip(&columns) {
                    *sum = factor.mul_add(column, *sum);
                }
            }
        }
    }

    /// Computes few sums: factors of a piece are added to `P` parts of each in turn, which are
    /// added at the end.
    ///
    /// # Safety
    /// - The strip's factors exist.
    /// - The CPU has the instructions.
    #[inline(always)]
    unsafe fn in_parts<T: Vector<Scalar = S>, const R: usize, const V: usize, const P: usize>(
        &self,
    ) -> Sums<T, R, V> {
        let (mut left, mut walk) = Walk::new(self.strip);
        let (mut right, mut later) = (self.right, self.later.0);
        // SAFETY: the caller guarantees that the strip's factors exist, and that the CPU has the
        // instructions.
        unsafe {
            let mut parts = [[[T::zero(); V]; R]; P];
            let mut sums = [[T::zero(); V]; R];
            while let Some(count) = walk.piece() {
                for _ in 0..count / P {
                    for part in &mut parts {
                        self.step::<T, R, V>(&left, right, part);
                        // As in `some`.
                        right = right.wrapping_add(self.step);
                        left.skip(self.strip.pieces.step);
                    }
                }
                self.some(count % P, &mut left, &mut right, &mut later, &mut sums);
                walk.next(&mut left);
            }
            // Plain loops: parts stay in registers only if the compiler unrolls all accesses to
            // them.
            for part in &parts {
                for (sums, part) in sums.iter_mut().zip(part) {
                    for (sum, &part) in sums.iter_mut().zip(part) {
                        *sum = sum.plus(part);
                    }
                }
            }
            sums
        }
    }

    /// Prefetches what is added to the sums at the end.
    ///
    /// # Safety
    /// The CPU has the instructions of `T`.
    #[inline(always)]
    unsafe fn prefetch_other<T: Vector<Scalar = S>, const R: usize, const V: usize>(&self) {
        let Some(other) = self.strip.finish.as_ref().and_then(|finish| finish.other) else {
            return;
        };
        for at in 0..R * V {
            let (row, column) = (at / V * self.strip.to_step, self.first + at % V * T::LANES);
            // SAFETY: prefetched memory need not exist.
            unsafe { T::prefetch(other.as_ptr().wrapping_add(row + column)) };
        }
    }

    /// Loads one vector of a row of the tile, whose last vector may be incomplete.
    ///
    /// # Safety
    /// - The row has a number for each column of the tile.
    /// - The CPU has the instructions.
    #[inline(always)]
    unsafe fn load<T: Vector<Scalar = S>, const V: usize>(&self, row: *const S, v: usize) -> T {
        let count = self.columns - v * T::LANES;
        // SAFETY: the caller guarantees that the row has a number for each column of the tile, and
        // that the CPU has the instructions.
        unsafe {
            let from = row.add(v * T::LANES);
            if v + 1 < V || count >= T::LANES { T::load(from) } else { T::load_part(from, count) }
        }
    }

    /// Adds numbers that have the layout of the results.
    ///
    /// # Safety
    /// - There are numbers for all rows and columns of the tile.
    /// - The CPU has the instructions.
    #[inline(always)]
    unsafe fn add_rows<T: Vector<Scalar = S>, const R: usize, const V: usize>(
        &self,
        from: *const S,
        sums: &mut Sums<T, R, V>,
    ) {
        for (row, sums) in sums.iter_mut().enumerate() {
            for (v, sum) in sums.iter_mut().enumerate() {
                // SAFETY: the caller guarantees numbers for all rows and columns of the tile, and
                // that the CPU has the instructions.
                *sum =
                    unsafe { sum.plus(self.load::<T, V>(from.add(row * self.strip.to_step), v)) };
            }
        }
    }

    /// Does what `finish` says to the sums before they are stored.
    ///
    /// # Safety
    /// - `finish` has numbers for each column, and for each result.
    /// - The CPU has the instructions.
    #[inline(always)]
    unsafe fn finish<T: Vector<Scalar = S>, const R: usize, const V: usize>(
        &self,
        finish: &Finish<'_, S>,
        sums: &mut Sums<T, R, V>,
    ) {
        // SAFETY: the caller guarantees numbers for each column, and for each result, and that the
        // CPU has the instructions.
        unsafe {
            if let Some(bias) = finish.bias {
                for v in 0..V {
                    let bias: T = self.load::<T, V>(bias.as_ptr().add(self.first), v);
                    for sums in sums.iter_mut() {
                        sums[v] = sums[v].plus(bias);
                    }
                }
            }
            if let Some(affine) = &finish.affine {
                for v in 0..V {
                    let of = |values: &[S]| values.as_ptr().add(self.first);
                    let [mean, factor, offset]: [T; 3] = [
                        self.load::<T, V>(of(affine[0]), v),
                        self.load::<T, V>(of(affine[1]), v),
                        self.load::<T, V>(of(affine[2]), v),
                    ];
                    for sums in sums.iter_mut() {
                        sums[v] = sums[v].minus(mean).times(factor).plus(offset);
                    }
                }
            }
            if let Some(other) = finish.other {
                self.add_rows(other.as_ptr().add(self.first), sums);
            }
            if let Some(high) = &finish.high {
                let high = T::spread(high);
                for sum in sums.iter_mut().flatten() {
                    // Adding 0 turns -0 into 0.
                    *sum = sum.at_least(T::zero()).at_most(high).plus(T::zero());
                }
            }
        }
    }

    /// Stores the sums.
    ///
    /// # Safety
    /// - The results of the tile's rows and columns are valid for writes, and nothing else uses
    ///   them.
    /// - The CPU has the instructions.
    #[inline(always)]
    unsafe fn write<T: Vector<Scalar = S>, const R: usize, const V: usize>(
        &self,
        sums: &Sums<T, R, V>,
    ) {
        for (row, sums) in sums.iter().enumerate() {
            for (v, &sum) in sums.iter().enumerate() {
                let count = self.columns - v * T::LANES;
                // SAFETY: the caller guarantees that the results of the tile's rows and columns are
                // valid for writes, that nothing else uses them, and that the CPU has the
                // instructions.
                unsafe {
                    let to = self.to.add(row * self.strip.to_step + v * T::LANES);
                    if v + 1 < V || count >= T::LANES {
                        sum.store(to);
                    } else {
                        sum.store_part(to, count);
                    }
                }
            }
        }
    }
}
