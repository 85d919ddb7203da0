//! Ranges of NVIDIA's NVTX 3: the program's half of its injection protocol.
//!
//! ```text
//! program                                      tool (the library that NVTX_INJECTION64_PATH names)
//!    │── InitializeInjectionNvtx2(export_table) ──▶│
//!    │◀───────────── export_table(CALLBACKS) ──────│
//!    │◀── module_table(CORE2, &table, &count) ─────│  *table[id] = its function, for each id that it takes
//!    │─────────────── 1 for yes, 0 for no ─────────│
//!    │── *table[RANGE_PUSH](domain, attributes) ──▶│  ... if it is not null
//! ```
//!
//! NVIDIA gives the program's half as a header of C that asks libclang to be used from Rust; it is small, and stands here
//! with the numbers and layouts of that header (version 3). A function that a tool leaves null does nothing. A tool that
//! stops looking may set its functions to null again: they are read at each call.
//!
//! Of the modules this program uses the second part of the core, which has domains. The others, of names for the objects
//! of CUDA, OpenCL and threads, have tables of their right sizes, as a tool may fill all of them.

use crate::{DOMAIN, Handle, NVTX_VARIABLE, Refusal, c_text};
use libloading::Library;
use std::{
    ffi::{CStr, c_char, c_int, c_uint, c_void},
    mem,
    path::Path,
    ptr,
    sync::{
        OnceLock,
        atomic::{AtomicPtr, Ordering},
    },
};

/// What a tool is begun by.
const ENTRY: &str = "InitializeInjectionNvtx2";

/// `NVTX_VERSION`.
const VERSION: u16 = 3;

/// `NVTX_ETID_CALLBACKS`, `NVTX_ETID_VERSIONINFO`.
const TABLE_CALLBACKS: u32 = 1;
const TABLE_VERSION: u32 = 3;

/// `NVTX_CB_MODULE_CORE2`, and its functions that are used.
const CORE2: usize = 5;
const DOMAIN_RANGE_PUSH: usize = 4;
const DOMAIN_RANGE_POP: usize = 5;
const DOMAIN_REGISTER_STRING: usize = 10;
const DOMAIN_CREATE: usize = 12;

/// Functions of each module, the one of number 0 counted, which is none: `NVTX_CBID_CORE_SIZE` and so on, for core,
/// CUDA, OpenCL, CUDA runtime, core 2, synchronisation; there is no module 0.
pub(crate) const SIZES: [usize; 7] = [0, 16, 9, 15, 7, 16, 7];

/// `NVTX_MESSAGE_TYPE_ASCII`, `NVTX_MESSAGE_TYPE_REGISTERED`.
const MESSAGE_TEXT: i32 = 1;
const MESSAGE_REGISTERED: i32 = 3;

/// A function of the tool, of whatever type.
type Slot = AtomicPtr<c_void>;

type ExportTable = unsafe extern "system" fn(u32) -> *const c_void;
pub(crate) type Initialize = unsafe extern "system" fn(ExportTable) -> c_int;
type RegisterString = unsafe extern "system" fn(*mut c_void, *const c_char) -> *mut c_void;
type CreateDomain = unsafe extern "system" fn(*const c_char) -> *mut c_void;
type Push = unsafe extern "system" fn(*mut c_void, *const EventAttributes) -> c_int;
type Pop = unsafe extern "system" fn(*mut c_void) -> c_int;

/// `nvtxEventAttributes_t`. The program fills it.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct EventAttributes {
    version: u16,
    size: u16,
    category: u32,
    color_type: i32,
    color: u32,
    payload_type: i32,
    reserved: i32,
    payload: u64,
    message_type: i32,
    /// Text, or what the tool gave for it, as `message_type` says.
    message: *const c_void,
}

#[cfg(test)]
impl EventAttributes {
    /// What kind of name it has, and the name.
    pub fn message(&self) -> (i32, *const c_void) {
        (self.message_type, self.message)
    }
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<EventAttributes>() == 48);

/// `NvtxExportTableCallbacks`. The program fills it.
#[repr(C)]
struct Callbacks {
    struct_size: usize,
    module_table:
        unsafe extern "system" fn(c_int, *mut *mut *mut *mut c_void, *mut c_uint) -> c_int,
}

static CALLBACKS: Callbacks = Callbacks { struct_size: size_of::<Callbacks>(), module_table };

/// `NvtxExportTableVersionInfo`. The program fills it.
#[repr(C)]
struct VersionInfo {
    struct_size: usize,
    version: u32,
    reserved: u32,
    set_version: unsafe extern "system" fn(u32),
}

static VERSION_INFO: VersionInfo = VersionInfo {
    struct_size: size_of::<VersionInfo>(),
    version: VERSION as u32,
    reserved: 0,
    set_version,
};

/// The functions of a module, and where a tool finds the place of each.
struct Module {
    slots: Box<[Slot]>,
    /// As many as `slots`, and a null behind them.
    table: Box<[*mut *mut c_void]>,
}

impl Module {
    fn new(size: usize) -> Module {
        let slots: Box<[Slot]> = (0..size).map(|_| Slot::default()).collect();
        let place =
            |(id, slot): (usize, &Slot)| if id == 0 { ptr::null_mut() } else { slot.as_ptr() };
        let table = slots.iter().enumerate().map(place).chain([ptr::null_mut()]).collect();
        Module { slots, table }
    }
}

/// All modules. They are of the process: a tool knows this program by one function, which takes nothing but numbers.
struct Modules([Module; SIZES.len()]);

// SAFETY: the pointers lead to the atomics beside them.
unsafe impl Send for Modules {}
// SAFETY: as above; the tables themselves are only read.
unsafe impl Sync for Modules {}

