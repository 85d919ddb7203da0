//! The messages between driver and worker: one JSON value a line, orders one way, messages the other.
//!
//! The worker loads the plugin and says what there is to check ([`Message::Ready`]): units, in an order that
//! is the same in every worker of a run. It then does what it is ordered to, one order at a time, and ends
//! each with [`Message::Done`]. Before each step it says so ([`Message::Begin`]): when it is never heard of
//! again, the driver knows where it was, and has the next worker go on behind that step.

use super::{Clause, Finding, exceptions::CheckException};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

/// Under which a worker generates cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sampling {
    /// Of the generators.
    pub seed: u64,
    /// Cases per subject, golden ones aside; about.
    pub cases: usize,
    /// All element types and cases.
    pub full: bool,
}

/// The first message to a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// The plugin that is checked.
    pub plugin: PathBuf,
    /// Plugins that are loaded along with it.
    pub others: Vec<PathBuf>,
    /// Whether plugins are searched for in the usual places too.
    pub search: bool,
    /// Settings of knobs.
    pub set: Vec<(String, String)>,
    /// The only ops that are checked; all, when empty.
    pub ops: Vec<String>,
    /// The only device types that are checked; all, when empty.
    pub devices: Vec<String>,
    /// How cases are generated.
    pub sampling: Sampling,
    /// Folder with golden data.
    pub goldens: Option<PathBuf>,
    /// A folder for files of the check's own; the driver sets it.
    #[serde(default)]
    pub scratch: PathBuf,
    /// Entries whose cases are not run; the driver sets them.
    pub unsupported: Vec<CheckException>,
}

/// What kind of thing is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnitKind {
    /// A kernel with one choice of element types.
    Kernel,
    /// An op that the plugin registers without a kernel.
    Op,
    /// A device type.
    Device,
    /// The plugin as a whole.
    Plugin,
}

/// One thing that is checked by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unit {
    /// What it is.
    pub kind: UnitKind,
    /// Its name, unique within the plugin: [`Subject`](super::Subject)'s text, or the device type's.
    pub name: String,
    /// Name of the op; may be empty.
    pub op: String,
    /// Device type; may be empty.
    pub device: String,
    /// Label of the kernel; may be empty.
    pub label: String,
    /// Where the author registered it, as `file:line`; may be empty.
    pub source: String,
}

impl Unit {
    /// The kernel or device without its element types: a row of the summary.
    pub fn row(&self) -> String {
        match self.kind {
            UnitKind::Kernel if self.label.is_empty() => format!("{} on {}", self.op, self.device),
            UnitKind::Kernel => format!("{} on {} '{}'", self.op, self.device, self.label),
            _ => self.name.clone(),
        }
    }
}

/// An order to a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Runs the steps of a unit, from this one.
    Run {
        /// The unit.
        unit: usize,
        /// The first step that is run.
        from: usize,
        /// Cases that have ended a process: what is judged once per unit is judged on others. Of a plugin as a whole,
        /// names of kernels that have.
        without: Vec<String>,
    },
    /// Calls a kernel on a case or two, and until it takes one.
    Call {
        /// The unit.
        unit: usize,
    },
    /// Says what a step is.
    Describe {
        /// The unit.
        unit: usize,
        /// The step.
        step: usize,
    },
    /// Runs one case of a kernel.
    Try {
        /// The unit.
        unit: usize,
        /// The case, as [`case_to_json`](super::json::case_to_json) writes it.
        case: Value,
    },
    /// Writes inputs, expectation and result of one case of a kernel as arrays, in this order: where the kernel ends
    /// the process, what comes before it is there.
    Keep {
        /// The unit.
        unit: usize,
        /// The case, as for `Try`.
        case: Value,
        /// The folder, which is made where it is missing.
        folder: PathBuf,
    },
    /// Runs what is judged once per unit, one clause of it.
    Clause {
        /// The unit.
        unit: usize,
        /// The clause.
        clause: Clause,
    },
}

/// A worker's message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Message {
    /// The plugin is loaded, and these units are to be checked.
    Ready {
        /// The units.
        units: Vec<Unit>,
        /// A remark for the reader of the report.
        notes: Vec<String>,
    },
    /// The plugin is not loaded.
    Refused {
        /// Why.
        error: String,
    },
    /// Steps of the unit that was ordered, all of them, and how many are cases.
    Steps {
        /// How many steps there are.
        steps: usize,
        /// How many of them are cases.
        cases: usize,
    },
    /// A step begins, or another part of it.
    Begin {
        /// Its number in its unit.
        step: usize,
        /// Name of the case; empty for what is judged once per unit.
        name: String,
        /// The promise that is looked at; none while a case runs plainly.
        clause: Option<Clause>,
        /// Whether code runs that is not what is checked: an oracle.
        oracle: bool,
        /// Whether the call is on inputs as no session gives them: what ends it is not a finding, a read beside a buffer
        /// aside.
        #[serde(default)]
        unpromised: bool,
    },
    /// Something was found in the step that began last.
    Found(Finding),
    /// The device of the step is lost: the worker is of no more use.
    Lost {
        /// The device's message.
        error: String,
    },
    /// What a step is.
    Described {
        /// The case; none for what is judged once per unit.
        case: Option<Value>,
        /// The clause, where there is no case.
        clause: Option<Clause>,
    },
    /// A case that was to be tried is refused before any kernel runs.
    Unfit {
        /// Why.
        reason: String,
    },
    /// The order is carried out.
    Done,
    /// The order cannot be carried out.
    Broken {
        /// Why.
        error: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_lines() {
        let messages = [
            Message::Begin {
                step: 3,
                name: "prime\n1".into(),
                clause: Some(Clause::InPlace),
                oracle: false,
                unpromised: true,
            },
            Message::Found(Finding::failed(Clause::Values, "line\nline")),
            Message::Found(Finding::passed(Clause::Values)),
            Message::Done,
        ];
        for message in messages {
            let line = serde_json::to_string(&message).unwrap();
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(serde_json::from_str::<Message>(&line).unwrap(), message);
        }
    }

    #[test]
    fn a_row_leaves_the_types_out() {
        let mut unit = Unit {
            kind: UnitKind::Kernel,
            name: "Add[T=half] on CPU 'avx2'".into(),
            op: "Add".into(),
            device: "CPU".into(),
            label: "avx2".into(),
            source: String::new(),
        };
        assert_eq!(unit.row(), "Add on CPU 'avx2'");
        unit.kind = UnitKind::Device;
        assert_eq!(unit.row(), unit.name);
    }
}
