//! The roles of a device type, as a registration finds them, and the table that they make.

use super::{DeviceKind, NoStreams, entries};
use std::{marker::PhantomData, ptr};
use tenon_abi::{
    Code, Device, DeviceState, DeviceTable, ExtCapture, ExtHeader, ExtNative, ExtTimers, Host,
    PluginContext, Sink,
};

/// The roles of a device type beside [`DeviceKind`], each as entries of the table or as a link of its chain.
///
/// An associated constant of the type itself goes before one of a trait of the same name. So where the type that
/// [`register_device!`](crate::register_device) names implements [`DeviceMemory`](super::DeviceMemory), `MEMORY` is that of
/// the `impl` block beside the trait, else that of [`WithoutMemory`]; the other roles are found in the same way. The type
/// has to be concrete, which it is in a registration.
#[doc(hidden)]
pub struct Roles<D>(PhantomData<D>);

/// A table without entries, of which each role fills its own.
pub(super) const NO_ENTRIES: DeviceTable = DeviceTable {
    struct_size: size_of::<DeviceTable>() as u32,
    reserved: 0,
    destroy: None,
    attributes: None,
    allocate: None,
    deallocate: None,
    can_copy: None,
    copy: None,
    create_stream: None,
    destroy_stream: None,
    synchronize_stream: None,
    notify: None,
    create_event: None,
    destroy_event: None,
    record_event: None,
    wait_event: None,
    query_event: None,
    synchronize: None,
    ext: ptr::null(),
};

#[doc(hidden)]
pub trait WithoutMemory {
    const MEMORY: DeviceTable = NO_ENTRIES;
}

#[doc(hidden)]
pub trait WithoutStreams {
    const STREAMS: DeviceTable = NO_ENTRIES;
}

#[doc(hidden)]
pub trait WithoutEvents {
    const EVENTS: DeviceTable = NO_ENTRIES;
}

#[doc(hidden)]
pub trait WithoutTimers {
    const TIMERS: Option<ExtTimers> = None;
}

#[doc(hidden)]
pub trait WithoutCapture {
    const CAPTURE: Option<ExtCapture> = None;
}

#[doc(hidden)]
pub trait WithoutNative {
    const NATIVE: Option<ExtNative> = None;
}

/// A device type that names a type of streams of its own, or a type that is no device type.
#[doc(hidden)]
pub trait WithStreamType {
    const HAS_STREAM_TYPE: bool = true;
}

/// A type that does not implement [`DeviceKind`]. The compiler says so, and has nothing to say of its streams then.
#[doc(hidden)]
pub trait WithoutKind {
    const IS_KIND: bool = false;
}

impl<D> WithoutMemory for Roles<D> {}
impl<D> WithoutStreams for Roles<D> {}
impl<D> WithoutEvents for Roles<D> {}
impl<D> WithoutTimers for Roles<D> {}
impl<D> WithoutCapture for Roles<D> {}
impl<D> WithoutNative for Roles<D> {}
impl<D> WithStreamType for Roles<D> {}
impl<D> WithoutKind for Roles<D> {}

impl<D: DeviceKind> Roles<D> {
    /// The type implements [`DeviceKind`].
    pub const IS_KIND: bool = true;
}

impl<D: DeviceKind<Stream = NoStreams>> Roles<D> {
    /// The type of streams is [`NoStreams`].
    pub const HAS_STREAM_TYPE: bool = false;
}

/// A device type with the roles that its registration found. `register_device!` implements it.
#[doc(hidden)]
pub trait Registered {
    type Device: DeviceKind;
    const MEMORY: DeviceTable;
    const STREAMS: DeviceTable;
    const EVENTS: DeviceTable;
    const TIMERS: Option<ExtTimers>;
    const CAPTURE: Option<ExtCapture>;
    const NATIVE: Option<ExtNative>;
    const HAS_STREAM_TYPE: bool;
}

/// The table of a device type.
struct Table<R>(PhantomData<R>);

const fn before(header: ExtHeader, next: *const ExtHeader) -> ExtHeader {
    ExtHeader { next, ..header }
}

impl<R: Registered> Table<R> {
    const NATIVE: &'static Option<ExtNative> = &R::NATIVE;

    const FROM_NATIVE: *const ExtHeader = match Self::NATIVE {
        Some(link) => ptr::from_ref(link).cast(),
        None => ptr::null(),
    };

    const TIMERS: &'static Option<ExtTimers> = &match R::TIMERS {
        Some(link) => Some(ExtTimers { header: before(link.header, Self::FROM_NATIVE), ..link }),
        None => None,
    };

    const FROM_TIMERS: *const ExtHeader = match Self::TIMERS {
        Some(link) => ptr::from_ref(link).cast(),
        None => Self::FROM_NATIVE,
    };

    const CAPTURE: &'static Option<ExtCapture> = &match R::CAPTURE {
        Some(link) => Some(ExtCapture { header: before(link.header, Self::FROM_TIMERS), ..link }),
        None => None,
    };

    /// The head of the chain; null without links.
    const CHAIN: *const ExtHeader = match Self::CAPTURE {
        Some(link) => ptr::from_ref(link).cast(),
        None => Self::FROM_TIMERS,
    };

    const TABLE: &'static DeviceTable = &DeviceTable {
        destroy: Some(entries::destroy::<R::Device>),
        attributes: Some(entries::attributes::<R::Device>),
        create_stream: R::STREAMS.create_stream,
        destroy_stream: R::STREAMS.destroy_stream,
        synchronize_stream: R::STREAMS.synchronize_stream,
        notify: R::STREAMS.notify,
        synchronize: R::STREAMS.synchronize,
        create_event: R::EVENTS.create_event,
        destroy_event: R::EVENTS.destroy_event,
        record_event: R::EVENTS.record_event,
        wait_event: R::EVENTS.wait_event,
        query_event: R::EVENTS.query_event,
        ext: Self::CHAIN,
        // Of the rest only the entries for memory are not null.
        ..R::MEMORY
    };
}

type ProbeFn = unsafe extern "C" fn(*const Host, *const PluginContext, *mut Sink) -> u32;
type CreateFn = unsafe extern "C" fn(
    *const Host,
    *const PluginContext,
    u32,
    *mut Device,
    *mut *mut DeviceState,
    *mut Sink,
) -> Code;

/// The entries of a device type, as a registration holds them.
#[derive(Clone, Copy)]
pub struct DeviceEntries {
    pub(crate) probe: Option<ProbeFn>,
    pub(crate) create: Option<CreateFn>,
    pub(crate) table: &'static DeviceTable,
}

impl DeviceEntries {
    /// The entries of a device type, with the roles that `register_device!` found.
    ///
    /// # Panics
    /// When the type names a type of streams and does not implement [`DeviceStreams`](super::DeviceStreams). In a constant
    /// that is a compile error.
    #[doc(hidden)]
    #[track_caller]
    pub const fn of<R: Registered>() -> DeviceEntries {
        assert!(
            !R::HAS_STREAM_TYPE || R::STREAMS.create_stream.is_some(),
            "`DeviceKind::Stream` is a type of streams, but the device type does not implement `DeviceStreams`: \
             implement it, or write `type Stream = NoStreams;`"
        );
        DeviceEntries {
            probe: Some(entries::probe::<R::Device>),
            create: Some(entries::create::<R>),
            table: Table::<R>::TABLE,
        }
    }
}

#[cfg(test)]
#[path = "roles_tests.rs"]
mod tests;
