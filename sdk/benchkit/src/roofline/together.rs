//! The same work on several threads at once.

use std::{
    sync::{
        Barrier,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// Tries of each probe; the best counts, the first is left out.
const TRIES: usize = 12;
/// Time that a try takes at least.
const TRY: Duration = Duration::from_millis(2);

/// The shortest time, in nanoseconds per round, in which `threads` threads do a round each. `make` gives a thread
/// what does rounds.
pub fn best_ns<W: FnMut(u64)>(threads: u32, make: impl Fn() -> W + Sync) -> f64 {
    let mut own = make();
    let rounds = rounds_of(&mut own);
    let (barrier, over) = (Barrier::new(threads.max(1) as usize), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| {
                let mut work = make();
                loop {
                    barrier.wait();
                    if over.load(Ordering::Acquire) {
                        return;
                    }
                    work(rounds);
                    barrier.wait();
                }
            });
        }
        let mut best = f64::INFINITY;
        for attempt in 0..TRIES {
            barrier.wait();
            let began = Instant::now();
            own(rounds);
            barrier.wait();
            let ns = began.elapsed().as_nanos() as f64 / rounds as f64;
            if attempt > 0 {
                best = best.min(ns);
            }
        }
        over.store(true, Ordering::Release);
        barrier.wait();
        best
    })
}

/// Rounds that fill a try.
fn rounds_of(work: &mut impl FnMut(u64)) -> u64 {
    let mut rounds = 1;
    loop {
        let began = Instant::now();
        work(rounds);
        if began.elapsed() * 2 > TRY || rounds >= 1 << 40 {
            return rounds;
        }
        rounds *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_work_at_once() {
        let sleep = |threads: u32| {
            best_ns(threads, || |rounds: u64| thread::sleep(Duration::from_millis(2 * rounds)))
        };
        for threads in [1, 3] {
            let ns = sleep(threads);
            assert!((2e6..6e6).contains(&ns), "{threads} threads: {ns}");
        }
    }
}
