//! `_QuantizedFusedMatMul`.

use super::{
    parameters::{Attributes, Parameters},
    product::Product,
};
use crate::launch::Launch;
use tenon_sdk::{DType, KernelError, prelude::*, reg::Numerics};

struct QuantizedMatMul {
    attributes: Attributes,
    product: Product,
}

impl Kernel for QuantizedMatMul {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let attributes = Attributes::new(c)?;
        let transposed = [c.attr("transpose_a")?, c.attr("transpose_b")?];
        let product = Product::new(c, attributes.types, transposed)?;
        Ok(QuantizedMatMul { attributes, product })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let g = self.product.geometry(c)?;
        let parameters = Parameters::read(c, self.attributes, [g.k, g.n])?;
        let (stage, columns) = parameters.columns()?;
        let launch = Launch::new(c)?;
        let y = launch.output(0, &[g.m as i64, g.n as i64])?;
        let operands = [launch.input(0)?, launch.input(1)?, y];
        self.product.run(&launch, &g, operands, parameters.left_zero(), &columns, stage)
    }
}

register_kernel!("_QuantizedFusedMatMul" on "CUDA": QuantizedMatMul,
    host_memory = &[
        "a_scale", "a_zero_point", "b_scale", "b_zero_point", "out_scale", "out_zero_point", "bias",
    ],
    numerics = Numerics::EXACT.accumulation(DType::QINT32));
