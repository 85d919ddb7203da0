//! CUDA C on a GPU: compiled by NVRTC, loaded into the device's context, found by name.
//!
//! The source is compiled when a kernel of a context is called first, and stays loaded as long as one of its kernels is
//! there. The host keeps a device open longer than its kernels, so that the context is there when they go.

use cudarc::{
    driver::{
        self,
        result::{DriverError, ctx, device, module},
        sys::{CUcontext, CUdevice_attribute, CUfunction, CUmodule, cuCtxGetDevice},
    },
    nvrtc::{self, result::NvrtcError, sys::nvrtcProgram},
};
use std::{
    collections::BTreeMap,
    ffi::{CStr, c_char},
    sync::{Arc, Mutex, PoisonError, Weak},
};
use tenon_sdk::{Code, KernelError};

/// An entry point of a loaded source.
pub struct Entry {
    module: Arc<Module>,
    function: CUfunction,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Entry {}
// SAFETY: as above.
unsafe impl Sync for Entry {}

impl Entry {
    /// The entry point of this name, in the context of a device that is open.
    ///
    /// # Errors
    /// `UNAVAILABLE` where a library is missing; `INTERNAL` with the compiler's log; what the driver says.
    pub fn find(context: CUcontext, source: &CStr, name: &CStr) -> Result<Entry, KernelError> {
        let module = Module::of(context, source)?;
        // SAFETY: a module that is loaded.
        let function = unsafe { module::get_function(module.raw, name.to_owned()) }
            .map_err(|error| driver_error("cuModuleGetFunction", error))?;
        Ok(Entry { module, function })
    }

    /// Makes the context that of this thread: launches come from whichever thread the host calls on.
    ///
    /// # Errors
    /// What the driver says.
    pub fn enter(&self) -> Result<(), KernelError> {
        enter(self.module.context)
    }

    /// The driver's name of it.
    pub fn function(&self) -> CUfunction {
        self.function
    }
}

fn enter(context: CUcontext) -> Result<(), KernelError> {
    // SAFETY: the context of a device that is open.
    unsafe { ctx::set_current(context) }.map_err(|error| driver_error("cuCtxSetCurrent", error))
}

struct Module {
    context: CUcontext,
    raw: CUmodule,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

/// What is loaded, by the address of its context. A context that was closed may come back under its address, without
/// its modules: so nothing is kept beyond the kernels.
static LOADED: Mutex<BTreeMap<usize, Weak<Module>>> = Mutex::new(BTreeMap::new());

impl Module {
    /// The one of a context. Who comes second waits for the compiler.
    fn of(context: CUcontext, source: &CStr) -> Result<Arc<Module>, KernelError> {
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(module) = loaded.get(&context.addr()).and_then(Weak::upgrade) {
            return Ok(module);
        }
        require_libraries()?;
        enter(context)?;
        let capability =
            capability().map_err(|error| driver_error("cuDeviceGetAttribute", error))?;
        let image = compile(source, capability)?;
        // SAFETY: what the compiler made.
        let raw = unsafe { module::load_data(image.as_ptr().cast()) }
            .map_err(|error| driver_error("cuModuleLoadData", error))?;
        let module = Arc::new(Module { context, raw });
        loaded.insert(context.addr(), Arc::downgrade(&module));
        Ok(module)
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if enter(self.context).is_ok() {
            // SAFETY: a module of this context, of which nothing runs: steps are over before their kernels go.
            let _ = unsafe { module::unload(self.raw) };
        }
    }
}

/// cudarc opens a library when its first function is called, and panics where there is none: so look first. Folders
/// that the device's plugin was told to look in count too, for it has opened what lies there.
fn require_libraries() -> Result<(), KernelError> {
    // SAFETY: NVIDIA's libraries, whose initialisers run here.
    let (driver, compiler) =
        unsafe { (driver::sys::is_culib_present(), nvrtc::sys::is_culib_present()) };
    for (is_present, name) in [(driver, "libcuda.so"), (compiler, "libnvrtc.so")] {
        if !is_present {
            let message = format!("there is no {name}, which this kernel needs: install it");
            return Err(KernelError::new(Code::UNAVAILABLE, message));
        }
    }
    Ok(())
}

/// Compute capability of the current context's device: 90 is 9.0.
fn capability() -> Result<i32, DriverError> {
    use CUdevice_attribute::{
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR as MAJOR,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR as MINOR,
    };
    let mut device = 0;
    // SAFETY: a place for the result, and a device that is open.
    unsafe {
        cuCtxGetDevice(&mut device).result()?;
        Ok(10 * device::get_attribute(device, MAJOR)? + device::get_attribute(device, MINOR)?)
    }
}

struct Program(nvrtcProgram);

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: a program of this object.
        let _ = unsafe { nvrtc::result::destroy_program(self.0) };
    }
}

/// Machine code of a source. NVRTC must know the GPU: one that is older than it refuses here, with its log.
fn compile(source: &CStr, capability: i32) -> Result<Vec<c_char>, KernelError> {
    let failed = |error: NvrtcError, log: &str| {
        KernelError::internal(format!("cannot compile for sm_{capability}: {error}\n{log}"))
    };
    let program = nvrtc::result::create_program(source, Some(c"scale_shift.cu"))
        .map_err(|error| failed(error, ""))?;
    let program = Program(program);
    // SAFETY: a program that is there; room for what it says.
    unsafe {
        let options = [format!("--gpu-architecture=sm_{capability}")];
        if let Err(error) = nvrtc::result::compile_program(program.0, &options) {
            let log = nvrtc::result::get_program_log(program.0).unwrap_or_default();
            let log: Vec<u8> = log.into_iter().map(|byte| byte as u8).collect();
            return Err(failed(error, String::from_utf8_lossy(&log).trim_end_matches('\0')));
        }
        let mut bytes = 0;
        let size = nvrtc::sys::nvrtcGetCUBINSize(program.0, &mut bytes);
        size.result().map_err(|error| failed(error, ""))?;
        let mut image = vec![0; bytes];
        let taken = nvrtc::sys::nvrtcGetCUBIN(program.0, image.as_mut_ptr());
        taken.result().map_err(|error| failed(error, ""))?;
        Ok(image)
    }
}

/// The error of a call, in the driver's words. Whether the device is lost is for the plugin of the device to say.
pub fn driver_error(call: &str, error: DriverError) -> KernelError {
    let words = error.error_string().map(CStr::to_string_lossy).unwrap_or_default();
    let code = match error.0 {
        driver::sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => Code::RESOURCE_EXHAUSTED,
        _ => Code::INTERNAL,
    };
    KernelError::new(code, format!("{call}: {:?}: {words}", error.0))
}
