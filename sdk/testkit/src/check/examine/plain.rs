//! Single calls: values, shapes, and what they do to memory.

use super::{
    Examiner, Expect, beyond, bounds,
    flushing::{self, Flushing},
    in_place, judge, shapes,
    site::{ReadOnly, Site, copies, name_outputs},
    steady::{Control, Wrong},
    there,
    verdicts::Verdicts,
};
use crate::{
    check::{
        case::{CheckCase, Tag},
        clause::Clause,
        expectation::Expectation,
    },
    compare::Rule,
    harness::{Form, WrongOutput, compare_bytes},
    node::{Refusal, Stage},
};
use tenon_framework::{Code, PartialShape, Shape, Tensor, attr::AttrValue, registry::KernelDef};
use tenon_runtime::host::{
    instance::call_planned,
    memory::{
        HostMemory,
        guarded::{Role, Violation},
    },
};

/// One case, on inputs that are read-only.
pub(super) struct Plain<'a> {
    pub site: &'a Site<'a>,
    pub case: &'a CheckCase,
    pub inputs: &'a [Tensor],
    /// What the inputs held before the first call.
    before: Vec<Tensor>,
}

impl Plain<'_> {
    /// What is wrong, with the call's inputs and attributes.
    pub fn on(&self, problem: impl std::fmt::Display) -> String {
        format!("{problem}; {}", described(self.case, self.inputs))
    }

    /// Calls the kernel once on `inputs`, and looks at what it did to memory.
    pub fn call(
        &self,
        form: Form,
        inputs: &[Tensor],
        verdicts: &mut Verdicts<'_>,
    ) -> Result<Vec<Tensor>, Refusal> {
        let result = self.site.run(self.case, inputs, form);
        if let Ok(outputs) = &result {
            name_outputs(outputs, inputs);
        }
        self.look_at_memory(&form.to_string(), inputs, verdicts);
        result
    }

    /// Tells what is wrong with a call that was held against the first one.
    pub fn tell(&self, clause: Clause, wrong: Wrong, first: &First, verdicts: &mut Verdicts<'_>) {
        let Plain { site, case, inputs, .. } = *self;
        let likeness = first.likeness(&site.subject.kernel);
        Control { site, case, inputs, first: &first.outputs, likeness }
            .tell(clause, wrong, verdicts);
    }

    /// Tells what was written beside buffers, and inputs that are not what they were.
    pub fn look_at_memory(&self, form: &str, inputs: &[Tensor], verdicts: &mut Verdicts<'_>) {
        if let Some(first) = violation() {
            verdicts.fail(Clause::Bounds, self.on(format!("{form}: {first}")));
        }
        let changed =
            self.before.iter().zip(inputs).position(|(before, now)| !compare_bytes(before, now));
        if let Some(at) = changed {
            let problem = format!("{form}: the call changed input {at}, which it does not own");
            verdicts.fail(Clause::Inputs, self.on(problem));
        }
    }
}

/// What was written beside a buffer since this was asked last: of several, one of a buffer that has a name.
pub(super) fn violation() -> Option<Violation> {
    let found = HostMemory::guarded()?.violations();
    let named = found.iter().find(|violation| violation.place.role != Role::Unnamed);
    named.or(found.first()).copied()
}

/// Inputs and attributes of a call, for a message.
pub(super) fn described(case: &CheckCase, inputs: &[Tensor]) -> String {
    let inputs: Vec<String> =
        inputs.iter().map(|input| format!("{} {}", input.dtype(), input.shape())).collect();
    let attrs: Vec<String> =
        case.attrs.iter().map(|(name, value)| format!("{name}={}", attr_text(value))).collect();
    let inputs = if inputs.is_empty() { "none".to_owned() } else { inputs.join(", ") };
    match attrs.is_empty() {
        true => format!("inputs: {inputs}"),
        false => format!("inputs: {inputs}; attributes: {}", attrs.join(", ")),
    }
}

pub(super) fn attr_text(value: &AttrValue) -> String {
    match value {
        AttrValue::Int(value) => value.to_string(),
        AttrValue::Float(value) => value.to_string(),
        AttrValue::Bool(value) => value.to_string(),
        AttrValue::String(value) => format!("'{}'", value.escape_ascii()),
        AttrValue::Type(value) => value.to_string(),
        AttrValue::Shape(value) => value.to_string(),
        other => format!("{other:?}"),
    }
}

