//! What the plugin answers where there is no GPU for it: each answer is of a process of its own, since the driver is
//! looked for once.

mod support {
    pub mod fake;
}

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};
use support::fake;
use tenon_cuda::{Cuda, Settings, compile::nvrtc, libraries};
use tenon_sdk::{
    Code, KernelError,
    author::Knobs,
    device::author::{DeviceHandle, DeviceKind},
};

/// Tell the process where to look, and what to ask.
const FOLDER: &str = "TENON_CUDA_TEST_FOLDER";
const WHAT: &str = "TENON_CUDA_TEST_WHAT";

/// A folder in which nothing is a library, whatever its name says.
fn no_libraries() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-cuda");
    fs::create_dir_all(&folder).expect("a folder of our own");
    for library in ["cuda", "nvrtc", "cublasLt", "cudnn"] {
        for number in ["", ".1", ".8", ".9", ".10", ".11", ".12", ".13"] {
            let file = folder.join(format!("lib{library}.so{number}"));
            fs::write(file, "no library\n").expect("a file of our own");
        }
    }
    folder
}

/// Runs in a process that [`asked`] starts.
#[test]
#[ignore = "started by the others"]
fn child() {
    let told = |name| env::var(name).expect("this test is started by the others");
    assert!(libraries::look_in(&told(FOLDER)));
    if told(WHAT) == "compiler" {
        let version = nvrtc::version().expect("there is a compiler");
        let maps = fs::read_to_string("/proc/self/maps").expect("a process has maps");
        let mut open: Vec<&str> =
            maps.lines().filter_map(|line| line.split_once('/')).map(|it| it.1).collect();
        open.retain(|file| file.contains("nvrtc"));
        open.dedup();
        return println!("answer {version:?} {}", open.join(" "));
    }
    let error = match told(WHAT).as_str() {
        "probe" => Cuda::probe(Knobs::NONE).err(),
        _ => Cuda::new(0, &Settings::default(), DeviceHandle::NONE).err(),
    };
    let error = error.unwrap_or(KernelError::new(Code::OK, "there is one"));
    println!("answer {} {}", error.code.0, error.message);
}

/// What `probe` or `open` answers with the libraries in a folder and these settings of the fake driver.
fn asked(what: &str, folder: &Path, settings: &[(&str, &str)]) -> String {
    // What the system may have comes behind texts that are no libraries.
    asked_on(&no_libraries(), what, folder, settings)
}

/// As [`asked`], where the system's loader looks in this folder first.
fn asked_on(system: &Path, what: &str, folder: &Path, settings: &[(&str, &str)]) -> String {
    let program = env::current_exe().expect("a test knows its executable");
    let ran = Command::new(program)
        .args(["--exact", "child", "--ignored", "--nocapture"])
        .env(FOLDER, folder)
        .env(WHAT, what)
        .env("LD_LIBRARY_PATH", system)
        .envs(settings.iter().copied())
        .output()
        .expect("it starts");
    let (said, errors) =
        (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{said}{errors}");
    let answer = said.lines().find_map(|line| line.strip_prefix("answer "));
    answer.unwrap_or_else(|| panic!("no answer to {what} in: {said}")).to_owned()
}

/// The answer is `UNAVAILABLE` with these words.
#[track_caller]
fn is_unavailable(answer: &str, words: &[&str]) {
    assert!(answer.starts_with(&format!("{} ", Code::UNAVAILABLE.0)), "{answer}");
    for part in words {
        assert!(answer.contains(part), "expected '{part}' in: {answer}");
    }
}

#[test]
fn without_a_driver() {
    for what in ["probe", "open"] {
        let answer = asked(what, Path::new("/nowhere"), &[]);
        let words = ["there is no libcuda.so", "comes with NVIDIA's driver", "library_path"];
        is_unavailable(&answer, &words);
    }
}

#[test]
fn with_a_driver_that_is_no_library() {
    let answer = asked("probe", &no_libraries(), &[]);
    let words = ["libcuda.so cannot be opened", "file too short", "comes with NVIDIA's driver"];
    is_unavailable(&answer, &words);
}

#[test]
fn with_an_old_driver() {
    let answer = asked("probe", &fake::folder(), &[("FAKE_CUDA_DRIVER", "11080")]);
    let words = ["the driver is of CUDA 11.8", "expected 12.0 or later", "install a newer driver"];
    is_unavailable(&answer, &words);
}

#[test]
fn with_a_driver_that_does_not_start() {
    for (result, name) in [("803", "SYSTEM_DRIVER_MISMATCH"), ("999", "UNKNOWN"), ("304", "304")] {
        let answer =
            asked("probe", &fake::folder(), &[("FAKE_CUDA_FAIL", &format!("cuInit:1:{result}"))]);
        is_unavailable(&answer, &["the driver does not start", name]);
    }
}

#[test]
fn without_a_gpu() {
    let answer = asked("probe", &fake::folder(), &[("FAKE_CUDA_DEVICES", "0")]);
    is_unavailable(&answer, &["the driver finds no GPU", "CUDA_VISIBLE_DEVICES"]);
}

#[test]
fn with_a_gpu_that_is_too_old() {
    let answer = asked("open", &fake::folder(), &[("FAKE_CUDA_CC", "5.0")]);
    is_unavailable(&answer, &["CUDA:0 has compute capability 5.0", "expected 7.5 or more"]);
    let answer = asked("open", &fake::folder(), &[("FAKE_CUDA_CC", "7.5")]);
    assert_eq!(answer, "0 there is one");
}

/// A folder with the compiler as NVIDIA's Python packages have it: under numbered names alone, and it says that it is
/// called so, with the second library beside it that it opens by name.
fn numbered_compiler() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("numbered-nvrtc");
    fs::create_dir_all(&folder).expect("a folder of our own");
    let plain = fs::read(fake::folder().join("libnvrtc.so")).expect("the fake compiler is built");
    for (file, called) in
        [("libnvrtc.so.12", b"libnvrtc.12"), ("libnvrtc-builtins.so.12.9", b"libbuiltins")]
    {
        let mut bytes = plain.clone();
        let name = b"libnvrtc.so\0";
        let places = |bytes: &[u8]| bytes.windows(name.len()).position(|it| it == name);
        while let Some(at) = places(&bytes) {
            bytes[at..at + called.len()].copy_from_slice(called);
        }
        assert_ne!(bytes, plain, "it says its name");
        // Renamed into place: another test process may be using the one that is there.
        let part = folder.join(format!("{file}.{}", std::process::id()));
        fs::write(&part, bytes).expect("a file of our own");
        fs::rename(part, folder.join(file)).expect("a file of our own");
    }
    folder
}

#[test]
fn the_compiler_that_the_user_names_is_used_and_not_the_systems() {
    let named = numbered_compiler();
    for system in [no_libraries(), fake::folder()] {
        let answer = asked_on(&system, "compiler", &named, &[]);
        assert!(answer.contains("numbered-nvrtc/libnvrtc.so.12"), "{answer}");
        assert!(answer.contains("numbered-nvrtc/libnvrtc-builtins.so.12.9"), "{answer}");
        assert!(!answer.contains("fake-cuda/libnvrtc.so"), "{answer}");
    }
    // Without a name it is the system's.
    let answer = asked_on(&fake::folder(), "compiler", Path::new("/nowhere"), &[]);
    assert!(answer.contains("fake-cuda/libnvrtc.so"), "{answer}");
}
