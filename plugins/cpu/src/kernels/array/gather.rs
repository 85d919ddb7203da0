//! Reads a strided box of elements in order.

use super::copy;
use tenon_sdk::{
    KernelError,
    geometry::{Dims, Offsets},
};

/// Writes to `y` the elements of a box with these extents and strides, from element `base` on.
pub fn gather<W: Copy>(
    extents: &[i64],
    strides: &[i64],
    base: i64,
    x: &[W],
    y: &mut [W],
) -> Result<(), KernelError> {
    if y.is_empty() {
        return Ok(());
    }
    // The last dimension with more than one element; the dimensions after it need no steps.
    let Some(last) = extents.iter().rposition(|&extent| extent != 1) else {
        y.copy_from_slice(&x[base as usize..][..1]);
        return Ok(());
    };
    let (len, step) = (extents[last] as usize, strides[last]);
    if last == 0 {
        run(x, base, step, y);
        return Ok(());
    }
    let outer = [&extents[..last], &strides[..last]].map(Dims::from_slice);
    let [extents, strides] = outer;
    let offsets = Offsets::new(&extents?, &strides?, base);
    for (y, first) in y.chunks_exact_mut(len).zip(offsets) {
        run(x, first as i64, step, y);
    }
    Ok(())
}

/// Copies elements that are a step apart.
#[inline(always)]
fn run<W: Copy>(x: &[W], first: i64, step: i64, y: &mut [W]) {
    if step == 1 {
        return copy(&x[first as usize..][..y.len()], y);
    }
    let mut at = first;
    for y in y {
        *y = x[at as usize];
        at += step;
    }
}
