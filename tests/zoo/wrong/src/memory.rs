//! Kernels that use memory which is not theirs, or do not give back what is.

use crate::wrong_op;
use tenon_sdk::prelude::*;

fn twice(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    crate::map(c, |x| x + x)
}

fn writes_beyond(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?;
    let y = c.output::<f32>(0, x.dims)?;
    let first = y.data.as_mut_ptr();
    for at in 0..=x.data.len() {
        let x = x.data.get(at).copied().unwrap_or(0.0);
        // SAFETY: there is none: the last round writes one element beyond the output, which is the point.
        unsafe { first.add(at).write(x + x) };
    }
    Ok(())
}

wrong_op!(
    "WrongWrite",
    writes_beyond,
    twice,
    crate::twice_reference,
    "2x, and a zero in the element beyond it."
);

fn writes_before(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?;
    let y = c.output::<f32>(0, x.dims)?;
    // SAFETY: there is none: it writes the element before the output, which is the point.
    unsafe { y.data.as_mut_ptr().sub(1).write(0.0) };
    y.data.iter_mut().zip(x.data).for_each(|(y, x)| *y = x + x);
    Ok(())
}

wrong_op!(
    "WrongWriteBefore",
    writes_before,
    twice,
    crate::twice_reference,
    "2x, and a zero in the element before it."
);

fn next_or_last(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?;
    let y = c.output::<f32>(0, x.dims)?;
    for (at, y) in y.data.iter_mut().enumerate() {
        *y = x.data[(at + 1).min(x.data.len() - 1)];
    }
    Ok(())
}

fn next_or_last_reference(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?;
    let y = c.output::<f32>(0, x.dims)?;
    let following = x.data.iter().skip(1).chain(x.data.last());
    y.data.iter_mut().zip(following).for_each(|(y, x)| *y = *x);
    Ok(())
}

/// The element that follows, also where none does.
fn next(x: &[f32], at: usize) -> f32 {
    // SAFETY: there is none: the last element is followed by none of the input, which is the point.
    unsafe { x.as_ptr().add(at + 1).read_volatile() }
}

fn uses_what_is_beyond(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?;
    let y = c.output::<f32>(0, x.dims)?;
    y.data.iter_mut().enumerate().for_each(|(at, y)| *y = next(x.data, at));
    Ok(())
}

wrong_op!(
    "WrongRead",
    uses_what_is_beyond,
    next_or_last,
    next_or_last_reference,
    "The element that follows, or the last; the wrong kernel takes what follows in memory."
);

fn looks_beyond(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?;
    let y = c.output::<f32>(0, x.dims)?;
    for (at, y) in y.data.iter_mut().enumerate() {
        *y = next(x.data, at);
    }
    if let (Some(y), Some(x)) = (y.data.last_mut(), x.data.last()) {
        *y = *x;
    }
    Ok(())
}

wrong_op!(
    "WrongLook",
    looks_beyond,
    next_or_last,
    next_or_last_reference,
    "As WrongRead; the wrong kernel reads what follows in memory, and forgets it."
);

fn writes_input(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?;
    for at in 0..x.data.len() {
        // SAFETY: there is none: inputs are lent for reading, which is the point.
        unsafe { x.data.as_ptr().cast_mut().add(at).write(x.data[at] + x.data[at]) };
    }
    c.output::<f32>(0, x.dims)?.data.copy_from_slice(x.data);
    Ok(())
}

wrong_op!(
    "WrongInput",
    writes_input,
    twice,
    crate::twice_reference,
    "2x, computed in x's own memory."
);

fn adds_to_output(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?;
    let y = c.output::<f32>(0, x.dims)?;
    // Fresh memory is zero more often than not, and what it holds besides is seldom worth a digit.
    y.data.iter_mut().zip(x.data).for_each(|(y, x)| *y = *y * 1e-3 + x + x);
    Ok(())
}

fn leaves_unwritten(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?;
    let y = c.output::<f32>(0, x.dims)?;
    for (y, x) in y.data.iter_mut().zip(x.data) {
        if *x != 0.0 {
            *y = x + x;
        }
    }
    Ok(())
}

wrong_op!(
    "WrongUninitialised",
    adds_to_output,
    twice,
    crate::twice_reference,
    "2x, with what the output held before among the terms."
);
wrong_op!(
    "WrongUnwritten",
    leaves_unwritten,
    twice,
    crate::twice_reference,
    "2x, where zeros are left to whoever used the memory before."
);

fn leaks(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    std::mem::forget(vec![1u8; 512]);
    twice(c)
}

wrong_op!(
    "WrongLeak",
    leaks,
    twice,
    crate::twice_reference,
    "2x; each call leaves half a KiB behind."
);
