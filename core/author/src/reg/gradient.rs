//! Registration of the gradient of an op.

use super::Site;
use tenon_abi::{ExtGradient, ExtHeader, ext_tags, layout::EXT_GRADIENT};
use tenon_framework::gradient::GradientFn;

/// A gradient as `register_gradient!` writes it: the op's registration of the same library carries it.
#[derive(Clone, Copy)]
pub struct GradientReg {
    /// The op.
    pub op: &'static str,
    run: GradientFn,
    /// Its place in the source.
    pub site: Site,
}

inventory::collect!(GradientReg);

impl GradientReg {
    /// A gradient of the op of this name.
    pub const fn new(op: &'static str, run: GradientFn, site: Site) -> GradientReg {
        GradientReg { op, run, site }
    }

    /// The link in front of `next`.
    fn link(&self, next: *const ExtHeader) -> ExtGradient {
        ExtGradient {
            header: ExtHeader { next, ..ExtHeader::new(ext_tags::GRADIENT, 1, &EXT_GRADIENT) },
            gradient: tenon_abi::GradientFn { run: Some(self.run) },
        }
    }
}

/// The gradients of this library.
pub fn gradients() -> impl Iterator<Item = &'static GradientReg> {
    inventory::iter::<GradientReg>()
}

/// The link of an op's gradient in front of `next`; `None` if this library gives the op none.
pub(super) fn gradient_link(op: &str, next: *const ExtHeader) -> Option<ExtGradient> {
    gradients().find(|gradient| gradient.op == op).map(|gradient| gradient.link(next))
}
