//! Device types with different roles, as a registration finds them.

use super::{DeviceEntries, entries::described};
use crate::{
    Knobs,
    device::{
        DeviceCapture, DeviceEvents, DeviceHandle, DeviceInfo, DeviceKind, DeviceNative,
        DeviceStreams, DeviceTimers, NoStreams, Notification,
    },
};
use std::{
    ffi::c_void,
    ptr,
    sync::atomic::{AtomicU32, Ordering},
};
use tenon_abi::{
    Code, DeviceAttributes, DeviceState, ExtCapture, ExtHeader, ExtNative, ExtTimers, MemoryInfo,
    MemoryKind, ext_tags, layout,
};
use tenon_framework::KernelError;

/// A device type whose devices say `$info` of themselves.
macro_rules! kind {
    ($name:ident, $stream:ty, $info:expr) => {
        struct $name;

        impl DeviceKind for $name {
            type Stream = $stream;

            fn probe(_knobs: Knobs<'_>) -> Result<u32, KernelError> {
                Ok(1)
            }

            fn open(_: u32, _: DeviceHandle, _: Knobs<'_>) -> Result<$name, KernelError> {
                Ok($name)
            }

            fn info(&self) -> DeviceInfo {
                $info
            }
        }
    };
}

/// Streams whose commands are done when they return.
macro_rules! streams {
    ($name:ident) => {
        impl DeviceStreams for $name {
            fn create_stream(&self) -> Result<u8, KernelError> {
                Ok(3)
            }

            fn synchronize_stream(&self, _stream: &u8) -> Result<(), KernelError> {
                Ok(())
            }

            fn notify(&self, _stream: &u8, done: Notification) {
                done.run(Code::OK);
            }

            fn synchronize(&self) -> Result<(), KernelError> {
                Ok(())
            }
        }
    };
}

/// Events that are numbers, and happen when they are recorded.
macro_rules! events {
    ($name:ident) => {
        impl DeviceEvents for $name {
            type Event = u64;

            fn create_event(&self) -> Result<u64, KernelError> {
                Ok(0)
            }

            fn record_event(&self, _event: &u64, _stream: &u8) -> Result<(), KernelError> {
                Ok(())
            }

            fn wait_event(&self, _stream: &u8, _event: &u64) -> Result<(), KernelError> {
                Ok(())
            }

            fn query_event(&self, _event: &u64) -> Result<bool, KernelError> {
                Ok(true)
            }
        }
    };
}

fn two_streams() -> DeviceInfo {
    DeviceInfo { stream_count: 2, ..DeviceInfo::host("two streams") }
}

fn own_memory() -> DeviceInfo {
    let memory = MemoryInfo { kind: MemoryKind::DEVICE, alignment: 64, limit: 0 };
    DeviceInfo::new("own memory", vec![memory])
}

kind!(Streaming, u8, two_streams());
streams!(Streaming);

kind!(Claiming, NoStreams, own_memory());

kind!(Handled, u8, two_streams());
streams!(Handled);
events!(Handled);

impl DeviceNative for Handled {
    const API: &'static str = "handled";

    fn native_device(&self) -> *mut c_void {
        panic!("ordered to panic")
    }

    fn native_stream(&self, stream: &u8) -> *mut c_void {
        ptr::without_provenance_mut(usize::from(*stream))
    }
}

kind!(Whole, u8, two_streams());
streams!(Whole);
events!(Whole);

static RUNS: AtomicU32 = AtomicU32::new(0);

/// A recording that counts its runs, and from 100 on its ends.
struct Counting;

impl Drop for Counting {
    fn drop(&mut self) {
        RUNS.fetch_add(100, Ordering::SeqCst);
    }
}

impl DeviceTimers for Whole {
    fn create_timer(&self) -> Result<u64, KernelError> {
        Ok(40)
    }

    fn elapsed_ns(&self, first: &u64, last: &u64) -> Result<u64, KernelError> {
        Ok(last + first + 2)
    }
}

