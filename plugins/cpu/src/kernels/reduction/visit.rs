//! The loops of a reduction.
//!
//! Merged dimensions alternate between kept and reduced ones, so two cases remain. If the last one
//! is reduced, each output folds rows of neighbouring elements; if it is kept, rows of outputs fold
//! rows of inputs, element by element. Long sums are cut into blocks whose sums are added: rounding
//! errors do not accumulate, and the order does not depend on the number of threads.

use super::fold::Fold;
use crate::{
    arch::vectorised,
    side,
    split::{Parts, for_units},
};
use tenon_sdk::{
    KernelError,
    author::ComputeContext,
    geometry::{Dims, Offsets, ReducePlan},
};

/// The number of elements of a row that one unit of parallel work folds, if the row is all there
/// is.
const UNIT: usize = 1 << 16;
/// The most units of such a row; a longer one has longer units.
const UNITS: usize = 256;
/// The number of columns that are folded side by side.
const COLUMNS: usize = 256;
/// The number of rows that are folded before their states are merged.
const ROWS: usize = 128;
/// The most elements of a short row, many of which are folded side by side.
const SHORT: usize = 32;
/// The number of short rows side by side.
const SIDE: usize = 64;
/// Approximate nanoseconds of an element.
const COST_NS: f64 = 0.15;

vectorised! {
    /// Folds neighbouring elements.
    pub fn row[T: Copy, F: Fold<T>](x: &[T]) -> F::State {
        side::fold(x, F::START, F::take, F::merge)
    }
}

vectorised! {
    /// Folds neighbouring rows of `len` elements, at most [`SHORT`], each to an output.
    fn short_rows[T: Copy, F: Fold<T>](x: &[T], len: usize, count: usize, y: &mut [T]) {
        match len {
            1 => short_rows_of::<T, F, 1>(x, count, y),
            2 => short_rows_of::<T, F, 2>(x, count, y),
            3 => short_rows_of::<T, F, 3>(x, count, y),
            4 => short_rows_of::<T, F, 4>(x, count, y),
            _ => {
                for (x, y) in x.chunks(SIDE * len).zip(y.chunks_mut(SIDE)) {
                    let mut states = [F::START; SIDE];
                    for column in 0..len {
                        let elements = x[column..].iter().step_by(len);
                        for (state, &x) in states.iter_mut().zip(elements) {
                            *state = F::take(*state, x);
                        }
                    }
                    for (y, &state) in y.iter_mut().zip(&states) {
                        *y = F::finish(state, count);
                    }
                }
            }
        }
    }
}

/// As `short_rows`, for rows of `N` elements.
#[inline(always)]
fn short_rows_of<T: Copy, F: Fold<T>, const N: usize>(x: &[T], count: usize, y: &mut [T]) {
    for (y, x) in y.iter_mut().zip(x.as_chunks::<N>().0) {
        *y = F::finish(x.iter().fold(F::START, |state, &x| F::take(state, x)), count);
    }
}

vectorised! {
    /// Folds rows of `states.len()` elements, at most [`COLUMNS`], that begin at these offsets.
    fn columns[T: Copy, F: Fold<T>](x: &[T], offsets: Rows, states: &mut [F::State]) {
        let mut part = [F::START; COLUMNS];
        let part = &mut part[..states.len()];
        let mut offsets = offsets;
        let len = states.len();
        loop {
            part.fill(F::START);
            let mut taken = 0;
            while taken < ROWS {
                let Some(first) = offsets.next() else { break };
                taken += 1;
                let Some(second) = offsets.next() else {
                    for (state, &x) in part.iter_mut().zip(&x[first..first + len]) {
                        *state = F::take(*state, x);
                    }
                    break;
                };
                taken += 1;
                let rows = x[first..first + len].iter().zip(&x[second..second + len]);
                for (state, (&a, &b)) in part.iter_mut().zip(rows) {
                    *state = F::take(F::take(*state, a), b);
                }
            }
            if taken == 0 {
                return;
            }
            for (state, &part) in states.iter_mut().zip(&*part) {
                *state = F::merge(*state, part);
            }
        }
    }
}

/// The positions at which rows begin.
#[expect(clippy::large_enum_variant, reason = "it lives on the stack, for one loop")]
enum Rows {
    /// `count` rows from `first` on, `stride` apart.
    Even { first: usize, stride: usize, count: usize },
    /// Rows at any offsets from `base`.
    Any { base: usize, offsets: Offsets },
}

