//! `tenon checkpoint`: what files of weights hold, in which way two of them differ, and one form made of another.
//!
//! `open` reads the forms, `write` writes them, `diff` and `show` compare and print values. No runtime starts and no plugin
//! is loaded.

mod args;
mod diff;
mod error;
mod open;
mod show;
mod write;

pub use args::{ABOUT, CheckpointArgs, EXAMPLE};
pub use error::CheckpointError;

use crate::{
    args::Global,
    error::CliError,
    output::{print, print_json},
    table::Table,
};
use args::{CheckpointCommand, ConvertArgs, DiffArgs};
use open::{Checkpoint, Info};
use serde_json::{Value, json};
use std::{path::Path, process::ExitCode};
use tenon_bundle::Files;
use tenon_files::Access;

/// Lists, shows, converts or compares checkpoints.
///
/// # Errors
/// A file cannot be read or written, or is damaged; there is no tensor of a name.
pub fn checkpoint(global: &Global, args: &CheckpointArgs) -> Result<ExitCode, CliError> {
    let access = Access::to_any();
    let files = Files::new(&access, "checkpoint");
    match &args.command {
        CheckpointCommand::List(args) => list(global, files, &args.file)?,
        CheckpointCommand::Show(args) => show::show(global, files, args)?,
        CheckpointCommand::Convert(args) => convert(global, files, args)?,
        CheckpointCommand::Diff(args) => return compare(global, files, args),
    }
    Ok(ExitCode::SUCCESS)
}

/// A shape as text: `[2,3]`.
fn shape(dims: &[i64]) -> String {
    let dims: Vec<String> = dims.iter().map(ToString::to_string).collect();
    format!("[{}]", dims.join(","))
}

fn to_json(info: &Info) -> Value {
    json!({
        "name": info.name, "dtype": info.dtype.name(), "shape": info.dims, "bytes": info.bytes,
        "checksum": info.checksum.map(|sum| format!("{sum:08x}")), "file": info.file,
        "slices": info.slices,
    })
}

fn list(global: &Global, files: Files<'_>, file: &Path) -> Result<(), CliError> {
    let checkpoint = Checkpoint::open(files, file)?;
    let infos = checkpoint.infos();
    if global.json {
        return print_json(&json!({
            "file": file.display().to_string(), "kind": checkpoint.kind().name(),
            "tensors": infos.iter().map(to_json).collect::<Vec<_>>(),
        }));
    }
    let mut table = Table::new(["name", "dtype", "shape", ">bytes", "checksum", "file", ">slices"]);
    for info in infos {
        table.row([
            info.name.clone(),
            info.dtype.name().to_owned(),
            shape(&info.dims),
            info.bytes.map_or_else(String::new, |bytes| bytes.to_string()),
            info.checksum.map_or_else(String::new, |sum| format!("{sum:08x}")),
            info.file.clone(),
            if info.slices == 0 { String::new() } else { info.slices.to_string() },
        ]);
    }
    let bytes = infos.iter().filter_map(|info| info.bytes).fold(0, u64::saturating_add);
    let count = crate::output::count(infos.len(), "tensor");
    let kind = checkpoint.kind().name();
    let head = format!("{}: {kind}, {count}, {bytes} bytes\n", file.display());
    print(&format!("{head}{}", if table.is_empty() { String::new() } else { table.render(0) }))
}

fn convert(global: &Global, files: Files<'_>, args: &ConvertArgs) -> Result<(), CliError> {
    let mut from = Checkpoint::open(files, &args.from)?;
    let done = write::write(files, &mut from, args)?;
    if global.json {
        return print_json(&json!({
            "from": args.from.display().to_string(), "to": args.to.display().to_string(),
            "kind": done.kind.name(), "tensors": done.written, "bytes": done.bytes,
            "skipped": done.skipped,
        }));
    }
    let count = crate::output::count(done.written, "tensor");
    let mut text =
        format!("{}: {}, {count}, {} bytes\n", args.to.display(), done.kind.name(), done.bytes);
    done.skipped.iter().for_each(|name| text.push_str(&format!("left out: {name}\n")));
    print(&text)
}

fn compare(global: &Global, files: Files<'_>, args: &DiffArgs) -> Result<ExitCode, CliError> {
    let (mut a, mut b) = (Checkpoint::open(files, &args.a)?, Checkpoint::open(files, &args.b)?);
    let found = diff::diff(&mut a, &mut b)?;
    let is_same = found.differences.is_empty();
    if global.json {
        let rows: Vec<Value> = found.differences.iter().map(diff::Difference::json).collect();
        print_json(&json!({ "same": found.same, "differences": rows }))?;
    } else if is_same {
        print(&format!("the same: {}\n", crate::output::count(found.same, "tensor")))?;
    } else {
        let mut table = Table::new(["name", "what", "first", "second"]);
        found.differences.iter().for_each(|difference| table.row(difference.row()));
        let same = crate::output::count(found.same, "tensor");
        print(&format!("{}the same: {same}\n", table.render(0)))?;
    }
    Ok(if is_same { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
