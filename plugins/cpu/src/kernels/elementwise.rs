//! One loop for all ops on one element, and one for all on two elements with broadcasting.
//!
//! An op is a type with a function of [`Compute::Wide`] values. Small tensors and equal shapes take
//! a path that plans nothing and requests nothing from the host except the output.

pub mod any;
pub mod blocks;
mod runs;

use crate::{
    arch::{Baseline, Isa, Level, vectorised},
    lane::Compute,
    split::{Parts, for_elements, for_units, is_worth_asking},
    stream::{map_ahead, store, stores_of},
};
use runs::runs;
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, InOut},
    geometry::BroadcastPlan,
};

/// Outputs up to this many bytes are computed at once, and never take over an input's buffer:
/// asking whether they may costs more than they do.
const SMALL_BYTES: usize = 4096;
/// Elements examined together: they stay in the first-level cache.
const NEIGHBOURS: usize = 1024;
/// Up to this many elements the loop is not worth vectorising.
const FEW: usize = 8;

/// An op on one value.
pub trait UnaryOp<W>: 'static {
    /// Approximate nanoseconds per element, in a long tensor.
    const COST_NS: f64 = 0.15;
    /// Whether results depend on the instructions: then even a few elements take the vectorised
    /// loop.
    const BY_ISA: bool = false;
    /// Computes, with the instructions of `I`.
    fn apply<I: Isa>(x: W) -> W;
    /// Computes on an element, possibly without the wide type.
    #[inline(always)]
    fn on<I: Isa, T: Compute<Wide = W>>(x: T) -> T {
        T::down(Self::apply::<I>(x.up()))
    }
    /// Whether [`UnaryOp::near`] exists for some elements.
    const HAS_NEAR: bool = false;
    /// Whether [`UnaryOp::near`] yields the same bits as [`UnaryOp::on`] for these elements.
    #[inline(always)]
    fn are_near<T: Compute<Wide = W>>(_: &[T]) -> bool {
        false
    }
    /// [`UnaryOp::on`] in fewer operations, for near elements.
    #[inline(always)]
    fn near<I: Isa, T: Compute<Wide = W>>(x: T) -> T {
        Self::on::<I, T>(x)
    }
    /// Whether every element is unchanged.
    #[inline(always)]
    fn is_identity<T: Compute<Wide = W>>() -> bool {
        false
    }
}

/// An op on two values.
pub trait BinaryOp<W>: 'static {
    /// Approximate nanoseconds per element, in a long tensor.
    const COST_NS: f64 = 0.2;
    /// As [`UnaryOp::BY_ISA`].
    const BY_ISA: bool = false;
    /// Computes, with the instructions of `I`.
    fn apply<I: Isa>(x: W, y: W) -> W;
}

/// An op with its operands exchanged.
struct Swap<O>(std::marker::PhantomData<O>);

impl<W, O: BinaryOp<W>> BinaryOp<W> for Swap<O> {
    const COST_NS: f64 = O::COST_NS;
    const BY_ISA: bool = O::BY_ISA;
    #[inline(always)]
    fn apply<I: Isa>(x: W, y: W) -> W {
        O::apply::<I>(y, x)
    }
}

#[inline(always)]
fn two<I: Isa, T: Compute, O: BinaryOp<T::Wide>>(x: T, y: T) -> T {
    T::down(O::apply::<I>(x.up(), y.up()))
}

vectorised! {
    /// `y[i] = O(x[i])`, with the instructions of a level.
    pub fn map at level[T: Compute, O: UnaryOp<T::Wide>](x: &[T], y: &mut [T]) {
        let near = if O::HAS_NEAR { NEIGHBOURS } else { x.len().max(1) };
        for (x, y) in x.chunks(near).zip(y.chunks_mut(near)) {
            if O::HAS_NEAR && O::are_near(x) {
                map_ahead(x, y, NEIGHBOURS, O::near::<I, T>);
            } else {
                y.iter_mut().zip(x).for_each(|(y, &x)| *y = O::on::<I, T>(x));
            }
        }
    }
}

vectorised! {
    /// `y[i] = O(y[i])`, with the instructions of a level.
    pub fn map_in_place at level[T: Compute, O: UnaryOp<T::Wide>](y: &mut [T]) {
        let near = if O::HAS_NEAR { NEIGHBOURS } else { y.len().max(1) };
        for y in y.chunks_mut(near) {
            if O::HAS_NEAR && O::are_near(y) {
                y.iter_mut().for_each(|y| *y = O::near::<I, T>(*y));
            } else {
                y.iter_mut().for_each(|y| *y = O::on::<I, T>(*y));
            }
        }
    }
}