impl DeviceCapture for Whole {
    type Recorded = Counting;

    fn begin_capture(&self, _stream: &u8) -> Result<(), KernelError> {
        Ok(())
    }

    fn end_capture(&self, _stream: &u8) -> Result<Counting, KernelError> {
        Ok(Counting)
    }

    fn launch_recorded(&self, _recorded: &Counting, _stream: &u8) -> Result<(), KernelError> {
        RUNS.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

impl DeviceNative for Whole {
    const API: &'static str = "whole";

    fn native_device(&self) -> *mut c_void {
        ptr::from_ref(self).cast_mut().cast()
    }

    fn native_stream(&self, _stream: &u8) -> *mut c_void {
        ptr::null_mut()
    }
}

crate::__registered!(RegisteredStreaming: Streaming);
crate::__registered!(RegisteredClaiming: Claiming);
crate::__registered!(RegisteredHandled: Handled);
crate::__registered!(RegisteredWhole: Whole);
const STREAMING: DeviceEntries = DeviceEntries::of::<RegisteredStreaming>();
const CLAIMING: DeviceEntries = DeviceEntries::of::<RegisteredClaiming>();
const HANDLED: DeviceEntries = DeviceEntries::of::<RegisteredHandled>();
const WHOLE: DeviceEntries = DeviceEntries::of::<RegisteredWhole>();

/// The tags of the chain of a table.
fn tags(entries: DeviceEntries) -> Vec<u32> {
    let mut tags = Vec::new();
    let mut at = entries.table.ext;
    // SAFETY: links are constants, which live as long as the process.
    while let Some(header) = unsafe { at.as_ref() } {
        tags.push(header.tag);
        at = header.next;
    }
    tags
}

/// The link of a table that has this tag.
fn link<T>(entries: DeviceEntries, tag: u32, expected: ExtHeader) -> &'static T {
    let mut at = entries.table.ext;
    loop {
        // SAFETY: links are constants, which live as long as the process.
        let header = unsafe { at.as_ref() }.expect("the link is in the chain");
        if header.tag == tag {
            assert_eq!((header.size, header.layout_hash), (expected.size, expected.layout_hash));
            // SAFETY: the tag and the layout say that it is a `T`.
            return unsafe { &*at.cast::<T>() };
        }
        at = header.next;
    }
}

fn opened(entries: DeviceEntries) -> Result<*mut DeviceState, Code> {
    let mut state = ptr::null_mut();
    // SAFETY: an entry with a place for the result; without a host nobody takes messages.
    let code = unsafe {
        let create = entries.create.unwrap();
        create(ptr::null(), ptr::null(), 0, ptr::null_mut(), &mut state, ptr::null_mut())
    };
    if code.is_ok() { Ok(state) } else { Err(code) }
}

#[test]
fn a_table_has_the_entries_of_the_roles_and_no_others() {
    let has = |entries: DeviceEntries| {
        let table = entries.table;
        let streams = [table.create_stream.is_some(), table.synchronize.is_some()];
        let events = [table.create_event.is_some(), table.query_event.is_some()];
        (table.allocate.is_some(), streams, events)
    };
    assert_eq!(has(STREAMING), (false, [true; 2], [false; 2]));
    assert_eq!(has(CLAIMING), (false, [false; 2], [false; 2]));
    assert_eq!(has(WHOLE), (false, [true; 2], [true; 2]));
}

#[test]
fn a_chain_has_the_links_of_the_roles_one_behind_the_other() {
    assert_eq!(tags(STREAMING), []);
    assert_eq!(tags(HANDLED), [ext_tags::NATIVE]);
    assert_eq!(tags(WHOLE), [ext_tags::CAPTURE, ext_tags::TIMERS, ext_tags::NATIVE]);
}

#[test]
fn streams_without_events_are_one() {
    let count = |entries: DeviceEntries| {
        let state = opened(entries).unwrap();
        // SAFETY: entries with their device, which is closed once; a struct of pointers and numbers.
        unsafe {
            let mut raw: DeviceAttributes = std::mem::zeroed();
            entries.table.attributes.unwrap()(state, &mut raw);
            entries.table.destroy.unwrap()(state);
            raw.stream_count
        }
    };
    assert_eq!((count(STREAMING), count(WHOLE)), (1, 2));
}

#[test]
fn memory_of_its_own_without_its_trait_is_refused() {
    assert_eq!(opened(CLAIMING), Err(Code::INTERNAL));
    let error = described::<RegisteredClaiming>(&Claiming).err().unwrap().message;
    assert!(error.contains("of kind 1") && error.contains("implement DeviceMemory"), "{error}");
}

#[test]
fn timers_and_handles_reach_their_methods_and_a_panic_gives_null() {
    let (whole, handled) = (opened(WHOLE).unwrap(), opened(HANDLED).unwrap());
    let timers: &ExtTimers =
        link(WHOLE, ext_tags::TIMERS, ExtHeader::new(ext_tags::TIMERS, 1, &layout::EXT_TIMERS));
    let native = |entries| -> &ExtNative {
        link(entries, ext_tags::NATIVE, ExtHeader::new(ext_tags::NATIVE, 1, &layout::EXT_NATIVE))
    };
    // SAFETY: entries with their device, its streams and events, which are given back once.
    unsafe {
        let (mut first, mut last, mut ns, sink) =
            (ptr::null_mut(), ptr::null_mut(), 0, ptr::null_mut());
        assert_eq!(timers.create.unwrap()(whole, &mut first, sink), Code::OK);
        assert_eq!(timers.create.unwrap()(whole, &mut last, sink), Code::OK);
        assert_eq!(timers.elapsed_ns.unwrap()(whole, first, last, &mut ns, sink), Code::OK);
        assert_eq!(ns, 82);
        WHOLE.table.destroy_event.unwrap()(whole, first);
        WHOLE.table.destroy_event.unwrap()(whole, last);

        assert_eq!(native(WHOLE).api.bytes(), b"whole");
        assert!(!native(WHOLE).device.unwrap()(whole).is_null());
        assert!(native(HANDLED).device.unwrap()(handled).is_null(), "it panics");
        let mut stream = ptr::null_mut();
        assert_eq!(HANDLED.table.create_stream.unwrap()(handled, &mut stream, sink), Code::OK);
        assert_eq!(native(HANDLED).stream.unwrap()(handled, stream).addr(), 3);
        HANDLED.table.destroy_stream.unwrap()(handled, stream);
        WHOLE.table.destroy.unwrap()(whole);
        HANDLED.table.destroy.unwrap()(handled);
    }
}

#[test]
fn a_recording_runs_and_ends_as_its_own_type() {
    let state = opened(WHOLE).unwrap();
    let capture: &ExtCapture =
        link(WHOLE, ext_tags::CAPTURE, ExtHeader::new(ext_tags::CAPTURE, 1, &layout::EXT_CAPTURE));
    // SAFETY: entries with their device, its stream and its recording, which are given back once.
    unsafe {
        let (mut stream, mut graph, sink) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        assert_eq!(WHOLE.table.create_stream.unwrap()(state, &mut stream, sink), Code::OK);
        assert_eq!(capture.begin.unwrap()(state, stream, sink), Code::OK);
        assert_eq!(capture.end.unwrap()(state, stream, &mut graph, sink), Code::OK);
        assert_eq!(capture.launch.unwrap()(state, graph, stream, sink), Code::OK);
        assert_eq!(capture.launch.unwrap()(state, graph, stream, sink), Code::OK);
        assert_eq!(RUNS.load(Ordering::SeqCst), 2);
        capture.destroy.unwrap()(state, graph);
        assert_eq!(RUNS.load(Ordering::SeqCst), 102);
        WHOLE.table.destroy_stream.unwrap()(state, stream);
        WHOLE.table.destroy.unwrap()(state);
    }
}
