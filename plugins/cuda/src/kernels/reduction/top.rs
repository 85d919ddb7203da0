//! `TopK`, `TopKV2`: the greatest elements of rows, in descending order, equal ones by index.

use super::NUMBERS;
use crate::{
    compile::{Entry, Source, Variant},
    kernels::dtype::name_of,
    launch::{Grid, Launch, Operand, device_for},
    source,
};
use tenon_sdk::{Code, DType, KernelError, geometry::RankedRows, prelude::*, reg::Numerics};

static SOURCE: Source = source!("top.cu");

pub(super) fn variants() -> Vec<Variant> {
    NUMBERS.iter().filter_map(|element| variant(*element).ok()).collect()
}

fn variant(element: DType) -> Result<Variant, KernelError> {
    Ok(Variant::new(&SOURCE).define("DTYPE", name_of(element)?))
}

/// Pairs that a block sorts in shared memory, as in the source.
const TILE: u32 = 2048;

/// Fewest elements of a part.
const PART: u64 = 4096;

/// `Top` in the source.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Top {
    len: u32,
    k: u32,
    padded: u32,
    parts: u32,
    candidates: u32,
    size: u32,
}

/// The number of parts of each of `rows`: enough to fill the GPU, with at least `8 k` elements in
/// each.
fn parts([rows, len, k]: [u64; 3], multiprocessors: u32) -> u32 {
    let wanted = (4 * u64::from(multiprocessors)) / rows.max(1);
    wanted.min(len / PART.max(8 * k)).clamp(1, 1 << 16) as u32
}

/// Number of elements that the lanes of a warp examine one after the other, for each of the
/// greatest.
const LOOKS: u64 = 256;

/// Whether a warp finds the greatest elements of a row sooner than a block: by examining fewer
/// elements than a block executes instructions to select and to sort.
fn is_short(len: u64, k: u64) -> bool {
    len.div_ceil(32).saturating_mul(k) <= LOOKS
}

/// Number of threads for about eight elements each.
pub(super) fn threads_of(len: u64) -> u32 {
    (len / 8).next_power_of_two().clamp(64, 512) as u32
}

struct TopK {
    /// `None`: the second input gives it.
    k: Option<i64>,
    /// Bytes of a key.
    key: u64,
    short: Entry<(u64, u64, u64, Top, u64)>,
    few: Entry<(u64, u64, u64, u64, Top)>,
    many: Entry<(u64, u64, u64, Top)>,
    tiles: Entry<(u64, u64, u32, u64, u64)>,
    step: Entry<(u64, u64, u32, u64, u64, u64)>,
    write: Entry<(u64, u64, u64, u64, Top, u64)>,
}

/// Operands of a call.
struct Call<'a> {
    launch: Launch<'a>,
    x: Operand,
    values: Operand,
    indices: Operand,
    rows: u64,
}

impl TopK {
    /// Uses a warp for each row.
    fn run_short(&self, call: &Call<'_>, top: Top) -> Result<(), KernelError> {
        let Call { launch, x, values, indices, rows } = call;
        let grid = Grid::stride(rows.saturating_mul(32), launch.facts());
        let arguments = (values.address, indices.address, x.address, top, *rows);
        // SAFETY: a row has at least `k` elements, and both outputs `k` for each.
        unsafe { launch.run(&self.short, grid, arguments) }
    }

    /// Uses a block for each part of each row, then one for each row.
    fn run_few(&self, call: &Call<'_>, top: Top) -> Result<(), KernelError> {
        let Call { launch, x, values, indices, rows } = call;
        let bytes = top.padded * (self.key as u32 + 4);
        let [values, indices] = [values.address, indices.address];
        let mut list = 0;
        let mut last = top;
        let mut len = u64::from(top.len);
        if top.parts > 1 {
            // Fits u32, because a part has eight times as many elements.
            let candidates = top.parts * top.k;
            list = launch.scratch(bytes_of(*rows, candidates.into(), 4)?)?;
            let grid = Grid::block_each(
                rows.saturating_mul(top.parts.into()),
                threads_of(len / u64::from(top.parts)),
            )?;
            // SAFETY: the list has room for `k` pairs of each part of each row, and a part has more
            // elements.
            unsafe {
                let arguments = (values, indices, x.address, list, top);
                launch.run(&self.few, grid.shared(bytes), arguments)?;
            }
            last = Top { parts: 1, candidates, ..top };
            len = candidates.into();
        }
        let grid = Grid::block_each(*rows, threads_of(len))?.shared(bytes);
        // SAFETY: a row has at least `k` elements, and both outputs `k` for each.
        unsafe { launch.run(&self.few, grid, (values, indices, x.address, list, last)) }
    }

