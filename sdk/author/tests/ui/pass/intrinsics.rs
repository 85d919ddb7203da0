//! A kernel for bfloat16 that uses intrinsics: the processor's names come by a glob, and one of them is `bf16`.
#![deny(warnings)]

use tenon_sdk::{bf16, f16, prelude::*};

#[cfg(target_arch = "aarch64")]
use std::arch::aarch64::*;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

tenon_sdk::export_plugin!();

register_op!(
    "Halve",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs = &["T: {bfloat16, half, float, double}"],
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.input(0)),
);

fn halve<T: Float>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<T>(0)?;
    let half = T::from_f64(0.5);
    let y = c.output::<T>(0, x.dims)?;
    y.data.iter_mut().zip(x.data).for_each(|(y, x)| *y = x.mul(half));
    Ok(())
}
register_kernel!("Halve" on "CPU": fn halve<T> for "T" in [bf16, f16, f32, f64]);

/// Four elements in one number, the first one lowest.
fn joined(x: &[bf16]) -> u64 {
    x.iter().rev().fold(0, |all, x| all << 16 | u64::from(x.to_bits()))
}

/// Eight numbers at once.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn widened(x: &[bf16; 8]) -> __m256i {
    let [low, high] = [&x[..4], &x[4..]].map(|half| joined(half).cast_signed());
    _mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(_mm_set_epi64x(high, low)))
}

/// Four numbers at once.
#[cfg(target_arch = "aarch64")]
#[target_feature(enable = "neon")]
fn widened(x: &[bf16; 4]) -> uint32x4_t {
    vshll_n_u16::<16>(vcreate_u16(joined(x)))
}

fn main() {
    let _ = widened as *const ();
}
