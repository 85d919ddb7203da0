//! Kernels that end their process, or block it, when they are told to: the faults that isolation
//! must contain.
//!
//! What it is: one op whose attribute `how` says in which way it fails. It fails only for inputs of
//! three elements or more, so that the same graph can succeed and then fail.
//!
//! What it is not: a plugin for a check of wrong results, which is `tests/zoo/wrong`. Only tests
//! that isolate it call it (`tests/isolate`).

use std::{hint::black_box, os::fd::RawFd, process::Command, ptr, thread};
use tenon_sdk::prelude::*;

tenon_sdk::export_plugin!();

register_op!(
    "FatalTwice",
    inputs = &["x: float"],
    outputs = &["y: float"],
    attrs = &[
        "how: {'fault', 'abort', 'exit', 'hang', 'grow', 'stack', 'thread', 'kill', 'close', 'spawn', 'wild'}"
    ],
    stateful = true,
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.input(0)),
    summary = "2x; fails in the way of `how` where x has three elements or more.",
);

struct Twice {
    how: String,
}

impl Kernel for Twice {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Twice { how: c.attr::<&str>("how")?.to_owned() })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let x = c.input::<f32>(0)?;
        if x.data.len() >= 3 && self.how == "wild" {
            wild(c.output::<f32>(0, x.dims)?.data);
        }
        if x.data.len() >= 3 {
            fail(&self.how);
        }
        let y = c.output::<f32>(0, x.dims)?;
        y.data.iter_mut().zip(x.data).for_each(|(y, x)| *y = x + x);
        Ok(())
    }
}

register_kernel!("FatalTwice" on "CPU": Twice);

fn fail(how: &str) {
    match how {
        "fault" => fault(),
        "abort" => std::process::abort(),
        "exit" => std::process::exit(3),
        "hang" => hang(),
        "grow" => grow(),
        "stack" => drop(black_box(deep(black_box(1)))),
        "thread" => drop(thread::spawn(fault).join()),
        "kill" => kill(),
        "spawn" => spawn(),
        _ => close_all(),
    }
}

fn fault() {
    let nowhere = black_box(ptr::without_provenance_mut::<u8>(8));
    // SAFETY: there is none: no page is mapped at address 8, which is the point.
    unsafe { nowhere.write_volatile(1) };
}

/// Writes far beyond an output, and faults then.
fn wild(output: &mut [f32]) {
    const BYTES: usize = 32 << 20;
    let first = output.as_mut_ptr().cast::<u8>();
    for at in (0..BYTES).step_by(4096) {
        // SAFETY: there is none: the memory is mapped, and nobody's, which is the point.
        unsafe { first.wrapping_add(at).write_volatile(1) };
    }
    fault();
}

fn hang() {
    while black_box(true) {
        std::hint::spin_loop();
    }
}

/// Starts a process that would outlive this one, and does not return.
fn spawn() {
    let started = Command::new("sleep").arg("600").spawn();
    started.map_or_else(|error| panic!("no process: {error}"), |_| hang());
}

/// Takes memory, and touches it, until there is no more.
fn grow() {
    let mut held: Vec<Vec<u8>> = Vec::new();
    while black_box(true) {
        held.push(vec![1; 16 << 20]);
    }
}

/// Never returns: every call needs the stack of the one before.
fn deep(depth: u64) -> [u64; 512] {
    let mut here = [depth; 512];
    if black_box(depth) > 0 {
        here = deep(black_box(depth + 1));
    }
    here[(depth % 512) as usize] ^= depth;
    here
}

unsafe extern "C" {
    fn raise(signal: i32) -> i32;
    fn close(descriptor: RawFd) -> i32;
}

fn kill() {
    const SIGKILL: i32 = 9;
    // SAFETY: it ends the process.
    let _ = unsafe { raise(SIGKILL) };
}

/// Closes every descriptor, those of whoever runs the plugin among them.
fn close_all() {
    for descriptor in 0..1024 {
        // SAFETY: there is none: others use them, which is the point.
        let _ = unsafe { close(descriptor) };
    }
}

fn dies(_: &ComputeContext<'_>) -> Result<(), KernelError> {
    fault();
    Ok(())
}

// Before the kernel of tenon-cpu, which has a lower priority.
register_kernel!("Softsign" on "CPU": fn dies, types = ("T", &[DType::FLOAT]), priority = 1000);