vectorised! {
    /// `z[i] = O(x[i], y[i])`.
    pub fn zip[T: Compute, O: BinaryOp<T::Wide>](x: &[T], y: &[T], z: &mut [T]) {
        for ((z, &x), &y) in z.iter_mut().zip(x).zip(y) {
            *z = two::<I, T, O>(x, y);
        }
    }
}

vectorised! {
    /// `z[i] = O(z[i], y[i])`.
    pub fn zip_in_place[T: Compute, O: BinaryOp<T::Wide>](z: &mut [T], y: &[T]) {
        for (z, &y) in z.iter_mut().zip(y) {
            *z = two::<I, T, O>(*z, y);
        }
    }
}

/// The number of elements of short rows that are written next to each other, so that loops over
/// them are long, where there are many rows.
const REPEATED: usize = 256;

/// Whether a row is short, and repeated many times in `len` elements.
#[inline(always)]
fn is_repeated(row: usize, len: usize) -> bool {
    row <= REPEATED / 8 && len >= 4 * REPEATED
}

/// A short row as often as there is room for it.
#[inline(always)]
fn repeated<'a, T: Copy>(row: &[T], room: &'a mut [T; REPEATED]) -> &'a [T] {
    let len = REPEATED / row.len() * row.len();
    for to in room[..len].chunks_exact_mut(row.len()) {
        to.copy_from_slice(row);
    }
    &room[..len]
}

#[inline(always)]
fn over_rows<I: Isa, T: Compute, O: BinaryOp<T::Wide>>(x: &[T], row: &[T], z: &mut [T]) {
    for (z, x) in z.chunks_mut(row.len()).zip(x.chunks(row.len())) {
        for ((z, &x), &y) in z.iter_mut().zip(x).zip(row) {
            *z = two::<I, T, O>(x, y);
        }
    }
}

#[inline(always)]
fn over_rows_in_place<I: Isa, T: Compute, O: BinaryOp<T::Wide>>(z: &mut [T], row: &[T]) {
    for z in z.chunks_mut(row.len()) {
        for (z, &y) in z.iter_mut().zip(row) {
            *z = two::<I, T, O>(*z, y);
        }
    }
}

vectorised! {
    /// `z[r, i] = O(x[r, i], row[i])`, where `row` is repeated for each row of `x`.
    pub fn rows[T: Compute, O: BinaryOp<T::Wide>](x: &[T], row: &[T], z: &mut [T]) {
        if let &[value] = row {
            for (z, &x) in z.iter_mut().zip(x) {
                *z = two::<I, T, O>(x, value);
            }
            return;
        }
        if is_repeated(row.len(), z.len()) {
            return over_rows::<I, T, O>(x, repeated(row, &mut [T::ZERO; REPEATED]), z);
        }
        over_rows::<I, T, O>(x, row, z);
    }
}

vectorised! {
    /// `z[r, i] = O(z[r, i], row[i])`.
    pub fn rows_in_place[T: Compute, O: BinaryOp<T::Wide>](z: &mut [T], row: &[T]) {
        if let &[value] = row {
            for z in z.iter_mut() {
                *z = two::<I, T, O>(*z, value);
            }
            return;
        }
        if is_repeated(row.len(), z.len()) {
            return over_rows_in_place::<I, T, O>(z, repeated(row, &mut [T::ZERO; REPEATED]));
        }
        over_rows_in_place::<I, T, O>(z, row);
    }
}

/// The kernel of an op on one tensor. Like all kernels of small tensors it is inlined into the
/// entry that the host calls: a further call would cost as much as a few elements.
#[inline(always)]
pub fn unary<T: Compute, O: UnaryOp<T::Wide>>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    unary_at::<T, O>(c, crate::arch::level)
}

/// [`unary`] with the instructions of a level.
#[inline(always)]
pub fn unary_at<T: Compute, O: UnaryOp<T::Wide>>(
    c: &ComputeContext<'_>,
    level: impl Fn() -> Level,
) -> Result<(), KernelError> {
    if let Some(([x], y)) = c.elementwise::<T, 1>() {
        if y.len() <= FEW && !O::BY_ISA {
            y.iter_mut().zip(x).for_each(|(y, &x)| *y = O::on::<Baseline, T>(x));
            return Ok(());
        }
        if O::is_identity::<T>() {
            y.copy_from_slice(x);
            return Ok(());
        }
        if !is_worth_asking(y.len(), O::COST_NS) {
            map::<T, O>(level(), x, y);
            return Ok(());
        }
        return separate_unary::<T, O>(c, level(), x, y);
    }
    unplanned_unary::<T, O>(c, level())
}

