//! The pool under load.

use super::*;
use crate::fpu::FpState;
use std::sync::{
    Mutex,
    atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering},
};

fn covered(pool: &ThreadPool, total: u64, cost_ns: f64) -> usize {
    let counts: Vec<AtomicU32> = (0..total).map(|_| AtomicU32::new(0)).collect();
    let blocks = AtomicUsize::new(0);
    pool.parallel_for(total, cost_ns, &|begin, end, worker| {
        assert!(begin < end && end <= total && (worker as usize) < pool.threads());
        blocks.fetch_add(1, Ordering::Relaxed);
        for at in begin..end {
            counts[at as usize].fetch_add(1, Ordering::Relaxed);
        }
    });
    assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 1));
    blocks.into_inner()
}

#[test]
fn every_unit_is_computed_once_whatever_the_cost() {
    for threads in [1, 2, 5] {
        let pool = ThreadPool::new(threads);
        assert_eq!(pool.threads(), threads);
        for total in [0, 1, 2, 3, 7, 64, 1000] {
            for cost in [0.0, 1.0, 1e3, 1e9, f64::INFINITY, f64::NAN, -1.0] {
                covered(&pool, total, cost);
            }
        }
    }
}

#[test]
fn a_run_of_short_loops_rouses_a_worker_that_then_helps() {
    let pool = ThreadPool::new(2);
    let deadline = Instant::now() + Duration::from_secs(60);
    let helped = AtomicBool::new(false);
    while !helped.load(Ordering::Relaxed) {
        assert!(Instant::now() < deadline, "no worker came");
        // 20 microseconds in total: not worth waking a worker, but an awake one takes half of it.
        pool.parallel_for(20, 1000.0, &|begin, end, worker| {
            helped.fetch_or(worker > 0, Ordering::Relaxed);
            let until = Instant::now() + Duration::from_micros(end - begin);
            while Instant::now() < until {
                std::hint::spin_loop();
            }
        });
    }
}

#[test]
fn cheap_work_is_one_block_on_the_caller_s_thread() {
    let pool = ThreadPool::new(4);
    let caller = std::thread::current().id();
    pool.parallel_for(1000, 1.0, &|begin, end, worker| {
        assert_eq!((begin, end, worker), (0, 1000, 0));
        assert_eq!(std::thread::current().id(), caller);
    });
    assert!(covered(&pool, 1000, 1e6) > 1);
}

#[test]
fn no_two_blocks_at_once_have_the_same_worker() {
    let pool = ThreadPool::new(4);
    let busy: Vec<AtomicBool> = (0..4).map(|_| AtomicBool::new(false)).collect();
    for _ in 0..50 {
        pool.parallel_for(64, 1e5, &|_, _, worker| {
            assert!(!busy[worker as usize].swap(true, Ordering::SeqCst));
            std::thread::yield_now();
            busy[worker as usize].store(false, Ordering::SeqCst);
        });
    }
}

#[test]
fn a_loop_inside_a_block_stays_on_its_thread() {
    let pool = ThreadPool::new(3);
    let inner = AtomicU64::new(0);
    pool.parallel_for(16, 1e6, &|begin, end, _| {
        let thread = std::thread::current().id();
        assert_eq!(pool.parallelism(), 1);
        for _ in begin..end {
            pool.parallel_for(100, 1e6, &|begin, end, worker| {
                assert_eq!((worker, std::thread::current().id()), (0, thread));
                inner.fetch_add(end - begin, Ordering::Relaxed);
            });
        }
    });
    assert_eq!(inner.into_inner(), 1600);
    assert_eq!(pool.parallelism(), 3);
}

#[test]
fn stress_of_loops_and_jobs_from_many_callers() {
    let pool = Arc::new(ThreadPool::new(4));
    let sum = Arc::new(AtomicU64::new(0));
    let jobs = Arc::new(AtomicU64::new(0));
    std::thread::scope(|scope| {
        for caller in 0..4u64 {
            let (pool, sum, jobs) = (&pool, &sum, &jobs);
            scope.spawn(move || {
                for round in 0..300 {
                    pool.parallel_for(37 + caller, 1e5, &|begin, end, _| {
                        sum.fetch_add(end - begin, Ordering::Relaxed);
                    });
                    if round % 3 == 0 {
                        let (jobs, sum, again) = (jobs.clone(), sum.clone(), pool.clone());
                        pool.spawn(move || {
                            again.parallel_for(10, 1e5, &|begin, end, _| {
                                sum.fetch_add(end - begin, Ordering::Relaxed);
                            });
                            jobs.fetch_add(1, Ordering::Relaxed);
                        });
                    }
                }
            });
        }
    });
    drop(Arc::try_unwrap(pool).map_err(|pool| {
        // A running job still holds it: wait for its end.
        while Arc::strong_count(&pool) > 1 {
            std::thread::yield_now();
        }
    }));
    let expected = (0..4u64).map(|caller| 300 * (37 + caller) + 100 * 10).sum::<u64>();
    while jobs.load(Ordering::Relaxed) < 400 {
        std::thread::yield_now();
    }
    assert_eq!(sum.load(Ordering::Relaxed), expected);
}

#[test]
fn a_panic_in_a_block_comes_out_at_the_caller_and_the_pool_goes_on() {
    let pool = ThreadPool::new(3);
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        pool.parallel_for(100, 1e6, &|begin, _, _| assert!(begin < 50, "as asked for"));
    }));
    let message = tenon_framework::plugin::panic_message(&*caught.unwrap_err());
    assert_eq!(message, "as asked for");
    pool.spawn(|| panic!("as asked for"));
    assert!(covered(&pool, 100, 1e6) > 1);
}

