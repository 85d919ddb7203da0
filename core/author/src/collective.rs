//! Collective operations: calls of a kernel on several devices, of this process and of others, that exchange tensors.

use crate::{compute::ComputeContext, kept::Kept, links::host_link};
use std::{ffi::c_void, ptr::NonNull, slice, time::Duration};
use tenon_abi::{
    Code, CollectiveJoin, CollectiveKind, CollectiveReady, DType, ExtCollectives, FunctionDone,
    KeptTensor, Str, ext_tags, layout::EXT_COLLECTIVES,
};
use tenon_framework::{KernelError, plugin::guard};

/// How a call takes part in a collective operation. All members give the same but for `is_source`.
#[derive(Debug, Clone)]
pub struct CollectiveSpec<'s> {
    /// The kind of operation.
    pub kind: CollectiveKind,
    /// The group of devices.
    pub group_key: i32,
    /// The number of its devices.
    pub group_size: i32,
    /// The operation within the group.
    pub instance_key: i32,
    /// Element type of the values.
    pub dtype: DType,
    /// Dimensions of the values.
    pub dims: &'s [i64],
    /// Whether the call has the value that a broadcast gives to all.
    pub is_source: bool,
    /// The time after which the operation fails; `None` for none of its own.
    pub timeout: Option<Duration>,
}

/// The place of a call among the members of a collective operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CollectivePlace {
    /// Its place.
    pub place: u32,
    /// The number of members.
    pub size: u32,
    /// The place of the source of a broadcast, else 0.
    pub source: u32,
}

/// The part of a call in a collective operation ([`ComputeContext::join_collective`]). Dropping it gives nothing up:
/// that does [`Collective::abort`].
pub struct Collective {
    raw: NonNull<tenon_abi::Collective>,
    link: &'static ExtCollectives,
}

// SAFETY: the host's services for collective operations take any thread.
unsafe impl Send for Collective {}
// SAFETY: as above.
unsafe impl Sync for Collective {}

impl ComputeContext<'_> {
    /// Joins a collective operation of the call's step. `ready` gets the place of the call once all members have
    /// joined, or the error; it runs once, on any thread, perhaps before this returns.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` in a host without collective operations, as in the process of an isolated plugin; a description
    /// that the host refuses. `ready` is then not called.
    pub fn join_collective<F>(
        &self,
        spec: &CollectiveSpec<'_>,
        ready: F,
    ) -> Result<Collective, KernelError>
    where
        F: FnOnce(Result<CollectivePlace, KernelError>) + Send + 'static,
    {
        let what = "collective operations";
        let link: &'static ExtCollectives =
            host_link(ext_tags::COLLECTIVES, &EXT_COLLECTIVES, what)?;
        let timeout = spec.timeout.map_or(0, |it| u64::try_from(it.as_nanos()).unwrap_or(u64::MAX));
        let join = CollectiveJoin {
            struct_size: size_of::<CollectiveJoin>() as u32,
            kind: spec.kind,
            group_key: spec.group_key,
            group_size: spec.group_size,
            instance_key: spec.instance_key,
            dtype: spec.dtype,
            is_source: u32::from(spec.is_source),
            rank: spec.dims.len() as u32,
            dims: spec.dims.as_ptr(),
            timeout_ns: timeout,
        };
        let data: *mut F = Box::into_raw(Box::new(ready));
        let entry = link.join.expect("the host fills every entry");
        let run = CollectiveReady { run: Some(run_ready::<F>) };
        // SAFETY: the record of this call, a description that is readable until the entry returns, and data that
        // `run_ready` takes once.
        let raw = unsafe { entry(self.raw().record, &join, run, data.cast()) };
        match NonNull::new(raw) {
            Some(raw) => Ok(Collective { raw, link }),
            None => {
                // SAFETY: without a place the host does not call `ready`: the box is still this function's.
                drop(unsafe { Box::from_raw(data) });
                Err(KernelError::invalid_argument("the host refuses to join the collective"))
            }
        }
    }
}

