//! `LoadAndRemapMatrix`: a matrix of a checkpoint with its rows and columns in other places.

use crate::{
    inputs::text,
    restore::{check_type, shown},
};
use std::collections::HashSet;
use tenon_bundle::{Bundle, BundleError, Files, SliceFiles};
use tenon_files::{Access, path_of};
use tenon_sdk::{growth, prelude::*};

struct LoadAndRemapMatrix {
    access: Access,
    rows: usize,
    cols: usize,
}

/// A matrix of floats, as bytes in this machine's order.
struct Matrix {
    rows: i64,
    cols: i64,
    bytes: Vec<u8>,
}

impl Matrix {
    /// Reads a matrix of a checkpoint of either format.
    fn read(files: Files<'_>, prefix: &[u8], name: &[u8]) -> Result<Matrix, BundleError> {
        let path = path_of(prefix);
        if !Bundle::exists(files, &path)? {
            let mut old = SliceFiles::open(files, prefix)?;
            let Some(found) = old.find(name).map(|tensor| tensor.dtype) else {
                return Err(missing(old.name().to_owned(), name));
            };
            check_type(old.name(), name, DType::FLOAT, found)?;
            old.check(name, None)?;
            let mut matrix = Matrix::of_dims(&old.dims(name, None)?)?;
            old.read(name, None, &mut matrix.bytes)?;
            return Ok(matrix);
        }
        let (mut bundle, entry) = Bundle::open_with(files, &path, |bundle| {
            let entry = bundle.find(name)?.ok_or_else(|| missing(bundle.name(), name))?;
            check_type(&bundle.name(), name, DType::FLOAT, entry.dtype)?;
            bundle.check(name, &entry, None)?;
            Ok(entry)
        })?;
        let mut matrix = Matrix::of_dims(bundle.dims(name, &entry, None)?)?;
        bundle.read(name, &entry, None, &mut matrix.bytes)?;
        Ok(matrix)
    }

    /// A matrix of this shape, with zeros.
    fn of_dims(dims: &[i64]) -> Result<Matrix, BundleError> {
        let &[rows, cols] = dims else {
            return Err(BundleError::Argument(format!(
                "old_tensor_name: expected a matrix, found a tensor of shape {dims:?}"
            )));
        };
        let size = rows.checked_mul(cols).and_then(|count| count.checked_mul(4));
        let bytes = growth::filled(size.map_or(usize::MAX, |size| size as usize), 0)?;
        Ok(Matrix { rows, cols, bytes })
    }

    fn element(&self, row: i64, col: i64) -> f32 {
        let at = (row * self.cols + col) as usize;
        self.bytes.as_chunks::<4>().0.get(at).map_or(0.0, |bytes| f32::from_ne_bytes(*bytes))
    }
}

fn missing(checkpoint: String, name: &[u8]) -> BundleError {
    BundleError::Missing { checkpoint, names: vec![shown(name)] }
}

/// The old numbers of new rows or columns: below 0 for those that are new, and each of the others once.
fn mapping(
    c: &ComputeContext<'_>,
    input: usize,
    what: &str,
    count: usize,
) -> Result<Vec<i64>, KernelError> {
    let (dims, numbers) = (c.dims(input), c.integers(input)?);
    if dims.len() != 1 || numbers.len() != count {
        return Err(KernelError::invalid_argument(format!(
            "{what}: expected a vector of {count} numbers, found shape {dims:?}"
        )));
    }
    let mut seen = HashSet::new();
    for &number in numbers.iter().filter(|&&number| number >= 0) {
        seen.try_reserve(1).map_err(|_| {
            KernelError::new(Code::RESOURCE_EXHAUSTED, format!("{what}: no memory for its numbers"))
        })?;
        if !seen.insert(number) {
            return Err(KernelError::unimplemented(format!(
                "{what}: expected different numbers, found {number} twice"
            )));
        }
    }
    Ok(numbers)
}

/// Fails unless all numbers are those of old rows or columns.
fn check_range(what: &str, numbers: &[i64], size: i64) -> Result<(), KernelError> {
    match numbers.iter().find(|&&number| number >= size) {
        None => Ok(()),
        Some(number) => Err(KernelError::invalid_argument(format!(
            "{what}: expected numbers below {size}, the size of the old tensor, found {number}"
        ))),
    }
}

impl Kernel for LoadAndRemapMatrix {
    const MODE: Mode = Mode::Blocking;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let size = |name: &str| Ok::<_, KernelError>(c.attr::<i64>(name)?.max(0) as usize);
        Ok(LoadAndRemapMatrix {
            access: crate::access(c)?,
            rows: size("num_rows")?,
            cols: size("num_cols")?,
        })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let rows = mapping(c, 2, "row_remapping", self.rows)?;
        let is_mapped = c.dims(3) != [0];
        let cols = match is_mapped {
            true => mapping(c, 3, "col_remapping", self.cols)?,
            false => growth::collected(0..self.cols as i64)?,
        };
        let files = Files::new(&self.access, "ckpt_path");
        let (prefix, name) = (text(c, 0, "ckpt_path")?, text(c, 1, "old_tensor_name")?);
        let old = Matrix::read(files, prefix, name)?;
        if !is_mapped && old.cols != self.cols as i64 {
            return Err(KernelError::invalid_argument(format!(
                "num_cols: expected {}, the columns of the old tensor, without col_remapping, found {}",
                old.cols, self.cols
            )));
        }
        check_range("row_remapping", &rows, old.rows)?;
        check_range("col_remapping", &cols, old.cols)?;
        self.write(c, &old, &rows, &cols)
    }
}

impl LoadAndRemapMatrix {
    fn write(
        &self,
        c: &ComputeContext<'_>,
        old: &Matrix,
        rows: &[i64],
        cols: &[i64],
    ) -> Result<(), KernelError> {
        let (initial, watch) = (c.input::<f32>(4)?, c.watch());
        let mut values = initial.data.iter();
        let y = c.output::<f32>(0, &[self.rows as i64, self.cols as i64])?.data;
        for (y, &row) in y.chunks_exact_mut(self.cols.max(1)).zip(rows) {
            watch.check()?;
            for (y, &col) in y.iter_mut().zip(cols) {
                *y = match row >= 0 && col >= 0 {
                    true => old.element(row, col),
                    false => *values.next().ok_or_else(|| {
                        KernelError::invalid_argument(format!(
                            "initializing_values: expected a value for each new element, found {}",
                            initial.data.len()
                        ))
                    })?,
                };
            }
        }
        match values.len() {
            0 => Ok(()),
            left => Err(KernelError::invalid_argument(format!(
                "initializing_values: expected a value for each new element, found {left} more"
            ))),
        }
    }
}

register_kernel!("LoadAndRemapMatrix" on "CPU": LoadAndRemapMatrix, numerics = Numerics::EXACT);
