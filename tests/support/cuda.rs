//! The CUDA stack that replaces NVIDIA's in tests: `tests/fake_cuda`, built once.

use crate::build::{c_program, deps, locked, output, repository, run};
use crate::session::{library, runtime, runtime_over};
use libloading::Library;
use std::{
    env,
    ffi::{CString, c_char},
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};
use tenon_runtime::Runtime;

/// Tells a process that a test starts where the fake libraries are.
const BUILT: &str = "TENON_TESTS_FAKE_CUDA";

/// The folder with the fake libraries.
///
/// # Panics
/// They cannot be built: a C++ compiler is missing, say.
pub fn folder() -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER
        .get_or_init(|| {
            if let Some(folder) = env::var_os(BUILT) {
                return folder.into();
            }
            let folder = output("fake-cuda");
            let script = repository().join("tests/fake_cuda/build.sh");
            locked("fake-cuda", || run(Command::new("bash").arg(script).arg(&folder)));
            folder
        })
        .clone()
}

/// A compiler in the place of `nvcc`, for code on the fake stack; the variable `FAKE_NVRTC` says where that is.
///
/// # Panics
/// As [`folder`]; it cannot be compiled.
pub fn nvcc() -> (PathBuf, (&'static str, PathBuf)) {
    let source = repository().join("tests/fixtures/cuda/nvcc.c");
    (c_program("fake-nvcc", &[source], &[]), ("FAKE_NVRTC", folder().join("libnvrtc.so")))
}

/// A folder with some of the fake libraries (`cuda`, `nvrtc`, ...): a machine on which the others are not installed.
///
/// # Panics
/// As [`folder`]; the folder cannot be filled.
pub fn machine_with(libraries: &[&str]) -> PathBuf {
    let name = format!("fake-machine-{}", libraries.join("-"));
    let made = output(&name);
    locked(&name, || {
        for library in libraries {
            let file = format!("lib{library}.so");
            let (target, link) = (folder().join(&file), made.join(&file));
            if fs::read_link(&link).is_ok_and(|there| there == target) {
                continue;
            }
            // There is none, or one from before the target folder was moved.
            let _ = fs::remove_file(&link);
            symlink(target, &link).unwrap_or_else(|e| panic!("{}: {e}", link.display()));
        }
    });
    made
}

/// Variables for a process that a test starts: where the fake stack is, so that none is built with whatever compiler
/// the process is told to use; and texts under the names of NVIDIA's libraries, which hide those of the system.
///
/// # Panics
/// As [`folder`]; the texts cannot be written.
pub fn variables() -> Vec<(&'static str, PathBuf)> {
    let hiding = output("no-cuda");
    locked("no-cuda", || {
        for library in ["cuda", "nvrtc", "cublasLt", "cudnn"] {
            for number in ["", ".1", ".8", ".9", ".10", ".11", ".12", ".13"] {
                let file = hiding.join(format!("lib{library}.so{number}"));
                fs::write(&file, "no library\n")
                    .unwrap_or_else(|e| panic!("{}: {e}", file.display()));
            }
        }
    });
    vec![(BUILT, folder()), ("LD_LIBRARY_PATH", hiding)]
}

/// A runtime over the plugins for CPU and CUDA, on a machine with the libraries in this folder alone. On the whole fake
/// stack there are two devices, as in every other test of the process.
///
/// # Panics
/// As [`runtime`].
pub fn runtime_on(machine: &Path, kernel_cache: &Path, knobs: &[(&str, &str)]) -> Runtime {
    if machine == folder() {
        fake();
    }
    let (path, cache) = (machine.display().to_string(), kernel_cache.display().to_string());
    let mut all = vec![("cuda.library_path", path.as_str()), ("cuda.kernel_cache", cache.as_str())];
    all.extend_from_slice(knobs);
    runtime(&["tenon_cpu", "tenon_cuda"], &all)
}

/// A runtime over the plugins for CPU and CUDA, with knobs set, on the fake stack. What the fake compiles is kept
/// beside it, for every test.
///
/// # Panics
/// As [`folder`] and [`runtime`].
pub fn cuda_runtime(knobs: &[(&str, &str)]) -> Runtime {
    cuda_runtime_with(&[], knobs)
}

/// As [`cuda_runtime`], with more libraries.
///
/// # Panics
/// As [`folder`] and [`runtime`].
pub fn cuda_runtime_with(libraries: &[&str], knobs: &[(&str, &str)]) -> Runtime {
    cuda_runtime_over(libraries.iter().map(|name| library(name)), knobs)
}

/// As [`cuda_runtime_with`], with the plugins in these files.
///
/// # Panics
/// As [`folder`] and [`runtime`].
pub fn cuda_runtime_over(
    files: impl IntoIterator<Item = PathBuf>,
    knobs: &[(&str, &str)],
) -> Runtime {
    let folder = folder();
    fake();
    let path = folder.display().to_string();
    let cache = folder.join("kernels").display().to_string();
    let mut all = vec![("cuda.library_path", path.as_str()), ("cuda.kernel_cache", cache.as_str())];
    all.extend_from_slice(knobs);
    assert!(library("tenon_cuda").starts_with(deps()));
    runtime_over(2, ["tenon_cpu", "tenon_cuda"].map(library).into_iter().chain(files), &all)
}

type Set = unsafe extern "C" fn(name: *const c_char, value: *const c_char);
type Take = unsafe extern "C" fn(buffer: *mut c_char, len: usize) -> usize;

/// The fake driver, before the plugin opens it.
fn fake() -> &'static Library {
    static OPEN: OnceLock<Library> = OnceLock::new();
    OPEN.get_or_init(|| {
        // SAFETY: the test's own library, which does nothing when it is opened.
        let fake = unsafe { Library::new(folder().join("libcuda.so")) };
        let fake = fake.expect("the fake driver opens");
        // Before the plugin asks; of two devices one may get lost.
        tell(&fake, "FAKE_CUDA_DEVICES", Some("2"));
        fake
    })
}

/// Orders something of the fake driver: how many devices it has, what fails.
///
/// # Panics
/// The fake has no such entry.
pub fn order(name: &str, value: Option<&str>) {
    tell(fake(), name, value);
}

fn tell(fake: &Library, name: &str, value: Option<&str>) {
    let text = |text: &str| CString::new(text).expect("no zero bytes");
    let (name, value) = (text(name), value.map(text));
    let value = value.as_ref().map_or(std::ptr::null(), |value| value.as_ptr());
    // SAFETY: the fake's entry, with texts that live during the call.
    unsafe {
        let set = fake.get::<Set>(b"fake_cuda_set\0").expect("the fake takes orders");
        set(name.as_ptr(), value);
    }
}

/// What the fake driver was asked for since the last time: a line each.
///
/// # Panics
/// The fake has no such entry.
pub fn take_log() -> String {
    // SAFETY: the fake's entry; it fills no more than it is given.
    unsafe {
        let take = fake().get::<Take>(b"fake_cuda_log_take\0").expect("the fake keeps a log");
        let mut bytes = vec![0u8; take(std::ptr::null_mut(), 0) + 1];
        take(bytes.as_mut_ptr().cast(), bytes.len());
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }
}
