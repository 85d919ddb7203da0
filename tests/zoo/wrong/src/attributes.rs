//! Kernels that are wrong for some values of an attribute, and ops that panic for some shapes.

use crate::wrong_kernels;
use tenon_sdk::prelude::*;

fn map_integers(c: &ComputeContext<'_>, f: impl Fn(i64) -> i64) -> Result<(), KernelError> {
    let x = c.input::<i64>(0)?;
    let y = c.output::<i64>(0, x.dims)?;
    y.data.iter_mut().zip(x.data).for_each(|(y, x)| *y = f(*x));
    Ok(())
}

/// A kernel with the attribute `by`: what it makes of it, and what it computes with it.
macro_rules! by {
    ($name:ident, |$by:ident| $new:expr, |$x:ident, $own:ident| $compute:expr) => {
        struct $name(i64);

        impl Kernel for $name {
            fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
                let $by: i64 = c.attr("by")?;
                Ok($name($new))
            }

            fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
                let $own = self.0;
                map_integers(c, |$x| $compute)
            }
        }
    };
}

/// An op on integers with the attribute `by`, a wrong kernel, a right one and the specification.
macro_rules! by_op {
    ($op:literal, [$wrong:ident, $right:ident, $reference:ident], $summary:literal) => {
        register_op!(
            $op,
            inputs = &["x: int64"],
            outputs = &["y: int64"],
            attrs = &["by: int = 2"],
            shape = crate::same,
            summary = $summary
        );
        register_kernel!($op on "CPU": $wrong);
        register_kernel!($op on "CPU": $right, label = "right");
        register_kernel!($op on "CPU": $reference, label = "reference", on_request = true);
    };
}

fn not_zero(by: i64) -> Result<i64, KernelError> {
    match by {
        0 => Err(KernelError::invalid_argument("by: expected any number but 0, found 0")),
        by => Ok(by),
    }
}

by!(Divides, |by| by, |x, by| x.wrapping_div(by));
by!(DividesByNoZero, |by| not_zero(by)?, |x, by| x.checked_div(by).unwrap_or(i64::MIN));
by!(DividesPlainly, |by| not_zero(by)?, |x, by| (i128::from(x) / i128::from(by)) as i64);
by_op!(
    "WrongDivision",
    [Divides, DividesByNoZero, DividesPlainly],
    "x / by; the wrong kernel divides by 0 too, and panics."
);

by!(SkipsZero, |by| by, |x, by| x.wrapping_mul(if by == 0 { 1 } else { by }));
by!(Multiplies, |by| by, |x, by| x.wrapping_mul(by));
by!(MultipliesPlainly, |by| by, |x, by| (i128::from(x) * i128::from(by)) as i64);
by_op!(
    "WrongZero",
    [SkipsZero, Multiplies, MultipliesPlainly],
    "x times by; the wrong kernel takes 0 for 1."
);

/// Refuses what is negative, and has memory by then: what the wrong kernel does not give back.
fn refuses(by: i64, leaks: bool) -> Result<i64, KernelError> {
    let scratch = vec![1u8; 256];
    if by >= 0 {
        return Ok(by);
    }
    if leaks {
        std::mem::forget(std::hint::black_box(scratch));
    }
    Err(KernelError::invalid_argument(format!("by: expected at least 0, found {by}")))
}

by!(Forgets, |by| refuses(by, true)?, |x, by| x.wrapping_mul(by));
by!(GivesBack, |by| refuses(by, false)?, |x, by| x.wrapping_mul(by));
by!(GivesBackPlainly, |by| refuses(by, false)?, |x, by| (i128::from(x) * i128::from(by)) as i64);
by_op!(
    "WrongForgets",
    [Forgets, GivesBack, GivesBackPlainly],
    "x times by, which is not negative; the wrong kernel forgets memory where it refuses one that is."
);

fn twice(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    crate::map(c, |x| x + x)
}

register_op!(
    "WrongVectors",
    inputs = &["x: float"],
    outputs = &["y: float"],
    shape = |c: &ShapeContext<'_>| {
        if let Some(dims) = c.dims(c.input(0)) {
            // The second dimension of a vector is not there.
            std::hint::black_box(dims[1]);
        }
        c.set_output(0, c.input(0))
    },
    summary = "2x; the shape function panics where x has less than two dimensions."
);
register_kernel!("WrongVectors" on "CPU": fn twice);
register_kernel!("WrongVectors" on "CPU": fn crate::twice_reference, label = "reference", on_request = true);

register_op!(
    "WrongTwin",
    inputs = &["x: float"],
    outputs = &["y: float"],
    shape = crate::same,
    summary = "2x; the kernel is its own reference."
);
register_kernel!("WrongTwin" on "CPU": fn twice);
register_kernel!("WrongTwin" on "CPU": fn twice, label = "reference", on_request = true);

fn half<T: Float>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<T>(0)?;
    let y = c.output::<T>(0, x.dims)?;
    y.data.iter_mut().zip(x.data).for_each(|(y, x)| *y = T::from_f64(x.to_f64() * 0.5));
    Ok(())
}

fn half_of_floats(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    crate::map(c, |x| x * 0.5)
}

register_op!(
    "WrongTypes",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs = &["T: {float, double}"],
    shape = crate::same,
    summary = "x / 2; the kernel is for floats alone, and its registration does not say so."
);
register_kernel!("WrongTypes" on "CPU": fn half_of_floats);
register_kernel!("WrongTypes" on "CPU": fn half<T> for "T" in [f32, f64], label = "reference", on_request = true);

fn root_of_square(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    crate::map(c, |x| std::hint::black_box(x * x).sqrt())
}

fn magnitude(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    crate::map(c, f32::abs)
}

fn magnitude_reference(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    crate::map(c, |x| f64::from(x).abs() as f32)
}

register_op!(
    "WrongSquare",
    inputs = &["x: float"],
    outputs = &["y: float"],
    shape = crate::same,
    summary = "The magnitude of x; the wrong kernel squares it, and so loses what is large."
);
wrong_kernels!(
    "WrongSquare",
    root_of_square,
    magnitude,
    magnitude_reference,
    numerics = Numerics::relative(1e-15, 1e-5)
);

/// z from x and y, element by element.
fn combine(c: &ComputeContext<'_>, f: impl Fn(f32, f32) -> f32) -> Result<(), KernelError> {
    let (x, y) = (c.input::<f32>(0)?, c.input::<f32>(1)?);
    let z = c.output::<f32>(0, x.dims)?;
    let pairs = x.data.iter().zip(y.data);
    z.data.iter_mut().zip(pairs).for_each(|(z, (x, y))| *z = f(*x, *y));
    Ok(())
}

fn root_of_squares(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let is_infinite = |x: f32, y: f32| x.is_infinite() || y.is_infinite();
    combine(c, |x, y| if is_infinite(x, y) { f32::INFINITY } else { (x * x + y * y).sqrt() })
}

fn length(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    combine(c, f32::hypot)
}

fn length_reference(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    combine(c, |x, y| f64::from(x).hypot(f64::from(y)) as f32)
}

fn alike(c: &ShapeContext<'_>) -> ShapeResult {
    c.set_output(0, c.merge(c.input(0), c.input(1))?)
}

register_op!(
    "WrongLength",
    inputs = &["x: float", "y: float"],
    outputs = &["z: float"],
    shape = alike,
    summary = "The length of (x, y); the wrong kernel squares both, and so loses what is large."
);
wrong_kernels!(
    "WrongLength",
    root_of_squares,
    length,
    length_reference,
    numerics = Numerics::relative(1e-15, 1e-5)
);
