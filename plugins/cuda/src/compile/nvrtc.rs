//! NVIDIA's compiler of CUDA C.
//!
//! It needs no GPU: it compiles for any architecture that it knows. For a newer GPU it makes PTX
//! for the newest architecture it knows, which the driver compiles further.

use super::{
    HEADERS, Variant, cache,
    nvrtc_api::{Api, Number, SizeOf, Take},
};
use cudarc::nvrtc::sys::nvrtcProgram;
use std::{
    ffi::{CStr, CString, c_char, c_int},
    ptr,
    sync::OnceLock,
};
use tenon_sdk::{Code, KernelError};

/// Form of the compiler's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Machine code.
    Cubin,
    /// NVIDIA's portable assembly; the driver compiles it.
    Ptx,
}

/// The target that a variant is compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// Compute capability: 90 is 9.0.
    pub capability: u32,
    /// Form of the output.
    pub form: Form,
}

impl Target {
    /// The best target that the compiler has for a GPU.
    ///
    /// # Errors
    /// `UNAVAILABLE` without a compiler; `UNIMPLEMENTED` when it knows only newer architectures.
    pub fn for_device(capability: u32) -> Result<Target, KernelError> {
        let known = architectures()?;
        if known.contains(&capability) {
            return Ok(Target { capability, form: Form::Cubin });
        }
        let below = known.iter().filter(|known| **known < capability).max();
        let capability = *below.ok_or_else(|| {
            KernelError::unimplemented(format!(
                "NVRTC knows architectures from sm_{} on: expected one for compute capability {capability}, install \
                 one of CUDA 12",
                known.iter().min().unwrap_or(&0)
            ))
        })?;
        Ok(Target { capability, form: Form::Ptx })
    }

    fn option(self) -> String {
        let kind = match self.form {
            Form::Cubin => "sm",
            Form::Ptx => "compute",
        };
        format!("--gpu-architecture={kind}_{}", self.capability)
    }
}

/// Options beside the architecture.
const OPTIONS: [&str; 1] = ["--std=c++17"];

fn check(api: &Api, result: Number, call: &str) -> Result<(), KernelError> {
    if result == 0 {
        return Ok(());
    }
    // SAFETY: the library's own text, for any result.
    let text = unsafe { CStr::from_ptr((api.nvrtcGetErrorString)(result)) };
    Err(KernelError::internal(format!("{call}: {}", text.to_string_lossy())))
}

/// Version of the compiler.
///
/// # Errors
/// `UNAVAILABLE` without a compiler.
pub fn version() -> Result<(u32, u32), KernelError> {
    let api = Api::get()?;
    let (mut major, mut minor): (c_int, c_int) = (0, 0);
    // SAFETY: the result pointers are valid for writes.
    check(api, unsafe { (api.nvrtcVersion)(&mut major, &mut minor) }, "nvrtcVersion")?;
    Ok((major.unsigned_abs(), minor.unsigned_abs()))
}

/// Architectures that the compiler knows, as compute capabilities.
fn architectures() -> Result<&'static [u32], KernelError> {
    static KNOWN: OnceLock<Vec<u32>> = OnceLock::new();
    if let Some(known) = KNOWN.get() {
        return Ok(known);
    }
    let api = Api::get()?;
    let mut count: c_int = 0;
    // SAFETY: the result pointer is valid for writes.
    let counted = unsafe { (api.nvrtcGetNumSupportedArchs)(&mut count) };
    check(api, counted, "nvrtcGetNumSupportedArchs")?;
    let mut all = vec![0 as c_int; usize::try_from(count).unwrap_or(0)];
    // SAFETY: room for as many as it said.
    let told = unsafe { (api.nvrtcGetSupportedArchs)(all.as_mut_ptr()) };
    check(api, told, "nvrtcGetSupportedArchs")?;
    Ok(KNOWN.get_or_init(|| all.into_iter().map(c_int::unsigned_abs).collect()))
}

/// Digest of what the result depends on: texts, options, compiler.
///
/// # Errors
/// `UNAVAILABLE` without a compiler.
pub fn fingerprint(variant: &Variant, target: Target) -> Result<String, KernelError> {
    let (major, minor) = version()?;
    let compiler = format!("nvrtc {major}.{minor} {}", target.option());
    let text = variant.text();
    let mut parts: Vec<&[u8]> = vec![compiler.as_bytes(), text.as_bytes()];
    parts.extend(OPTIONS.iter().map(|option| option.as_bytes()));
    for header in HEADERS {
        parts.extend([header.name.as_bytes(), header.text.as_bytes()]);
    }
    Ok(cache::digest(&parts))
}

