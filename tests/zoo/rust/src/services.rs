//! What the host lends: threads, knobs, the log, memory, names, the clock.

use std::{
    ffi::c_void,
    sync::atomic::{AtomicU32, Ordering},
};
use tenon_sdk::{
    abi::LogLevel,
    author::{host, log},
    prelude::*,
};

register_op!(
    "ZooParallel",
    inputs = &["x: float"],
    outputs = &["y: float", "within: bool"],
    shape = |c: &ShapeContext<'_>| {
        c.set_output(0, c.input(0))?;
        c.set_output(1, c.scalar())
    },
    summary =
        "Doubles x on the host's threads; whether each worker's number was below their count.",
);

/// Where workers write, each a range of its own.
struct Shared(*mut f32);

// SAFETY: the ranges that `parallel_for` hands out do not overlap.
unsafe impl Sync for Shared {}

impl Shared {
    /// # Safety
    /// `range` lies within the output, and no other worker has it.
    #[expect(clippy::mut_from_ref, reason = "each worker has a range of its own")]
    unsafe fn part(&self, range: std::ops::Range<usize>) -> &mut [f32] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(range.start), range.len()) }
    }
}

fn parallel(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?;
    let y = c.output::<f32>(0, x.dims)?;
    let shared = Shared(y.data.as_mut_ptr());
    let highest = AtomicU32::new(0);
    c.parallel_for_workers(x.data.len(), 1000.0, |range, worker| {
        highest.fetch_max(worker as u32, Ordering::Relaxed);
        let x = &x.data[range.clone()];
        // SAFETY: a range of `parallel_for` over the output's elements.
        let y = unsafe { shared.part(range) };
        y.iter_mut().zip(x).for_each(|(y, x)| *y = x + x);
    })?;
    let within = (highest.into_inner() as usize) < c.parallelism();
    c.output::<bool>(1, &[])?.data[0] = within;
    Ok(())
}

register_kernel!("ZooParallel" on "CPU": fn parallel);

register_knob!("enabled": BOOL = "true", "Read by the op ZooKnobs.");
register_knob!("answer": INT = "42", "Read by the op ZooKnobs.");
register_knob!("ratio": FLOAT = "0.5", "Read by the op ZooKnobs.");
register_knob!("greeting": STRING = "hello", "Read by the op ZooKnobs.");

register_op!(
    "ZooKnobs",
    outputs = &["facts: string"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.shape_of(&[4])),
    summary = "The plugin's knobs: enabled, answer, ratio, greeting.",
);

const KNOBS: [&str; 4] = ["enabled", "answer", "ratio", "greeting"];

fn knob(knobs: Knobs<'_>, name: &str) -> Result<String, KernelError> {
    Ok(match knobs.read(name)? {
        Knob::Bool(value) => value.to_string(),
        Knob::Int(value) => value.to_string(),
        Knob::Float(value) => value.to_string(),
        Knob::String(value) => value,
    })
}

fn read_knobs(knobs: Knobs<'_>) -> Result<Vec<String>, KernelError> {
    KNOBS.into_iter().map(|name| knob(knobs, name)).collect()
}

/// Keeps the knobs, and reads them in each call.
struct KnobsAtRun {
    knobs: KeptKnobs,
}

impl Kernel for KnobsAtRun {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(KnobsAtRun { knobs: c.knobs().keep() })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        c.set_strings(0, &[4], read_knobs(self.knobs.get())?.iter())
    }
}

register_kernel!("ZooKnobs" on "CPU": KnobsAtRun);

register_op!(
    "ZooKnobsAtCreate",
    outputs = &["facts: string"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.shape_of(&[4])),
    summary = "As ZooKnobs, read when the kernel is created; it supports no node while `ratio` is negative.",
);

struct KnobsAtCreate {
    facts: Vec<String>,
}

