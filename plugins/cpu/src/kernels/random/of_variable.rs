//! Random numbers whose generator is in a variable: a counter of two words and a key. A call takes a
//! section of the stream, and writes the counter back, under the variable's lock.

use super::{
    distribution::{
        Distribution, Drawn, DrawnInteger, Normal, Truncated, Uniform, fill, fill_integers,
        fill_steps,
    },
    shape_input,
};
use crate::split::for_parts;
use half::{bf16, f16};
use tenon_philox::{Philox, RESERVED_PER_OUTPUT, WORDS, reserved};
use tenon_sdk::{
    Code, KernelError, author::ComputeContext, element::Number, geometry::element_count,
    register_kernel,
};

/// TensorFlow's number of the generator Philox.
const PHILOX: i64 = 1;
/// Words of its state: the counter, low word first, and the key.
const STATE: usize = 3;

/// Checks the number of a generator.
///
/// # Errors
/// `INVALID_ARGUMENT` for another generator than Philox.
pub fn check_algorithm(found: i64) -> Result<(), KernelError> {
    if found == PHILOX {
        return Ok(());
    }
    Err(KernelError::invalid_argument(format!(
        "algorithm: expected {PHILOX} (Philox), found {found}"
    )))
}

/// The one number of an input.
pub fn scalar<T: tenon_sdk::element::Element>(
    c: &ComputeContext<'_>,
    input: usize,
    name: &str,
) -> Result<T, KernelError> {
    let view = c.input::<T>(input)?;
    match (view.data, view.dims) {
        (&[value], []) => Ok(value),
        (_, dims) => Err(KernelError::invalid_argument(format!(
            "{name}: expected a scalar, found shape {dims:?}"
        ))),
    }
}

/// Advances the generator in the variable behind input 0; its words before.
///
/// In the variables of the oldest op the number of the algorithm stands before the generator: `is_tagged`.
pub fn advance(
    c: &ComputeContext<'_>,
    is_tagged: bool,
    steps: u64,
) -> Result<[i64; STATE], KernelError> {
    let state = c.state();
    let variable = state.input_variable(0)?;
    let variables = [&variable];
    let mut locked = state.lock(&variables)?;
    let Some(dims) = locked.dims(0) else {
        let message = "the variable of the generator does not exist: run its initialiser first";
        return Err(KernelError::new(Code::NOT_FOUND, message));
    };
    let words = locked.view_mut::<i64>(0)?.data;
    let tag = usize::from(is_tagged);
    if dims.len() != 1 || words.len() < STATE + tag {
        return Err(KernelError::invalid_argument(format!(
            "resource: expected the state of a generator, a vector of at least {} numbers, found shape {dims:?}",
            STATE + tag
        )));
    }
    if is_tagged {
        check_algorithm(words[0])?;
    }
    let words = &mut words[tag..][..STATE];
    let before = [words[0], words[1], words[2]];
    let mut generator = generator(before);
    generator.skip(steps);
    let (_, [low, high]) = generator.parts();
    (words[0], words[1]) = (low as i64, high as i64);
    Ok(before)
}

/// The generator of these words.
pub fn generator([low, high, key]: [i64; STATE]) -> Philox {
    Philox::keyed(key as u64, [low as u64, high as u64])
}

/// The section of the stream for a number of outputs.
fn section(c: &ComputeContext<'_>, count: usize) -> Result<Philox, KernelError> {
    advance(c, false, reserved(count)).map(generator)
}

fn of_distribution<T: Drawn, D: Distribution<T>>(
    c: &ComputeContext<'_>,
) -> Result<(), KernelError> {
    check_algorithm(scalar::<i64>(c, 1, "algorithm")?)?;
    let dims = shape_input(c, 2)?;
    let stream = section(c, element_count(&dims)?)?;
    fill::<T, D>(c, &dims, &stream)
}

fn uniform<T: Drawn>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    of_distribution::<T, Uniform>(c)
}

fn normal<T: Drawn>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    of_distribution::<T, Normal>(c)
}

fn truncated<T: Drawn>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    of_distribution::<T, Truncated>(c)
}

fn tagged_normal<T: Drawn>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let dims = shape_input(c, 1)?;
    let stream = generator(advance(c, true, reserved(element_count(&dims)?))?);
    fill::<T, Normal>(c, &dims, &stream)
}

fn integers<T: DrawnInteger>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    check_algorithm(scalar::<i64>(c, 1, "algorithm")?)?;
    fill_integers::<T>(c, &shape_input(c, 2)?, [3, 4], |count| section(c, count))
}

/// An integer type of which all values are drawn.
trait Whole: Number {
    /// How many numbers the words of one step make.
    const PER_STEP: usize;
    fn of(words: [u32; WORDS]) -> [Self; WORDS];
}

macro_rules! whole {
    ($($narrow:ty, $wide:ty;)*) => {$(
        impl Whole for $narrow {
            const PER_STEP: usize = WORDS;
            fn of(words: [u32; WORDS]) -> [$narrow; WORDS] {
                words.map(|word| word as $narrow)
            }
        }

        impl Whole for $wide {
            const PER_STEP: usize = WORDS / 2;
            fn of([a, b, c, d]: [u32; WORDS]) -> [$wide; WORDS] {
                let number = |low: u32, high: u32| (u64::from(high) << 32 | u64::from(low)) as $wide;
                [number(a, b), number(c, d), 0, 0]
            }
        }
    )*};
}

whole! {
    i32, i64;
    u32, u64;
}

fn whole<T: Whole>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    check_algorithm(scalar::<i64>(c, 1, "algorithm")?)?;
    let dims = shape_input(c, 2)?;
    let stream = section(c, element_count(&dims)?)?;
    let y = c.output::<T>(0, &dims)?.data;
    for_parts(c, y, 1.0, |first, y| fill_steps(&stream, (first, T::PER_STEP), y, T::of))
}

fn read_and_skip(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    check_algorithm(scalar::<i32>(c, 1, "alg")?.into())?;
    let delta = scalar::<u64>(c, 2, "delta")?;
    let before = advance(c, false, delta.wrapping_mul(RESERVED_PER_OUTPUT))?;
    c.output::<i64>(0, &[STATE as i64])?.data.copy_from_slice(&before);
    Ok(())
}

fn skip(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    check_algorithm(scalar::<i64>(c, 1, "algorithm")?)?;
    let delta = scalar::<i64>(c, 2, "delta")? as u64;
    advance(c, false, delta.wrapping_mul(RESERVED_PER_OUTPUT)).map(drop)
}

register_kernel!("RngReadAndSkip" on "CPU": fn read_and_skip);
register_kernel!("RngSkip" on "CPU": fn skip);
register_kernel!("StatefulStandardNormal" on "CPU": fn tagged_normal<T> for "dtype" in
    [f16, bf16, f32, f64]);
register_kernel!("StatefulStandardNormalV2" on "CPU": fn normal<T> for "dtype" in
    [f16, bf16, f32, f64]);
register_kernel!("StatefulTruncatedNormal" on "CPU": fn truncated<T> for "dtype" in
    [f16, bf16, f32, f64]);
register_kernel!("StatefulUniform" on "CPU": fn uniform<T> for "dtype" in [f16, bf16, f32, f64]);
register_kernel!("StatefulUniformFullInt" on "CPU": fn whole<T> for "dtype" in
    [i32, i64, u32, u64]);
register_kernel!("StatefulUniformInt" on "CPU": fn integers<T> for "dtype" in [i32, i64]);
