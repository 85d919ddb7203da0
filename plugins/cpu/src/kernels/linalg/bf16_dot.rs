//! `MatMul`, and with `fused::matmul` `_FusedMatMul`, of bfloat16 by dot products of pairs (AVX-512
//! BF16): label `bf16_dot`, on request only.
//!
//! `vdpbf16ps` adds the products of two adjacent factors to a 32-bit sum: twice the multiplications
//! of a float instruction, and half the bytes. Two consecutive factors along the depth have the
//! bits of one float, so that the tiles of `super::gemm` compute with pairs as with numbers: half
//! as many along the depth, the last one with a zero if the depth is odd. Sums are rounded to
//! bfloat16 once, as in the ordinary kernel; but the instruction treats denormals as zeros and its
//! two additions have a fixed order, so that results may differ in the last place. Therefore it is
//! only chosen on request.

use super::{
    gemm::{
        constant::RIGHT,
        ending::Ending,
        isa::{BF16_DOT, Isa},
        left::Left,
        output::{self, Columns, Rows},
        right::PackedRight,
        spread,
    },
    matmul::Transposed,
    product::Operand,
};
use crate::{
    panels::uninitialised,
    split::{Parts, for_units},
};
use half::bf16;
use tenon_sdk::{
    DType, KernelError,
    abi::Slot,
    author::{ComputeContext, CreateContext, Kernel, Packed, Prepack},
    geometry::MatMulGeometry,
    growth,
    reg::Numerics,
    register_kernel,
};

/// The CPU features that the instruction needs.
pub const FEATURES: &[&str] =
    &["avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512bf16"];
const ISA: &Isa<f32> = &BF16_DOT;

/// Two factors as the bits of a float, the first one in the lower half.
#[inline(always)]
fn pair(first: bf16, second: bf16) -> f32 {
    f32::from_bits(u32::from(first.to_bits()) | u32::from(second.to_bits()) << 16)
}

/// Writes a row of pairs from two rows of factors with `stride` elements between factors; without a
/// second row, each factor is paired with zero.
fn join(first: &[bf16], second: Option<&[bf16]>, stride: usize, to: &mut [f32]) {
    for (at, to) in to.iter_mut().enumerate() {
        let second = second.map_or(bf16::ZERO, |second| second[at * stride]);
        *to = pair(first[at * stride], second);
    }
}

/// Writes a row of pairs from the rows of a right matrix.
fn join_rows(matrix: &Operand<'_, bf16>, pair: usize, to: &mut [f32]) {
    let [row, stride] = matrix.strides;
    let of = |k: usize| (k < matrix.rows).then(|| &matrix.data[k * row..]);
    join(of(2 * pair).expect("a row of the matrix"), of(2 * pair + 1), stride, to);
}

/// Products by one right matrix, which may be a constant.
pub struct Products {
    transposed: Transposed,
    packed: Option<Packed>,
}

impl Products {
    /// Reads the attributes.
    ///
    /// # Errors
    /// As [`Transposed::new`].
    pub fn new(c: &CreateContext<'_>) -> Result<Products, KernelError> {
        Ok(Products { transposed: Transposed::new(c)?, packed: None })
    }

    /// Packs a constant right matrix.
    pub fn prepack(&self, input: usize, view: &Slot) -> Option<Packed> {
        let is_here = view.memory.is_host_address() && view.dtype == DType::BFLOAT16;
        if input != RIGHT || !is_here || view.bytes == 0 {
            return None;
        }
        // SAFETY: the host passes a filled slot for this call, with valid dimensions, and host
        // memory of `elements` elements of the type.
        let (dims, data) = unsafe {
            let data = view.data.cast_const().cast::<bf16>();
            (view.shape(), std::slice::from_raw_parts(data, view.elements as usize))
        };
        let &[rows, cols] = dims else { return None };
        let matrix = Operand::dense(data, rows as usize, cols as usize);
        let matrix = if self.transposed.b { matrix.transposed() } else { matrix };
        let size = [matrix.rows.div_ceil(2), matrix.cols];
        let mut pairs = growth::filled(size[0].checked_mul(size[1])?, 0.0).ok()?;
        for (at, to) in pairs.chunks_exact_mut(size[1]).enumerate() {
            join_rows(&matrix, at, to);
        }
        let packed = PackedRight::new(ISA, &Operand::dense(&pairs[..], size[0], size[1]))?;
        let bytes = packed.bytes() as u64;
        Some(Packed::new(packed, bytes))
    }

