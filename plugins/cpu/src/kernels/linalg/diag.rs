//! Diagonals and bands of matrices. Elements are moved as bytes, without interpretation.

use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::{DiagAlign, DiagBand, DiagGeometry, Diagonal, Dims, GeometryError, element_count},
    growth,
    reg::{Numerics, join_types},
    register_kernel,
};

use crate::kernels::array::NUMBERS;

/// Types that are moved.
const MOVED: &[DType] =
    &join_types::<{ NUMBERS.len() + 2 }>(NUMBERS, &[DType::COMPLEX64, DType::COMPLEX128]);

/// Types of TensorFlow's `Diag` and `DiagPart`.
const DIAG: &[DType] = &[
    DType::HALF,
    DType::FLOAT,
    DType::DOUBLE,
    DType::INT32,
    DType::INT64,
    DType::COMPLEX64,
    DType::COMPLEX128,
];

/// The elements of an input.
fn elements<'a, const N: usize>(
    c: &ComputeContext<'a>,
    input: usize,
) -> Result<&'a [[u8; N]], KernelError> {
    Ok(c.input_bytes(input)?.as_chunks().0)
}

/// The elements of output 0, for writing.
fn output<'a, const N: usize>(
    c: &ComputeContext<'a>,
    dims: &[i64],
) -> Result<&'a mut [[u8; N]], KernelError> {
    Ok(c.output_bytes(0, dims)?.as_chunks_mut().0)
}

/// Calls a function for the size of an input's elements.
macro_rules! by_size {
    ($c:expr, $function:ident($($argument:expr),*)) => {
        match $c.slot(0)?.dtype.size() {
            Some(1) => $function::<1>($($argument),*),
            Some(2) => $function::<2>($($argument),*),
            Some(4) => $function::<4>($($argument),*),
            Some(8) => $function::<8>($($argument),*),
            Some(16) => $function::<16>($($argument),*),
            size => Err(KernelError::internal(format!("elements of {size:?} bytes"))),
        }
    };
}

/// Runs `body` for each part of `len` elements of the output and its index, on the host's threads
/// if that is worthwhile.
fn for_parts<const N: usize>(
    c: &ComputeContext<'_>,
    y: &mut [[u8; N]],
    len: usize,
    body: impl Fn(usize, &mut [[u8; N]]) + Sync,
) -> Result<(), KernelError> {
    /// Number of elements below which using threads takes longer.
    const MANY: usize = 1 << 16;
    let parts = y.chunks_mut(len.max(1));
    if parts.len() < 2 || parts.len() * len < MANY {
        parts.enumerate().for_each(|(number, part)| body(number, part));
        return Ok(());
    }
    c.parallel_items(parts, len as f64, |number, part| {
        body(number, part);
        Ok(())
    })
}

/// Copies `count` elements that are `from` and `to` elements apart.
fn copy<const N: usize>(
    (x, from): (&[[u8; N]], usize),
    (y, to): (&mut [[u8; N]], usize),
    count: usize,
) {
    if count > 0 {
        for (y, x) in y.iter_mut().step_by(to).zip(x.iter().step_by(from)).take(count) {
            *y = *x;
        }
    }
}

/// Writes the diagonals of one matrix.
fn place<const N: usize>(g: &DiagGeometry, all: &[Diagonal], x: &[[u8; N]], y: &mut [[u8; N]]) {
    for diagonal in all.iter().filter(|diagonal| diagonal.len > 0) {
        copy((&x[diagonal.packed..], 1), (&mut y[diagonal.matrix..], g.cols + 1), diagonal.len);
    }
}

/// Makes matrices from packed diagonals.
fn make<const N: usize>(
    c: &ComputeContext<'_>,
    g: &DiagGeometry,
    align: DiagAlign,
    dims: &[i64],
    padding: [u8; N],
) -> Result<(), KernelError> {
    let (x, y) = (elements::<N>(c, 0)?, output::<N>(c, dims)?);
    let all = growth::collected(g.diagonals(align))?;
    for_parts(c, y, g.rows * g.cols, |number, y| {
        y.fill(padding);
        place(g, &all, &x[number * g.packed_len..], y);
    })
}

/// Takes packed diagonals from matrices.
fn take<const N: usize>(
    c: &ComputeContext<'_>,
    g: &DiagGeometry,
    align: DiagAlign,
    dims: &[i64],
    padding: [u8; N],
) -> Result<(), KernelError> {
    let (x, y) = (elements::<N>(c, 0)?, output::<N>(c, dims)?);
    let all = growth::collected(g.diagonals(align))?;
    for_parts(c, y, g.packed_len, |number, y| {
        y.fill(padding);
        let x = &x[number * g.rows * g.cols..];
        for diagonal in all.iter().filter(|diagonal| diagonal.len > 0) {
            let from = (&x[diagonal.matrix..], g.cols + 1);
            copy(from, (&mut y[diagonal.packed..], 1), diagonal.len);
        }
    })
}

