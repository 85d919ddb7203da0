//! Limits that were measured before.

use super::measure;
use crate::record::Roofline;
use serde::{Deserialize, Serialize};
use std::{
    io,
    path::{Path, PathBuf},
};
use tenon_framework::registry::FeatureSet;
use tenon_runtime::host::{cache, digest::cache_folder};

/// Moves when the probes change.
const VERSION: u32 = 2;
/// No record of limits is longer.
const MAX_BYTES: u64 = 1 << 20;

#[derive(Serialize, Deserialize)]
struct Stored {
    version: u32,
    cpu: String,
    features: Vec<String>,
    roofline: Roofline,
}

/// The file for a CPU and a number of threads; `None` without a cache folder.
pub fn stored_in(cpu: &str, threads: u32) -> Option<PathBuf> {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = cpu.chars().map(plain).collect();
    let name: Vec<&str> = name.split('-').filter(|word| !word.is_empty()).collect();
    let name = format!("{}-threads-{threads}.json", name.join("-"));
    Some(cache_folder()?.join("roofline").join(name))
}

/// The limits that are stored; else, or where `anew`, those that are measured now and stored. Where they cannot be
/// stored, why.
pub fn load_or_measure(
    cpu: &str,
    features: &FeatureSet,
    threads: u32,
    anew: bool,
    progress: &mut dyn FnMut(f64),
) -> (Roofline, Option<String>) {
    let file = stored_in(cpu, threads);
    let key = Key { cpu, features };
    if let Some(stored) = file.as_deref().filter(|_| !anew).and_then(|file| load(file, key)) {
        return (stored, None);
    }
    let roofline = measure(features, threads, progress);
    let kept = file.as_deref().map_or(Ok(()), |file| store(file, key, &roofline));
    let warning = kept.err().map(|error| {
        let file = file.unwrap_or_default();
        format!("the machine's limits are not kept: {}: {error}", file.display())
    });
    (roofline, warning)
}

/// What stored limits are for.
#[derive(Clone, Copy)]
struct Key<'a> {
    cpu: &'a str,
    features: &'a FeatureSet,
}

fn names(features: &FeatureSet) -> Vec<String> {
    features.iter().map(str::to_owned).collect()
}

fn load(file: &Path, key: Key<'_>) -> Option<Roofline> {
    let stored: Stored = serde_json::from_slice(&cache::read(file, MAX_BYTES).ok()?).ok()?;
    let fits = stored.version == VERSION
        && stored.cpu == key.cpu
        && stored.features == names(key.features);
    fits.then_some(stored.roofline)
}

fn store(file: &Path, key: Key<'_>, roofline: &Roofline) -> io::Result<()> {
    let (cpu, features) = (key.cpu.to_owned(), names(key.features));
    let stored = Stored { version: VERSION, cpu, features, roofline: roofline.clone() };
    let mut bytes = serde_json::to_vec_pretty(&stored)?;
    bytes.push(b'\n');
    cache::write(file, &bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Peak;
    use std::fs;

    #[test]
    fn limits_are_kept_for_the_same_cpu_and_features() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("roofline").join("a.json");
        let features: FeatureSet = ["avx2", "fma"].into_iter().collect();
        let key = Key { cpu: "A CPU (1/2/3)", features: &features };
        let peak = Peak { dtype: "float".into(), isa: "avx2".into(), rate: 0.1 + 0.2 };
        let roofline = Roofline { threads: 1, peaks: vec![peak], levels: Vec::new() };
        assert_eq!(load(&file, key), None);
        store(&file, key, &roofline).unwrap();
        assert_eq!(load(&file, key), Some(roofline));
        assert_eq!(load(&file, Key { cpu: "another", ..key }), None);
        let fewer: FeatureSet = ["avx2"].into_iter().collect();
        assert_eq!(load(&file, Key { features: &fewer, ..key }), None);
        fs::write(&file, "{").unwrap();
        assert_eq!(load(&file, key), None);
    }

    #[test]
    fn a_file_is_named_after_cpu_and_threads() {
        let file = stored_in("Intel(R) Xeon(R) CPU @ 2.0GHz (6/207/2)", 2);
        let name = file.map(|file| file.file_name().unwrap().to_string_lossy().into_owned());
        let expected = "intel-r-xeon-r-cpu-2-0ghz-6-207-2-threads-2.json";
        assert!(name.is_none_or(|name| name == expected));
    }
}