/// The clauses of one case.
pub(super) fn examine(
    site: &Site<'_>,
    case: &CheckCase,
    inputs: Vec<Tensor>,
    expect: &Expect<'_>,
    verdicts: &mut Verdicts<'_>,
) {
    let Some(before) = copies(&inputs) else {
        return verdicts.skip_all(&Examiner::CASE_CLAUSES, "the inputs cannot be copied");
    };
    if case.is(Tag::Beyond) {
        let inputs = ReadOnly::new(inputs);
        let plain = Plain { site, case, inputs: inputs.tensors(), before };
        return beyond::examine(&plain, expect, verdicts);
    }
    let expectation = expect(&inputs);
    // What the oracle's own kernels wrote is not this one's.
    let _ = violation();
    let inputs = ReadOnly::new(inputs);
    let plain = Plain { site, case, inputs: inputs.tensors(), before };
    verdicts.begin(Clause::Values);
    if let Expectation::Refused(code, why) = &expectation {
        if case.is(Tag::Attribute) {
            return verdicts.skip_all(&Examiner::CASE_CLAUSES, FAR_REFUSED);
        }
        return refused(&plain, *code, why, verdicts);
    }
    if let Some(reason) = unsupported(&plain) {
        return verdicts.skip_all(&Examiner::CASE_CLAUSES, &reason);
    }
    match first_call(&plain, &expectation, verdicts) {
        Some(first) => rest(&plain, &first, &expectation, verdicts),
        None => verdicts.skip_all(&Examiner::CASE_CLAUSES, "the call was refused"),
    }
}

/// Why the kernel does not take the case, where it says so before it is made.
fn unsupported(plain: &Plain<'_>) -> Option<String> {
    let node = plain.site.node(plain.case, plain.inputs, Form::Shapes).ok()?;
    let refusal = plain.site.supports(&node).err()?;
    Some(format!("the kernel does not take it: {}", refusal.message))
}

/// A case that is to be refused, with this code, whatever is known of its inputs.
fn refused(plain: &Plain<'_>, code: Code, why: &str, verdicts: &mut Verdicts<'_>) {
    for form in Form::REFUSING {
        verdicts.begin(Clause::Values);
        // A session asks the shape function first.
        let inferred = shapes::infer(plain, form).map(|_| ());
        let result = match inferred {
            Ok(()) => plain.call(form, plain.inputs, verdicts).map(|_| ()),
            Err(refusal) => Err(refusal),
        };
        let problem = match result {
            Err(refusal) if refusal.code == code => continue,
            // Chosen for shapes that are known, it is not asked without.
            Err(refusal) if refusal.stage == Stage::Select => continue,
            Err(Refusal { code: found, message, .. }) => {
                format!("{form}: expected {code} ({why}), it was refused with {found}: {message}")
            }
            Ok(()) => format!("{form}: expected {code} ({why}), it was accepted"),
        };
        verdicts.fail(Clause::Values, plain.on(problem));
    }
    verdicts.pass(Clause::Values);
    verdicts.pass(Clause::Bounds);
    verdicts.pass(Clause::Inputs);
    verdicts.skip_all(&Examiner::CASE_CLAUSES, "the case is one that is to be refused");
}

/// What every other call is held against.
pub(super) struct First {
    pub outputs: Vec<Tensor>,
    /// How they are not what an oracle says.
    pub wrong: Option<String>,
    /// What takes the place of what the oracle says, where only flushing makes them differ from that.
    pub flushed: Option<Expectation>,
    /// How far two results may be apart where an oracle says what they are to be: twice as far as one of them
    /// from that.
    rules: Option<Vec<Rule>>,
}

impl First {
    /// A call of which no oracle says anything.
    pub fn of(outputs: Vec<Tensor>) -> First {
        First { outputs, wrong: None, flushed: None, rules: None }
    }

    /// What another call is to have in common with it.
    pub fn likeness(&self, kernel: &KernelDef) -> judge::Likeness<'_> {
        match (judge::Likeness::of(kernel, false), &self.rules) {
            (judge::Likeness::Contract, Some(rules)) => judge::Likeness::Rules(rules),
            (likeness, _) => likeness,
        }
    }
}

