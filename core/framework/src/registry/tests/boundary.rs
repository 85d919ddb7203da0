use super::*;
use crate::op::RawError;
use std::ptr;
use tenon_abi::{
    DeviceAttributes, DeviceState, DeviceTable, ExtCost, ExtHeader, Host, InPlace, PluginContext,
    Sink, Slot, Source, Str, Strs, ext_tags, kernel_def_flags, layout,
};

const SOURCE: Source = Source { krate: Str::new("zoo"), file: Str::new("z.rs"), line: 3 };

fn raw_kernel() -> tenon_abi::KernelDef {
    tenon_abi::KernelDef {
        struct_size: size_of::<tenon_abi::KernelDef>() as u32,
        flags: 0,
        op: Str::new("Add"),
        device_type: Str::new("CPU"),
        label: Str::new("fast"),
        priority: 4,
        reserved: 0,
        constraints: ptr::null(),
        constraint_count: 0,
        host_memory: Strs { ptr: ptr::null(), len: 0 },
        in_place: ptr::null(),
        in_place_count: 0,
        features: Strs { ptr: ptr::null(), len: 0 },
        numerics: EXACT,
        table: &TABLE,
        source: SOURCE,
        ext: ptr::null(),
    }
}

fn read(raw: &tenon_abi::KernelDef) -> Result<KernelDef, RegistryError> {
    // SAFETY: a whole struct whose pointers are null or live, with a static table.
    unsafe { KernelDef::from_abi(PluginId(2), &Arc::from("zoo"), raw) }
}

#[test]
fn kernels_are_copied_from_the_boundary() {
    let types = [DType::FLOAT, DType::INT32];
    let constraints = [tenon_abi::TypeConstraint {
        attr: Str::new("T"),
        types: types.as_ptr(),
        count: types.len(),
    }];
    let (host, features) = ([Str::new("y")], [Str::new("fma"), Str::new("avx2")]);
    let in_place = [InPlace { input: 0, output: 0 }];
    let cost = ExtCost {
        header: ExtHeader::new(ext_tags::COST, 1, &layout::EXT_COST),
        fixed_ns: 20.0,
        per_element_ns: 0.25,
    };
    let raw = tenon_abi::KernelDef {
        flags: kernel_def_flags::ON_REQUEST,
        constraints: constraints.as_ptr(),
        constraint_count: 1,
        host_memory: Strs::new(&host),
        in_place: in_place.as_ptr(),
        in_place_count: 1,
        features: Strs::new(&features),
        ext: std::ptr::from_ref(&cost).cast(),
        ..raw_kernel()
    };
    let kernel = read(&raw).unwrap();
    assert_eq!(kernel.types_of("T"), Some(&types[..]));
    assert_eq!(kernel.features, ["avx2", "fma"]);
    assert_eq!(kernel.host_memory, ["y"]);
    assert_eq!((kernel.in_place.len(), kernel.on_request, kernel.priority), (1, true, 4));
    assert_eq!(kernel.cost, Some(Cost { fixed_ns: 20.0, per_element_ns: 0.25 }));
    assert_eq!((kernel.plugin, &*kernel.plugin_name), (PluginId(2), "zoo"));
    assert_eq!(
        kernel.to_string(),
        "kernel 'fast' of op 'Add' on CPU (T: float, int32; zoo z.rs:3)"
    );
}

#[test]
fn a_cost_of_another_layout_or_without_sense_is_refused() {
    let with = |version, hash_off: u64, fixed_ns| {
        let mut header = ExtHeader::new(ext_tags::COST, version, &layout::EXT_COST);
        header.layout_hash = header.layout_hash.wrapping_add(hash_off);
        let cost = ExtCost { header, fixed_ns, per_element_ns: 0.0 };
        read(&tenon_abi::KernelDef { ext: (&raw const cost).cast(), ..raw_kernel() })
    };
    assert!(matches!(with(1, 1, 0.0), Err(RegistryError::Link { .. })));
    assert!(with(2, 1, 0.0).is_ok(), "a later version appends");
    assert!(matches!(with(1, 0, f64::NAN), Err(RegistryError::Numerics { .. })));
    let other = ExtHeader::new(ext_tags::CASES, 1, &layout::EXT_COST);
    let kernel = read(&tenon_abi::KernelDef { ext: &raw const other, ..raw_kernel() }).unwrap();
    assert_eq!(kernel.cost, None, "an unknown link is skipped");
}

