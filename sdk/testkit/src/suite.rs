//! All cases of one op, with exceptions.

use crate::{
    exceptions::{Exception, Exceptions},
    golden::GoldenCase,
    harness::{Harness, Outcome},
    report::OpReport,
};

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
    for case in cases {
        if let Some(exception) = exceptions.unsupported(op, &case.name) {
            skip_unsupported(harness, case, label, exception, &mut report);
            continue;
        }
        let outcome = harness.run(case, label);
        let excused = exceptions.expected_failure(op, &case.name);
        match (outcome, excused) {
            (Outcome::Passed, None) => report.pass(),
            (Outcome::Passed, Some(exception)) => {
                report.fail(&case.name, format!("passes, though it is excepted: {exception}"));
            }
            (Outcome::NoKernel(reason), _) => match without_kernel {
                WithoutKernel::IsSkipped => report.skip(&case.name, "no kernel takes it"),
                WithoutKernel::Fails => report.fail(&case.name, reason),
            },
            (Outcome::Failed(_), Some(exception)) => report.skip(&case.name, exception.reason),
            (Outcome::Failed(failure), None) => report.fail(&case.name, failure.to_string()),
        }
    }
    for stale in exceptions.stale(op, cases.iter().map(|case| case.name.as_str())) {
        report.fail(stale.case, format!("no case is covered by the exception {stale}"));
    }
    report
}

/// A case that is supported after all makes its exception a lie.
fn skip_unsupported(
    harness: &Harness,
    case: &GoldenCase,
    label: Option<&str>,
    exception: &Exception,
    report: &mut OpReport,
) {
    match harness.run(case, label) {
        Outcome::Passed => {
            report.fail(&case.name, format!("is supported, though it is excepted: {exception}"));
        }
        Outcome::NoKernel(_) | Outcome::Failed(_) => report.skip(&case.name, exception.reason),
    }
}
