//! Compiles every kernel of the plugin, for GPUs that need not be there: `compile --arch 90 --out DIR`.
//!
//! For each variant and architecture it writes machine code and PTX, as NVRTC makes them, and `variants.json`, which
//! says what is what. `.ci/cuda-kernels` looks at the results. NVRTC is found as the plugin finds it; there is no
//! host here to set knobs, so that the environment's `TENON_CUDA_LIBRARY_PATH` stands for `library_path`.

use std::{fmt::Write, fs, path::Path, process::ExitCode};
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

/// Compiles a variant for an architecture; the names of the two files.
fn compile(
    variant: &Variant,
    stem: &str,
    capability: u32,
    out: &Path,
) -> Result<[String; 2], String> {
    let made: [Result<String, String>; 2] =
        [(Form::Ptx, "ptx"), (Form::Cubin, "cubin")].map(|(form, extension)| {
            let code = nvrtc::compile(variant, Target { capability, form })
                .map_err(|error| error.message)?;
            let name = format!("{stem}.sm_{capability}.{extension}");
            // The text ends with 0, which is not for files.
            let code =
                if form == Form::Ptx { code.strip_suffix(&[0]).unwrap_or(&code) } else { &code };
            fs::write(out.join(&name), code).map_err(|error| format!("{name}: {error}"))?;
            Ok(name)
        });
    let [ptx, cubin] = made;
    Ok([ptx?, cubin?])
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// One line of `variants.json`.
fn line(variant: &Variant, files: &[(u32, [String; 2])]) -> String {
    let defines: Vec<String> = variant
        .defines()
        .iter()
        .map(|(name, value)| format!("{}: {}", quoted(name), quoted(value)))
        .collect();
    let files: Vec<String> = files
        .iter()
        .map(|(capability, [ptx, cubin])| {
            format!("\"{capability}\": {{\"ptx\": {}, \"cubin\": {}}}", quoted(ptx), quoted(cubin))
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
    let mut list = String::from("[\n");
    for (number, variant) in variants.iter().enumerate() {
        let stem: String = variant
            .to_string()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || "._=-".contains(c) { c } else { '_' })
            .collect();
        let mut files = Vec::new();
        for &capability in &options.architectures {
            files.push((capability, compile(variant, &stem, capability, out)?));
        }
        let comma = if number + 1 < variants.len() { "," } else { "" };
        let _ = writeln!(list, "{}{comma}", line(variant, &files));
    }
    list.push_str("]\n");
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
