//! Classes drawn for training with a part of all classes, and the two ops of an old model of words.
//!
//! The kernels are plugins/train/src/{sampling,words}.

use crate::shape::{input_of_rank, same_size};
use tenon_author::{ShapeContext, ShapeResult, register_op};

/// Registers a sampler with these attributes between those that all of them have.
macro_rules! samplers {
    ($($name:literal: [$($attr:literal),*], $summary:literal;)*) => {$(
        register_op!(
            $name,
            inputs = &["true_classes: int64"],
            outputs = &[
                "sampled_candidates: int64",
                "true_expected_count: float",
                "sampled_expected_count: float",
            ],
            attrs = &[
                "num_true: int >= 1",
                "num_sampled: int >= 1",
                "unique: bool",
                $($attr,)*
                "seed: int = 0",
                "seed2: int = 0",
            ],
            stateful = true,
            shape = sampled,
            summary = $summary,
        );
    )*};
}

samplers! {
    "UniformCandidateSampler": ["range_max: int >= 1"],
        "Classes drawn uniformly, with how often they and the true classes are expected.";
    "LogUniformCandidateSampler": ["range_max: int >= 1"],
        "Classes drawn by Zipf's law, with how often they and the true classes are expected.";
    "LearnedUnigramCandidateSampler": ["range_max: int >= 1"],
        "Classes drawn by how often they were true so far, with how often they and the true classes are expected.";
    "ThreadUnsafeUnigramCandidateSampler": ["range_max: int >= 1"],
        "As LearnedUnigramCandidateSampler.";
    "FixedUnigramCandidateSampler": [
        "range_max: int >= 1",
        "vocab_file: string = ''",
        "distortion: float = 1",
        "num_reserved_ids: int = 0",
        "num_shards: int >= 1 = 1",
        "shard: int >= 0 = 0",
        "unigrams: list(float) = []"
    ], "Classes drawn by given weights, with how often they and the true classes are expected.";
    "AllCandidateSampler": [],
        "All classes, each of which is expected once.";
}

fn sampled(c: &ShapeContext<'_>) -> ShapeResult {
    let classes = input_of_rank(c, 0, "true_classes", 2)?;
    let number = c.make_dim(Some(c.attr("num_true")?));
    same_size(c, "columns of true_classes", number, c.dim(classes, 1))?;
    let drawn = c.make_dim(Some(c.attr("num_sampled")?));
    c.set_output(0, c.make_shape(&[drawn]))?;
    c.set_output(1, c.make_shape(&[c.dim(classes, 0), number]))?;
    c.set_output(2, c.make_shape(&[drawn]))
}

register_op!(
    "Skipgram",
    inputs = &[],
    outputs = &[
        "vocab_word: string",
        "vocab_freq: int32",
        "words_per_epoch: int64",
        "current_epoch: int32",
        "total_words_processed: int64",
        "examples: int32",
        "labels: int32",
    ],
    attrs = &[
        "filename: string",
        "batch_size: int",
        "window_size: int = 5",
        "min_count: int = 5",
        "subsample: float = 0.001",
    ],
    stateful = true,
    shape = skipgram,
    summary = "Pairs of words that are near each other in a text, as numbers in its vocabulary.",
);

fn skipgram(c: &ShapeContext<'_>) -> ShapeResult {
    let words = c.make_shape(&[c.make_dim(None)]);
    (0..2).try_for_each(|at| c.set_output(at, words))?;
    (2..5).try_for_each(|at| c.set_output(at, c.make_shape(&[])))?;
    let batch = c.make_shape(&[c.make_dim(Some(c.attr("batch_size")?))]);
    (5..7).try_for_each(|at| c.set_output(at, batch))
}

register_op!(
    "NegTrain",
    inputs = &[
        "w_in: Ref(float)",
        "w_out: Ref(float)",
        "examples: int32",
        "labels: int32",
        "lr: float",
    ],
    outputs = &[],
    attrs = &["vocab_count: list(int)", "num_negative_samples: int"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| {
        input_of_rank(c, 0, "w_in", 2)?;
        input_of_rank(c, 1, "w_out", 2)?;
        input_of_rank(c, 2, "examples", 1)?;
        input_of_rank(c, 3, "labels", 1)?;
        input_of_rank(c, 4, "lr", 0).map(drop)
    },
    summary = "Updates two matrices of vectors of words: of an example, of its label, and of words drawn by their counts.",
);

#[cfg(test)]
mod tests {
    use crate::testing::check;
    use tenon_framework::attr::AttrValue;

    #[test]
    fn expected_counts_are_shaped_as_the_classes() {
        check(
            "UniformCandidateSampler",
            &[
                ("num_true", AttrValue::Int(2)),
                ("num_sampled", AttrValue::Int(5)),
                ("unique", AttrValue::Bool(false)),
                ("range_max", AttrValue::Int(9)),
            ],
            &[
                (&["[3,2]"], "[5]; [3,2]; [5]"),
                (&["?"], "[5]; [?,2]; [5]"),
                (&["[3,4]"], "! columns of true_classes must be 2, got 4"),
            ],
        );
    }

    #[test]
    fn a_batch_of_pairs_has_the_size_of_the_attribute() {
        check(
            "Skipgram",
            &[("filename", AttrValue::String(b"f".to_vec())), ("batch_size", AttrValue::Int(4))],
            &[(&[], "[?]; [?]; []; []; []; [4]; [4]")],
        );
    }
}
