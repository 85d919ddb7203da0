//! Registrations: what `register_op!`, `register_kernel!`, `register_device!` and `register_knob!` submit
//! to the list of the library that they are compiled into.
//!
//! A registration is a const value; from it come both the entry in `inventory`'s list and the record in
//! the library's manifest section, so that the two cannot differ.

mod device;
mod extension;
mod fusion;
mod gradient;
mod kernel;
mod link;
mod list;
mod macros;
pub mod manifest;
mod op;
mod pass;
mod variant;

pub use device::DeviceReg;
pub use extension::{ExtensionFn, ExtensionReg};
pub use fusion::{fusion, give_fusion};
pub use gradient::{GradientReg, gradients};
pub use kernel::{ANY_TYPE, COPYABLE, Denormals, KernelReg, join_types};
pub use link::ExtensionLink;
pub use list::{CheckingCrate, Registration, registrations, submit_all};
pub use op::OpReg;
pub use pass::{give_pass, pass};
pub use tenon_framework::{
    linked::{KnobReg, Site},
    registry::Numerics,
};
#[doc(hidden)]
pub use variant::{give_variant, variant};

/// The texts in the form of the boundary.
pub(crate) fn strs(texts: &[&'static str]) -> Vec<tenon_abi::Str> {
    texts.iter().map(|text| tenon_abi::Str::new(text)).collect()
}
