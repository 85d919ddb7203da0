//! All cases of one op, and of all ops of a folder, with exceptions.

use crate::{
    error::TestkitError,
    exceptions::Exceptions,
    golden::{self, GoldenCase},
    harness::{Failure, Form, Harness, Outcome},
    node::Stage,
    report::OpReport,
};
use std::path::Path;

/// What a case means that no kernel takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WithoutKernel {
    /// A failure: the device is to have one.
    Fails,
    /// It is skipped: devices and labels need not have every kernel.
    IsSkipped,
}

/// Runs the cases of one op, which are all of that op.
pub fn run_op(
    harness: &Harness,
    cases: &[GoldenCase],
    label: Option<&str>,
    exceptions: &Exceptions<'_>,
    without_kernel: WithoutKernel,
) -> OpReport {
    let op = cases.first().map_or("", |case| &case.op);
    let mut report = OpReport::new(op, harness.device_type(), label);
    if without_kernel == WithoutKernel::IsSkipped && !harness.has_kernel(op, label) {
        cases.iter().for_each(|case| report.skip(&case.name, "the op has no such kernel"));
        return report;
    }
    for case in cases {
        run_case(harness, case, label, exceptions, without_kernel, &mut report);
    }
    for stale in exceptions.stale(op, cases.iter().map(|case| case.name.as_str())) {
        report.fail(stale.case, format!("no case is covered by the exception {stale}"));
    }
    report
}

fn run_case(
    harness: &Harness,
    case: &GoldenCase,
    label: Option<&str>,
    exceptions: &Exceptions<'_>,
    without_kernel: WithoutKernel,
    report: &mut OpReport,
) {
    let (op, name) = (&case.op, &case.name);
    if let Some(exception) = exceptions.unsupported(op, name) {
        return report.skip(name, exception.reason);
    }
    let outcome = match exceptions.refused_with_shapes(op, name) {
        Some(_) => run_refused_with_shapes(harness, case, label),
        None => harness.run(case, label),
    };
    match (outcome, exceptions.expected_failure(op, name)) {
        (Outcome::Passed, None) => report.pass(),
        (Outcome::Passed, Some(exception)) => {
            report.fail(name, format!("passes, though it is excepted: {exception}"));
        }
        (Outcome::NoKernel(reason), _) => match without_kernel {
            WithoutKernel::IsSkipped => report.skip(name, "no kernel takes it"),
            WithoutKernel::Fails => report.fail(name, reason),
        },
        (Outcome::Failed(_), Some(exception)) => report.skip(name, exception.reason),
        (Outcome::Failed(failure), None) => report.fail(name, failure.to_string()),
    }
}

/// Passes where the case passes with unknown shapes, and the shape function refuses known ones.
pub fn run_refused_with_shapes(
    harness: &Harness,
    case: &GoldenCase,
    label: Option<&str>,
) -> Outcome {
    match harness.run_forms(case, label, &[Form::Unknown]) {
        Outcome::Passed => {}
        other => return other,
    }
    match harness.run_forms(case, label, &[Form::Shapes]) {
        Outcome::Failed(failure) if failure.stage == Stage::Shapes => Outcome::Passed,
        Outcome::Passed => Outcome::Failed(Failure {
            form: Form::Shapes,
            stage: Stage::Shapes,
            message: "the shape function takes it, though it is to refuse it".to_owned(),
        }),
        other => other,
    }
}

/// The reports of all ops of a folder.
#[derive(Debug, Clone, Default)]
pub struct FolderReport {
    /// One per op, in the order of names; where labels are run too, they follow.
    pub reports: Vec<OpReport>,
    /// Number of cases that were read.
    pub cases: usize,
}

impl FolderReport {
    /// Names of the ops of which a case passed, in order.
    pub fn ops_that_pass(&self) -> Vec<&str> {
        let passing = self.reports.iter().filter(|report| report.passed() > 0);
        let mut names: Vec<&str> = passing.map(OpReport::op).collect();
        names.dedup();
        names
    }

    /// The reports with failures, as text; empty without failures.
    pub fn wrong(&self) -> String {
        let wrong = self.reports.iter().filter(|report| !report.is_right());
        wrong.map(OpReport::to_string).collect::<Vec<_>>().join("\n")
    }
}

impl std::fmt::Display for FolderReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.reports.iter().try_for_each(|report| writeln!(f, "{report}"))
    }
}

/// Runs the cases of all ops of a folder: `choose` gives for each op the ways in which it is run, each a label
/// and what a case means that no kernel takes.
///
/// # Errors
/// Golden data that cannot be read.
pub fn run_folder(
    harness: &Harness,
    folder: &Path,
    exceptions: &Exceptions<'_>,
    choose: impl Fn(&str) -> Vec<(Option<String>, WithoutKernel)>,
) -> Result<FolderReport, TestkitError> {
    let mut all = FolderReport::default();
    for index in golden::indexes(folder)? {
        let cases = golden::read_op(&index)?;
        all.cases += cases.len();
        let op = cases.first().map_or("", |case| &case.op);
        for (label, without_kernel) in choose(op) {
            all.reports.push(run_op(harness, &cases, label.as_deref(), exceptions, without_kernel));
        }
    }
    Ok(all)
}
