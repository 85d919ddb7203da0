//! `QuantizedMatMul`.

use super::{
    products::{Side, check_terms, write_sums},
    range::{Range, product_range},
};
use crate::{
    constant::{RIGHT, RightFactor},
    isa::chosen,
    pack::Source,
    product::flip,
};
use tenon_sdk::{
    DType, KernelError,
    abi::Slot,
    author::{ComputeContext, CreateContext, Kernel, Packed, Prepack},
    element::QUInt8,
    geometry::MatMulGeometry,
    reg::Numerics,
    register_kernel,
};

/// Types of both factors.
const TYPES: [DType; 2] = [DType::QUINT8; 2];
struct MatMul {
    transposed: [bool; 2],
    left_flip: u8,
    right: RightFactor,
}

impl Kernel for MatMul {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let isa = chosen(c.knobs())?;
        let transposed = [c.attr("transpose_a")?, c.attr("transpose_b")?];
        let right = RightFactor::new(isa, flip(isa, TYPES[1], false), transposed[1]);
        Ok(MatMul { transposed, left_flip: flip(isa, TYPES[0], true), right })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (a_range, b_range) =
            (Range::wide(c, 2, ["min_a", "max_a"])?, Range::wide(c, 4, ["min_b", "max_b"])?);
        let sides = [Side::of::<QUInt8>(a_range)?, Side::of::<QUInt8>(b_range)?];
        let [transpose_a, transpose_b] = self.transposed;
        let g = MatMulGeometry::new(c.dims(0), c.dims(RIGHT), transpose_a, transpose_b)?;
        check_terms(g.k as i64, sides[0], sides[1])?;
        let products = product_range(a_range.level::<QUInt8>(), b_range.level::<QUInt8>())?;
        let y = c.output_bytes(0, &[g.m as i64, g.n as i64])?;
        if !y.is_empty() {
            let left = Source::new(c.input_bytes(0)?, [g.m, g.k], transpose_a, self.left_flip);
            let right = self.right.get(c, [g.k, g.n])?;
            write_sums(c, left, right, TYPES, sides.map(|side| side.zero), y)?;
        }
        products.write(c, 1)
    }
}

impl Prepack for MatMul {
    fn prepack(&self, input: usize, view: &Slot) -> Result<Option<Packed>, KernelError> {
        Ok(self.right.prepack_matrix(input, view))
    }

    fn attach_packed(&mut self, input: usize, packed: &Packed) {
        self.right.attach(input, packed);
    }
}

register_kernel!("QuantizedMatMul" on "CPU": MatMul,
    types = ("T1", &[DType::QUINT8]), types = ("T2", &[DType::QUINT8]), types = ("Toutput", &[DType::QINT32]),
    host_memory = &["min_a", "max_a", "min_b", "max_b"], numerics = Numerics::EXACT);
