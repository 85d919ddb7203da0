//! Carrying out an order.

use super::{
    agenda::{Agenda, Thing},
    arrays,
    pipe::Pipe,
};
use crate::check::{
    CheckCase, Clause, DEVICE_CLAUSES, Examiner, Finding, Generated, IS_REFERENCE, Progress,
    Subject, Tag, examine_device_clause, examine_plugin,
    exceptions::{CheckExceptions, Place},
    json::{case_from_json, case_to_json},
    protocol::{Message, Order},
};
use crate::node::Node;
use serde_json::Value;
use std::{cell::Cell, path::Path};
use tenon_framework::Tensor;
use tenon_runtime::host::memory::HostMemory;

/// Carries out an order, and says how it ended.
pub(super) fn carry_out(agenda: &Agenda, pipe: &Pipe, order: &Order) -> Message {
    let unit = match order {
        Order::Run { unit, .. }
        | Order::Call { unit }
        | Order::Describe { unit, .. }
        | Order::Try { unit, .. }
        | Order::Keep { unit, .. }
        | Order::Clause { unit, .. } => *unit,
    };
    let Some(thing) = agenda.things.get(unit) else {
        return Message::Broken { error: format!("there is no unit {unit}") };
    };
    let without = match order {
        Order::Run { without, .. } => without.as_slice(),
        _ => &[],
    };
    let steps = Steps { agenda, pipe, thing, without, clause: Cell::new(None) };
    match order {
        Order::Run { from, .. } => steps.run(*from),
        Order::Call { .. } => steps.call(),
        Order::Describe { step, .. } => steps.describe(*step),
        Order::Try { case, .. } => return steps.attempt(case),
        Order::Keep { case, folder, .. } => return steps.keep(case, folder),
        Order::Clause { clause, .. } => steps.clause(0, *clause),
    }
    Message::Done
}

/// The steps of one unit.
struct Steps<'a> {
    agenda: &'a Agenda,
    pipe: &'a Pipe,
    thing: &'a Thing,
    /// Cases that have ended a process.
    without: &'a [String],
    /// What is being looked at.
    clause: Cell<Option<Clause>>,
}