#[test]
fn malformed_kernels_are_refused() {
    let null = tenon_abi::KernelDef { table: ptr::null(), ..raw_kernel() };
    assert!(matches!(read(&null), Err(RegistryError::Raw(RawError::Null { field: "table", .. }))));
    static SMALL: KernelTable = KernelTable { struct_size: 8, ..table() };
    let small = tenon_abi::KernelDef { table: &SMALL, ..raw_kernel() };
    assert!(matches!(read(&small), Err(RegistryError::Raw(RawError::StructSize { .. }))));
    static IDLE: KernelTable = KernelTable { compute: None, ..table() };
    let idle = read(&tenon_abi::KernelDef { table: &IDLE, ..raw_kernel() }).unwrap_err();
    assert!(idle.to_string().contains("the table has no 'compute'"), "{idle}");
    let short = tenon_abi::KernelDef { struct_size: 40, ..raw_kernel() };
    assert!(matches!(
        read(&short),
        Err(RegistryError::Raw(RawError::StructSize { found: 40, .. }))
    ));
    let unlabelled = tenon_abi::KernelDef {
        flags: kernel_def_flags::ON_REQUEST,
        label: Str::EMPTY,
        ..raw_kernel()
    };
    assert!(matches!(read(&unlabelled), Err(RegistryError::KernelName { .. })));
    let label = tenon_abi::KernelDef { label: Str::new("a b"), ..raw_kernel() };
    assert!(matches!(read(&label), Err(RegistryError::KernelName { what: "label", .. })));
    let numerics = Numerics { ulps: -1.0, ..EXACT };
    let bad = tenon_abi::KernelDef { numerics, ..raw_kernel() };
    assert!(matches!(read(&bad), Err(RegistryError::Numerics { .. })));
    let missing = tenon_abi::KernelDef { constraint_count: 2, ..raw_kernel() };
    assert!(matches!(read(&missing), Err(RegistryError::Raw(RawError::Null { .. }))));
}

unsafe extern "C" fn prepack(
    _: *mut KernelState,
    _: u32,
    _: *const Slot,
    _: *mut *mut tenon_abi::Packed,
    _: *mut u64,
    _: *mut Sink,
) -> Code {
    Code::OK
}

#[test]
fn prepack_needs_its_counterparts() {
    static PACKS: KernelTable = KernelTable { prepack: Some(prepack), ..table() };
    let error = read(&tenon_abi::KernelDef { table: &PACKS, ..raw_kernel() }).unwrap_err();
    assert!(error.to_string().contains("the table has no 'attach_packed'"), "{error}");
}

unsafe extern "C" fn probe(_: *const Host, _: *const PluginContext, _: *mut Sink) -> u32 {
    1
}

unsafe extern "C" fn create(
    _: *const Host,
    _: *const PluginContext,
    _: u32,
    _: *mut tenon_abi::Device,
    _: *mut *mut DeviceState,
    _: *mut Sink,
) -> Code {
    Code::OK
}

unsafe extern "C" fn destroy(_: *mut DeviceState) {}

unsafe extern "C" fn attributes(_: *mut DeviceState, _: *mut DeviceAttributes) {}

unsafe extern "C" fn can_copy(_: *mut DeviceState, _: *const tenon_abi::CopyRequest) -> u32 {
    1
}

const fn device_table() -> DeviceTable {
    DeviceTable {
        struct_size: size_of::<DeviceTable>() as u32,
        reserved: 0,
        destroy: Some(destroy),
        attributes: Some(attributes),
        allocate: None,
        deallocate: None,
        can_copy: None,
        copy: None,
        create_stream: None,
        destroy_stream: None,
        synchronize_stream: None,
        notify: None,
        create_event: None,
        destroy_event: None,
        record_event: None,
        wait_event: None,
        query_event: None,
        synchronize: None,
        ext: ptr::null(),
    }
}

