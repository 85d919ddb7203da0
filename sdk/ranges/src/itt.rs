//! Tasks of Intel's ITT.
//!
//! Intel's C library, which is linked in, has a pointer for each function of the interface. The first call of one that
//! has to do with the profiler opens the library that the environment names and lets it write its own functions into
//! these pointers; those that it does not know do nothing. This module looks first whether the file can be that library,
//! so as to say why not: the C library says nothing.
//!
//! A task belongs to a domain and has a string handle for a name, both made by the profiler and kept until the process
//! ends. Tasks of a thread nest.

use crate::{DOMAIN, Handle, ITT_VARIABLE, Refusal, c_text};
use ittapi_sys::{
    __itt_domain, __itt_get_timestamp_ptr__3_0, __itt_id, __itt_string_handle,
    __itt_task_begin_ptr__3_0, __itt_task_end_ptr__3_0,
};
#[cfg(not(windows))]
use ittapi_sys::{
    __itt_domain_create_ptr__3_0 as DOMAIN_CREATE,
    __itt_string_handle_create_ptr__3_0 as STRING_CREATE,
};
#[cfg(windows)]
use ittapi_sys::{
    __itt_domain_createA_ptr__3_0 as DOMAIN_CREATE,
    __itt_string_handle_createA_ptr__3_0 as STRING_CREATE,
};
use libloading::Library;
use std::{
    ffi::{CStr, c_char, c_void},
    path::Path,
};

/// What the library of a profiler has, in the newer form of the interface and in the older one.
const ENTRIES: [&str; 2] = ["__itt_api_init", "__itt_api_version"];

/// No id: tasks have no ids here, and are the children of the task around them.
const NO_ID: __itt_id = __itt_id { d1: 0, d2: 0, d3: 0 };

type CreateString = unsafe extern "C" fn(*const c_char) -> *mut __itt_string_handle;
type Begin =
    unsafe extern "C" fn(*const __itt_domain, __itt_id, __itt_id, *mut __itt_string_handle);
type End = unsafe extern "C" fn(*const __itt_domain);

/// A profiler that takes tasks.
pub(crate) struct Itt {
    /// Never null.
    domain: Handle,
    create: CreateString,
    begin: Begin,
    end: End,
}

impl Itt {
    /// Opens the library that [`ITT_VARIABLE`] names. Called once in a process: the C library begins once.
    ///
    /// # Errors
    /// The file cannot be opened, it is not a library for ITT, or the profiler takes no tasks.
    pub fn attach(file: &Path) -> Result<Itt, Refusal> {
        let (variable, path) = (ITT_VARIABLE, || file.to_owned());
        // SAFETY: opening runs the library's constructors, which the user who set the variable asks for.
        let opened = unsafe { Library::new(file) };
        let opened = opened.map_err(|error| Refusal::open(variable, file, &error))?;
        let has = |entry: &&str| {
            // SAFETY: the address is not used.
            unsafe { opened.get::<*const c_void>(*entry) }.is_ok()
        };
        if !ENTRIES.iter().any(has) {
            return Err(Refusal::NoEntry { variable, file: path(), function: ENTRIES[0] });
        }
        // From here on the C library has it open.
        Self::begin().ok_or_else(|| Refusal::NoRanges { variable, file: path() })
    }

    /// Has the C library begin; `None` where the profiler took over none of the functions that tasks need.
    fn begin() -> Option<Itt> {
        // SAFETY: the pointers are the C library's, with the types of its header; it writes them while it begins, which is
        // in the call here, under its own lock: nothing else in this program names them, and this runs once.
        unsafe {
            let idle = __itt_task_begin_ptr__3_0?;
            // Of the functions that make the C library begin, the one that tells the profiler nothing.
            __itt_get_timestamp_ptr__3_0?();
            let (begin, end) = (__itt_task_begin_ptr__3_0?, __itt_task_end_ptr__3_0?);
            if begin as usize == idle as usize {
                return None;
            }
            let (domain, create) = (DOMAIN_CREATE?, STRING_CREATE?);
            let domain = domain(c_text(DOMAIN).as_ptr());
            (!domain.is_null()).then(|| Itt { domain: Handle(domain.cast()), create, begin, end })
        }
    }

    /// Tells the profiler of a name.
    pub fn register(&self, name: &CStr) -> Handle {
        // SAFETY: the profiler's function, which copies the text.
        Handle(unsafe { (self.create)(name.as_ptr()) }.cast())
    }

    /// Begins a task on this thread.
    pub fn push(&self, name: Handle) {
        if self.is_on() {
            // SAFETY: the profiler's function, with the domain and the handle that it made.
            unsafe { (self.begin)(self.domain().cast_const(), NO_ID, NO_ID, name.0.cast()) };
        }
    }

    /// Ends the last task of this thread.
    pub fn pop(&self) {
        if self.is_on() {
            // SAFETY: as above.
            unsafe { (self.end)(self.domain().cast_const()) };
        }
    }

    fn domain(&self) -> *mut __itt_domain {
        self.domain.0.cast()
    }

    /// Whether the profiler has the domain turned on, which it may change at any time.
    fn is_on(&self) -> bool {
        // SAFETY: a domain is never freed. The profiler writes the field, an int, at once as a whole; it is read anew.
        unsafe { (&raw const (*self.domain()).flags).read_volatile() != 0 }
    }
}
