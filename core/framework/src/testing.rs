//! A host's table with as much as shape functions need, for the tests of this crate and of the crates that
//! define ops.

use crate::{attr_view::attr_entry, infer::SHAPE_TABLE, plugin};
use std::{mem::size_of, ptr};
use tenon_abi::{Host, Sink, Str};

unsafe extern "C" fn report(_sink: *mut Sink, _message: Str) {}

static HOST: Host = Host {
    struct_size: size_of::<Host>() as u32,
    abi_major: tenon_abi::ABI_MAJOR,
    abi_minor: tenon_abi::ABI_MINOR,
    reserved: 0,
    report: Some(report),
    log: None,
    attr: Some(attr_entry),
    knob: None,
    retain_context: None,
    release_context: None,
    path: None,
    allocate: None,
    deallocate: None,
    now_ns: None,
    keep: None,
    view: None,
    release: None,
    device_lost: None,
    strings: ptr::null(),
    shapes: &raw const SHAPE_TABLE,
    state: ptr::null(),
    ext: ptr::null(),
};

/// Installs the table, unless the process has one.
pub fn install_host() {
    // SAFETY: a static; its missing entries are none that a shape function reaches.
    unsafe { plugin::install_host(&HOST, ptr::null()) }
}
