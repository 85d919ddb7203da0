//! Connectionist temporal classification: `loss` of labels, `greedy` and `beams` decode. `sequences` has what all read
//! and write: inputs of shape `[steps, sequences, classes]`, and sparse tensors of labels.
//!
//! Source: A. Graves and others, "Connectionist temporal classification: labelling unsegmented sequence data with
//! recurrent neural networks" (2006).

mod beams;
mod greedy;
mod loss;
mod sequences;
