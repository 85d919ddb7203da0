//! The functions of NVRTC that are used.
//!
//! The functions are looked up in the library that the knob `library_path` names, else in the one
//! that cudarc finds. cudarc's own bindings would always use the latter: for the plain name the
//! loader returns the system's library, whichever was opened before.

use crate::libraries::{self, Library};
use cudarc::nvrtc::sys::{self, nvrtcProgram};
use std::{
    ffi::{c_char, c_int},
    sync::OnceLock,
};
use tenon_sdk::{Code, KernelError};

/// `nvrtcResult` as a number, since a library may have results that this crate does not know.
pub(super) type Number = c_int;

/// Function that returns the size of a program's output.
pub(super) type SizeOf = unsafe extern "C" fn(nvrtcProgram, *mut usize) -> Number;
pub(super) type Take = unsafe extern "C" fn(nvrtcProgram, *mut c_char) -> Number;

macro_rules! functions {
    ($($name:ident: $type:ty;)*) => {
        /// The functions of NVRTC that this crate calls.
        #[allow(non_snake_case, reason = "the library's names")]
        pub(super) struct Api {
            $(pub $name: $type,)*
        }

        impl Api {
            fn load(library: &libloading::Library) -> Result<Api, String> {
                Ok(Api {
                    // SAFETY: NVRTC's functions of these names have these types since CUDA 11.2
                    // (nvrtc.h).
                    $($name: unsafe { symbol::<$type>(library, stringify!($name))? },)*
                })
            }
        }
    };
}

functions! {
    nvrtcGetErrorString: unsafe extern "C" fn(Number) -> *const c_char;
    nvrtcVersion: unsafe extern "C" fn(*mut c_int, *mut c_int) -> Number;
    nvrtcGetNumSupportedArchs: unsafe extern "C" fn(*mut c_int) -> Number;
    nvrtcGetSupportedArchs: unsafe extern "C" fn(*mut c_int) -> Number;
    nvrtcCreateProgram: unsafe extern "C" fn(
        *mut nvrtcProgram, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char
    ) -> Number;
    nvrtcDestroyProgram: unsafe extern "C" fn(*mut nvrtcProgram) -> Number;
    nvrtcCompileProgram: unsafe extern "C" fn(nvrtcProgram, c_int, *const *const c_char) -> Number;
    nvrtcGetPTXSize: SizeOf;
    nvrtcGetPTX: Take;
    nvrtcGetCUBINSize: SizeOf;
    nvrtcGetCUBIN: Take;
    nvrtcGetProgramLogSize: SizeOf;
    nvrtcGetProgramLog: Take;
}

/// # Safety
/// - The function of this name, if there is one, is an `F`.
unsafe fn symbol<F: Copy>(library: &libloading::Library, name: &str) -> Result<F, String> {
    // SAFETY: the caller guarantees that the function of this name, if there is one, is an `F`; the
    // library stays open.
    let found = unsafe { library.get::<F>(name.as_bytes()) };
    found
        .map(|found| *found)
        .map_err(|_| format!("libnvrtc.so has no {name}: expected one of CUDA 12 or later"))
}

impl Api {
    /// The functions, looked up once per process.
    ///
    /// # Errors
    /// `UNAVAILABLE` without the library, or naming the function that it lacks.
    pub fn get() -> Result<&'static Api, KernelError> {
        static API: OnceLock<Result<Api, String>> = OnceLock::new();
        libraries::require(Library::Nvrtc)?;
        let api = API.get_or_init(|| match libraries::preferred(Library::Nvrtc) {
            // The library has been opened before, and stays open.
            Some(file) => Api::load(&libraries::open(file)?),
            // SAFETY: the library is loaded.
            None => Api::load(unsafe { sys::culib() }),
        });
        api.as_ref().map_err(|missing| KernelError::new(Code::UNAVAILABLE, missing.clone()))
    }
}
