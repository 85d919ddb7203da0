//! `Pad`, with zeros (empty strings, false), and `PadV2`, with a value.

use super::{SLICED, Word, by_size, copy, element_size, set, words, words_mut};
use tenon_reference::array as reference;
use tenon_sdk::{
    DType, KernelError,
    abi::MAX_RANK,
    author::ComputeContext,
    geometry::{PadPlan, element_count, pad_dims},
    reg::Numerics,
    register_kernel,
};

fn compute<W: Word>(
    c: &ComputeContext<'_>,
    output: &[i64],
    paddings: &[i64],
) -> Result<(), KernelError> {
    let x = words::<W>(c.input_bytes(0)?)?;
    let value = match c.input_count() {
        3.. => words::<W>(c.input_bytes(2)?)?[0],
        _ => W::default(),
    };
    let y = words_mut::<W>(c.output_bytes(0, output)?)?;
    if x.is_empty() {
        y.fill(value);
        return Ok(());
    }
    surround(&Frames::new(c.dims(0), paddings)?, value, x, y);
    Ok(())
}

/// The frames around the boxes of each padded dimension, from the outside in. Dimensions after the
/// last padded one are merged with it: rows become longer.
struct Frames {
    /// For each padded dimension: number of boxes, and of elements before and after each.
    levels: [(usize, usize, usize); MAX_RANK],
    count: usize,
    /// Elements of an innermost row.
    row: usize,
}

impl Frames {
    /// The frames of a padding, whose output must not be too large.
    fn new(input: &[i64], paddings: &[i64]) -> Result<Frames, KernelError> {
        let is_padded = |d: usize| paddings[2 * d..2 * d + 2] != [0, 0];
        let count = (0..input.len()).rposition(is_padded).map_or(0, |last| last + 1);
        let mut frames = Frames { levels: [(0, 0, 0); MAX_RANK], count, row: 0 };
        // Number of elements per step of the dimension, outside and inside the frames.
        let mut element = element_count(&input[count..])?;
        frames.row = element;
        for d in (0..count).rev() {
            let [boxes, before, behind] =
                [input[d], paddings[2 * d], paddings[2 * d + 1]].map(|size| size as usize);
            frames.levels[d] = (boxes, before * element, behind * element);
            element *= boxes + before + behind;
        }
        if let Some(innermost) = count.checked_sub(1) {
            frames.row *= frames.levels[innermost].0;
            frames.levels[innermost].0 = 1;
        }
        Ok(frames)
    }
}

/// Writes `x`, and the value where the frames are, each element once.
fn surround<W: Word>(frames: &Frames, value: W, x: &[W], y: &mut [W]) {
    let levels = &frames.levels[..frames.count];
    let Some((&(_, before, behind), outer)) = levels.split_last() else {
        return y.copy_from_slice(x);
    };
    let mut rows = Rows { x, y, value, row: frames.row, before, behind };
    rows.level(outer);
    debug_assert!(rows.x.is_empty() && rows.y.is_empty());
}

/// The rest to copy, and its destination.
struct Rows<'a, W> {
    x: &'a [W],
    y: &'a mut [W],
    value: W,
    row: usize,
    before: usize,
    behind: usize,
}

impl<'a, W: Word> Rows<'a, W> {
    fn level(&mut self, outer: &[(usize, usize, usize)]) {
        match outer {
            [] => self.rows(1),
            &[(rows, before, behind)] => {
                set(self.value, self.next(before));
                self.rows(rows);
                set(self.value, self.next(behind));
            }
            &[(boxes, before, behind), ref inner @ ..] => {
                set(self.value, self.next(before));
                (0..boxes).for_each(|_| self.level(inner));
                set(self.value, self.next(behind));
            }
        }
    }

    fn rows(&mut self, count: usize) {
        let (before, row, value) = (self.before, self.row, self.value);
        let width = before + row + self.behind;
        let (x, behind) = self.x.split_at(count * row);
        self.x = behind;
        for (x, y) in x.chunks_exact(row).zip(self.next(count * width).chunks_exact_mut(width)) {
            set(value, &mut y[..before]);
            copy(x, &mut y[before..before + row]);
            set(value, &mut y[before + row..]);
        }
    }

    /// The next elements of the output.
    #[inline(always)]
    fn next(&mut self, count: usize) -> &'a mut [W] {
        let (next, rest) = std::mem::take(&mut self.y).split_at_mut(count);
        self.y = rest;
        next
    }
}

/// Paddings of a call: a pair for each dimension.
pub fn paddings(c: &ComputeContext<'_>) -> Result<Vec<i64>, KernelError> {
    let rank = c.dims(0).len();
    if c.dims(1) != [rank as i64, 2] {
        return Err(KernelError::invalid_argument(format!(
            "paddings must have shape [{rank}, 2] for an input of {rank} dimensions, found {:?}",
            c.dims(1)
        )));
    }
    c.integers(1)
}

fn pad(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let paddings = paddings(c)?;
    let output = pad_dims(c.dims(0), &paddings)?;
    if paddings.iter().all(|&pad| pad == 0) {
        return c.share(0, 0, &output);
    }
    if c.slot(0)?.dtype == DType::STRING {
        let (plan, x) = (PadPlan::new(c.dims(0), &paddings)?, c.strings(0)?);
        let value = if c.input_count() > 2 { c.strings(2)?[0] } else { b"" };
        return c.fill_strings(0, &output, |y| reference::pad(&plan, &value, &x, y));
    }
    by_size!(element_size(c, 0)?, compute(c, &output, &paddings))
}

/// `PadV2`.
fn pad_v2(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    if !c.dims(2).is_empty() {
        return Err(KernelError::invalid_argument(format!(
            "constant_values must be a scalar, found shape {:?}",
            c.dims(2)
        )));
    }
    pad(c)
}

register_kernel!("PadV2" on "CPU": fn pad_v2, types = ("T", SLICED), host_memory = &["paddings"],
    numerics = Numerics::EXACT);
register_kernel!("PadV2" on "CPU": fn pad_v2, types = ("T", &[DType::STRING]),
    host_memory = &["paddings"], numerics = Numerics::EXACT);
register_kernel!("Pad" on "CPU": fn pad, types = ("T", SLICED), host_memory = &["paddings"],
    numerics = Numerics::EXACT);
register_kernel!("Pad" on "CPU": fn pad, types = ("T", &[DType::STRING]),
    host_memory = &["paddings"], numerics = Numerics::EXACT);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_agree_with_the_reference() {
        let cases: [(&[i64], &[i64]); 6] = [
            (&[2, 3, 4, 5], &[0, 0, 1, 2, 3, 1, 0, 0]),
            (&[3, 4], &[2, 0, 0, 0]),
            (&[6], &[1, 1]),
            (&[2, 2, 2], &[0, 0, 0, 0, 1, 0]),
            (&[2, 3, 2, 3], &[1, 1, 0, 2, 2, 0, 1, 3]),
            (&[3, 1, 20], &[0, 0, 1, 1, 0, 0]),
        ];
        for (dims, paddings) in cases {
            let plan = PadPlan::new(dims, paddings).unwrap();
            let x: Vec<u32> = (1..=dims.iter().product::<i64>() as u32).collect();
            let len = plan.output_dims().iter().product::<i64>() as usize;
            let (mut expected, mut found) = (vec![9; len], vec![9; len]);
            reference::pad(&plan, &7, &x, &mut expected);
            surround(&Frames::new(dims, paddings).unwrap(), 7, &x, &mut found);
            assert_eq!(found, expected, "{dims:?}");
        }
    }
}
