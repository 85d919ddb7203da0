//! The control of every comparison of two calls: the same call again, with nothing changed.
//!
//! A kernel whose results vary from call to call, or with memory that is not the call's, differs under whatever
//! is changed between two calls. It is blamed for that alone; what the comparison was for is skipped.
//!
//! Results that vary now and then differ under a change by chance. What is said to depend on memory differs again when
//! the change is made again, and does not without it, in many more calls.

use super::{
    bounds,
    choice::Chosen,
    judge::{Likeness, alike},
    plain::{described, said},
    site::Site,
    verdicts::Verdicts,
};
use crate::{
    check::{case::CheckCase, clause::Clause},
    harness::Form,
    node::{Refusal, Stage},
};
use std::time::{Duration, Instant};
use tenon_framework::Tensor;
use tenon_runtime::host::instance::call_once;

/// States of the control, and calls of each.
const STATES: usize = 2;
const CALLS: usize = 4;
/// Calls with the change, by which it is confirmed.
const AGAIN: usize = 8;
/// Calls of the long control, and how long it takes at most.
const MANY: usize = 1000;
const TIME: Duration = Duration::from_millis(500);

/// The problem with a call among others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wrong {
    /// Its results are not those that the same inputs gave before.
    Differs(String),
    /// Whatever else.
    Else(String),
}

impl Wrong {
    /// The same, and where it is.
    pub fn at(self, place: impl Fn(String) -> String) -> Wrong {
        match self {
            Wrong::Differs(problem) => Wrong::Differs(place(problem)),
            Wrong::Else(problem) => Wrong::Else(place(problem)),
        }
    }
}

impl From<String> for Wrong {
    fn from(problem: String) -> Wrong {
        Wrong::Else(problem)
    }
}

/// A call that others were held against.
pub(super) struct Control<'a> {
    pub site: &'a Site<'a>,
    pub case: &'a CheckCase,
    pub inputs: &'a [Tensor],
    pub first: &'a [Tensor],
    /// What calls with the same inputs are to have in common.
    pub likeness: Likeness<'a>,
}

impl<'a> Control<'a> {
    /// A control of a chosen case that gave this.
    pub fn of(site: &'a Site<'a>, chosen: &'a Chosen, first: &'a [Tensor]) -> Control<'a> {
        let Chosen { case, inputs } = chosen;
        let likeness = Likeness::of(&site.subject.kernel, false);
        Control { site, case, inputs, first, likeness }
    }
}

impl Control<'_> {
    /// Tells what is wrong under `clause`; results that differ only where nothing else explains it.
    pub fn tell(&self, clause: Clause, wrong: Wrong, verdicts: &mut Verdicts<'_>) {
        let on = |problem| format!("{problem}; {}", described(self.case, self.inputs));
        let problem = match wrong {
            Wrong::Else(problem) => problem,
            Wrong::Differs(problem) => match self.cause(clause, verdicts) {
                None => problem,
                Some((cause, how)) => {
                    verdicts.fail(cause, on(how));
                    let reason = format!("the kernel's results differ without that (see {cause})");
                    return verdicts.skip(clause, &reason);
                }
            },
        };
        verdicts.fail(clause, on(problem));
    }

    /// Another clause that the kernel breaks, which makes results differ.
    fn cause(&self, clause: Clause, verdicts: &mut Verdicts<'_>) -> Option<(Clause, String)> {
        let varies = |problem| Some((Clause::Repeatable, problem));
        verdicts.begin(Clause::Repeatable);
        if let Some(problem) = self.varies() {
            return varies(problem);
        }
        let is_memory = matches!(clause, Clause::Uninitialised | Clause::Bounds);
        let memory = match is_memory {
            true => Some((clause, String::new())),
            false => {
                verdicts.begin(Clause::Uninitialised);
                bounds::depends(self)
            }
        };
        let Some((cause, problem)) = memory else {
            verdicts.begin(Clause::Repeatable);
            return self.varies_rarely().and_then(varies);
        };
        verdicts.begin(cause);
        let again = bounds::again(self, cause, AGAIN);
        if again < AGAIN {
            verdicts.begin(Clause::Repeatable);
            let rarely = self.varies_rarely().or_else(|| (again == 0).then(|| once(cause)));
            if let Some(problem) = rarely {
                return varies(problem);
            }
        }
        (!is_memory).then_some((cause, problem))
    }

    /// How plain repetitions differ from the call.
    fn varies(&self) -> Option<String> {
        (0..STATES).find_map(|state| {
            let problem = self.repeat(CALLS, Instant::now()).err()?;
            Some(format!("the same call again, on state {state}: {problem}"))
        })
    }

    /// As [`Control::varies`], in many more calls.
    fn varies_rarely(&self) -> Option<String> {
        let problem = self.repeat(MANY, Instant::now() + TIME).err()?;
        Some(format!("the same call again and again: {problem}"))
    }

    /// Makes this many calls, fewer where time is up.
    fn repeat(&self, calls: usize, end: Instant) -> Result<(), String> {
        let made = (self.site.node(self.case, self.inputs, Form::Shapes))
            .and_then(|node| self.site.instance(&node, Form::Shapes));
        let instance = made.map_err(|refusal| said(&refusal))?;
        for call in 0..calls {
            if call >= CALLS && Instant::now() > end {
                break;
            }
            let outputs = call_once(&instance, self.inputs, &self.site.env())
                .map_err(|error| said(&Refusal::at(Stage::Compute)(error)))?;
            alike(&self.site.subject.kernel, self.likeness, self.first, &outputs)
                .map_err(|problem| format!("call {call} gives other results: {problem}"))?;
        }
        Ok(())
    }
}

/// What is said of results that differed under a change, and never again.
fn once(cause: Clause) -> String {
    let changed = match cause {
        Clause::Bounds => "bytes beside its inputs",
        _ => "memory that nobody wrote",
    };
    format!(
        "a call gave other results than the same call before; that {changed} had changed in between is not why: with \
         that changed again, {AGAIN} calls gave the results of before"
    )
}
