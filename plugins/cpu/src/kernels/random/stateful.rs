//! `RandomUniform`, `RandomStandardNormal`, `TruncatedNormal`, `RandomUniformInt`: each node has
//! its own stream, from which a step takes the next section.

use super::{
    distribution::{
        Distribution, Drawn, DrawnInteger, Normal, Truncated, Uniform, Whole, fill, fill_integers,
        fill_whole,
    },
    shape_input,
};
use half::{bf16, f16};
use std::marker::PhantomData;
use tenon_philox::{Philox, Stream, reserved};
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::element_count,
    reg::Numerics,
    register_kernel,
};

/// The stream that a node's attributes start.
pub fn stream_of(c: &CreateContext<'_>) -> Result<Stream, KernelError> {
    Ok(Stream::new(c.attr("seed")?, c.attr("seed2")?))
}

struct Random<T, D> {
    stream: Stream,
    kind: PhantomData<fn(T, D)>,
}

impl<T: Drawn, D: Distribution<T>> Kernel for Random<T, D> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Random { stream: stream_of(c)?, kind: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let dims = shape_input(c, 0)?;
        let stream = self.stream.take(reserved(element_count(&dims)?));
        fill::<T, D>(c, &dims, &stream)
    }
}

struct RandomUniformInt<T> {
    stream: Stream,
    element: PhantomData<fn(T)>,
}

impl<T: DrawnInteger> Kernel for RandomUniformInt<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(RandomUniformInt { stream: stream_of(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let dims = shape_input(c, 0)?;
        fill_integers::<T>(c, &dims, [1, 2], |count| Ok(self.stream.take(reserved(count))))
    }
}

/// `NonDeterministicInts`: each call has a stream of its own.
fn unpredictable<T: Whole>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    fill_whole::<T>(c, &shape_input(c, 0)?, &Philox::seeded(0, 0))
}

type RandomUniform<T> = Random<T, Uniform>;
type RandomStandardNormal<T> = Random<T, Normal>;
type TruncatedNormal<T> = Random<T, Truncated>;

register_kernel!("RandomUniform" on "CPU": RandomUniform<T> for "dtype" in [f16, bf16, f32, f64],
    host_memory = &["shape"], numerics = Numerics::EXACT);
register_kernel!("RandomStandardNormal" on "CPU": RandomStandardNormal<T>
    for "dtype" in [f16, bf16, f32, f64], host_memory = &["shape"], numerics = Numerics::ulps(2.0));
register_kernel!("TruncatedNormal" on "CPU": TruncatedNormal<T> for "dtype" in [f16, bf16, f32, f64],
    host_memory = &["shape"], numerics = Numerics::ulps(2.0));
register_kernel!("RandomUniformInt" on "CPU": RandomUniformInt<T> for "Tout" in [i32, i64],
    host_memory = &["shape", "minval", "maxval"], numerics = Numerics::EXACT);
register_kernel!("NonDeterministicInts" on "CPU": fn unpredictable<T> for "dtype" in
    [i32, i64, u32, u64], types = ("shape_dtype", &[DType::INT32, DType::INT64]),
    host_memory = &["shape"]);
