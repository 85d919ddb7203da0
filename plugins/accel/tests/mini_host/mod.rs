//! As much of a host as a device and one kernel at a time need: the plugin is driven through the tables
//! that it registers, as a host drives it.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    ffi::c_void,
    mem::zeroed,
    ptr,
    sync::{Mutex, Once},
};
use tenon_sdk::{
    Code, DType,
    abi::{
        AttrKind, AttrView, Attrs, Call, CallRecord, CallServices, CopyRequest, Create, Device,
        DeviceState, DeviceTable, DeviceTypeDef, Host, KernelDef, KernelTable, KnobDef, KnobKind,
        KnobValue, MemoryKind, PluginContext, Registrar, RegistrarTable, Sink, Slot, Str, Stream,
        slot_flags,
    },
    author::install_host,
    element::Element,
    reg::submit_all,
};

/// The value of an attribute.
#[derive(Clone)]
pub enum Attr {
    Bool(u8),
    Text(&'static str),
    Ints(Vec<i64>),
}

type AttrMap = BTreeMap<&'static str, Attr>;

struct Kernel {
    op: String,
    device: String,
    types: Vec<DType>,
    host_memory: Vec<String>,
    table: &'static KernelTable,
}

#[derive(Default)]
struct Registered {
    kernels: Vec<Kernel>,
    devices: Vec<(String, i32, &'static DeviceTable)>,
    knobs: BTreeMap<String, (KnobKind, String)>,
    create: Option<CreateDevice>,
}

type CreateDevice = unsafe extern "C" fn(
    *const Host,
    *const PluginContext,
    u32,
    *mut Device,
    *mut *mut DeviceState,
    *mut Sink,
) -> Code;

static REGISTERED: Mutex<Option<Registered>> = Mutex::new(None);
static LOSSES: Mutex<Vec<String>> = Mutex::new(Vec::new());
thread_local! {
    /// The last message of an error: the plugin gives it on the thread that called.
    static MESSAGE: RefCell<String> = const { RefCell::new(String::new()) };
}
/// Values of knobs that are not the default.
static SET: Mutex<BTreeMap<String, i64>> = Mutex::new(BTreeMap::new());

fn text(str: Str) -> String {
    // SAFETY: text that the plugin lends for the call.
    unsafe { str.text() }.unwrap().to_owned()
}

unsafe extern "C" fn report(_: *mut Sink, message: Str) {
    MESSAGE.set(text(message));
}

unsafe extern "C" fn fail(_: *mut CallRecord, code: Code, message: Str) -> Code {
    MESSAGE.set(text(message));
    code
}

unsafe extern "C" fn lost(_: *mut Device, reason: Str) {
    LOSSES.lock().unwrap().push(text(reason));
}

/// The one context is there for as long as the process.
unsafe extern "C" fn keep(_: *const PluginContext) {}

unsafe extern "C" fn knob(_: *const PluginContext, name: Str, result: *mut KnobValue) -> Code {
    let name = text(name);
    let registered = REGISTERED.lock().unwrap();
    let Some((kind, default)) = registered.as_ref().and_then(|all| all.knobs.get(&name)) else {
        return Code::NOT_FOUND;
    };
    let set = SET.lock().unwrap().get(&name).copied();
    // SAFETY: the plugin gives a place for the result.
    let result = unsafe { &mut *result };
    result.kind = *kind;
    match *kind {
        KnobKind::BOOL => {
            result.boolean = set.map_or(u32::from(default == "true"), |set| u32::from(set != 0));
        }
        // Of a registration, which stays.
        KnobKind::STRING => result.text = Str::new(default),
        _ => result.int_value = set.unwrap_or_else(|| default.parse().unwrap()),
    }
    Code::OK
}

unsafe extern "C" fn attr(attrs: *const Attrs, name: Str, result: *mut AttrView) -> Code {
    // SAFETY: the map that `Node::run` gave, which lives while the kernel is created.
    let Some(value) = (unsafe { &*attrs.cast::<AttrMap>() }).get(text(name).as_str()) else {
        return Code::NOT_FOUND;
    };
    let (kind, is_list, data, len): (_, _, *const c_void, _) = match value {
        Attr::Bool(value) => (AttrKind::BOOL, 0, ptr::from_ref(value).cast(), 1),
        Attr::Text(value) => {
            let text: *const Str = Box::leak(Box::new(Str::new(value)));
            (AttrKind::STRING, 0, text.cast(), 1)
        }
        Attr::Ints(values) => (AttrKind::INT, 1, values.as_ptr().cast(), values.len()),
    };
    // SAFETY: the plugin gives a place for the result.
    unsafe { *result = AttrView { kind, is_list, data, len } };
    Code::OK
}

unsafe extern "C" fn take_kernel(_: *mut Registrar, def: *const KernelDef) -> Code {
    // SAFETY: a filled definition whose table lives as long as the library.
    let (def, types, table) = unsafe {
        let def = &*def;
        let constraints = std::slice::from_raw_parts(def.constraints, def.constraint_count);
        let types = std::slice::from_raw_parts(constraints[0].types, constraints[0].count);
        (def, types.to_vec(), &*def.table)
    };
    // SAFETY: as above.
    let host_memory = unsafe { def.host_memory.slice() }.iter().map(|name| text(*name)).collect();
    let kernel =
        Kernel { op: text(def.op), device: text(def.device_type), types, host_memory, table };
    REGISTERED.lock().unwrap().as_mut().unwrap().kernels.push(kernel);
    Code::OK
}

unsafe extern "C" fn take_device(_: *mut Registrar, def: *const DeviceTypeDef) -> Code {
    // SAFETY: a filled definition whose table lives as long as the library.
    let (def, table) = unsafe { (&*def, &*(*def).table) };
    let mut registered = REGISTERED.lock().unwrap();
    let registered = registered.as_mut().unwrap();
    registered.devices.push((text(def.name), def.priority, table));
    registered.create = def.create;
    Code::OK
}

unsafe extern "C" fn take_knob(_: *mut Registrar, def: *const KnobDef) -> Code {
    // SAFETY: a filled definition.
    let def = unsafe { &*def };
    let knob = (def.kind, text(def.default_value));
    REGISTERED.lock().unwrap().as_mut().unwrap().knobs.insert(text(def.name), knob);
    Code::OK
}

/// Opens the plugin, once.
pub fn load() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        *REGISTERED.lock().unwrap() = Some(Registered::default());
        // SAFETY: tables of pointers and numbers, of which all zero is a value; entries that are not set are
        // not called by this plugin.
        unsafe {
            let mut host: Host = zeroed();
            host.report = Some(report);
            host.knob = Some(knob);
            host.retain_context = Some(keep);
            host.release_context = Some(keep);
            host.attr = Some(attr);
            host.device_lost = Some(lost);
            install_host(Box::leak(Box::new(host)), ptr::null());
            let mut table: RegistrarTable = zeroed();
            table.kernel = Some(take_kernel);
            table.device_type = Some(take_device);
            table.knob = Some(take_knob);
            assert_eq!(submit_all(ptr::null_mut(), &table, |_| true), Code::OK);
        }
    });
}

