//! Known unsupported or broken parts of a plugin, each with the reason.
//!
//! A file in TOML, or in JSON where its name says so:
//!
//! ```toml
//! [[unsupported]]                 # the case is not run, or the clause not judged
//! op = "Conv2D"
//! case = "large*"
//! reason = "the filter has to fit in the local store"
//!
//! [[expected_failure]]            # is run, and must fail
//! kernel = "Softmax[T=half] on CPU*"
//! clause = "values"
//! reason = "issue 12: the sum is kept in half"
//! ```
//!
//! | key | says |
//! |---|---|
//! | `op`, `kernel`, `device` | what an entry is about, at least one of them: the op, the whole name of a subject, as a report has it, the device type |
//! | `dtype` | the element types: any of the subject's type attributes has this one |
//! | `clause` | the promise, by its name in a report |
//! | `case` | the case, by its name in a report |
//! | `reason` | why; always there |
//!
//! In `op`, `kernel`, `device`, `dtype` and `case` a `*` stands for any text. An entry without clause and case covers
//! everything of the kernel: it is not run at all.
//!
//! # Invariants
//! - An expected failure is kept apart for each kernel and clause: where none of the cases that it covers
//!   fails, that is a failure itself.
//! - An entry that covers nothing is a failure; one for some cases, where only a sample of all was run, is a note.

use super::{Clause, Verdict};
use crate::{error::TestkitError, exceptions::matches};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt, fs, path::Path};

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place<'a> {
    /// Name of the op; empty for a device type and for the plugin itself.
    pub op: &'a str,
    /// Device type; empty for the plugin itself.
    pub device: &'a str,
    /// Whole name of what is checked.
    pub subject: &'a str,
}

impl Place<'_> {
    /// Whether an element type of the subject follows a pattern.
    fn has_type(self, pattern: &str) -> bool {
        let types = self.subject.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        let types = types.map_or("", |(types, _)| types).split(", ");
        types.filter_map(|of| of.split_once('=')).any(|(_, dtype)| matches(pattern, dtype))
    }
}

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Fields", into = "Fields")]
pub struct CheckException {
    op: Option<String>,
    kernel: Option<String>,
    device: Option<String>,
    dtype: Option<String>,
    clause: Option<Clause>,
    case: Option<String>,
    reason: String,
}

/// An entry as it is in a file.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    op: Option<String>,
    kernel: Option<String>,
    device: Option<String>,
    #[serde(default)]
    dtype: Option<String>,
    clause: Option<String>,
    case: Option<String>,
    reason: String,
}

impl From<CheckException> for Fields {
    fn from(entry: CheckException) -> Fields {
        let CheckException { op, kernel, device, dtype, clause, case, reason } = entry;
        let clause = clause.map(|clause| clause.name().to_owned());
        Fields { op, kernel, device, dtype, clause, case, reason }
    }
}

impl TryFrom<Fields> for CheckException {
    type Error = String;

    fn try_from(fields: Fields) -> Result<CheckException, String> {
        let Fields { op, kernel, device, dtype, clause, case, reason } = fields;
        if op.is_none() && kernel.is_none() && device.is_none() {
            return Err("an entry says what it is about: op, kernel or device".to_owned());
        }
        if reason.trim().is_empty() {
            return Err("an entry has a reason".to_owned());
        }
        let known = |name: String| {
            let all = || Clause::ALL.map(Clause::name).join(", ");
            Clause::from_name(&name)
                .ok_or_else(|| format!("no clause is called '{name}'; the clauses are {}", all()))
        };
        let clause = clause.filter(|name| name != "*").map(known).transpose()?;
        let case = case.filter(|pattern| pattern != "*");
        Ok(CheckException { op, kernel, device, dtype, clause, case, reason })
    }
}

impl CheckException {
    /// Whether it is for some cases only.
    pub fn is_of_cases(&self) -> bool {
        self.case.is_some()
    }

    /// Whether it is about this kernel or device, whatever the clause and case.
    pub fn is_about(&self, place: Place<'_>) -> bool {
        let fits = |pattern: &Option<String>, text| {
            pattern.as_ref().is_none_or(|pattern| matches(pattern, text))
        };
        fits(&self.op, place.op)
            && fits(&self.device, place.device)
            && fits(&self.kernel, place.subject)
            && self.dtype.as_ref().is_none_or(|dtype| place.has_type(dtype))
    }

    /// Whether it covers a case, whatever the clause.
    fn covers_case(&self, case: &str) -> bool {
        self.case.as_ref().is_none_or(|pattern| matches(pattern, case))
    }

    /// Whether it covers a finding.
    pub fn covers(&self, place: Place<'_>, clause: Clause, case: &str) -> bool {
        self.clause.is_none_or(|wanted| wanted == clause)
            && self.covers_case(case)
            && self.is_about(place)
    }

