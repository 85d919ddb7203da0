//! Direct access of GPUs to the memory of another GPU.
//!
//! The driver performs copies between GPUs: directly where access is granted, else through the
//! host. Pools grant access separately (`cuMemPoolSetAccess`); access between contexts
//! (`cuCtxEnablePeerAccess`) does not apply to pool memory, and the plugin uses no other. Access is
//! requested when two GPUs copy for the first time, in both directions, since the driver chooses
//! whose engine copies. Where they cannot access each other, or the driver refuses, copies still
//! work, and the request is not repeated.

use super::context::Context;
use cudarc::driver::sys::{self, CUdevice, CUmemAccess_flags, CUmemAccessDesc, CUmemoryPool};
use std::{
    collections::BTreeMap,
    ffi::c_int,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};
use tenon_sdk::{KernelError, abi::LogLevel, author::log};

#[derive(Clone, Copy)]
struct RawPool(CUmemoryPool);

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for RawPool {}
// SAFETY: as for `Send`.
unsafe impl Sync for RawPool {}

/// Which GPUs may access the memory of one GPU.
#[derive(Default)]
pub(super) struct Leave {
    pool: OnceLock<RawPool>,
    /// By accessing GPU: whether access was granted.
    given: Mutex<BTreeMap<CUdevice, bool>>,
}

impl Leave {
    /// Sets the pool to which access is granted.
    pub fn set_pool(&self, pool: CUmemoryPool) {
        let _ = self.pool.set(RawPool(pool));
    }

    fn given(&self) -> MutexGuard<'_, BTreeMap<CUdevice, bool>> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Grants two GPUs access to each other's memory where possible.
///
/// # Errors
/// `UNAVAILABLE` when one of them is lost, or found to be lost.
pub(super) fn connect(one: &Arc<Context>, other: &Arc<Context>) -> Result<(), KernelError> {
    open(one, other)?;
    open(other, one)
}

fn open(owner: &Context, reader: &Context) -> Result<(), KernelError> {
    let mut given = owner.leave().given();
    if given.contains_key(&reader.device()) {
        return Ok(());
    }
    let may = match give(owner, reader) {
        Err(_) if owner.is_lost() => return Err(owner.loss()),
        Err(error) => {
            let (from, to) = (owner.facts().ordinal, reader.facts().ordinal);
            let what = format!(
                "CUDA:{to} does not get at memory of CUDA:{from}, copies go by the host: {}",
                error.message
            );
            log(LogLevel::WARN, &what);
            false
        }
        Ok(may) => may,
    };
    given.insert(reader.device(), may);
    Ok(())
}

fn give(owner: &Context, reader: &Context) -> Result<bool, KernelError> {
    let Some(RawPool(pool)) = owner.leave().pool.get().copied() else { return Ok(false) };
    let mut can: c_int = 0;
    // SAFETY: the devices are open; the result pointer is valid for writes.
    let ask = || unsafe { sys::cuDeviceCanAccessPeer(&mut can, reader.device(), owner.device()) };
    owner.call("cuDeviceCanAccessPeer", ask)?;
    if can == 0 {
        return Ok(false);
    }
    // SAFETY: a plain struct of numbers, for which zero is valid.
    let mut access: CUmemAccessDesc = unsafe { std::mem::zeroed() };
    access.location.type_ = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = reader.device();
    access.flags = CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    // SAFETY: the pool of an open device, one filled description.
    owner.call("cuMemPoolSetAccess", || unsafe { sys::cuMemPoolSetAccess(pool, &access, 1) })?;
    Ok(true)
}
