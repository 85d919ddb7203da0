//! Attributes and inputs that are wrong: an error with words, whatever they are, and afterwards all is well.

use super::{
    choice::{self, Chosen},
    effort::Effort,
    judge::{Likeness, alike},
    leak,
    odd::{self, Odd},
    plain::{described, said, violation},
    site::{ReadOnly, Site, name_outputs},
    sizes,
    steady::{Control, Wrong},
    verdicts::Verdicts,
};
use crate::{
    check::{case::CheckCase, clause::Clause},
    harness::Form,
    node::{Refusal, Stage},
};
use tenon_framework::{Tensor, infer::ValueInfo};
use tenon_runtime::host::{
    instance::{KernelInstance, call_once},
    memory::HostMemory,
};

/// Bytes that odd calls may take: sizes of no sense are refused for want of memory.
const LIMIT: u64 = 1 << 28;

/// Judges the clause.
pub(super) fn examine(
    site: &Site<'_>,
    cases: &[CheckCase],
    effort: Effort,
    verdicts: &mut Verdicts<'_>,
) {
    let clause = Clause::Refusals;
    let Some((chosen, right)) = choice::smallest(site, cases) else {
        return verdicts.skip(clause, "the kernel takes none of the cases");
    };
    verdicts.begin(Clause::Shapes);
    if let Err(problem) = sizes::examine(site, &chosen) {
        let problem = format!("{problem}; {}", described(&chosen.case, &chosen.inputs));
        verdicts.fail(Clause::Shapes, problem);
    }
    let memory = HostMemory::shared();
    memory.set_limit(memory.stats().live_bytes + LIMIT);
    let mut refused = Vec::new();
    let shapes_hold = || shapes_hold(site, cases);
    let result = all(site, &chosen, &right, &shapes_hold, (&mut refused, verdicts));
    if result.is_ok() {
        leaks(site, &chosen, &refused, effort, verdicts);
    }
    memory.set_limit(0);
    if let Err(wrong) = result {
        let wrong = wrong.at(|problem| format!("{problem}; the right call:"));
        Control::of(site, &chosen, &right).tell(clause, wrong, verdicts);
    }
    verdicts.pass(clause);
}

/// Odd calls that are made again and again: those that the kernel itself refuses, one of an attribute and one of an
/// input.
fn leaks(
    site: &Site<'_>,
    chosen: &Chosen,
    refused: &[Odd],
    effort: Effort,
    verdicts: &mut Verdicts<'_>,
) {
    let is_of_attrs = |odd: &&Odd| !odd.is_of_input;
    let first = refused.iter().find(is_of_attrs);
    for odd in first.into_iter().chain(refused.iter().find(|odd| odd.is_of_input)) {
        verdicts.set_case(&format!("{} with {}", chosen.case.name, odd.what));
        verdicts.begin(Clause::Leak);
        let mut run = || {
            let attrs = odd.attrs.clone();
            let node = site.node_with(&chosen.case, attrs, &odd.inputs, Form::Unknown)?;
            let called = site.instance(&node, Form::Unknown).and_then(|instance| {
                call_once(&instance, &odd.inputs, &site.env()).map_err(Refusal::at(Stage::Compute))
            });
            drop(called);
            Ok(())
        };
        if let Err(problem) = leak::refused(site, &mut run, effort) {
            let case = CheckCase { attrs: odd.attrs.clone(), ..chosen.case.clone() };
            let told = described(&case, &odd.inputs);
            verdicts.fail(Clause::Leak, format!("{}: {problem}; {told}", odd.what));
        }
    }
}

