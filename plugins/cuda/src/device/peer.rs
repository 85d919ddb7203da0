//! Which GPUs reach the memory of another one directly.
//!
//! A copy between GPUs is the driver's: it takes the direct way where there is leave, and else goes by the host. Pools
//! give leave of their own (`cuMemPoolSetAccess`); that of contexts (`cuCtxEnablePeerAccess`) does not count for
//! their memory, and there is no other here. Leave is asked for when two GPUs copy for the first time, in both
//! directions, since the driver chooses whose engine copies. Where they cannot reach each other, or the driver
//! refuses, copies work as before, and nobody asks again.

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
// SAFETY: as above.
unsafe impl Sync for RawPool {}

/// Who reaches the memory of one GPU.
#[derive(Default)]
pub(super) struct Leave {
    pool: OnceLock<RawPool>,
    /// By reader: whether it may.
    given: Mutex<BTreeMap<CUdevice, bool>>,
}

impl Leave {
    /// Its memory is this pool's.
    pub fn set_pool(&self, pool: CUmemoryPool) {
        let _ = self.pool.set(RawPool(pool));
    }

    fn given(&self) -> MutexGuard<'_, BTreeMap<CUdevice, bool>> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets two GPUs reach each other's memory where they can.
///
/// # Errors
/// `UNAVAILABLE` when one of them is lost, or found to be.
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
    // SAFETY: devices that are open, a place for the result.
    let ask = || unsafe { sys::cuDeviceCanAccessPeer(&mut can, reader.device(), owner.device()) };
    owner.call("cuDeviceCanAccessPeer", ask)?;
    if can == 0 {
        return Ok(false);
    }
    // SAFETY: plain data of numbers, for which zero is a value.
    let mut access: CUmemAccessDesc = unsafe { std::mem::zeroed() };
    access.location.type_ = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = reader.device();
    access.flags = CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    // SAFETY: the pool of an open device, one filled description.
    owner.call("cuMemPoolSetAccess", || unsafe { sys::cuMemPoolSetAccess(pool, &access, 1) })?;
    Ok(true)
}