fn modules() -> &'static Modules {
    static MODULES: OnceLock<Modules> = OnceLock::new();
    MODULES.get_or_init(|| Modules(SIZES.map(Module::new)))
}

/// The tool's function of this number, if it has set one.
fn function(id: usize) -> Option<*mut c_void> {
    let function = modules().0[CORE2].slots[id].load(Ordering::Acquire);
    (!function.is_null()).then_some(function)
}

/// `nvtxGetExportTable`: null for a table that is not there.
extern "system" fn export_table(id: u32) -> *const c_void {
    match id {
        TABLE_CALLBACKS => (&raw const CALLBACKS).cast(),
        TABLE_VERSION => (&raw const VERSION_INFO).cast(),
        _ => ptr::null(),
    }
}

/// `GetModuleFunctionTable`: 1, with the table and the number of its functions, or 0 for no such module.
///
/// # Safety
/// The pointers are null or can be written.
unsafe extern "system" fn module_table(
    module: c_int,
    table: *mut *mut *mut *mut c_void,
    size: *mut c_uint,
) -> c_int {
    let known = usize::try_from(module).ok().filter(|module| (1..SIZES.len()).contains(module));
    let Some(module) = known else { return 0 };
    let found = &modules().0[module];
    // SAFETY: the tool gives pointers that are null or can be written. It writes the functions that the table leads to,
    // not the table.
    unsafe {
        if !size.is_null() {
            *size = found.slots.len() as c_uint;
        }
        if !table.is_null() {
            *table = found.table.as_ptr().cast_mut();
        }
    }
    1
}

/// `SetInjectionNvtxVersion`: the tool's version is of no interest.
extern "system" fn set_version(_version: u32) {}

/// A tool that takes ranges.
pub(crate) struct Nvtx {
    domain: Handle,
}

impl Nvtx {
    /// Opens the library that [`NVTX_VARIABLE`] names. Called once in a process: a tool begins once.
    ///
    /// # Errors
    /// The file cannot be opened, it is not a library for NVTX, its function refuses, or the tool takes no ranges.
    pub fn attach(file: &Path) -> Result<Nvtx, Refusal> {
        let (variable, path) = (NVTX_VARIABLE, || file.to_owned());
        // SAFETY: opening runs the library's constructors, which the user who set the variable asks for.
        let opened = unsafe { Library::new(file) };
        let library = opened.map_err(|error| Refusal::open(variable, file, &error))?;
        // SAFETY: a function of this name has this type, by the protocol.
        let entry = unsafe { library.get::<Initialize>(ENTRY) }.map(|entry| *entry);
        let Ok(entry) = entry else {
            return Err(Refusal::NoEntry { variable, file: path(), function: ENTRY });
        };
        // Threads of the tool may run its code from now on, whatever it answers.
        mem::forget(library);
        Self::begin(entry, file)
    }

    /// Has a tool begin by its function.
    pub fn begin(entry: Initialize, file: &Path) -> Result<Nvtx, Refusal> {
        let (variable, path) = (NVTX_VARIABLE, || file.to_owned());
        // SAFETY: the tool's function, with ours as it expects it; nothing that it is given moves or goes.
        if unsafe { entry(export_table) } == 0 {
            return Err(Refusal::Declined { variable, file: path(), function: ENTRY });
        }
        if function(DOMAIN_RANGE_PUSH).is_none() || function(DOMAIN_RANGE_POP).is_none() {
            return Err(Refusal::NoRanges { variable, file: path() });
        }
        let domain = function(DOMAIN_CREATE).map_or(ptr::null_mut(), |create| {
            // SAFETY: a tool's function of this number has this type; it copies the text.
            unsafe {
                let create = mem::transmute::<*mut c_void, CreateDomain>(create);
                create(c_text(DOMAIN).as_ptr())
            }
        });
        Ok(Nvtx { domain: Handle(domain) })
    }

    /// Tells the tool of a name; [`Handle::NONE`] where it takes none beforehand.
    pub fn register(&self, name: &CStr) -> Handle {
        let Some(register) = function(DOMAIN_REGISTER_STRING) else { return Handle::NONE };
        // SAFETY: a tool's function of this number has this type; the domain is the tool's, and it copies the text.
        unsafe {
            let register = mem::transmute::<*mut c_void, RegisterString>(register);
            Handle(register(self.domain.0, name.as_ptr()))
        }
    }

    /// Begins a range on this thread, named by what [`Nvtx::register`] gave, or else by its text.
    pub fn push(&self, known: Handle, name: &str) {
        let Some(push) = function(DOMAIN_RANGE_PUSH) else { return };
        let text = known.is_none().then(|| c_text(name));
        let (message_type, message) = match &text {
            Some(text) => (MESSAGE_TEXT, text.as_ptr().cast()),
            None => (MESSAGE_REGISTERED, known.0.cast_const()),
        };
        let attributes = EventAttributes {
            version: VERSION,
            size: size_of::<EventAttributes>() as u16,
            category: 0,
            color_type: 0,
            color: 0,
            payload_type: 0,
            reserved: 0,
            payload: 0,
            message_type,
            message,
        };
        // SAFETY: a tool's function of this number has this type; domain and registered name are the tool's, and it
        // copies what it keeps of the rest.
        unsafe {
            let push = mem::transmute::<*mut c_void, Push>(push);
            push(self.domain.0, &raw const attributes);
        }
    }

    /// Ends the last range of this thread.
    pub fn pop(&self) {
        let Some(pop) = function(DOMAIN_RANGE_POP) else { return };
        // SAFETY: a tool's function of this number has this type; the domain is the tool's.
        unsafe {
            let pop = mem::transmute::<*mut c_void, Pop>(pop);
            pop(self.domain.0);
        }
    }
}
