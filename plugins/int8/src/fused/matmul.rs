//! `_QuantizedFusedMatMul`.

use super::product::{FusedProduct, PARAMETERS};
use crate::{
    constant::{Constants, RIGHT},
    pack::Source,
};
use tenon_sdk::{
    DType, KernelError,
    abi::Slot,
    author::{ComputeContext, CreateContext, Kernel, Packed, Prepack},
    geometry::MatMulGeometry,
    reg::Numerics,
    register_kernel,
};

struct QuantizedMatMul {
    transposed: [bool; 2],
    product: FusedProduct,
}

impl Kernel for QuantizedMatMul {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let names = ["a_scale", "a_zero_point", "b_scale", "b_zero_point"];
        let transposed = [c.attr("transpose_a")?, c.attr("transpose_b")?];
        let product = FusedProduct::new(c, names, transposed[1])?;
        Ok(QuantizedMatMul { transposed, product })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let a = c.input_bytes(0)?;
        let [transpose_a, transpose_b] = self.transposed;
        let g = MatMulGeometry::new(c.dims(0), c.dims(RIGHT), transpose_a, transpose_b)?;
        self.product.compute(c, [g.k, g.n], &[g.m as i64, g.n as i64], |_, flip| {
            Ok(Source::new(a, [g.m, g.k], transpose_a, flip).into())
        })
    }
}

impl Prepack for QuantizedMatMul {
    fn prepack(&self, input: usize, view: &Slot) -> Result<Option<Packed>, KernelError> {
        Ok(match input {
            PARAMETERS.. => Some(Constants::<()>::mark()),
            _ => self.product.right.prepack_matrix(input, view),
        })
    }

    fn attach_packed(&mut self, input: usize, packed: &Packed) {
        self.product.attach(input, packed);
    }
}

register_kernel!("_QuantizedFusedMatMul" on "CPU": QuantizedMatMul,
    numerics = Numerics::EXACT.accumulation(DType::QINT32));