/// Compiles a variant.
///
/// # Errors
/// `INTERNAL` with the compiler's log.
pub fn compile(variant: &Variant, target: Target) -> Result<Compiled, KernelError> {
    let api = Api::get()?;
    let program = Program::new(api, variant)?;
    let architecture = target.option();
    let options = OPTIONS.iter().copied().chain([architecture.as_str()]);
    let options = options.map(c_string).collect::<Result<Vec<_>, _>>()?;
    let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
    // SAFETY: the program exists, and there are as many options as given.
    let result = unsafe {
        (api.nvrtcCompileProgram)(program.raw, pointers.len() as c_int, pointers.as_ptr())
    };
    if let Err(error) = check(api, result, "nvrtcCompileProgram") {
        let message = format!("cannot compile {variant}: {}\n{}", error.message, program.log());
        return Err(KernelError::new(Code::INTERNAL, message));
    }
    Ok(Compiled { program, form: target.form })
}

/// A compiled variant.
pub struct Compiled {
    program: Program,
    form: Form,
}

impl Compiled {
    /// The code in the form of the target.
    ///
    /// # Errors
    /// The compiler does not return it.
    pub fn code(&self) -> Result<Vec<u8>, KernelError> {
        match self.form {
            Form::Cubin => {
                let api = self.program.api;
                self.program.take(api.nvrtcGetCUBINSize, api.nvrtcGetCUBIN)
            }
            Form::Ptx => self.ptx(),
        }
    }

    /// The assembly, which the compiler also produces on the way to machine code. It ends with a
    /// zero byte.
    ///
    /// # Errors
    /// The compiler does not return it.
    pub fn ptx(&self) -> Result<Vec<u8>, KernelError> {
        let api = self.program.api;
        self.program.take(api.nvrtcGetPTXSize, api.nvrtcGetPTX)
    }
}

fn c_string(text: &str) -> Result<CString, KernelError> {
    CString::new(text).map_err(|_| KernelError::internal("a source with a zero byte"))
}

struct Program {
    api: &'static Api,
    raw: nvrtcProgram,
}

impl Program {
    fn new(api: &'static Api, variant: &Variant) -> Result<Program, KernelError> {
        let (text, name) = (c_string(&variant.text())?, c_string(variant.source.name)?);
        let texts = HEADERS.iter().map(|it| c_string(it.text)).collect::<Result<Vec<_>, _>>()?;
        let names = HEADERS.iter().map(|it| c_string(it.name)).collect::<Result<Vec<_>, _>>()?;
        let pointers =
            |all: &[CString]| all.iter().map(|one| one.as_ptr()).collect::<Vec<*const c_char>>();
        let (texts, names) = (pointers(&texts), pointers(&names));
        let mut program: nvrtcProgram = ptr::null_mut();
        // SAFETY: the texts live during the call, which copies them; the result pointer is valid
        // for writes.
        let result = unsafe {
            (api.nvrtcCreateProgram)(
                &mut program,
                text.as_ptr(),
                name.as_ptr(),
                texts.len() as c_int,
                texts.as_ptr(),
                names.as_ptr(),
            )
        };
        check(api, result, "nvrtcCreateProgram")?;
        Ok(Program { api, raw: program })
    }

    fn take(&self, size: SizeOf, take: Take) -> Result<Vec<u8>, KernelError> {
        let mut bytes = 0;
        // SAFETY: the program exists; the result pointer is valid for writes.
        check(self.api, unsafe { size(self.raw, &mut bytes) }, "nvrtcGet...Size")?;
        let mut result = vec![0u8; bytes];
        // SAFETY: room for as much as it said.
        let taken = unsafe { take(self.raw, result.as_mut_ptr().cast()) };
        check(self.api, taken, "nvrtcGet...")?;
        Ok(result)
    }

    fn log(&self) -> String {
        let log = self.take(self.api.nvrtcGetProgramLogSize, self.api.nvrtcGetProgramLog);
        let log = log.unwrap_or_default();
        String::from_utf8_lossy(&log).trim_end_matches('\0').to_owned()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: a program of this object.
        let _ = unsafe { (self.api.nvrtcDestroyProgram)(&mut self.raw) };
    }
}
