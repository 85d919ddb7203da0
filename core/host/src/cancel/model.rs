//! Models of cancellation for loom: `RUSTFLAGS="--cfg loom" cargo test -p tenon-host --lib
//! cancel::model`.

use super::Cancellation;
use loom::{
    cell::UnsafeCell,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread,
};
use std::ffi::c_void;
use tenon_abi::CancelCallback;

/// Data that a kernel owns and its callback uses.
#[derive(Default)]
struct Data {
    cancellation: Cancellation,
    calls: AtomicUsize,
    token: AtomicU64,
    /// loom reports any use of it that is not ordered after the previous one.
    owned: UnsafeCell<usize>,
}

impl Data {
    fn new() -> Arc<Data> {
        Arc::default()
    }

    fn register(&self, run: unsafe extern "C" fn(*mut c_void)) -> u64 {
        let data = std::ptr::from_ref(self).cast_mut().cast();
        self.cancellation.register(CancelCallback { run: Some(run) }, data)
    }

    fn touch(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        // SAFETY: loom fails the model when another thread uses it.
        self.owned.with_mut(|owned| unsafe { *owned += 1 });
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }
}

unsafe extern "C" fn touch(data: *mut c_void) {
    // SAFETY: the models pass their `Data`, which outlives the threads.
    unsafe { &*data.cast::<Data>() }.touch();
}

unsafe extern "C" fn count(data: *mut c_void) {
    // SAFETY: the models pass their `Data`, which outlives the threads.
    unsafe { &*data.cast::<Data>() }.calls.fetch_add(1, Ordering::Relaxed);
}

unsafe extern "C" fn withdraw_itself(data: *mut c_void) {
    // SAFETY: the models pass their `Data`, which outlives the threads.
    let data = unsafe { &*data.cast::<Data>() };
    data.cancellation.withdraw(data.token.load(Ordering::Relaxed));
    data.touch();
}

fn cancel(data: &Arc<Data>) -> thread::JoinHandle<()> {
    let data = Arc::clone(data);
    thread::spawn(move || data.cancellation.cancel())
}

/// After a withdrawal the callback's data belong to the withdrawing thread, and the callback is not
/// called later.
#[test]
fn a_withdrawn_callback_neither_runs_nor_will() {
    loom::model(|| {
        let data = Data::new();
        let canceller = cancel(&data);
        let token = data.register(touch);
        data.cancellation.withdraw(token);
        let calls = data.calls();
        assert!(calls == 1 || (calls == 0 && token != 0));
        data.touch();
        canceller.join().unwrap();
        assert_eq!(data.calls(), calls + 1);
    });
}

/// A callback that is not withdrawn runs once, on the cancelling or the registering thread.
#[test]
fn cancelling_reaches_every_callback() {
    loom::model(|| {
        let data = Data::new();
        let other = {
            let data = Arc::clone(&data);
            thread::spawn(move || {
                data.register(count);
            })
        };
        let canceller = cancel(&data);
        data.register(count);
        canceller.join().unwrap();
        other.join().unwrap();
        assert!(data.cancellation.is_cancelled());
        assert_eq!(data.calls(), 2);
    });
}

/// Two threads cancel at once: at most one of them runs the callback, which may withdraw itself
/// meanwhile.
#[test]
fn a_callback_that_withdraws_itself_runs_at_most_once() {
    loom::model(|| {
        let data = Data::new();
        let token = data.register(withdraw_itself);
        data.token.store(token, Ordering::Relaxed);
        let canceller = cancel(&data);
        data.cancellation.cancel();
        data.cancellation.withdraw(token);
        let calls = data.calls();
        assert!(calls <= 1);
        data.touch();
        canceller.join().unwrap();
        assert_eq!(data.calls(), calls + 1);
    });
}
