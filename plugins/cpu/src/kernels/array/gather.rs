//! Reads a strided box of elements in order.

use super::copy;
use tenon_sdk::{
    KernelError,
    geometry::{Dims, GeometryError, Offsets, row_major_strides},
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
    let across = (0..last).rev().find(|&d| strides[d] == 1 && extents[d] >= LEAST);
    if let Some(across) = across.filter(|_| step != 1 && len >= LEAST as usize) {
        return turned(&extents[..=last], &strides[..=last], across, (x, base), y);
    }
    let outer = [&extents[..last], &strides[..last]].map(Dims::from_slice);
    let [extents, strides] = outer;
    let offsets = Offsets::new(&extents?, &strides?, base);
    for (y, first) in y.chunks_exact_mut(len).zip(offsets) {
        run(x, first as i64, step, y);
    }
    Ok(())
}

/// The least number of elements of both dimensions that are copied in squares.
const LEAST: i64 = 4;
/// The number of elements of a side of a square.
const SIDE: usize = 16;

/// Writes a box whose last dimension has steps in `x`, while those of dimension `across` are
/// neighbours: in squares of both, so that a cache line that is read or written is used as a whole.
fn turned<W: Copy>(
    extents: &[i64],
    strides: &[i64],
    across: usize,
    (x, base): (&[W], i64),
    y: &mut [W],
) -> Result<(), KernelError> {
    let last = extents.len() - 1;
    let (len, step, width) = (extents[last] as usize, strides[last], extents[across] as usize);
    let below = extents[across + 1..].iter().product::<i64>() as usize;
    // The other dimensions, in the order of `y`.
    let others = |of: &[i64]| {
        let mut others = Dims::EMPTY;
        (0..last).filter(|&d| d != across).try_for_each(|d| others.push(of[d]))?;
        Ok::<_, GeometryError>(others)
    };
    let in_y = row_major_strides(&Dims::from_slice(extents)?)?;
    let (outer, from) = (others(extents)?, others(strides)?);
    let to = others(&in_y)?;
    let places = Offsets::new(&outer, &from, base).zip(Offsets::new(&outer, &to, 0));
    for (first, place) in places {
        for i in (0..width).step_by(SIDE) {
            for k in (0..len).step_by(SIDE) {
                for i in i..width.min(i + SIDE) {
                    let y = &mut y[place + i * below..][..len];
                    for k in k..len.min(k + SIDE) {
                        y[k] = x[((first + i) as i64 + k as i64 * step) as usize];
                    }
                }
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_read_in_order() {
        let x: Vec<u32> = (0..4000).collect();
        let cases: [(&[i64], &[i64]); 6] = [
            (&[10, 20, 20], &[1, 200, 10]),
            (&[20, 10, 20], &[10, 1, 200]),
            (&[20, 20, 10], &[10, 200, 1]),
            (&[5, 37, 1, 21], &[777, 1, 9, 37]),
            (&[3, 3], &[1, 3]),
            (&[19, 4], &[1, -19]),
        ];
        for (extents, strides) in cases {
            let base = if strides.contains(&-19) { 57 } else { 0 };
            let dims = |values| Dims::from_slice(values).unwrap();
            let offsets = Offsets::new(&dims(extents), &dims(strides), base);
            let expected: Vec<u32> = offsets.map(|at| x[at]).collect();
            let mut found = vec![0; expected.len()];
            gather(extents, strides, base, &x, &mut found).unwrap();
            assert_eq!(found, expected, "{extents:?} {strides:?}");
        }
    }
}
