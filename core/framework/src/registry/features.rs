//! What a processor can do.

use std::collections::BTreeSet;

/// Names of features that are present. A name that nobody knows is absent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FeatureSet {
    names: BTreeSet<String>,
}

macro_rules! detected {
    ($detect:ident, $($name:tt),* $(,)?) => {
        [$(($name, std::arch::$detect!($name))),*]
            .into_iter()
            .filter(|(_, present)| *present)
            .map(|(name, _)| name)
            .collect()
    };
}

#[cfg(target_arch = "x86_64")]
fn detect() -> FeatureSet {
    detected!(
        is_x86_feature_detected,
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
        "avx512vpopcntdq",
        "avxifma",
        "avxneconvert",
        "avxvnni",
        "avxvnniint16",
        "avxvnniint8",
        "bmi1",
        "bmi2",
        "f16c",
        "fma",
        "gfni",
        "lzcnt",
        "pclmulqdq",
        "popcnt",
        "sse",
        "sse2",
        "sse3",
        "sse4.1",
        "sse4.2",
        "ssse3",
        "vaes",
        "vpclmulqdq",
    )
}

#[cfg(target_arch = "aarch64")]
fn detect() -> FeatureSet {
    detected!(
        is_aarch64_feature_detected,
        "aes",
        "bf16",
        "dotprod",
        "fhm",
        "fp16",
        "i8mm",
        "lse",
        "neon",
        "rdm",
        "sha2",
        "sve",
        "sve2",
    )
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn detect() -> FeatureSet {
    FeatureSet::default()
}

impl FeatureSet {
    /// The features of this machine's CPU, under the names that Rust gives them.
    pub fn of_this_cpu() -> FeatureSet {
        detect()
    }

    /// Adds a feature, such as one of a device.
    pub fn insert(&mut self, name: &str) {
        self.names.insert(name.to_owned());
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
    fn features_of_devices_are_added() {
        let mut features: FeatureSet = ["fma"].into_iter().collect();
        features.insert("sm_90");
        assert_eq!(features.iter().collect::<Vec<_>>(), ["fma", "sm_90"]);
    }
}
