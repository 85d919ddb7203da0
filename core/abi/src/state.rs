//! State that outlives a call: strings, resources, variables, variants, reference slots.

use crate::{
    CallRecord, Code, DType, ExtHeader, MemoryKind, Sink, Slot, Source, Str, Stream, StringElement,
    VariantElement,
};
use abi_stable::StableAbi;
use core::ffi::c_void;

/// Services for elements of string tensors. Filled by the host; every entry is there.
#[repr(C)]
#[derive(StableAbi)]
pub struct StringTable {
    /// Size of this struct.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// Replaces the value; `RESOURCE_EXHAUSTED` without memory (the element is as before).
    pub set: Option<unsafe extern "C" fn(element: *mut StringElement, value: Str) -> Code>,
    /// Makes room for `capacity` bytes and keeps the value. The caller may then write up to `capacity`
    /// bytes at `data` and set `len`.
    pub reserve: Option<unsafe extern "C" fn(element: *mut StringElement, capacity: u64) -> Code>,
    /// Frees the value and leaves the empty string.
    pub destroy: Option<unsafe extern "C" fn(element: *mut StringElement)>,
}

/// A resource of the host. Opaque to plugins; reference-counted.
#[repr(C)]
#[derive(StableAbi)]
pub struct Resource {
    _opaque: [u8; 0],
}

/// A variable: a resource of the host that holds one tensor. Opaque to plugins.
#[repr(C)]
#[derive(StableAbi)]
pub struct Variable {
    _opaque: [u8; 0],
}

/// Type of a plugin's own resources. Filled by the plugin; lives as long as the library. Its address is the
/// type: a value is given out only for the type that it was made with, so that no other library, and no later
/// build of the plugin, takes it for something else. Any thread may use and destroy a value.
#[repr(C)]
#[derive(StableAbi)]
pub struct ResourceType {
    /// Size of this struct.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// Name of the type, unique: by convention `plugin.Type`. Resources of one name and different types do not
    /// see each other; those of one name and one name of type must be of one type.
    pub name: Str,
    /// Frees the value. Required.
    pub destroy: Option<unsafe extern "C" fn(value: *mut c_void)>,
    /// Growth; may be null.
    pub ext: *const ExtHeader,
}

// SAFETY: immutable data; its chain is immutable too.
unsafe impl Sync for ResourceType {}

/// Makes a resource's value when there is none of that name.
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy)]
pub struct ResourceFactory {
    /// Null: only look it up. Runs under the lock of the container's entry.
    pub run: Option<
        unsafe extern "C" fn(data: *mut c_void, value: *mut *mut c_void, sink: *mut Sink) -> Code,
    >,
}

/// The receiver of the tensors of a value that is encoded. Opaque to plugins; valid while `encode` runs.
#[repr(C)]
#[derive(StableAbi)]
pub struct VariantParts {
    _opaque: [u8; 0],
}

/// Takes one tensor of a value that is encoded: the slot of a kept tensor.
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy)]
pub struct TensorGive {
    /// Filled by the host.
    pub run: Option<unsafe extern "C" fn(parts: *mut VariantParts, tensor: *const Slot) -> Code>,
}

/// Table of a variant's type. Filled by the plugin that makes such values; lives as long as the library. Its
/// address is the type. A type whose values can be decoded is registered by its table ([`ExtVariant`]). Any thread may
/// use and destroy a value.
#[repr(C)]
#[derive(StableAbi)]
pub struct VariantTable {
    /// Size of this struct.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// Name of the type, unique.
    pub type_name: Str,
    /// Copies a value. Required.
    pub clone: Option<
        unsafe extern "C" fn(value: *const c_void, copy: *mut *mut c_void, sink: *mut Sink) -> Code,
    >,
    /// Frees a value. Required.
    pub destroy: Option<unsafe extern "C" fn(value: *mut c_void)>,
    /// Gives the value's bytes to the sink as its message, and its tensors, in an order of the type's, to `give` with
    /// `parts`.
    pub encode: Option<
        unsafe extern "C" fn(
            value: *const c_void,
            parts: *mut VariantParts,
            give: TensorGive,
            sink: *mut Sink,
        ) -> Code,
    >,
    /// Makes a value of what `encode` gave, perhaps in another process: bytes and tensors in host memory, lent for
    /// this call (`Host::keep`). They may be anything.
    pub decode: Option<
        unsafe extern "C" fn(
            bytes: Str,
            tensors: *const Slot,
            tensor_count: usize,
            result: *mut *mut c_void,
            sink: *mut Sink,
        ) -> Code,
    >,
    /// Makes a value whose tensors are in memory of another kind or device.
    pub copy_to_device: Option<
        unsafe extern "C" fn(
            value: *const c_void,
            device: *mut crate::Device,
            memory: MemoryKind,
            stream: *mut Stream,
            copy: *mut *mut c_void,
            sink: *mut Sink,
        ) -> Code,
    >,
    /// Makes a value of zeros of the same form.
    pub zeros_like: Option<
        unsafe extern "C" fn(
            value: *const c_void,
            result: *mut *mut c_void,
            sink: *mut Sink,
        ) -> Code,
    >,
    /// Adds two values.
    pub add: Option<
        unsafe extern "C" fn(
            a: *const c_void,
            b: *const c_void,
            result: *mut *mut c_void,
            sink: *mut Sink,
        ) -> Code,
    >,
    /// Growth; may be null.
    pub ext: *const ExtHeader,
}

