//! The limits of the machine: arithmetic per element type and instruction set, bandwidth per level of memory.
//!
//! A limit is the best of several tries with the threads that kernels get, on the memory that kernels get. Bytes are
//! those that the program asks for: what a store reads of a line before it writes it does not count, and stores that do
//! not read it count where they are faster. Limits are measured once, and kept by model of the CPU and number of threads.

mod bandwidth;
mod cache;
mod peak;
mod together;

use crate::record::{Level, Peak, Reached, Roofline, Work};
pub use cache::{load_or_measure, stored_in};
use tenon_framework::{DType, registry::FeatureSet};

/// Measures the limits.
pub fn measure(features: &FeatureSet, threads: u32, progress: &mut dyn FnMut(f64)) -> Roofline {
    let peaks = peak::measure(features, threads, &mut |share| progress(0.4 * share));
    let levels = bandwidth::measure(features, threads, &mut |share| progress(0.4 + 0.6 * share));
    Roofline { threads, peaks, levels }
}

/// What instruction sets reach for products of an element type: half precision is computed in single.
pub fn peaks_of(roofline: &Roofline, dtype: DType) -> impl Iterator<Item = &Peak> {
    let names: &[&str] = match dtype {
        DType::HALF => &["half", "float"],
        DType::BFLOAT16 => &["bfloat16", "float"],
        DType::DOUBLE => &["double"],
        DType::FLOAT => &["float"],
        DType::INT8 | DType::UINT8 | DType::QINT8 | DType::QUINT8 => &["int8", "int32"],
        DType::INT32 | DType::UINT32 | DType::QINT32 => &["int32"],
        _ => &[],
    };
    roofline.peaks.iter().filter(move |peak| names.contains(&peak.dtype.as_str()))
}

/// The arithmetic limit for products of an element type.
fn peak_of(roofline: &Roofline, dtype: DType) -> Option<f64> {
    peaks_of(roofline, dtype).map(|peak| peak.rate).max_by(f64::total_cmp)
}

/// The level that holds this many bytes.
fn level_of(roofline: &Roofline, bytes: f64) -> Option<&Level> {
    let each = bytes / f64::from(roofline.threads.max(1));
    let holds = |level: &&Level| level.bytes.is_none_or(|size| each <= size as f64);
    roofline.levels.iter().find(holds).or(roofline.levels.last())
}

/// Bandwidth of a level for this mixture of reads and writes.
fn bandwidth_of(level: &Level, work: &Work) -> f64 {
    // Between two mixtures that were measured the faster one counts: a limit is not below what can be reached.
    match work.read / (work.read + work.written) {
        share if share > 0.9 => level.read,
        share if share > 2.0 / 3.0 => level.read.max(level.triad),
        share if share > 0.5 => level.triad.max(level.copy),
        share if share > 0.1 => level.copy.max(level.write),
        _ => level.write,
    }
}

/// The limits of calls that find nothing in a cache: those of the last level alone.
pub fn of_memory(roofline: &Roofline) -> Roofline {
    let levels = roofline.levels.last().cloned().into_iter().collect();
    Roofline { levels, ..roofline.clone() }
}

/// How far a call that takes `ns` is from the limit, in GFLOP/s where `by_flops`, else in GB/s; `None` where there
/// is no work, or no limit for the type.
pub fn reached(
    roofline: &Roofline,
    work: &Work,
    dtype: DType,
    by_flops: bool,
    ns: f64,
) -> Option<Reached> {
    let bytes = work.read + work.written;
    if bytes <= 0.0 || ns <= 0.0 {
        return None;
    }
    let level = level_of(roofline, bytes)?;
    let bandwidth = bandwidth_of(level, work);
    let intensity = work.flops.map(|flops| flops / bytes);
    let compute = intensity.and_then(|intensity| Some((intensity, peak_of(roofline, dtype)?)));
    if by_flops && compute.is_none() {
        return None;
    }
    // In bytes: what the arithmetic lets through, and what the memory does.
    let through = compute.map_or(f64::INFINITY, |(intensity, peak)| peak / intensity);
    let roof = through.min(bandwidth);
    let bound = if through < bandwidth { "compute".to_owned() } else { level.name.clone() };
    let fraction = bytes / ns / roof;
    let scale = if by_flops { intensity.unwrap_or(1.0) } else { 1.0 };
    Some(Reached { intensity, bound, roof: roof * scale, fraction, impossible: fraction > 1.0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::CostSource;

    fn level(name: &str, bytes: Option<u64>, rate: f64) -> Level {
        let (read, write, copy, triad) = (rate, 0.5 * rate, 0.7 * rate, 0.8 * rate);
        Level { name: name.into(), bytes, read, write, copy, triad }
    }

    fn roofline() -> Roofline {
        let peak =
            |dtype: &str, isa: &str, rate| Peak { dtype: dtype.into(), isa: isa.into(), rate };
        Roofline {
            threads: 1,
            peaks: vec![peak("float", "avx2", 50.0), peak("float", "avx512f", 100.0)],
            levels: vec![level("L1", Some(1000), 100.0), level("memory", None, 10.0)],
        }
    }

    fn work(flops: Option<f64>, read: f64, written: f64) -> Work {
        Work { flops, read, written, source: CostSource::Op }
    }

    #[test]
    fn a_product_is_bound_by_arithmetic_and_a_sum_by_memory() {
        let product = work(Some(1e6), 600.0, 300.0);
        let found = reached(&roofline(), &product, DType::FLOAT, true, 20_000.0).unwrap();
        assert_eq!((found.bound.as_str(), found.roof), ("compute", 100.0));
        assert!((found.fraction - 0.5).abs() < 1e-12 && !found.impossible);
        // 3000 bytes do not fit the first level; two reads and a write run at 8 GB/s.
        let sum = work(Some(250.0), 2000.0, 1000.0);
        let found = reached(&roofline(), &sum, DType::FLOAT, false, 500.0).unwrap();
        assert_eq!((found.bound.as_str(), found.roof), ("memory", 8.0));
        assert!((found.fraction - 0.75).abs() < 1e-12);
    }

    #[test]
    fn more_than_the_limit_is_said_and_not_cut() {
        let copy = work(None, 400.0, 400.0);
        let found = reached(&roofline(), &copy, DType::STRING, false, 4.0).unwrap();
        assert!(found.impossible && (found.fraction - 200.0 / 70.0).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn without_work_or_limit_nothing_is_said() {
        let roofline = roofline();
        assert_eq!(reached(&roofline, &work(None, 0.0, 0.0), DType::FLOAT, false, 5.0), None);
        assert_eq!(reached(&roofline, &work(Some(9.0), 8.0, 8.0), DType::DOUBLE, true, 5.0), None);
        // Half precision is computed in single.
        assert!(reached(&roofline, &work(Some(9.0), 8.0, 8.0), DType::HALF, true, 5.0).is_some());
    }

    #[test]
    fn threads_share_the_levels() {
        let two = Roofline { threads: 2, ..roofline() };
        assert_eq!(level_of(&two, 1900.0).unwrap().name, "L1");
        assert_eq!(level_of(&roofline(), 1900.0).unwrap().name, "memory");
    }
}
