//! Single calls of the kernels of plugins/int8.

use criterion::Criterion;
use tenon_benches::{Failure, environment, runtime_of};
use tenon_framework::Tensor;
use tenon_runtime::{
    Runtime,
    host::instance::{KernelInstance, PackCache, PreparedCall},
};

/// Numbers of threads that kernels are timed on.
pub const THREADS: [usize; 2] = [1, 2];

/// Values without a pattern that would matter, others for each salt.
pub fn bytes(count: usize, salt: usize) -> Vec<u8> {
    (0..count).map(|at| ((at + salt).wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// Times calls of a kernel on so many threads, all of whose inputs but the first one are constants. The id of two threads
/// ends in `/2`.
pub fn time(
    c: &mut Criterion,
    (id, threads): (&str, usize),
    kernel: impl FnOnce(&Runtime) -> Result<KernelInstance, Failure>,
    inputs: &[Tensor],
) -> Result<(), Failure> {
    let runtime = runtime_of("int8", threads)?;
    let mut kernel = kernel(&runtime)?;
    let cache = PackCache::new();
    for (at, constant) in inputs.iter().enumerate().skip(1) {
        if !kernel.prepack(at as u32, constant, &cache, &format!("input {at}"))? {
            return Err(format!("input {at} was not packed").into());
        }
    }
    let env = environment(&runtime);
    let mut call = PreparedCall::new(&kernel, inputs, &env)?;
    call.run()?;
    let end = if threads == 1 { String::new() } else { format!("/{threads}") };
    c.bench_function(&format!("int8/{id}{end}"), |b| {
        b.iter(|| call.run().expect("it ran before"));
    });
    Ok(())
}
