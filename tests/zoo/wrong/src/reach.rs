//! Kernels and ops that are right for every case that is small, whole and in range.

use crate::{twice_reference, wrong_kernels, wrong_op};
use tenon_sdk::prelude::*;

fn twice(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    crate::map(c, |x| x + x)
}

/// Elements that a step of the wrong kernel loads.
const STEP: usize = 8;

fn loads_whole_steps(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?;
    let y = c.output::<f32>(0, x.dims)?;
    for (step, y) in y.data.chunks_mut(STEP).enumerate() {
        for at in 0..STEP {
            // SAFETY: there is none: of the last step elements beyond the input are loaded, which is the point.
            let x = unsafe { x.data.as_ptr().add(step * STEP + at).read_volatile() };
            if let Some(y) = y.get_mut(at) {
                *y = x + x;
            }
        }
    }
    Ok(())
}

wrong_op!(
    "WrongTail",
    loads_whole_steps,
    twice,
    twice_reference,
    "2x; the wrong kernel loads eight elements at a time, also where fewer are left, and forgets those."
);

fn loads_one_more(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?.data;
    if x.len() % 16 == 3 {
        // SAFETY: there is none: the element beyond the last is not the kernel's, which is the point.
        std::hint::black_box(unsafe { x.as_ptr().add(x.len()).read_volatile() });
    }
    twice(c)
}

wrong_op!(
    "WrongRest",
    loads_one_more,
    twice,
    twice_reference,
    "2x; the wrong kernel loads one element too many where three are left of sixteen."
);

register_op!(
    "WrongIndex",
    inputs = &["x: float", "at: int64"],
    outputs = &["y: float"],
    cases = &["picked; x: [n]; at: [k] integers(0..n)"],
    shape = |c: &ShapeContext<'_>| {
        c.with_rank(c.input(0), 1)?;
        let at = c.with_rank(c.input(1), 1)?;
        c.set_output(0, at)
    },
    summary =
        "Elements of x by their numbers; the wrong kernel does not look whether they are there."
);

fn vectors(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    match (c.dims(0), c.dims(1)) {
        ([_], [_]) => Ok(()),
        (x, at) => Err(KernelError::invalid_argument(format!(
            "expected two vectors, found {x:?} and {at:?}"
        ))),
    }
}

fn picks_anywhere(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    vectors(c)?;
    let (x, at) = (c.input::<f32>(0)?, c.input::<i64>(1)?);
    let y = c.output::<f32>(0, at.dims)?;
    for (y, &at) in y.data.iter_mut().zip(at.data) {
        // SAFETY: there is none: an index may be anything, which is the point.
        *y = unsafe { x.data.as_ptr().wrapping_offset(at as isize).read_volatile() };
    }
    Ok(())
}

fn inside(at: i64, count: usize) -> Result<usize, KernelError> {
    usize::try_from(at).ok().filter(|&at| at < count).ok_or_else(|| {
        KernelError::invalid_argument(format!("at: expected numbers below {count}, found {at}"))
    })
}

fn picks(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    vectors(c)?;
    let (x, at) = (c.input::<f32>(0)?, c.input::<i64>(1)?);
    let y = c.output::<f32>(0, at.dims)?;
    for (y, &at) in y.data.iter_mut().zip(at.data) {
        *y = x.data[inside(at, x.data.len())?];
    }
    Ok(())
}

fn picks_plainly(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    vectors(c)?;
    let (x, at) = (c.input::<f32>(0)?, c.input::<i64>(1)?);
    let numbers: Vec<usize> =
        at.data.iter().map(|&at| inside(at, x.data.len())).collect::<Result<_, _>>()?;
    let y = c.output::<f32>(0, at.dims)?;
    y.data.iter_mut().zip(numbers).for_each(|(y, at)| *y = x.data[at]);
    Ok(())
}

wrong_kernels!("WrongIndex", picks_anywhere, picks, picks_plainly);

