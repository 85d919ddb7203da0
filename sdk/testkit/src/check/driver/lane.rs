//! One worker after the other, and what they are ordered to do.

use super::{
    Options, Status, absolute,
    child::Child,
    follow::{Begun, Gone, How, Outcome, follow},
    ledger::{Ledger, Reproduced},
    stopwatch::Stopwatch,
};
use crate::{
    check::{
        CheckCase, Clause, DEVICE_CLAUSES, Finding, KERNEL_CLAUSES, Verdict,
        json::{case_from_json, case_to_json},
        protocol::{Message, Order, Setup, Unit, UnitKind},
        report::{Activity, Spent},
        reproducer::{Reproducer, What, describe, what},
        shrink::{Judge, shrink},
    },
    error::TestkitError,
};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// How often a unit may end its process before the rest of it is left alone.
const ENDS_PER_UNIT: usize = 3;
/// How often all units together may.
const ENDS: usize = 200;
/// How long one failure is shrunk, and all of them together.
const SHRINK_ONE: Duration = Duration::from_secs(15);
const SHRINK_ALL: Duration = Duration::from_secs(120);

/// What the lanes of a run share.
pub(super) struct Run<'a> {
    pub options: &'a Options,
    pub setup: Setup,
    pub digest: String,
    pub units: Vec<Unit>,
    /// Their places, in the order in which they are begun.
    order: Vec<usize>,
    pub ledger: Mutex<Ledger>,
    pub watch: &'a (dyn Fn(Status<'_>) + Sync),
    next: AtomicUsize,
    done: AtomicUsize,
    ends: AtomicUsize,
    /// Rows and clauses of which a failure is reproduced.
    reproduced: Mutex<BTreeSet<(String, Clause)>>,
    shrinking: Mutex<Duration>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Run<'a> {
    pub fn new(
        options: &'a Options,
        (setup, digest): (Setup, String),
        units: Vec<Unit>,
        watch: &'a (dyn Fn(Status<'_>) + Sync),
    ) -> Run<'a> {
        let ledger = Mutex::new(Ledger::new(units.clone(), options.exceptions.clone()));
        let mut order: Vec<usize> = (0..units.len()).collect();
        order.sort_by_key(|&unit| options.later.contains(&units[unit].name));
        let (next, done, ends) = Default::default();
        let (reproduced, shrinking) = (Mutex::default(), Mutex::new(SHRINK_ALL));
        Run {
            options,
            setup,
            digest,
            units,
            order,
            ledger,
            watch,
            next,
            done,
            ends,
            reproduced,
            shrinking,
        }
    }

    fn problem(&self, problem: String) {
        locked(&self.ledger).problems.push(problem);
    }

    fn add(&self, unit: usize, case: &str, finding: Finding, said: &str) -> bool {
        locked(&self.ledger).add(unit, case, finding, said)
    }
}

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
    step: usize,
    message: String,
}

/// What became of the steps of a unit so far.
#[derive(Default)]
struct Sofar {
    from: usize,
    steps: usize,
    ends: usize,
    /// Cases that ended a process.
    fatal: Vec<String>,
    failing: BTreeMap<Clause, Failing>,
}

/// One worker at a time.
pub(super) struct Lane<'r> {
    run: &'r Run<'r>,
    child: Option<Child>,
}

impl<'r> Lane<'r> {
    pub fn new(run: &'r Run<'r>, child: Option<Child>) -> Lane<'r> {
        Lane { run, child }
    }

    /// Takes units until there are none left.
    pub fn work(&mut self) {
        let mut last = Duration::ZERO;
        loop {
            let turn = self.run.next.fetch_add(1, Ordering::Relaxed);
            let Some(&unit) = self.run.order.get(turn) else { return };
            let facts = &self.run.units[unit];
            if turn > 0 && self.run.options.is_late_for(last) {
                return;
            }
            let begin = Instant::now();
            (self.run.watch)(self.status(&facts.name));
            // What looks at the plugin as a whole changes it: before and after, the worker is a fresh one.
            if facts.kind == UnitKind::Plugin {
                self.child = None;
            }
            self.unit(unit);
            if facts.kind == UnitKind::Plugin {
                self.child = None;
            }
            last = begin.elapsed();
            self.run.done.fetch_add(1, Ordering::Relaxed);
            (self.run.watch)(self.status(&facts.name));
        }
    }

    fn status<'s>(&self, unit: &'s str) -> Status<'s> {
        let done = self.run.done.load(Ordering::Relaxed);
        Status { done, total: self.run.units.len(), unit }
    }

    /// The worker, a fresh one where there is none.
    fn child(&mut self) -> Result<Child, TestkitError> {
        match self.child.take() {
            Some(child) => Ok(child),
            None => {
                super::start(&self.run.options.worker, &self.run.setup).map(|(child, ..)| child)
            }
        }
    }

    /// Has an order carried out.
    fn order(
        &mut self,
        order: &Order,
        limit: Duration,
        heard: &mut dyn FnMut(Option<&Begun>, Message),
    ) -> Outcome {
        let mut child = match self.child() {
            Ok(child) => child,
            Err(error) => return Outcome::Broken(error.to_string()),
        };
        child.order(order);
        let (child, outcome) = follow(child, limit, heard);
        self.child = child;
        outcome
    }

    /// Runs a unit, by as many workers as that takes.
    fn unit(&mut self, unit: usize) {
        let mut sofar = Sofar::default();
        while self.part(unit, &mut sofar) && !self.run.options.is_late() {}
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
        let order = Order::Run { unit, from: sofar.from, without: sofar.fatal.clone() };
        let mut watch = Stopwatch::start();
        let outcome = self.order(&order, run.options.limit, &mut |at, message| {
            watch.hear(&message);
            match message {
                Message::Steps { steps, cases } => {
                    sofar.steps = steps;
                    locked(&run.ledger).set_cases(unit, cases);
                }
                Message::Found(finding) => {
                    let (step, case) = at.map_or((0, ""), |at| (at.step, at.name.as_str()));
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
        note(run, unit, sofar, (step, case), gone.blame(), &gone.said);
        sofar.ends += 1;
        sofar.fatal.push(case.to_owned());
        let total = run.ends.fetch_add(1, Ordering::Relaxed) + 1;
        if gone.at.is_none() {
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

    /// Says that the rest of a unit is not run, under each clause that is looked at there. That is no failure
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
        let facts = &self.run.units[unit];
        let options = self.run.options;
        let Some(folder) = &options.reproducers else { return };
        if !locked(&self.run.reproduced).insert((facts.row(), clause)) {
            return;
        }
        let Some(mut found) = self.describe(unit, failing.step) else { return };
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
        match self.order(&order, self.run.options.limit, &mut |_, _| {}) {
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
        self.order(&order, self.run.options.limit, &mut |_, message| {
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
        let outcome = self.order(&Order::Try { unit, case }, limit, &mut |_, message| {
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
    (step, case): (usize, &str),
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
