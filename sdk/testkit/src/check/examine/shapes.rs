//! What the shape function says, held against what the kernel gives.

use super::{
    plain::{Plain, said},
    verdicts::Verdicts,
};
use crate::{
    check::clause::Clause,
    harness::Form,
    node::{Refusal, Stage},
};
use tenon_framework::{Tensor, infer::ValueInfo};

/// What the shape function says where so much is known of the inputs.
pub(super) fn infer(plain: &Plain<'_>, form: Form) -> Result<Vec<ValueInfo>, Refusal> {
    plain.site.node(plain.case, plain.inputs, form)?.infer()
}

/// What it says where shapes are known and where they are not, and what it refuses.
pub(super) fn infer_all(plain: &Plain<'_>) -> (Vec<(Form, Vec<ValueInfo>)>, Vec<String>) {
    let (mut inferred, mut refused) = (Vec::new(), Vec::new());
    for form in [Form::Shapes, Form::Unknown, Form::Packed] {
        match infer(plain, form) {
            Ok(infos) => inferred.push((form, infos)),
            Err(refusal) if refusal.stage == Stage::Shapes => {
                let problem = format!("the shape function, {form}: {}", said(&refusal));
                refused.push(plain.on(problem));
            }
            // Told when the kernel is called.
            Err(_) => {}
        }
    }
    (inferred, refused)
}

/// Judges the outputs' types and shapes.
pub(super) fn examine(
    plain: &Plain<'_>,
    inferred: &[(Form, Vec<ValueInfo>)],
    outputs: &[Tensor],
    verdicts: &mut Verdicts<'_>,
) {
    let wrong = inferred.iter().find_map(|(form, infos)| wrong(*form, infos, outputs));
    verdicts.conclude(Clause::Shapes, wrong.map_or(Ok(()), |problem| Err(plain.on(problem))));
}

fn wrong(form: Form, infos: &[ValueInfo], outputs: &[Tensor]) -> Option<String> {
    if infos.len() != outputs.len() {
        let (found, expected) = (outputs.len(), infos.len());
        return Some(format!("the op has {expected} outputs, the kernel gave {found}"));
    }
    let pairs = infos.iter().zip(outputs).enumerate();
    let mut wrong =
        pairs.filter(|(_, (info, output))| !info.shape.partial().accepts(output.shape().dims()));
    let (at, (info, output)) = wrong.next()?;
    let said = info.shape.partial();
    Some(format!(
        "{form}: output {at}: the shape function says {said}, the kernel gave {}",
        output.shape()
    ))
}
