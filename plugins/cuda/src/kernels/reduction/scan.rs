//! `Cumsum`, `Cumprod`, `CumulativeLogsumexp`.

use super::{FLOATS, NUMBERS};
use crate::{
    compile::{Entry, Source, Variant},
    kernels::dtype::name_of,
    launch::{Grid, Launch, Operand, THREADS, device_for},
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

/// `Scan` in `scan.cu`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Extents {
    outer: u64,
    len: u64,
    inner: u64,
    part: u64,
    parts: u32,
    exclusive: u32,
    reverse: u32,
    unused: u32,
}

/// Most parts of a line: each part reads the totals of all before it.
const MOST_PARTS: u64 = 1024;

/// Elements of each part of a line, in whole `step`s, and the number of parts: about `wanted` parts
/// over all lines, none shorter than `least`.
fn split([lines, len]: [u64; 2], wanted: u64, least: u64, step: u64) -> (u64, u32) {
    let parts = (wanted / lines.max(1)).min(len / least).clamp(1, MOST_PARTS);
    let part = len.div_ceil(parts).next_multiple_of(step);
    (part, len.div_ceil(part) as u32)
}

/// Bytes of a partial result: 16-bit floats are summed in 32 bits.
fn state_size(dtype: DType) -> usize {
    match dtype {
        DType::HALF | DType::BFLOAT16 => 4,
        other => other.size().unwrap_or(8),
    }
}

type Total = Entry<(u64, u64, Extents)>;
type Lines = Entry<(u64, u64, u64, Extents)>;

struct Scan {
    exclusive: bool,
    reverse: bool,
    rows: [Lines; 2],
    columns: Lines,
    total_rows: Total,
    total_columns: Total,
}

impl Kernel for Scan {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let fold = match c.op() {
            "Cumprod" => "Prod",
            "CumulativeLogsumexp" => "LogSumExp",
            _ => "Sum",
        };
        let module = device_for(c)?.modules().get(&variant(c.input_types()[0], fold)?)?;
        // SAFETY: scans take three addresses and extents, totals two addresses and extents; a test
        // compares the layout of the extents.
        unsafe {
            Ok(Scan {
                exclusive: c.attr("exclusive")?,
                reverse: c.attr("reverse")?,
                rows: [module.entry("scan_rows")?, module.entry("scan_rows_packed")?],
                columns: module.entry("scan_columns")?,
                total_rows: module.entry("total_rows")?,
                total_columns: module.entry("total_columns")?,
            })
        }
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let axis = AxisSplit::new("axis", c.dims(0), c.integer(1, "axis")?)?;
        let [outer, len, inner] = [axis.outer as u64, axis.len as u64, axis.inner as u64];
        let launch = Launch::new(c)?;
        let (x, y) = (launch.input(0)?, launch.output(0, c.dims(0))?);
        if x.elements == 0 {
            return Ok(());
        }
        let multiprocessors = u64::from(launch.facts().multiprocessors);
        let (exclusive, reverse) = (self.exclusive.into(), self.reverse.into());
        let extents = |(part, parts)| Extents {
            outer,
            len,
            inner,
            part,
            parts,
            exclusive,
            reverse,
            unused: 0,
        };
        if inner > 1 {
            let columns = outer.saturating_mul(inner);
            let scan = extents(split([columns, len], multiprocessors * 1024, 64, 1));
            let grid = Grid::stride(columns.saturating_mul(scan.parts.into()), launch.facts());
            return enqueue(&launch, [x, y], scan, grid, (&self.total_columns, &self.columns));
        }
        let lanes = x.dtype.size().map_or(1, |size| 16 / (size as u64).clamp(1, 16));
        let packed = len.is_multiple_of(lanes) && x.is_aligned(16) && y.is_aligned(16);
        let step = u64::from(THREADS) * lanes;
        let scan = extents(split([outer, len], multiprocessors * 4, 4 * step, step));
        let items = outer.saturating_mul(scan.parts.into());
        let grid = Grid::fill(items, THREADS, launch.facts());
        let rows = &self.rows[usize::from(packed)];
        enqueue(&launch, [x, y], scan, grid, (&self.total_rows, rows))
    }
}

/// Enqueues a scan, preceded by the totals of its parts where there are several.
fn enqueue(
    launch: &Launch<'_>,
    [x, y]: [Operand; 2],
    scan: Extents,
    grid: Grid,
    (total, lines): (&Total, &Lines),
) -> Result<(), KernelError> {
    let mut totals = 0;
    if scan.parts > 1 {
        // Below the number of elements.
        let count = scan.outer * scan.inner * u64::from(scan.parts);
        totals = launch.scratch(count as usize * state_size(x.dtype))?;
        // SAFETY: there is room for a total of each part, and X has `outer * len * inner` elements.
        unsafe { launch.run(total, grid, (totals, x.address, scan))? };
    }
    // SAFETY: as above, and Y has as many elements; packs are used only where rows are whole
    // aligned packs.
    unsafe { launch.run(lines, grid, (y.address, x.address, totals, scan)) }
}

super::rounding_kernels! {
    "Cumsum": Scan, host_memory = &["axis"];
    "Cumprod": Scan, host_memory = &["axis"];
}

register_kernel!("Cumsum" on "CUDA": Scan, types = ("T", super::INTEGERS),
    host_memory = &["axis"], numerics = Numerics::EXACT);
register_kernel!("Cumprod" on "CUDA": Scan, types = ("T", super::INTEGERS),
    host_memory = &["axis"], numerics = Numerics::EXACT);

/// The logarithm turns relative errors of the sum into absolute ones of the result.
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
    use super::*;

    #[test]
    fn the_layout_is_that_of_the_source() {
        assert_eq!(size_of::<Extents>(), 48);
    }

    #[test]
    fn parts_are_whole_steps_and_all_that_there_is() {
        // One long row needs splitting to fill the GPU, many rows fill it without, and a short one
        // is not worth splitting.
        assert_eq!(split([1, 1 << 24], 528, 4096, 1024), (32_768, 512));
        assert_eq!(split([600, 1 << 24], 528, 4096, 1024), (1 << 24, 1));
        assert_eq!(split([1, 8000], 528, 4096, 1024), (8192, 1));
        assert_eq!(split([8, 1 << 20], 1 << 17, 64, 1), (1024, 1024));
        assert_eq!(split([8, 1 << 30], 1 << 17, 64, 1), (1 << 20, 1024));
        for len in [1, 1000, 4095, 4096, 4097, 1_000_003] {
            let (part, parts) = split([3, len], 100, 64, 16);
            assert!(part % 16 == 0 && part * u64::from(parts) >= len);
            assert!(part * u64::from(parts - 1) < len, "none is empty: {len}");
        }
    }
}