    /// Receives the packed form.
    pub fn attach(&mut self, input: usize, packed: &Packed) {
        if input == RIGHT {
            self.packed = Some(packed.clone());
        }
    }

    /// The sizes of a call.
    ///
    /// # Errors
    /// The shapes of the inputs do not match.
    pub fn geometry(&self, c: &ComputeContext<'_>) -> Result<MatMulGeometry, KernelError> {
        self.transposed.geometry(c)
    }

    /// Computes the product and its epilogue.
    ///
    /// # Errors
    /// Out of memory; the call was cancelled.
    pub fn multiply(
        &self,
        c: &ComputeContext<'_>,
        g: &MatMulGeometry,
        y: &mut [bf16],
        ending: Ending<'_, bf16>,
    ) -> Result<(), KernelError> {
        let depth = g.k.div_ceil(2);
        let left = left_pairs(c, g)?;
        let left = Operand::dense(left, g.m, depth);
        let form = self.packed.as_ref().and_then(Packed::get::<PackedRight<f32>>);
        let right = match form.filter(|form| form.size() == [depth, g.n]) {
            Some(form) => form.view(),
            None => {
                let data = c.input::<bf16>(RIGHT)?.data;
                let matrix = Operand { data, rows: g.k, cols: g.n, strides: g.b_strides };
                let pairs = right_pairs(c, &matrix)?;
                spread::pack::<f32>(c, ISA, &Operand::dense(pairs, depth, g.n))?
            }
        };
        let rows = Rows { all: y, first: 0, stride: g.n };
        let left: &dyn Left<f32> = &left;
        output::write(c, ISA, left, Columns::Packed(right), rows, ending)
    }
}

/// Approximate nanoseconds for creating a pair.
const PAIR_NS: f64 = 0.5;

/// The left matrix in pairs along its rows: in place, if its layout permits.
fn left_pairs<'a>(c: &ComputeContext<'a>, g: &MatMulGeometry) -> Result<&'a [f32], KernelError> {
    let data = c.input::<bf16>(0)?.data;
    if g.a_strides == [g.k, 1] && g.k.is_multiple_of(2) {
        // SAFETY: all bits are a valid float, and two bfloat16 are as large as one.
        if let ([], pairs, []) = unsafe { data.align_to::<f32>() } {
            return Ok(pairs);
        }
    }
    let (depth, [row, stride]) = (g.k.div_ceil(2), g.a_strides);
    let pairs = uninitialised::<f32>(c, g.m.saturating_mul(depth))?;
    let parts = Parts::new(&mut *pairs);
    for_units(c, g.m, PAIR_NS * depth as f64, |rows| {
        for at in rows {
            let first = &data[at * row..];
            let second = first.get(stride..).filter(|_| g.k > 1);
            // SAFETY: each row is of one range.
            let to = unsafe { parts.part(at * depth..(at + 1) * depth) };
            let whole = g.k / 2;
            join(first, second, 2 * stride, &mut to[..whole]);
            if whole < depth {
                to[whole] = pair(first[(g.k - 1) * stride], bf16::ZERO);
            }
        }
    })?;
    Ok(pairs)
}

