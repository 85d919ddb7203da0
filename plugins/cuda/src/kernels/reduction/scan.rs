//! `Cumsum`, `Cumprod`, `CumulativeLogsumexp`.

use super::{FLOATS, NUMBERS};
use crate::{
    compile::{Entry, Source, Variant},
    kernels::dtype::name_of,
    launch::{Grid, Launch, THREADS, device_for},
    source,
};
use tenon_sdk::{DType, KernelError, geometry::AxisSplit, prelude::*, reg::Numerics};

static SOURCE: Source = source!("scan.cu");

pub(super) fn variants() -> Vec<Variant> {
    let both = NUMBERS.iter().flat_map(|dtype| ["Sum", "Prod"].map(|fold| variant(*dtype, fold)));
    let floats = FLOATS.iter().map(|dtype| variant(*dtype, "LogSumExp"));
    both.chain(floats).filter_map(Result::ok).collect()
}

fn variant(dtype: DType, fold: &str) -> Result<Variant, KernelError> {
    let element = name_of(dtype)?;
    Ok(Variant::new(&SOURCE).define("DTYPE", element).define("FOLD", format!("{fold}<{element}>")))
}

/// `Scan` of `scan.cu`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Extents {
    outer: u64,
    len: u64,
    inner: u64,
    exclusive: u32,
    reverse: u32,
}

struct Scan {
    exclusive: bool,
    reverse: bool,
    rows: [Entry<(u64, u64, Extents)>; 2],
    columns: Entry<(u64, u64, Extents)>,
}

impl Kernel for Scan {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let fold = match c.op() {
            "Cumprod" => "Prod",
            "CumulativeLogsumexp" => "LogSumExp",
            _ => "Sum",
        };
        let module = device_for(c)?.modules().get(&variant(c.input_types()[0], fold)?)?;
        let (exclusive, reverse) = (c.attr("exclusive")?, c.attr("reverse")?);
        // SAFETY: these take two addresses and extents, whose layout a test compares.
        unsafe {
            let rows = [module.entry("scan_rows")?, module.entry("scan_rows_packed")?];
            Ok(Scan { exclusive, reverse, rows, columns: module.entry("scan_columns")? })
        }
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let split = AxisSplit::new("axis", c.dims(0), c.integer(1, "axis")?)?;
        let [outer, len, inner] = [split.outer as u64, split.len as u64, split.inner as u64];
        let launch = Launch::new(c)?;
        let (x, y) = (launch.input(0)?, launch.output(0, c.dims(0))?);
        if x.elements == 0 {
            return Ok(());
        }
        let (exclusive, reverse) = (self.exclusive.into(), self.reverse.into());
        let extents = Extents { outer, len, inner, exclusive, reverse };
        let arguments = (y.address, x.address, extents);
        if inner > 1 {
            let grid = Grid::stride(outer.saturating_mul(inner), launch.facts());
            // SAFETY: both operands have `outer * len * inner` elements.
            return unsafe { launch.run(&self.columns, grid, arguments) };
        }
        let lanes = x.dtype.size().map_or(1, |size| 16 / (size as u64).clamp(1, 16));
        let packed = len.is_multiple_of(lanes) && x.is_aligned(16) && y.is_aligned(16);
        let full = u64::from(launch.facts().multiprocessors) * 8;
        let grid = Grid::new(outer.min(full) as u32, THREADS);
        // SAFETY: as above; packs are asked for where rows are whole ones and aligned.
        unsafe { launch.run(&self.rows[usize::from(packed)], grid, arguments) }
    }
}

super::rounding_kernels! {
    "Cumsum": Scan, host_memory = &["axis"];
    "Cumprod": Scan, host_memory = &["axis"];
}

register_kernel!("Cumsum" on "CUDA": Scan, types = ("T", super::INTEGERS),
    host_memory = &["axis"], numerics = Numerics::EXACT);
register_kernel!("Cumprod" on "CUDA": Scan, types = ("T", super::INTEGERS),
    host_memory = &["axis"], numerics = Numerics::EXACT);

/// The logarithm takes relative errors of the sum for absolute ones of the result.
macro_rules! logarithms {
    ($($dtype:ident: $absolute:literal, $relative:literal, $accumulation:ident;)*) => {$(
        register_kernel!("CumulativeLogsumexp" on "CUDA": Scan, types = ("T", &[DType::$dtype]),
            host_memory = &["axis"],
            numerics = Numerics::relative($absolute, $relative).accumulation(DType::$accumulation));
    )*};
}

logarithms! {
    FLOAT: 1e-5, 1e-5, FLOAT;
    DOUBLE: 1e-13, 1e-13, DOUBLE;
    HALF: 1e-5, 2e-3, FLOAT;
    BFLOAT16: 1e-5, 1.6e-2, FLOAT;
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_layout_is_that_of_the_source() {
        assert_eq!(size_of::<super::Extents>(), 32);
    }
}
