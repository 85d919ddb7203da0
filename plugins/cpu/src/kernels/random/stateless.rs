//! Random numbers that depend on the inputs alone: on two seeds, or on key and counter.

use super::{
    distribution::{
        Distribution, Drawn, DrawnInteger, Normal, Truncated, Uniform, Whole, fill, fill_integers,
        fill_whole,
    },
    shape_input,
};
use half::{bf16, f16};
use tenon_philox::Philox;
use tenon_sdk::{KernelError, author::ComputeContext, reg::Numerics, register_kernel};

/// TensorFlow's number of the generator Philox.
const PHILOX: i32 = 1;
/// TensorFlow's number for the device's own choice of generator.
const AUTOMATIC: i32 = 3;

/// The stream of the seeds in an input.
pub fn mixed(c: &ComputeContext<'_>, input: usize) -> Result<Philox, KernelError> {
    match (&c.integers(input)?[..], c.dims(input)) {
        (&[low, high], [2]) => Ok(Philox::mixed([low, high])),
        (_, dims) => Err(KernelError::invalid_argument(format!(
            "seed must be a vector of 2, found shape {dims:?}"
        ))),
    }
}

fn of_seed<T: Drawn, D: Distribution<T>>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    fill::<T, D>(c, &shape_input(c, 0)?, &mixed(c, 1)?)
}

/// The stream that inputs 1 to 3 define.
pub fn named(c: &ComputeContext<'_>) -> Result<Philox, KernelError> {
    let (key, counter, alg) = (c.input::<u64>(1)?, c.input::<u64>(2)?, c.input::<i32>(3)?);
    if !matches!(alg.data, &[PHILOX | AUTOMATIC]) || !alg.dims.is_empty() {
        return Err(KernelError::invalid_argument(format!(
            "alg must be {PHILOX} (Philox) or {AUTOMATIC} (the device's choice), found {:?}",
            alg.data
        )));
    }
    match (key.data, counter.data, key.dims, counter.dims) {
        (&[key], &[low, high, ..], [1], [_]) => Ok(Philox::keyed(key, [low, high])),
        _ => Err(KernelError::invalid_argument(format!(
            "key must be a vector of 1 and counter a vector of at least 2, found shapes {:?} and {:?}",
            key.dims, counter.dims
        ))),
    }
}

fn of_key<T: Drawn, D: Distribution<T>>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    fill::<T, D>(c, &shape_input(c, 0)?, &named(c)?)
}

fn uniform<T: Drawn>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    of_seed::<T, Uniform>(c)
}

fn normal<T: Drawn>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    of_seed::<T, Normal>(c)
}

fn truncated<T: Drawn>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    of_seed::<T, Truncated>(c)
}

fn uniform_of_key<T: Drawn>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    of_key::<T, Uniform>(c)
}

fn normal_of_key<T: Drawn>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    of_key::<T, Normal>(c)
}

fn truncated_of_key<T: Drawn>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    of_key::<T, Truncated>(c)
}

fn whole<T: Whole>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    fill_whole::<T>(c, &shape_input(c, 0)?, &mixed(c, 1)?)
}

fn whole_of_key<T: Whole>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    fill_whole::<T>(c, &shape_input(c, 0)?, &named(c)?)
}

fn integers_of_key<T: DrawnInteger>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let stream = named(c)?;
    fill_integers::<T>(c, &shape_input(c, 0)?, [4, 5], |_| Ok(stream))
}

fn integers<T: DrawnInteger>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let stream = mixed(c, 1)?;
    fill_integers::<T>(c, &shape_input(c, 0)?, [2, 3], |_| Ok(stream))
}

fn key_counter(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (key, counter) = mixed(c, 0)?.parts();
    c.output::<u64>(0, &[1])?.data[0] = key;
    c.output::<u64>(1, &[2])?.data.copy_from_slice(&counter);
    Ok(())
}

fn key_counter_algorithm(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    key_counter(c)?;
    c.output::<i32>(2, &[])?.data[0] = PHILOX;
    Ok(())
}

fn algorithm(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    c.output::<i32>(0, &[])?.data[0] = PHILOX;
    Ok(())
}

register_kernel!("StatelessRandomUniform" on "CPU": fn uniform<T>
    for "dtype" in [f16, bf16, f32, f64],
    host_memory = &["shape", "seed"], numerics = Numerics::EXACT);
register_kernel!("StatelessRandomNormal" on "CPU": fn normal<T>
    for "dtype" in [f16, bf16, f32, f64],
    host_memory = &["shape", "seed"], numerics = Numerics::ulps(2.0));
register_kernel!("StatelessTruncatedNormal" on "CPU": fn truncated<T>
    for "dtype" in [f16, bf16, f32, f64],
    host_memory = &["shape", "seed"], numerics = Numerics::ulps(2.0));
register_kernel!("StatelessRandomUniformV2" on "CPU": fn uniform_of_key<T>
    for "dtype" in [f16, bf16, f32, f64],
    host_memory = &["shape", "alg"], numerics = Numerics::EXACT);
register_kernel!("StatelessRandomNormalV2" on "CPU": fn normal_of_key<T>
    for "dtype" in [f16, bf16, f32, f64],
    host_memory = &["shape", "alg"], numerics = Numerics::ulps(2.0));
register_kernel!("StatelessRandomUniformInt" on "CPU": fn integers<T> for "dtype" in [i32, i64],
    host_memory = &["shape", "seed", "minval", "maxval"], numerics = Numerics::EXACT);
register_kernel!("StatelessRandomGetKeyCounter" on "CPU": fn key_counter, numerics = Numerics::EXACT);
register_kernel!("StatelessRandomGetAlg" on "CPU": fn algorithm,
    host_memory = &["alg"], numerics = Numerics::EXACT);
register_kernel!("StatelessRandomGetKeyCounterAlg" on "CPU": fn key_counter_algorithm,
    host_memory = &["alg"], numerics = Numerics::EXACT);
register_kernel!("StatelessTruncatedNormalV2" on "CPU": fn truncated_of_key<T>
    for "dtype" in [f16, bf16, f32, f64],
    host_memory = &["shape", "alg"], numerics = Numerics::ulps(2.0));
register_kernel!("StatelessRandomUniformIntV2" on "CPU": fn integers_of_key<T>
    for "dtype" in [i32, i64],
    host_memory = &["shape", "alg", "minval", "maxval"], numerics = Numerics::EXACT);
register_kernel!("StatelessRandomUniformFullInt" on "CPU": fn whole<T>
    for "dtype" in [i32, i64, u32, u64],
    host_memory = &["shape", "seed"], numerics = Numerics::EXACT);
register_kernel!("StatelessRandomUniformFullIntV2" on "CPU": fn whole_of_key<T>
    for "dtype" in [i32, i64, u32, u64],
    host_memory = &["shape", "alg"], numerics = Numerics::EXACT);
