//! Arithmetic limits: independent multiplications with additions in registers, as many as hide the latency.

use super::together::best_ns;
use crate::record::Peak;
use tenon_framework::registry::FeatureSet;

/// Accumulators: four cycles of latency times two units, and some more. They and two operands fit the 16 registers
/// of AVX2.
const CHAINS: usize = 12;

/// A probe: element type, instruction set, features that it needs, operations of a round, and the round.
struct Probe {
    dtype: &'static str,
    isa: &'static str,
    needs: &'static [&'static str],
    operations: f64,
    run: fn(u64),
}

/// Runs the probes that this machine has the features for.
pub fn measure(features: &FeatureSet, threads: u32, progress: &mut dyn FnMut(f64)) -> Vec<Peak> {
    let has = |probe: &&Probe| probe.needs.iter().all(|name| features.contains(name));
    let probes: Vec<&Probe> = arch::PROBES.iter().chain([&PLAIN]).filter(has).collect();
    let total = probes.len() as f64;
    let measured = probes.iter().enumerate().map(|(at, probe)| {
        let ns = best_ns(threads, || probe.run);
        progress((at + 1) as f64 / total);
        let rate = f64::from(threads.max(1)) * probe.operations / ns;
        Peak { dtype: probe.dtype.to_owned(), isa: probe.isa.to_owned(), rate }
    });
    measured.collect()
}

/// What the compiler makes of plain code, on any machine.
const PLAIN: Probe = Probe {
    dtype: "float",
    isa: "plain",
    needs: &[],
    operations: (2 * CHAINS * 8) as f64,
    run: plain,
};

fn plain(rounds: u64) {
    let (x, y) = std::hint::black_box((0.5f32, 0.25f32));
    let mut sums = [[0.0f32; 8]; CHAINS];
    for _ in 0..rounds {
        for lane in sums.as_flattened_mut() {
            *lane = *lane * x + y;
        }
    }
    std::hint::black_box(sums);
}

#[cfg(target_arch = "x86_64")]
mod arch {
    use super::{CHAINS, Probe};
    use std::{arch::x86_64::*, hint::black_box};

    /// A probe whose round is one instruction, or two, on each of the accumulators.
    macro_rules! probes {
        ($($name:ident: $dtype:literal, $isa:literal, $needs:expr, $enable:literal,
           $ops:literal, $zero:expr, |$a:ident, $x:ident, $y:ident| $step:expr;)*) => {
            pub(super) const PROBES: &[Probe] = &[$(Probe {
                dtype: $dtype,
                isa: $isa,
                needs: &$needs,
                operations: (CHAINS * $ops) as f64,
                run: $name,
            }),*];
            $(
                fn $name(rounds: u64) {
                    #[target_feature(enable = $enable)]
                    fn rounds_of(rounds: u64) {
                        let ($x, $y) = black_box(($zero, $zero));
                        let mut sums = [$zero; CHAINS];
                        for _ in 0..rounds {
                            for sum in &mut sums {
                                let $a = *sum;
                                *sum = $step;
                            }
                        }
                        black_box(sums);
                    }
                    // SAFETY: `measure` runs a probe only where the features that it needs are present.
                    unsafe { rounds_of(rounds) }
                }
            )*
        };
    }

