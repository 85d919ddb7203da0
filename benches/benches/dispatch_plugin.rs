//! What a call of a one-element `Add` costs through the table of the loaded plugin.
//!
//! [`dispatch_linked`](../dispatch_linked/index.html) times the same kernel's body, linked in and without its
//! wrapper: the difference is the price of the boundary. Two programs, since a crate that is linked in is
//! not loaded as a plugin too.

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use tenon_benches::{Failure, add_instance, environment, filled, runtime};
use tenon_runtime::host::instance::PreparedCall;

fn run(c: &mut Criterion) -> Result<(), Failure> {
    let runtime = runtime()?;
    let instance = add_instance(&runtime)?;
    let env = environment(&runtime);
    let x = filled(&[1], |_| 0.5);
    let mut prepared = PreparedCall::new(&instance, &[x.clone(), x], &env)?;
    prepared.run()?;
    let (compute, state, call) = (instance.compute(), instance.state(), prepared.planned());
    c.bench_function("dispatch/plugin_call", |b| {
        b.iter(|| {
            // SAFETY: the kernel's own entry and state with a prepared call.
            let code = unsafe { compute(black_box(state), black_box(call)) };
            assert!(code.is_ok());
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
