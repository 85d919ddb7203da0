//! Halves to floats and back by the instructions of F16C, eight at a time. They convert denormals of
//! half whatever the thread's mode, and round to nearest, ties to even.

use super::{f16_down, f16_up};
use std::arch::x86_64::{
    _MM_FROUND_TO_NEAREST_INT, _mm_cvtph_ps, _mm_cvtps_ph, _mm_loadl_epi64, _mm_loadu_ps,
    _mm_loadu_si128, _mm_storel_epi64, _mm_storeu_ps, _mm_storeu_si128, _mm256_cvtph_ps,
    _mm256_cvtps_ph, _mm256_loadu_ps, _mm256_storeu_ps,
};
use tenon_sdk::f16;

/// Whether the CPU has the instructions.
#[inline(always)]
pub fn is_supported() -> bool {
    is_x86_feature_detected!("avx") && is_x86_feature_detected!("f16c")
}

/// Converts as many halves as both slices have.
#[target_feature(enable = "avx,f16c")]
pub fn up(x: &[f16], y: &mut [f32]) {
    let len = x.len().min(y.len());
    let (eights, x) = x[..len].as_chunks::<8>();
    let (to_eights, y) = y[..len].as_chunks_mut::<8>();
    for (to, from) in to_eights.iter_mut().zip(eights) {
        // SAFETY: eight halves may be read, and as many floats written.
        unsafe {
            let halves = _mm_loadu_si128(from.as_ptr().cast());
            _mm256_storeu_ps(to.as_mut_ptr(), _mm256_cvtph_ps(halves));
        }
    }
    let (fours, x) = x.as_chunks::<4>();
    let (to_fours, y) = y.as_chunks_mut::<4>();
    for (to, from) in to_fours.iter_mut().zip(fours) {
        // SAFETY: four halves may be read, and as many floats written.
        unsafe {
            let halves = _mm_loadl_epi64(from.as_ptr().cast());
            _mm_storeu_ps(to.as_mut_ptr(), _mm_cvtph_ps(halves));
        }
    }
    y.iter_mut().zip(x).for_each(|(y, &x)| *y = f16_up(x));
}

/// [`up`] of `columns` halves of each row, from rows `stride` apart to rows `width` apart.
#[target_feature(enable = "avx,f16c")]
pub fn rows_up(x: &[f16], stride: usize, columns: usize, y: &mut [f32], width: usize) {
    for (row, y) in y.chunks_exact_mut(width).enumerate() {
        up(&x[row * stride..][..columns], y);
    }
}

/// Rounds as many floats as both slices have.
#[target_feature(enable = "avx,f16c")]
pub fn down(x: &[f32], y: &mut [f16]) {
    let len = x.len().min(y.len());
    let (eights, x) = x[..len].as_chunks::<8>();
    let (to_eights, y) = y[..len].as_chunks_mut::<8>();
    for (to, from) in to_eights.iter_mut().zip(eights) {
        // SAFETY: eight floats may be read, and as many halves written.
        unsafe {
            let halves =
                _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm256_loadu_ps(from.as_ptr()));
            _mm_storeu_si128(to.as_mut_ptr().cast(), halves);
        }
    }
    let (fours, x) = x.as_chunks::<4>();
    let (to_fours, y) = y.as_chunks_mut::<4>();
    for (to, from) in to_fours.iter_mut().zip(fours) {
        // SAFETY: four floats may be read, and as many halves written.
        unsafe {
            let halves = _mm_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm_loadu_ps(from.as_ptr()));
            _mm_storel_epi64(to.as_mut_ptr().cast(), halves);
        }
    }
    y.iter_mut().zip(x).for_each(|(y, &x)| *y = f16_down(x));
}
