//! What of a wrong result comes of denormals that the host flushes.
//!
//! Where a product on the way is below the smallest normal number, a kernel that computes as its contract says gives
//! zero on a thread that flushes, and what follows from it; the reference, which computes in a wider type or in
//! another order, need not. A result that is wrong is computed once more with denormals kept. Right then, the
//! difference is the host's, and the result as good as the one with denormals; that is reported, and not a failure. Wrong
//! still, the message says how far off it is without flushing: that part is the kernel's own.

use super::{
    judge,
    plain::Plain,
    site::{Site, copies},
};
use crate::{
    check::expectation::Expectation,
    compare::{Rule, shown},
    harness::Form,
};
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
    let Some(kept) = again(plain.site, plain, true) else { return Flushing::Nothing };
    let is_same = |other: &[Tensor]| {
        other.iter().zip(outputs).all(|(other, flushed)| judge::is_same(other, flushed))
    };
    if is_same(&kept) {
        return Flushing::Nothing;
    }
    let Err(wrong) = judge::against(expected, &kept) else {
        return Flushing::All(either(expected, outputs));
    };
    let place = judge::against(expected, outputs).err().and_then(|own| own.place);
    // What is wrong is as wrong with denormals, which make a difference elsewhere; or results vary without them.
    let is_elsewhere = place.is_some_and(|place| !differs_at(&place, &kept, outputs));
    let varies = || !again(plain.site, plain, false).is_some_and(|same| is_same(&same));
    if is_elsewhere || varies() {
        return Flushing::Nothing;
    }
    Flushing::Some(wrong.message)
}

/// Whether two results differ at an element of an output.
fn differs_at((output, index): &(usize, Vec<i64>), a: &[Tensor], b: &[Tensor]) -> bool {
    let (Some(a), Some(b)) = (a.get(*output), b.get(*output)) else { return true };
    let flat = a.shape().dims().iter().zip(index).fold(0, |at, (dim, index)| at * dim + index);
    shown(a, flat as usize) != shown(b, flat as usize)
}

/// The outputs of the same call, with denormals kept or not, of a kernel on the host that flushes them.
fn again(site: &Site<'_>, plain: &Plain<'_>, keep_denormals: bool) -> Option<Vec<Tensor>> {
    let kernel = &site.subject.kernel;
    let on_host = matches!(site.device().device_type(), "CPU") && !kernel.keeps_denormals;
    if !on_host || site.is_stateful() {
        return None;
    }
    let mut env = site.env();
    env.keep_denormals = keep_denormals;
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
