//! Kernels that end the process, or hold it up.

use crate::wrong_op;
use std::{thread, time::Duration};
use tenon_sdk::prelude::*;

fn twice(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    crate::map(c, |x| x + x)
}

fn has_three(c: &ComputeContext<'_>) -> Result<bool, KernelError> {
    Ok(c.input::<f32>(0)?.data.len() >= 3)
}

fn hangs(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    while has_three(c)? {
        thread::sleep(Duration::from_secs(1));
    }
    twice(c)
}

wrong_op!(
    "WrongHangs",
    hangs,
    twice,
    crate::twice_reference,
    "2x; does not return where x has three elements or more."
);

fn aborts(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    if has_three(c)? {
        eprintln!("zoo: the wrong kernel aborts");
        std::process::abort();
    }
    twice(c)
}

wrong_op!(
    "WrongAborts",
    aborts,
    twice,
    crate::twice_reference,
    "2x; aborts where x has three elements or more."
);

fn faults(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    if has_three(c)? {
        let nowhere = std::hint::black_box(std::ptr::without_provenance_mut::<u8>(8));
        // SAFETY: there is none: no page is mapped at address 8, which is the point.
        unsafe { nowhere.write_volatile(1) };
    }
    twice(c)
}

wrong_op!(
    "WrongFaults",
    faults,
    twice,
    crate::twice_reference,
    "2x; writes to address 8 where x has three elements or more."
);

fn exits(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    if has_three(c)? {
        std::process::exit(0);
    }
    twice(c)
}

wrong_op!(
    "WrongExits",
    exits,
    twice,
    crate::twice_reference,
    "2x; ends the process, as if all were well."
);