/// The right matrix in pairs along its columns, row by row.
fn right_pairs<'a>(
    c: &ComputeContext<'a>,
    matrix: &Operand<'_, bf16>,
) -> Result<&'a [f32], KernelError> {
    let (depth, columns) = (matrix.rows.div_ceil(2), matrix.cols);
    let pairs = uninitialised::<f32>(c, depth.saturating_mul(columns))?;
    let parts = Parts::new(&mut *pairs);
    for_units(c, depth, PAIR_NS * columns as f64, |range| {
        for at in range {
            // SAFETY: each row is of one range.
            let to = unsafe { parts.part(at * columns..(at + 1) * columns) };
            join_rows(matrix, at, to);
        }
    })?;
    Ok(pairs)
}

struct MatMul(Products);

impl Kernel for MatMul {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Products::new(c).map(MatMul)
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let g = self.0.geometry(c)?;
        let y = c.output::<bf16>(0, &[g.m as i64, g.n as i64])?.data;
        self.0.multiply(c, &g, y, Ending::NONE)
    }
}

impl Prepack for MatMul {
    fn prepack(&self, input: usize, view: &Slot) -> Result<Option<Packed>, KernelError> {
        Ok(self.0.prepack(input, view))
    }

    fn attach_packed(&mut self, input: usize, packed: &Packed) {
        self.0.attach(input, packed);
    }
}

register_kernel!("MatMul" on "CPU": MatMul, types = ("T", &[DType::BFLOAT16]),
    label = "bf16_dot", on_request = true, features = FEATURES,
    numerics = Numerics::relative(1e-30, 1.6e-2).accumulation(DType::FLOAT));
#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        kernels::linalg::{gemm::blocks::Product, product::Target},
        testing::values,
    };

    /// The sums of pairs by tiles equal those of doubles, up to the rounding of the additions.
    #[test]
    fn pairs_are_multiplied_and_added() {
        if !is_x86_feature_detected!("avx512bf16") {
            return;
        }
        for [m, n, k] in [[1, 48, 64], [8, 48, 2], [9, 50, 7], [33, 130, 701], [5, 3, 1]] {
            let (a, b) = (values::<bf16>(m * k, 1), values::<bf16>(k * n, 2));
            let (depth, right) = (k.div_ceil(2), Operand::dense(&b[..], k, n));
            let mut left = vec![0.0; m * depth];
            for (row, to) in left.chunks_exact_mut(depth).enumerate() {
                for (at, to) in to.iter_mut().enumerate() {
                    let factor = |k: usize| a[row * (a.len() / m) + k];
                    let second = if 2 * at + 1 < k { factor(2 * at + 1) } else { bf16::ZERO };
                    *to = pair(factor(2 * at), second);
                }
            }
            let mut pairs = vec![0.0; depth * n];
            for (at, to) in pairs.chunks_exact_mut(n).enumerate() {
                join_rows(&right, at, to);
            }
            let packed = PackedRight::new(ISA, &Operand::dense(&pairs[..], depth, n)).unwrap();
            let mut found = vec![1.0f32; m * n];
            // SAFETY: the target is the whole vector.
            let target = unsafe { Target::new(found.as_mut_ptr(), m, n, [n, 1]) };
            let left = Operand::dense(&left[..], m, depth);
            let product = Product::new(&left, packed.view(), &target, Ending::NONE);
            // SAFETY: the target is this call's.
            unsafe { product.run(0..product.strips(), 0..product.panels()) };
            for (at, &found) in found.iter().enumerate() {
                let term = |p: usize| a[at / n * k + p].to_f64() * b[p * n + at % n].to_f64();
                let (sum, size) = (0..k)
                    .map(term)
                    .fold((0.0, 0.0), |(sum, size), x: f64| (sum + x, size + x.abs()));
                let error = (f64::from(found) - sum).abs();
                assert!(
                    error <= 8.0 * 2f64.powi(-24) * size,
                    "{m}x{n}x{k}: {at}: {found}, not {sum}"
                );
            }
        }
    }
}
