//! Which of NVIDIA's libraries are installed.
//!
//! cudarc opens a library when its first function is called, and panics where it is missing, so
//! every use begins with [`require`]. Libraries of CUDA 12 and of 13 both work. The folders of the
//! knob `library_path` come first: a library found there is opened by its path ([`preferred`]).
//! cudarc asks the dynamic loader by name, `libcuda.so` first. The loader returns an already open
//! library (it compares sonames, which are numbered in NVIDIA's libraries) only where the system
//! has no file of that name; where it returns another one, a warning says so. NVRTC, of which the
//! system often has another copy, is called through its own function table
//! (`compile/nvrtc_api.rs`), which always uses the named file.
//!
//! cuBLAS and NCCL are absent because the plugin does not call them: products use cuBLASLt.

use cudarc::{cublaslt, cudnn, driver, nvrtc};
use std::{
    error::Error,
    path::{Path, PathBuf},
    sync::OnceLock,
};
use tenon_sdk::{Code, KernelError, abi::LogLevel, author::log};

/// A library that the plugin may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    /// The driver, which is installed with the GPU.
    Driver,
    /// The compiler of CUDA C.
    Nvrtc,
    /// Products of matrices.
    CublasLt,
    /// Convolutions, pools and normalisation.
    Cudnn,
}

impl Library {
    /// All libraries, in the order in which they are opened.
    pub const ALL: [Library; 4] =
        [Library::Driver, Library::Nvrtc, Library::CublasLt, Library::Cudnn];

    /// The name in its file name, without `lib` and `.so`.
    pub fn name(self) -> &'static str {
        match self {
            Library::Driver => "cuda",
            Library::Nvrtc => "nvrtc",
            Library::CublasLt => "cublasLt",
            Library::Cudnn => "cudnn",
        }
    }

    /// Where the library comes from, for messages.
    fn origin(self) -> &'static str {
        match self {
            Library::Driver => "it comes with NVIDIA's driver",
            Library::Nvrtc => {
                "it comes with the CUDA toolkit and with the Python package nvidia-cuda-nvrtc"
            }
            Library::CublasLt => {
                "it comes with the CUDA toolkit and with the Python package nvidia-cublas"
            }
            Library::Cudnn => "it comes with cuDNN and with the Python package nvidia-cudnn-cu13",
        }
    }

    fn found(self) -> &'static OnceLock<bool> {
        static FOUND: [OnceLock<bool>; 4] = [const { OnceLock::new() }; 4];
        &FOUND[self as usize]
    }

    /// Whether it is installed; looked up once per process.
    pub fn is_present(self) -> bool {
        *self.found().get_or_init(|| {
            let preferred = preferred(self);
            // SAFETY: libraries of NVIDIA, or what the user put in their place, whose initialisers
            // run here.
            let is_present = unsafe {
                match self {
                    Library::Driver => driver::sys::is_culib_present(),
                    Library::Nvrtc => preferred.is_some() || nvrtc::sys::is_culib_present(),
                    Library::CublasLt => cublaslt::sys::is_culib_present(),
                    Library::Cudnn => cudnn::sys::is_culib_present(),
                }
            };
            if let Some(file) = preferred.filter(|_| is_present)
                && !self.is_taken(file)
            {
                self.warn(file);
            }
            is_present
        })
    }

    /// Whether cudarc uses the library in this file, which must be present.
    fn is_taken(self, file: &Path) -> bool {
        // SAFETY: the library is loaded.
        let (taken, symbol) = unsafe {
            match self {
                Library::Driver => (driver::sys::culib(), c"cuInit"),
                Library::CublasLt => (cublaslt::sys::culib(), c"cublasLtCreate"),
                // These have their own function tables.
                Library::Nvrtc | Library::Cudnn => return true,
            }
        };
        let address = |library: &libloading::Library| {
            // SAFETY: the symbol is looked up, and not used.
            let symbol = unsafe { library.get::<*const ()>(symbol.to_bytes_with_nul()) };
            symbol.ok().map(|symbol| *symbol)
        };
        // The file is open already: opening it only increments its count.
        open(file).is_ok_and(|own| address(&own) == address(taken))
    }

    fn warn(self, file: &Path) {
        let (name, file) = (self.name(), file.display());
        let what = format!(
            "CUDA: a lib{name}.so of the system is used, not {file}: the loader finds the system's by its plain name; \
             to use the other one, start with LD_LIBRARY_PATH set to a folder with a lib{name}.so"
        );
        log(LogLevel::WARN, &what);
    }
}

/// Checks that a library is installed: calling its functions afterwards does not panic.
///
/// # Errors
/// `UNAVAILABLE`, with where the library comes from, and why the file in a folder of the knob was
/// refused.
pub fn require(library: Library) -> Result<(), KernelError> {
    if library.is_present() {
        return Ok(());
    }
    let (name, origin) = (library.name(), library.origin());
    let what = match &open_preferred()[library as usize].refused {
        Some(refused) => format!("lib{name}.so cannot be opened ({refused})"),
        None => format!("there is no lib{name}.so"),
    };
    let elsewhere = "name its folder by the knob library_path if it lies elsewhere";
    Err(KernelError::new(Code::UNAVAILABLE, format!("{what}: {origin}; {elsewhere}")))
}

