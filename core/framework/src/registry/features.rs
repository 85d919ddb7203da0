//! Features of processors.

use crate::text::edit_distance;
use std::collections::BTreeSet;

/// Names of features that are present. A name that is not known is absent; kernels that need one are refused when they
/// are registered ([`RegistryError::UnknownFeature`](super::RegistryError::UnknownFeature)).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FeatureSet {
    names: BTreeSet<String>,
}

macro_rules! features {
    ($known:ident of $arch:literal by $detect:ident: $($name:tt),* $(,)?) => {
        /// Names of the features of this architecture.
        const $known: &[&str] = &[$($name),*];

        #[cfg(target_arch = $arch)]
        fn detect() -> FeatureSet {
            [$(($name, std::arch::$detect!($name))),*]
                .into_iter()
                .filter(|(_, present)| *present)
                .map(|(name, _)| name)
                .collect()
        }
    };
}

features! {
    X86_64 of "x86_64" by is_x86_feature_detected:
    "adx",
    "aes",
    "avx",
    "avx2",
    "avx512bf16",
    "avx512bitalg",
    "avx512bw",
    "avx512cd",
    "avx512dq",
    "avx512f",
    "avx512fp16",
    "avx512ifma",
    "avx512vbmi",
    "avx512vbmi2",
    "avx512vl",
    "avx512vnni",
    "avx512vp2intersect",
    "avx512vpopcntdq",
    "avxifma",
    "avxneconvert",
    "avxvnni",
    "avxvnniint16",
    "avxvnniint8",
    "bmi1",
    "bmi2",
    "cmpxchg16b",
    "ermsb",
    "f16c",
    "fma",
    "fxsr",
    "gfni",
    "lzcnt",
    "mmx",
    "movbe",
    "pclmulqdq",
    "popcnt",
    "rdrand",
    "rdseed",
    "rtm",
    "sha",
    "sha512",
    "sm3",
    "sm4",
    "sse",
    "sse2",
    "sse3",
    "sse4.1",
    "sse4.2",
    "sse4a",
    "ssse3",
    "tbm",
    "vaes",
    "vpclmulqdq",
    "xsave",
    "xsavec",
    "xsaveopt",
    "xsaves",
}

features! {
    AARCH64 of "aarch64" by is_aarch64_feature_detected:
    "aes",
    "bf16",
    "crc",
    "dotprod",
    "f32mm",
    "f64mm",
    "fcma",
    "fhm",
    "fp",
    "fp16",
    "frintts",
    "i8mm",
    "jsconv",
    "lse",
    "lse2",
    "neon",
    "pmull",
    "rand",
    "rcpc",
    "rcpc2",
    "rdm",
    "sha2",
    "sha3",
    "sm4",
    "sve",
    "sve2",
    "sve2-aes",
    "sve2-bitperm",
    "sve2-sha3",
    "sve2-sm4",
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn detect() -> FeatureSet {
    FeatureSet::default()
}

/// Whether a processor of any architecture may have a feature of this name. Another name is a mistake: a kernel that
/// needs it would never run.
pub(super) fn is_known(name: &str) -> bool {
    X86_64.contains(&name) || AARCH64.contains(&name)
}

/// The names of this architecture, for a message; of another than the two, those of both.
pub(super) fn known() -> String {
    match () {
        () if cfg!(target_arch = "x86_64") => X86_64.join(", "),
        () if cfg!(target_arch = "aarch64") => AARCH64.join(", "),
        () => [X86_64, AARCH64].concat().join(", "),
    }
}

/// The name that was probably meant; `None` if no name is near.
pub(super) fn nearest(slip: &str) -> Option<&'static str> {
    let slip = slip.to_ascii_lowercase();
    let slip: Vec<char> = slip.chars().collect();
    let distance = |name: &str| edit_distance(&slip, &name.chars().collect::<Vec<_>>());
    let all = [X86_64, AARCH64].concat().into_iter().map(|name| (distance(name), name));
    let (distance, name) = all.min()?;
    (distance <= 2 && distance < name.len()).then_some(name)
}

impl FeatureSet {
    /// The features of this machine's CPU, under the names that Rust gives them.
    pub fn of_this_cpu() -> FeatureSet {
        detect()
    }

    /// Whether the feature is present.
    pub fn contains(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// The names, sorted.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }
}

impl<'a> FromIterator<&'a str> for FeatureSet {
    fn from_iter<I: IntoIterator<Item = &'a str>>(names: I) -> FeatureSet {
        FeatureSet { names: names.into_iter().map(str::to_owned).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_baseline_is_there_and_unknown_names_are_not() {
        let features = FeatureSet::of_this_cpu();
        let baseline = if cfg!(target_arch = "x86_64") { "sse2" } else { "neon" };
        assert!(features.contains(baseline));
        assert!(!features.contains("avx9000") && !features.contains(""));
        assert!(!features.contains("avx2") || features.contains("avx"), "avx2 includes avx");
    }

    #[test]
    fn names_of_every_architecture_are_known_wherever_the_host_runs() {
        let here = FeatureSet::of_this_cpu();
        assert!(here.iter().all(|name| known().contains(name)), "{here:?}: {}", known());
        for name in here.iter().chain(["avx512bf16", "sve2-aes", "sse4.1"]) {
            assert!(is_known(name), "{name}");
            assert_eq!(nearest(name), Some(name));
        }
        for slip in ["avx-2", "AVX2", "sm_90", "avx9000", ""] {
            assert!(!is_known(slip), "{slip}");
        }
    }

    #[test]
    fn the_name_that_was_meant_is_found() {
        for (slip, meant) in
            [("avx-2", "avx2"), ("AVX2", "avx2"), ("avx512-f", "avx512f"), ("sse41", "sse4.1")]
        {
            assert_eq!(nearest(slip), Some(meant), "{slip}");
        }
        assert_eq!((nearest("a100_tensor_cores"), nearest("")), (None, None));
        assert_eq!((edit_distance(b"kitten", b"sitting"), edit_distance(b"", b"abc")), (3, 3));
    }
}
