//! Rows of a matrix, each processed by a few lanes of a warp or by a block: `rows.cuh`.

use crate::{
    compile::{Arguments, Entry, Module},
    device::Facts,
    launch::{Grid, device_for},
};
use std::sync::Arc;
use tenon_sdk::{DType, KernelError, author::CreateContext};

/// Types whose rows are normalised.
pub(super) const FLOATS: &[DType] = &[DType::FLOAT, DType::DOUBLE, DType::HALF, DType::BFLOAT16];

/// Elements of a row that a lane holds, where lanes of a warp process a row: as in the sources.
const FEW: u64 = 8;
/// Lanes of a warp.
const WARP: u64 = 32;
/// Longest row that the registers of a block hold.
const BLOCK_ROW: u64 = 8192;

/// The module of a variant on the device for which a kernel is created.
pub(super) fn module_of(
    c: &CreateContext<'_>,
    variant: Result<crate::compile::Variant, KernelError>,
) -> Result<Arc<Module>, KernelError> {
    device_for(c)?.modules().get(&variant?)
}

/// Number of elements in 16 bytes.
pub(super) fn lanes_of(dtype: DType) -> u64 {
    dtype.size().map_or(1, |size| 16 / (size as u64).clamp(1, 16))
}

/// Entry points by the group of threads that processes a row: lanes of a warp or a block, in
/// registers, or a block in several passes; each for single elements and for packs.
pub(super) struct RowEntries<A> {
    /// Elements that a thread of `blocks` holds, and threads of a block of `long`: as in the
    /// sources.
    many: u64,
    threads: u32,
    lanes: [Entry<A>; 2],
    blocks: [Entry<A>; 2],
    long: [Entry<A>; 2],
}

/// The group of threads that processes a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    /// This number of lanes of a warp.
    Lanes(u64),
    /// A block of this number of threads that holds the row.
    Block(u32),
    /// A block that reads the row several times.
    Long,
}

impl Group {
    /// The smallest group that holds a row of `cols` elements, where threads of a block hold `many`
    /// elements each.
    fn of(cols: u64, many: u64) -> Group {
        let threads = |each: u64| cols.div_ceil(each).max(1).next_power_of_two();
        match cols {
            _ if cols <= FEW * WARP => Group::Lanes(threads(FEW)),
            _ if cols <= BLOCK_ROW => Group::Block(threads(many).max(WARP) as u32),
            _ => Group::Long,
        }
    }
}

impl<A: Arguments> RowEntries<A> {
    /// The entry points for a type whose names begin with `name`.
    ///
    /// # Errors
    /// `NOT_FOUND` when the module lacks one of them.
    ///
    /// # Safety
    /// - Each of the entries meets what [`Module::entry`] requires.
    pub unsafe fn new(
        module: &Arc<Module>,
        name: &str,
        dtype: DType,
    ) -> Result<RowEntries<A>, KernelError> {
        let both = |kind: &str| -> Result<[Entry<A>; 2], KernelError> {
            let packed = format!("{name}_{kind}_packed");
            // SAFETY: the caller guarantees that the parameters of each entry are the parts of `A`.
            unsafe { Ok([module.entry(&format!("{name}_{kind}"))?, module.entry(&packed)?]) }
        };
        let (many, threads) = if dtype.size() == Some(8) { (16, 512) } else { (32, 1024) };
        Ok(RowEntries {
            many,
            threads,
            lanes: both("lanes")?,
            blocks: both("blocks")?,
            long: both("long")?,
        })
    }

    /// The entry for `rows` rows of `cols` elements, which are whole aligned packs where `packed`,
    /// and its grid.
    pub fn choose(&self, [rows, cols]: [u64; 2], packed: bool, facts: &Facts) -> (&Entry<A>, Grid) {
        let packed = usize::from(packed);
        match Group::of(cols, self.many) {
            Group::Lanes(lanes) => {
                (&self.lanes[packed], Grid::stride(rows.saturating_mul(lanes), facts))
            }
            Group::Block(threads) => (&self.blocks[packed], Grid::fill(rows, threads, facts)),
            Group::Long => (&self.long[packed], Grid::fill(rows, self.threads, facts)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_get_as_few_threads_as_hold_them() {
        let groups =
            |cols: &[u64], many| cols.iter().map(|it| Group::of(*it, many)).collect::<Vec<_>>();
        let short = [0, 1, 8, 9, 100, 256].map(|cols| Group::of(cols, 32));
        assert_eq!(short, [1, 1, 1, 2, 16, 32].map(Group::Lanes));
        let blocks = groups(&[257, 1024, 1025, 4096, 8192], 32);
        assert_eq!(blocks, [32, 32, 64, 128, 256].map(Group::Block));
        assert_eq!(groups(&[257, 1024, 8192], 16), [32, 64, 512].map(Group::Block));
        assert_eq!(Group::of(8193, 32), Group::Long);
    }
}
