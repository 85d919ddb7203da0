//! The functions of cuDNN that this crate calls.

use crate::libraries::{self, Library};
use cudarc::cudnn::sys::{
    cudnnActivationDescriptor_t as Activation, cudnnActivationMode_t as ActivationMode,
    cudnnConvolutionDescriptor_t as Convolution, cudnnConvolutionMode_t as ConvolutionMode,
    cudnnDataType_t as DataType, cudnnFilterDescriptor_t as Filter, cudnnHandle_t as Handle,
    cudnnNanPropagation_t as NanPropagation, cudnnPoolingDescriptor_t as Pooling,
    cudnnPoolingMode_t as PoolingMode, cudnnTensorDescriptor_t as Tensor,
    cudnnTensorFormat_t as Format,
};
use std::{
    ffi::{CStr, OsStr, c_char, c_int, c_void},
    path::Path,
    sync::OnceLock,
};
use tenon_sdk::{Code, KernelError};

/// `cudnnStatus_t`, `cudnnConvolutionFwdAlgo_t` and `cudnnMathType_t` as numbers, since a library
/// may have values that this crate does not know.
pub(super) type Number = c_int;

/// `cudnnConvolutionFwdAlgoPerf_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Performance {
    pub algorithm: Number,
    pub status: Number,
    pub time: f32,
    pub memory: usize,
    pub determinism: Number,
    pub math: Number,
    pub reserved: [c_int; 3],
}

macro_rules! functions {
    ($($name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions of cuDNN that this crate calls.
        #[allow(non_snake_case, reason = "the library's names")]
        pub(super) struct Api {
            $(pub $name: unsafe extern "C" fn($($argument),*) -> functions!(@result $($result)?),)*
            // Declared last: the functions are part of it.
            _library: libloading::Library,
        }

        /// The functions as lines for `examples/libraries.rs`: the name, and the classes of the
        /// result and of each argument.
        pub(super) fn signatures() -> Vec<(&'static str, String)> {
            vec![$((
                stringify!($name),
                [class_of::<functions!(@result $($result)?)>(), $(class_of::<$argument>()),*].join(","),
            )),*]
        }

        impl Api {
            fn load(library: libloading::Library) -> Result<Api, String> {
                Ok(Api {
                    // SAFETY: cuDNN's functions of these names have these types.
                    $($name: unsafe { *symbol(&library, stringify!($name))? },)*
                    _library: library,
                })
            }
        }
    };
    (@result) => { Number };
    (@result $result:ty) => { $result };
}

/// How a value is passed: `p` for an address, `i` and `f` for numbers, with their bytes.
fn class_of<T>() -> String {
    let name = std::any::type_name::<T>();
    match name {
        _ if name.starts_with('*') => "p".to_owned(),
        "f32" | "f64" => format!("f{}", size_of::<T>()),
        _ => format!("i{}", size_of::<T>()),
    }
}

functions! {
    cudnnGetVersion() -> usize;
    cudnnCreate(*mut Handle);
    cudnnDestroy(Handle);
    cudnnSetStream(Handle, *mut c_void);
    cudnnGetErrorString(Number) -> *const c_char;
    cudnnCreateTensorDescriptor(*mut Tensor);
    cudnnSetTensor4dDescriptor(Tensor, Format, DataType, c_int, c_int, c_int, c_int);
    cudnnDestroyTensorDescriptor(Tensor);
    cudnnCreateFilterDescriptor(*mut Filter);
    cudnnSetFilter4dDescriptor(Filter, DataType, Format, c_int, c_int, c_int, c_int);
    cudnnDestroyFilterDescriptor(Filter);
    cudnnCreateConvolutionDescriptor(*mut Convolution);
    cudnnSetConvolution2dDescriptor(Convolution, c_int, c_int, c_int, c_int, c_int, c_int, ConvolutionMode, DataType);
    cudnnSetConvolutionGroupCount(Convolution, c_int);
    cudnnSetConvolutionMathType(Convolution, Number);
    cudnnDestroyConvolutionDescriptor(Convolution);
    cudnnCreateActivationDescriptor(*mut Activation);
    cudnnSetActivationDescriptor(Activation, ActivationMode, NanPropagation, f64);
    cudnnDestroyActivationDescriptor(Activation);
    cudnnCreatePoolingDescriptor(*mut Pooling);
    cudnnSetPooling2dDescriptor(Pooling, PoolingMode, NanPropagation, c_int, c_int, c_int, c_int, c_int, c_int);
    cudnnDestroyPoolingDescriptor(Pooling);
    cudnnPoolingForward(Handle, Pooling, *const c_void, Tensor, *const c_void, *const c_void, Tensor, *mut c_void);
    cudnnBatchNormalizationForwardInference(
        Handle, Number, *const c_void, *const c_void, Tensor, *const c_void, Tensor, *mut c_void, Tensor,
        *const c_void, *const c_void, *const c_void, *const c_void, f64
    );
    cudnnGetConvolutionForwardAlgorithm_v7(
        Handle, Tensor, Filter, Convolution, Tensor, c_int, *mut c_int, *mut Performance
    );
    cudnnGetConvolutionForwardWorkspaceSize(Handle, Tensor, Filter, Convolution, Tensor, Number, *mut usize);
    cudnnConvolutionForward(
        Handle, *const c_void, Tensor, *const c_void, Filter, *const c_void, Convolution, Number, *mut c_void, usize,
        *const c_void, Tensor, *mut c_void
    );
    cudnnConvolutionBiasActivationForward(
        Handle, *const c_void, Tensor, *const c_void, Filter, *const c_void, Convolution, Number, *mut c_void, usize,
        *const c_void, Tensor, *const c_void, Tensor, *const c_void, Activation, Tensor, *mut c_void
    );
}

/// # Safety
/// - The function of this name, if there is one, is an `F`.
unsafe fn symbol<'a, F>(
    library: &'a libloading::Library,
    name: &str,
) -> Result<libloading::Symbol<'a, F>, String> {
    // SAFETY: the caller guarantees that the function of this name, if there is one, is an `F`.
    unsafe { library.get(name.as_bytes()) }.map_err(|_| format!("libcudnn.so has no {name}"))
}