/// Why nothing is said of a case with an attribute far from its default that one of the two does not take: which
/// values there are beside those that graphs have, each decides.
const FAR: &str = "the kernel refuses a value of an attribute that is far from its default";
const FAR_REFUSED: &str =
    "the reference refuses a value of an attribute that is far from its default";

fn first_call(
    plain: &Plain<'_>,
    expectation: &Expectation,
    verdicts: &mut Verdicts<'_>,
) -> Option<First> {
    let form = Form::Shapes;
    verdicts.begin(Clause::Shapes);
    let (inferred, refused) = shapes::infer_all(plain);
    verdicts.begin(Clause::Values);
    let result = plain.call(form, plain.inputs, verdicts);
    // A case of which nothing says that it is right, and which the kernel refuses as well, is a wrong one.
    let may_be_wrong =
        matches!(expectation, Expectation::Unverified(_)) || plain.case.is(Tag::Attribute);
    if result.is_ok() || !may_be_wrong {
        refused.into_iter().for_each(|problem| verdicts.fail(Clause::Shapes, problem));
    }
    match (result, expectation) {
        (Ok(outputs), _) => {
            let wrong = wrong_values(plain, form, expectation, &outputs);
            shapes::examine(plain, &inferred, &outputs, verdicts);
            Some(first_of(plain, expectation, outputs, wrong))
        }
        (Err(refusal), _) if plain.case.is(Tag::Attribute) && !refusal.is_panic() => {
            verdicts.skip(Clause::Values, FAR);
            None
        }
        (Err(refusal), Expectation::Unverified(why)) if !refusal.is_panic() => {
            let reason = format!("nothing says what it is to give ({why}); {}", said(&refusal));
            verdicts.skip(Clause::Values, &reason);
            None
        }
        (Err(refusal), _) => {
            verdicts.fail(Clause::Values, plain.on(format!("{form}: {}", said(&refusal))));
            None
        }
    }
}

/// The outputs of the first call; what is wrong with them may be the host's.
fn first_of(
    plain: &Plain<'_>,
    expectation: &Expectation,
    outputs: Vec<Tensor>,
    mut wrong: Option<String>,
) -> First {
    let mut flushed = None;
    if let Some(text) = &mut wrong {
        match flushing::examine(plain, expectation, &outputs) {
            Flushing::All(instead) => flushed = Some(instead),
            Flushing::Some(left) => text.push_str(&format!("; where denormals are kept: {left}")),
            Flushing::Nothing => {}
        }
    }
    let wrong = wrong.filter(|_| flushed.is_none());
    let rules = match flushed.as_ref().unwrap_or(expectation) {
        Expectation::Outputs(expected) => {
            Some(expected.iter().map(|(_, rule)| rule.doubled()).collect())
        }
        _ => None,
    };
    First { outputs, wrong, flushed, rules }
}

/// A refusal in words.
pub(super) fn said(refusal: &Refusal) -> String {
    format!("it was refused with {}: {}", refusal.code, refusal.message)
}

/// How outputs are not what an oracle says.
fn wrong_values(
    plain: &Plain<'_>,
    form: Form,
    expectation: &Expectation,
    outputs: &[Tensor],
) -> Option<String> {
    let Expectation::Outputs(expected) = expectation else { return None };
    let WrongOutput { message, place } = judge::against(expected, outputs).err()?;
    let there = place.and_then(|(output, index)| {
        let dims = outputs[output].shape().dims();
        let takes = |all: &[Vec<i64>], dims: &[i64]| takes(plain, all, output, dims);
        there::inputs(plain.case, plain.inputs, (&index, dims), &takes)
    });
    Some(format!("{form}: {message}{}", there.unwrap_or_default()))
}

/// Whether the shape function takes inputs of these shapes, and says that an output has this one.
fn takes(plain: &Plain<'_>, all: &[Vec<i64>], output: usize, dims: &[i64]) -> bool {
    let Ok(mut node) = plain.site.node(plain.case, plain.inputs, Form::Shapes) else {
        return false;
    };
    for (shape, dims) in node.input_shapes.iter_mut().zip(all) {
        let Ok(other) = PartialShape::new(dims) else { return false };
        *shape = other;
    }
    let said = node.infer().ok().and_then(|infos| infos.get(output)?.shape.partial().full());
    said.is_some_and(|said| said.dims() == dims)
}

