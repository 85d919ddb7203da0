//! `StridedSlice`.

use super::{SLICED, Word, by_size, element_size, gather::gather, words, words_mut};
use tenon_reference::array as reference;
use tenon_sdk::{
    DType, KernelError, View,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::{SliceMasks, StridedSlice as Slice, StridedSliceSpec, row_major_strides},
    reg::Numerics,
    register_kernel,
};

/// `StridedSlice`.
pub struct StridedSlice {
    masks: SliceMasks,
}

impl StridedSlice {
    /// The slice of this call.
    pub fn solve(&self, c: &ComputeContext<'_>) -> Result<Slice, KernelError> {
        for (input, name) in [(1, "begin"), (2, "end"), (3, "strides")] {
            if c.dims(input).len() != 1 {
                return Err(KernelError::invalid_argument(format!(
                    "{name} must be a vector, found shape {:?}",
                    c.dims(input)
                )));
            }
        }
        let (begin, end, strides) = (c.integers(1)?, c.integers(2)?, c.integers(3)?);
        let spec = StridedSliceSpec {
            begin: Some(&begin),
            end: Some(&end),
            strides: &strides,
            masks: self.masks,
        };
        Ok(Slice::new(c.dims(0), &spec)?)
    }
}

/// The five mask attributes.
pub fn masks_of(c: &CreateContext<'_>) -> Result<SliceMasks, KernelError> {
    SliceMasks::of(|name| c.attr(name))
}

fn compute<W: Word>(c: &ComputeContext<'_>, slice: &Slice) -> Result<(), KernelError> {
    let x = words::<W>(c.input_bytes(0)?)?;
    let y = words_mut::<W>(c.output_bytes(0, &slice.output)?)?;
    if y.is_empty() {
        return Ok(());
    }
    let mut strides = row_major_strides(c.dims(0))?;
    let mut base = 0;
    for (i, stride) in strides.iter_mut().enumerate() {
        base += slice.begin[i] * *stride;
        *stride *= slice.strides[i];
    }
    if slice.is_dim0 {
        y.copy_from_slice(&x[base as usize..][..y.len()]);
        return Ok(());
    }
    gather(&slice.processing, &strides, base, x, y)
}

impl Kernel for StridedSlice {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(StridedSlice { masks: masks_of(c)? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let slice = self.solve(c)?;
        if slice.is_identity {
            return c.share(0, 0, &slice.output);
        }
        if c.slot(0)?.dtype == DType::STRING {
            let x = c.strings(0)?;
            let x = View { dims: c.dims(0), data: &x[..] };
            return c.fill_strings(0, &slice.output, |y| reference::strided_slice(&slice, x, y));
        }
        by_size!(element_size(c, 0)?, compute(c, &slice))
    }
}

register_kernel!("StridedSlice" on "CPU": StridedSlice, types = ("T", SLICED),
    host_memory = &["begin", "end", "strides"], numerics = Numerics::EXACT);
register_kernel!("StridedSlice" on "CPU": StridedSlice, types = ("T", &[DType::STRING]),
    host_memory = &["begin", "end", "strides"], numerics = Numerics::EXACT);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gathering_agrees_with_the_reference() {
        let dims = [5, 7, 9];
        let x: Vec<u8> = (0..=255).cycle().take(315).collect();
        for (begin, end, strides) in
            [([1, 2, 0], [4, 7, 9], [1, 2, 1]), ([4, 0, 8], [0, 7, 1], [-2, 3, -3])]
        {
            let masks = SliceMasks::default();
            let spec =
                StridedSliceSpec { begin: Some(&begin), end: Some(&end), strides: &strides, masks };
            let slice = Slice::new(&dims, &spec).unwrap();
            let len = slice.output.iter().product::<i64>() as usize;
            let (mut expected, mut found) = (vec![0; len], vec![0; len]);
            reference::strided_slice(&slice, View { dims: &dims, data: &x }, &mut expected);
            let steps: Vec<i64> = strides.iter().zip([63, 9, 1]).map(|(a, b)| a * b).collect();
            let base = begin[0] * 63 + begin[1] * 9 + begin[2];
            gather(&slice.processing, &steps, base, &x, &mut found).unwrap();
            assert_eq!(found, expected);
        }
    }
}