/// Names of the library where [`crate::libraries`] has not opened it by its path.
const NAMES: [&str; 3] = ["libcudnn.so", "libcudnn.so.9", "libcudnn.so.8"];

impl Api {
    /// The functions, looked up once per process.
    ///
    /// # Errors
    /// `UNAVAILABLE`, naming what is missing.
    pub fn get() -> Result<&'static Api, KernelError> {
        static API: OnceLock<Result<Api, String>> = OnceLock::new();
        let api = API.get_or_init(|| {
            let preferred = libraries::preferred(Library::Cudnn).map(Path::as_os_str);
            let names = preferred.into_iter().chain(NAMES.map(OsStr::new));
            // SAFETY: a library of NVIDIA, or what the user put in its place, whose initialisers
            // run here.
            let mut opened =
                names.filter_map(|name| unsafe { libloading::Library::new(name) }.ok());
            let library = opened.next().ok_or_else(|| "there is no libcudnn.so".to_owned())?;
            Api::load(library)
        });
        api.as_ref().map_err(|missing| KernelError::new(Code::UNAVAILABLE, missing.clone()))
    }

    /// Turns a result into success or an error.
    ///
    /// # Errors
    /// With the name of the call: `UNIMPLEMENTED` for what cuDNN does not support, `UNAVAILABLE`
    /// where it does not work at all, `RESOURCE_EXHAUSTED` when out of memory, else `INTERNAL`.
    pub fn check(&self, result: Number, call: &str) -> Result<(), KernelError> {
        if result == 0 {
            return Ok(());
        }
        // SAFETY: the library's own text, for any result.
        let text = unsafe {
            let text = (self.cudnnGetErrorString)(result);
            if text.is_null() {
                c"no text".to_string_lossy()
            } else {
                CStr::from_ptr(text).to_string_lossy()
            }
        };
        Err(KernelError::new(code_of(result), format!("{call}: {text} ({result})")))
    }
}

/// The code of a result.
///
/// cuDNN 8 returns 9 for what it does not support, 2 when out of memory, and 1, 6 and 11 where
/// library, GPU and driver are incompatible; cuDNN 9 returns 3000 and more, 4003 (host memory) and
/// 4004 (device memory), and 1001 and more.
fn code_of(result: Number) -> Code {
    match result {
        9 | 3000..4000 => Code::UNIMPLEMENTED,
        1 | 6 | 11 | 1001..2000 => Code::UNAVAILABLE,
        2 | 4003 | 4004 => Code::RESOURCE_EXHAUSTED,
        _ => Code::INTERNAL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_without_memory_is_not_an_internal_error() {
        assert_eq!(code_of(4004), Code::RESOURCE_EXHAUSTED);
        assert_eq!(code_of(3007), Code::UNIMPLEMENTED);
        assert_eq!(code_of(1008), Code::UNAVAILABLE);
        assert_eq!(code_of(5000), Code::INTERNAL);
    }

    #[test]
    fn signatures_say_how_values_are_passed() {
        let all = signatures();
        let of = |name| all.iter().find(|(found, _)| *found == name).map(|(_, text)| text.as_str());
        assert_eq!(of("cudnnSetStream"), Some("i4,p,p"));
        assert_eq!(of("cudnnSetActivationDescriptor"), Some("i4,p,i4,i4,f8"));
        assert_eq!(of("cudnnGetVersion"), Some("i8"));
    }
}
