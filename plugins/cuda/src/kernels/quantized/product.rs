//! A product as launches of `quantized_gemm.cu`.

use crate::{
    compile::{Entry, Source, Variant},
    launch::{Grid, Launch, Operand, device_for},
    source,
};
use tenon_sdk::{
    DType, KernelError, author::ComputeContext, author::CreateContext, geometry::MatMulGeometry,
};

static SOURCE: Source = source!("quantized_gemm.cu");

/// Every variant: both types of both factors.
pub(in crate::kernels) fn variants() -> Vec<Variant> {
    let types = [DType::QUINT8, DType::QINT8];
    let pairs = types.iter().flat_map(|a| types.iter().map(move |b| [*a, *b]));
    pairs.filter_map(|pair| variant(pair).ok()).collect()
}

fn variant([a, b]: [DType; 2]) -> Result<Variant, KernelError> {
    Ok(Variant::new(&SOURCE).define("A_TYPE", byte_of(a)?).define("B_TYPE", byte_of(b)?))
}

fn byte_of(dtype: DType) -> Result<&'static str, KernelError> {
    match dtype {
        DType::QUINT8 => Ok("u8"),
        DType::QINT8 => Ok("i8"),
        other => Err(KernelError::unimplemented(format!("CUDA multiplies no values of {other}"))),
    }
}

/// What is done with sums: `Form` in `quantized_output.cuh`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Form {
    /// Clamp them.
    Sums = 0,
    /// Multiply them by a float and clamp them as floats.
    Real = 1,
    /// Multiply them by a float and round them.
    Float = 2,
    /// Multiply them in fixed point.
    FixedPoint = 3,
}

/// `Stage` in `quantized_output.cuh`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Stage {
    /// The operation on the sums.
    pub form: Form,
    /// The least result.
    pub low: i32,
    /// The greatest result.
    pub high: i32,
    /// Added to the result.
    pub zero_point: i32,
}

/// `Column` in `quantized_output.cuh`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C, align(16))]
pub(super) struct Column {
    /// Initial value of a sum, without the sum of the column.
    pub base: i32,
    /// Factor of the sum of the row.
    pub slope: i32,
    /// The bits of a float, or a mantissa.
    pub multiplier: i32,
    /// The exponent of a mantissa.
    pub exponent: i32,
}

/// Most columns of one launch: its parameters have 4 KiB at most.
const MOST_COLUMNS: usize = 240;

/// `Columns` in `quantized_gemm.cu`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Columns {
    to: u64,
    first: u32,
    count: u32,
    repeats: u32,
    unused: u32,
    /// Padding: the device aligns `values` to 16 bytes.
    unused_too: u64,
    values: [Column; MOST_COLUMNS],
}

/// `Product` in `quantized_gemm.cu`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Parameters {
    a: u64,
    b: u64,
    c: u64,
    columns: u64,
    rows: u64,
    m: u32,
    n: u32,
    k: u32,
    flags: u32,
    left_zero: i32,
    bytes: u32,
    stage: Stage,
}

/// Rows and columns of a tile, and threads of its block.
const TILE: u64 = 64;
const THREADS: u32 = 128;

/// The kernels of a node.
pub(super) struct Product {
    transposed: [bool; 2],
    columns: Entry<(Columns,)>,
    row_sums: Entry<(Parameters,)>,
    column_sums: Entry<(Parameters,)>,
    gemm: Entry<(Parameters,)>,
}

fn small(size: usize) -> Result<u32, KernelError> {
    let size = u32::try_from(size).ok().filter(|size| *size < 1 << 31);
    size.ok_or_else(|| {
        KernelError::unimplemented("a product of matrices with 2^31 rows, columns or terms or more")
    })
}

impl Product {
    /// The kernels for factors of these types, optionally transposed.
    ///
    /// # Errors
    /// `UNAVAILABLE` without a compiler; the compiler's error.
    pub fn new(
        c: &CreateContext<'_>,
        types: [DType; 2],
        transposed: [bool; 2],
    ) -> Result<Product, KernelError> {
        let module = device_for(c)?.modules().get(&variant(types)?)?;
        // SAFETY: the first takes a `Columns`, the others a `Product`, of which these are the
        // layouts.
        unsafe {
            Ok(Product {
                transposed,
                columns: module.entry("quantized_columns")?,
                row_sums: module.entry("row_sums")?,
                column_sums: module.entry("column_sums")?,
                gemm: module.entry("quantized_gemm")?,
            })
        }
    }

