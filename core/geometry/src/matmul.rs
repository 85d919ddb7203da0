//! Matrix products: `MatMul` and `BatchMatMulV2`.
//!
//! `C[m, n] = sum over k of A[m, k] * B[k, n]`. A transposed operand is stored as `[k, m]` (`[n, k]`).
//! `BatchMatMulV2` multiplies the matrices in the last two dimensions; the dimensions before them
//! broadcast.

use crate::broadcast::{BroadcastPlan, broadcast_shape};
use crate::error::{GeometryError, Result};
use crate::size::{Dims, element_count, index, validate_dims, validate_partial_dims};

/// Sizes of one matrix product, and the strides of its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatMulGeometry {
    /// Rows of the product.
    pub m: usize,
    /// Columns of the product.
    pub n: usize,
    /// Terms per element.
    pub k: usize,
    /// Strides of `A[m, k]` in elements, over m and k.
    pub a_strides: [usize; 2],
    /// Strides of `B[k, n]` in elements, over k and n.
    pub b_strides: [usize; 2],
}

impl MatMulGeometry {
    /// Geometry of a product of two matrices of known shape.
    pub fn new(a: &[i64], b: &[i64], transpose_a: bool, transpose_b: bool) -> Result<Self> {
        validate_dims(a)?;
        validate_dims(b)?;
        let output = matmul_dims(a, b, transpose_a, transpose_b)?;
        validate_dims(&output)?;
        Ok(MatMulGeometry::of(a, b, transpose_a, transpose_b))
    }

    /// The geometry from the last two dimensions, which must fit.
    fn of(a: &[i64], b: &[i64], transpose_a: bool, transpose_b: bool) -> MatMulGeometry {
        let (a, b) = (&a[a.len() - 2..], &b[b.len() - 2..]);
        let strides = |dims: &[i64], transposed| {
            if transposed { [1, index(dims[1])] } else { [index(dims[1]), 1] }
        };
        MatMulGeometry {
            m: index(a[usize::from(transpose_a)]),
            k: index(a[usize::from(!transpose_a)]),
            n: index(b[usize::from(!transpose_b)]),
            a_strides: strides(a, transpose_a),
            b_strides: strides(b, transpose_b),
        }
    }
}

/// Shape of `MatMul`; -1 is an unknown dimension.
pub fn matmul_dims(a: &[i64], b: &[i64], transpose_a: bool, transpose_b: bool) -> Result<Dims> {
    for (what, dims) in [("a", a), ("b", b)] {
        if dims.len() != 2 {
            return Err(GeometryError::Rank { what, expected: 2, found: dims.len() });
        }
    }
    product_dims((a, transpose_a), (b, transpose_b), "the size of b that meets a")
}

/// Shape of `BatchMatMulV2`; -1 is an unknown dimension.
pub fn batch_matmul_dims(x: &[i64], y: &[i64], adj_x: bool, adj_y: bool) -> Result<Dims> {
    for (what, dims) in [("x", x), ("y", y)] {
        if dims.len() < 2 {
            return Err(GeometryError::RankTooSmall { what, expected: 2, found: dims.len() });
        }
    }
    product_dims((x, adj_x), (y, adj_y), "the size of y that meets x")
}

/// Shape of a product of tensors with at least two dimensions, each optionally transposed; `inner`
/// names the size of the second operand that must equal that of the first.
fn product_dims(
    (x, adj_x): (&[i64], bool),
    (y, adj_y): (&[i64], bool),
    inner: &'static str,
) -> Result<Dims> {
    validate_partial_dims(x)?;
    validate_partial_dims(y)?;
    let (x_batch, x) = x.split_at(x.len() - 2);
    let (y_batch, y) = y.split_at(y.len() - 2);
    let (expected, found) = (x[usize::from(!adj_x)], y[usize::from(adj_y)]);
    if expected != found && expected != -1 && found != -1 {
        return Err(GeometryError::SizeMismatch { what: inner, expected, found });
    }
    let mut output = broadcast_shape(x_batch, y_batch)?;
    output.push(x[usize::from(adj_x)])?;
    output.push(y[usize::from(!adj_y)])?;
    validate_partial_dims(&output)?;
    Ok(output)
}

