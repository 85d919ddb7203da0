//! Random numbers. A stateful op draws from its own stream, which its seeds initialise; a stateless
//! op computes from its inputs only.

mod of_parameters;
mod sobol;

use crate::math_binary::broadcast;
use crate::shape::{
    constant_integer, dims_of, input_of_rank, same_size, scalar_or_vector, scalar_output, unchanged,
};
use tenon_author::{ShapeContext, ShapeResult, register_op};
use tenon_framework::op::GradientRule;
use tenon_geometry::GeometryError;

const SEED: &str = "seed: int = 0";
const SEED2: &str = "seed2: int = 0";
const FLOATS: &str = "dtype: {half, bfloat16, float, double}";
const FLOATS_OR_FLOAT: &str = "dtype: {half, bfloat16, float, double} = DT_FLOAT";
const SHAPE: &str = "T: {int32, int64}";
const SHAPE_OR_INT32: &str = "T: {int32, int64} = DT_INT32";
const SEEDS: &str = "Tseed: {int32, int64} = DT_INT64";

const OF_SHAPE: &[&str] = &["numbers; seed = 7; seed2 = 9; shape: [2] integers(0..9)"];
const STATELESS: &[&str] = &["numbers; shape: [2] integers(0..9); seed: [2]"];
const OF_KEY: &[&str] =
    &["numbers; shape: [2] integers(0..9); key: [1]; counter: [2]; alg: [] values(1)"];

register_op!(
    "RandomUniform",
    inputs = &["shape: T"],
    outputs = &["output: dtype"],
    attrs = &[SEED, SEED2, FLOATS, SHAPE],
    stateful = true,
    cases = OF_SHAPE,
    shape = of_shape,
    gradient = GradientRule::None,
    summary = "Numbers between 0 and 1, 1 excluded, each as likely as any other.",
);

register_op!(
    "RandomStandardNormal",
    inputs = &["shape: T"],
    outputs = &["output: dtype"],
    attrs = &[SEED, SEED2, FLOATS, SHAPE],
    stateful = true,
    cases = OF_SHAPE,
    shape = of_shape,
    gradient = GradientRule::None,
    summary = "Normally distributed numbers with mean 0 and deviation 1.",
);

register_op!(
    "TruncatedNormal",
    inputs = &["shape: T"],
    outputs = &["output: dtype"],
    attrs = &[SEED, SEED2, FLOATS, SHAPE],
    stateful = true,
    cases = OF_SHAPE,
    shape = of_shape,
    gradient = GradientRule::None,
    summary =
        "Normally distributed numbers with mean 0 and deviation 1, those beyond 2 drawn again.",
);

register_op!(
    "RandomUniformInt",
    inputs = &["shape: T", "minval: Tout", "maxval: Tout"],
    outputs = &["output: Tout"],
    attrs = &[SEED, SEED2, "Tout: {int32, int64}", SHAPE],
    stateful = true,
    cases = &[
        "numbers; seed = 7; shape: [2] integers(0..9); minval: [] values(-3); maxval: [] values(12)",
    ],
    shape = integers,
    summary = "Integers from minval to below maxval.",
);

register_op!(
    "RandomShuffle",
    inputs = &["value: T"],
    outputs = &["output: T"],
    attrs = &[SEED, SEED2, "T: type"],
    stateful = true,
    cases = &["rows; seed = 7; value: [n, 3]", "scalar; seed = 7; value: []",],
    shape = unchanged,
    gradient = GradientRule::None,
    summary = "The rows of a tensor in random order.",
);

register_op!(
    "Multinomial",
    inputs = &["logits: T", "num_samples: int32"],
    outputs = &["output: output_dtype"],
    attrs = &[SEED, SEED2, "T: realnumbertype", "output_dtype: {int32, int64} = DT_INT64"],
    stateful = true,
    cases = &[
        "rows; seed = 7; c in 1..9; logits: [r, c] uniform(-3, 3); num_samples: [] integers(0..7)",
    ],
    shape = multinomial,
    gradient = GradientRule::None,
    summary = "Classes drawn for each row, from the logarithms of unnormalised probabilities.",
);

