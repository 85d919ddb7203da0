//! Sequences of scores, and sparse tensors of the labels that belong to them.

use tenon_sdk::{
    Code, KernelError, View, author::ComputeContext, element::Number, geometry::GeometryError,
    growth,
};

/// Scores of shape `[steps, sequences, classes]`, with the number of steps of each sequence.
pub struct Sequences<'a, T> {
    data: &'a [T],
    lengths: &'a [i32],
    /// Sequences, and classes.
    pub count: usize,
    pub classes: usize,
    /// Steps of the longest possible sequence.
    pub steps: usize,
}

impl<'a, T: Number> Sequences<'a, T> {
    /// Reads the scores in input 0, and the lengths in this input.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for inputs of other ranks; `unfit`, which differs between TensorFlow's ops, where the
    /// lengths do not fit the scores.
    pub fn new(
        c: &ComputeContext<'a>,
        lengths: usize,
        unfit: Code,
    ) -> Result<Sequences<'a, T>, KernelError> {
        let View { data, dims, .. } = c.input::<T>(0)?;
        let &[steps, count, classes] = dims else {
            let (what, expected, found) = ("inputs", 3, dims.len());
            return Err(GeometryError::Rank { what, expected, found }.into());
        };
        let lengths = c.input::<i32>(lengths)?;
        if lengths.dims.len() != 1 {
            let (what, expected, found) = ("sequence_length", 1, lengths.dims.len());
            return Err(GeometryError::Rank { what, expected, found }.into());
        }
        if lengths.dims != [count] {
            let text = format!(
                "sequence_length: expected {count} lengths, one for each sequence, found {}",
                lengths.dims[0]
            );
            return Err(KernelError::new(unfit, text));
        }
        let wrong = |&(_, &length): &(usize, &i32)| !(0..=steps).contains(&i64::from(length));
        if let Some((at, found)) = lengths.data.iter().enumerate().find(wrong) {
            let text = format!(
                "sequence_length: expected at most {steps}, the steps of inputs, and at least 0, \
                 found {found} for sequence {at}"
            );
            return Err(KernelError::new(unfit, text));
        }
        if classes == 0 {
            return Err(GeometryError::Zero { what: "the number of classes" }.into());
        }
        let [steps, count, classes] = [steps, count, classes].map(|size| size as usize);
        Ok(Sequences { data, lengths: lengths.data, count, classes, steps })
    }

    /// The number of steps of a sequence.
    pub fn length(&self, sequence: usize) -> usize {
        self.lengths[sequence] as usize
    }

    /// The scores of a step of a sequence.
    pub fn scores(&self, step: usize, sequence: usize) -> &'a [T] {
        &self.data[(step * self.count + sequence) * self.classes..][..self.classes]
    }
}

/// Writes labels as a sparse tensor of one row for each sequence, to outputs for its indices, values and shape.
///
/// # Errors
/// Those of the outputs.
pub fn write_labels(
    c: &ComputeContext<'_>,
    [indices, values, shape]: [usize; 3],
    labels: &[Vec<i64>],
) -> Result<(), KernelError> {
    let count = labels.iter().map(Vec::len).sum::<usize>() as i64;
    let places = c.output::<i64>(indices, &[count, 2])?.data;
    let mut places = places.chunks_exact_mut(2);
    for (row, labels) in labels.iter().enumerate() {
        for (place, column) in places.by_ref().take(labels.len()).zip(0..) {
            place.copy_from_slice(&[row as i64, column]);
        }
    }
    let all = c.output::<i64>(values, &[count])?.data;
    let mut rest = all;
    for labels in labels {
        let (part, after) = rest.split_at_mut(labels.len());
        part.copy_from_slice(labels);
        rest = after;
    }
    let longest = labels.iter().map(Vec::len).max().unwrap_or(0);
    let shape = c.output::<i64>(shape, &[2])?.data;
    shape.copy_from_slice(&[labels.len() as i64, longest as i64]);
    Ok(())
}

/// No labels yet, for each sequence.
///
/// # Errors
/// No memory.
pub fn without_labels(count: usize) -> Result<Vec<Vec<i64>>, KernelError> {
    growth::filled(count, Vec::new())
}