#[test]
fn blocks_run_under_the_caller_s_floating_point_state() {
    let pool = ThreadPool::new(3);
    for keep in [true, false] {
        let _state = FpGuard::for_kernels(keep);
        let expected = FpState::current();
        pool.parallel_for(64, 1e6, &|_, _, _| {
            assert_eq!(FpState::current(), expected);
            std::thread::yield_now();
        });
    }
}

#[test]
fn a_pool_of_one_runs_jobs_where_they_are_spawned() {
    let pool = ThreadPool::new(0);
    assert_eq!(pool.threads(), 1);
    let thread = Arc::new(Mutex::new(None));
    let seen = Arc::clone(&thread);
    pool.spawn(move || *seen.lock().unwrap() = Some(std::thread::current().id()));
    assert_eq!(*thread.lock().unwrap(), Some(std::thread::current().id()));
}

#[test]
fn jobs_that_wait_are_run_before_the_pool_ends() {
    let pool = ThreadPool::new(2);
    let done = Arc::new(AtomicU64::new(0));
    for _ in 0..100 {
        let done = Arc::clone(&done);
        pool.spawn(move || {
            done.fetch_add(1, Ordering::Relaxed);
        });
    }
    drop(pool);
    assert_eq!(done.load(Ordering::Relaxed), 100);
}

#[test]
fn blocking_jobs_run_at_once_and_end_with_the_pool() {
    let pool = ThreadPool::new(1);
    let (all, barrier) = (Arc::new(AtomicU64::new(0)), Arc::new(std::sync::Barrier::new(8)));
    for _ in 0..8 {
        let (all, barrier) = (Arc::clone(&all), Arc::clone(&barrier));
        // Each job waits for all others, so each needs a thread.
        pool.spawn_blocking(move || {
            barrier.wait();
            all.fetch_add(1, Ordering::Relaxed);
        })
        .unwrap();
    }
    pool.spawn_blocking(|| panic!("as asked for")).unwrap();
    drop(pool);
    assert_eq!(all.load(Ordering::Relaxed), 8);
}

#[test]
fn blocks_are_few_and_cover_the_total() {
    for (total, cost, threads) in [
        (2, 1e5, 2),
        (1000, 1e5, 2),
        (u64::MAX, f64::INFINITY, 8),
        (7, 1e12, 64),
        (1 << 20, 1e9, 2),
    ] {
        let (block, blocks) = split(total, cost, threads);
        let most = (u64::from(threads) * BLOCKS_PER_THREAD).max(long_blocks(cost));
        assert!(blocks <= most && blocks <= LONG_BLOCKS && block >= 1);
        assert!((u128::from(block)) * u128::from(blocks) >= u128::from(total));
        assert!((u128::from(block)) * u128::from(blocks - 1) < u128::from(total));
    }
    let (block, _) = split(1 << 20, 1e9, 2);
    assert!(block as f64 * 1e9 / f64::from(1 << 20) <= 2.0 * LONG_BLOCK_NS, "{block}");
}

/// Runs a loop of a thousand units, with an estimated cost of a millisecond each, that `stop` ends
/// in block number `at`.
fn stopped_in(pool: &ThreadPool, at: u64, end: impl Fn() + Sync, stop: &Stop<'_>) -> (bool, u64) {
    let (blocks, units) = (AtomicU64::new(0), AtomicU64::new(0));
    let complete = pool.parallel_for_until(1000, 1e6, stop, &|begin, last, _| {
        if blocks.fetch_add(1, Ordering::Relaxed) == at {
            end();
        }
        std::thread::sleep(Duration::from_millis(1));
        units.fetch_add(last - begin, Ordering::Relaxed);
    });
    (complete, units.into_inner())
}

#[test]
fn a_loop_of_a_cancelled_step_begins_no_further_block() {
    for threads in [1, 3] {
        let pool = ThreadPool::new(threads);
        let flag = AtomicU32::new(0);
        let stop = Stop::new(&flag, tenon_abi::NO_DEADLINE);
        assert_eq!(stopped_in(&pool, u64::MAX, || (), &stop), (true, 1000));
        let cancel = || flag.store(1, Ordering::Relaxed);
        let (complete, units) = stopped_in(&pool, 3, cancel, &stop);
        assert!(!complete && units < 1000, "{threads} threads computed {units}");
        assert_eq!(stopped_in(&pool, u64::MAX, || (), &stop), (false, 0), "no block begins");
    }
}

#[test]
fn a_loop_ends_when_its_deadline_passes_and_a_loop_in_a_block_too() {
    let pool = ThreadPool::new(2);
    let flag = AtomicU32::new(0);
    let soon = crate::call::monotonic_ns() + 20_000_000;
    let stop = Stop::new(&flag, soon);
    // 200 blocks of a millisecond, on two threads.
    let (complete, units) = stopped_in(&pool, u64::MAX, || (), &stop);
    assert!(!complete && units < 1000, "{units}");
    let inner = AtomicBool::new(true);
    pool.parallel_for(2, 1e9, &|_, _, _| {
        let complete = pool.parallel_for_until(1000, 1e6, &stop, &|_, _, _| ());
        inner.fetch_and(complete, Ordering::Relaxed);
    });
    assert!(!inner.into_inner(), "the deadline has passed");
}
