//! `Transpose`, `ConcatV2`, `Pack`, `StridedSlice`, `Pad`, `Fill`: they copy elements and look at none, so one
//! instance per element size (`u8` to `u128`), or one for strings, serves every dtype.

use tenon_framework::View;
use tenon_geometry::{ConcatPlan, Offsets, PadPlan, StridedSlice, TransposePlan};

/// Copies the elements at these offsets.
fn gather<T: Clone>(offsets: Offsets, x: &[T], y: &mut [T]) {
    debug_assert_eq!(offsets.len(), y.len());
    for (offset, y) in offsets.zip(y) {
        y.clone_from(&x[offset]);
    }
}

/// Output dimension `i` is input dimension `perm[i]`.
pub fn transpose<T: Clone>(plan: &TransposePlan, x: &[T], y: &mut [T]) {
    gather(plan.offsets(), x, y);
}

/// The elements of a strided slice of `x`, whose dimensions are those the slice was made for.
pub fn strided_slice<T: Clone>(slice: &StridedSlice, x: View<'_, T>, y: &mut [T]) {
    gather(slice.offsets(x.dims), x.data, y);
}

/// `ConcatV2` and `Pack`: pieces of every input in turn.
pub fn concat<T: Clone>(plan: &ConcatPlan, inputs: &[View<'_, T>], output: &mut [T]) {
    let mut rest = output;
    for o in 0..plan.outer {
        for input in inputs {
            let len = plan.piece(input.dims);
            let (piece, behind) = rest.split_at_mut(len);
            piece.clone_from_slice(&input.data[o * len..][..len]);
            rest = behind;
        }
    }
}

/// `x` inside a frame of `value` (`Pad`: 0, or the empty string).
pub fn pad<T: Clone>(plan: &PadPlan, value: &T, x: &[T], y: &mut [T]) {
    fill(value, y);
    let len = plan.row_len();
    for (i, start) in plan.rows().enumerate() {
        y[start..][..len].clone_from_slice(&x[i * len..][..len]);
    }
}

/// Every element is `value`.
pub fn fill<T: Clone>(value: &T, y: &mut [T]) {
    y.fill(value.clone());
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_geometry::{SliceMasks, StridedSliceSpec};

    #[test]
    fn transposes() {
        let plan = TransposePlan::new(&[2, 3], &[1, 0]).unwrap();
        let mut y = [0u8; 6];
        transpose(&plan, &[1, 2, 3, 4, 5, 6], &mut y);
        assert_eq!(y, [1, 4, 2, 5, 3, 6]);
        // np.arange(8).reshape(2, 2, 2).transpose(2, 0, 1)
        let plan = TransposePlan::new(&[2, 2, 2], &[2, 0, 1]).unwrap();
        let mut y = [0u16; 8];
        transpose(&plan, &[0, 1, 2, 3, 4, 5, 6, 7], &mut y);
        assert_eq!(y, [0, 2, 4, 6, 1, 3, 5, 7]);
    }

    #[test]
    fn joins() {
        let (a, b) = ([1u32, 2], [3u32, 4, 5, 6]);
        let inputs = [View::new(&[2, 1], &a), View::new(&[2, 2], &b)];
        let plan = ConcatPlan::concat(&[&[2, 1], &[2, 2]], 1).unwrap();
        let mut y = [0; 6];
        concat(&plan, &inputs, &mut y);
        assert_eq!(y, [1, 3, 4, 2, 5, 6]);
        let (a, b) = (["a", "b"].map(String::from), ["c", "d"].map(String::from));
        let plan = ConcatPlan::pack(&[&[2], &[2]], 1).unwrap();
        let mut y = vec![String::new(); 4];
        concat(&plan, &[View::new(&[2], &a), View::new(&[2], &b)], &mut y);
        assert_eq!(y, ["a", "c", "b", "d"]);
    }

    #[test]
    fn slices() {
        let x: Vec<u64> = (0..6).collect();
        let masks = SliceMasks { end: 0b10, shrink_axis: 0b1, ..SliceMasks::default() };
        let spec = StridedSliceSpec {
            begin: Some(&[1, -1]),
            end: Some(&[2, 0]),
            strides: &[1, -2],
            masks,
        };
        let slice = StridedSlice::new(&[2, 3], &spec).unwrap();
        let mut y = [0; 2];
        strided_slice(&slice, View::new(&[2, 3], &x), &mut y);
        assert_eq!(y, [5, 3]);
    }

    #[test]
    fn pads_and_fills() {
        let plan = PadPlan::new(&[2, 2], &[1, 0, 0, 1]).unwrap();
        let mut y = [9u128; 9];
        pad(&plan, &0, &[1, 2, 3, 4], &mut y);
        assert_eq!(y, [0, 0, 0, 1, 2, 0, 3, 4, 0]);
        let plan = PadPlan::new(&[], &[]).unwrap();
        let mut y = [9u8];
        pad(&plan, &0, &[7], &mut y);
        assert_eq!(y, [7]);
        let mut y = [0u8; 3];
        fill(&4, &mut y);
        assert_eq!(y, [4; 3]);
    }
}