static FOLDERS: OnceLock<String> = OnceLock::new();

/// Sets the folders to look in first, in place of the knob, for programs without a host. Returns
/// whether it took effect, which it does only before the first lookup of a library.
pub fn look_in(folders: &str) -> bool {
    FOLDERS.set(folders.to_owned()).is_ok()
}

/// Like [`look_in`], unless folders are set already.
///
/// # Errors
/// The error of `folders`.
pub fn look_in_unless_told(
    folders: impl FnOnce() -> Result<String, KernelError>,
) -> Result<(), KernelError> {
    if FOLDERS.get().is_none() {
        look_in(&folders()?);
    }
    Ok(())
}

/// The file of a library that was opened in a folder of the knob. A lookup of functions by name
/// asks here first: for the plain name the dynamic loader may return another library, the system's.
pub fn preferred(library: Library) -> Option<&'static Path> {
    open_preferred()[library as usize].file.as_deref()
}

/// Result of opening a library's files in the folders of the knob.
#[derive(Debug, Default)]
struct Opened {
    /// The one that was opened.
    file: Option<PathBuf>,
    /// Why the first file was refused, if none was opened.
    refused: Option<String>,
}

/// Opens the libraries in the folders of the knob, once, and keeps them open.
fn open_preferred() -> &'static [Opened; 4] {
    static OPENED: OnceLock<[Opened; 4]> = OnceLock::new();
    OPENED.get_or_init(|| {
        let folders = FOLDERS.get_or_init(String::new);
        Library::ALL.map(|library| open_in(folders, library))
    })
}

fn open_in(folders: &str, library: Library) -> Opened {
    let mut refused = None;
    for folder in folders.split(':').filter(|folder| !folder.is_empty()).map(Path::new) {
        let Some(file) = file_in(folder, library) else { continue };
        if library == Library::Nvrtc {
            open_builtins(folder);
        }
        match open(&file) {
            Ok(opened) => {
                // It stays open for the life of the process, since cudarc and the tables keep
                // pointers to its functions.
                std::mem::forget(opened);
                return Opened { file: Some(file), refused: None };
            }
            Err(words) => {
                refused.get_or_insert(words);
            }
        }
    }
    Opened { file: None, refused }
}

/// NVRTC asks the loader for a second library when it compiles, which is beside it; NVRTC 13.0 does
/// not tell the loader where. The loader returns the open library of that name.
fn open_builtins(folder: &Path) {
    for file in files_in(folder, |name| name.starts_with("libnvrtc-builtins.so")) {
        // Without it, NVRTC itself reports what is missing.
        if let Ok(opened) = open(&file) {
            std::mem::forget(opened);
        }
    }
}

/// Opens a library; the error is the loader's message.
///
/// # Errors
/// The file is not a library, or lacks a dependency.
pub fn open(file: &Path) -> Result<libloading::Library, String> {
    // SAFETY: as in `is_present`; the user named the folder.
    let opened = unsafe { libloading::Library::new(file) };
    // The loader's message is the source of the error.
    opened.map_err(|error| error.source().map_or_else(|| error.to_string(), ToString::to_string))
}

/// Files of a folder with matching names, in the order of their names.
fn files_in(folder: &Path, is_one: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_str().is_some_and(&is_one))
        .map(|entry| entry.path())
        .collect();
    files.sort();
    files
}

/// The file of a library in a folder: `libX.so`, or the last of `libX.so.*`.
fn file_in(folder: &Path, library: Library) -> Option<PathBuf> {
    let plain = format!("lib{}.so", library.name());
    let numbered = format!("{plain}.");
    let mut files = files_in(folder, |name| name == plain || name.starts_with(&numbered));
    match files.first() {
        Some(first) if first.ends_with(&plain) => files.into_iter().next(),
        _ => files.pop(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plain_name_comes_before_the_numbered_ones_and_others_are_not_taken() {
        let folder = std::env::temp_dir().join(format!("tenon-cuda-libs-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let touch = |name: &str| std::fs::write(folder.join(name), b"").unwrap();
        assert_eq!(file_in(&folder, Library::Nvrtc), None);
        touch("libnvrtc-builtins.so.12.9");
        assert_eq!(file_in(&folder, Library::Nvrtc), None);
        touch("libnvrtc.so.12");
        touch("libnvrtc.so.13");
        assert_eq!(file_in(&folder, Library::Nvrtc), Some(folder.join("libnvrtc.so.13")));
        touch("libnvrtc.so");
        assert_eq!(file_in(&folder, Library::Nvrtc), Some(folder.join("libnvrtc.so")));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