/// Names of ops with kernels, each once, with the arguments that they want in host memory.
pub fn ops() -> BTreeMap<String, Vec<String>> {
    let registered = REGISTERED.lock().unwrap();
    let kernels = &registered.as_ref().unwrap().kernels;
    assert!(kernels.iter().all(|kernel| kernel.device == "ACCEL"));
    kernels.iter().map(|kernel| (kernel.op.clone(), kernel.host_memory.clone())).collect()
}

/// Device types: name and priority.
pub fn device_types() -> Vec<(String, i32)> {
    let registered = REGISTERED.lock().unwrap();
    let devices = &registered.as_ref().unwrap().devices;
    devices.iter().map(|(name, priority, _)| (name.clone(), *priority)).collect()
}

/// What `device_lost` was told so far.
pub fn losses() -> Vec<String> {
    LOSSES.lock().unwrap().clone()
}

/// The last message of an error.
pub fn last_message() -> String {
    MESSAGE.with_borrow(String::clone)
}

/// An open device, driven through its table.
pub struct Opened {
    pub table: &'static DeviceTable,
    pub state: *mut DeviceState,
    pub stream: *mut Stream,
}

impl Opened {
    /// Opens device `ordinal` with these knobs set.
    pub fn new(ordinal: u32, knobs: &[(&str, i64)]) -> Opened {
        load();
        // One at a time, so that each gets its own knobs.
        static OPENING: Mutex<()> = Mutex::new(());
        let _one = OPENING.lock().unwrap_or_else(|poison| poison.into_inner());
        for (name, value) in knobs {
            SET.lock().unwrap().insert((*name).to_owned(), *value);
        }
        let (table, create) = {
            let registered = REGISTERED.lock().unwrap();
            let registered = registered.as_ref().unwrap();
            (registered.devices[0].2, registered.create.unwrap())
        };
        // Not null, so that losses are told; the plugin never follows it.
        let record: *mut Device = ptr::dangling_mut();
        let context: *const PluginContext = ptr::dangling();
        let (mut state, mut stream) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: entries of the plugin's table with places for the results.
        unsafe {
            let code = create(ptr::null(), context, ordinal, record, &mut state, ptr::null_mut());
            assert_eq!(code, Code::OK, "{}", last_message());
            let code = table.create_stream.unwrap()(state, &mut stream, ptr::null_mut());
            assert_eq!(code, Code::OK, "{}", last_message());
        }
        SET.lock().unwrap().clear();
        Opened { table, state, stream }
    }