impl Steps<'_> {
    /// The clauses that are judged once for the unit.
    fn clauses(&self) -> &'static [Clause] {
        match self.thing {
            Thing::Kernel(_) => &Examiner::SUBJECT_CLAUSES,
            Thing::Op(_) => &[],
            Thing::Device(_) => &DEVICE_CLAUSES,
            Thing::Plugin(_) => &[Clause::Lifecycle],
        }
    }

    /// The cases of the unit, where it has any.
    fn generated(&self) -> Generated {
        match self.thing {
            Thing::Kernel(subject) => self.agenda.generate(subject),
            _ => Generated::default(),
        }
    }

    fn found(&self, finding: Finding) {
        self.pipe.send(&Message::Found(finding));
    }

    /// Runs all steps from this one.
    fn run(&self, from: usize) {
        let generated = self.generated();
        let (cases, clauses) = (generated.cases.len(), self.clauses());
        self.pipe.send(&Message::Steps { steps: cases + clauses.len(), cases });
        if from == 0 {
            self.covered(&generated);
            self.verified(&generated);
        }
        for (step, case) in generated.cases.iter().enumerate().skip(from) {
            self.case(step, case);
        }
        for (at, clause) in clauses.iter().enumerate() {
            if cases + at >= from {
                self.clause(cases + at, *clause);
            }
        }
    }

    /// Makes a call or two of a kernel, and tries its cases until it takes one: then it is known that the kernel returns
    /// before it runs elsewhere.
    fn call(&self) {
        let generated = self.generated();
        let chosen = short(&generated.cases, self.agenda.has_many_subjects());
        self.pipe.send(&Message::Steps { steps: chosen.len() + 1, cases: chosen.len() });
        self.covered(&generated);
        for step in chosen {
            self.case(step, &generated.cases[step]);
        }
        self.clause(generated.cases.len(), Examiner::SUBJECT_CLAUSES[0]);
    }

    /// Says whether there are cases, and what the shape function did where they were chosen: inputs for which it
    /// panics are none that it accepts.
    fn covered(&self, generated: &Generated) {
        match (self.thing, &generated.uncovered) {
            (Thing::Kernel(_), Some(reason)) => {
                self.found(Finding::failed(Clause::Covered, reason));
            }
            // Whether the kernel takes any of them is a separate step.
            (Thing::Kernel(_), None) => {}
            (Thing::Op(_), _) => {
                let reason = "no plugin that is loaded has a kernel of it";
                self.found(Finding::skipped(Clause::Covered, reason));
            }
            (Thing::Device(_) | Thing::Plugin(_), _) => {}
        }
        if let Some(panic) = &generated.panic {
            self.found(Finding::failed(Clause::Shapes, panic));
        }
    }

    /// Says whether something independent judges the kernel.
    fn verified(&self, generated: &Generated) {
        let Thing::Kernel(subject) = self.thing else { return };
        let has_golden = generated.cases.iter().any(|case| case.is(Tag::Golden));
        self.found(match self.agenda.oracle.of(subject) {
            Ok(_) => Finding::passed(Clause::Verified),
            Err(_) if has_golden => Finding::passed(Clause::Verified),
            Err(reason) if reason == IS_REFERENCE => Finding::skipped(Clause::Verified, reason),
            Err(reason) => Finding::failed(Clause::Verified, reason),
        });
    }

    /// Says what a step runs.
    fn describe(&self, step: usize) {
        let cases = self.generated().cases;
        let case = cases.get(step).map(case_to_json);
        let clause = step.checked_sub(cases.len()).and_then(|at| self.clauses().get(at)).copied();
        self.pipe.send(&Message::Described { case, clause });
    }

    /// Runs a case that the driver made.
    fn attempt(&self, json: &Value) -> Message {
        let Thing::Kernel(subject) = self.thing else {
            return Message::Broken { error: "only kernels have cases".to_owned() };
        };
        let case = match case_from_json(json) {
            Ok(case) => case,
            Err(problem) => return Message::Broken { error: problem.to_string() },
        };
        if let Err(reason) = accepted(subject, &case) {
            return Message::Unfit { reason };
        }
        self.case(0, &case);
        Message::Done
    }

    /// Writes the arrays of a case.
    fn keep(&self, json: &Value, folder: &Path) -> Message {
        let Thing::Kernel(subject) = self.thing else {
            return Message::Broken { error: "only kernels have cases".to_owned() };
        };
        let kept = case_from_json(json).map_err(|problem| problem.to_string()).and_then(|case| {
            let examiner = self.agenda.examiner(&subject.kernel.device_type)?;
            let oracle = |inputs: &[Tensor]| {
                self.begin(0, &case.name, None, true);
                let expectation = self.agenda.oracle.expect(subject, &case, inputs);
                self.begin(0, &case.name, None, false);
                expectation
            };
            arrays::write(&examiner, subject, &case, &oracle, folder)
        });
        match kept {
            Ok(()) => Message::Done,
            Err(error) => Message::Broken { error },
        }
    }

    /// Begins a step. Damage to memory by earlier steps has been reported, and is not blamed on this one.
    fn begin_step(&self, step: usize, name: &str, clause: Option<Clause>) {
        if let Some(guard) = HostMemory::guarded() {
            guard.violations();
        }
        self.begin(step, name, clause, false);
    }

    /// Runs a case, unless an exception says that it is not to be run.
    fn case(&self, step: usize, case: &CheckCase) {
        let Thing::Kernel(subject) = self.thing else { return };
        if self.is_excepted(subject, &case.name) {
            self.begin_step(step, &case.name, None);
            for clause in Examiner::CASE_CLAUSES {
                self.found(Finding::skipped(clause, "an exception"));
            }
            return;
        }
        let mut teller = Teller { steps: self, step };
        self.begin_step(step, &case.name, None);
        match self.agenda.examiner(&subject.kernel.device_type) {
            Err(reason) => {
                for clause in Examiner::CASE_CLAUSES {
                    self.found(Finding::skipped(clause, &reason));
                }
            }
            Ok(examiner) => {
                let expect = |inputs: &[_]| {
                    let clause = self.clause.get();
                    self.begin(step, &case.name, clause, true);
                    let expectation = self.agenda.oracle.expect(subject, case, inputs);
                    self.begin(step, &case.name, clause, false);
                    expectation
                };
                examiner.case(subject, case, &expect, &mut teller);
            }
        }
        self.lost(&subject.kernel.device_type);
    }

    /// Whether an exception says that a case is not to be run. The driver counts it, and says why.
    fn is_excepted(&self, subject: &Subject, case: &str) -> bool {
        let name = subject.to_string();
        let place =
            Place { op: &subject.op.name, device: &subject.kernel.device_type, subject: &name };
        let unsupported = self.agenda.setup.unsupported.clone();
        let exceptions = CheckExceptions { unsupported, ..CheckExceptions::default() };
        exceptions.not_run(place, case).is_some()
    }

    /// Judges what is judged once.
    fn clause(&self, step: usize, clause: Clause) {
        let mut teller = Teller { steps: self, step };
        self.begin_step(step, "", Some(clause));
        match self.thing {
            Thing::Kernel(subject) if self.is_excepted(subject, "") => {
                self.found(Finding::skipped(clause, "an exception"));
            }
            Thing::Kernel(subject) => {
                match self.agenda.examiner(&subject.kernel.device_type) {
                    // Everything else of the kernel is skipped: that this is so, is no matter of course.
                    Err(reason) if clause == Clause::Covered => {
                        let hint = "name the plugin that has one with --plugin";
                        self.found(Finding::failed(clause, format!("{reason}; {hint}")));
                    }
                    Err(reason) => self.found(Finding::skipped(clause, reason)),
                    Ok(examiner) => {
                        let mut cases = self.generated().cases;
                        cases.retain(|case| !self.without.contains(&case.name));
                        let effort = self.agenda.effort(subject);
                        examiner.clause(subject, clause, &cases, effort, &mut teller);
                    }
                }
                self.lost(&subject.kernel.device_type);
            }
            Thing::Op(_) => {}
            Thing::Device(name) => {
                examine_device_clause(&self.agenda.runtime, name, clause, &mut teller);
            }
            Thing::Plugin(name) => {
                let (agenda, cases) = (self.agenda, self.agenda.some_cases(self.without));
                let scratch = &agenda.setup.scratch;
                examine_plugin(&agenda.runtime, name, &cases, scratch, &mut teller);
            }
        }
    }

    fn begin(&self, step: usize, name: &str, clause: Option<Clause>, oracle: bool) {
        self.clause.set(clause);
        let name = name.to_owned();
        self.pipe.send(&Message::Begin { step, name, clause, oracle, unpromised: false });
    }

    /// Says so where the device is lost: nothing that comes after it can be judged here.
    fn lost(&self, device_type: &str) {
        if let Some(error) = self.agenda.lost(device_type) {
            self.pipe.send(&Message::Lost { error });
        }
    }
}

