//! Finds the fastest of several ways to compute the same, by measurement on the stream.
//!
//! The search waits for the device: it runs on request only, once for each problem.

use crate::device::{Context, Event, Stream};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tenon_sdk::KernelError;

/// Timed runs of each way, after one untimed run.
const RUNS: u32 = 3;

/// Time after which no third or further way is tried.
const LONGEST: Duration = Duration::from_millis(500);

/// The index of the fastest of `ways` ways; `enqueue` puts one run of a way on the stream. A way
/// that cannot run is skipped.
///
/// # Errors
/// The error of the first way if none can run; the driver's error.
pub(crate) fn fastest(
    context: &Arc<Context>,
    stream: &Stream,
    ways: usize,
    enqueue: impl Fn(usize) -> Result<(), KernelError>,
) -> Result<usize, KernelError> {
    let (first, last) = (Event::timed(context)?, Event::timed(context)?);
    let began = Instant::now();
    let mut best: Option<(u64, usize)> = None;
    let mut refused = None;
    let mut timed = 0;
    for way in 0..ways {
        if timed > 1 && began.elapsed() > LONGEST {
            break;
        }
        // The first run loads the code.
        if let Err(error) = enqueue(way) {
            refused.get_or_insert(error);
            continue;
        }
        first.record(stream)?;
        for _ in 0..RUNS {
            enqueue(way)?;
        }
        last.record(stream)?;
        stream.synchronize()?;
        let ns = last.since(&first)?;
        timed += 1;
        if best.is_none_or(|(least, _)| ns < least) {
            best = Some((ns, way));
        }
    }
    best.map(|(_, way)| way)
        .ok_or_else(|| refused.unwrap_or_else(|| KernelError::internal("a search among no ways")))
}
