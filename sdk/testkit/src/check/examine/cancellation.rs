//! Calls in a step that is cancelled, or whose deadline has passed: they end, and leave nothing behind.

use super::{
    choice::{self, Chosen},
    judge::{Likeness, alike},
    plain::said,
    site::Site,
    steady::{Control, Wrong},
    verdicts::Verdicts,
};
use crate::{
    check::{case::CheckCase, clause::Clause},
    harness::Form,
    node::{Refusal, Stage},
};
use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};
use tenon_framework::{Code, KernelError, Tensor};
use tenon_runtime::host::{
    call::StepEnv,
    instance::{KernelInstance, call_once},
    memory::HostMemory,
};

/// When a step is cancelled while a call runs, in parts of the time that the call takes otherwise.
const DELAYS: [f64; 4] = [0.0, 0.25, 0.5, 1.0];
/// What is the longest of these.
const LONGEST: Duration = Duration::from_millis(10);
/// How long a call may take that is cancelled.
const PATIENCE: Duration = Duration::from_secs(5);

/// Judges the clause.
pub(super) fn examine(site: &Site<'_>, cases: &[CheckCase], verdicts: &mut Verdicts<'_>) {
    let clause = Clause::Cancellation;
    let chosen = choice::accepted(site, cases, 2);
    if chosen.is_empty() {
        return verdicts.skip(clause, "the kernel takes none of the cases");
    }
    for (chosen, first) in &chosen {
        verdicts.set_case(&chosen.case.name);
        verdicts.begin(clause);
        if let Err(wrong) = one_case(site, chosen, first) {
            return Control::of(site, chosen, first).tell(clause, wrong, verdicts);
        }
    }
    verdicts.pass(clause);
}

fn one_case(site: &Site<'_>, chosen: &Chosen, right: &[Tensor]) -> Result<(), Wrong> {
    let node = site.node(&chosen.case, &chosen.inputs, Form::Shapes).map_err(|r| said(&r))?;
    let instance = site.instance(&node, Form::Shapes).map_err(|r| said(&r))?;
    let held = || {
        let stats = HostMemory::shared().stats();
        (stats.live_bytes, stats.live_count)
    };
    let before = held();
    let ended = |what: &str, result: Result<Vec<Tensor>, KernelError>| {
        judge(result).map_err(|problem| format!("{what}: {problem}"))?;
        afterwards(site, chosen, right, &instance)
            .map_err(|wrong| wrong.at(|it| format!("after {what}: {it}")))
    };
    let env = site.env();
    env.cancellation.cancel();
    ended("a call in a step that is cancelled", call_once(&instance, &chosen.inputs, &env))?;
    let mut env = site.env();
    env.step.deadline_ns = 1;
    // The host cancels a step whose deadline has passed.
    env.cancellation.cancel();
    let result = call_once(&instance, &chosen.inputs, &env);
    ended("a call in a step whose deadline has passed", result)?;
    let begin = Instant::now();
    call_once(&instance, &chosen.inputs, &site.env())
        .map_err(|error| said(&Refusal::at(Stage::Compute)(error)))?;
    let alone = begin.elapsed();
    for part in DELAYS {
        let delay = alone.mul_f64(part).min(LONGEST);
        let (result, took) = cancelled_after(&instance, chosen, site.env(), delay);
        let what = format!("a call that is cancelled after {delay:?}");
        if took > PATIENCE {
            return Err(Wrong::Else(format!("{what}: it took {took:?} to end")));
        }
        ended(&what, result)?;
    }
    match held() {
        now if now == before => Ok(()),
        (bytes, count) => Err(Wrong::Else(format!(
            "cancelled calls leave host memory behind: expected {} bytes in {} buffers, found {bytes} in \
             {count}",
            before.0, before.1
        ))),
    }
}

/// The result of a call whose step is cancelled meanwhile, and how long it took to end after that.
fn cancelled_after(
    instance: &KernelInstance,
    chosen: &Chosen,
    env: StepEnv,
    delay: Duration,
) -> (Result<Vec<Tensor>, KernelError>, Duration) {
    let cancellation = Arc::clone(&env.cancellation);
    let start = Instant::now();
    thread::scope(|scope| {
        let canceller = scope.spawn(move || {
            // What wakes threads is not that exact.
            thread::sleep(delay.saturating_sub(Duration::from_millis(1)));
            while start.elapsed() < delay {
                thread::yield_now();
            }
            cancellation.cancel();
            Instant::now()
        });
        let result = call_once(instance, &chosen.inputs, &env);
        let end = Instant::now();
        let begin = canceller.join().unwrap_or(end);
        (result, end.saturating_duration_since(begin))
    })
}

/// A call in a cancelled step may give its results, or say that it was cancelled.
fn judge(result: Result<Vec<Tensor>, KernelError>) -> Result<(), String> {
    match result {
        Err(error) if error.code != Code::CANCELLED && error.code != Code::DEADLINE_EXCEEDED => {
            Err(format!(
                "expected its results or CANCELLED, it was refused with {}: {}",
                error.code, error.message
            ))
        }
        Err(error) if error.message.trim().is_empty() => {
            Err("it was refused without words".to_owned())
        }
        _ => Ok(()),
    }
}

/// The same state in its own step.
fn afterwards(
    site: &Site<'_>,
    chosen: &Chosen,
    right: &[Tensor],
    instance: &KernelInstance,
) -> Result<(), Wrong> {
    let outputs = call_once(instance, &chosen.inputs, &site.env())
        .map_err(|error| said(&Refusal::at(Stage::Compute)(error)))?;
    if site.is_stateful() {
        return Ok(());
    }
    alike(&site.subject.kernel, Likeness::Contract, right, &outputs)
        .map_err(|problem| Wrong::Differs(format!("other results than before: {problem}")))
}
