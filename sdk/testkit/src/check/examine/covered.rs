//! Whether the kernel takes any of its cases: of one that takes none, nothing else could be judged.

use super::{plain::said, site::Site, verdicts::Verdicts};
use crate::{
    check::{case::CheckCase, clause::Clause},
    harness::Form,
    node::{Refusal, Stage},
};
use tenon_framework::{Code, attr::AttrMap, registry::KernelDef};

/// Judges the clause. Types that the kernel says itself it does not take ([`Stage::Select`]) are skipped.
pub(super) fn examine(site: &Site<'_>, cases: &[CheckCase], verdicts: &mut Verdicts<'_>) {
    let mut refusals = Vec::new();
    for case in cases {
        verdicts.set_case(&case.name);
        verdicts.begin(Clause::Covered);
        match run(site, case) {
            Ok(()) => return verdicts.pass(Clause::Covered),
            Err(refusal) => refusals.push(refusal),
        }
    }
    verdicts.set_case("");
    let by_kernel = |refusal: &&Refusal| refusal.stage != Stage::Select;
    let count = refusals.len();
    match (refusals.iter().find(by_kernel), refusals.first()) {
        (Some(refusal), _) => {
            let (said, advice) =
                (said(refusal), advice(&site.subject.kernel, &site.subject.types, refusal));
            let problem = format!("the kernel takes none of its {count} cases: {said}; {advice}");
            verdicts.fail(Clause::Covered, problem);
        }
        (None, Some(refusal)) => {
            let reason = format!("the kernel declines all of its cases: {}", refusal.message);
            verdicts.skip(Clause::Covered, &reason);
        }
        (None, None) => {}
    }
}

/// What the author is to do about a kernel that takes no case. One that asks for an input of another type than the
/// case has was registered for more types than it is for.
fn advice(kernel: &KernelDef, types: &AttrMap, refusal: &Refusal) -> String {
    let is_of_types = refusal.code == Code::INTERNAL
        && refusal.message.contains(": the kernel takes ")
        && refusal.message.contains(", found ");
    let open = types.keys().find(|name| kernel.types_of(name).is_none());
    match open.filter(|_| is_of_types) {
        Some(name) => format!(
            "its registration does not say for which types of '{name}' it is, and so it is for all that the op allows: \
             name them, as in `for \"{name}\" in [f32]` or `types = (\"{name}\", &[DType::FLOAT])`, in C `types({name}, \
             float)`"
        ),
        None => "what it never takes, its `supports` is to say".to_owned(),
    }
}

fn run(site: &Site<'_>, case: &CheckCase) -> Result<(), Refusal> {
    let inputs = case.tensors().map_err(|error| Refusal {
        stage: Stage::Compute,
        code: Code::INTERNAL,
        message: error.to_string(),
    })?;
    site.run(case, &inputs, Form::Shapes).map(|_| ())
}
