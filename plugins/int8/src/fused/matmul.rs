//! `_QuantizedFusedMatMul`.

use super::parameters::{Attributes, Parameters};
use crate::{
    constant::{RIGHT, RightFactor},
    isa::chosen,
    pack::Source,
};
use tenon_sdk::{
    DType, KernelError,
    abi::Slot,
    author::{ComputeContext, CreateContext, Kernel, Packed},
    geometry::MatMulGeometry,
    reg::Numerics,
    register_kernel,
};

struct QuantizedMatMul {
    attributes: Attributes,
    transposed: [bool; 2],
    left_flip: u8,
    right: RightFactor,
}

impl Kernel for QuantizedMatMul {
    const PREPACKS: bool = true;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let isa = chosen()?;
        let attributes =
            Attributes::new(c, ["a_scale", "a_zero_point", "b_scale", "b_zero_point"])?;
        let transposed = [c.attr("transpose_a")?, c.attr("transpose_b")?];
        let [left_flip, right_flip] = attributes.flips(isa);
        let right = RightFactor::new(isa, right_flip, transposed[1]);
        Ok(QuantizedMatMul { attributes, transposed, left_flip, right })
    }

    fn prepack(&self, input: usize, view: &Slot) -> Result<Option<Packed>, KernelError> {
        Ok(self.right.prepack_matrix(input, view))
    }

    fn attach_packed(&mut self, input: usize, packed: &Packed) {
        self.right.attach(input, packed);
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let a = c.input_bytes(0)?;
        let [transpose_a, transpose_b] = self.transposed;
        let g = MatMulGeometry::new(c.dims(0), c.dims(RIGHT), transpose_a, transpose_b)?;
        let parameters = Parameters::read(c, self.attributes, [g.k, g.n])?;
        let dims = [g.m as i64, g.n as i64];
        if g.m == 0 || g.n == 0 {
            return parameters.compute_nothing(c, &dims);
        }
        let left = Source::new(a, [g.m, g.k], transpose_a, self.left_flip);
        parameters.compute(c, left, self.right.get(c, [g.k, g.n])?, &dims)
    }
}

register_kernel!("_QuantizedFusedMatMul" on "CPU": QuantizedMatMul,
    numerics = Numerics::EXACT.accumulation(DType::QINT32));