/// # Safety
/// `data` is the boxed `F` of this join, and this is the only time that it runs.
unsafe extern "C" fn run_ready<F>(
    data: *mut c_void,
    code: Code,
    message: Str,
    place: u32,
    size: u32,
    source: u32,
) where
    F: FnOnce(Result<CollectivePlace, KernelError>),
{
    // SAFETY: as the caller promises.
    let ready: Box<F> = unsafe { Box::from_raw(data.cast()) };
    let result = if code.is_ok() {
        Ok(CollectivePlace { place, size, source })
    } else {
        // SAFETY: the message is readable during this call.
        Err(KernelError::new(code, unsafe { text(message) }))
    };
    // A panic has nowhere to go: what `ready` holds is dropped, which fails a call that it was to complete.
    let _ = guard(|| ready(result));
}

/// # Safety
/// The text is readable.
unsafe fn text(message: Str) -> String {
    // SAFETY: as the caller promises.
    unsafe { String::from_utf8_lossy(message.bytes()).into_owned() }
}

/// # Safety
/// `data` is the boxed `F` of this request, and this is the only time that it runs; `results` shows `count`
/// references, which belong to this plugin from now on.
unsafe extern "C" fn run_arrived<F: FnOnce(Result<Kept, KernelError>)>(
    data: *mut c_void,
    code: Code,
    message: Str,
    results: *const *mut KeptTensor,
    count: usize,
) {
    // SAFETY: as the caller promises.
    let arrived: Box<F> = unsafe { Box::from_raw(data.cast()) };
    let raw: &[*mut KeptTensor] = match results.is_null() {
        true => &[],
        // SAFETY: the host shows as many references during this call, and gives them away.
        false => unsafe { slice::from_raw_parts(results, count) },
    };
    // SAFETY: references that belong to this plugin from now on.
    let kept: Vec<Kept> = raw.iter().filter_map(|&raw| unsafe { Kept::from_raw(raw) }).collect();
    let result = match (code.is_ok(), kept.into_iter().next()) {
        (true, Some(kept)) => Ok(kept),
        (true, None) => Err(KernelError::internal("the host gave no tensor of a collective")),
        // SAFETY: the message is readable during this call.
        (false, _) => Err(KernelError::new(code, unsafe { text(message) })),
    };
    // A panic has nowhere to go, as above.
    let _ = guard(|| arrived(result));
}

impl Collective {
    /// Sends a tensor in host memory to the member at a place, under a number that this one has not used for it. Only
    /// after `ready`. Never blocks.
    ///
    /// # Errors
    /// The operation has failed, or the group has no member at that place.
    pub fn send(&self, to: u32, number: u64, tensor: &Kept) -> Result<(), KernelError> {
        let entry = self.link.send.expect("the host fills every entry");
        // SAFETY: a place and a tensor that are kept until the entry returns.
        let code = unsafe { entry(self.raw.as_ptr(), to, number, tensor.raw()) };
        if code.is_ok() {
            return Ok(());
        }
        Err(KernelError::new(code, format!("cannot send a tensor to member {to} of a collective")))
    }

    /// Takes the tensor that a member sends to this one under a number; it may have one dimension that counts the
    /// elements. `arrived` runs once, on any thread, perhaps before this returns. Only after `ready`. Never blocks.
    pub fn recv<F>(&self, from: u32, number: u64, arrived: F)
    where
        F: FnOnce(Result<Kept, KernelError>) + Send + 'static,
    {
        let entry = self.link.recv.expect("the host fills every entry");
        let data = Box::into_raw(Box::new(arrived)).cast();
        let done = FunctionDone { run: Some(run_arrived::<F>) };
        // SAFETY: a place that is kept until the entry returns, and data that `run_arrived` takes once.
        unsafe { entry(self.raw.as_ptr(), from, number, done, data) }
    }

    /// Fails the operation: what waits, here and at other members of the step, gets the error. Only the first error
    /// counts.
    pub fn abort(&self, error: &KernelError) {
        let entry = self.link.abort.expect("the host fills every entry");
        // SAFETY: a place that is kept, and a readable message.
        unsafe { entry(self.raw.as_ptr(), error.code, Str::new(&error.message)) }
    }
}

impl Drop for Collective {
    fn drop(&mut self) {
        let entry = self.link.release.expect("the host fills every entry");
        // SAFETY: the place of this value, which is given back once.
        unsafe { entry(self.raw.as_ptr()) }
    }
}

impl std::fmt::Debug for Collective {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Collective({:p})", self.raw)
    }
}