impl Kernel for KnobsAtCreate {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(KnobsAtCreate { facts: read_knobs(c.knobs())? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        c.set_strings(0, &[4], self.facts.iter())
    }
}

impl Supports for KnobsAtCreate {
    fn supports(c: &CreateContext<'_>) -> Supported {
        match c.knobs().float("ratio") {
            Ok(ratio) if ratio < 0.0 => Supported::No("ratio is negative".to_owned()),
            Ok(_) => Supported::Yes,
            Err(error) => Supported::No(error.message),
        }
    }
}

register_kernel!("ZooKnobsAtCreate" on "CPU": KnobsAtCreate);

register_op!(
    "ZooLog",
    outputs = &["y: bool"],
    attrs = &["message: string"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.scalar()),
    summary = "Writes a warning to the host's log.",
);

struct Log {
    message: String,
}

impl Kernel for Log {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Log { message: c.attr::<&str>("message")?.to_owned() })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        log(LogLevel::WARN, &self.message);
        c.output::<bool>(0, &[])?.data[0] = true;
        Ok(())
    }
}

register_kernel!("ZooLog" on "CPU": Log);

register_op!(
    "ZooHostMemory",
    outputs = &["squares: int64"],
    attrs = &["n: int >= 1"],
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.unknown_of_rank(1)),
    summary = "Squares from a table in host memory that the kernel holds.",
);

const ALIGN: u64 = 64;

/// A table in memory of the host's, which accounts for it.
struct HostMemory {
    table: *mut i64,
    count: usize,
}

// SAFETY: the table is written once, before the kernel is shared.
unsafe impl Send for HostMemory {}
// SAFETY: as above.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    fn bytes(&self) -> u64 {
        (self.count * size_of::<i64>()) as u64
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        let entry = host().deallocate.expect("the host fills every entry");
        // SAFETY: the figures that `allocate` was given.
        unsafe { entry(self.table.cast::<c_void>(), self.bytes(), ALIGN) };
    }
}

impl Kernel for HostMemory {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let n: i64 = c.attr("n")?;
        let count = usize::try_from(n).ok().filter(|n| *n <= 1 << 20).ok_or_else(|| {
            KernelError::invalid_argument(format!("n: expected at most 2^20, found {n}"))
        })?;
        let entry = host().allocate.expect("the host fills every entry");
        // SAFETY: an entry of the host's table.
        let table = unsafe { entry((count * size_of::<i64>()) as u64, ALIGN) }.cast::<i64>();
        if table.is_null() {
            return Err(KernelError::new(Code::RESOURCE_EXHAUSTED, "no host memory for the table"));
        }
        for at in 0..count {
            // SAFETY: `count` elements were allocated.
            unsafe { table.add(at).write((at * at) as i64) };
        }
        Ok(HostMemory { table, count })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        // SAFETY: `count` elements, written when the kernel was created.
        let squares = unsafe { std::slice::from_raw_parts(self.table, self.count) };
        c.output::<i64>(0, &[self.count as i64])?.data.copy_from_slice(squares);
        Ok(())
    }
}

register_kernel!("ZooHostMemory" on "CPU": HostMemory);

register_op!(
    "ZooNames",
    outputs = &["node: string", "later: bool"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| {
        c.set_output(0, c.scalar())?;
        c.set_output(1, c.scalar())
    },
    summary = "The node's name; whether the clock of calls and the host's are one and go forward.",
);

fn names(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let before = c.now_ns();
    // SAFETY: the host's table, whose entries the host fills.
    let after = unsafe { host().now_ns.expect("the host fills every entry")() };
    c.set_strings(0, &[], [c.node()].into_iter())?;
    c.output::<bool>(1, &[])?.data[0] = before <= after && c.now_ns() >= after;
    Ok(())
}

register_kernel!("ZooNames" on "CPU": fn names);

register_op!(
    "ZooPath",
    outputs = &["path: string"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.scalar()),
    summary = "Path of the plugin's own file.",
);

fn path(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let path = plugin_path().unwrap_or_default();
    c.set_strings(0, &[], [path.as_os_str().as_encoded_bytes()].into_iter())
}

register_kernel!("ZooPath" on "CPU": fn path);