// SAFETY: immutable data.
unsafe impl Sync for VariantTable {}
// SAFETY: immutable data.
unsafe impl Send for VariantTable {}

/// Link [`crate::ext_tags::VARIANT`], a registration: a type of variants whose values can be decoded, known by the name
/// in its table. Filled by the plugin; the table lives as long as the library.
#[repr(C)]
#[derive(StableAbi)]
pub struct ExtVariant {
    /// Head, with tag [`crate::ext_tags::VARIANT`].
    pub header: ExtHeader,
    /// The type, with `decode`.
    pub table: *const VariantTable,
    /// Where it is registered.
    pub source: Source,
}

// SAFETY: immutable data.
unsafe impl Sync for ExtVariant {}

/// Takes a variant that is encoded, once: the name of its type, bytes in the type's own format, and the slots of its
/// tensors, in host memory. Without a name the element has no value. All of them are lent for this call.
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy)]
pub struct VariantTake {
    /// Filled by the plugin.
    pub run: Option<
        unsafe extern "C" fn(
            data: *mut c_void,
            type_name: Str,
            bytes: Str,
            tensors: *const Slot,
            tensor_count: usize,
        ),
    >,
}

/// Link [`crate::ext_tags::VARIANTS`] of the host's table: variants of any plugin's types as bytes and tensors, to be
/// stored. Filled by the host; every entry is there. An error's message is that of the call.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct ExtVariants {
    /// Head, with tag [`crate::ext_tags::VARIANTS`].
    pub header: ExtHeader,
    /// Gives the encoded form of an element of a variant tensor to `take` with `data`, before it returns.
    /// `UNIMPLEMENTED` for a type that cannot encode, and for tensors in memory of a device.
    pub encode: Option<
        unsafe extern "C" fn(
            record: *mut CallRecord,
            element: *const VariantElement,
            take: VariantTake,
            data: *mut c_void,
        ) -> Code,
    >,
    /// Makes an element of what `encode` gave, which belongs to the caller; without a name, one without a value.
    /// `NOT_FOUND` if no plugin of the call's process has registered a type of this name.
    pub decode: Option<
        unsafe extern "C" fn(
            record: *mut CallRecord,
            type_name: Str,
            bytes: Str,
            tensors: *const Slot,
            tensor_count: usize,
            result: *mut VariantElement,
        ) -> Code,
    >,
}

// SAFETY: a link is immutable data of function pointers.
unsafe impl Sync for ExtVariants {}