    /// Allocates on the device.
    pub fn allocate(&self, bytes: u64) -> Result<*mut c_void, Code> {
        let mut data = ptr::null_mut();
        let entry = self.table.allocate.unwrap();
        let (kind, none) = (MemoryKind::DEVICE, ptr::null_mut());
        // SAFETY: an entry of the table with its device.
        match unsafe { entry(self.state, bytes, 64, kind, none, &mut data, ptr::null_mut()) } {
            Code::OK => Ok(data),
            code => Err(code),
        }
    }

    /// Enqueues a copy; `to_device` says which end is the device's.
    pub fn copy(
        &self,
        host: *mut c_void,
        device: *mut c_void,
        bytes: u64,
        to_device: bool,
    ) -> Code {
        // SAFETY: all zero is the host at both ends; the caller's pointers are valid until it synchronises.
        unsafe {
            let mut request: CopyRequest = zeroed();
            request.bytes = bytes;
            if to_device {
                (request.source, request.destination) = (host, device);
                request.destination_memory = MemoryKind::DEVICE;
                request.destination_device = self.state;
            } else {
                (request.source, request.destination) = (device, host);
                request.source_memory = MemoryKind::DEVICE;
                request.source_device = self.state;
            }
            assert_eq!(self.table.can_copy.unwrap()(self.state, &request), 1);
            self.table.copy.unwrap()(self.state, &request, self.stream, ptr::null_mut())
        }
    }

    /// Waits for the stream.
    pub fn synchronize(&self) -> Code {
        // SAFETY: an entry of the table with its device and stream.
        unsafe { self.table.synchronize_stream.unwrap()(self.state, self.stream, ptr::null_mut()) }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: closed once, the stream first.
        unsafe {
            self.table.destroy_stream.unwrap()(self.state, self.stream);
            self.table.destroy.unwrap()(self.state);
        }
    }
}

/// An input of a node.
pub struct Input {
    dtype: DType,
    dims: Vec<i64>,
    bytes: Vec<u8>,
    on_host: bool,
}

fn bytes_of<T: Element>(data: &[T]) -> Vec<u8> {
    // SAFETY: elements without padding.
    unsafe { std::slice::from_raw_parts(data.as_ptr().cast::<u8>(), size_of_val(data)) }.to_vec()
}

/// An input on the device.
pub fn tensor<T: Element>(dims: &[i64], data: &[T]) -> Input {
    Input { dtype: T::DTYPE, dims: dims.to_vec(), bytes: bytes_of(data), on_host: false }
}

/// An input in host memory.
pub fn on_host(data: &[i32]) -> Input {
    let dims = vec![data.len() as i64];
    Input { dtype: DType::INT32, dims, bytes: bytes_of(data), on_host: true }
}

/// A scalar in host memory.
pub fn scalar_on_host(value: i32) -> Input {
    Input { dims: Vec::new(), ..on_host(&[value]) }
}