#[cold]
#[inline(never)]
fn separate_unary<T: Compute, O: UnaryOp<T::Wide>>(
    c: &ComputeContext<'_>,
    level: Level,
    x: &[T],
    y: &mut [T],
) -> Result<(), KernelError> {
    let (y, stores) = (Parts::new(y), stores_of::<T>(x.len(), O::COST_NS));
    for_elements(c, x.len(), O::COST_NS, |range| {
        let x = &x[range.clone()];
        // SAFETY: ranges of one `for_elements` are disjoint.
        store(unsafe { y.part(range) }, stores, |at, y| {
            map::<T, O>(level, &x[at..at + y.len()], y);
        });
    })
}

/// The output has no buffer yet: a small one gets a new one, a large one may take over the input's.
#[inline(never)]
fn unplanned_unary<T: Compute, O: UnaryOp<T::Wide>>(
    c: &ComputeContext<'_>,
    level: Level,
) -> Result<(), KernelError> {
    let dims = c.dims(0);
    if c.slot(0)?.bytes as usize <= SMALL_BYTES {
        let x = c.input::<T>(0)?.data;
        map::<T, O>(level, x, c.output::<T>(0, dims)?.data);
        return Ok(());
    }
    match c.in_place::<T>(0, 0, dims)? {
        InOut::InPlace(y) => {
            let len = y.len();
            let y = Parts::new(y);
            for_elements(c, len, O::COST_NS, |range| {
                // SAFETY: ranges of one `for_elements` are disjoint.
                map_in_place::<T, O>(level, unsafe { y.part(range) });
            })
        }
        InOut::Separate(x, y) => separate_unary::<T, O>(c, level, x, y),
    }
}

/// The kernel of an op on two tensors, with broadcasting.
#[inline(always)]
pub fn binary<T: Compute, O: BinaryOp<T::Wide>>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    if let Some(([x, y], z)) = c.elementwise::<T, 2>() {
        if z.len() <= FEW && !O::BY_ISA {
            for ((z, &x), &y) in z.iter_mut().zip(x).zip(y) {
                *z = two::<Baseline, T, O>(x, y);
            }
            return Ok(());
        }
        if !is_worth_asking(z.len(), O::COST_NS) {
            zip::<T, O>(x, y, z);
            return Ok(());
        }
        return row_by_row::<T, O>(c, x, y, z);
    }
    broadcast::<T, O>(c)
}

/// Handles shapes that differ, and outputs that have no buffer yet.
#[inline(never)]
fn broadcast<T: Compute, O: BinaryOp<T::Wide>>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (x_dims, y_dims) = (c.dims(0), c.dims(1));
    if x_dims.ends_with(y_dims) {
        return repeated_row::<T, O>(c);
    }
    if y_dims.ends_with(x_dims) {
        let (y, x) = (c.input::<T>(1)?, c.input::<T>(0)?);
        let z = c.output::<T>(0, y_dims)?;
        return row_by_row::<T, Swap<O>>(c, y.data, x.data, z.data);
    }
    let plan = BroadcastPlan::new([x_dims, y_dims])?;
    let (x, y) = (c.input::<T>(0)?, c.input::<T>(1)?);
    let z = c.output::<T>(0, plan.output_dims())?;
    by_runs::<T, O>(c, &plan, x.data, y.data, z.data)
}

/// The kernel of an op whose right operand has the size of the left one, or is repeated for each of
/// its rows.
pub fn repeated_row<T: Compute, O: BinaryOp<T::Wide>>(
    c: &ComputeContext<'_>,
) -> Result<(), KernelError> {
    let dims = c.dims(0);
    if c.slot(0)?.bytes as usize <= SMALL_BYTES {
        let (x, y) = (c.input::<T>(0)?, c.input::<T>(1)?);
        let z = c.output::<T>(0, dims)?;
        return row_by_row::<T, O>(c, x.data, y.data, z.data);
    }
    match c.in_place::<T>(0, 0, dims)? {
        InOut::Separate(x, z) => row_by_row::<T, O>(c, x, c.input::<T>(1)?.data, z),
        InOut::InPlace(z) => {
            let y = c.input::<T>(1)?.data;
            let len = z.len();
            let z = Parts::new(z);
            if y.len() == len {
                return for_elements(c, len, O::COST_NS, |range| {
                    // SAFETY: ranges of one split are disjoint.
                    zip_in_place::<T, O>(unsafe { z.part(range.clone()) }, &y[range]);
                });
            }
            split_rows(c, len, y.len(), O::COST_NS, |range| {
                // SAFETY: ranges of one split are disjoint.
                rows_in_place::<T, O>(unsafe { z.part(range) }, y);
            })
        }
    }
}