/// Checks that the dimensions before the last two are equal, as `BatchMatMul` requires; -1 is an
/// unknown dimension.
pub fn equal_batches(x: &[i64], y: &[i64]) -> Result<()> {
    let batch = |dims: &[i64]| dims[..dims.len().saturating_sub(2)].to_vec();
    let (a, b) = (batch(x), batch(y));
    let equal = |(&a, &b): (&i64, &i64)| a == b || a == -1 || b == -1;
    if a.len() != b.len() || !a.iter().zip(&b).all(equal) {
        return Err(GeometryError::Batches { a, b });
    }
    Ok(())
}

/// Geometry of `BatchMatMulV2` for known shapes.
#[derive(Debug, Clone)]
pub struct BatchMatMulGeometry {
    /// One product.
    pub matrix: MatMulGeometry,
    /// The broadcast of the dimensions before the last two; its elements are whole matrices.
    pub batch: BroadcastPlan<2>,
    /// Dimensions of the output.
    pub output: Dims,
}

impl BatchMatMulGeometry {
    /// Checks the shapes and plans the products.
    pub fn new(x: &[i64], y: &[i64], adj_x: bool, adj_y: bool) -> Result<BatchMatMulGeometry> {
        validate_dims(x)?;
        validate_dims(y)?;
        let output = batch_matmul_dims(x, y, adj_x, adj_y)?;
        element_count(&output)?;
        let batch = BroadcastPlan::new([&x[..x.len() - 2], &y[..y.len() - 2]])?;
        Ok(BatchMatMulGeometry { matrix: MatMulGeometry::of(x, y, adj_x, adj_y), batch, output })
    }

    /// For each product in order, the numbers of its matrices in `x` and `y`.
    pub fn products(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.batch.runs().flat_map(|run| {
            (0..run.len).map(move |i| {
                (run.offsets[0] + i * run.strides[0], run.offsets[1] + i * run.strides[1])
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_strides() {
        let g = MatMulGeometry::new(&[2, 3], &[3, 4], false, false).unwrap();
        assert_eq!((g.m, g.n, g.k, g.a_strides, g.b_strides), (2, 4, 3, [3, 1], [4, 1]));
        let g = MatMulGeometry::new(&[3, 2], &[4, 3], true, true).unwrap();
        assert_eq!((g.m, g.n, g.k, g.a_strides, g.b_strides), (2, 4, 3, [1, 2], [1, 3]));
        assert_eq!(matmul_dims(&[-1, 3], &[-1, -1], false, false).unwrap(), [-1, -1]);
        assert_eq!(matmul_dims(&[-1, 3], &[5, -1], false, true).unwrap(), [-1, 5]);
    }

    #[test]
    fn bad_products_are_refused() {
        assert_eq!(
            matmul_dims(&[2, 3], &[4, 5], false, false).unwrap_err().to_string(),
            "the size of b that meets a must be 3, got 4"
        );
        assert_eq!(
            matmul_dims(&[2, 3, 1], &[4, 5], false, false).unwrap_err().to_string(),
            "a must have 2 dimensions, got 3"
        );
        assert_eq!(equal_batches(&[2, -1, 1, 1], &[2, 3, 5, 5]), Ok(()));
        assert!(equal_batches(&[2, 1, 1], &[1, 1, 1]).is_err());
        assert!(equal_batches(&[2, 1, 1], &[1, 1]).is_err());
        assert!(batch_matmul_dims(&[2], &[2, 2], false, false).is_err());
        assert!(batch_matmul_dims(&[2, 1, 1], &[3, 1, 1], false, false).is_err());
    }

    #[test]
    fn batches_broadcast() {
        let g = BatchMatMulGeometry::new(&[2, 1, 4, 3], &[3, 3, 5], false, false).unwrap();
        assert_eq!(g.output, [2, 3, 4, 5]);
        let products: Vec<_> = g.products().collect();
        assert_eq!(products, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]);
        let g = BatchMatMulGeometry::new(&[4, 3], &[3, 5], false, false).unwrap();
        assert_eq!(g.products().collect::<Vec<_>>(), [(0, 0)]);
    }
}