fn rest(plain: &Plain<'_>, first: &First, expectation: &Expectation, verdicts: &mut Verdicts<'_>) {
    let expectation = first.flushed.as_ref().unwrap_or(expectation);
    bounds::examine(plain, first, verdicts);
    values(plain, first, verdicts);
    for form in [Form::Unknown, Form::Packed] {
        other_form(plain, form, first, expectation, verdicts);
    }
    planned(plain, first, verdicts);
    match expectation {
        Expectation::Unverified(why) => verdicts.skip(Clause::Values, why),
        _ if first.flushed.is_some() => verdicts.skip(Clause::Values, flushing::RIGHT),
        _ => verdicts.pass(Clause::Values),
    }
    in_place::examine(plain, first, expectation, verdicts);
    plain.look_at_memory("in a later call", plain.inputs, verdicts);
    verdicts.pass(Clause::Bounds);
    verdicts.pass(Clause::Inputs);
}

/// Reports wrong values; or wrong shapes, or a dependence on memory that is not the call's, if that is the cause.
fn values(plain: &Plain<'_>, first: &First, verdicts: &mut Verdicts<'_>) {
    let Some(wrong) = &first.wrong else { return };
    for clause in [Clause::Shapes, Clause::Uninitialised, Clause::Bounds] {
        if verdicts.has_failed(clause) {
            let reason = format!("what makes them wrong breaks another promise (see {clause})");
            return verdicts.skip(Clause::Values, &reason);
        }
    }
    verdicts.fail(Clause::Values, plain.on(wrong));
}

/// The same call where less or more is known of its inputs.
fn other_form(
    plain: &Plain<'_>,
    form: Form,
    first: &First,
    expectation: &Expectation,
    verdicts: &mut Verdicts<'_>,
) {
    verdicts.begin(Clause::Values);
    let wrong = match plain.call(form, plain.inputs, verdicts) {
        Ok(outputs) => match expectation {
            Expectation::Outputs(_) => match wrong_values(plain, form, expectation, &outputs) {
                Some(wrong) => Wrong::Else(wrong),
                None => return,
            },
            _ => {
                let kernel = &plain.site.subject.kernel;
                let likeness = judge::Likeness::Contract;
                match judge::alike(kernel, likeness, &first.outputs, &outputs) {
                    Err(problem) if !plain.site.is_stateful() => Wrong::Differs(format!(
                        "{form}: other results than {}: {problem}",
                        Form::Shapes
                    )),
                    _ => return,
                }
            }
        },
        // The kernel says itself that it needs to know the shapes.
        Err(refusal) if refusal.stage == Stage::Select => return,
        Err(refusal) => {
            Wrong::Else(format!("{form}: {}, {} it was not", said(&refusal), Form::Shapes))
        }
    };
    plain.tell(Clause::Values, wrong, first, verdicts);
}

/// The same call on outputs that have their buffers before it, as steps of a session do.
fn planned(plain: &Plain<'_>, first: &First, verdicts: &mut Verdicts<'_>) {
    if plain.site.is_stateful() {
        return;
    }
    verdicts.begin(Clause::Values);
    let form = Form::Planned;
    let result = planned_call(plain, first);
    plain.look_at_memory(&form.to_string(), plain.inputs, verdicts);
    let wrong = match result {
        Err(refusal) => Wrong::Else(format!("{form}: {}", said(&refusal))),
        Ok(outputs) => {
            let kernel = &plain.site.subject.kernel;
            let likeness = first.likeness(kernel);
            match judge::alike(kernel, likeness, &first.outputs, &outputs) {
                Ok(()) => return,
                Err(problem) => Wrong::Differs(format!(
                    "{form}, other results than with outputs of its own: {problem}"
                )),
            }
        }
    };
    plain.tell(Clause::Values, wrong, first, verdicts);
}

fn planned_call(plain: &Plain<'_>, first: &First) -> Result<Vec<Tensor>, Refusal> {
    let node = plain.site.node(plain.case, plain.inputs, Form::Planned)?;
    let instance = plain.site.instance(&node, Form::Planned)?;
    let shapes: Vec<Shape> = first.outputs.iter().map(|output| *output.shape()).collect();
    let outputs = call_planned(&instance, plain.inputs, &shapes, &plain.site.env())
        .map_err(Refusal::at(Stage::Compute))?;
    name_outputs(&outputs, plain.inputs);
    Ok(outputs)
}
