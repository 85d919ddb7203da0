//! Connectionist temporal classification: the loss of labels that are not aligned with the steps of the inputs, and
//! decoders. The kernels are plugins/cpu/src/kernels/speech.

use crate::shape::{input_of_rank, same_size};
use tenon_author::{Dim, ShapeContext, ShapeResult, register_op};
use tenon_framework::{KernelError, op::GradientRule};

register_op!(
    "CTCLoss",
    inputs =
        &["inputs: T", "labels_indices: int64", "labels_values: int32", "sequence_length: int32"],
    outputs = &["loss: T", "gradient: T"],
    attrs = &[
        "preprocess_collapse_repeated: bool = false",
        "ctc_merge_repeated: bool = true",
        "ignore_longer_outputs_than_inputs: bool = false",
        "T: {float, double} = DT_FLOAT"
    ],
    cases = &[
        "two; inputs: [4, 2, 5]; labels_indices: [3, 2] values(0, 0, 0, 1, 1, 0); labels_values: [3] values(0, 1, 2); sequence_length: [2] values(4, 3)"
    ],
    shape = loss,
    summary = "The negative logarithm of the probability of labels under connectionist temporal classification, and its gradient by the inputs; the last class is the blank.",
);

register_op!(
    "CTCLossV2",
    inputs = &[
        "inputs: float",
        "labels_indices: int64",
        "labels_values: int32",
        "sequence_length: int32"
    ],
    outputs = &["loss: float", "gradient: float"],
    attrs = &[
        "preprocess_collapse_repeated: bool = false",
        "ctc_merge_repeated: bool = true",
        "ignore_longer_outputs_than_inputs: bool = false"
    ],
    cases = &[
        "two; inputs: [4, 2, 5]; labels_indices: [3, 2] values(0, 0, 0, 1, 1, 0); labels_values: [3] values(1, 4, 2); sequence_length: [2] values(4, 3)"
    ],
    shape = loss,
    summary = "As CTCLoss, with class 0 as the blank.",
);

register_op!(
    "CTCGreedyDecoder",
    inputs = &["inputs: T", "sequence_length: int32"],
    outputs = &[
        "decoded_indices: int64",
        "decoded_values: int64",
        "decoded_shape: int64",
        "log_probability: T"
    ],
    attrs =
        &["merge_repeated: bool = false", "blank_index: int = -1", "T: {float, double} = DT_FLOAT"],
    cases = &["two; inputs: [4, 2, 5]; sequence_length: [2] values(4, 3)"],
    gradient = GradientRule::None,
    shape = greedy,
    summary = "The labels of the most probable class of each step, without blanks.",
);

register_op!(
    "CTCBeamSearchDecoder",
    inputs = &["inputs: T", "sequence_length: int32"],
    outputs = &[
        "decoded_indices: top_paths * int64",
        "decoded_values: top_paths * int64",
        "decoded_shape: top_paths * int64",
        "log_probability: T"
    ],
    attrs = &[
        "beam_width: int >= 1",
        "top_paths: int >= 1",
        "merge_repeated: bool = true",
        "T: {float, double} = DT_FLOAT"
    ],
    gradient = GradientRule::None,
    cases = &[
        "two; beam_width = 3; top_paths = 2; inputs: [4, 2, 5]; sequence_length: [2] values(4, 3)"
    ],
    shape = beams,
    summary = "The most probable sequences of labels, found by a search among the best prefixes.",
);

/// The number of sequences, from the inputs and from their lengths.
fn sequences(c: &ShapeContext<'_>, lengths: usize) -> Result<Dim, KernelError> {
    let inputs = input_of_rank(c, 0, "inputs", 3)?;
    let lengths = input_of_rank(c, lengths, "sequence_length", 1)?;
    same_size(c, "the length of sequence_length", c.dim(inputs, 1), c.dim(lengths, 0))
}

fn loss(c: &ShapeContext<'_>) -> ShapeResult {
    let indices = input_of_rank(c, 1, "labels_indices", 2)?;
    let values = input_of_rank(c, 2, "labels_values", 1)?;
    same_size(c, "the number of labels", c.dim(indices, 0), c.dim(values, 0))?;
    let batch = sequences(c, 3)?;
    let inputs = c.with_rank(c.input(0), 3)?;
    let [steps, classes] = [c.dim(inputs, 0), c.dim(inputs, 2)];
    c.set_output(0, c.make_shape(&[batch]))?;
    c.set_output(1, c.make_shape(&[steps, batch, classes]))
}

/// Sparse tensors of labels from output `first` on, one for each of `paths`.
fn labels(c: &ShapeContext<'_>, paths: usize) -> ShapeResult {
    for at in 0..paths {
        let count = c.make_dim(None);
        c.set_output(at, c.make_shape(&[count, c.make_dim(Some(2))]))?;
        c.set_output(paths + at, c.make_shape(&[count]))?;
        c.set_output(2 * paths + at, c.shape_of(&[2]))?;
    }
    Ok(())
}

fn greedy(c: &ShapeContext<'_>) -> ShapeResult {
    let batch = sequences(c, 1)?;
    labels(c, 1)?;
    c.set_output(3, c.make_shape(&[batch, c.make_dim(Some(1))]))
}

fn beams(c: &ShapeContext<'_>) -> ShapeResult {
    let batch = sequences(c, 1)?;
    let paths = c.attr::<i64>("top_paths")?;
    labels(c, paths as usize)?;
    c.set_output(3 * paths as usize, c.make_shape(&[batch, c.make_dim(Some(paths))]))
}

#[cfg(test)]
mod tests {
    use crate::testing::{check, infer};

    #[test]
    fn there_is_a_loss_for_each_sequence() {
        check("CTCLoss", &[], &[(&["[t,n,c]", "[l,2]", "[l]", "[n]"], "[n]; [t,n,c]")]);
        let found = infer("CTCLoss", &[], &["[t,3,c]", "[l,2]", "[l]", "[2]"]);
        assert!(found.starts_with("! the length of sequence_length must be 3, got 2"), "{found}");
        check("CTCGreedyDecoder", &[], &[(&["[t,n,c]", "[n]"], "[?,2]; [?]; [2]; [n,1]")]);
    }
}