fn row_by_row<T: Compute, O: BinaryOp<T::Wide>>(
    c: &ComputeContext<'_>,
    x: &[T],
    row: &[T],
    z: &mut [T],
) -> Result<(), KernelError> {
    let (z, stores) = (Parts::new(z), stores_of::<T>(x.len(), O::COST_NS));
    if row.len() == x.len() {
        return for_elements(c, x.len(), O::COST_NS, |range| {
            let (x, y) = (&x[range.clone()], &row[range.clone()]);
            // SAFETY: ranges of one split are disjoint.
            store(unsafe { z.part(range) }, stores, |at, z| {
                zip::<T, O>(&x[at..at + z.len()], &y[at..at + z.len()], z);
            });
        });
    }
    split_rows(c, x.len(), row.len(), O::COST_NS, |range| {
        // SAFETY: ranges of one split are disjoint.
        rows::<T, O>(&x[range.clone()], row, unsafe { z.part(range) });
    })
}

/// Splits `len` elements at multiples of a row; anywhere for rows of one element.
fn split_rows(
    c: &ComputeContext<'_>,
    len: usize,
    row: usize,
    cost_ns: f64,
    body: impl Fn(std::ops::Range<usize>) + Sync,
) -> Result<(), KernelError> {
    match row {
        0 => Ok(()),
        1 => for_elements(c, len, cost_ns, body),
        _ => for_units(c, len / row, cost_ns * row as f64, |rows| {
            body(rows.start * row..rows.end * row);
        }),
    }
}

fn by_runs<T: Compute, O: BinaryOp<T::Wide>>(
    c: &ComputeContext<'_>,
    plan: &BroadcastPlan<2>,
    x: &[T],
    y: &[T],
    z: &mut [T],
) -> Result<(), KernelError> {
    let len = plan.run_len();
    if z.is_empty() {
        return Ok(());
    }
    let z = Parts::new(z);
    if plan.run_count() == 1 {
        // One side is a single element, and has more dimensions than the other.
        let z_len = plan.len();
        return for_elements(c, z_len, O::COST_NS, |range| {
            // SAFETY: ranges of one split are disjoint.
            let z = unsafe { z.part(range.clone()) };
            match (x.len() == z_len, y.len() == z_len) {
                (true, true) => zip::<T, O>(&x[range.clone()], &y[range], z),
                (true, false) => rows::<T, O>(&x[range], y, z),
                _ => rows::<T, Swap<O>>(&y[range], x, z),
            }
        });
    }
    for_units(c, plan.run_count(), O::COST_NS * len as f64 + 2.0, |range| {
        // SAFETY: ranges of one split are disjoint.
        let z = unsafe { z.part(range.start * len..range.end * len) };
        runs::<T, O>(plan, range.start, [x, y], z);
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::values;
    use tenon_reference::math_binary;

    struct Minus;
    impl<W: Compute> BinaryOp<W> for Minus {
        #[inline(always)]
        fn apply<I: Isa>(x: W, y: W) -> W {
            x.sub(y)
        }
    }

    #[test]
    fn rows_and_their_exchange_agree_with_the_plan() {
        for (rows, len) in [(4, 19), (300, 2), (5, 100)] {
            agree_with_the_plan(rows, len);
        }
    }

    fn agree_with_the_plan(count: usize, len: usize) {
        let (x, row) = (values::<f32>(count * len, 1), values::<f32>(len, 2));
        let plan = BroadcastPlan::new([&[count as i64, len as i64], &[len as i64]]).unwrap();
        let mut expected = vec![0.0; count * len];
        math_binary::sub(&plan, &x, &row, &mut expected);
        let mut found = vec![0.0; count * len];
        rows::<f32, Minus>(&x, &row, &mut found);
        assert_eq!(found, expected);
        found.copy_from_slice(&x);
        rows_in_place::<f32, Minus>(&mut found, &row);
        assert_eq!(found, expected);
        rows::<f32, Swap<Minus>>(&x, &row, &mut found);
        assert!(found.iter().zip(&expected).all(|(a, b)| *a == -b));
    }
}