    /// Sorts pairs in device memory.
    fn run_many(&self, call: &Call<'_>, top: Top) -> Result<(), KernelError> {
        let Call { launch, x, values, indices, rows } = call;
        let count = rows.saturating_mul(top.padded.into());
        let keys = launch.scratch(bytes_of(*rows, top.padded.into(), self.key)?)?;
        let places = launch.scratch(bytes_of(*rows, top.padded.into(), 4)?)?;
        let select = Grid::block_each(*rows, threads_of(top.len.into()))?;
        let tiles = Grid::block_each(count / u64::from(TILE), 512)?;
        let pairs = Grid::stride(count / 2, launch.facts());
        let sizes = (TILE.ilog2() + 1..=top.padded.ilog2()).map(|bits| 1u64 << bits);
        let tile = u64::from(TILE);
        // SAFETY: keys and places have `padded` pairs for each row, which are whole tiles.
        unsafe {
            launch.run(&self.many, select, (keys, places, x.address, top))?;
            launch.run(&self.tiles, tiles, (keys, places, top.padded, 2, tile))?;
            for size in sizes {
                let mut stride = size / 2;
                while stride >= tile {
                    let step = (keys, places, top.padded, count, size, stride);
                    launch.run(&self.step, pairs, step)?;
                    stride /= 2;
                }
                launch.run(&self.tiles, tiles, (keys, places, top.padded, size, size))?;
            }
            let grid = Grid::stride(values.elements, launch.facts());
            let arguments = (values.address, indices.address, x.address, places, top, *rows);
            launch.run(&self.write, grid, arguments)
        }
    }
}

/// Bytes of `each` elements of `size` bytes for each row.
fn bytes_of(rows: u64, each: u64, size: u64) -> Result<usize, KernelError> {
    let bytes = rows.checked_mul(each).and_then(|count| count.checked_mul(size));
    bytes.and_then(|bytes| usize::try_from(bytes).ok()).ok_or_else(|| {
        let message = format!("no memory for {each} elements of each of {rows} rows");
        KernelError::new(Code::RESOURCE_EXHAUSTED, message)
    })
}

impl Kernel for TopK {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let element = c.input_types()[0];
        let module = device_for(c)?.modules().get(&variant(element)?)?;
        let key = if element.size() == Some(8) { 8 } else { 4 };
        // SAFETY: the entries of these names take addresses, numbers as wide as these, and `Top`,
        // whose size a test compares.
        unsafe {
            Ok(TopK {
                k: c.attr("k").ok(),
                key,
                short: module.entry("top_short")?,
                few: module.entry("top_few")?,
                many: module.entry("top_many")?,
                tiles: module.entry("sort_tiles")?,
                step: module.entry("sort_step")?,
                write: module.entry("top_write")?,
            })
        }
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let k = self.k.map_or_else(|| c.integer(1, "k"), Ok)?;
        let (rows, dims) = RankedRows::greatest(c.dims(0), k)?;
        let launch = Launch::new(c)?;
        let x = launch.input(0)?;
        let (values, indices) = (launch.output(0, &dims)?, launch.output(1, &dims)?);
        if values.elements == 0 {
            return Ok(());
        }
        let (len, k, count) = (rows.len as u64, k as u64, rows.count as u64);
        let padded = k.next_power_of_two();
        if padded > 1 << 31 {
            return Err(KernelError::unimplemented(format!(
                "CUDA finds at most 2147483648 of the greatest elements, asked for {k}"
            )));
        }
        let few = padded <= u64::from(TILE);
        let parts = if few { parts([count, len, k], launch.facts().multiprocessors) } else { 1 };
        let (size, short) = (indices.dtype.size().unwrap_or(0) as u32, is_short(len, k));
        let (len, k, padded) = (len as u32, k as u32, padded as u32);
        let top = Top { len, k, padded, parts, candidates: 0, size };
        let call = Call { launch, x, values, indices, rows: count };
        match (short, few) {
            (true, _) => self.run_short(&call, top),
            (false, true) => self.run_few(&call, top),
            (false, false) => self.run_many(&call, top),
        }
    }
}

register_kernel!("TopK" on "CUDA": TopK, types = ("T", NUMBERS), numerics = Numerics::EXACT);
register_kernel!("TopKV2" on "CUDA": TopK, types = ("T", NUMBERS), host_memory = &["k"],
    numerics = Numerics::EXACT);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_fill_the_gpu_and_have_more_than_k() {
        assert_eq!(size_of::<Top>(), 24);
        assert_eq!(parts([1, 1 << 20, 10], 100), 256);
        assert_eq!(parts([1, 1 << 24, 10], 100), 400);
        assert_eq!(parts([1, 1 << 20, 2048], 100), 64);
        assert_eq!(parts([1000, 1 << 20, 10], 100), 1);
        assert_eq!(parts([1, 100, 10], 100), 1);
        assert!(is_short(64, 8) && is_short(1000, 5) && is_short(8192, 1) && is_short(1, 1));
        assert!(!is_short(1000, 9) && !is_short(8193, 1) && !is_short(u64::MAX, u64::MAX));
        assert_eq!((threads_of(1), threads_of(1000), threads_of(1 << 20)), (64, 128, 512));
    }
}
