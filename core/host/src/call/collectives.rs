//! Collective operations of kernels: the link [`COLLECTIVES`] of the host's table.

use super::{CallFrame, OVER, functions::PluginEnd};
use crate::{
    collective::{GroupDevice, InstanceKey, Join, Member, Place},
    devices::device_of,
};
use std::{ffi::c_void, ptr, slice, sync::Arc, time::Duration};
use tenon_abi::{
    CallRecord, Code, Collective, CollectiveJoin, CollectiveReady, ExtCollectives, ExtHeader,
    FunctionDone, KeptTensor, MAX_RANK, Str, ext_tags, layout::EXT_COLLECTIVES,
};
use tenon_framework::{KernelError, Tensor, device::base::DeviceBase};

/// The link of the host's table.
pub const COLLECTIVES: ExtCollectives = ExtCollectives {
    header: ExtHeader::new(ext_tags::COLLECTIVES, 1, &EXT_COLLECTIVES),
    join: Some(join_entry),
    send: Some(send_entry),
    recv: Some(recv_entry),
    abort: Some(abort_entry),
    release: Some(release_entry),
};

/// The end of a join on the plugin's side.
struct PluginReady {
    ready: CollectiveReady,
    data: *mut c_void,
}

// SAFETY: the contract of `CollectiveReady` says that it runs on any thread.
unsafe impl Send for PluginReady {}

impl PluginReady {
    fn give(self, result: Result<Place, KernelError>) {
        let Some(run) = self.ready.run else { return };
        match result {
            // SAFETY: the plugin's own function and data.
            Ok(Place { place, size, source }) => unsafe {
                run(self.data, Code::OK, Str::EMPTY, place, size, source);
            },
            // SAFETY: as above; the message lives during the call.
            Err(error) => unsafe {
                run(self.data, error.code, Str::new(&error.message), 0, 0, 0);
            },
        }
    }
}

/// # Safety
/// - `record` meets what [`CallFrame::from_raw`] requires.
/// - `join` is readable with its dimensions; `ready` may be called once with `data`, on any thread.
unsafe extern "C" fn join_entry(
    record: *mut CallRecord,
    join: *const CollectiveJoin,
    ready: CollectiveReady,
    data: *mut c_void,
) -> *mut Collective {
    // SAFETY: the kernel passes its call's record and a readable description.
    let (frame, join) = unsafe { (CallFrame::from_raw(record), join.as_ref()) };
    let (Some(frame), Some(join)) = (frame, join) else { return ptr::null_mut() };
    let ready = PluginReady { ready, data };
    // SAFETY: as many dimensions as the description says.
    let described = unsafe { described(frame, join) };
    let all = frame.env().resources.collectives();
    let member = match described {
        Ok(join) => all.join(join, Box::new(move |place| ready.give(place))),
        Err(error) => {
            frame.set_message(error.code, error.message.as_bytes());
            return ptr::null_mut();
        }
    };
    Arc::into_raw(member).cast_mut().cast()
}

/// What a kernel describes, with the device of its call.
///
/// # Safety
/// - The dimensions of `join` are readable.
unsafe fn described(frame: &CallFrame, join: &CollectiveJoin) -> Result<Join, KernelError> {
    let rank = join.rank as usize;
    if rank > MAX_RANK || rank > 0 && join.dims.is_null() {
        let message =
            format!("a collective of rank {rank}: expected at most {MAX_RANK} dimensions");
        return Err(KernelError::invalid_argument(message));
    }
    // SAFETY: the caller shows `rank` dimensions.
    let dims = if rank == 0 { &[][..] } else { unsafe { slice::from_raw_parts(join.dims, rank) } };
    // SAFETY: the device of a running call is open.
    let device = unsafe { device_of(frame.call().device) };
    let device = device.ok_or_else(|| {
        KernelError::invalid_argument("a collective needs a device: expected a node of a session")
    })?;
    let call = frame.call();
    Ok(Join {
        key: InstanceKey {
            step: frame.env().step.step_id,
            group: join.group_key,
            instance: join.instance_key,
            iteration: (call.frame, call.iteration),
        },
        size: join.group_size,
        kind: join.kind,
        device: GroupDevice {
            name: device.full_name().to_owned(),
            device_type: device.name().device_type.clone().unwrap_or_default(),
            incarnation: device.incarnation(),
        },
        dtype: join.dtype,
        dims: dims.to_vec(),
        is_source: join.is_source == 1,
        timeout: (join.timeout_ns > 0).then(|| Duration::from_nanos(join.timeout_ns)),
    })
}

/// # Safety
/// - `collective` is null or came from [`join_entry`] and has not been released.
unsafe fn member<'a>(collective: *mut Collective) -> Option<&'a Member> {
    // SAFETY: null, or a member whose owner has not released it, as the caller guarantees.
    unsafe { collective.cast_const().cast::<Member>().as_ref() }
}

/// # Safety
/// - `collective` meets what [`member`] requires; `tensor` is null or a kept tensor.
unsafe extern "C" fn send_entry(
    collective: *mut Collective,
    to: u32,
    number: u64,
    tensor: *const KeptTensor,
) -> Code {
    // SAFETY: as the caller guarantees; a kept tensor is a boxed `Tensor`.
    let (member, tensor) = unsafe { (member(collective), tensor.cast::<Tensor>().as_ref()) };
    let (Some(member), Some(tensor)) = (member, tensor) else { return Code::INVALID_ARGUMENT };
    match member.send(to, number, tensor.clone()) {
        Ok(()) => Code::OK,
        Err(error) => {
            let code = error.code;
            member.fail(error);
            code
        }
    }
}

/// # Safety
/// - `collective` meets what [`member`] requires.
/// - `done` may be called once with `data`, on any thread.
unsafe extern "C" fn recv_entry(
    collective: *mut Collective,
    from: u32,
    number: u64,
    done: FunctionDone,
    data: *mut c_void,
) {
    let end = PluginEnd::new(done, data);
    // SAFETY: as the caller guarantees.
    let Some(member) = (unsafe { member(collective) }) else {
        let message = "expected the place of a call in a collective, found null";
        return end.give(Err(KernelError::new(OVER, message)));
    };
    let arrived = move |tensor: Result<Tensor, _>| end.give(tensor.map(|tensor| vec![tensor]));
    member.recv(from, number, Box::new(arrived));
}

/// # Safety
/// - `collective` meets what [`member`] requires; `message` is readable.
unsafe extern "C" fn abort_entry(collective: *mut Collective, code: Code, message: Str) {
    // SAFETY: as the caller guarantees.
    let (member, message) = unsafe { (member(collective), message.bytes()) };
    if let Some(member) = member {
        member.fail(KernelError::new(code, String::from_utf8_lossy(message)));
    }
}

/// # Safety
/// - `collective` is null or came from [`join_entry`]; it is not used any more.
unsafe extern "C" fn release_entry(collective: *mut Collective) {
    if !collective.is_null() {
        // SAFETY: a member from `join_entry`, whose owner gives it back.
        drop(unsafe { Arc::from_raw(collective.cast_const().cast::<Member>()) });
    }
}
