//! Calls at the same time, on one state and on several.

use super::{
    choice::{self, Chosen},
    effort::Effort,
    judge::{Likeness, alike},
    plain::said,
    site::Site,
    steady::{Control, Wrong},
    verdicts::Verdicts,
};
use crate::{
    check::{case::CheckCase, clause::Clause},
    harness::Form,
    node::Refusal,
};
use std::{
    sync::{
        Barrier, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use tenon_framework::{KernelError, Tensor};
use tenon_runtime::host::{
    call::StepEnv,
    instance::{KernelInstance, PreparedCall},
};

/// Threads that call.
const THREADS: usize = 4;
/// How long they usually do, for each way, and how often at most.
const TIME: Duration = Duration::from_millis(25);
const CALLS: usize = 20_000;
/// Cases that are tried.
const CASES: usize = 3;

/// One thread's part: its inputs, and what a call alone gives.
struct Part {
    inputs: Vec<Tensor>,
    alone: Vec<Tensor>,
}

/// Judges the clause.
pub(super) fn examine(
    site: &Site<'_>,
    cases: &[CheckCase],
    effort: Effort,
    verdicts: &mut Verdicts<'_>,
) {
    let clause = Clause::Concurrent;
    if site.is_stateful() {
        return verdicts.skip(clause, "the op has state: its results depend on the order of calls");
    }
    let chosen = choice::repeated(site, cases, CASES);
    if chosen.is_empty() {
        return verdicts.skip(clause, "the kernel takes none of the cases");
    }
    for (chosen, first) in &chosen {
        verdicts.set_case(&chosen.case.name);
        verdicts.begin(clause);
        if let Err(wrong) = one_case(site, chosen, first, effort.of(TIME)) {
            return Control::of(site, chosen, first).tell(clause, wrong, verdicts);
        }
    }
    verdicts.pass(clause);
}

fn one_case(
    site: &Site<'_>,
    chosen: &Chosen,
    alone: &[Tensor],
    time: Duration,
) -> Result<(), Wrong> {
    let parts = parts(site, chosen, alone);
    for form in [Form::Shapes, Form::Unknown] {
        let node = site.node(&chosen.case, &chosen.inputs, form);
        let node = node.map_err(|refusal| said(&refusal))?;
        // Without shapes a kernel may decline; that is judged elsewhere.
        let Ok(instance) = site.instance(&node, form) else { continue };
        let shared = |_: usize| Ok(None);
        at_once(site, &parts, time, Some(&instance), shared)
            .map_err(|wrong| wrong.at(|it| format!("calls at once on one state, {form}: {it}")))?;
        let own = |_: usize| site.instance(&node, form).map(Some);
        at_once(site, &parts, time, None, own).map_err(|wrong| {
            wrong.at(|it| format!("calls at once on states of their own, {form}: {it}"))
        })?;
    }
    Ok(())
}

/// Inputs for each thread: of the same types and shapes, with other elements where the kernel takes them.
/// Kernels that share what they should not would otherwise share the same.
fn parts(site: &Site<'_>, chosen: &Chosen, alone: &[Tensor]) -> Vec<Part> {
    let mut parts = vec![Part { inputs: chosen.inputs.clone(), alone: alone.to_vec() }];
    for thread in 1..THREADS {
        let varied = chosen.varied(thread as u64).and_then(|varied| {
            let is_constant = chosen.case.inputs.iter().any(|input| input.constant);
            let alone = site.run(&varied.case, &varied.inputs, Form::Shapes).ok()?;
            (!is_constant).then_some(Part { inputs: varied.inputs, alone })
        });
        let first = &parts[0];
        let same = || Part { inputs: first.inputs.clone(), alone: first.alone.clone() };
        let part = varied.unwrap_or_else(same);
        parts.push(part);
    }
    parts
}

/// Has all threads call until the time is up or one of them finds something wrong.
fn at_once(
    site: &Site<'_>,
    parts: &[Part],
    time: Duration,
    shared: Option<&KernelInstance>,
    own: impl Fn(usize) -> Result<Option<KernelInstance>, Refusal> + Sync,
) -> Result<(), Wrong> {
    let start = Barrier::new(parts.len());
    let stop = AtomicBool::new(false);
    let wrong: Mutex<Option<Wrong>> = Mutex::new(None);
    thread::scope(|scope| {
        for (at, part) in parts.iter().enumerate() {
            let (start, stop, wrong, own) = (&start, &stop, &wrong, &own);
            scope.spawn(move || {
                let made = own(at).map_err(|refusal| Wrong::Else(said(&refusal)));
                start.wait();
                let result = made.and_then(|made| {
                    made.as_ref()
                        .or(shared)
                        .map_or(Ok(()), |instance| calls(site, instance, part, (time, stop)))
                });
                stop.store(true, Ordering::Relaxed);
                if let Err(problem) = result {
                    let mut wrong = wrong.lock().unwrap_or_else(PoisonError::into_inner);
                    wrong.get_or_insert(problem);
                }
            });
        }
    });
    wrong.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

fn calls(
    site: &Site<'_>,
    instance: &KernelInstance,
    part: &Part,
    (time, stop): (Duration, &AtomicBool),
) -> Result<(), Wrong> {
    let env: StepEnv = site.env();
    let failed =
        |error: KernelError| format!("it was refused with {}: {}", error.code, error.message);
    let mut call = PreparedCall::new(instance, &part.inputs, &env).map_err(failed)?;
    let kernel = &site.subject.kernel;
    let likeness = Likeness::of(kernel, false);
    let end = Instant::now() + time;
    for count in 0..CALLS {
        call.run().map_err(failed)?;
        let outputs = call.host_outputs().map_err(failed)?;
        alike(kernel, likeness, &part.alone, &outputs).map_err(|problem| {
            Wrong::Differs(format!("call {count} gives other results than alone: {problem}"))
        })?;
        if stop.load(Ordering::Relaxed) || Instant::now() > end {
            break;
        }
    }
    Ok(())
}