impl Iterator for Rows {
    type Item = usize;
    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        match self {
            Rows::Even { count: 0, .. } => None,
            Rows::Even { first, stride, count } => {
                let at = *first;
                *first = first.wrapping_add(*stride);
                *count -= 1;
                Some(at)
            }
            Rows::Any { base, offsets } => offsets.next().map(|offset| *base + offset),
        }
    }
}

/// The merged dimensions except the last, split into kept and reduced ones.
struct Outer {
    kept: [Dims; 2],
    reduced: [Dims; 2],
    last: usize,
    last_is_reduced: bool,
}

impl Outer {
    fn new(plan: &ReducePlan) -> Result<Outer, KernelError> {
        let extents = plan.extents();
        let mut outer = Outer {
            kept: [Dims::EMPTY; 2],
            reduced: [Dims::EMPTY; 2],
            last: extents.last().map_or(1, |&last| last as usize),
            last_is_reduced: !extents.is_empty() && plan.is_reduced(extents.len() - 1),
        };
        let mut stride = outer.last as i64;
        let mut lists = [(Dims::EMPTY, Dims::EMPTY), (Dims::EMPTY, Dims::EMPTY)];
        for i in (0..extents.len().saturating_sub(1)).rev() {
            let (sizes, strides) = &mut lists[usize::from(plan.is_reduced(i))];
            sizes.push(extents[i])?;
            strides.push(stride)?;
            stride *= extents[i];
        }
        for (list, into) in lists.iter_mut().zip([&mut outer.kept, &mut outer.reduced]) {
            list.0.reverse();
            list.1.reverse();
            *into = [list.0, list.1];
        }
        Ok(outer)
    }

    /// The length of the rows, if `count` elements are folded to an output, all of which are in one
    /// short row.
    fn short(&self, count: usize) -> Option<usize> {
        let is_row = self.last_is_reduced && self.reduced[0].is_empty() && self.last <= SHORT;
        if count == 1 { Some(1) } else { is_row.then_some(self.last) }
    }

    /// The rows that are folded into the output, or row of outputs, that begins at `base`.
    fn rows(&self, base: usize) -> Rows {
        let [extents, strides] = &self.reduced;
        match (&**extents, &**strides) {
            ([], _) => Rows::Even { first: base, stride: 0, count: 1 },
            (&[count], &[stride]) => {
                Rows::Even { first: base, stride: stride as usize, count: count as usize }
            }
            _ => Rows::Any { base, offsets: Offsets::new(extents, strides, 0) },
        }
    }

    /// The number of outputs, or rows of outputs.
    fn outputs(&self) -> usize {
        self.kept[0].iter().product::<i64>() as usize
    }

    /// The first element of the output, or row of outputs, of this number.
    fn base(&self, number: usize) -> usize {
        let [extents, strides] = &self.kept;
        let (Some((_, extents)), Some((&first, strides))) =
            (extents.split_first(), strides.split_first())
        else {
            return 0;
        };
        let (mut base, mut rest) = (0, number);
        for (&extent, &stride) in extents.iter().zip(strides).rev() {
            base += rest % extent as usize * stride as usize;
            rest /= extent as usize;
        }
        base + rest * first as usize
    }
}

