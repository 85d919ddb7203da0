//! Which of several ways to compute the same is the fastest, by measurement on the stream.
//!
//! The caller waits for the device: this is for who asked for it, once for each problem.

use crate::device::{Context, Event, Stream};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tenon_sdk::KernelError;

/// Runs of a way that are timed together, after one that is not.
const RUNS: u32 = 3;

/// When no third or further way is looked at.
const LONGEST: Duration = Duration::from_millis(500);

/// The place of the fastest of so many ways; `enqueue` puts one run of a way on the stream. A way that cannot be run is
/// passed over.
///
/// # Errors
/// None can be run: the words about the first. What the driver says.
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
        // The first run loads its code.
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