fn all(
    site: &Site<'_>,
    chosen: &Chosen,
    right: &[Tensor],
    shapes_hold: &dyn Fn() -> bool,
    (refused, verdicts): (&mut Vec<Odd>, &mut Verdicts<'_>),
) -> Result<(), Wrong> {
    for odd in odd::attributes(&site.subject.op, chosen) {
        verdicts.set_case(&format!("{} with {}", chosen.case.name, odd.what));
        verdicts.begin(Clause::Refusals);
        let mut by_kernel = false;
        for form in Form::REFUSING {
            by_kernel |= odd_attributes(site, chosen, &odd, (form, shapes_hold), verdicts)
                .map_err(|problem| format!("{form}, {}: {problem}", odd.what))?;
        }
        refused.extend(by_kernel.then_some(odd));
    }
    let state = site
        .node(&chosen.case, &chosen.inputs, Form::Unknown)
        .and_then(|node| site.instance(&node, Form::Unknown));
    if let Ok(state) = state {
        for odd in odd::inputs(chosen) {
            verdicts.set_case(&format!("{} with {}", chosen.case.name, odd.what));
            verdicts.begin(Clause::Refusals);
            let by_kernel = odd_inputs(site, chosen, &odd, (&state, shapes_hold), verdicts)
                .map_err(|problem| format!("{}: {problem}", odd.what))?;
            right_call(site, chosen, right, &state).map_err(|wrong| {
                wrong.at(|problem| format!("after a call with {}: {problem}", odd.what))
            })?;
            refused.extend(by_kernel.then_some(odd));
        }
    }
    Ok(())
}

/// A kernel with an odd attribute: what the definition forbids never reaches it; else it says what is wrong,
/// or computes what the shape function announces. Whether the kernel refuses it.
fn odd_attributes(
    site: &Site<'_>,
    chosen: &Chosen,
    odd: &Odd,
    (form, shapes_hold): (Form, &dyn Fn() -> bool),
    verdicts: &mut Verdicts<'_>,
) -> Result<bool, String> {
    let node = match site.node_with(&chosen.case, odd.attrs.clone(), &odd.inputs, form) {
        Ok(_) if odd.is_forbidden => {
            return Err("expected the op's definition to refuse it, it was accepted".to_owned());
        }
        Ok(node) => node,
        Err(refusal) => return has_words(&refusal).map(|()| false),
    };
    let inferred = match node.infer() {
        Ok(inferred) => inferred,
        Err(refusal) => return of_shapes(chosen, odd, &refusal, verdicts).map(|()| false),
    };
    let inputs = ReadOnly::new(odd.inputs.clone());
    let result = site.instance(&node, form).and_then(|instance| {
        call_once(&instance, inputs.tensors(), &site.env()).map_err(Refusal::at(Stage::Compute))
    });
    memory_is_whole(result.as_ref().ok(), inputs.tensors())?;
    match result {
        Err(refusal) => has_words(&refusal).map(|()| refusal.stage != Stage::Select),
        Ok(outputs) => match has_shapes(&inferred, &outputs) {
            Err(problem) if shapes_hold() => Err(format!("it was accepted: {problem}")),
            _ => Ok(false),
        },
    }
}

/// A call with an odd input, of a state that knew no shapes, which only the kernel can refuse. Returns whether it does.
fn odd_inputs(
    site: &Site<'_>,
    chosen: &Chosen,
    odd: &Odd,
    (state, shapes_hold): (&KernelInstance, &dyn Fn() -> bool),
    verdicts: &mut Verdicts<'_>,
) -> Result<bool, String> {
    let inputs = ReadOnly::new(odd.inputs.clone());
    if !state.def().checks_shapes {
        // The host asks the shape function before the call, by what it knows there: shapes.
        let node = site.node(&chosen.case, inputs.tensors(), Form::Shapes);
        if let Err(refusal) = node.map_err(|refusal| said(&refusal))?.infer() {
            return of_shapes(chosen, odd, &refusal, verdicts).map(|()| false);
        }
    }
    let result =
        call_once(state, inputs.tensors(), &site.env()).map_err(Refusal::at(Stage::Compute));
    memory_is_whole(result.as_ref().ok(), inputs.tensors())?;
    let outputs = match result {
        Err(refusal) => return has_words(&refusal).map(|()| true),
        Ok(outputs) => outputs,
    };
    // Values decide too: they are known here.
    let node = site.node(&chosen.case, inputs.tensors(), Form::Packed).map_err(|r| said(&r))?;
    let inferred = match node.infer() {
        Ok(inferred) => inferred,
        Err(refusal) if refusal.is_panic() => {
            return of_shapes(chosen, odd, &refusal, verdicts).map(|()| false);
        }
        // Nothing is computed from what is wrong: TensorFlow's kernels do so of windows that fit nowhere.
        Err(_) if outputs.iter().all(|output| output.elements() == 0) => return Ok(false),
        Err(refusal) => {
            return Err(format!(
                "the kernel accepts what the shape function refuses ({}): it says checks_shapes, or the refusal \
                 depends on values, so that the host does not look at these inputs before the call",
                refusal.message
            ));
        }
    };
    match has_shapes(&inferred, &outputs) {
        Err(problem) if shapes_hold() => Err(problem),
        _ => Ok(false),
    }
}

/// Whether outputs of right calls have the shapes that the shape function says: a kernel of which they have not
/// is reported case by case, and not once more here.
fn shapes_hold(site: &Site<'_>, cases: &[CheckCase]) -> bool {
    cases.iter().filter_map(Chosen::new).all(|Chosen { case, inputs }| {
        let inferred = site.node(&case, &inputs, Form::Packed).and_then(|node| node.infer());
        match (inferred, site.run(&case, &inputs, Form::Shapes)) {
            (Ok(inferred), Ok(outputs)) => has_shapes(&inferred, &outputs).is_ok(),
            _ => true,
        }
    })
}

/// Whether outputs have the shapes that the shape function says.
fn has_shapes(inferred: &[ValueInfo], outputs: &[Tensor]) -> Result<(), String> {
    for (at, (info, output)) in inferred.iter().zip(outputs).enumerate() {
        let (said, found) = (info.shape.partial(), output.shape());
        if !said.accepts(found.dims()) {
            return Err(format!("output {at} is {found}, the shape function says {said}"));
        }
    }
    Ok(())
}

/// The right call on a state that has refused another.
fn right_call(
    site: &Site<'_>,
    chosen: &Chosen,
    right: &[Tensor],
    state: &KernelInstance,
) -> Result<(), Wrong> {
    let outputs = call_once(state, &chosen.inputs, &site.env())
        .map_err(|error| said(&Refusal::at(Stage::Compute)(error)))?;
    if site.is_stateful() {
        return Ok(());
    }
    alike(&site.subject.kernel, Likeness::Contract, right, &outputs).map_err(|problem| {
        Wrong::Differs(format!("the right call gives other results than before: {problem}"))
    })
}

fn memory_is_whole(outputs: Option<&Vec<Tensor>>, inputs: &[Tensor]) -> Result<(), String> {
    if let Some(outputs) = outputs {
        name_outputs(outputs, inputs);
    }
    violation().map_or(Ok(()), |first| Err(first.to_string()))
}

/// A refusal of the shape function: a panic is reported as a separate mistake, since the op's author has made it.
fn of_shapes(
    chosen: &Chosen,
    odd: &Odd,
    refusal: &Refusal,
    verdicts: &mut Verdicts<'_>,
) -> Result<(), String> {
    if !refusal.is_panic() {
        return has_words(refusal);
    }
    let case = CheckCase { attrs: odd.attrs.clone(), ..chosen.case.clone() };
    let told = described(&case, &odd.inputs);
    verdicts.fail(Clause::Shapes, format!("{}: {}; {told}", odd.what, panicked(refusal)));
    Ok(())
}

/// What makes a refusal one: words, and that it is meant. A panic is a mistake, whatever the boundary makes of it.
fn has_words(refusal: &Refusal) -> Result<(), String> {
    match refusal.message.trim() {
        "" => Err(format!("it was refused with {} and no words", refusal.code)),
        _ if refusal.is_panic() => Err(panicked(refusal)),
        _ => Ok(()),
    }
}

fn panicked(refusal: &Refusal) -> String {
    format!("{}: expected a result, or an error that says what is wrong", refusal.message)
}