/// Replaces the diagonals of matrices.
fn replace<const N: usize>(
    c: &ComputeContext<'_>,
    g: &DiagGeometry,
    align: DiagAlign,
) -> Result<(), KernelError> {
    let (x, diagonals) = (elements::<N>(c, 0)?, elements::<N>(c, 1)?);
    let y = output::<N>(c, &g.matrices)?;
    let all = growth::collected(g.diagonals(align))?;
    let len = g.rows * g.cols;
    for_parts(c, y, len, |number, y| {
        y.copy_from_slice(&x[number * len..][..len]);
        place(g, &all, &diagonals[number * g.packed_len..], y);
    })
}

/// A single diagonal fills its place, with any alignment.
const LEFT: DiagAlign = DiagAlign { upper_left: true, lower_left: true };

fn make_main<const N: usize>(
    c: &ComputeContext<'_>,
    g: &DiagGeometry,
    dims: &[i64],
) -> Result<(), KernelError> {
    make(c, g, LEFT, dims, [0; N])
}

fn take_main<const N: usize>(
    c: &ComputeContext<'_>,
    g: &DiagGeometry,
    dims: &[i64],
) -> Result<(), KernelError> {
    take(c, g, LEFT, dims, [0; N])
}

fn diag(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let dims = c.dims(0);
    if dims.is_empty() {
        return Err(GeometryError::RankTooSmall { what: "diagonal", expected: 1, found: 0 }.into());
    }
    let mut output = Dims::from_slice(dims)?;
    dims.iter().try_for_each(|&size| output.push(size))?;
    element_count(&output)?;
    // Treated as a matrix whose diagonal is the whole input.
    let len = element_count(dims)? as i64;
    let g = DiagGeometry::of_packed(&[len], DiagBand::MAIN, [-1, -1])?;
    by_size!(c, make_main(c, &g, &output))
}

fn diag_part(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let dims = c.dims(0);
    let (first, second) = dims.split_at(dims.len() / 2);
    if dims.is_empty() || first != second {
        return Err(KernelError::invalid_argument(format!(
            "input must have twice the same dimensions, found {dims:?}"
        )));
    }
    let len = element_count(first)? as i64;
    let g = DiagGeometry::of_matrices("input", &[len, len], DiagBand::MAIN)?;
    by_size!(c, take_main(c, &g, first))
}

fn matrix_diag(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let g = DiagGeometry::of_packed(c.dims(0), DiagBand::MAIN, [-1, -1])?;
    by_size!(c, make_main(c, &g, &g.matrices))
}

fn matrix_diag_part(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let g = DiagGeometry::of_matrices("input", c.dims(0), DiagBand::MAIN)?;
    by_size!(c, take_main(c, &g, &g.packed))
}

/// The diagonals that input `k` specifies.
fn band(c: &ComputeContext<'_>, input: usize) -> Result<DiagBand, KernelError> {
    Ok(DiagBand::new(&c.integer_list(input, "k")?)?)
}

/// The geometry of an input whose diagonals are replaced.
fn replaced(c: &ComputeContext<'_>, band: DiagBand) -> Result<DiagGeometry, KernelError> {
    let g = DiagGeometry::of_matrices("input", c.dims(0), band)?;
    if c.dims(1) != g.packed.as_slice() {
        return Err(KernelError::invalid_argument(format!(
            "diagonal must have shape {:?} for an input of shape {:?}, found {:?}",
            g.packed,
            c.dims(0),
            c.dims(1)
        )));
    }
    Ok(g)
}

fn matrix_set_diag(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let g = replaced(c, DiagBand::MAIN)?;
    by_size!(c, replace(c, &g, LEFT))
}

/// The value between diagonals.
fn padding<const N: usize>(c: &ComputeContext<'_>, input: usize) -> Result<[u8; N], KernelError> {
    match elements::<N>(c, input)? {
        [value] if c.dims(input).is_empty() => Ok(*value),
        _ => Err(KernelError::invalid_argument(format!(
            "padding_value must be a scalar, found shape {:?}",
            c.dims(input)
        ))),
    }
}

/// The ops of bands of diagonals. Those before the attribute `align` have all of them left.
struct Aligned<const OP: usize>(DiagAlign);

const MAKE: usize = 0;
const TAKE: usize = 1;
const REPLACE: usize = 2;

