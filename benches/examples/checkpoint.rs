//! How long it takes to save and to restore a checkpoint, beside writing and reading the same bytes plainly.
//!
//!     cargo run --release -p tenon-benches --example checkpoint -- FOLDER [MIB [ROUNDS]]
//!
//! The folder is created, and must be empty. Prints JSON lines in the form of `benches/records`. In each round a file is written at once and made durable, then a
//! bundle of 16 tensors of floats, and both are read into fresh memory; `ratio` is the median over the rounds of the plain
//! time by that of the bundle.

use std::{
    fs::{self, File},
    hint::black_box,
    io::{Read, Write},
    path::Path,
    time::Instant,
};
use tenon_bundle::{Bundle, BundleWriter, Content, Files};
use tenon_files::Access;
use tenon_sdk::DType;

type Failure = Box<dyn std::error::Error>;

const TENSORS: usize = 16;

/// Nanoseconds that something takes.
fn timed<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<(f64, T), Failure> {
    let begin = Instant::now();
    let done = work()?;
    Ok((begin.elapsed().as_nanos() as f64, done))
}

fn median(of: &[f64]) -> f64 {
    let mut sorted = of.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

fn write_plainly(path: &Path, tensors: &[Vec<u8>]) -> Result<(), Failure> {
    let mut file = File::create(path)?;
    tensors.iter().try_for_each(|tensor| file.write_all(tensor))?;
    Ok(file.sync_all()?)
}

fn read_plainly(path: &Path, each: usize) -> Result<(), Failure> {
    let mut file = File::open(path)?;
    for _ in 0..TENSORS {
        let mut bytes = vec![0; each];
        file.read_exact(&mut bytes)?;
        black_box(bytes);
    }
    Ok(())
}

fn name(at: usize) -> Vec<u8> {
    format!("layer_{at}/kernel").into_bytes()
}

fn save(files: Files<'_>, prefix: &Path, tensors: &[Vec<u8>]) -> Result<(), Failure> {
    let mut writer = BundleWriter::create(files, prefix)?;
    for (at, bytes) in tensors.iter().enumerate() {
        let dims = [(bytes.len() / 4) as i64];
        writer.add(&name(at), DType::FLOAT, &dims, Content::Bytes(bytes))?;
    }
    Ok(writer.finish()?)
}

fn restore(files: Files<'_>, prefix: &Path, each: usize) -> Result<Vec<u8>, Failure> {
    let mut bundle = Bundle::open(files, prefix)?;
    let mut last = Vec::new();
    for at in 0..TENSORS {
        let entry = bundle.find(&name(at))?.ok_or("a tensor is missing")?;
        let mut bytes = vec![0; each];
        bundle.read(&name(at), &entry, None, &mut bytes)?;
        last = black_box(bytes);
    }
    Ok(last)
}

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [folder, numbers @ ..] = &words[..] else {
        return Err("expected FOLDER [MIB [ROUNDS]]".into());
    };
    let number = |at: usize, default: usize| numbers.get(at).map_or(Ok(default), |n| n.parse());
    let (mib, rounds) = (number(0, 1024)?, number(1, 5)?);
    let each = mib * (1 << 20) / TENSORS / 4 * 4;
    let float = |at: usize| ((at % 65_521) as f32).to_le_bytes();
    let tensors: Vec<Vec<u8>> =
        (0..TENSORS).map(|t| (0..each / 4).flat_map(|at| float(at + t)).collect()).collect();
    let (folder, access) = (Path::new(folder), Access::to_any());
    let files = Files::new(&access, "prefix");
    fs::create_dir_all(folder)?;
    if fs::read_dir(folder)?.next().is_some() {
        return Err(format!("{}: expected an empty folder", folder.display()).into());
    }
    let (plain, prefix) = (folder.join("plain"), folder.join("model"));
    let mut times = [const { Vec::new() }; 4];
    for _ in 0..rounds {
        times[0].push(timed(|| write_plainly(&plain, &tensors))?.0);
        times[1].push(timed(|| save(files, &prefix, &tensors))?.0);
        times[2].push(timed(|| read_plainly(&plain, each))?.0);
        let (time, last) = timed(|| restore(files, &prefix, each))?;
        times[3].push(time);
        assert!(last == tensors[TENSORS - 1], "other values were restored");
        for entry in fs::read_dir(folder)? {
            fs::remove_file(entry?.path())?;
        }
    }
    for (at, what) in ["save", "restore"].into_iter().enumerate() {
        let [plain, own] = [&times[2 * at], &times[2 * at + 1]];
        let ratios: Vec<f64> = plain.iter().zip(own).map(|(plain, own)| plain / own).collect();
        for (peer, times) in [("plain file", plain), ("tenon", own)] {
            let (median, min) = (median(times), times.iter().copied().fold(f64::MAX, f64::min));
            let rate = (TENSORS * each) as f64 / median;
            println!(
                "{{\"bench\": \"checkpoint\", \"size\": \"{what}_{mib}MiB\", \"peer\": \"{peer}\", \"threads\": 1, \
                 \"median_ns\": {median:.0}, \"min_ns\": {min:.0}, \"samples\": {rounds}, \"rate\": {rate:.3}, \
                 \"unit\": \"GB/s\", \"ratio\": {:.3}}}",
                if peer == "tenon" { self::median(&ratios) } else { 1.0 }
            );
        }
    }
    Ok(())
}