static DEVICE: DeviceTable = device_table();
static COPIES: DeviceTable = DeviceTable { can_copy: Some(can_copy), ..device_table() };
static OTHER: DeviceTable = device_table();

fn device(name: &'static str, table: *const DeviceTable) -> tenon_abi::DeviceTypeDef {
    tenon_abi::DeviceTypeDef {
        struct_size: size_of::<tenon_abi::DeviceTypeDef>() as u32,
        priority: 3,
        name: Str::new(name),
        probe: Some(probe),
        create: Some(create),
        table,
        source: SOURCE,
        ext: ptr::null(),
    }
}

fn register(transaction: &mut Transaction, def: &tenon_abi::DeviceTypeDef) -> Code {
    // SAFETY: a whole struct with static texts and tables.
    unsafe { transaction.device_type_from_abi(def) }
}

#[test]
fn device_types_are_read_and_unique() {
    let mut first = plugin(0, "accel", 0);
    assert_eq!(register(&mut first, &device("ACCEL", &DEVICE)), Code::OK);
    assert_eq!(register(&mut first, &device("ACCEL", &DEVICE)), Code::OK);
    let (registry, _) = first.commit(&Registry::new()).unwrap();
    assert_eq!(registry.device_type("ACCEL").unwrap().priority, 3);
    assert_eq!(registry.device_types().count(), 1);
    let mut second = plugin(1, "accel2", 1);
    register(&mut second, &device("ACCEL", &OTHER));
    let errors = second.commit(&registry).unwrap_err();
    assert_eq!(
        errors[0].to_string(),
        "device type 'ACCEL' is registered by zoo z.rs:3 and by zoo z.rs:3: load one of them"
    );
}

#[test]
fn malformed_device_types_are_refused() {
    let refused = |def: &tenon_abi::DeviceTypeDef| {
        let mut transaction = plugin(0, "a", 0);
        assert_eq!(register(&mut transaction, def), Code::INVALID_ARGUMENT);
        errors_of(transaction).remove(0)
    };
    assert!(refused(&device("DEFAULT", &DEVICE)).contains("are not DEFAULT, found 'DEFAULT'"));
    assert!(refused(&device("gpu", &DEVICE)).contains("found 'gpu'"));
    assert!(refused(&device("GPU", ptr::null())).contains("'table' is null"));
    assert!(refused(&device("GPU", &COPIES)).contains("'table.copy' is null"));
    let no_probe = tenon_abi::DeviceTypeDef { probe: None, ..device("GPU", &DEVICE) };
    assert!(refused(&no_probe).contains("'probe' is null"));
}

#[test]
fn an_unreadable_op_is_one_error_and_not_one_more_per_kernel() {
    let mut transaction = plugin(0, "a", 0);
    let inputs = [Str::new("x: ")];
    let raw = tenon_abi::OpDef {
        struct_size: size_of::<tenon_abi::OpDef>() as u32,
        flags: 0,
        name: Str::new("Add"),
        inputs: Strs::new(&inputs),
        outputs: Strs::new(&[]),
        attrs: Strs::new(&[]),
        summary: Str::EMPTY,
        description: Str::EMPTY,
        shape: tenon_abi::ShapeFn { run: None },
        source: SOURCE,
        ext: ptr::null(),
    };
    // SAFETY: whole structs with static texts and tables.
    unsafe {
        assert_eq!(transaction.op_from_abi(&raw), Code::INVALID_ARGUMENT);
        assert_eq!(transaction.kernel_from_abi(&raw_kernel()), Code::OK);
        assert_eq!(transaction.knob_from_abi(ptr::null()), Code::INVALID_ARGUMENT);
    }
    assert_eq!(transaction.errors().len(), 2);
    assert_eq!(errors_of(transaction).len(), 2);
}
