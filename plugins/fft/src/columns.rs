//! Transforms along columns: copies the columns into rows of another buffer, and back.

use crate::plans::{Complex, ComplexPlan, Real, for_rows, transform_rows};
use tenon_sdk::{KernelError, author::ComputeContext};

/// The layout of a batch of images: images of `height` rows in memory, of which `rows` are used,
/// and of `width` columns, of which `cols` are used.
#[derive(Debug, Clone, Copy)]
pub struct Images {
    /// Rows in memory.
    pub height: usize,
    /// Columns in memory.
    pub width: usize,
    /// Rows that are used.
    pub rows: usize,
    /// Columns that are used.
    pub cols: usize,
}

/// The transformed columns of all images: row `image * cols + col` is a column.
pub fn transform_columns<T: Real>(
    c: &ComputeContext<'_>,
    plan: &ComplexPlan<T>,
    images: Images,
    x: &[Complex<T>],
    columns: &mut [Complex<T>],
) -> Result<(), KernelError> {
    let Images { height, width, rows, cols } = images;
    transform_rows(c, plan, columns, |first, block| {
        for (at, column) in block.chunks_exact_mut(rows).enumerate() {
            let (image, col) = ((first + at) / cols, (first + at) % cols);
            let x = &x[image * height * width..][..height * width];
            for (y, row) in column.iter_mut().zip(x.chunks_exact(width)) {
                *y = row[col];
            }
        }
    })
}

/// Copies columns back into images that consist only of used columns, multiplied by `scale`.
pub fn put_back<T: Real>(
    c: &ComputeContext<'_>,
    [rows, cols]: [usize; 2],
    columns: &[Complex<T>],
    y: &mut [Complex<T>],
    scale: Option<T>,
) -> Result<(), KernelError> {
    for_rows(c, y, cols, cols as f64, |first, block| {
        for (at, row) in block.chunks_exact_mut(cols).enumerate() {
            copy_row([rows, cols], first + at, columns, row);
            if let Some(scale) = scale {
                row.iter_mut().for_each(|y| *y = *y * scale);
            }
        }
        Ok(())
    })
}

/// Transforms the columns of images of `rows` rows and `cols` columns where they are, multiplied by `scale`; the second
/// buffer is as large as the first, and what it holds afterwards says nothing.
pub fn transform_axis<T: Real>(
    c: &ComputeContext<'_>,
    plan: &ComplexPlan<T>,
    [rows, cols]: [usize; 2],
    (y, spare): (&mut [Complex<T>], &mut [Complex<T>]),
    scale: Option<T>,
) -> Result<(), KernelError> {
    let images = Images { height: rows, width: cols, rows, cols };
    transform_columns(c, plan, images, y, spare)?;
    put_back(c, [rows, cols], spare, y, scale)
}

/// One row of an image, from its columns.
pub fn copy_row<T: Real>(
    [rows, cols]: [usize; 2],
    number: usize,
    columns: &[Complex<T>],
    y: &mut [Complex<T>],
) {
    let (image, row) = (number / rows, number % rows);
    let columns = &columns[image * rows * cols..][..rows * cols];
    for (y, column) in y.iter_mut().zip(columns.chunks_exact(rows)) {
        *y = column[row];
    }
}
