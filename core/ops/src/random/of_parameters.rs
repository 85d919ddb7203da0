//! Random numbers of distributions whose parameters are inputs, choices that follow from seeds, and numbers that nothing
//! determines.

use super::{SEED, SEED2, SEEDS, gamma, multinomial, of_key, of_shape, stateless, two_seeds};
use crate::shape::{input_of_rank, same_size, unchanged};
use tenon_author::{ShapeContext, ShapeResult, register_op};
use tenon_framework::op::GradientRule;
use tenon_geometry::GeometryError;

register_op!(
    "RandomPoissonV2",
    inputs = &["shape: S", "rate: R"],
    outputs = &["output: dtype"],
    attrs = &[
        SEED,
        SEED2,
        "S: {int32, int64}",
        "R: {half, float, double, int32, int64} = DT_DOUBLE",
        "dtype: {half, float, double, int32, int64} = DT_INT64"
    ],
    stateful = true,
    cases = &["numbers; seed = 7; shape: [1] integers(0..9); rate: [k] uniform(1, 20)"],
    shape = gamma,
    summary = "Numbers of the Poisson distribution, a tensor of shape for each rate.",
);

register_op!(
    "StatelessRandomPoisson",
    inputs = &["shape: T", "seed: Tseed", "lam: Rtype"],
    outputs = &["output: dtype"],
    attrs = &[
        "Rtype: {half, float, double, int32, int64}",
        "dtype: {half, float, double, int32, int64}",
        "T: {int32, int64}",
        SEEDS
    ],
    cases = &[
        "numbers; dtype in {half, float, double, int32, int64}; shape: [2] values(5, 3); seed: [2]; lam: [3] uniform(1, 20)"
    ],
    shape = stateless,
    gradient = GradientRule::None,
    summary = "Numbers of the Poisson distribution that follow from the seed, for rates that repeat along the first dimensions of the shape.",
);

register_op!(
    "StatelessRandomBinomial",
    inputs = &["shape: S", "seed: Tseed", "counts: T", "probs: T"],
    outputs = &["output: dtype"],
    attrs = &[
        "S: {int32, int64}",
        SEEDS,
        "T: {half, float, double, int32, int64} = DT_DOUBLE",
        "dtype: {half, float, double, int32, int64} = DT_INT64"
    ],
    cases = &["numbers; T in {half, float, double}; shape: [2] values(5, 3); seed: [2]; \
         counts: [3] integers(0..40); probs: [] uniform(0, 1)",],
    shape = stateless,
    gradient = GradientRule::None,
    summary = "Numbers of successes among counts of trials that follow from the seed; counts and probabilities broadcast, and repeat along the first dimensions of the shape.",
);

register_op!(
    "StatelessRandomGammaV2",
    inputs = &["shape: T", "seed: Tseed", "alpha: dtype"],
    outputs = &["output: dtype"],
    attrs = &["dtype: {half, float, double}", "T: {int32, int64}", SEEDS],
    cases = &["numbers; shape: [2] values(5, 3); seed: [2]; alpha: [3] uniform(0.1, 9)"],
    shape = stateless,
    summary = "Numbers of the gamma distribution with scale 1 that follow from the seed, for alphas that repeat along the first dimensions of the shape.",
);

register_op!(
    "StatelessRandomGammaV3",
    inputs =
        &["shape: shape_dtype", "key: uint64", "counter: uint64", "alg: int32", "alpha: dtype"],
    outputs = &["output: dtype"],
    attrs = &["dtype: {half, float, double}", "shape_dtype: {int32, int64} = DT_INT32"],
    cases = &["numbers; shape: [2] values(5, 3); key: [1]; counter: [2]; alg: [] values(1); \
         alpha: [3] uniform(0.1, 9)",],
    shape = of_key,
    summary = "Numbers of the gamma distribution with scale 1 of the generator that key, counter and alg name, for alphas that repeat along the first dimensions of the shape.",
);

