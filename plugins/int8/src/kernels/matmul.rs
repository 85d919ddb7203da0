//! `QuantizedMatMul`.

use super::{
    products::{Side, accumulate, check_terms},
    range::{Range, product_range},
};
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::{QInt32, QUInt8},
    geometry::MatMulGeometry,
    reg::Numerics,
    register_kernel,
};

struct MatMul {
    transpose_a: bool,
    transpose_b: bool,
}

impl Kernel for MatMul {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(MatMul { transpose_a: c.attr("transpose_a")?, transpose_b: c.attr("transpose_b")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (a_range, b_range) =
            (Range::wide(c, 2, ["min_a", "max_a"])?, Range::wide(c, 4, ["min_b", "max_b"])?);
        let (a_side, b_side) = (Side::of::<QUInt8>(a_range)?, Side::of::<QUInt8>(b_range)?);
        let g = MatMulGeometry::new(c.dims(0), c.dims(1), self.transpose_a, self.transpose_b)?;
        check_terms(g.k as i64, a_side, b_side)?;
        let products = product_range(a_range.level::<QUInt8>(), b_range.level::<QUInt8>())?;
        let (a, b) = (c.input::<QUInt8>(0)?.data, c.input::<QUInt8>(1)?.data);
        let a = if self.transpose_a { turned(c, a, [g.k, g.m])? } else { a };
        let b = if self.transpose_b { turned(c, b, [g.n, g.k])? } else { b };
        let y = c.output::<QInt32>(0, &[g.m as i64, g.n as i64])?.data;
        if !y.is_empty() {
            let rows: Vec<&mut [QInt32]> = y.chunks_exact_mut(g.n).collect();
            c.parallel_items(rows, 0.2 * (g.n * g.k) as f64, |row, y| {
                y.fill(QInt32(0));
                accumulate((&a[row * g.k..][..g.k], a_side.zero), (b, b_side.zero), y);
                Ok(())
            })?;
        }
        products.write(c, 1)
    }
}

/// A matrix of `rows` by `columns`, with both exchanged.
fn turned<'a>(
    c: &ComputeContext<'a>,
    x: &[QUInt8],
    [rows, columns]: [usize; 2],
) -> Result<&'a [QUInt8], KernelError> {
    let y = c.scratch_slice::<QUInt8>(x.len())?;
    for row in 0..rows {
        for column in 0..columns {
            y[column * rows + row] = x[row * columns + column];
        }
    }
    Ok(y)
}

register_kernel!("QuantizedMatMul" on "CPU": MatMul,
    types = ("T1", &[DType::QUINT8]), types = ("T2", &[DType::QUINT8]), types = ("Toutput", &[DType::QINT32]),
    host_memory = &["min_a", "max_a", "min_b", "max_b"], numerics = Numerics::EXACT);
