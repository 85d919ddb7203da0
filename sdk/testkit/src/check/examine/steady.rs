//! The control of every comparison of two calls: the same call again, with nothing changed.
//!
//! A kernel whose results vary from call to call, or with memory that is not the call's, differs under whatever
//! is changed between two calls. It is blamed for that alone; what the comparison was for is skipped.

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
use tenon_framework::Tensor;
use tenon_runtime::host::instance::call_once;

/// States of the control, and calls of each.
const STATES: usize = 2;
const CALLS: usize = 4;

/// What is wrong with a call among others.
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
        verdicts.begin(Clause::Repeatable);
        if let Some(varies) = self.varies() {
            return Some((Clause::Repeatable, varies));
        }
        if matches!(clause, Clause::Uninitialised | Clause::Bounds) {
            return None;
        }
        verdicts.begin(Clause::Uninitialised);
        bounds::depends(self)
    }

    /// How plain repetitions differ from the call.
    fn varies(&self) -> Option<String> {
        (0..STATES).find_map(|state| {
            let problem = self.repeat().err()?;
            Some(format!("the same call again, on state {state}: {problem}"))
        })
    }

    fn repeat(&self) -> Result<(), String> {
        let made = (self.site.node(self.case, self.inputs, Form::Shapes))
            .and_then(|node| self.site.instance(&node, Form::Shapes));
        let instance = made.map_err(|refusal| said(&refusal))?;
        for call in 0..CALLS {
            let outputs = call_once(&instance, self.inputs, &self.site.env())
                .map_err(|error| said(&Refusal::at(Stage::Compute)(error)))?;
            alike(&self.site.subject.kernel, self.likeness, self.first, &outputs)
                .map_err(|problem| format!("call {call} gives other results: {problem}"))?;
        }
        Ok(())
    }
}
