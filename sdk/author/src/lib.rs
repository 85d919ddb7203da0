//! The SDK for authors of Tenon plugins.
//!
//! What it is: the one crate that a plugin depends on. A plugin is a crate of type `cdylib` (and
//! `rlib`) that registers ops, kernels, devices and knobs, and says [`export_plugin!`] once at its
//! root. [`prelude`] has the names that its source uses; the guides are in `sdk/docs`.
//!
//! What it is not: a runtime. A plugin never imports the host; its tests call kernels through
//! `tenon-test`, and `tenon check` and `tenon bench` examine the built library. Most items are
//! those of `tenon-framework`, `tenon-author` and `tenon-geometry`, re-exported; this crate adds the
//! doors and the views of `ndarray`.
//!
//! # Invariants
//! - A plugin has one root module: [`export_plugin!`] is said once for a library.
//! - A panic in a kernel, a shape function or a device's entry becomes an error of the call. A
//!   plugin is built with `panic = "unwind"`; the host refuses others unless a knob allows them.
//! - The list of what a kernel may assume of a call is at [`prelude::ComputeContext`]; the host has
//!   checked it.
//! - A plugin works with hosts of the ABI version that it was built for.
//!
//! ```
//! use tenon_sdk::prelude::*;
//!
//! tenon_sdk::export_plugin!();
//!
//! register_op!(
//!     "ClampedDouble",
//!     inputs = &["x: T"],
//!     outputs = &["y: T"],
//!     attrs = &["T: {float, double}", "limit: float = 1.0"],
//!     shape = |c: &ShapeContext<'_>| c.set_output(0, c.input(0)),
//! );
//!
//! struct ClampedDouble {
//!     limit: f32,
//! }
//!
//! impl Kernel for ClampedDouble {
//!     fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
//!         Ok(ClampedDouble { limit: c.attr("limit")? })
//!     }
//!
//!     fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
//!         let x = c.input::<f32>(0)?;
//!         let y = c.output::<f32>(0, x.dims)?;
//!         for (y, x) in y.data.iter_mut().zip(x.data) {
//!             *y = (x + x).min(self.limit);
//!         }
//!         Ok(())
//!     }
//! }
//!
//! register_kernel!("ClampedDouble" on "CPU": ClampedDouble, types = ("T", &[DType::FLOAT]));
//! # fn main() {}
//! ```

mod array;
mod door;

pub use array::{array_view, array_view_mut};
pub use tenon_author::{
    extension_link, kernels_check_shapes, reg, register_device, register_extension,
    register_fusion, register_gradient, register_kernel, register_knob, register_op, register_pass,
    register_variant,
};
pub use tenon_framework::element::{Complex, Complex32, Complex64, bf16, f16};
pub use tenon_framework::{
    Code, DType, KernelError, PartialShape, Shape, View, ViewMut, abi, attr, element, fusion,
    growth, pages,
};
pub use tenon_geometry::{self as geometry, fixed_point, fused};

/// Everything that a plugin's source names; the only glob import in Tenon's style.
///
/// `std::arch::x86_64` has its own `bf16`, so that the name is ambiguous beside a glob import of that module. A source
/// that takes intrinsics so names the type itself, which comes before both:
///
/// ```
/// #[cfg(target_arch = "x86_64")]
/// use std::arch::x86_64::*;
/// use tenon_sdk::{bf16, prelude::*};
///
/// assert_eq!(bf16::from_f64(1.5).to_f64(), 1.5);
/// ```
pub mod prelude {
    pub use crate::{array_view, array_view_mut};
    pub use tenon_author::{
        AsyncCall, Collective, CollectivePlace, CollectiveSpec, ComputeContext, CreateContext, Dim,
        Function, FunctionResults, GradientContext, InOut, Kept, KeptKnobs, Kernel, Knob, Knobs,
        Mode, Packed, PassContext, Piece, Prepack, ResourceHandle, ResourceValue, Schedule,
        ShapeContext, ShapeHandle, ShapeResult, Supported, Supports, Variant, VariantRef,
        VariantValue,
        device::{
            DeviceCapture, DeviceEvents, DeviceHandle, DeviceInfo, DeviceKind, DeviceMemory,
            DeviceNative, DeviceStreams, DeviceTimers, NoStreams,
        },
        reg::{ANY_TYPE, COPYABLE, Denormals, Numerics},
        register_device, register_fusion, register_gradient, register_kernel, register_knob,
        register_op, register_pass, register_variant,
    };
    pub use tenon_framework::{
        Code, DType, KernelError, PartialShape, Shape, View, ViewMut,
        abi::{CollectiveKind, GraphValue, MemoryKind},
        element::{Complex, Complex32, Complex64, Element, Float, Number, bf16, f16},
        gradient::Gradient,
        op::{GradientRule, OpRole, Refusal, Symmetry, ValueRule},
        plugin::plugin_path,
    };
}

// Behind the prelude, by whose paths the compiler's messages then name what both have.
pub mod author;
pub mod device;

/// For the expansion of macros only.
#[doc(hidden)]
pub mod __private {
    pub use crate::door::{open, register};
    pub use tenon_author::reg::manifest::{PluginRecord, plugin_len, plugin_record};
    pub use tenon_framework::abi::{
        ABI_MAJOR, ABI_MINOR, PluginV1, Str,
        door::{LibHeader, PluginDef, lib_header},
    };
}