    /// Why.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

impl fmt::Display for CheckException {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clause = self.clause.map(|clause| clause.name().to_owned());
        let fields = [
            ("op", &self.op),
            ("kernel", &self.kernel),
            ("device", &self.device),
            ("dtype", &self.dtype),
            ("clause", &clause),
            ("case", &self.case),
        ];
        for (name, value) in fields {
            if let Some(value) = value {
                write!(f, "{name} = \"{value}\", ")?;
            }
        }
        write!(f, "reason = \"{}\"", self.reason)
    }
}

/// All entries of a plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckExceptions {
    /// Not run, or not judged.
    #[serde(default)]
    pub unsupported: Vec<CheckException>,
    /// Run, and must fail.
    #[serde(default)]
    pub expected_failure: Vec<CheckException>,
}

impl CheckExceptions {
    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read, or says what the form does not know; with the line.
    pub fn read(path: &Path) -> Result<CheckExceptions, TestkitError> {
        let failed = |detail: String| TestkitError::Exceptions { path: path.to_owned(), detail };
        let text = fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        if path.extension().is_some_and(|extension| extension == "json") {
            return serde_json::from_str(&text).map_err(|error| failed(error.to_string()));
        }
        toml::from_str(&text).map_err(|error| failed(error.to_string().trim_end().to_owned()))
    }

    /// Why a step is not run at all: an unsupported entry covers its case, whatever the clause.
    pub fn not_run(&self, place: Place<'_>, case: &str) -> Option<&CheckException> {
        self.unsupported.iter().find(|entry| {
            entry.clause.is_none() && entry.covers_case(case) && entry.is_about(place)
        })
    }
}

/// What an expected failure came to for one kernel and clause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Seen {
    passed: usize,
    failed: usize,
}

/// Applies exceptions to findings as they come, and knows in the end which of them were not right.
#[derive(Debug, Default)]
pub struct Applied {
    entries: CheckExceptions,
    used: Vec<bool>,
    expected: BTreeMap<(usize, String, Clause), Seen>,
}

impl Applied {
    /// Nothing applied so far.
    pub fn new(entries: CheckExceptions) -> Applied {
        let used = vec![false; entries.unsupported.len() + entries.expected_failure.len()];
        Applied { entries, used, expected: BTreeMap::new() }
    }

    /// The entries.
    pub fn entries(&self) -> &CheckExceptions {
        &self.entries
    }

    /// What a verdict becomes. Both kinds turn it into a skipped one with the reason, an expected failure only
    /// where it failed.
    pub fn apply(
        &mut self,
        place: Place<'_>,
        clause: Clause,
        case: &str,
        verdict: Verdict,
    ) -> Verdict {
        let covers = |entry: &CheckException| entry.covers(place, clause, case);
        if let Some(at) = self.entries.unsupported.iter().position(covers) {
            self.used[at] = true;
            return Verdict::Skipped(self.entries.unsupported[at].reason.clone());
        }
        let Some(at) = self.entries.expected_failure.iter().position(covers) else {
            return verdict;
        };
        if matches!(verdict, Verdict::Skipped(_)) {
            return verdict;
        }
        self.used[self.entries.unsupported.len() + at] = true;
        let seen = self.expected.entry((at, place.subject.to_owned(), clause)).or_default();
        match verdict {
            Verdict::Failed(_) => {
                seen.failed += 1;
                let reason = &self.entries.expected_failure[at].reason;
                Verdict::Skipped(format!("expected failure: {reason}"))
            }
            other => {
                seen.passed += 1;
                other
            }
        }
    }

    /// Kernels and clauses that were expected to fail, and of which every covered case passed.
    pub fn unexpected_passes(&self) -> impl Iterator<Item = (&str, Clause, String)> {
        let passed = self.expected.iter().filter(|(_, seen)| seen.failed == 0);
        passed.map(|((at, subject, clause), seen)| {
            let entry = &self.entries.expected_failure[*at];
            let message = format!(
                "passes {} times, though it is an expected failure ({entry}): take the entry out",
                seen.passed
            );
            (subject.as_str(), *clause, message)
        })
    }

    /// Entries that covered nothing, and what is to be said of them. Where only a part of the plugin was checked,
    /// `about` says whether an entry is about that part.
    pub fn stale(
        &self,
        about: impl Fn(&CheckException) -> bool,
    ) -> impl Iterator<Item = (&CheckException, String)> {
        let all = (self.entries.unsupported.iter().map(|entry| ("unsupported", entry)))
            .chain(self.entries.expected_failure.iter().map(|entry| ("expected_failure", entry)));
        all.zip(&self.used)
            .filter(move |((_, entry), used)| !**used && about(entry))
            .map(|((list, entry), _)| {
                (entry, format!("an entry of '{list}' covers nothing ({entry}): take it out, or mend its patterns"))
            })
    }
}

#[cfg(test)]
#[path = "exceptions_tests.rs"]
mod tests;