register_op!(
    "RandomGamma",
    inputs = &["shape: S", "alpha: T"],
    outputs = &["output: T"],
    attrs = &[SEED, SEED2, "S: {int32, int64}", "T: {half, float, double}"],
    stateful = true,
    cases = &["numbers; seed = 7; shape: [1] integers(0..9); alpha: [k] uniform(0.1, 9)",],
    shape = gamma,
    summary = "Numbers of the gamma distribution with scale 1, a tensor of shape for each alpha.",
);

register_op!(
    "RandomGammaGrad",
    inputs = &["alpha: T", "sample: T"],
    outputs = &["output: T"],
    attrs = &["T: {float, double}"],
    cases = &["positive; alpha: [m, n] uniform(0.1, 9); sample: [n] uniform(0.1, 9)"],
    shape = broadcast,
    summary = "The derivative of a number of the gamma distribution by its alpha, broadcast.",
);

register_op!(
    "StatelessRandomUniform",
    inputs = &["shape: T", "seed: Tseed"],
    outputs = &["output: dtype"],
    attrs = &[FLOATS_OR_FLOAT, SHAPE_OR_INT32, SEEDS],
    cases = STATELESS,
    shape = stateless,
    gradient = GradientRule::None,
    summary = "Numbers between 0 and 1, 1 excluded, that follow from the seed.",
);

register_op!(
    "StatelessRandomNormal",
    inputs = &["shape: T", "seed: Tseed"],
    outputs = &["output: dtype"],
    attrs = &[FLOATS_OR_FLOAT, SHAPE_OR_INT32, SEEDS],
    cases = STATELESS,
    shape = stateless,
    gradient = GradientRule::None,
    summary = "Normally distributed numbers that follow from the seed.",
);

register_op!(
    "StatelessTruncatedNormal",
    inputs = &["shape: T", "seed: Tseed"],
    outputs = &["output: dtype"],
    attrs = &[FLOATS_OR_FLOAT, SHAPE_OR_INT32, SEEDS],
    cases = STATELESS,
    shape = stateless,
    gradient = GradientRule::None,
    summary =
        "Normally distributed numbers, those beyond 2 drawn again, that follow from the seed.",
);

register_op!(
    "StatelessRandomUniformInt",
    inputs = &["shape: T", "seed: Tseed", "minval: dtype", "maxval: dtype"],
    outputs = &["output: dtype"],
    attrs = &["dtype: {int32, int64}", SHAPE, SEEDS],
    cases = &[
        "numbers; shape: [2] integers(0..9); seed: [2]; minval: [] values(-3); maxval: [] values(12)",
    ],
    shape = stateless_integers,
    gradient = GradientRule::None,
    summary = "Integers from minval to below maxval that follow from the seed.",
);

register_op!(
    "StatelessRandomUniformV2",
    inputs = &["shape: Tshape", "key: uint64", "counter: uint64", "alg: int32"],
    outputs = &["output: dtype"],
    attrs = &[FLOATS_OR_FLOAT, "Tshape: {int32, int64} = DT_INT32"],
    cases = OF_KEY,
    shape = of_key,
    gradient = GradientRule::None,
    summary =
        "Numbers between 0 and 1, 1 excluded, of the generator that key, counter and alg name.",
);

register_op!(
    "StatelessRandomNormalV2",
    inputs = &["shape: Tshape", "key: uint64", "counter: uint64", "alg: int32"],
    outputs = &["output: dtype"],
    attrs = &[FLOATS_OR_FLOAT, "Tshape: {int32, int64} = DT_INT32"],
    cases = OF_KEY,
    shape = of_key,
    gradient = GradientRule::None,
    summary = "Normally distributed numbers of the generator that key, counter and alg name.",
);

register_op!(
    "StatelessTruncatedNormalV2",
    inputs = &["shape: Tshape", "key: uint64", "counter: uint64", "alg: int32"],
    outputs = &["output: dtype"],
    attrs = &[FLOATS_OR_FLOAT, "Tshape: {int32, int64} = DT_INT32"],
    cases = OF_KEY,
    shape = of_key,
    gradient = GradientRule::None,
    summary = "Normally distributed numbers, those beyond 2 drawn again, of the generator that key, counter and alg name.",
);

register_op!(
    "StatelessRandomUniformIntV2",
    inputs = &[
        "shape: Tshape",
        "key: uint64",
        "counter: uint64",
        "alg: int32",
        "minval: dtype",
        "maxval: dtype"
    ],
    outputs = &["output: dtype"],
    attrs = &["dtype: {int32, int64, uint32, uint64}", "Tshape: {int32, int64} = DT_INT32"],
    cases = &["numbers; shape: [2] integers(0..9); key: [1]; counter: [2]; alg: [] values(1); \
         minval: [] values(-3); maxval: [] values(12)",],
    shape = integers_of_key,
    gradient = GradientRule::None,
    summary =
        "Integers from minval to below maxval, of the generator that key, counter and alg name.",
);

