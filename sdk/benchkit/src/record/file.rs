//! Files of records.

use super::{FORM, Record, Report, Run};
use std::io::{self, BufRead, Write};
use thiserror::Error;

/// Why a file of records cannot be read.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// A line that is not what it should be.
    #[error("line {line}: {source}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// The problem.
        source: serde_json::Error,
    },
    /// No line at all.
    #[error(
        "is empty: expected the run on the first line, as `tenon bench --record FILE` writes it"
    )]
    Empty,
    /// Written by a later Tenon.
    #[error(
        "has form {found} of records, this tenon reads up to {FORM}: use the tenon that wrote it"
    )]
    Form {
        /// Its form.
        found: u32,
    },
}

/// Writes the run and the records; comparisons and the like follow from them.
///
/// # Errors
/// An error of the writer.
pub fn write_lines(report: &Report, mut out: impl Write) -> io::Result<()> {
    out.write_all(b" ")?;
    serde_json::to_writer(&mut out, &report.run)?;
    out.write_all(b"\n")?;
    for record in &report.records {
        serde_json::to_writer(&mut out, record)?;
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// Reads what [`write_lines`] wrote.
///
/// # Errors
/// A file that cannot be read, a line that is not what it should be, a later form.
pub fn read_lines(text: impl BufRead) -> Result<Report, RecordError> {
    let mut run: Option<Run> = None;
    let mut records: Vec<Record> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let wrong = |source| RecordError::Line { line: at + 1, source };
        match &run {
            None => run = Some(first_line(&line).map_err(|error| error.at(at + 1))?),
            Some(_) => records.push(serde_json::from_str(&line).map_err(wrong)?),
        }
    }
    let run = run.ok_or(RecordError::Empty)?;
    let (comparisons, crossovers, problems) = (Vec::new(), Vec::new(), Vec::new());
    Ok(Report { run, records, comparisons, crossovers, problems })
}

/// Why the first line is invalid.
enum First {
    Json(serde_json::Error),
    Form(u32),
}

impl First {
    fn at(self, line: usize) -> RecordError {
        match self {
            First::Json(source) => RecordError::Line { line, source },
            First::Form(found) => RecordError::Form { found },
        }
    }
}

/// The form is read first: the rest of a later one may not be readable.
fn first_line(line: &str) -> Result<Run, First> {
    #[derive(serde::Deserialize)]
    struct Head {
        form: u32,
    }
    let head: Head = serde_json::from_str(line).map_err(First::Json)?;
    if head.form > FORM {
        return Err(First::Form(head.form));
    }
    serde_json::from_str(line).map_err(First::Json)
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
