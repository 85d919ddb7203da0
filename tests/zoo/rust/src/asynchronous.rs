//! Completion from a foreign thread, and waiting that cancellation ends.

use std::{
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::{Duration, Instant},
};
use tenon_sdk::{author::spawn, prelude::*};

register_op!(
    "ZooAsync",
    inputs = &["x: float"],
    outputs = &["y: float"],
    attrs = &["mode: {'value', 'error', 'panic', 'drop'} = 'value'"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.input(0)),
    summary = "Doubles x on a thread of the plugin's own, or fails there.",
);

#[derive(Clone, Copy)]
enum Ending {
    Value,
    Error,
    Panic,
    Drop,
}

struct Async {
    ending: Ending,
}

fn double(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?;
    let y = c.output::<f32>(0, x.dims)?;
    for (y, x) in y.data.iter_mut().zip(x.data) {
        *y = x + x;
    }
    Ok(())
}

impl Ending {
    fn end(self, mut call: AsyncCall) {
        match self {
            Ending::Value => {
                let result = double(&call.context());
                call.finish(result);
            }
            Ending::Error => {
                call.finish(Err(KernelError::new(Code::ABORTED, "zoo error on a thread")))
            }
            // Unwinding drops the call, which completes it with an error: no step waits for ever.
            Ending::Panic => panic!("zoo panic on a thread"),
            Ending::Drop => drop(call),
        }
    }
}

impl Kernel for Async {
    const MODE: Mode = Mode::Async;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let ending = match c.attr::<&str>("mode")? {
            "error" => Ending::Error,
            "panic" => Ending::Panic,
            "drop" => Ending::Drop,
            _ => Ending::Value,
        };
        Ok(Async { ending })
    }

    fn start(&self, call: AsyncCall) {
        let ending = self.ending;
        // Without a thread the closure is dropped, and the call with it, which fails it.
        let _ = spawn("zoo-async", move || {
            // The call must be seen to outlive `start`.
            std::thread::sleep(Duration::from_millis(1));
            ending.end(call);
        });
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        double(c)
    }
}

register_kernel!("ZooAsync" on "CPU": Async);

register_op!(
    "ZooBlocking",
    outputs = &["y: float"],
    attrs = &["limit_ms: int = 30000"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.scalar()),
    summary = "Waits until the step is cancelled; fails with DEADLINE_EXCEEDED after limit_ms.",
);

struct Blocking {
    limit: Duration,
}

#[derive(Default)]
struct Gate {
    open: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    fn open(&self) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Whether it opened before `limit` passed.
    fn wait(&self, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        while !*open {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.changed.wait_timeout(open, left);
            open = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

impl Kernel for Blocking {
    const MODE: Mode = Mode::Blocking;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let limit: i64 = c.attr("limit_ms")?;
        let limit = u64::try_from(limit).map_err(|_| {
            KernelError::invalid_argument(format!("limit_ms: expected at least 0, found {limit}"))
        })?;
        Ok(Blocking { limit: Duration::from_millis(limit) })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let gate = Arc::new(Gate::default());
        let opener = gate.clone();
        let _withdrawn = c.on_cancel(move || opener.open());
        if gate.wait(self.limit) {
            Err(KernelError::new(Code::CANCELLED, "woken by cancellation"))
        } else {
            Err(KernelError::new(Code::DEADLINE_EXCEEDED, "nobody cancelled the step"))
        }
    }
}

register_kernel!("ZooBlocking" on "CPU": Blocking);