register_op!(
    "StatelessRandomUniformFullInt",
    inputs = &["shape: T", "seed: Tseed"],
    outputs = &["output: dtype"],
    attrs = &[
        "dtype: {int32, int64, uint32, uint64} = DT_UINT64",
        SHAPE_OR_INT32,
        "Tseed: {int32, int64, uint32, uint64} = DT_INT64"
    ],
    cases = &["numbers; Tseed in {int32, int64}; shape: [2] integers(0..9); seed: [2]"],
    shape = stateless,
    gradient = GradientRule::None,
    summary = "Integers of any size that follow from the seed, of type int32 or int64.",
);

register_op!(
    "StatelessRandomUniformFullIntV2",
    inputs = &["shape: Tshape", "key: uint64", "counter: uint64", "alg: int32"],
    outputs = &["output: dtype"],
    attrs =
        &["dtype: {int32, int64, uint32, uint64} = DT_UINT64", "Tshape: {int32, int64} = DT_INT32"],
    cases = OF_KEY,
    shape = of_key,
    gradient = GradientRule::None,
    summary = "Integers of any size, of the generator that key, counter and alg name.",
);

register_op!(
    "StatelessRandomGetKeyCounterAlg",
    inputs = &["seed: Tseed"],
    outputs = &["key: uint64", "counter: uint64", "alg: int32"],
    attrs = &[SEEDS],
    cases = &["seeds; seed: [2]"],
    shape = key_counter_algorithm,
    summary = "The key and the counter derived from a seed, and the number of the algorithm that the device draws with.",
);

register_op!(
    "StatelessRandomGetKeyCounter",
    inputs = &["seed: Tseed"],
    outputs = &["key: uint64", "counter: uint64"],
    attrs = &[SEEDS],
    cases = &["seeds; seed: [2]",],
    shape = key_counter,
    summary = "The key and the counter derived from a seed.",
);

register_op!(
    "StatelessRandomGetAlg",
    inputs = &[],
    outputs = &["alg: int32"],
    attrs = &[],
    stateful = true,
    shape = scalar_output,
    summary = "The number of the algorithm that the device draws with: 1, Philox.",
);

/// The output has the shape given by the first input.
fn of_shape(c: &ShapeContext<'_>) -> ShapeResult {
    if let Some(found) = c.rank(c.input(0)).filter(|&rank| rank != 1) {
        return Err(GeometryError::Rank { what: "shape", expected: 1, found }.into());
    }
    c.set_output(0, c.constant_as_shape(0)?)
}

fn integers(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 1, "minval", 0)?;
    input_of_rank(c, 2, "maxval", 0)?;
    of_shape(c)
}

fn multinomial(c: &ShapeContext<'_>) -> ShapeResult {
    let logits = input_of_rank(c, 0, "logits", 2)?;
    input_of_rank(c, 1, "num_samples", 0)?;
    let what = "num_samples";
    let samples = constant_integer(c, 1, what)?;
    if let Some(found) = samples.filter(|&samples| samples < 0) {
        return Err(GeometryError::TooSmall { what, least: 0, found }.into());
    }
    c.set_output(0, c.make_shape(&[c.dim(logits, 0), c.make_dim(samples)]))
}

fn gamma(c: &ShapeContext<'_>) -> ShapeResult {
    scalar_or_vector(c, 0, "shape")?;
    let (samples, alpha) = (c.constant_as_shape(0)?, c.input(1));
    if c.rank(samples).is_none() || c.rank(alpha).is_none() {
        return c.set_output(0, c.unknown());
    }
    let mut dims = dims_of(c, samples);
    dims.extend(dims_of(c, alpha));
    c.set_output(0, c.make_shape(&dims))
}

/// Checks that an input is a vector of two seeds.
fn two_seeds(c: &ShapeContext<'_>, input: usize) -> ShapeResult {
    let seed = input_of_rank(c, input, "seed", 1)?;
    same_size(c, "the length of seed", c.make_dim(Some(2)), c.dim(seed, 0))?;
    Ok(())
}

