//! Models of the queue for loom: `RUSTFLAGS="--cfg loom" cargo test -p tenon-host --lib
//! pool::model`.

use super::queue::{Job, Loop, Queue};
use loom::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};
use std::ffi::c_void;

/// The loop of a worker, without spinning.
fn work(queue: &Queue) {
    while let Some(work) = queue.take() {
        queue.run(work);
    }
}

/// A loop's blocks run once each, and all are done when its caller continues: the frame of the loop
/// ends there, and loom would detect a late worker that touches it.
#[test]
fn a_loop_is_done_when_its_caller_returns() {
    loom::model(|| {
        let queue = Arc::new(Queue::new());
        let worker = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || work(&queue))
        };
        let counts = [AtomicUsize::new(0), AtomicUsize::new(0)];
        {
            let body = |begin: u64, _end: u64, _worker: u32| {
                counts[begin as usize].fetch_add(1, Ordering::Relaxed);
            };
            let both = Loop::new(&body, 2, 1, 1, None);
            queue.run_loop(&both, |_| ());
        }
        for count in &counts {
            assert_eq!(count.load(Ordering::Relaxed), 1);
        }
        queue.close();
        worker.join().unwrap();
    });
}

unsafe fn count(data: *mut c_void, index: u64) {
    // SAFETY: the model's counter, which outlives the workers.
    unsafe { (*data.cast::<AtomicUsize>()).fetch_add(index as usize, Ordering::Relaxed) };
}

/// Jobs run once, on any thread, even those that are queued when the queue closes.
#[test]
fn every_job_runs_once_before_the_workers_end() {
    loom::model(|| {
        let queue = Arc::new(Queue::new());
        let sum = Box::new(AtomicUsize::new(0));
        let data = (&raw const *sum).cast_mut().cast::<c_void>();
        let worker = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || work(&queue))
        };
        assert!(queue.push(Job { run: count, data, index: 1 }));
        assert!(queue.push(Job { run: count, data, index: 10 }));
        queue.close();
        worker.join().unwrap();
        assert_eq!(sum.load(Ordering::Relaxed), 11);
        assert!(!queue.push(Job { run: count, data, index: 100 }), "closed");
    });
}

/// A worker that is roused, or about to sleep, still takes later work.
#[test]
fn a_roused_worker_takes_what_comes() {
    loom::model(|| {
        let queue = Arc::new(Queue::new());
        let sum = Box::new(AtomicUsize::new(0));
        let data = (&raw const *sum).cast_mut().cast::<c_void>();
        let worker = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || work(&queue))
        };
        queue.rouse();
        assert!(queue.push(Job { run: count, data, index: 1 }));
        queue.close();
        worker.join().unwrap();
        assert_eq!(sum.load(Ordering::Relaxed), 1);
    });
}

/// Two callers with a loop each and one worker: it helps at most one at a time and neither waits
/// forever.
#[test]
fn two_callers_share_a_worker() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let queue = Arc::new(Queue::new());
        let sum = Arc::new(AtomicUsize::new(0));
        let run = |queue: &Queue, sum: &AtomicUsize| {
            let body = |_: u64, _: u64, _: u32| {
                sum.fetch_add(1, Ordering::Relaxed);
            };
            queue.run_loop(&Loop::new(&body, 2, 1, 1, None), |_| ());
        };
        let other = {
            let (queue, sum) = (Arc::clone(&queue), Arc::clone(&sum));
            thread::spawn(move || run(&queue, &sum))
        };
        let worker = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || work(&queue))
        };
        run(&queue, &sum);
        other.join().unwrap();
        assert_eq!(sum.load(Ordering::Relaxed), 4);
        queue.close();
        worker.join().unwrap();
    });
}
