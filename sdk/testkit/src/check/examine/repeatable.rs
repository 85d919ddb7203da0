//! The same call again: on the same state, on another one, on other threads.

use super::{
    choice::{self, Chosen},
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
use std::sync::Arc;
use tenon_framework::Tensor;
use tenon_runtime::host::{instance::call_once, pool::ThreadPool};

/// Cases that are repeated.
const CASES: usize = 5;
/// Calls of one state, and states that are made.
const CALLS: usize = 6;
const STATES: usize = 3;
/// Threads of the pools.
const THREADS: [usize; 3] = [1, 2, 4];

/// Judges the clause.
pub(super) fn examine(site: &Site<'_>, cases: &[CheckCase], verdicts: &mut Verdicts<'_>) {
    let clause = Clause::Repeatable;
    if site.is_stateful() {
        return verdicts.skip(clause, "the op has state: its calls are not repetitions");
    }
    let chosen = choice::repeated(site, cases, CASES);
    if chosen.is_empty() {
        return verdicts.skip(clause, "the kernel takes none of the cases");
    }
    for (chosen, first) in &chosen {
        verdicts.set_case(&chosen.case.name);
        verdicts.begin(clause);
        let result = same_threads(site, chosen, first).and_then(|()| other_threads(site, chosen));
        if let Err(problem) = result {
            let described = described(&chosen.case, &chosen.inputs);
            return verdicts.fail(clause, format!("{problem}; {described}"));
        }
    }
    verdicts.pass(clause);
}

fn same_threads(site: &Site<'_>, chosen: &Chosen, first: &[Tensor]) -> Result<(), String> {
    for state in 0..STATES {
        let outputs = calls(site, chosen, CALLS, None).map_err(|refusal| {
            format!("a call that was accepted is not any more: {}", said(&refusal))
        })?;
        for (call, outputs) in outputs.iter().enumerate() {
            judge(site, false, first, outputs).map_err(|problem| {
                format!(
                    "call {call} of state {state} gives other results than the first: {problem}"
                )
            })?;
        }
    }
    Ok(())
}

fn other_threads(site: &Site<'_>, chosen: &Chosen) -> Result<(), String> {
    let mut before: Option<(usize, Vec<Tensor>)> = None;
    for threads in THREADS {
        let pool = Arc::new(ThreadPool::new(threads));
        let outputs = calls(site, chosen, 3, Some(&pool))
            .map_err(|refusal| format!("on {threads} threads: {}", said(&refusal)))?;
        let Some((first, later)) = outputs.split_first() else { continue };
        for later in later {
            judge(site, false, first, later).map_err(|problem| {
                format!("two calls on {threads} threads give different results: {problem}")
            })?;
        }
        if let Some((fewer, before)) = &before {
            judge(site, true, before, first).map_err(|problem| {
                format!("other results on {threads} threads than on {fewer}: {problem}")
            })?;
        }
        before = Some((threads, first.clone()));
    }
    Ok(())
}

/// Makes a state and calls it so often.
fn calls(
    site: &Site<'_>,
    chosen: &Chosen,
    count: usize,
    pool: Option<&Arc<ThreadPool>>,
) -> Result<Vec<Vec<Tensor>>, Refusal> {
    let node = site.node(&chosen.case, &chosen.inputs, Form::Shapes)?;
    let instance = site.instance(&node, Form::Shapes)?;
    let env = pool.map_or_else(|| site.env(), |pool| site.env_on(pool));
    let call = |_| call_once(&instance, &chosen.inputs, &env).map_err(Refusal::at(Stage::Compute));
    (0..count).map(call).collect()
}

fn judge(site: &Site<'_>, across: bool, first: &[Tensor], second: &[Tensor]) -> Result<(), String> {
    let kernel = &site.subject.kernel;
    let likeness = Likeness::of(kernel, across);
    let promised = match likeness {
        Likeness::Bits => "the same bits are promised",
        Likeness::Contract | Likeness::Rules(_) => "no bits are promised, the contract is",
    };
    alike(kernel, likeness, first, second).map_err(|problem| format!("{problem} ({promised})"))
}
