//! One worker after the other, and what they are ordered to do.

use super::{
    Reproducers, Status, absolute,
    blame::Pending,
    child::Child,
    follow::{Begun, Gone, How, Outcome, follow},
    ledger::Reproduced,
    run::{Run, locked},
    stopwatch::Stopwatch,
    turns::Depth,
};
use crate::{
    check::{
        CheckCase, Clause, DEVICE_CLAUSES, Finding, KERNEL_CLAUSES, Verdict,
        json::{case_from_json, case_to_json},
        protocol::{Message, Order, UnitKind},
        report::{Activity, Looked, Spent},
        reproducer::{Reproducer, What, describe, what},
        shrink::{Judge, shrink},
    },
    error::TestkitError,
};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

/// How often a unit may end its process before the rest of it is left alone.
const ENDS_PER_UNIT: usize = 3;
/// How often all units together may.
const ENDS: usize = 200;
/// How long one failure is shrunk.
const SHRINK_ONE: Duration = Duration::from_secs(15);

/// The clauses that steps of such a unit look at.
fn clauses_of(kind: UnitKind) -> &'static [Clause] {
    match kind {
        UnitKind::Kernel => &KERNEL_CLAUSES,
        UnitKind::Op => &[],
        UnitKind::Device => &DEVICE_CLAUSES,
        UnitKind::Plugin => &[Clause::Lifecycle],
    }
}

/// The first failure of a clause.
struct Failing {
    /// The step that shows it; none for what is found where cases are generated.
    step: Option<usize>,
    message: String,
}

/// The outcome of the steps of a unit so far.
#[derive(Default)]
pub(super) struct Sofar {
    pub from: usize,
    steps: usize,
    ends: usize,
    /// Whether it is only called.
    called: bool,
    /// Cases that ended a process; of a plugin as a whole, kernels that did.
    fatal: Vec<String>,
    failing: BTreeMap<Clause, Failing>,
    /// A worker is gone that others used: this unit goes on alone.
    pending: Option<Pending>,
}

/// One worker at a time.
pub(super) struct Lane<'r> {
    pub run: &'r Run<'r>,
    child: Option<Child>,
    /// The units of which the worker ran something, in order.
    pub served: Vec<usize>,
}

