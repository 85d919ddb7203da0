//! Reading a strided box of elements in order.

use super::Word;
use tenon_sdk::{
    KernelError,
    geometry::{Dims, Offsets},
};

/// Writes to `y` the elements of a box with these extents and strides, from element `base` on.
pub fn gather<W: Word>(
    extents: &[i64],
    strides: &[i64],
    base: i64,
    x: &[W],
    y: &mut [W],
) -> Result<(), KernelError> {
    let (Some((&last, outer)), Some((&step, outer_strides))) =
        (extents.split_last(), strides.split_last())
    else {
        y.copy_from_slice(&x[base as usize..][..1]);
        return Ok(());
    };
    if y.is_empty() {
        return Ok(());
    }
    let offsets = Offsets::new(&Dims::from_slice(outer)?, &Dims::from_slice(outer_strides)?, base);
    let len = last as usize;
    for (y, first) in y.chunks_exact_mut(len).zip(offsets) {
        match step {
            1 if len > 8 => y.copy_from_slice(&x[first..first + len]),
            _ => {
                let mut at = first as i64;
                for y in y {
                    *y = x[at as usize];
                    at += step;
                }
            }
        }
    }
    Ok(())
}
