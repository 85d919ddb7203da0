//! What of a wrong result comes of denormals that the host flushes.
//!
//! Where a product on the way is below the smallest normal number, a kernel that computes as its contract says gives
//! zero on a thread that flushes, and what follows from it; the reference, which computes in a wider type or in
//! another order, need not. A result that is wrong is computed once more with denormals kept. Right then, the
//! difference is the host's, and the result as good as the one with denormals; that is told, and no failure. Wrong
//! still, the message says how far off it is without flushing: that part is the kernel's own.

use super::{
    judge,
    plain::Plain,
    site::{Site, copies},
};
use crate::{check::expectation::Expectation, compare::Rule, harness::Form};
use tenon_framework::{Tensor, device::base::DeviceBase};

/// What is said of results that are right without flushing.
pub(super) const RIGHT: &str = "right where denormals are kept: a number on the way is below the smallest normal one, \
     and the host flushes it to zero, unless the registration says `denormals = Denormals::Keep`";

/// What flushing has to do with outputs that are wrong.
pub(super) enum Flushing {
    /// All: without it they are right. These are expectations that take them too.
    All(Expectation),
    /// This is wrong without it.
    Some(String),
    /// It is not what makes them wrong.
    Nothing,
}

/// Computes once more with denormals kept.
pub(super) fn examine(
    plain: &Plain<'_>,
    expectation: &Expectation,
    outputs: &[Tensor],
) -> Flushing {
    let Expectation::Outputs(expected) = expectation else { return Flushing::Nothing };
    let Some(kept) = kept(plain.site, plain) else { return Flushing::Nothing };
    let is_same = kept.iter().zip(outputs).all(|(kept, flushed)| judge::is_same(kept, flushed));
    if is_same {
        return Flushing::Nothing;
    }
    match judge::against(expected, &kept) {
        Ok(()) => Flushing::All(either(expected, outputs)),
        Err(wrong) => Flushing::Some(wrong.message),
    }
}

/// The outputs with denormals kept, of a kernel on the host that flushes them.
fn kept(site: &Site<'_>, plain: &Plain<'_>) -> Option<Vec<Tensor>> {
    let kernel = &site.subject.kernel;
    let on_host = matches!(site.device().device_type(), "CPU") && !kernel.keeps_denormals;
    if !on_host || site.is_stateful() {
        return None;
    }
    let mut env = site.env();
    env.keep_denormals = true;
    site.run_in(plain.case, &copies(plain.inputs)?, Form::Shapes, &env).ok()
}

/// What is expected, or what flushing makes of it.
fn either(expected: &[(Tensor, Rule)], flushed: &[Tensor]) -> Expectation {
    let also = |((tensor, rule), flushed): (&(Tensor, Rule), &Tensor)| {
        let other = flushed.as_bytes().map(<[u8]>::to_vec);
        let others = other.into_iter().collect();
        (tensor.clone(), Rule::Either { rule: Box::new(rule.clone()), others })
    };
    Expectation::Outputs(expected.iter().zip(flushed).map(also).collect())
}