/// Services for state. Filled by the host; every entry is there.
///
/// Lock order: variables are locked in one call of `lock_variables`, which orders them itself; a kernel
/// holds no other lock of the host meanwhile.
#[repr(C)]
#[derive(StableAbi)]
pub struct StateTable {
    /// Size of this struct.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// Finds or makes the resource (container, name, type) of the call's device, which all sessions of a worker
    /// share. An empty container is the default one; what is in the container `__per_step_<step_id>` goes with the
    /// step. An empty name is an anonymous resource: it is made each time, and lives as long as its references.
    /// The result is a counted reference: give it back by `release_resource`.
    /// `NOT_FOUND` when the resource does not exist and there is no factory; `FAILED_PRECONDITION` when it exists with
    /// another type of the same name.
    pub resource: Option<
        unsafe extern "C" fn(
            record: *mut CallRecord,
            container: Str,
            name: Str,
            kind: *const ResourceType,
            factory: ResourceFactory,
            data: *mut c_void,
            result: *mut *mut Resource,
        ) -> Code,
    >,
    /// Value of a resource, when it is of type `kind`; null otherwise, and for null.
    pub resource_value: Option<
        unsafe extern "C" fn(resource: *const Resource, kind: *const ResourceType) -> *mut c_void,
    >,
    /// Adds a reference; null is allowed.
    pub retain_resource: Option<unsafe extern "C" fn(resource: *mut Resource)>,
    /// Gives a reference back; the last one destroys the value. Null is allowed.
    pub release_resource: Option<unsafe extern "C" fn(resource: *mut Resource)>,
    /// Removes (container, name, type) from the call's device; `NOT_FOUND` when it does not exist.
    pub remove_resource: Option<
        unsafe extern "C" fn(record: *mut CallRecord, container: Str, name: Str, kind: Str) -> Code,
    >,
    /// Finds or makes the variable (container, name), as `resource` does. Its value is unset at first. The result is a
    /// counted resource: `release_resource` takes it back, as `variable_resource` shows it.
    pub variable: Option<
        unsafe extern "C" fn(
            record: *mut CallRecord,
            container: Str,
            name: Str,
            dtype: DType,
            result: *mut *mut Variable,
        ) -> Code,
    >,
    /// The variable behind a resource, without a new reference; null for null and for a resource of another kind.
    pub as_variable: Option<unsafe extern "C" fn(resource: *mut Resource) -> *mut Variable>,
    /// The resource of a variable, without a new reference.
    pub variable_resource: Option<unsafe extern "C" fn(variable: *mut Variable) -> *mut Resource>,
    /// Locks variables for this call, in an order of the host's; duplicates are allowed.
    pub lock_variables: Option<
        unsafe extern "C" fn(
            record: *mut CallRecord,
            variables: *const *mut Variable,
            count: usize,
        ) -> Code,
    >,
    /// Locks variables for this call together with other calls that share them. The call reads the values; if `update`
    /// is not 0, it writes elements of the values in place, at the same time as other calls. Once a variable was locked
    /// for such an update, calls that read it outside the lock get a copy of its value. Calls that update one element
    /// at the same time use atomic operations, or they lose updates.
    pub share_variables: Option<
        unsafe extern "C" fn(
            record: *mut CallRecord,
            variables: *const *mut Variable,
            count: usize,
            update: u32,
        ) -> Code,
    >,
    /// Unlocks what `lock_variables` or `share_variables` locked.
    pub unlock_variables: Option<
        unsafe extern "C" fn(
            record: *mut CallRecord,
            variables: *const *mut Variable,
            count: usize,
        ),
    >,
    /// Shows the value of a locked variable; valid until it is unlocked or assigned.
    /// `FAILED_PRECONDITION` when it has no value.
    pub read_variable: Option<
        unsafe extern "C" fn(
            record: *mut CallRecord,
            variable: *mut Variable,
            value: *mut Slot,
        ) -> Code,
    >,
    /// Returns the value of a locked variable as output `output`, without a copy.
    pub output_variable: Option<
        unsafe extern "C" fn(record: *mut CallRecord, variable: *mut Variable, output: u32) -> Code,
    >,
    /// Gives a variable that is locked exclusively the tensor of input `input`.
    pub assign_variable: Option<
        unsafe extern "C" fn(record: *mut CallRecord, variable: *mut Variable, input: u32) -> Code,
    >,
    /// Shows the value of a variable that is locked exclusively, or shared for an update, for writing in place. Under
    /// the exclusive lock it is copied first when a reader holds it.
    pub update_variable: Option<
        unsafe extern "C" fn(
            record: *mut CallRecord,
            variable: *mut Variable,
            value: *mut Slot,
        ) -> Code,
    >,
    /// Makes output `output` a reference to the cell of `variable`, which the step keeps to its end. If the variable
    /// has no value, a tensor that the output already has becomes its value.
    pub output_ref: Option<
        unsafe extern "C" fn(record: *mut CallRecord, variable: *mut Variable, output: u32) -> Code,
    >,
    /// The variable behind a reference slot; null for another slot.
    pub ref_variable: Option<unsafe extern "C" fn(slot: *const Slot) -> *mut Variable>,
    /// Returns the value of a variable as output `output`: without a copy, or as a copy if the variable was shared for an
    /// update before. The call must not have locked it; the host waits while another call has it locked exclusively.
    /// `FAILED_PRECONDITION` when it has no value; `CANCELLED` when the step was cancelled while it waited.
    pub output_value: Option<
        unsafe extern "C" fn(record: *mut CallRecord, variable: *mut Variable, output: u32) -> Code,
    >,
}