    /// The sizes of a call.
    ///
    /// # Errors
    /// The shapes of the inputs do not match.
    pub fn geometry(&self, c: &ComputeContext<'_>) -> Result<MatMulGeometry, KernelError> {
        let [a, b] = self.transposed;
        Ok(MatMulGeometry::new(c.dims(0), c.dims(1), a, b)?)
    }

    /// Enqueues the product of values minus their zero points, `left_zero` and, negated, the
    /// columns' slopes. `columns` has an element for each column, or one for all.
    ///
    /// # Errors
    /// Out of memory; sizes of 2^31 and more; the driver's error.
    pub fn run(
        &self,
        launch: &Launch<'_>,
        g: &MatMulGeometry,
        [a, b, c]: [Operand; 3],
        left_zero: i32,
        columns: &[Column],
        stage: Stage,
    ) -> Result<(), KernelError> {
        if g.m == 0 || g.n == 0 {
            return Ok(());
        }
        let has_slopes = columns.iter().any(|column| column.slope != 0);
        let parameters = Parameters {
            a: a.address,
            b: b.address,
            c: c.address,
            columns: self.write_columns(launch, small(g.n)?, columns)?,
            rows: if has_slopes { launch.scratch(4 * g.m)? } else { 0 },
            m: small(g.m)?,
            n: small(g.n)?,
            k: small(g.k)?,
            flags: self.flags(g, [a, b, c]),
            left_zero,
            bytes: c.dtype.size().unwrap_or(4) as u32,
            stage,
        };
        let lines = |count: usize| Grid::stride(32 * count as u64, launch.facts());
        let tiles = (g.m as u64).div_ceil(TILE).saturating_mul((g.n as u64).div_ceil(TILE));
        let grid = Grid::block_each(tiles, THREADS)?;
        // SAFETY: the geometry was checked, so the operands are dense and of these sizes; there is
        // memory for each column, and for the sum of each row where it is read.
        unsafe {
            if has_slopes {
                launch.run(&self.row_sums, lines(g.m), (parameters,))?;
            }
            if left_zero != 0 {
                launch.run(&self.column_sums, lines(g.n), (parameters,))?;
            }
            launch.run(&self.gemm, grid, (parameters,))
        }
    }

    /// Enqueues the copy of the values for columns to device memory.
    fn write_columns(
        &self,
        launch: &Launch<'_>,
        count: u32,
        columns: &[Column],
    ) -> Result<u64, KernelError> {
        let to = launch.scratch(count as usize * size_of::<Column>())?;
        let repeats = columns.len() == 1;
        for (at, part) in columns.chunks(MOST_COLUMNS).enumerate() {
            let mut values = [Column::default(); MOST_COLUMNS];
            values[..part.len()].copy_from_slice(part);
            let count = if repeats { count } else { part.len() as u32 };
            let first = (at * MOST_COLUMNS) as u32;
            let part = Columns {
                to,
                first,
                count,
                repeats: repeats.into(),
                unused: 0,
                unused_too: 0,
                values,
            };
            let grid = Grid::stride(count.into(), launch.facts());
            // SAFETY: there is memory for `count` columns.
            unsafe { launch.run(&self.columns, grid, (part,))? };
        }
        Ok(to)
    }

    /// `Flag` in `quantized_gemm.cu`.
    fn flags(&self, g: &MatMulGeometry, [a, b, c]: [Operand; 3]) -> u32 {
        let [a_turned, b_turned] = self.transposed;
        let is_whole = |operand: Operand, line: usize, bytes: u64| {
            (line as u64).is_multiple_of(bytes) && operand.is_aligned(bytes)
        };
        // A transposed operand is read four bytes at a time.
        let a_whole = if a_turned { is_whole(a, g.m, 4) } else { is_whole(a, g.k, 16) };
        let b_whole = if b_turned { is_whole(b, g.k, 16) } else { is_whole(b, g.n, 4) };
        let size = c.dtype.size().unwrap_or(4) as u64;
        let c_whole = g.n.is_multiple_of(2) && c.is_aligned(2 * size);
        [a_turned, b_turned, a_whole, b_whole, c_whole]
            .iter()
            .enumerate()
            .map(|(bit, flag)| u32::from(*flag) << bit)
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameters_lie_as_in_cuda_c() {
        assert_eq!(std::mem::offset_of!(Columns, values), 32);
        assert!(size_of::<Columns>() <= 4096);
        assert_eq!(std::mem::offset_of!(Parameters, stage), 64);
        assert_eq!(size_of::<Parameters>(), 80);
        let source = include_str!("../cu/quantized_gemm.cu");
        assert!(source.contains(&format!("MOST_COLUMNS = {MOST_COLUMNS};")));
    }
}
