//! Sizes and offsets of every shared struct, and the layout hash of extension links.

/// A field of a shared struct.
#[derive(Debug, Clone, Copy)]
pub struct FieldLayout {
    /// Name.
    pub name: &'static str,
    /// Offset in bytes.
    pub offset: usize,
}

/// A shared struct.
#[derive(Debug, Clone, Copy)]
pub struct StructLayout {
    /// Name.
    pub name: &'static str,
    /// Size in bytes.
    pub size: usize,
    /// Fields in order.
    pub fields: &'static [FieldLayout],
}

/// The [`StructLayout`] of a type, given all its fields; a field left out does not compile.
#[macro_export]
macro_rules! struct_layout {
    ($ty:ident { $($field:ident),* $(,)? }) => {{
        #[allow(dead_code, reason = "it only has to compile: a field left out is an error")]
        fn all_fields_named(value: &$ty) {
            let $ty { $($field: _),* } = value;
        }
        $crate::layout::StructLayout {
            name: stringify!($ty),
            size: core::mem::size_of::<$ty>(),
            fields: &[$($crate::layout::FieldLayout {
                name: stringify!($field),
                offset: core::mem::offset_of!($ty, $field),
            }),*],
        }
    }};
}

/// Layout hash of an extension link: FNV-1a (64 bit) over the size and over the names and offsets of
/// its fields, each name ended by a zero byte.
pub const fn ext_hash(layout: &StructLayout) -> u64 {
    let mut hash = fnv_usize(0xcbf2_9ce4_8422_2325, layout.size);
    let mut at = 0;
    while at < layout.fields.len() {
        let field = &layout.fields[at];
        hash = fnv_name(hash, field.name.as_bytes());
        hash = fnv_usize(hash, field.offset);
        at += 1;
    }
    hash
}

const fn fnv_byte(hash: u64, byte: u8) -> u64 {
    (hash ^ byte as u64).wrapping_mul(0x0000_0100_0000_01b3)
}

const fn fnv_name(mut hash: u64, name: &[u8]) -> u64 {
    let mut at = 0;
    while at < name.len() {
        hash = fnv_byte(hash, name[at]);
        at += 1;
    }
    fnv_byte(hash, 0)
}

const fn fnv_usize(mut hash: u64, value: usize) -> u64 {
    let bytes = (value as u64).to_le_bytes();
    let mut at = 0;
    while at < bytes.len() {
        hash = fnv_byte(hash, bytes[at]);
        at += 1;
    }
    hash
}

mod links;

use links::{COLLECTIVE_JOIN, FACTS, GRADIENT_NODE, GRADIENT_PARTS, GRADIENT_TABLE};
pub use links::{
    EXT_BENCH, EXT_CAPTURE, EXT_CASES, EXT_COLLECTIVES, EXT_COST, EXT_FACTS, EXT_FUNCTIONS,
    EXT_GRADIENT, EXT_HANDLES, EXT_NATIVE, EXT_NATIVE_OF, EXT_PASS, EXT_TIMERS, EXT_VARIANT,
    EXT_VARIANTS,
};

use crate::{
    AttrView, Call, CallServices, CopyRequest, Create, DeviceAttributes, DeviceTable,
    DeviceTypeDef, Dims, Edge, ExtHeader, FuncView, Host, InPlace, KernelDef, KernelTable, KnobDef,
    KnobValue, MemoryInfo, NativeHandles, Numerics, OpDef, PassAttr, PassNode, PassTable, PluginV1,
    Range, RegistrarTable, ResourceElement, ResourceType, ShapeTable, ShapeView, Slot, Source,
    StateTable, Step, Str, StringElement, StringTable, Strs, TypeConstraint, VariantElement,
    VariantTable,
};

impl ExtHeader {
    /// The head of a link whose struct has this layout.
    pub const fn new(tag: u32, version: u32, layout: &StructLayout) -> ExtHeader {
        ExtHeader {
            tag,
            version,
            size: layout.size as u64,
            layout_hash: ext_hash(layout),
            next: core::ptr::null(),
        }
    }
}

