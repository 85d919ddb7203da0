//! `Cast`.

use crate::kernels::cast::{PLAIN_TYPES, by_type, supported, unsupported};
use half::{bf16, f16};
use tenon_reference::cast::{self, CastElement};
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel, Supported, Supports},
    reg::Numerics,
    register_kernel,
};

type Run = fn(&ComputeContext<'_>, bool) -> Result<(), KernelError>;

fn run<S: CastElement, D: CastElement>(
    c: &ComputeContext<'_>,
    truncate: bool,
) -> Result<(), KernelError> {
    let x = c.input::<S>(0)?;
    cast::cast(x.data, c.output::<D>(0, x.dims)?.data, truncate);
    Ok(())
}

/// Strings are cast to strings only.
fn strings(c: &ComputeContext<'_>, _truncate: bool) -> Result<(), KernelError> {
    c.set_strings(0, c.dims(0), c.strings(0)?.into_iter())
}

fn from<S: CastElement>(target: DType) -> Option<Run> {
    by_type!(target, D => Some(run::<S, D> as Run))
}

struct Cast {
    run: Run,
    truncate: bool,
}

impl Kernel for Cast {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let (source, target): (DType, DType) = (c.attr("SrcT")?, c.attr("DstT")?);
        let run: Option<Run> = match (source, target) {
            (DType::STRING, DType::STRING) => Some(strings),
            _ => by_type!(source, S => from::<S>(target)),
        };
        let run = run.ok_or_else(|| unsupported(source, target))?;
        Ok(Cast { run, truncate: c.attr("Truncate")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        (self.run)(c, self.truncate)
    }
}

impl Supports for Cast {
    fn supports(c: &CreateContext<'_>) -> Supported {
        supported(c)
    }
}

register_kernel!("Cast" on "CPU": Cast, types = ("SrcT", PLAIN_TYPES), types = ("DstT", PLAIN_TYPES),
    label = "reference", on_request = true, numerics = Numerics::EXACT);