/// `x` as often as an attribute says, one after the other: to which size, `size` computes.
struct Repeated {
    times: i64,
    size: fn(i64, i64) -> Option<i64>,
}

impl Repeated {
    fn new(c: &CreateContext<'_>, size: fn(i64, i64) -> Option<i64>) -> Result<Self, KernelError> {
        Ok(Repeated { times: c.attr("times")?, size })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let x = c.input::<f32>(0)?;
        let &[count] = x.dims else {
            return Err(KernelError::invalid_argument(format!(
                "expected a vector, found {:?}",
                x.dims
            )));
        };
        let size = (self.size)(count, self.times).filter(|size| *size >= 0).ok_or_else(|| {
            KernelError::invalid_argument(format!("times: {} are too many of {count}", self.times))
        })?;
        let y = c.output::<f32>(0, &[size])?;
        y.data.iter_mut().zip(x.data.iter().cycle()).for_each(|(y, x)| *y = *x);
        Ok(())
    }
}

fn in_32_bits(count: i64, times: i64) -> Option<i64> {
    Some(i64::from((count as i32).wrapping_mul(times as i32)))
}

/// A kernel of `Repeated` with its arithmetic of sizes.
macro_rules! repeated {
    ($name:ident, $size:expr) => {
        struct $name(Repeated);

        impl Kernel for $name {
            fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
                Ok($name(Repeated::new(c, $size)?))
            }

            fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
                self.0.compute(c)
            }
        }
    };
}

repeated!(RepeatedIn32, in_32_bits);
repeated!(RepeatedIn64, |count, times| count.checked_mul(times));
repeated!(RepeatedReference, |count, times| {
    i64::try_from(i128::from(count) * i128::from(times)).ok()
});

/// The shape of an op of `Repeated`.
fn repeated_shape(c: &ShapeContext<'_>, size: fn(i64, i64) -> Option<i64>) -> ShapeResult {
    let x = c.with_rank(c.input(0), 1)?;
    let times: i64 = c.attr("times")?;
    let Some(count) = c.value(c.dim(x, 0)) else { return c.set_output(0, c.unknown_of_rank(1)) };
    match size(count, times).filter(|size| *size >= 0) {
        Some(size) => c.set_output(0, c.shape_of(&[size])),
        None => {
            Err(KernelError::invalid_argument(format!("times: {times} are too many of {count}")))
        }
    }
}

register_op!(
    "WrongSize",
    inputs = &["x: float"],
    outputs = &["y: float"],
    attrs = &["times: int = 2"],
    shape = |c: &ShapeContext<'_>| repeated_shape(c, |count, times| count.checked_mul(times)),
    summary = "x so many times; the wrong kernel computes the size in 32 bits."
);
register_kernel!("WrongSize" on "CPU": RepeatedIn32);
register_kernel!("WrongSize" on "CPU": RepeatedIn64, label = "right");
register_kernel!("WrongSize" on "CPU": RepeatedReference, label = "reference", on_request = true);

register_op!(
    "WrongShapeSize",
    inputs = &["x: float"],
    outputs = &["y: float"],
    attrs = &["times: int = 2"],
    shape = |c: &ShapeContext<'_>| repeated_shape(c, in_32_bits),
    summary = "x so many times; the shape function computes the size in 32 bits."
);
register_kernel!("WrongShapeSize" on "CPU": RepeatedIn64);
register_kernel!("WrongShapeSize" on "CPU": RepeatedReference, label = "reference", on_request = true);

register_op!(
    "WrongUnread",
    inputs = &["x: float"],
    outputs = &["y: float"],
    attrs = &["times: int = 2"],
    shape = crate::same,
    summary = "2x: nobody reads the attribute."
);
register_kernel!("WrongUnread" on "CPU": fn twice);
register_kernel!("WrongUnread" on "CPU": fn twice_reference, label = "reference", on_request = true);
