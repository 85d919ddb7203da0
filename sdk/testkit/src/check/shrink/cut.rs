//! Cutting elements out of a case, as they are.

use super::{Judge, descend, explicit, sizes, without_first_axis};
use crate::check::{CheckCase, Fill};
use tenon_framework::Tensor;

/// Elements of all inputs together up to which they are written out.
const MANY: i64 = 4096;
/// Rows of an axis up to which each is tried by itself.
const ROWS: i64 = 16;

/// Where a part of an axis begins, and how long it is.
pub(super) type Window = (i64, i64);

/// The case with fewer of its elements, which still fails; itself, where it has too many or they all matter.
pub(super) fn cut_out(case: CheckCase, judge: &mut dyn Judge) -> CheckCase {
    let count = |case: &CheckCase| -> i64 {
        case.inputs.iter().map(|input| input.dims.iter().product::<i64>()).sum()
    };
    let whole = (1..=MANY).contains(&count(&case)).then(|| explicit(&case)).flatten();
    let Some(whole) = whole.filter(|whole| judge.goes_on() && judge.fails(whole)) else {
        return case;
    };
    let smaller = descend(whole, judge, cuts);
    if count(&smaller) < count(&case) { smaller } else { case }
}

/// Cases with a part of the elements, the smallest first.
fn cuts(case: &CheckCase) -> Vec<CheckCase> {
    let mut all = Vec::new();
    for size in sizes(case) {
        for window in windows(size) {
            all.extend(cut(case, |_, _, dim| if dim == size { window } else { (0, dim) }));
        }
    }
    for (at, input) in case.inputs.iter().enumerate().filter(|(_, input)| !input.constant) {
        for (axis, &size) in input.dims.iter().enumerate() {
            for window in windows(size) {
                let here = |a, x, dim| if (a, x) == (at, axis) { window } else { (0, dim) };
                all.extend(cut(case, here));
            }
        }
    }
    all.extend(without_first_axis(case));
    all
}

/// Parts of an axis: single rows, halves, all but one.
fn windows(size: i64) -> Vec<Window> {
    if size < 2 {
        return Vec::new();
    }
    let rows = if size <= ROWS { (0..size).collect() } else { vec![0, size / 2, size - 1] };
    let mut all: Vec<Window> = rows.into_iter().map(|row| (row, 1)).collect();
    let half = size / 2;
    all.extend([(0, half), (half, size - half), (0, size - 1), (1, size - 1)]);
    all
}

/// The case with a window of each axis of its inputs, constants aside.
fn cut(case: &CheckCase, window_of: impl Fn(usize, usize, i64) -> Window) -> Option<CheckCase> {
    let mut smaller = case.clone();
    for (at, input) in smaller.inputs.iter_mut().enumerate().filter(|(_, input)| !input.constant) {
        let Fill::Explicit(value) = &input.fill else { return None };
        let axes = input.dims.iter().enumerate();
        let windows: Vec<Window> = axes.map(|(axis, &dim)| window_of(at, axis, dim)).collect();
        let part = window(value, &windows)?;
        input.dims = part.shape().dims().to_vec();
        input.fill = Fill::Explicit(part);
    }
    Some(smaller)
}

/// A window of a tensor; `None` where the elements have no fixed size.
pub(super) fn window(tensor: &Tensor, windows: &[Window]) -> Option<Tensor> {
    let size = tensor.dtype().size().filter(|_| !tensor.dtype().needs_drop())?;
    let (whole, bytes) = (tensor.shape().dims(), tensor.as_bytes().ok()?);
    let mut kept = Vec::new();
    for (at, element) in bytes.chunks_exact(size).enumerate() {
        let mut rest = at as i64;
        let inside = whole.iter().zip(windows).rev().all(|(whole, (begin, length))| {
            let index = rest % whole;
            rest /= whole;
            (*begin..begin + length).contains(&index)
        });
        if inside {
            kept.extend_from_slice(element);
        }
    }
    let dims: Vec<i64> = windows.iter().map(|&(_, length)| length).collect();
    Tensor::from_bytes(tensor.dtype(), &dims, &kept).ok()
}
