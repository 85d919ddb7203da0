//! `QuantizedMatMul`.

use super::{
    product::{Column, Form, Product, Stage},
    ranges::{Range, check_terms},
};
use crate::launch::Launch;
use tenon_sdk::{DType, KernelError, prelude::*, reg::Numerics};

/// The output stage that leaves sums unchanged.
const SUMS: Stage = Stage { form: Form::Sums, low: i32::MIN, high: i32::MAX, zero_point: 0 };

struct QuantizedMatMul(Product);

impl Kernel for QuantizedMatMul {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let transposed = [c.attr("transpose_a")?, c.attr("transpose_b")?];
        Product::new(c, [DType::QUINT8; 2], transposed).map(QuantizedMatMul)
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (a, b) =
            (Range::wide(c, 2, ["min_a", "max_a"])?, Range::wide(c, 4, ["min_b", "max_b"])?);
        let zeros = [a.zero()?, b.zero()?];
        let g = self.0.geometry(c)?;
        check_terms(g.k, zeros)?;
        let products = Range::of_products(a.level(), b.level())?;
        let launch = Launch::new(c)?;
        let y = launch.output(0, &[g.m as i64, g.n as i64])?;
        let operands = [launch.input(0)?, launch.input(1)?, y];
        let column = Column {
            base: (g.k as i32).wrapping_mul(zeros[0]).wrapping_mul(zeros[1]),
            slope: zeros[1].wrapping_neg(),
            ..Column::default()
        };
        self.0.run(&launch, &g, operands, zeros[0], &[column], SUMS)?;
        products.write(c, 1)
    }
}

register_kernel!("QuantizedMatMul" on "CUDA": QuantizedMatMul,
    types = ("T1", &[DType::QUINT8]), types = ("T2", &[DType::QUINT8]), types = ("Toutput", &[DType::QINT32]),
    host_memory = &["min_a", "max_a", "min_b", "max_b", "min_out", "max_out"], numerics = Numerics::EXACT);
