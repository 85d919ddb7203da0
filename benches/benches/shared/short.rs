//! Settings of benchmarks whose lines stand beside those of the peers' scripts.

use criterion::Criterion;
use std::time::Duration;

/// Of short runs, since there are many.
pub fn short() -> Criterion {
    Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(1200))
        .sample_size(20)
}
