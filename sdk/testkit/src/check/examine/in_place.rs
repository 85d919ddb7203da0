//! Buffers that are taken over for outputs, and buffers that two inputs share.

use super::{
    judge::{self, Likeness, alike},
    plain::{First, Plain, said},
    site::{copies, name_outputs},
    steady::Wrong,
    verdicts::Verdicts,
};
use crate::{
    check::{clause::Clause, expectation::Expectation},
    harness::{Form, compare_bytes},
    node::{Refusal, Stage},
};
use tenon_framework::Tensor;
use tenon_runtime::host::instance::call_donating;

/// Judges the clause.
pub(super) fn examine(
    plain: &Plain<'_>,
    first: &First,
    expectation: &Expectation,
    verdicts: &mut Verdicts<'_>,
) {
    verdicts.begin(Clause::InPlace);
    if plain.inputs.is_empty() || plain.site.is_stateful() {
        return verdicts.skip(Clause::InPlace, "it has no inputs, or has state");
    }
    let result = donated(plain, first, expectation, verdicts)
        .and_then(|()| held(plain, first))
        .and_then(|()| shared(plain));
    if let Err(wrong) = result {
        plain.tell(Clause::InPlace, wrong, first, verdicts);
    }
    verdicts.pass(Clause::InPlace);
}

/// Calls with inputs that may be taken over. The copies are the call's own.
fn donating(plain: &Plain<'_>, inputs: Vec<Tensor>) -> Result<Vec<Tensor>, Refusal> {
    let node = plain.site.node(plain.case, plain.inputs, Form::InPlace)?;
    let instance = plain.site.instance(&node, Form::InPlace)?;
    let (outputs, _) =
        call_donating(&instance, inputs, &plain.site.env()).map_err(Refusal::at(Stage::Compute))?;
    Ok(outputs)
}

/// Inputs without another holder give the same results as ones that are kept.
fn donated(
    plain: &Plain<'_>,
    first: &First,
    expectation: &Expectation,
    verdicts: &mut Verdicts<'_>,
) -> Result<(), Wrong> {
    let Some(own) = copies(plain.inputs) else { return Ok(()) };
    let outputs = donating(plain, own).map_err(|refusal| said(&refusal))?;
    name_outputs(&outputs, &[]);
    plain.look_at_memory("in place", plain.inputs, verdicts);
    let told = |problem| format!("with inputs that may be taken over for outputs: {problem}");
    if let Expectation::Outputs(expected) = expectation
        && first.wrong.is_none()
    {
        judge::against(expected, &outputs).map_err(|wrong| Wrong::Differs(told(wrong.message)))?;
    }
    same(plain, first.likeness(&plain.site.subject.kernel), &first.outputs, &outputs)
        .map_err(|wrong| wrong.at(told))
}

/// Inputs that somebody else holds are not taken over.
fn held(plain: &Plain<'_>, first: &First) -> Result<(), Wrong> {
    let Some(own) = copies(plain.inputs) else { return Ok(()) };
    let outputs = donating(plain, own.clone()).map_err(|refusal| said(&refusal))?;
    let changed =
        own.iter().zip(plain.inputs).position(|(now, before)| !compare_bytes(now, before));
    if let Some(at) = changed {
        let problem =
            format!("input {at} was taken over for an output while it had another holder");
        return Err(Wrong::Else(problem));
    }
    let told = |problem| format!("with inputs that have other holders: {problem}");
    same(plain, first.likeness(&plain.site.subject.kernel), &first.outputs, &outputs)
        .map_err(|wrong| wrong.at(told))
}

/// Two inputs in one buffer give the same results as the same values in two.
fn shared(plain: &Plain<'_>) -> Result<(), Wrong> {
    let Some((a, b)) = twins(plain) else { return Ok(()) };
    let mut together = plain.inputs.to_vec();
    together[b] = together[a].clone();
    let Some(apart) = copies(&together) else { return Ok(()) };
    let apart = plain.site.run(plain.case, &apart, Form::Shapes);
    // These are other values than those of which an oracle says how far results may be apart.
    let likeness = Likeness::of(&plain.site.subject.kernel, false);
    let told = |problem| format!("with inputs {a} and {b} in one buffer: {problem}");
    for donate in [false, true] {
        let result = match donate {
            false => plain.site.run(plain.case, &together, Form::Shapes),
            true => donating_twins(plain, &together, a, b),
        };
        match (&apart, &result) {
            (Ok(apart), Ok(result)) => {
                same(plain, likeness, apart, result).map_err(|wrong| wrong.at(told))?;
            }
            (Err(_), Err(_)) => {}
            (Ok(_), Err(refusal)) => return Err(Wrong::Else(told(said(refusal)))),
            (Err(refusal), Ok(_)) => {
                let problem = format!("it was accepted, in two buffers {}", said(refusal));
                return Err(Wrong::Else(told(problem)));
            }
        }
    }
    Ok(())
}

/// As [`donating`], on copies of which two are one.
fn donating_twins(
    plain: &Plain<'_>,
    together: &[Tensor],
    a: usize,
    b: usize,
) -> Result<Vec<Tensor>, Refusal> {
    let mut own = copies(together).unwrap_or_else(|| together.to_vec());
    own[b] = own[a].clone();
    donating(plain, own)
}

/// Two inputs of one type and shape, neither of them a constant.
fn twins(plain: &Plain<'_>) -> Option<(usize, usize)> {
    let inputs = plain.inputs;
    let is_free = |at: usize| !plain.case.inputs.get(at).is_some_and(|input| input.constant);
    (0..inputs.len()).flat_map(|b| (0..b).map(move |a| (a, b))).find(|&(a, b)| {
        inputs[a].dtype() == inputs[b].dtype()
            && inputs[a].shape() == inputs[b].shape()
            && is_free(a)
            && is_free(b)
    })
}

fn same(
    plain: &Plain<'_>,
    likeness: Likeness<'_>,
    first: &[Tensor],
    second: &[Tensor],
) -> Result<(), Wrong> {
    let kernel = &plain.site.subject.kernel;
    alike(kernel, likeness, first, second).map_err(Wrong::Differs)
}
