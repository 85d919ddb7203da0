//! `_QuantizedFusedMatMul`.

use super::parameters::{Attributes, Parameters};
use crate::{
    isa::{Isa, chosen},
    pack::Source,
    product::{PackedRight, Product, Right},
    spread::{compute, pack_right},
};
use tenon_sdk::{
    DType, KernelError,
    abi::Slot,
    author::{ComputeContext, CreateContext, Kernel, Packed},
    geometry::MatMulGeometry,
    reg::Numerics,
    register_kernel,
};

/// Which input the right matrix is.
const B: usize = 1;
/// Terms of a sum beyond which it leaves 32 bits whatever the zero points are: 131,072 * 128 * 128 = 2^31.
const MOST_DEPTH: i64 = 131_071;

struct QuantizedMatMul {
    isa: &'static Isa,
    attributes: Attributes,
    transposed: [bool; 2],
    packed: Option<Packed>,
}

impl QuantizedMatMul {
    /// The columns of the right matrix: they are lines where it is transposed.
    fn columns<'a>(&self, data: &'a [u8], [depth, columns]: [usize; 2]) -> Source<'a> {
        let flip = self.attributes.flips(self.isa)[1];
        Source::new(data, [columns, depth], !self.transposed[1], flip)
    }

    /// The right matrix as it was packed once, or packed now.
    fn right<'c, 'a: 'c>(
        &'c self,
        c: &ComputeContext<'a>,
        [depth, columns]: [usize; 2],
    ) -> Result<Right<'c>, KernelError> {
        if let Some(packed) = self.packed.as_ref().and_then(Packed::get::<PackedRight>) {
            let packed = packed.view();
            if packed.depth() == depth && packed.columns() == columns {
                return Ok(packed);
            }
        }
        pack_right(c, self.isa, &self.columns(c.input_bytes(B)?, [depth, columns]))
    }
}

impl Kernel for QuantizedMatMul {
    const PREPACKS: bool = true;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(QuantizedMatMul {
            isa: chosen()?,
            attributes: Attributes::new(c)?,
            transposed: [c.attr("transpose_a")?, c.attr("transpose_b")?],
            packed: None,
        })
    }

    fn prepack(&self, input: usize, view: &Slot) -> Result<Option<Packed>, KernelError> {
        // SAFETY: the host shows a filled slot during this call.
        let dims = unsafe { view.shape() };
        let (B, &[rows, columns]) = (input, dims) else { return Ok(None) };
        let sizes = if self.transposed[1] { [columns, rows] } else { [rows, columns] };
        // Of nothing there is nothing to pack, and what is too deep every call refuses.
        if !view.memory.is_host_address() || view.bytes == 0 || sizes[0] > MOST_DEPTH {
            return Ok(None);
        }
        // SAFETY: as above: host memory of so many bytes.
        let data = unsafe {
            std::slice::from_raw_parts(view.data.cast_const().cast::<u8>(), view.bytes as usize)
        };
        let packed = PackedRight::pack(self.isa, &self.columns(data, sizes.map(|n| n as usize)));
        let bytes = packed.bytes() as u64;
        Ok(Some(Packed::new(packed, bytes)))
    }

    fn attach_packed(&mut self, input: usize, packed: &Packed) {
        if input == B {
            self.packed = Some(packed.clone());
        }
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let a = c.input_bytes(0)?;
        let [transpose_a, transpose_b] = self.transposed;
        let g = MatMulGeometry::new(c.dims(0), c.dims(B), transpose_a, transpose_b)?;
        let parameters = Parameters::read(c, self.attributes, [g.k, g.n])?;
        let dims = [g.m as i64, g.n as i64];
        if g.m == 0 || g.n == 0 {
            parameters.check_scales()?;
            c.output_bytes(0, &dims)?;
            return Ok(());
        }
        let left = Source::new(a, [g.m, g.k], transpose_a, self.attributes.flips(self.isa)[0]);
        let right = self.right(c, [g.k, g.n])?;
        let (terms, stage) = (parameters.terms(c, right)?, parameters.stage(c, right)?);
        let y = c.output_bytes(0, &dims)?;
        compute(c, &Product::new(left, right, terms, stage, y))
    }
}

register_kernel!("_QuantizedFusedMatMul" on "CPU": QuantizedMatMul,
    numerics = Numerics::EXACT.accumulation(DType::QINT32));
