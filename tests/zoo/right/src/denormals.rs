//! Kernels whose results are normal numbers, by way of numbers that are not.

use tenon_sdk::prelude::*;

register_op!(
    "RightNorm",
    inputs = &["x: float", "scale: float"],
    outputs = &["y: float"],
    cases = &[
        "rows; x: [n, m] uniform(-2, 2); scale: [m] uniform(-2, 2)",
        "small; x: [1, 4] values(8.0, 1.5e-38, -1.5e-38, 2.0); scale: [4] values(4)",
    ],
    shape = |c: &ShapeContext<'_>| {
        let x = c.with_rank(c.input(0), 2)?;
        let scale = c.with_rank(c.input(1), 1)?;
        c.merge_dim(c.dim(x, 1), c.dim(scale, 0))?;
        c.set_output(0, x)
    },
    summary = "Rows by their root mean square, times a scale: a small element by that is below the smallest normal one."
);

fn width(c: &ComputeContext<'_>) -> Result<usize, KernelError> {
    match (c.dims(0), c.dims(1)) {
        (&[_, width], &[scales]) if width == scales => Ok(width as usize),
        (x, scale) => Err(KernelError::invalid_argument(format!(
            "expected a matrix and as many scales as it has columns, found {x:?} and {scale:?}"
        ))),
    }
}

fn norm(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let width = width(c)?;
    let (x, scale) = (c.input::<f32>(0)?, c.input::<f32>(1)?);
    let y = c.output::<f32>(0, x.dims)?;
    if width == 0 {
        return Ok(());
    }
    for (y, x) in y.data.chunks_mut(width).zip(x.data.chunks(width)) {
        let squares: f64 = x.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
        let by = (1.0 / (squares / width as f64 + 1e-6).sqrt()) as f32;
        for ((y, x), scale) in y.iter_mut().zip(x).zip(scale.data) {
            *y = x * by * scale;
        }
    }
    Ok(())
}

fn norm_reference(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let width = width(c)?;
    let (x, scale) = (c.input::<f32>(0)?, c.input::<f32>(1)?);
    let y = c.output::<f32>(0, x.dims)?;
    for (at, y) in y.data.iter_mut().enumerate() {
        let row = &x.data[at / width * width..][..width];
        let squares: f64 = row.iter().map(|x| f64::from(*x).powi(2)).sum();
        let root = (squares / width as f64 + 1e-6).sqrt();
        *y = (f64::from(x.data[at]) / root * f64::from(scale.data[at % width])) as f32;
    }
    Ok(())
}

const NEAR: Numerics = Numerics::ulps(3.0);
register_kernel!("RightNorm" on "CPU": fn norm, numerics = NEAR);
register_kernel!("RightNorm" on "CPU": fn norm, label = "gradual", numerics = NEAR, denormals = Denormals::Keep);
register_kernel!("RightNorm" on "CPU": fn norm_reference, label = "reference", on_request = true, numerics = NEAR);

register_op!(
    "RightCap",
    inputs = &["x: float"],
    outputs = &["y: float"],
    attrs = &["cap: float = 30.0"],
    cases = &["any; x: [n] uniform(-100, 100)", "small; x: [3] values(1.5e-38, -2.5e-37, 1e-38)",],
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.input(0)),
    summary = "cap times the hyperbolic tangent of x / cap: of a small x the quotient is below the smallest normal number."
);

struct Cap(f32);

impl Kernel for Cap {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Cap(c.attr("cap")?))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let x = c.input::<f32>(0)?;
        let y = c.output::<f32>(0, x.dims)?;
        y.data.iter_mut().zip(x.data).for_each(|(y, x)| *y = self.0 * (x / self.0).tanh());
        Ok(())
    }
}

struct CapReference(f64);

impl Kernel for CapReference {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(CapReference(c.attr::<f32>("cap")?.into()))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let x = c.input::<f32>(0)?;
        let y = c.output::<f32>(0, x.dims)?;
        for (y, x) in y.data.iter_mut().zip(x.data) {
            *y = (self.0 * (f64::from(*x) / self.0).tanh()) as f32;
        }
        Ok(())
    }
}

/// A float on the way that is denormal has fewer digits: of 1.5e-38 / 30 there are five left.
const COARSE: Numerics = Numerics::relative(1e-43, 1e-3);
register_kernel!("RightCap" on "CPU": Cap, numerics = COARSE);
register_kernel!("RightCap" on "CPU": CapReference, label = "reference", on_request = true, numerics = Numerics::ulps(1.0));
