//! A tool in Rust that NVTX's half here is begun with, what is refused, and two traces in one. Real libraries, ITT among
//! them, are begun by sdk/cli/tests/cli/ranges.rs.

use super::*;
use nvtx::{EventAttributes, Initialize, SIZES};
use std::{
    ffi::{CStr, c_char, c_int, c_uint},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicBool, Ordering},
};
use tenon_framework::Code;

/// What the tool was given.
static TOLD: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());
/// Whether the tool sets no functions, or says no.
static SETS_NONE: AtomicBool = AtomicBool::new(false);
static SAYS_NO: AtomicBool = AtomicBool::new(false);

fn told(what: String) {
    TOLD.lock().unwrap().push(what);
}

fn take() -> Vec<String> {
    std::mem::take(&mut TOLD.lock().unwrap())
}

/// A text that lives as the tool's names do.
unsafe fn text(text: *const c_char) -> String {
    // SAFETY: the tests' texts end in NUL.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned()
}

unsafe extern "system" fn create(name: *const c_char) -> *mut c_void {
    // SAFETY: as the protocol has it.
    told(format!("domain {}", unsafe { text(name) }));
    ptr::without_provenance_mut(7)
}

unsafe extern "system" fn register(domain: *mut c_void, name: *const c_char) -> *mut c_void {
    assert_eq!(domain.addr(), 7);
    // SAFETY: as the protocol has it.
    let name = unsafe { text(name) };
    told(format!("name {name}"));
    CString::new(name).unwrap().into_raw().cast()
}

unsafe extern "system" fn push(domain: *mut c_void, attributes: *const EventAttributes) -> c_int {
    assert_eq!(domain.addr(), 7);
    // SAFETY: as the protocol has it; registered names are texts that `register` kept.
    unsafe {
        let (kind, message) = (*attributes).message();
        told(format!("push {kind} {}", text(message.cast())));
    }
    0
}

unsafe extern "system" fn pop(domain: *mut c_void) -> c_int {
    told(format!("pop of {}", domain.addr()));
    0
}

type Table = *mut *mut *mut c_void;

/// The tool: finds the tables as NVIDIA's samples do.
unsafe extern "system" fn initialize(
    export_table: unsafe extern "system" fn(u32) -> *const c_void,
) -> c_int {
    // SAFETY: the layouts are the protocol's.
    unsafe {
        assert!(export_table(0).is_null() && export_table(2).is_null());
        let version = export_table(3).cast::<u32>();
        // Behind the size of the structure.
        assert_eq!(*version.cast::<usize>(), 24);
        assert_eq!(*version.add(2), 3);
        let callbacks = export_table(1).cast::<usize>();
        assert_eq!(*callbacks, 16);
        let find: unsafe extern "system" fn(c_int, *mut Table, *mut c_uint) -> c_int =
            std::mem::transmute(*callbacks.add(1));
        let (mut table, mut size): (Table, c_uint) = (ptr::null_mut(), 0);
        for unknown in [-1, 0, 7] {
            assert_eq!(find(unknown, &raw mut table, &raw mut size), 0);
        }
        for (module, expected) in SIZES.into_iter().enumerate().skip(1) {
            assert_eq!(find(module as c_int, &raw mut table, &raw mut size), 1);
            assert_eq!(size as usize, expected);
            assert!((*table).is_null() && (*table.add(expected)).is_null());
            assert!((1..expected).all(|id| (**table.add(id)).is_null()));
        }
        assert_eq!(find(5, ptr::null_mut(), ptr::null_mut()), 1);
        if SAYS_NO.load(Ordering::Relaxed) {
            return 0;
        }
        if !SETS_NONE.load(Ordering::Relaxed) {
            find(5, &raw mut table, ptr::null_mut());
            **table.add(4) = push as *mut c_void;
            **table.add(5) = pop as *mut c_void;
            **table.add(10) = register as *mut c_void;
            **table.add(12) = create as *mut c_void;
        }
    }
    1
}

#[derive(Default)]
struct Other(std::sync::Mutex<Vec<String>>);

impl TraceSink for Other {
    fn span(&self, node: &str, _name: &str, _begin_ns: u64, _end_ns: u64) {
        self.0.lock().unwrap().push(format!("span {node}"));
    }