/// Reduces `x` to `y` as planned.
pub fn reduce<T: Copy + Send + Sync, F: Fold<T>>(
    c: &ComputeContext<'_>,
    plan: &ReducePlan,
    x: &[T],
    y: &mut [T],
) -> Result<(), KernelError> {
    if x.is_empty() {
        y.fill(F::finish(F::START, plan.reduced_len()));
        return Ok(());
    }
    let outer = Outer::new(plan)?;
    let (count, per_output) = (plan.reduced_len(), COST_NS * plan.reduced_len() as f64);
    if let ([x_only], true, true) = (&mut *y, outer.last_is_reduced, outer.reduced[0].is_empty()) {
        *x_only = F::finish(whole::<T, F>(c, x)?, count);
        return Ok(());
    }
    if let Some(len) = outer.short(count) {
        let y = Parts::new(y);
        return for_units(c, x.len() / len, per_output + 0.5, |range| {
            let x = &x[range.start * len..range.end * len];
            // SAFETY: ranges of one split are disjoint.
            short_rows::<T, F>(x, len, count, unsafe { y.part(range) });
        });
    }
    let y = Parts::new(y);
    if outer.last_is_reduced {
        return for_units(c, outer.outputs(), per_output + 3.0, |range| {
            // SAFETY: ranges of one split are disjoint.
            let y = unsafe { y.part(range.clone()) };
            for (y, number) in y.iter_mut().zip(range) {
                let state = outer.rows(outer.base(number)).fold(F::START, |state, first| {
                    F::merge(state, row::<T, F>(&x[first..first + outer.last]))
                });
                *y = F::finish(state, count);
            }
        });
    }
    let blocks = outer.last.div_ceil(COLUMNS);
    let width = outer.last.min(COLUMNS) as f64;
    for_units(c, outer.outputs() * blocks, per_output * width, |range| {
        for unit in range {
            let (number, first) = (unit / blocks, unit % blocks * COLUMNS);
            let end = (first + COLUMNS).min(outer.last);
            let row = number * outer.last;
            // SAFETY: each unit has columns of its own.
            let y = unsafe { y.part(row + first..row + end) };
            fold_columns::<T, F>(x, outer.rows(outer.base(number) + first), count, y);
        }
    })
}

/// Folds all elements, cut at the same positions whatever the number of threads.
fn whole<T: Copy + Send + Sync, F: Fold<T>>(
    c: &ComputeContext<'_>,
    x: &[T],
) -> Result<F::State, KernelError> {
    if x.len() <= UNIT {
        return Ok(row::<T, F>(x));
    }
    let mut states = [F::START; UNITS];
    let len = UNIT.max(x.len().div_ceil(UNITS));
    let states = &mut states[..x.len().div_ceil(len)];
    let parts = Parts::new(&mut *states);
    for_units(c, x.len().div_ceil(len), COST_NS * len as f64, |range| {
        for unit in range {
            let end = ((unit + 1) * len).min(x.len());
            // SAFETY: each unit has a state of its own.
            unsafe { parts.part(unit..unit + 1)[0] = row::<T, F>(&x[unit * len..end]) };
        }
    })?;
    Ok(states.iter().copied().fold(F::START, F::merge))
}

/// Folds rows into at most [`COLUMNS`] outputs.
fn fold_columns<T: Copy, F: Fold<T>>(x: &[T], rows: Rows, count: usize, y: &mut [T]) {
    let mut states = [F::START; COLUMNS];
    let len = y.len();
    match rows {
        // Narrow rows side by side form wide ones, whose columns are folded together at the end.
        Rows::Even { first, stride, count: rows } if stride == len && len <= 32 && rows >= 8 => {
            let side = 64 / len;
            let wide = Rows::Even { first, stride: len * side, count: rows / side };
            columns::<T, F>(x, wide, &mut states[..len * side]);
            for i in len..len * side {
                states[i % len] = F::merge(states[i % len], states[i]);
            }
            let done = rows / side * side;
            let rest = Rows::Even { first: first + done * len, stride, count: rows - done };
            columns::<T, F>(x, rest, &mut states[..len]);
        }
        rows => columns::<T, F>(x, rows, &mut states[..len]),
    }
    for (y, &state) in y.iter_mut().zip(&states) {
        *y = F::finish(state, count);
    }
}

/// [`reduce`] on the caller's thread, for unit tests, which do not have a host.
#[cfg(test)]
pub fn reduce_alone<T: Copy + Send + Sync, F: Fold<T>>(plan: &ReducePlan, x: &[T], y: &mut [T]) {
    let outer = Outer::new(plan).unwrap();
    let count = plan.reduced_len();
    if x.is_empty() {
        return y.fill(F::finish(F::START, count));
    }
    if let Some(len) = outer.short(count) {
        return short_rows::<T, F>(x, len, count, y);
    }
    for at in 0..outer.outputs() {
        let base = outer.base(at);
        if outer.last_is_reduced {
            let state = outer.rows(base).fold(F::START, |state, first| {
                F::merge(state, row::<T, F>(&x[first..first + outer.last]))
            });
            y[at] = F::finish(state, count);
            continue;
        }
        for first in (0..outer.last).step_by(COLUMNS) {
            let end = (first + COLUMNS).min(outer.last);
            let y = &mut y[at * outer.last + first..at * outer.last + end];
            fold_columns::<T, F>(x, outer.rows(base + first), count, y);
        }
    }
}