/// Every shared struct. `docs/layout.txt` is this table.
pub static LAYOUTS: &[StructLayout] = &[
    struct_layout!(Str { ptr, len }),
    struct_layout!(Strs { ptr, len }),
    struct_layout!(Dims { ptr, len }),
    struct_layout!(Range { start, len }),
    struct_layout!(Source { krate, file, line }),
    struct_layout!(ExtHeader { tag, version, size, layout_hash, next }),
    EXT_COST,
    EXT_CASES,
    EXT_BENCH,
    FACTS,
    EXT_FACTS,
    EXT_PASS,
    EXT_VARIANT,
    EXT_NATIVE,
    EXT_NATIVE_OF,
    EXT_FUNCTIONS,
    EXT_GRADIENT,
    EXT_HANDLES,
    EXT_VARIANTS,
    COLLECTIVE_JOIN,
    EXT_COLLECTIVES,
    EXT_TIMERS,
    EXT_CAPTURE,
    struct_layout!(NativeHandles { api, device, stream }),
    struct_layout!(Edge { node, output }),
    struct_layout!(PassAttr { name, value }),
    struct_layout!(PassNode {
        struct_size,
        like,
        op,
        inputs,
        input_count,
        control,
        control_count,
        attrs,
        attr_count
    }),
    struct_layout!(PassTable {
        struct_size,
        reserved,
        nodes,
        name,
        op,
        device,
        attrs,
        input_count,
        input,
        output_count,
        dtype,
        shape,
        constant,
        uses,
        is_fed,
        is_kept,
        is_rewritable,
        replace,
        add,
        redirect,
        bypass,
        note,
        fail
    }),
    GRADIENT_PARTS,
    GRADIENT_NODE,
    GRADIENT_TABLE,
    struct_layout!(Slot {
        data,
        dims,
        buffer,
        elements,
        bytes,
        dtype,
        rank,
        memory,
        alias,
        flags,
        reserved
    }),
    struct_layout!(StringElement { data, len, capacity }),
    struct_layout!(ResourceElement { resource }),
    struct_layout!(VariantElement { value, table }),
    struct_layout!(AttrView { kind, is_list, data, len }),
    struct_layout!(ShapeView { dims, unknown_rank }),
    struct_layout!(FuncView { name, call, definition }),
    struct_layout!(Create {
        struct_size,
        input_count,
        output_count,
        reserved,
        attrs,
        op,
        node,
        device,
        device_state,
        input_types,
        output_types,
        input_shapes,
        constants,
        input_args,
        input_ranges,
        output_args,
        output_ranges,
        context,
        sink,
        ext
    }),
    struct_layout!(Step { struct_size, reserved, step_id, deadline_ns, cancelled, ext }),
    struct_layout!(Call {
        struct_size,
        input_count,
        output_count,
        tracing,
        inputs,
        outputs,
        input_args,
        output_args,
        input_arg_count,
        output_arg_count,
        record,
        services,
        step,
        device,
        device_state,
        stream,
        frame,
        iteration,
        ext
    }),
    struct_layout!(CallServices {
        struct_size,
        reserved,
        fail,
        allocate,
        forward,
        share,
        scratch,
        on_cancel,
        off_cancel,
        output_kept,
        complete,
        parallel_for,
        parallelism,
        trace,
        now_ns,
        node
    }),
    struct_layout!(KernelTable {
        struct_size,
        flags,
        create,
        compute,
        destroy,
        prepack,
        attach_packed,
        release_packed,
        supports,
        ext
    }),
    struct_layout!(OpDef {
        struct_size,
        flags,
        name,
        inputs,
        outputs,
        attrs,
        summary,
        description,
        shape,
        source,
        ext
    }),
    struct_layout!(TypeConstraint { attr, types, count }),
    struct_layout!(InPlace { input, output }),
    struct_layout!(Numerics {
        tolerance,
        determinism,
        ulps,
        absolute,
        relative,
        accumulation,
        reserved
    }),
    struct_layout!(KernelDef {
        struct_size,
        flags,
        op,
        device_type,
        label,
        priority,
        reserved,
        constraints,
        constraint_count,
        host_memory,
        in_place,
        in_place_count,
        features,
        numerics,
        table,
        source,
        ext
    }),
    struct_layout!(KnobDef { struct_size, kind, name, default_value, help, source, ext }),
    struct_layout!(KnobValue { kind, boolean, int_value, float_value, text }),
    struct_layout!(Host {
        struct_size,
        abi_major,
        abi_minor,
        reserved,
        report,
        log,
        attr,
        knob,
        retain_context,
        release_context,
        path,
        allocate,
        deallocate,
        now_ns,
        keep,
        view,
        release,
        device_lost,
        strings,
        shapes,
        state,
        ext
    }),
    struct_layout!(ShapeTable {
        struct_size,
        reserved,
        attrs,
        input_count,
        output_count,
        input,
        constant,
        constant_as_shape,
        rank,
        dim,
        value,
        make_dim,
        make_shape,
        unknown_shape,
        merge,
        merge_dim,
        with_rank,
        set_output,
        input_handle,
        add_output_handle,
        fail
    }),
    struct_layout!(StringTable { struct_size, reserved, set, reserve, destroy }),
    struct_layout!(ResourceType { struct_size, reserved, name, destroy, ext }),
    struct_layout!(VariantTable {
        struct_size,
        reserved,
        type_name,
        clone,
        destroy,
        encode,
        decode,
        copy_to_device,
        zeros_like,
        add,
        ext
    }),
    struct_layout!(StateTable {
        struct_size,
        reserved,
        resource,
        resource_value,
        retain_resource,
        release_resource,
        remove_resource,
        variable,
        as_variable,
        variable_resource,
        lock_variables,
        share_variables,
        unlock_variables,
        read_variable,
        output_variable,
        assign_variable,
        update_variable,
        output_ref,
        ref_variable,
        output_value
    }),
    struct_layout!(MemoryInfo { kind, alignment, limit }),
    struct_layout!(DeviceAttributes {
        struct_size,
        flags,
        description,
        memories,
        memory_count,
        numa_node,
        bus_id,
        stream_count,
        reserved,
        ext
    }),
    struct_layout!(CopyRequest {
        struct_size,
        reserved,
        source,
        destination,
        bytes,
        source_memory,
        destination_memory,
        source_device,
        destination_device,
        ext
    }),
    struct_layout!(DeviceTable {
        struct_size,
        reserved,
        destroy,
        attributes,
        allocate,
        deallocate,
        can_copy,
        copy,
        create_stream,
        destroy_stream,
        synchronize_stream,
        notify,
        create_event,
        destroy_event,
        record_event,
        wait_event,
        query_event,
        synchronize,
        ext
    }),
    struct_layout!(DeviceTypeDef {
        struct_size,
        priority,
        name,
        probe,
        create,
        table,
        source,
        ext
    }),
    struct_layout!(RegistrarTable {
        struct_size,
        reserved,
        op,
        kernel,
        device_type,
        knob,
        extension
    }),
    struct_layout!(PluginV1 {
        struct_size,
        abi_major,
        abi_minor,
        reserved,
        name,
        version,
        open,
        register_all,
        ext
    }),
];

/// The table as text with a block for each struct: the form of `docs/layout.txt`.
pub fn table() -> String {
    use core::fmt::Write;
    let mut text = format!("abi {}.{}\n", crate::ABI_MAJOR, crate::ABI_MINOR);
    for layout in LAYOUTS {
        let _ = write!(text, "\n{} {}\n", layout.name, layout.size);
        for field in layout.fields {
            let _ = writeln!(text, "  {} {}", field.offset, field.name);
        }
    }
    text
}