    fn enters(&self, node: &str) {
        self.0.lock().unwrap().push(format!("enters {node}"));
    }

    fn leaves(&self, node: &str) {
        self.0.lock().unwrap().push(format!("leaves {node}"));
    }
}

/// One test: a tool begins once in a process, and its functions are the process's.
#[test]
fn a_tool_gets_ranges_that_nest_and_end() {
    let file = Path::new("tool.so");
    let begin = || Nvtx::begin(initialize as Initialize, file);
    SAYS_NO.store(true, Ordering::Relaxed);
    let declined = begin().err().unwrap();
    assert!(declined.to_string().contains("tool.so: its function InitializeInjectionNvtx2 says"));
    SAYS_NO.store(false, Ordering::Relaxed);
    SETS_NONE.store(true, Ordering::Relaxed);
    let nothing = begin().err().unwrap();
    assert!(nothing.to_string().contains("NVTX_INJECTION64_PATH"), "{nothing}");
    assert_eq!((declined.code(), nothing.code()), (Code::FAILED_PRECONDITION, declined.code()));
    SETS_NONE.store(false, Ordering::Relaxed);

    let ranges = Arc::new(Ranges::new(None, Some(begin().unwrap())));
    assert_eq!(take(), ["domain tenon"]);
    let got = ranges.range("step 1", || {
        for _ in 0..2 {
            ranges.enters("node\0");
            ranges.leaves("node\0");
        }
        3
    });
    assert_eq!(got, 3);
    let node = ["push 3 node\u{fffd}", "pop of 7"];
    let told = [&["name step 1", "push 3 step 1", "name node\u{fffd}"][..], &node, &node];
    assert_eq!(take(), [&told.concat()[..], &["pop of 7"]].concat());

    let panicked = catch_unwind(AssertUnwindSafe(|| ranges.range("step 1", || panic!("in it"))));
    assert!(panicked.is_err());
    assert_eq!(take(), ["push 3 step 1", "pop of 7"]);

    let other = Arc::new(Other::default());
    let both = Arc::clone(&ranges).beside(other.clone());
    both.enters("a");
    both.span("a", "", 1, 2);
    both.leaves("a");
    assert_eq!(take(), ["name a", "push 3 a", "pop of 7"]);
    assert_eq!(*other.0.lock().unwrap(), ["enters a", "span a", "leaves a"]);

    // One name too many for a tool that keeps each: it is told with the range.
    for at in 0..MOST_NAMES {
        ranges.known(&at.to_string());
    }
    take();
    ranges.range("late", || {});
    assert_eq!(take(), ["push 1 late", "pop of 7"]);
}

#[test]
fn what_is_no_profiler_is_refused_with_its_file() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (missing, text) = (folder.join("none.so"), folder.join("Cargo.toml"));
    for file in [&missing, &text] {
        let Attached { ranges, refusals } = attach(Some(file), Some(file));
        assert!(ranges.is_none());
        let told: Vec<String> = refusals.iter().map(Refusal::to_string).collect();
        for (told, variable) in told.iter().zip([ITT_VARIABLE, NVTX_VARIABLE]) {
            let parts = [variable, &file.display().to_string(), "cannot be opened"];
            assert!(parts.iter().all(|part| told.contains(part)), "{told}");
            assert!(!told.ends_with("dlopen failed"), "the linker says more: {told}");
        }
        assert!(refusals.iter().all(|refusal| refusal.code() == Code::UNAVAILABLE));
    }
    let nobody = attach(None, None);
    assert!(nobody.ranges.is_none() && nobody.refusals.is_empty());
}

#[cfg(target_os = "linux")]
#[test]
fn a_library_of_another_kind_is_refused_with_what_it_lacks() {
    let Attached { ranges, refusals } =
        attach(Some(Path::new("libc.so.6")), Some(Path::new("libc.so.6")));
    assert!(ranges.is_none());
    let told: Vec<String> = refusals.iter().map(Refusal::to_string).collect();
    assert!(told[0].contains("expected the function __itt_api_init"), "{told:?}");
    assert!(told[1].contains("expected the function InitializeInjectionNvtx2"), "{told:?}");
}