register_op!(
    "ParameterizedTruncatedNormal",
    inputs = &["shape: T", "means: dtype", "stdevs: dtype", "minvals: dtype", "maxvals: dtype"],
    outputs = &["output: dtype"],
    attrs = &[SEED, SEED2, "dtype: {half, bfloat16, float, double}", "T: {int32, int64}"],
    stateful = true,
    cases = &["numbers; seed = 7; shape: [2] values(3, 5); means: [3] uniform(-1, 1); \
         stdevs: [] uniform(1, 2); minvals: [1] values(-3); maxvals: [3] uniform(2, 4)",],
    shape = bounded,
    gradient = GradientRule::None,
    summary = "Normally distributed numbers between bounds, with parameters for each index of the first dimension.",
);

register_op!(
    "StatelessParameterizedTruncatedNormal",
    inputs = &[
        "shape: S",
        "seed: Tseed",
        "means: dtype",
        "stddevs: dtype",
        "minvals: dtype",
        "maxvals: dtype"
    ],
    outputs = &["output: dtype"],
    attrs = &["S: {int32, int64}", SEEDS, "dtype: {half, float, double}"],
    cases = &["numbers; shape: [2] values(5, 3); seed: [2]; means: [3] uniform(-1, 1); \
         stddevs: [] uniform(1, 2); minvals: [1] values(-3); maxvals: [3] uniform(2, 4)",],
    shape = stateless,
    summary = "Normally distributed numbers between bounds that follow from the seed; parameters broadcast, and repeat along the first dimensions of the shape.",
);

register_op!(
    "StatelessMultinomial",
    inputs = &["logits: T", "num_samples: int32", "seed: Tseed"],
    outputs = &["output: output_dtype"],
    attrs = &["T: realnumbertype", SEEDS, "output_dtype: {int32, int64} = DT_INT64"],
    cases = &[
        "rows; c in 1..9; logits: [r, c] uniform(-3, 3); num_samples: [] integers(0..7); seed: [2]",
    ],
    shape = stateless_multinomial,
    gradient = GradientRule::None,
    summary = "Classes that follow from the seed for each row, from the logarithms of unnormalised probabilities.",
);

register_op!(
    "StatelessShuffle",
    inputs = &["value: T", "key: uint64", "counter: uint64", "alg: int32"],
    outputs = &["output: T"],
    attrs = &["T: type"],
    cases = &["rows; value: [n, 3]; key: [1]; counter: [2]; alg: [] values(1)"],
    shape = shuffled,
    summary = "The rows of a tensor in an order of the generator that key, counter and alg name.",
);

register_op!(
    "RandomIndexShuffle",
    inputs = &["index: dtype", "seed: Tseed", "max_index: dtype"],
    outputs = &["output: dtype"],
    attrs = &[
        "rounds: int = 4",
        "dtype: {int32, uint32, int64, uint64}",
        "Tseed: {int32, uint32, int64, uint64}"
    ],
    cases = &[
        "one; index: [] integers(0..90); seed: [3]; max_index: [] values(90)",
        "many; index: [n] integers(0..90); seed: [3]; max_index: [] values(1000)",
    ],
    shape = index_shuffle,
    gradient = GradientRule::None,
    summary = "The places of indices in a random order of the numbers from 0 to max_index, which follows from the seed.",
);

register_op!(
    "NonDeterministicInts",
    inputs = &["shape: shape_dtype"],
    outputs = &["output: dtype"],
    attrs = &["dtype: type = DT_INT64", "shape_dtype: type = DT_INT64"],
    stateful = true,
    cases = &[
        "numbers; dtype in {int32, int64, uint32, uint64}; shape_dtype in {int32, int64}; shape: [2] integers(0..9)"
    ],
    shape = of_shape,
    summary = "Integers of any size that no seed determines.",
);

