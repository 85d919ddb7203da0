//! `MatMul` and `BatchMatMulV2`: `C[m, n] = sum over k of A[m, k] * B[k, n]`; 0 where there is no k.
//!
//! The adjoint of a real matrix is its transpose, so the geometry holds all that the attributes say.

use crate::Accumulate;
use tenon_framework::element::Number;
use tenon_geometry::{BatchMatMulGeometry, MatMulGeometry};

/// One product; `c` is `m x n`.
pub fn matmul<T: Accumulate>(geometry: &MatMulGeometry, a: &[T], b: &[T], c: &mut [T]) {
    let MatMulGeometry { m, n, k, a_strides, b_strides } = *geometry;
    debug_assert_eq!((a.len(), b.len(), c.len()), (m * k, k * n, m * n));
    for (i, c) in c.iter_mut().enumerate() {
        let (row, col) = (i / n, i % n);
        let mut sum = T::Total::ZERO;
        for k in 0..k {
            let a = a[row * a_strides[0] + k * a_strides[1]].total();
            let b = b[k * b_strides[0] + col * b_strides[1]].total();
            sum = sum.add(a.mul(b));
        }
        *c = T::rounded(sum);
    }
}

/// A product for every pair of matrices that broadcasting makes.
pub fn batch_matmul<T: Accumulate>(geometry: &BatchMatMulGeometry, x: &[T], y: &[T], z: &mut [T]) {
    let MatMulGeometry { m, n, k, .. } = geometry.matrix;
    for (i, (x_at, y_at)) in geometry.products().enumerate() {
        let (x, y) = (&x[x_at * m * k..][..m * k], &y[y_at * k * n..][..k * n]);
        matmul(&geometry.matrix, x, y, &mut z[i * m * n..][..m * n]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_tensorflow_s() {
        let (a, b) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, -1.0, 2.0, 0.5, 3.0, 0.0]);
        let geometry = MatMulGeometry::new(&[2, 3], &[3, 2], false, false).unwrap();
        let mut c = [9.0f32; 4];
        matmul(&geometry, &a, &b, &mut c);
        assert_eq!(c, [14.0, 0.0, 32.0, -1.5]);
        // The same numbers stored transposed.
        let (a, b) = ([1.0, 4.0, 2.0, 5.0, 3.0, 6.0], [1.0, 2.0, 3.0, -1.0, 0.5, 0.0]);
        let geometry = MatMulGeometry::new(&[3, 2], &[2, 3], true, true).unwrap();
        let mut transposed = [9.0f32; 4];
        matmul(&geometry, &a, &b, &mut transposed);
        assert_eq!(transposed, c);
    }

    #[test]
    fn edges() {
        let geometry = MatMulGeometry::new(&[2, 0], &[0, 3], false, false).unwrap();
        let mut c = [9.0f32; 6];
        matmul(&geometry, &[], &[], &mut c);
        assert_eq!(c, [0.0; 6]);
        let geometry = MatMulGeometry::new(&[1, 2], &[2, 1], false, false).unwrap();
        let mut c = [0i32];
        matmul(&geometry, &[1 << 20; 2], &[(1 << 12) + 1; 2], &mut c);
        assert_eq!(c, [2097152]);
        let geometry = MatMulGeometry::new(&[1, 2], &[2, 0], false, false).unwrap();
        matmul::<i32>(&geometry, &[1, 2], &[], &mut []);
    }

    #[test]
    fn batches_broadcast() {
        let geometry = BatchMatMulGeometry::new(&[2, 1, 1, 2], &[3, 2, 1], false, false).unwrap();
        let (x, y) = ([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        let mut z = [0.0f32; 6];
        batch_matmul(&geometry, &x, &y, &mut z);
        assert_eq!(z, [1.0, 3.0, 5.0, 3.0, 13.0, 23.0]);
    }
}
