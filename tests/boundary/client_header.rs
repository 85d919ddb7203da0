//! `core/capi/include/tenon_client.h` is what the functions of `core/capi/src/client` are.
//!
//! `TENON_UPDATE=1` writes it anew.

mod source;
mod types;

use source::{Callback, Function, Record, Source};
use std::{env, fmt::Write, fs, path::PathBuf};
use tenon_framework::{Code, DType, abi::MAX_RANK};
use tenon_tests::build::repository;

const BEGIN: &str = include_str!("client_header/begin.h");
const END: &str = include_str!("client_header/end.h");
/// Columns of a line.
const WIDTH: usize = 100;

fn file() -> PathBuf {
    repository().join("core/capi/include/tenon_client.h")
}

/// A comment, with the lines of a text wrapped anew.
fn comment(doc: &[String], pad: &str) -> String {
    if let [one] = doc
        && pad.len() + one.len() + 7 <= WIDTH
    {
        return format!("{pad}/** {one} */\n");
    }
    let mut text = format!("{pad}/**\n");
    for paragraph in doc {
        let mut line = format!("{pad} *");
        for word in paragraph.split_whitespace() {
            if line.len() + 1 + word.len() > WIDTH {
                let _ = writeln!(text, "{line}");
                line = format!("{pad} *");
            }
            let _ = write!(line, " {word}");
        }
        let _ = writeln!(text, "{line}");
    }
    let _ = writeln!(text, "{pad} */");
    text
}

fn enumeration(doc: &str, name: &str, values: impl Iterator<Item = (String, i32)>) -> String {
    let values: Vec<String> =
        values.map(|(name, value)| format!("  TN_{name} = {value}")).collect();
    format!("/** {doc} */\ntypedef enum {name} {{\n{}\n}} {name};\n\n", values.join(",\n"))
}

fn enumerations() -> String {
    let codes = (0..=16).map(|code| (Code(code).name().to_owned(), code));
    let types = (1..64).map(DType).filter(|dtype| dtype.is_valid());
    let types = types.map(|dtype| (dtype.name().to_uppercase(), dtype.0 as i32));
    let levels = ["OFF", "ERROR", "WARN", "INFO", "DEBUG", "TRACE"];
    let levels = levels.iter().zip(0..).map(|(name, value)| (format!("LOG_{name}"), value));
    enumeration("Canonical codes of statuses, numbered as TensorFlow's.", "tn_code", codes)
        + &enumeration("Element types, numbered as TensorFlow's.", "tn_dtype", types)
        + &enumeration("Severities of log messages, the most severe first.", "tn_log_level", levels)
        + &format!(
            "/** The most dimensions that a tensor has. */\n#define TN_MAX_RANK {MAX_RANK}\n\n"
        )
}

fn record(record: &Record) -> String {
    let mut text = comment(&record.doc, "");
    let _ = writeln!(text, "typedef struct {} {{", record.name);
    for field in &record.fields {
        text.push_str(&comment(&field.doc, "  "));
        let _ = writeln!(text, "  {};", field.declaration);
    }
    let _ = writeln!(text, "}} {};\n", record.name);
    text
}

fn callback(callback: &Callback) -> String {
    let arguments = callback.arguments.join(", ");
    comment(&callback.doc, "") + &format!("typedef void (*{})({arguments});\n\n", callback.name)
}

/// How a function may be called by threads.
const THREADS: &str = "Thread safety: several threads may call this at once.";

fn function(function: &Function) -> String {
    let mut doc = function.doc.clone();
    match doc.last_mut().filter(|last| last.starts_with("Threads: ")) {
        Some(own) => *own = own.replacen("Threads: ", "Thread safety: ", 1),
        None => doc.push(THREADS.to_owned()),
    }
    let start = types::joined(&function.result, &function.name);
    let arguments = match function.arguments.is_empty() {
        true => "void".to_owned(),
        false => function.arguments.join(", "),
    };
    let mut line = format!("{start}({arguments});");
    if line.len() > WIDTH {
        line = format!("{start}(\n    {});", function.arguments.join(",\n    "));
    }
    comment(&doc, "") + &line + "\n\n"
}

/// The header.
fn header() -> String {
    let source = Source::read(&repository().join("core/capi/src/client"));
    let mut text = BEGIN.to_owned() + "\n" + &enumerations();
    for handle in &source.handles {
        let _ = writeln!(text, "/** {} */\ntypedef struct {} {};", handle.1, handle.0, handle.0);
    }
    text.push('\n');
    source.callbacks.iter().for_each(|it| text.push_str(&callback(it)));
    source.records.iter().for_each(|it| text.push_str(&record(it)));
    for (title, functions) in &source.functions {
        let _ = writeln!(text, "/* {title} */\n");
        functions.iter().for_each(|it| text.push_str(&function(it)));
    }
    text + END
}

#[test]
fn the_client_header_is_current() {
    let made = header();
    if env::var("TENON_UPDATE").is_ok_and(|value| value == "1") {
        fs::write(file(), &made).expect("the header");
    }
    let committed = fs::read_to_string(file()).unwrap_or_default();
    let differs = made.lines().zip(committed.lines()).position(|(made, old)| made != old);
    assert!(
        made == committed,
        "tenon_client.h differs from core/capi/src/client from line {} on; write it anew with TENON_UPDATE=1",
        differs.unwrap_or_else(|| made.lines().count().min(committed.lines().count())) + 1
    );
}

/// A C programmer reads the header as documentation: no word of it may only mean something in Rust.
#[test]
fn the_client_header_speaks_c() {
    let made = header();
    let rust = ["::", "[`", "Option<", "unsafe", "`", "trait ", "impl ", "Handle<", "usize", "i64"];
    for (at, line) in made.lines().enumerate() {
        for word in rust {
            assert!(!line.contains(word), "line {}: `{word}` in {line:?}", at + 1);
        }
    }
}

/// The functions that the header declares.
pub fn functions() -> Vec<String> {
    let source = Source::read(&repository().join("core/capi/src/client"));
    let all = source.functions.into_iter().flat_map(|(_, functions)| functions);
    all.map(|function| function.name).collect()
}
