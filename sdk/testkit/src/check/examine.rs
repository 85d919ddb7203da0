//! Looks at what a kernel promises, clause by clause.
//!
//! What it is: [`Examiner::case`] makes the calls of one case, under guarded memory where the process has it
//! ([`HostMemory::guard`]), and judges what can be judged of one call: values, shapes, bounds, inputs,
//! uninitialised memory, in-place. [`Examiner::clause`] judges what takes many calls: whether the kernel takes
//! any case at all, concurrency, repeatability, leaks, refusals, cancellation. What it is not: a crash's or an endless loop's judge; it
//! reports what it begins, and the process that watches it does the rest. Nor an oracle: what a call is to give
//! comes from the caller.
//!
//! # Invariants
//! - A clause is begun before any code of the plugin runs for it.
//! - Of one case each clause fails at most once, with the first thing that is wrong; else it is passed or
//!   skipped.
//! - Memory settings of the process are as before when an examination ends.
//!
//! [`HostMemory::guard`]: tenon_runtime::host::memory::HostMemory::guard

mod attributes;
mod beyond;
mod bounds;
mod cancellation;
mod choice;
mod concurrent;
mod covered;
mod effort;
mod ends;
mod flushing;
mod in_place;
mod judge;
mod leak;
mod lifecycle;
mod odd;
mod plain;
mod refusals;
mod repeatable;
mod shapes;
mod site;
mod sizes;
mod steady;
mod there;
mod verdicts;

pub use effort::Effort;
pub use lifecycle::examine_plugin;

use super::{
    case::CheckCase, clause::Clause, expectation::Expectation, progress::Progress, subject::Subject,
};
use crate::{
    TestkitError,
    harness::Form,
    node::{Refusal, device_of},
};
use site::Site;
use std::{fmt, sync::Arc};
use tenon_framework::{Tensor, device::base::DeviceBase, knob::Knobs};
use tenon_runtime::{Runtime, host::devices::PluginDevice};
pub(super) use verdicts::Verdicts;

/// The expected results of a call on these inputs.
pub type Expect<'a> = dyn Fn(&[Tensor]) -> Expectation + 'a;

/// Clauses that are judged of a kernel: case by case, then once.
pub const KERNEL_CLAUSES: [Clause; 13] = {
    // `Clause::Bounds`, the last of those that are judged once, is judged case by case before.
    let (case, once) = (Examiner::CASE_CLAUSES, Examiner::SUBJECT_CLAUSES);
    [
        case[0], case[1], case[2], case[3], case[4], case[5], once[0], once[1], once[2], once[3],
        once[4], once[5], once[6],
    ]
};

/// Examines kernels on one device.
pub struct Examiner {
    runtime: Runtime,
    device: Arc<PluginDevice>,
    knobs: Arc<Knobs>,
}

impl Examiner {
    /// Clauses that [`Examiner::case`] judges, in the order in which it begins them first.
    pub const CASE_CLAUSES: [Clause; 6] = [
        Clause::Shapes,
        Clause::Values,
        Clause::Bounds,
        Clause::Inputs,
        Clause::Uninitialised,
        Clause::InPlace,
    ];

    /// Clauses that [`Examiner::clause`] judges, once per subject.
    pub const SUBJECT_CLAUSES: [Clause; 8] = [
        Clause::Covered,
        Clause::Concurrent,
        Clause::Repeatable,
        Clause::Leak,
        Clause::Refusals,
        Clause::Cancellation,
        Clause::Attributes,
        Clause::Bounds,
    ];

    /// An examiner of kernels on the first device of a type.
    ///
    /// # Errors
    /// There is no such device.
    pub fn new(runtime: &Runtime, device_type: &str) -> Result<Examiner, TestkitError> {
        let device = device_of(runtime, device_type).ok_or_else(|| {
            let devices = runtime.devices().devices();
            let found = devices.iter().map(|d| d.full_name()).collect::<Vec<_>>().join(", ");
            TestkitError::NoDevice { wanted: device_type.to_owned(), found }
        })?;
        Ok(Examiner { runtime: runtime.clone(), device, knobs: runtime.plugins().knobs() })
    }

    /// Judges one case. `expect` is asked once, after the inputs are made and before the kernel runs.
    pub fn case(
        &self,
        subject: &Subject,
        case: &CheckCase,
        expect: &Expect<'_>,
        progress: &mut dyn Progress,
    ) {
        let mut verdicts = Verdicts::new(progress, &case.name);
        verdicts.begin(Clause::Values);
        let site = Site::new(self, subject);
        if let Err(reason) = site.is_suited() {
            return verdicts.skip_all(&Examiner::CASE_CLAUSES, &reason);
        }
        match case.tensors() {
            Ok(inputs) => plain::examine(&site, case, inputs, expect, &mut verdicts),
            Err(error) => verdicts.skip_all(&Examiner::CASE_CLAUSES, &error.to_string()),
        }
    }

    /// What the kernel gives for a case, on host memory.
    ///
    /// # Errors
    /// What the kernel, or the op's definition, refuses.
    pub fn outputs(
        &self,
        subject: &Subject,
        case: &CheckCase,
        inputs: &[Tensor],
    ) -> Result<Vec<Tensor>, Refusal> {
        Site::new(self, subject).run(case, inputs, Form::Shapes)
    }

    /// Judges one of [`Examiner::SUBJECT_CLAUSES`]; another one is skipped. The cases are those of the
    /// subject that an oracle or the shape function accepts; of which the examiner takes a few.
    pub fn clause(
        &self,
        subject: &Subject,
        clause: Clause,
        cases: &[CheckCase],
        effort: Effort,
        progress: &mut dyn Progress,
    ) {
        let mut verdicts = Verdicts::new(progress, "");
        verdicts.begin(clause);
        let site = Site::new(self, subject);
        if let Err(reason) = site.is_suited() {
            return verdicts.skip(clause, &reason);
        }
        if cases.is_empty() {
            return verdicts.skip(clause, "the kernel has no case that can be run");
        }
        match clause {
            Clause::Covered => covered::examine(&site, cases, &mut verdicts),
            Clause::Concurrent => concurrent::examine(&site, cases, effort, &mut verdicts),
            Clause::Repeatable => repeatable::examine(&site, cases, &mut verdicts),
            Clause::Leak => leak::examine(&site, cases, effort, &mut verdicts),
            Clause::Refusals => refusals::examine(&site, cases, effort, &mut verdicts),
            Clause::Cancellation => cancellation::examine(&site, cases, &mut verdicts),
            Clause::Attributes => attributes::examine(&site, cases, &mut verdicts),
            Clause::Bounds => ends::examine(&site, cases, &mut verdicts),
            _ => verdicts.skip(clause, "it is judged case by case"),
        }
    }
}

impl fmt::Debug for Examiner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Examiner({})", self.device.name())
    }
}
