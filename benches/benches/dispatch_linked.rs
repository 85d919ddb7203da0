//! What a one-element `Add` costs when the kernel's body is called from the linked crate, without the
//! wrapper that catches panics and without the table: the base of `dispatch/plugin_call`.

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use tenon_author::ComputeContext;
use tenon_benches::{Failure, add_instance, environment, filled};
use tenon_cpu::kernels::math_binary::add;
use tenon_runtime::{Runtime, RuntimeOptions, host::instance::PreparedCall};

fn run(c: &mut Criterion) -> Result<(), Failure> {
    let options = RuntimeOptions { threads: Some(1), search: false, ..RuntimeOptions::default() };
    let (runtime, _) = Runtime::new(options)?;
    let instance = add_instance(&runtime)?;
    let env = environment(&runtime);
    let x = filled(&[1], |_| 0.5);
    let mut prepared = PreparedCall::new(&instance, &[x.clone(), x], &env)?;
    prepared.run()?;
    let call = prepared.planned();
    c.bench_function("dispatch/linked_call", |b| {
        b.iter(|| {
            // SAFETY: a prepared call, whose outputs only this context hands out.
            let context = unsafe { ComputeContext::new(black_box(call)) };
            let result = add::<f32>(&context);
            assert!(result.is_ok());
        });
    });
    Ok(())
}

fn benches(c: &mut Criterion) {
    if let Err(error) = run(c) {
        panic!("{error}");
    }
}

criterion_group!(dispatch, benches);
criterion_main!(dispatch);
