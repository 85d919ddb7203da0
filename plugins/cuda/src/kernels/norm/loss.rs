//! `SoftmaxCrossEntropyWithLogits`, `SparseSoftmaxCrossEntropyWithLogits`.
//!
//! A class out of range is not an error here, since classes are in the device's memory: as in
//! TensorFlow on a GPU, its loss and gradient are NaN.

use super::rows::{FLOATS, RowEntries, lanes_of, module_of};
use crate::{
    compile::{Source, Variant},
    kernels::dtype::name_of,
    launch::{Launch, Operand},
    source,
};
use tenon_sdk::{DType, KernelError, geometry::BroadcastPlan, prelude::*, reg::Numerics};

static SOURCE: Source = source!("softmax_loss.cu");

pub(super) fn variants() -> Vec<Variant> {
    let labels = |dtype: DType| [dtype, DType::INT32, DType::INT64].map(|label| (dtype, label));
    let all = FLOATS.iter().flat_map(|dtype| labels(*dtype));
    all.filter_map(|(dtype, label)| variant(dtype, label).ok()).collect()
}

/// The variant for labels of the element type, one per element, or for classes.
fn variant(dtype: DType, label: DType) -> Result<Variant, KernelError> {
    Ok(Variant::new(&SOURCE).define("DTYPE", name_of(dtype)?).define("LABEL", name_of(label)?))
}

/// `Matrix` in `softmax_loss.cu`: a matrix whose rows, and elements of a row, may repeat.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Matrix {
    data: u64,
    /// Stride of rows; for classes (`Classes`) their number.
    row: u64,
    column: u64,
}

impl Matrix {
    /// A tensor of up to two dimensions, broadcast to a matrix.
    fn new(operand: Operand, dims: &[i64]) -> Matrix {
        let (rows, columns) = match dims {
            [.., rows, columns] => (*rows, *columns),
            [columns] => (1, *columns),
            [] => (1, 1),
        };
        let stride = |size: i64, stride: i64| if size == 1 { 0 } else { stride.unsigned_abs() };
        Matrix { data: operand.address, row: stride(rows, columns), column: stride(columns, 1) }
    }

    /// Whether packs of `lanes` elements are contiguous in a row, and aligned.
    fn has_packs(&self, cols: u64, lanes: u64) -> bool {
        self.column == 1 && self.data.is_multiple_of(16) && cols.is_multiple_of(lanes)
    }
}

/// `Loss` in `softmax_loss.cu`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Loss {
    logits: Matrix,
    labels: Matrix,
    loss: u64,
    gradient: u64,
    rows: u64,
    cols: u64,
}

struct CrossEntropy(RowEntries<(Loss,)>);

impl Kernel for CrossEntropy {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let dtype = c.input_types()[0];
        let module = module_of(c, variant(dtype, c.input_types()[1]))?;
        // SAFETY: these entries take a `Loss`, whose layout a test compares.
        Ok(CrossEntropy(unsafe { RowEntries::new(&module, "loss", dtype)? }))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let plan = BroadcastPlan::new([c.dims(0), c.dims(1)])?;
        let &[rows, cols] = plan.output_dims() else {
            return Err(KernelError::invalid_argument(format!(
                "features and labels must broadcast to 2 dimensions, found shapes {:?} and {:?}",
                c.dims(0),
                c.dims(1)
            )));
        };
        let launch = Launch::new(c)?;
        let (logits, labels) = (launch.input(0)?, launch.input(1)?);
        let lanes = lanes_of(logits.dtype);
        let logits = Matrix::new(logits, c.dims(0));
        let labels = Matrix::new(labels, c.dims(1));
        let loss = launch.output(0, &[rows])?;
        let gradient = launch.output(1, &[rows, cols])?;
        let (rows, cols) = (rows.unsigned_abs(), cols.unsigned_abs());
        if rows == 0 {
            return Ok(());
        }
        let packed = [logits, labels].iter().all(|matrix| matrix.has_packs(cols, lanes));
        let packed = packed && gradient.is_aligned(16);
        let (entry, grid) = self.0.choose([rows, cols], packed, launch.facts());
        let (loss, gradient) = (loss.address, gradient.address);
        let arguments = Loss { logits, labels, loss, gradient, rows, cols };
        // SAFETY: the strides stay within the inputs, which broadcast to `rows * cols`; there is a
        // loss for each row, and a gradient for each element. Without columns nothing is read.
        unsafe { launch.run(entry, grid, (arguments,)) }
    }
}

