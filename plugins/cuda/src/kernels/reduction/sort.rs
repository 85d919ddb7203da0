//! Sorts rows by their segments, on the device.

use crate::{
    compile::{Entry, Source, Variant},
    launch::{Grid, Launch, Operand, THREADS, device_for},
    source,
};
use tenon_sdk::{Code, KernelError, author::CreateContext};

static SOURCE: Source = source!("sort.cu");

pub(super) fn variants() -> Vec<Variant> {
    vec![Variant::new(&SOURCE)]
}

/// The rows in the order of their segments.
#[derive(Debug, Clone, Copy)]
pub(super) struct Order {
    /// Address of where each segment begins in the order, and where the last ends.
    pub begins: u64,
    /// Address of the row indices; 0: rows are in order.
    pub rows: u64,
    /// Number of rows.
    pub count: u64,
    /// Most rows of any segment.
    pub longest: u64,
}

/// Keys per step of a block, and values of a digit, as in the source.
const TILE: u64 = 2048;
const DIGITS: u64 = 256;

/// Most ids and most segments: their numbers have 31 bits.
const MOST: u64 = i32::MAX as u64;

/// Chunks of keys, with a block for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Chunks {
    count: u32,
    size: u32,
}

impl Chunks {
    /// Chunks of whole tiles, no more than fill the GPU.
    fn new(keys: u64, multiprocessors: u32) -> Chunks {
        let tiles = keys.div_ceil(TILE);
        let size = tiles.div_ceil(u64::from(multiprocessors) * 8).max(1) * TILE;
        Chunks { count: keys.div_ceil(size) as u32, size: size as u32 }
    }
}

/// `Keys` in the source.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Keys {
    keys: u64,
    rows: u64,
}

/// The entry points of `sort.cu`.
pub(super) struct Sorter {
    keys: Entry<(u64, u64, u32, u32, u32)>,
    count: Entry<(u64, u64, u32, u32, u32)>,
    scan: Entry<(u64, u32)>,
    place: Entry<(Keys, u64, u64, u64, u32, u32, u32)>,
    begins: Entry<(u64, u64, u32, u32)>,
}

impl Sorter {
    pub(super) fn new(c: &CreateContext<'_>) -> Result<Sorter, KernelError> {
        let module = device_for(c)?.modules().get(&Variant::new(&SOURCE))?;
        // SAFETY: the entries of these names take addresses, and numbers of 32 bits.
        unsafe {
            Ok(Sorter {
                keys: module.entry("segment_keys")?,
                count: module.entry("count_digits")?,
                scan: module.entry("scan_counts")?,
                place: module.entry("place_digits")?,
                begins: module.entry("segment_begins")?,
            })
        }
    }

    /// Enqueues the sort of rows by their ids; rows with ids outside 0..segments come last and are
    /// in no segment.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` for more than 2^31 - 1 ids or segments; out of scratch memory; the driver's
    /// error.
    pub(super) fn run(
        &self,
        launch: &Launch<'_>,
        ids: Operand,
        segments: u64,
    ) -> Result<Order, KernelError> {
        for (what, found) in [("segment_ids", ids.elements), ("num_segments", segments)] {
            if found > MOST {
                return Err(KernelError::unimplemented(format!(
                    "{what}: CUDA sorts at most {MOST}, found {found}"
                )));
            }
        }
        let (count, last) = (ids.elements as u32, segments as u32);
        let keys = self.sorted(launch, ids, last)?;
        let begins = words(launch, segments + 1)?;
        let grid = Grid::stride(segments + 1, launch.facts());
        // SAFETY: there are `count` keys, and a word for each segment and one more.
        unsafe { launch.run(&self.begins, grid, (begins, keys.keys, count, last))? };
        Ok(Order { begins, rows: keys.rows, count: ids.elements, longest: ids.elements })
    }

    fn sorted(
        &self,
        launch: &Launch<'_>,
        ids: Operand,
        segments: u32,
    ) -> Result<Keys, KernelError> {
        let (count, size) = (ids.elements as u32, ids.dtype.size().unwrap_or(0) as u32);
        let chunks = Chunks::new(ids.elements, launch.facts().multiprocessors);
        let mut from = Keys { keys: words(launch, ids.elements)?, rows: 0 };
        let mut to = [
            Keys { keys: words(launch, ids.elements)?, rows: words(launch, ids.elements)? },
            Keys { keys: from.keys, rows: words(launch, ids.elements)? },
        ];
        let counts = DIGITS * u64::from(chunks.count);
        let table = words(launch, counts)?;
        let grid = Grid::new(chunks.count, THREADS);
        let stride = Grid::stride(ids.elements, launch.facts());
        // SAFETY: keys and rows have `count` words each, the table one for each digit of each
        // chunk.
        unsafe { launch.run(&self.keys, stride, (from.keys, ids.address, size, count, segments))? };
        for shift in (0..u32::BITS - segments.leading_zeros()).step_by(8) {
            // SAFETY: as above; keys are written to other memory than they are read from.
            unsafe {
                launch.run(&self.count, grid, (table, from.keys, count, chunks.size, shift))?;
                launch.run(&self.scan, Grid::new(1, THREADS), (table, counts as u32))?;
                let numbers = (count, chunks.size, shift);
                let arguments =
                    (to[0], from.keys, from.rows, table, numbers.0, numbers.1, numbers.2);
                launch.run(&self.place, grid, arguments)?;
            }
            from = to[0];
            to.swap(0, 1);
        }
        Ok(from)
    }
}

/// Scratch memory for `count` words.
fn words(launch: &Launch<'_>, count: u64) -> Result<u64, KernelError> {
    let bytes = count.checked_mul(4).and_then(|bytes| usize::try_from(bytes).ok());
    let bytes = bytes.ok_or_else(|| {
        KernelError::new(Code::RESOURCE_EXHAUSTED, format!("no memory for {count} words"))
    })?;
    launch.scratch(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_whole_tiles_that_cover_all_keys() {
        for keys in [0, 1, 2048, 2049, 1 << 20, MOST] {
            let Chunks { count, size } = Chunks::new(keys, 132);
            let covered = u64::from(count) * u64::from(size);
            assert!(covered >= keys && covered < keys + u64::from(size), "{keys}");
            assert!(u64::from(size).is_multiple_of(TILE) && count <= 132 * 8, "{keys}");
        }
    }
}
