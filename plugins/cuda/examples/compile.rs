//! Compiles every kernel of the plugin, for GPUs that need not be there: `compile --arch 90 --out DIR`.
//!
//! For each variant and architecture it writes machine code and PTX, as NVRTC makes them, and `variants.json`, which
//! says what is what; a file that is there from an earlier run is not made again. `.ci/cuda-kernels` looks at the results. NVRTC is found as the plugin finds it; there is no
//! host here to set knobs, so that the environment's `TENON_CUDA_LIBRARY_PATH` stands for `library_path`.

use std::{
    fs, iter,
    num::NonZero,
    path::Path,
    process::ExitCode,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};
use tenon_cuda::{
    compile::{
        Variant,
        nvrtc::{self, Form, Target},
    },
    kernels, libraries,
};

const USAGE: &str = "usage: compile --arch NN [--arch NN ...] --out DIR [--match TEXT]";

#[derive(Default)]
struct Options {
    architectures: Vec<u32>,
    out: String,
    only: String,
}

fn options() -> Result<Options, String> {
    let mut options = Options::default();
    let mut words = std::env::args().skip(1);
    while let Some(flag) = words.next() {
        let value = words.next().ok_or_else(|| format!("{flag} without a value; {USAGE}"))?;
        match flag.as_str() {
            "--arch" => {
                let number =
                    value.parse().map_err(|_| format!("--arch {value}: expected 75, 90 ..."))?;
                options.architectures.push(number);
            }
            "--out" => options.out = value,
            "--match" => options.only = value,
            _ => return Err(format!("{flag} is not known; {USAGE}")),
        }
    }
    match options.architectures.is_empty() || options.out.is_empty() {
        true => Err(USAGE.to_owned()),
        false => Ok(options),
    }
}

/// One variant for one architecture.
struct Job<'a> {
    variant: &'a Variant,
    target: Target,
    /// Name of its files, without extension: what it is made of, so that a file that is there is right.
    stem: String,
}

impl Job<'_> {
    fn new(variant: &Variant, capability: u32) -> Result<Job<'_>, String> {
        let target = Target { capability, form: Form::Cubin };
        let print = nvrtc::fingerprint(variant, target).map_err(|error| error.message)?;
        let stem = format!("{}.{}.sm_{capability}", variant.source().name, &print[..16]);
        Ok(Job { variant, target, stem })
    }

    fn files(&self) -> [String; 2] {
        ["ptx", "cubin"].map(|extension| format!("{}.{extension}", self.stem))
    }

    /// Compiles, and writes both files, unless they are there.
    fn run(&self, out: &Path) -> Result<(), String> {
        let [ptx_file, code_file] = self.files().map(|name| out.join(name));
        if ptx_file.exists() && code_file.exists() {
            return Ok(());
        }
        let compiled = nvrtc::compile(self.variant, self.target);
        let (code, ptx) = compiled
            .and_then(|made| Ok((made.code()?, made.ptx()?)))
            .map_err(|error| error.message)?;
        // The text ends with 0, which is not for files.
        let ptx = ptx.strip_suffix(&[0]).unwrap_or(&ptx);
        [(code_file, &code[..]), (ptx_file, ptx)].into_iter().try_for_each(|(file, bytes)| {
            // Renamed into place: half of a file is never taken for one.
            let part = file.with_extension("part");
            let written = fs::write(&part, bytes).and_then(|()| fs::rename(&part, &file));
            written.map_err(|error| format!("{}: {error}", file.display()))
        })
    }
}

/// Does all jobs on the threads of the machine; what failed.
fn run_all(jobs: &[Job<'_>], out: &Path) -> Vec<String> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        let worker = || {
            let take = || jobs.get(next.fetch_add(1, Ordering::Relaxed));
            iter::from_fn(take).filter_map(|job| job.run(out).err()).collect::<Vec<String>>()
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap_or_else(|_| vec!["a thread panicked".into()]))
            .collect()
    })
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// One line of `variants.json`.
fn line(variant: &Variant, jobs: &[Job<'_>]) -> String {
    let defines: Vec<String> = variant
        .defines()
        .iter()
        .map(|(name, value)| format!("{}: {}", quoted(name), quoted(value)))
        .collect();
    let files: Vec<String> = jobs
        .iter()
        .map(|job| {
            let capability = job.target.capability;
            let [ptx, cubin] = job.files().map(|name| quoted(&name));
            format!("\"{capability}\": {{\"ptx\": {ptx}, \"cubin\": {cubin}}}")
        })
        .collect();
    format!(
        "{{\"name\": {}, \"source\": {}, \"defines\": {{{}}}, \"files\": {{{}}}}}",
        quoted(&variant.to_string()),
        quoted(variant.source().name),
        defines.join(", "),
        files.join(", ")
    )
}

fn run() -> Result<(), String> {
    let options = options()?;
    libraries::look_in(&std::env::var("TENON_CUDA_LIBRARY_PATH").unwrap_or_default());
    let out = Path::new(&options.out);
    fs::create_dir_all(out).map_err(|error| format!("{}: {error}", options.out))?;
    let variants: Vec<Variant> = kernels::variants()
        .into_iter()
        .filter(|variant| variant.to_string().contains(&options.only))
        .collect();
    let jobs = variants
        .iter()
        .flat_map(|variant| options.architectures.iter().map(move |arch| Job::new(variant, *arch)))
        .collect::<Result<Vec<Job<'_>>, String>>()?;
    let failed = run_all(&jobs, out);
    if !failed.is_empty() {
        return Err(format!("{} do not compile:\n{}", failed.len(), failed.join("\n")));
    }
    let per_variant = jobs.chunks(options.architectures.len());
    let lines: Vec<String> =
        variants.iter().zip(per_variant).map(|(variant, jobs)| line(variant, jobs)).collect();
    let list = format!("[\n{}\n]\n", lines.join(",\n"));
    fs::write(out.join("variants.json"), list)
        .map_err(|error| format!("variants.json: {error}"))?;
    println!("{} variants for {} architectures", variants.len(), options.architectures.len());
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("compile: {message}");
            ExitCode::FAILURE
        }
    }
}
