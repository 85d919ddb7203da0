//! Rows of a matrix that a warp or a block takes each: `rows.cuh`.

use crate::{
    compile::{Arguments, Entry, Module},
    device::Facts,
    launch::{Grid, THREADS, device_for},
};
use std::sync::Arc;
use tenon_sdk::{DType, KernelError, author::CreateContext};

/// Types whose rows are normalised.
pub(super) const FLOATS: &[DType] = &[DType::FLOAT, DType::DOUBLE, DType::HALF, DType::BFLOAT16];

/// Longest row that the registers of a block hold.
const BLOCK_ROW: u64 = 8192;
/// Threads that a multiprocessor has at once.
const AT_ONCE: u32 = 2048;

/// The module of a variant on the device that a kernel is made for.
pub(super) fn module_of(
    c: &CreateContext<'_>,
    variant: Result<crate::compile::Variant, KernelError>,
) -> Result<Arc<Module>, KernelError> {
    device_for(c)?.modules().get(&variant?)
}

/// Elements that fill 16 bytes.
pub(super) fn lanes_of(dtype: DType) -> u64 {
    dtype.size().map_or(1, |size| 16 / (size as u64).clamp(1, 16))
}

/// Entry points by who takes a row: a warp or a block in registers, a block in several passes; each for single
/// elements and for packs.
pub(super) struct RowEntries<A> {
    warp_row: u64,
    /// Threads of a block that holds a row, and of one for a longer row: as the sources have them.
    threads: [u32; 2],
    warps: [Entry<A>; 2],
    blocks: [Entry<A>; 2],
    long: [Entry<A>; 2],
}

impl<A: Arguments> RowEntries<A> {
    /// Those for a type whose names begin with `name`; a warp's registers hold rows of up to `warp_row` elements.
    ///
    /// # Errors
    /// `NOT_FOUND` when one is missing.
    ///
    /// # Safety
    /// As for [`Module::entry`].
    pub unsafe fn new(
        module: &Arc<Module>,
        name: &str,
        dtype: DType,
        warp_row: u64,
    ) -> Result<RowEntries<A>, KernelError> {
        let both = |kind: &str| -> Result<[Entry<A>; 2], KernelError> {
            let packed = format!("{name}_{kind}_packed");
            // SAFETY: the caller's promise.
            unsafe { Ok([module.entry(&format!("{name}_{kind}"))?, module.entry(&packed)?]) }
        };
        Ok(RowEntries {
            warp_row,
            threads: if dtype.size() == Some(8) { [512, 512] } else { [THREADS, 1024] },
            warps: both("warps")?,
            blocks: both("blocks")?,
            long: both("long")?,
        })
    }

    /// The one for so many rows of `cols` elements, which are whole aligned packs where `packed`, and its grid.
    pub fn choose(&self, [rows, cols]: [u64; 2], packed: bool, facts: &Facts) -> (&Entry<A>, Grid) {
        let packed = usize::from(packed);
        let full = |threads: u32| {
            let blocks = u64::from(facts.multiprocessors) * u64::from(AT_ONCE / threads);
            Grid::new(rows.min(blocks) as u32, threads)
        };
        let [holds, long] = self.threads;
        match cols {
            _ if cols <= self.warp_row => {
                (&self.warps[packed], Grid::stride(rows.saturating_mul(32), facts))
            }
            _ if cols <= BLOCK_ROW => (&self.blocks[packed], full(holds)),
            _ => (&self.long[packed], full(long)),
        }
    }
}