impl<'r> Lane<'r> {
    pub fn new(run: &'r Run<'r>, child: Option<Child>) -> Lane<'r> {
        Lane { run, child, served: Vec::new() }
    }

    /// Takes turns until none are left.
    pub fn work(&mut self) {
        let mut last = Duration::ZERO;
        loop {
            let at = self.run.next.fetch_add(1, Ordering::Relaxed);
            let Some(&(unit, depth)) = self.run.turns.get(at) else { return };
            let is_late = || depth == Depth::Full && self.run.is_late_for(last);
            if at > 0 && (self.run.is_over() || is_late()) {
                return;
            }
            let begin = Instant::now();
            self.turn(unit, depth == Depth::Call);
            last = begin.elapsed();
        }
    }

    /// Looks at the plugins as a whole. That changes them: before and after, the worker is a fresh one. Kernels that
    /// ended their process before are left out of it.
    pub fn whole_plugins(&mut self) {
        for (at, &unit) in self.run.last.iter().enumerate() {
            let is_first = at == 0 && self.run.turns.is_empty();
            if self.run.is_over() || (!is_first && self.run.is_late_for(Duration::ZERO)) {
                return;
            }
            self.child = None;
            self.turn(unit, false);
            self.child = None;
        }
    }

    fn turn(&mut self, unit: usize, called: bool) {
        let name = &self.run.units[unit].name;
        (self.run.watch)(self.status(name));
        self.unit(unit, called);
        if !called {
            self.run.done.fetch_add(1, Ordering::Relaxed);
        }
        (self.run.watch)(self.status(name));
    }

    fn status<'s>(&self, unit: &'s str) -> Status<'s> {
        let done = self.run.done.load(Ordering::Relaxed);
        Status { done, total: self.run.units.len(), unit }
    }

    /// The worker; a new one is started if there is none.
    fn child(&mut self) -> Result<Child, TestkitError> {
        match self.child.take() {
            Some(child) => Ok(child),
            None => {
                self.served.clear();
                super::start(&self.run.options.worker, &self.run.setup).map(|(child, ..)| child)
            }
        }
    }

    /// Has an order about a unit carried out.
    fn order(
        &mut self,
        (unit, order): (usize, &Order),
        limit: Duration,
        heard: &mut dyn FnMut(Option<&Begun>, Message),
    ) -> Outcome {
        let mut child = match self.child() {
            Ok(child) => child,
            Err(error) => return Outcome::Broken(error.to_string()),
        };
        if self.served.last() != Some(&unit) {
            self.served.push(unit);
        }
        child.order(order);
        let (child, outcome) = follow(child, limit, heard);
        self.child = child;
        outcome
    }

    /// Runs a unit, or only calls it, by as many workers as that takes.
    fn unit(&mut self, unit: usize, called: bool) {
        let mut sofar = Sofar { called, ..Sofar::default() };
        if self.run.units[unit].kind == UnitKind::Plugin {
            sofar.fatal.extend(locked(&self.run.fatal).iter().cloned());
        }
        let mut is_whole = true;
        while is_whole && self.part(unit, &mut sofar) {
            // Who ended a worker is found, whatever the time.
            is_whole = sofar.pending.is_some() || !self.run.options.is_late();
        }
        if let Some(pending) = sofar.pending.take() {
            self.clear(unit, &pending);
        }
        if is_whole {
            let looked = if called { Looked::Called } else { Looked::Whole };
            locked(&self.run.ledger).set_looked(unit, looked);
        }
        let begin = Instant::now();
        let failing = std::mem::take(&mut sofar.failing);
        for (clause, failing) in &failing {
            self.reproduce(unit, *clause, failing);
        }
        if !failing.is_empty() {
            let mut spent = Spent::default();
            spent.add(Activity::Shrink, begin.elapsed());
            locked(&self.run.ledger).spend(unit, &spent);
        }
    }

    /// Runs a unit until it is done or the worker is gone. Whether there is more to do.
    fn part(&mut self, unit: usize, sofar: &mut Sofar) -> bool {
        let run = self.run;
        let order = match sofar.called {
            true => Order::Call { unit },
            false => Order::Run { unit, from: sofar.from, without: sofar.fatal.clone() },
        };
        let mut watch = Stopwatch::start();
        let outcome = self.order((unit, &order), run.options.limit, &mut |at, message| {
            watch.hear(&message);
            match message {
                Message::Steps { steps, cases } => {
                    sofar.steps = steps;
                    locked(&run.ledger).set_cases(unit, cases);
                }
                Message::Found(finding) => {
                    let (step, case) = at.map_or((None, ""), |at| (Some(at.step), &*at.name));
                    note(run, unit, sofar, (step, case), finding, "");
                }
                _ => {}
            }
        });
        locked(&run.ledger).spend(unit, &watch.stop());
        match outcome {
            Outcome::Done => false,
            Outcome::Broken(error) | Outcome::Unfit(error) => {
                run.problem(format!("{}: {error}", run.units[unit].name));
                false
            }
            Outcome::Gone(gone) => self.gone(unit, sofar, &gone),
        }
    }

    /// Notes that the worker is gone. Whether there is more to do.
    fn gone(&mut self, unit: usize, sofar: &mut Sofar, gone: &Gone) -> bool {
        let run = self.run;
        let (step, case) = gone.at.as_ref().map_or((0, ""), |at| (at.step, at.name.as_str()));
        if let Some(pending) = self.pending(unit, sofar, gone) {
            sofar.from = step;
            sofar.pending = Some(pending);
            return true;
        }
        // Alone it is gone too.
        sofar.pending = None;
        note(run, unit, sofar, (Some(step), case), gone.blame(), &gone.said);
        run.note_fatal(unit);
        sofar.ends += 1;
        sofar.fatal.push(case.to_owned());
        let total = run.ends.fetch_add(1, Ordering::Relaxed) + 1;
        if gone.at.is_none() || sofar.called {
            return false;
        }
        sofar.from = step + 1;
        if sofar.from >= sofar.steps {
            return false;
        }
        if sofar.ends < ENDS_PER_UNIT && total < ENDS {
            return true;
        }
        self.give_up(unit, sofar);
        false
    }

    /// Says that the rest of a unit is not run, under each clause that is looked at there. That is not a failure
    /// of its own, unless exceptions cover all that ended the process: then nothing else says that there is
    /// a rest.
    fn give_up(&self, unit: usize, sofar: &Sofar) {
        let (left, all, ends) = (sofar.steps - sofar.from, sofar.steps, sofar.ends);
        let reason = format!("{left} of {all} steps were not run: the process ended {ends} times");
        if sofar.failing.is_empty() {
            let hint = "list the cases that end it as unsupported, and they are not run";
            let finding = Finding::failed(Clause::Progress, format!("{reason}; {hint}"));
            self.run.add(unit, "", finding, "");
            return;
        }
        for &clause in clauses_of(self.run.units[unit].kind) {
            self.run.add(unit, "", Finding::skipped(clause, reason.as_str()), "");
        }
    }

    /// Makes a failure smaller and writes it to a file, the first of each row and clause.
    fn reproduce(&mut self, unit: usize, clause: Clause, failing: &Failing) {
        // What no step says has none that runs it again.
        if matches!(clause, Clause::Covered | Clause::Verified | Clause::Load) {
            return;
        }
        let Some(step) = failing.step else { return };
        let facts = &self.run.units[unit];
        let options = self.run.options;
        let Some(Reproducers { folder, plugin, .. }) = &options.reproducers else { return };
        if !locked(&self.run.reproduced).insert((facts.row(), clause)) {
            return;
        }
        // What others left behind is no part of it.
        if self.served.iter().any(|&other| other != unit) {
            self.child = None;
        }
        let Some(mut found) = self.describe(unit, step) else { return };
        let mut reproduced = Reproduced::default();
        if let What::Case(json) = &found
            && let Ok(case) = case_from_json(json)
        {
            let (case, message) = self.shrink(unit, clause, case);
            reproduced =
                Reproduced { message, input: Some(describe(&case)), ..Reproduced::default() };
            found = what(&case);
        }
        let mut reproducer =
            Reproducer::new(&self.run.setup, &self.run.digest, facts, clause, found);
        if let Some(plugin) = plugin {
            reproducer.plugin = absolute(plugin);
        }
        reproducer.message = reproduced.message.as_ref().unwrap_or(&failing.message).clone();
        if let (Some(folder), What::Case(case)) = (&options.arrays, &reproducer.run) {
            reproduced.arrays = self.keep(unit, case, folder.join(reproducer.name()));
        }
        match reproducer.write(folder) {
            Ok(file) => reproduced.file = Some(file),
            Err(error) => self.run.problem(error.to_string()),
        }
        locked(&self.run.ledger).reproduce(unit, clause, reproduced);
    }

    /// Writes the arrays of a case; the folder, unless that is not possible.
    fn keep(&mut self, unit: usize, case: &Value, folder: PathBuf) -> Option<PathBuf> {
        let order = Order::Keep { unit, case: case.clone(), folder: absolute(&folder) };
        match self.order((unit, &order), self.run.options.limit, &mut |_, _| {}) {
            Outcome::Broken(error) | Outcome::Unfit(error) => {
                let unit = &self.run.units[unit].name;
                self.run.problem(format!("{unit}: its arrays are not written: {error}"));
                None
            }
            // Of a kernel that ends the process, what was written before.
            Outcome::Done | Outcome::Gone(_) => Some(folder),
        }
    }

    /// What a step runs.
    fn describe(&mut self, unit: usize, step: usize) -> Option<What> {
        let mut found = None;
        let order = Order::Describe { unit, step };
        self.order((unit, &order), self.run.options.limit, &mut |_, message| {
            if let Message::Described { case, clause } = message {
                found = case.map(What::Case).or(clause.map(What::Clause));
            }
        });
        found
    }

    fn shrink(
        &mut self,
        unit: usize,
        clause: Clause,
        case: CheckCase,
    ) -> (CheckCase, Option<String>) {
        let begin = Instant::now();
        let time = SHRINK_ONE.min(*locked(&self.run.shrinking));
        let limit = match clause {
            // Each candidate that hangs costs the whole limit.
            Clause::Progress => (self.run.options.limit / 10).max(Duration::from_secs(1)),
            _ => self.run.options.limit,
        };
        let mut tries =
            Tries { lane: self, unit, clause, limit, until: begin + time, message: None };
        let small = shrink(case, &mut tries);
        let message = tries.message;
        let mut left = locked(&self.run.shrinking);
        *left = left.saturating_sub(begin.elapsed());
        (small, message)
    }

    /// Whether a case fails under a clause, and how.
    fn fails(
        &mut self,
        unit: usize,
        clause: Clause,
        case: Value,
        limit: Duration,
    ) -> Option<String> {
        let mut failed = None;
        let mut note = |finding: Finding| {
            if let Verdict::Failed(message) = finding.verdict
                && finding.clause == clause
            {
                failed.get_or_insert(message);
            }
        };
        let order = Order::Try { unit, case };
        let outcome = self.order((unit, &order), limit, &mut |_, message| {
            if let Message::Found(finding) = message {
                note(finding);
            }
        });
        if let Outcome::Gone(gone) = outcome {
            // Told with the limit that the user set, not with the one that was used here.
            let how = match gone.how {
                How::TimedOut(_) => How::TimedOut(self.run.options.limit),
                how => how,
            };
            note(Gone { how, ..gone }.blame());
        }
        failed
    }
}

/// Adds a finding, and remembers the first failure of its clause.
fn note(
    run: &Run<'_>,
    unit: usize,
    sofar: &mut Sofar,
    (step, case): (Option<usize>, &str),
    finding: Finding,
    said: &str,
) {
    let clause = finding.clause;
    let message = match &finding.verdict {
        Verdict::Failed(message) => message.clone(),
        _ => String::new(),
    };
    if run.add(unit, case, finding, said) {
        sofar.failing.entry(clause).or_insert(Failing { step, message });
    }
}

/// Candidates of one failure, run by a lane's workers.
struct Tries<'l, 'r> {
    lane: &'l mut Lane<'r>,
    unit: usize,
    clause: Clause,
    limit: Duration,
    until: Instant,
    /// What the last candidate that failed said.
    message: Option<String>,
}

impl Judge for Tries<'_, '_> {
    fn fails(&mut self, case: &CheckCase) -> bool {
        let json = case_to_json(case);
        let message = self.lane.fails(self.unit, self.clause, json, self.limit);
        let failed = message.is_some();
        self.message = message.or(self.message.take());
        failed
    }

    fn goes_on(&self) -> bool {
        Instant::now() < self.until
    }
}