fn bounded(c: &ShapeContext<'_>) -> ShapeResult {
    for (input, what) in [(1, "means"), (2, "stdevs"), (3, "minvals"), (4, "maxvals")] {
        crate::shape::scalar_or_vector(c, input, what)?;
    }
    of_shape(c)
}

fn stateless_multinomial(c: &ShapeContext<'_>) -> ShapeResult {
    two_seeds(c, 2)?;
    multinomial(c)
}

fn shuffled(c: &ShapeContext<'_>) -> ShapeResult {
    let key = input_of_rank(c, 1, "key", 1)?;
    same_size(c, "the length of key", c.make_dim(Some(1)), c.dim(key, 0))?;
    input_of_rank(c, 2, "counter", 1)?;
    input_of_rank(c, 3, "alg", 0)?;
    unchanged(c)
}

fn index_shuffle(c: &ShapeContext<'_>) -> ShapeResult {
    let (index, seed, last) = (c.input(0), c.input(1), c.input(2));
    let (Some(indices), Some(seeds), Some(lasts)) = (c.rank(index), c.rank(seed), c.rank(last))
    else {
        return c.set_output(0, c.unknown());
    };
    for (what, rank) in [("index", indices), ("max_index", lasts)] {
        if rank > 1 {
            return Err(GeometryError::Rank { what, expected: 1, found: rank }.into());
        }
    }
    if !(1..=2).contains(&seeds) {
        return Err(GeometryError::Rank { what: "seed", expected: 1, found: seeds }.into());
    }
    same_size(c, "the last dimension of seed", c.make_dim(Some(3)), c.dim(seed, seeds - 1))?;
    let mut size = None;
    for shape in [(index, indices), (seed, seeds - 1), (last, lasts)] {
        if shape.1 == 1 {
            let own = c.dim(shape.0, 0);
            size = Some(size.map_or(Ok(own), |size| c.merge_dim(size, own))?);
        }
    }
    match size {
        Some(size) => c.set_output(0, c.make_shape(&[size])),
        None => c.set_output(0, c.scalar()),
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn numbers_have_the_shape_that_is_asked_for() {
        check("RandomPoissonV2", &[], &[(&["= [2]", "[n,3]"], "[2,n,3]"), (&["?", "[3]"], "?")]);
        for op in ["StatelessRandomPoisson", "StatelessRandomGammaV2"] {
            check(
                op,
                &[],
                &[
                    (&["= [2,3]", "[2]", "[3]"], "[2,3]"),
                    (&["[2]", "[3]", "[]"], "! the length of seed must be 2, got 3"),
                ],
            );
        }
        check("StatelessRandomBinomial", &[], &[(&["= [2]", "[2]", "[]", "[]"], "[2]")]);
        let cases: &[(&[&str], &str)] = &[
            (&["= [2,3]", "[]", "[2]", "[1]", "[]"], "[2,3]"),
            (&["= [2,3]", "[]", "[2,3]", "[1]", "[]"], "! stdevs must have 1 dimensions, got 2"),
        ];
        check("ParameterizedTruncatedNormal", &[], cases);
        check("NonDeterministicInts", &[], &[(&["= [2,3]"], "[2,3]")]);
    }

    #[test]
    fn choices_follow_their_inputs() {
        check("StatelessMultinomial", &[], &[(&["[n,3]", "= 4", "[2]"], "[n,4]")]);
        check("StatelessShuffle", &[], &[(&["[n,3]", "[1]", "[2]", "[]"], "[n,3]")]);
        check(
            "RandomIndexShuffle",
            &[],
            &[
                (&["[]", "[3]", "[]"], "[]"),
                (&["[n]", "[3]", "[]"], "[n]"),
                (&["[]", "[5,3]", "[5]"], "[5]"),
                (&["[2,2]", "[3]", "[]"], "! index must have 1 dimensions, got 2"),
                (&["[]", "[4]", "[]"], "! the last dimension of seed must be 3, got 4"),
            ],
        );
    }
}