/// `SparseSoftmaxCrossEntropyWithLogits`: a class for each row.
struct SparseCrossEntropy(RowEntries<(Loss,)>);

impl Kernel for SparseCrossEntropy {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(SparseCrossEntropy(CrossEntropy::new(c)?.0))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let [rows, cols] = check_classes(c)?;
        let launch = Launch::new(c)?;
        let (logits, classes) = (launch.input(0)?, launch.input(1)?);
        let lanes = lanes_of(logits.dtype);
        let logits = Matrix::new(logits, c.dims(0));
        let labels = Matrix { data: classes.address, row: cols.unsigned_abs(), column: 0 };
        let (loss, gradient) = (launch.output(0, &[rows])?, launch.output(1, &[rows, cols])?);
        let (rows, cols) = (rows.unsigned_abs(), cols.unsigned_abs());
        if rows == 0 {
            return Ok(());
        }
        let packed = logits.has_packs(cols, lanes) && gradient.is_aligned(16);
        let (entry, grid) = self.0.choose([rows, cols], packed, launch.facts());
        let (loss, gradient) = (loss.address, gradient.address);
        let arguments = Loss { logits, labels, loss, gradient, rows, cols };
        // SAFETY: logits and gradient have `rows * cols` elements, classes and loss `rows`.
        unsafe { launch.run(entry, grid, (arguments,)) }
    }
}

/// The numbers of rows and classes; checks that the shapes match.
fn check_classes(c: &ComputeContext<'_>) -> Result<[i64; 2], KernelError> {
    let (&[rows, classes], &[count]) = (c.dims(0), c.dims(1)) else {
        return Err(KernelError::invalid_argument(format!(
            "features must have 2 dimensions and labels 1, found shapes {:?} and {:?}",
            c.dims(0),
            c.dims(1)
        )));
    };
    if rows != count {
        return Err(KernelError::invalid_argument(format!(
            "labels must be as many as features has rows, which is {rows}, found {count}"
        )));
    }
    if classes == 0 {
        return Err(KernelError::invalid_argument(format!(
            "features must have at least 1 class, found shape {:?}",
            c.dims(0)
        )));
    }
    Ok([rows, classes])
}

/// Bounds relative to the sum of the absolute terms.
macro_rules! losses {
    ($($op:literal $kernel:ty;)*) => {$(
        register_kernel!($op on "CUDA": $kernel, types = ("T", &[DType::FLOAT]),
            numerics = Numerics::relative(1e-6, 1e-5).accumulation(DType::FLOAT));
        register_kernel!($op on "CUDA": $kernel, types = ("T", &[DType::DOUBLE]),
            numerics = Numerics::relative(1e-15, 1e-13).accumulation(DType::DOUBLE));
        register_kernel!($op on "CUDA": $kernel, types = ("T", &[DType::HALF]),
            numerics = Numerics::relative(1e-3, 2e-3).accumulation(DType::FLOAT));
        register_kernel!($op on "CUDA": $kernel, types = ("T", &[DType::BFLOAT16]),
            numerics = Numerics::relative(1e-2, 1.6e-2).accumulation(DType::FLOAT));
    )*};
}

losses! {
    "SoftmaxCrossEntropyWithLogits" CrossEntropy;
    "SparseSoftmaxCrossEntropyWithLogits" SparseCrossEntropy;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_that_of_the_source() {
        assert_eq!((size_of::<Matrix>(), size_of::<Loss>()), (24, 80));
    }

    #[test]
    fn what_is_repeated_has_the_stride_0() {
        let operand = Operand { address: 64, elements: 6, dtype: DType::FLOAT };
        let strides = |dims: &[i64]| {
            let matrix = Matrix::new(operand, dims);
            [matrix.row, matrix.column]
        };
        assert_eq!(strides(&[2, 3]), [3, 1]);
        assert_eq!(strides(&[1, 3]), [0, 1]);
        assert_eq!(strides(&[2, 1]), [1, 0]);
        assert_eq!(strides(&[3]), [0, 1]);
        assert_eq!(strides(&[]), [0, 0]);
    }
}
