//! Indices that are out of range: an error, or whatever the reference gives; in no case a read beside a buffer.

use super::{
    Expect, bounds,
    plain::{First, Plain, said},
    verdicts::Verdicts,
};
use crate::{
    check::{clause::Clause, expectation::Expectation},
    harness::Form,
    node::Refusal,
};
use tenon_framework::{Code, device::base::DeviceBase};

/// Judges a case whose indices are out of range. The oracle is asked last, where the kernel takes them: its own
/// kernel may be one that does not look at indices either.
pub(super) fn examine(plain: &Plain<'_>, expect: &Expect<'_>, verdicts: &mut Verdicts<'_>) {
    let mut accepted = None;
    for form in [Form::Unknown, Form::Shapes] {
        verdicts.begin(Clause::Bounds);
        let inferred =
            plain.site.node(plain.case, plain.inputs, form).and_then(|node| node.infer());
        let result = inferred.and_then(|_| plain.call(form, plain.inputs, verdicts));
        match result {
            Ok(outputs) => accepted = Some((form, outputs)),
            Err(refusal) => has_reason(plain, form, &refusal, verdicts),
        }
    }
    if let Some((form, outputs)) = accepted {
        let first = First::of(outputs);
        bounds::examine(plain, &first, verdicts);
        if !verdicts.has_failed(Clause::Bounds) && plain.site.device().info().host_memory {
            is_refused(plain, form, expect, verdicts);
        }
    }
    verdicts.pass(Clause::Bounds);
    verdicts.pass(Clause::Inputs);
    verdicts.pass(Clause::Refusals);
}

/// A refusal is the kernel's own, in words: what it did not think of is a panic.
fn has_reason(plain: &Plain<'_>, form: Form, refusal: &Refusal, verdicts: &mut Verdicts<'_>) {
    if refusal.code == Code::INTERNAL || refusal.message.trim().is_empty() {
        let problem = format!(
            "{form}, an index out of range: expected INVALID_ARGUMENT or OUT_OF_RANGE with the index, {}",
            said(refusal)
        );
        verdicts.fail(Clause::Refusals, plain.on(problem));
    }
}

/// What the reference refuses, the kernel may not take in silence.
fn is_refused(plain: &Plain<'_>, form: Form, expect: &Expect<'_>, verdicts: &mut Verdicts<'_>) {
    if let Expectation::Refused(code, why) = expect(plain.inputs) {
        let problem =
            format!("{form}, an index out of range: expected {code} ({why}), it was accepted");
        verdicts.fail(Clause::Refusals, plain.on(problem));
    }
}