/// The cases that tell most of a kernel in a short time: an ordinary one, long enough for loops over vectors, and one
/// that several threads share, unless there are `many` kernels.
fn short(cases: &[CheckCase], many: bool) -> Vec<usize> {
    let elements = |case: &CheckCase| -> i64 {
        let of =
            |dims: &[i64]| dims.iter().fold(1i64, |product, &size| product.saturating_mul(size));
        case.inputs.iter().map(|input| of(&input.dims)).fold(0, i64::saturating_add)
    };
    let places = || cases.iter().enumerate();
    let ordinary = places()
        .filter(|(_, case)| !case.is(Tag::Large) && !case.is(Tag::Special))
        .max_by_key(|(_, case)| elements(case));
    let large = places()
        .filter(|(_, case)| case.is(Tag::Large) && !many)
        .min_by_key(|(_, case)| elements(case));
    let chosen: Vec<usize> = ordinary.into_iter().chain(large).map(|(at, _)| at).collect();
    if chosen.is_empty() && !cases.is_empty() { vec![0] } else { chosen }
}

/// Whether the op's definition and shape function take a case.
fn accepted(subject: &Subject, case: &CheckCase) -> Result<(), String> {
    let inputs = case.tensors().map_err(|error| error.to_string())?;
    let constant = |at: usize| case.inputs[at].constant;
    let node = Node::new(&subject.op, &case.name, case.attrs.clone(), &inputs, constant);
    let node = node.map_err(|error| error.to_string())?;
    node.infer().map(|_| ()).map_err(|refusal| refusal.message)
}

/// Tells the driver how an examination goes.
struct Teller<'a> {
    steps: &'a Steps<'a>,
    step: usize,
}

impl Progress for Teller<'_> {
    fn begin(&mut self, clause: Clause, case: &str) {
        self.steps.begin(self.step, case, Some(clause), false);
    }

    fn begin_unpromised(&mut self, clause: Clause, case: &str) {
        self.steps.clause.set(Some(clause));
        let (step, name, clause) = (self.step, case.to_owned(), Some(clause));
        let begin = Message::Begin { step, name, clause, oracle: false, unpromised: true };
        self.steps.pipe.send(&begin);
    }

    fn found(&mut self, finding: Finding) {
        self.steps.found(finding);
    }
}