    probes! {
        f32_avx2: "float", "avx2", ["avx2", "fma"], "avx2,fma", 16,
            _mm256_setzero_ps(), |a, x, y| _mm256_fmadd_ps(x, y, a);
        f32_avx512: "float", "avx512f", ["avx512f"], "avx512f", 32,
            _mm512_setzero_ps(), |a, x, y| _mm512_fmadd_ps(x, y, a);
        f64_avx2: "double", "avx2", ["avx2", "fma"], "avx2,fma", 8,
            _mm256_setzero_pd(), |a, x, y| _mm256_fmadd_pd(x, y, a);
        f64_avx512: "double", "avx512f", ["avx512f"], "avx512f", 16,
            _mm512_setzero_pd(), |a, x, y| _mm512_fmadd_pd(x, y, a);
        bf16_avx512: "bfloat16", "avx512bf16", ["avx512f", "avx512bf16"], "avx512f,avx512bf16", 64,
            _mm512_setzero_ps(), |a, x, y| _mm512_dpbf16_ps(a, as_bf16(x), as_bf16(y));
        i8_avxvnni: "int8", "avxvnni", ["avx2", "avxvnni"], "avx2,avxvnni", 64,
            _mm256_setzero_si256(), |a, x, y| _mm256_dpbusd_avx_epi32(a, x, y);
        i8_avx512: "int8", "avx512vnni", ["avx512f", "avx512vnni"], "avx512f,avx512vnni", 128,
            _mm512_setzero_si512(), |a, x, y| _mm512_dpbusd_epi32(a, x, y);
        // Without VNNI: exact products of 16 bits, added in pairs.
        i8_avx2: "int8", "avx2", ["avx2"], "avx2", 32,
            _mm256_setzero_si256(), |a, x, y| _mm256_add_epi32(_mm256_madd_epi16(_mm256_xor_si256(a, x), y), a);
        i32_avx2: "int32", "avx2", ["avx2"], "avx2", 16,
            _mm256_setzero_si256(), |a, x, y| _mm256_add_epi32(_mm256_mullo_epi32(a, x), y);
        i32_avx512: "int32", "avx512f", ["avx512f"], "avx512f", 32,
            _mm512_setzero_si512(), |a, x, y| _mm512_add_epi32(_mm512_mullo_epi32(a, x), y);
    }

    /// The same bits as 32 numbers of bfloat16.
    #[target_feature(enable = "avx512f,avx512bf16")]
    fn as_bf16(bits: __m512) -> __m512bh {
        // SAFETY: both are 64 bytes of which every pattern is a value.
        unsafe { std::mem::transmute(bits) }
    }
}

#[cfg(target_arch = "aarch64")]
mod arch {
    use super::{CHAINS, Probe};
    use std::{arch::aarch64::*, hint::black_box};

    pub(super) const PROBES: &[Probe] = &[
        Probe {
            dtype: "float",
            isa: "neon",
            needs: &["neon"],
            operations: (CHAINS * 8) as f64,
            run: f32_neon,
        },
        Probe {
            dtype: "double",
            isa: "neon",
            needs: &["neon"],
            operations: (CHAINS * 4) as f64,
            run: f64_neon,
        },
    ];

    fn f32_neon(rounds: u64) {
        // SAFETY: every AArch64 that this is compiled for has NEON, and the intrinsics touch registers only.
        unsafe {
            let (x, y) = black_box((vdupq_n_f32(0.0), vdupq_n_f32(0.0)));
            let mut sums = [vdupq_n_f32(0.0); CHAINS];
            for _ in 0..rounds {
                for sum in &mut sums {
                    *sum = vfmaq_f32(*sum, x, y);
                }
            }
            black_box(sums);
        }
    }

    fn f64_neon(rounds: u64) {
        // SAFETY: as above.
        unsafe {
            let (x, y) = black_box((vdupq_n_f64(0.0), vdupq_n_f64(0.0)));
            let mut sums = [vdupq_n_f64(0.0); CHAINS];
            for _ in 0..rounds {
                for sum in &mut sums {
                    *sum = vfmaq_f64(*sum, x, y);
                }
            }
            black_box(sums);
        }
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod arch {
    pub(super) const PROBES: &[super::Probe] = &[];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_probe_of_this_machine_gives_a_rate() {
        let features = FeatureSet::of_this_cpu();
        let mut done = Vec::new();
        let peaks = measure(&features, 1, &mut |share| done.push(share));
        assert!(peaks.iter().any(|peak| peak.isa == "plain"));
        // Wide enough for a slow machine under load and a fast one; a loop that was optimised away is outside.
        assert!(peaks.iter().all(|peak| (0.1..20_000.0).contains(&peak.rate)), "{peaks:?}");
        assert_eq!(done.last(), Some(&1.0));
        assert_eq!(done.len(), peaks.len());
    }
}