impl<const OP: usize> Kernel for Aligned<OP> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let is_older = c.op().ends_with("V2");
        Ok(Aligned(if is_older { LEFT } else { DiagAlign::new(c.attr("align")?)? }))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let align = self.0;
        match OP {
            MAKE => {
                let size = [c.integer(2, "num_rows")?, c.integer(3, "num_cols")?];
                let g = DiagGeometry::of_packed(c.dims(0), band(c, 1)?, size)?;
                by_size!(c, make_padded(c, &g, align))
            }
            TAKE => {
                let g = DiagGeometry::of_matrices("input", c.dims(0), band(c, 1)?)?;
                by_size!(c, take_padded(c, &g, align))
            }
            _ => {
                let g = replaced(c, band(c, 2)?)?;
                by_size!(c, replace(c, &g, align))
            }
        }
    }
}

fn make_padded<const N: usize>(
    c: &ComputeContext<'_>,
    g: &DiagGeometry,
    align: DiagAlign,
) -> Result<(), KernelError> {
    make(c, g, align, &g.matrices, padding::<N>(c, 4)?)
}

fn take_padded<const N: usize>(
    c: &ComputeContext<'_>,
    g: &DiagGeometry,
    align: DiagAlign,
) -> Result<(), KernelError> {
    take(c, g, align, &g.packed, padding::<N>(c, 2)?)
}

fn matrix_band_part(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let dims = c.dims(0);
    let Some(&[rows, cols]) = dims.last_chunk() else {
        let found = dims.len();
        return Err(GeometryError::RankTooSmall { what: "input", expected: 2, found }.into());
    };
    let [lower, upper] =
        [(1, "num_lower", rows), (2, "num_upper", cols)].map(|(at, name, most)| {
            let value = c.integer(at, name)?;
            if value > most {
                return Err(KernelError::invalid_argument(format!(
                    "{name} must be negative or at most {most}, found {value}"
                )));
            }
            Ok(if value < 0 { most } else { value } as usize)
        });
    let (rows, cols) = (rows as usize, cols as usize);
    by_size!(c, keep_band(c, [rows, cols], [lower?, upper?]))
}

fn keep_band<const N: usize>(
    c: &ComputeContext<'_>,
    [rows, cols]: [usize; 2],
    [lower, upper]: [usize; 2],
) -> Result<(), KernelError> {
    let (x, y) = (elements::<N>(c, 0)?, output::<N>(c, c.dims(0))?);
    for_parts(c, y, cols, |number, y| {
        let (row, x) = (number % rows, &x[number * cols..][..cols]);
        let first = row.saturating_sub(lower).min(cols);
        let end = (row + upper + 1).clamp(first, cols);
        y[..first].fill([0; N]);
        y[first..end].copy_from_slice(&x[first..end]);
        y[end..].fill([0; N]);
    })
}

register_kernel!("Diag" on "CPU": fn diag, types = ("T", DIAG), numerics = Numerics::EXACT);
register_kernel!("DiagPart" on "CPU": fn diag_part, types = ("T", DIAG),
    numerics = Numerics::EXACT);
register_kernel!("MatrixDiag" on "CPU": fn matrix_diag, types = ("T", MOVED),
    numerics = Numerics::EXACT);
register_kernel!("MatrixDiagV3" on "CPU": Aligned<MAKE>, types = ("T", MOVED),
    host_memory = &["k", "num_rows", "num_cols", "padding_value"], numerics = Numerics::EXACT);
register_kernel!("MatrixDiagV2" on "CPU": Aligned<MAKE>, types = ("T", MOVED),
    host_memory = &["k", "num_rows", "num_cols", "padding_value"], numerics = Numerics::EXACT);
register_kernel!("MatrixDiagPart" on "CPU": fn matrix_diag_part, types = ("T", MOVED),
    numerics = Numerics::EXACT);
register_kernel!("MatrixDiagPartV3" on "CPU": Aligned<TAKE>, types = ("T", MOVED),
    host_memory = &["k", "padding_value"], numerics = Numerics::EXACT);
register_kernel!("MatrixDiagPartV2" on "CPU": Aligned<TAKE>, types = ("T", MOVED),
    host_memory = &["k", "padding_value"], numerics = Numerics::EXACT);
register_kernel!("MatrixSetDiag" on "CPU": fn matrix_set_diag, types = ("T", MOVED),
    numerics = Numerics::EXACT);
register_kernel!("MatrixSetDiagV3" on "CPU": Aligned<REPLACE>, types = ("T", MOVED),
    host_memory = &["k"], numerics = Numerics::EXACT);
register_kernel!("MatrixSetDiagV2" on "CPU": Aligned<REPLACE>, types = ("T", MOVED),
    host_memory = &["k"], numerics = Numerics::EXACT);
register_kernel!("MatrixBandPart" on "CPU": fn matrix_band_part, types = ("T", MOVED),
    host_memory = &["num_lower", "num_upper"], numerics = Numerics::EXACT);
