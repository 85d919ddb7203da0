//! Running one reproducer again.

use super::{
    Options, absolute, facts,
    follow::{Begun, Gone, Outcome, follow},
    scratch, start,
};
use crate::{
    check::{
        Finding, Verdict,
        protocol::{Message, Order},
        reproducer::{Reproducer, What},
    },
    error::TestkitError,
};
use std::path::PathBuf;

/// The outcome of a reproducer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Again {
    /// Everything that was found, in order.
    pub findings: Vec<Finding>,
    /// Whether the plugin is another than the one that failed.
    pub changed: bool,
    /// What the worker wrote to its standard error, where it ended.
    pub said: String,
    /// The folder with the case's arrays, where they were asked for.
    pub arrays: Option<PathBuf>,
}

impl Again {
    /// Whether it fails no more, in any clause.
    pub fn is_right(&self) -> bool {
        !self.findings.iter().any(|finding| matches!(finding.verdict, Verdict::Failed(_)))
    }
}

/// Runs a reproducer again, under the plugin that `options` names.
///
/// # Errors
/// The file is not a plugin, no worker can be started, the plugin has no such kernel, the case is none that the
/// op takes.
pub fn again(options: &Options, reproducer: &Reproducer) -> Result<Again, TestkitError> {
    let plugin = facts(&options.setup.plugin)?;
    let mut setup = options.setup.clone();
    setup.plugin.clone_from(&plugin.file);
    let scratch = scratch(&options.worker, &mut setup)?;
    let wanted = &reproducer.unit.name;
    let failed = |detail: String| TestkitError::Again { unit: wanted.clone(), detail };
    let (mut child, units) = start(&options.worker, &setup)?;
    let unit = units.iter().position(|unit| unit.name == *wanted);
    let unit = unit.ok_or_else(|| {
        let file = plugin.file.display();
        failed(format!("{file} has no such kernel or device type"))
    })?;
    child.order(&match &reproducer.run {
        What::Case(case) => Order::Try { unit, case: case.clone() },
        What::Clause(clause) => Order::Clause { unit, clause: *clause },
    });
    let mut findings = Vec::new();
    let mut heard = |_: Option<&Begun>, message: Message| {
        if let Message::Found(finding) = message {
            findings.push(finding);
        }
    };
    let (child, outcome) = follow(child, options.limit, &mut heard);
    let mut arrays = None;
    if let (Some(folder), What::Case(case)) = (&options.arrays, &reproducer.run) {
        let folder = folder.join(reproducer.name());
        let order = Order::Keep { unit, case: case.clone(), folder: absolute(&folder) };
        let mut child = match child {
            Some(child) => child,
            None => start(&options.worker, &setup)?.0,
        };
        child.order(&order);
        if let (_, Outcome::Broken(error)) = follow(child, options.limit, &mut |_, _| {}) {
            return Err(failed(format!("its arrays are not written: {error}")));
        }
        arrays = Some(folder);
    }
    drop(scratch);
    let mut said = String::new();
    match outcome {
        Outcome::Done => {}
        Outcome::Broken(error) => return Err(failed(error)),
        Outcome::Unfit(reason) => return Err(failed(format!("the case is refused: {reason}"))),
        Outcome::Gone(gone) => {
            findings.push(Gone::blame(&gone));
            said = gone.said;
        }
    }
    Ok(Again { findings, changed: plugin.digest != reproducer.digest, said, arrays })
}
