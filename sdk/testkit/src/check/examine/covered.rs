//! Whether the kernel takes any of its cases: of one that takes none, nothing else could be judged.

use super::{plain::said, site::Site, verdicts::Verdicts};
use crate::{
    check::{case::CheckCase, clause::Clause},
    harness::Form,
    node::{Refusal, Stage},
};

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
        (Some(refusal), _) => verdicts.fail(
            Clause::Covered,
            format!(
                "the kernel takes none of its {count} cases: {}; what it never takes, its `supports` is to \
                 say",
                said(refusal)
            ),
        ),
        (None, Some(refusal)) => {
            let reason = format!("the kernel declines all of its cases: {}", refusal.message);
            verdicts.skip(Clause::Covered, &reason);
        }
        (None, None) => {}
    }
}

fn run(site: &Site<'_>, case: &CheckCase) -> Result<(), Refusal> {
    let inputs = case.tensors().map_err(|error| Refusal {
        stage: Stage::Compute,
        code: tenon_framework::Code::INTERNAL,
        message: error.to_string(),
    })?;
    site.run(case, &inputs, Form::Shapes).map(|_| ())
}
