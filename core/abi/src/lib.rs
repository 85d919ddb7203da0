//! The C tables that cross Tenon's plugin boundary.
//!
//! What it is: `#[repr(C)]` structs of `extern "C"` function pointers, pointers with lengths, and
//! plain data. One set of tables serves two doors. A Rust plugin hands its [`PluginV1`] over
//! through an `abi_stable` root module ([`door`]), so that the layout of every shared type is
//! compared at load; a C or C++ plugin returns the same table from one exported function
//! ([`CPluginFn`]). `include/tenon.h` is the same in C, generated from this crate.
//!
//! What it is not: safe wrappers or policy. Plugin authors use the wrappers of `tenon-sdk`; the
//! loader is in `tenon-host`.
//!
//! # Invariants
//! - Every table begins with its `struct_size`. A table that may grow ends in `ext`, a typed chain
//!   ([`ExtHeader`]); the host's tables of services grow by links on the structs that lead to them
//!   ([`Call`], [`Host`]). A reader skips an unknown link and takes a missing one for "not
//!   supported".
//! - Every struct says which side fills it. A pointer is never null unless its line says so, or its
//!   count is 0. An entry of type `Option<fn>` is optional, and null means "not supported", unless
//!   its line or its struct says that it is required.
//! - An error crosses as a returned [`Code`], and its message through a host callback that copies
//!   it.
//! - Renaming a field or a parameter changes the layout that `abi_stable` compares, and so refuses
//!   every plugin that was built before. The rules of evolution are in `docs/evolution.md`, the
//!   committed sizes and offsets in `docs/layout.txt`, the grammars of an op's cases and benchmarks
//!   in `docs/cases.md` and `docs/bench.md`.
//!
//! ```
//! use std::ptr;
//! use tenon_abi::{ExtHeader, ext_tags, find_ext};
//!
//! let header = |tag, next| ExtHeader {
//!     tag,
//!     version: 1,
//!     size: size_of::<ExtHeader>() as u64,
//!     layout_hash: 0,
//!     next,
//! };
//! let last = header(ext_tags::COST, ptr::null());
//! let first = header(ext_tags::PRIVATE | 7, &raw const last);
//! // SAFETY: both links of the chain are live.
//! let found = unsafe { find_ext(&first, ext_tags::COST, size_of::<ExtHeader>()) };
//! assert_eq!(found, &raw const last, "a reader skips links that it does not know");
//! ```

mod basic;
mod call;
mod code;
mod collective;
mod create;
mod device;
mod device_ext;
pub mod door;
mod dtype;
mod ext;
mod facts;
mod function;
mod gradient;
mod host;
pub mod layout;
pub mod links;
mod op;
mod pass;
mod plugin;
mod refusal;
mod shape;
mod state;
mod tensor;

pub use basic::{Dims, Range, Source, Str, Strs};
pub use call::{
    Call, CallRecord, CallServices, CancelCallback, KernelState, KernelTable, ParallelBody, Step,
    kernel_flags,
};
pub use code::Code;
pub use collective::{Collective, CollectiveJoin, CollectiveKind, CollectiveReady, ExtCollectives};
pub use create::{AttrKind, AttrView, Attrs, Create, FuncView, Packed, ShapeView, Support};
pub use device::{
    CopyRequest, Device, DeviceAttributes, DeviceState, DeviceTable, DeviceTypeDef, Event,
    MemoryInfo, Notify, Stream, device_flags,
};
pub use device_ext::{CommandGraph, ExtCapture, ExtNative, ExtNativeOf, ExtTimers, NativeHandles};
pub use dtype::DType;
pub use ext::{ExtBench, ExtCases, ExtCost, ExtHeader, ext_tags, find_ext};
pub use facts::{ExtFacts, Facts, GradientRule, OpRole, Refusal, Symmetry, ValueRule, fact_flags};
pub use function::{ExtFunctions, ExtHandles, Function, FunctionDone, FunctionStart};
pub use gradient::{
    ExtGradient, GradientCall, GradientFn, GradientKind, GradientNode, GradientParts,
    GradientTable, GraphValue,
};
pub use host::{Host, KeptTensor, KnobKind, KnobValue, LogLevel, Plugin, PluginContext, Sink};
pub use op::{
    Determinism, InPlace, KernelDef, KnobDef, Numerics, OpDef, ShapeFn, ToleranceKind,
    TypeConstraint, kernel_def_flags, op_flags,
};
pub use pass::{Edge, ExtPass, PassAttr, PassCall, PassNode, PassTable};
pub use plugin::{CPluginFn, PluginV1, Registrar, RegistrarTable};
pub use shape::{DimId, ShapeCall, ShapeId, ShapeTable};
pub use state::{
    ExtVariant, ExtVariants, Resource, ResourceFactory, ResourceType, StateTable, StringTable,
    TensorGive, Variable, VariantParts, VariantTable, VariantTake,
};
pub use tensor::{
    Buffer, MemoryKind, ResourceElement, Slot, StringElement, VariantElement, slot_flags,
};

/// Major number of the ABI. While it is 0, host and plugin must agree on both numbers.
pub const ABI_MAJOR: u32 = 0;
/// Minor number of the ABI: moves with every change of a table, and with nothing else.
pub const ABI_MINOR: u32 = 1;
/// A dimension that is not known.
pub const UNKNOWN_DIM: i64 = -1;
/// Number that means that there is no node.
pub const NO_NODE: u32 = 0xffff_ffff;
/// Rank of a shape whose rank is not known.
pub const UNKNOWN_RANK: i32 = -1;
/// Deadline of a step that has none.
pub const NO_DEADLINE: u64 = 0;
/// Token of a callback for cancellation that was not registered, because it was run at once.
pub const NO_CALLBACK: u64 = 0;
/// Alias class of a slot of which it is not known whether it shares its buffer.
pub const NO_ALIAS: u32 = 0;
/// Highest rank of a tensor that may cross the boundary.
pub const MAX_RANK: usize = 16;
/// Alignment, in bytes, that host memory of a tensor has at least.
pub const HOST_ALIGNMENT: usize = 64;