fn stateless(c: &ShapeContext<'_>) -> ShapeResult {
    two_seeds(c, 1)?;
    of_shape(c)
}

fn stateless_integers(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 2, "minval", 0)?;
    input_of_rank(c, 3, "maxval", 0)?;
    stateless(c)
}

fn of_key(c: &ShapeContext<'_>) -> ShapeResult {
    let key = input_of_rank(c, 1, "key", 1)?;
    same_size(c, "the length of key", c.make_dim(Some(1)), c.dim(key, 0))?;
    input_of_rank(c, 2, "counter", 1)?;
    input_of_rank(c, 3, "alg", 0)?;
    of_shape(c)
}

fn integers_of_key(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 4, "minval", 0)?;
    input_of_rank(c, 5, "maxval", 0)?;
    of_key(c)
}

fn key_counter_algorithm(c: &ShapeContext<'_>) -> ShapeResult {
    key_counter(c)?;
    c.set_output(2, c.shape_of(&[]))
}

fn key_counter(c: &ShapeContext<'_>) -> ShapeResult {
    two_seeds(c, 0)?;
    c.set_output(0, c.shape_of(&[1]))?;
    c.set_output(1, c.shape_of(&[2]))
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn the_output_has_the_shape_that_is_asked_for() {
        for op in ["RandomUniform", "RandomStandardNormal", "TruncatedNormal"] {
            check(
                op,
                &[],
                &[
                    (&["= [2,3]"], "[2,3]"),
                    (&["[2]"], "[?,?]"),
                    (&["?"], "?"),
                    (&["[]"], "! shape must have 1 dimensions, got 0"),
                ],
            );
        }
        let low = "! minval must have 0 dimensions, got 1";
        check(
            "RandomUniformInt",
            &[],
            &[(&["= [2]", "[]", "[]"], "[2]"), (&["[1]", "[1]", "[]"], low)],
        );
        check("RandomShuffle", &[], &[(&["[n,3]"], "[n,3]"), (&["[]"], "[]")]);
        check("StatelessRandomGetAlg", &[], &[(&[], "[]")]);
    }

    #[test]
    fn samples_are_drawn_for_each_row_or_parameter() {
        check(
            "Multinomial",
            &[],
            &[
                (&["[n,3]", "= 4"], "[n,4]"),
                (&["?", "[]"], "[?,?]"),
                (&["[3]", "= 4"], "! logits must have 2 dimensions, got 1"),
                (&["[n,3]", "= -1"], "! num_samples must be at least 0, got -1"),
            ],
        );
        check("RandomGamma", &[], &[(&["= [2]", "[n,3]"], "[2,n,3]"), (&["?", "[3]"], "?")]);
    }

    #[test]
    fn stateless_ops_check_their_seeds() {
        for op in ["StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal"] {
            check(
                op,
                &[],
                &[
                    (&["= [2,3]", "[2]"], "[2,3]"),
                    (&["= [2]", "[3]"], "! the length of seed must be 2, got 3"),
                    (&["= [2]", "[]"], "! seed must have 1 dimensions, got 0"),
                ],
            );
        }
        check("StatelessRandomUniformInt", &[], &[(&["= [2]", "[2]", "[]", "[]"], "[2]")]);
        check("StatelessRandomGetKeyCounter", &[], &[(&["[2]"], "[1]; [2]")]);
        check("StatelessRandomGetKeyCounterAlg", &[], &[(&["[2]"], "[1]; [2]; []")]);
        let low = "! minval must have 0 dimensions, got 1";
        let of_key = ["= [2]", "[1]", "[2]", "[]"];
        let with = |low, high| [&of_key[..], &[low, high]].concat();
        let bounds: &[(&[&str], &str)] = &[(&with("[]", "[]"), "[2]"), (&with("[1]", "[]"), low)];
        check("StatelessRandomUniformIntV2", &[], bounds);
        for op in [
            "StatelessRandomUniformV2",
            "StatelessRandomNormalV2",
            "StatelessTruncatedNormalV2",
            "StatelessRandomUniformFullIntV2",
        ] {
            check(
                op,
                &[],
                &[
                    (&["= [4]", "[1]", "[2]", "[]"], "[4]"),
                    (&["= [4]", "[2]", "[2]", "[]"], "! the length of key must be 1, got 2"),
                ],
            );
        }
    }
}