/// A node that is run on a device of its own.
pub struct Node {
    pub op: &'static str,
    pub attrs: Vec<(&'static str, Attr)>,
}

impl Node {
    /// Copies the inputs in, computes, copies the output out.
    pub fn run<T: Element>(
        &self,
        inputs: &[Input],
        dims: &[i64],
    ) -> Result<Vec<T>, (Code, String)> {
        let device = Opened::new(0, &[]);
        let outcome = self.enqueue::<T>(&device, inputs, dims);
        let settled = device.synchronize();
        let said = |code| (code, last_message());
        let output = outcome.map_err(said)?;
        if settled.is_ok() { Ok(output()) } else { Err(said(settled)) }
    }

    fn enqueue<T: Element>(
        &self,
        device: &Opened,
        inputs: &[Input],
        dims: &[i64],
    ) -> Result<impl FnOnce() -> Vec<T> + use<T>, Code> {
        let slots: Vec<Slot> = inputs.iter().map(|input| place(device, input)).collect();
        let count = dims.iter().product::<i64>() as usize;
        let bytes = (count * size_of::<T>()) as u64;
        let result = device.allocate(bytes)?;
        let output = Slot { data: result, ..slot::<T>(dims, count) };
        let code = self.compute(device, &slots, output);
        if !code.is_ok() {
            return Err(code);
        }
        let mut values = vec![T::default(); count];
        device.copy(values.as_mut_ptr().cast(), result, bytes, false);
        Ok(move || values)
    }

    fn compute(&self, device: &Opened, inputs: &[Slot], mut output: Slot) -> Code {
        let table = {
            let registered = REGISTERED.lock().unwrap();
            let kernels = &registered.as_ref().unwrap().kernels;
            let fits =
                |kernel: &&Kernel| kernel.op == self.op && kernel.types.contains(&inputs[0].dtype);
            kernels.iter().find(fits).expect("a kernel for the op and the type").table
        };
        let attrs: AttrMap = self.attrs.iter().cloned().collect();
        let pointers: Vec<*const Slot> = inputs.iter().map(ptr::from_ref).collect();
        // SAFETY: structs of pointers and numbers, of which all zero is a value; what the kernels of this
        // plugin use is filled, and lives until the call returns.
        unsafe {
            let mut create: Create = zeroed();
            create.attrs = ptr::from_ref(&attrs).cast();
            let mut state = ptr::null_mut();
            if let Some(entry) = table.create {
                let code = entry(&create, &mut state);
                if !code.is_ok() {
                    return code;
                }
            }
            let mut services: CallServices = zeroed();
            services.fail = Some(fail);
            let mut call: Call = zeroed();
            (call.input_count, call.output_count) = (inputs.len() as u32, 1);
            (call.inputs, call.outputs) = (pointers.as_ptr(), &mut output);
            call.services = &services;
            (call.device_state, call.stream) = (device.state, device.stream);
            let code = table.compute.unwrap()(state, &call);
            if let Some(destroy) = table.destroy {
                destroy(state);
            }
            code
        }
    }
}

fn slot<T: Element>(dims: &[i64], count: usize) -> Slot {
    Slot {
        dims: dims.to_vec().leak().as_ptr(),
        elements: count as u64,
        bytes: (count * size_of::<T>()) as u64,
        dtype: T::DTYPE,
        rank: dims.len() as u32,
        memory: MemoryKind::DEVICE,
        flags: slot_flags::PLANNED,
        ..Slot::EMPTY
    }
}

fn place(device: &Opened, input: &Input) -> Slot {
    let size = input.bytes.len() as u64;
    let bytes = input.bytes.clone().leak();
    let slot = Slot {
        data: bytes.as_mut_ptr().cast(),
        dims: input.dims.clone().leak().as_ptr(),
        elements: input.dims.iter().product::<i64>() as u64,
        bytes: size,
        dtype: input.dtype,
        rank: input.dims.len() as u32,
        ..Slot::EMPTY
    };
    if input.on_host {
        return slot;
    }
    let data = device.allocate(size).unwrap();
    assert_eq!(device.copy(slot.data, data, size, true), Code::OK);
    Slot { data, memory: MemoryKind::DEVICE, ..slot }
}
