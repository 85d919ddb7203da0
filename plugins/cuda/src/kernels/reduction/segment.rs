//! Reductions of the rows of each segment to one row: `Segment*` and `SparseSegment*`, whose ids
//! are sorted, and `UnsortedSegment*`.
//!
//! Sorted ids determine the number of segments and are in host memory, as are the indices of rows;
//! the host computes where each segment begins. Unsorted ids are on the device, where the rows are
//! sorted by them ([`Sorter`]). Nothing reads them before: an id out of range is not refused; its
//! row is left out, as in TensorFlow on a GPU.

use super::{
    NUMBERS,
    reducer::Reduction,
    sort::{Order, Sorter},
};
use crate::{
    compile::{Entry, Source, Variant},
    kernels::{dtype::name_of, upload::Upload},
    launch::{Grid, Launch, Operand, THREADS, device_for},
    source,
};
use tenon_sdk::{Code, DType, KernelError, geometry::SegmentPlan, prelude::*, reg::Numerics};

static SOURCE: Source = source!("segment.cu");

/// Folds in the source.
const FOLDS: &[&str] = &[
    "SegmentSum",
    "SegmentMean",
    "SegmentProd",
    "SegmentMax",
    "SegmentMin",
    "UnsortedSegmentMax",
    "UnsortedSegmentMin",
];

pub(super) fn variants() -> Vec<Variant> {
    let of =
        |fold: &&str| NUMBERS.iter().map(|element| variant(fold, *element)).collect::<Vec<_>>();
    FOLDS.iter().flat_map(of).filter_map(Result::ok).collect()
}

fn variant(fold: &str, element: DType) -> Result<Variant, KernelError> {
    let element = name_of(element)?;
    Ok(Variant::new(&SOURCE).define("DTYPE", element).define("FOLD", format!("{fold}<{element}>")))
}

/// The fold of an op: sums and products are the same for sorted and unsorted ids.
fn fold_of(op: &str) -> &str {
    match op {
        "UnsortedSegmentSum" => "SegmentSum",
        "UnsortedSegmentProd" => "SegmentProd",
        _ => op.strip_prefix("Sparse").unwrap_or(op),
    }
}

/// `Segments` in the source.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Layout {
    segments: u64,
    inner: u64,
    parts: u32,
    tiles: u32,
    width: u32,
    height: u32,
    limit: u32,
    piece: u32,
}

/// Rows per thread, where a segment has that many.
const ROWS: u64 = 4;

/// Rows per thread from which a segment is long, and rows of a piece of a long segment.
const LONG: u64 = 512;
const PIECE: u32 = 1024;

impl Layout {
    /// The layout for rows of `inner` elements in packs of `lanes`.
    fn new([segments, inner, rows]: [u64; 3], lanes: u64, multiprocessors: u32) -> Layout {
        let packs = inner.div_ceil(lanes);
        // Assumes equally long segments, since nothing more is known.
        let average = rows / segments.max(1);
        let width = packs.next_power_of_two().min(32);
        let height = (average / ROWS).next_power_of_two().min(u64::from(THREADS) / width);
        let tiles = packs.div_ceil(width);
        let groups = u64::from(THREADS) / (width * height);
        let blocks = segments.saturating_mul(tiles).div_ceil(groups);
        let wanted = (4 * u64::from(multiprocessors)).div_ceil(blocks.max(1));
        let parts = wanted.min(average / (4 * ROWS * height)).clamp(1, 1 << 16);
        // Segments in parts are split already, whatever their length.
        let limit = if parts > 1 { u64::MAX } else { (LONG * height).max(8 * average) };
        Layout {
            segments,
            inner,
            parts: parts as u32,
            tiles: tiles as u32,
            width: width as u32,
            height: height as u32,
            limit: u32::try_from(limit).unwrap_or(u32::MAX),
            piece: PIECE,
        }
    }

    /// Number of pieces, where a segment may be long.
    fn pieces(&self, order: &Order) -> u64 {
        if order.longest > u64::from(self.limit) { order.count.div_ceil(PIECE.into()) } else { 0 }
    }

    fn grid(&self, launch: &Launch<'_>) -> Grid {
        let tasks = self.segments.saturating_mul(u64::from(self.parts) * u64::from(self.tiles));
        let threads = tasks.saturating_mul(u64::from(self.width * self.height));
        Grid::stride(threads, launch.facts())
    }
}

type Segments = Entry<(u64, u64, u64, u64, u64, Layout)>;
type Pieces = Entry<(u64, u64, u64, u64, Layout)>;

/// The entry points of `segment.cu` for one fold.
pub(super) struct SegmentReducer {
    size: u64,
    state_bytes: u64,
    /// Entries by elements, and by packs.
    segments: [Segments; 2],
    merge: Entry<(u64, u64, u64, Layout)>,
    /// Entries by elements, and by packs.
    pieces: [Pieces; 2],
    merge_pieces: [Segments; 2],
}

impl SegmentReducer {
    pub(super) fn new(
        c: &CreateContext<'_>,
        fold: &str,
        element: DType,
    ) -> Result<SegmentReducer, KernelError> {
        let module = device_for(c)?.modules().get(&variant(fold, element)?)?;
        let like = if fold == "SegmentMean" { "Mean" } else { "Sum" };
        let reduction = Reduction { fold: like, element, index: None };
        // SAFETY: these entries take three to five addresses and a layout, whose size a test
        // compares.
        unsafe {
            Ok(SegmentReducer {
                size: reduction.size()?,
                state_bytes: reduction.state_bytes()?,
                segments: [module.entry("segments")?, module.entry("segments_packed")?],
                merge: module.entry("merge_segments")?,
                pieces: [module.entry("pieces")?, module.entry("pieces_packed")?],
                merge_pieces: [module.entry("merge_pieces")?, module.entry("merge_pieces_packed")?],
            })
        }
    }

    /// Enqueues the reduction: rows of `x` with `inner` elements each, in an order of `order.rows`
    /// rows.
    ///
    /// # Errors
    /// Out of scratch memory; the driver's error.
    ///
    /// # Safety
    /// - The order holds the beginning of each of `segments`, and only rows of `x`.
    /// - `y` has a row for each segment.
    pub(super) unsafe fn run(
        &self,
        launch: &Launch<'_>,
        [x, y]: [Operand; 2],
        [segments, inner]: [u64; 2],
        order: &Order,
    ) -> Result<(), KernelError> {
        let lanes = 16 / self.size;
        let packed = inner.is_multiple_of(lanes) && x.is_aligned(16) && y.is_aligned(16);
        let lanes = if packed { lanes } else { 1 };
        let layout =
            Layout::new([segments, inner, order.count], lanes, launch.facts().multiprocessors);
        let pieces = layout.pieces(order);
        let states = match (layout.parts, pieces) {
            (1, 0) => Some(0),
            (1, pieces) => pieces.checked_mul(inner),
            (parts, _) => y.elements.checked_mul(parts.into()),
        };
        let bytes = states.and_then(|states| states.checked_mul(self.state_bytes));
        let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok()).ok_or_else(|| {
            let message =
                format!("{} parts and {pieces} pieces of {segments} segments", layout.parts);
            KernelError::new(Code::RESOURCE_EXHAUSTED, format!("no memory for {message}"))
        })?;
        let partial = if bytes > 0 { launch.scratch(bytes)? } else { 0 };
        let (at, facts) = (usize::from(packed), launch.facts());
        let Order { begins, rows, .. } = *order;
        // SAFETY: the caller guarantees that the order is of these segments and rows of `x`, and
        // that `y` has a row for each segment; packs are used only for whole aligned rows, and the
        // states of parts or pieces have memory.
        unsafe {
            let arguments = (partial, y.address, x.address, begins, rows, layout);
            launch.run(&self.segments[at], layout.grid(launch), arguments)?;
            if layout.parts > 1 {
                let grid = Grid::stride(y.elements, facts);
                launch.run(&self.merge, grid, (y.address, partial, begins, layout))?;
            }
            if pieces > 0 {
                let grid = Grid::fill(pieces.saturating_mul(layout.tiles.into()), THREADS, facts);
                launch.run(&self.pieces[at], grid, (partial, x.address, begins, rows, layout))?;
                let arguments = (y.address, partial, x.address, begins, rows, layout);
                launch.run(&self.merge_pieces[at], Grid::stride(segments, facts), arguments)?;
            }
        }
        Ok(())
    }
}

/// The beginning of each of `segments` among sorted ids, and the end of the last.
fn begins(ids: &[i64], segments: usize) -> Result<Vec<u32>, KernelError> {
    if u32::try_from(ids.len()).is_err() {
        return Err(KernelError::unimplemented(format!(
            "segment_ids has {} elements: CUDA takes at most {}",
            ids.len(),
            u32::MAX
        )));
    }
    let mut begins = Vec::new();
    begins.try_reserve_exact(segments.saturating_add(1)).map_err(|_| {
        let message = format!("no memory for where {segments} segments begin");
        KernelError::new(Code::RESOURCE_EXHAUSTED, message)
    })?;
    let mut at = 0;
    for segment in 0..segments as i64 {
        begins.push(at as u32);
        at += ids[at..].iter().take_while(|&&id| id == segment).count();
    }
    begins.push(ids.len() as u32);
    Ok(begins)
}

/// Segments of sorted ids, of all rows or of those that indices pick.
struct Sorted {
    is_sparse: bool,
    reducer: SegmentReducer,
    upload: Upload,
}

impl Kernel for Sorted {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let reducer = SegmentReducer::new(c, fold_of(c.op()), c.input_types()[0])?;
        Ok(Sorted { is_sparse: c.op().starts_with("Sparse"), reducer, upload: Upload::new(c)? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (ids, picked);
        let plan = if self.is_sparse {
            (picked, ids) = (c.integers(1)?, c.integers(2)?);
            SegmentPlan::picked(c.dims(0), (c.dims(1), &picked), (c.dims(2), &ids))?
        } else {
            (picked, ids) = (Vec::new(), c.integers(1)?);
            SegmentPlan::sorted(c.dims(0), c.dims(1), &ids)?
        };
        let launch = Launch::new(c)?;
        let (x, y) = (launch.input(0)?, launch.output(0, &plan.output)?);
        if y.elements == 0 {
            return Ok(());
        }
        let segments = plan.output[0] as u64;
        let begins = begins(&ids, segments as usize)?;
        let longest = begins.windows(2).map(|pair| u64::from(pair[1] - pair[0])).max();
        let begins = self.upload.run(&launch, &begins)?;
        let rows = if self.is_sparse { self.upload.run(&launch, &rows(&picked)?)? } else { 0 };
        let (count, longest) = (ids.len() as u64, longest.unwrap_or(0));
        let order = Order { begins, rows, count, longest };
        // SAFETY: the plan has checked ids and indices: segments begin among the ids, and rows are
        // rows of `x`.
        unsafe { self.reducer.run(&launch, [x, y], [segments, plan.inner as u64], &order) }
    }
}

/// Row indices as 32-bit numbers.
fn rows(picked: &[i64]) -> Result<Vec<u32>, KernelError> {
    let short = |&row: &i64| {
        u32::try_from(row).map_err(|_| {
            let message = format!("index {row}: CUDA picks among at most {} rows", u32::MAX);
            KernelError::unimplemented(message)
        })
    };
    picked.iter().map(short).collect()
}

/// Segments of unsorted ids.
struct Unsorted {
    reducer: SegmentReducer,
    sorter: Sorter,
}

impl Kernel for Unsorted {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let reducer = SegmentReducer::new(c, fold_of(c.op()), c.input_types()[0])?;
        Ok(Unsorted { reducer, sorter: Sorter::new(c)? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let segments = c.integer(2, "num_segments")?;
        let plan = SegmentPlan::unsorted(c.dims(0), c.dims(1), segments)?;
        let launch = Launch::new(c)?;
        let (x, ids) = (launch.input(0)?, launch.input(1)?);
        let y = launch.output(0, &plan.output)?;
        if y.elements == 0 {
            return Ok(());
        }
        let segments = segments as u64;
        let order = self.sorter.run(&launch, ids, segments)?;
        // SAFETY: the order has as many rows as there are ids, which are the rows of `x`.
        unsafe { self.reducer.run(&launch, [x, y], [segments, plan.inner as u64], &order) }
    }
}

super::rounding_kernels! {
    "SegmentSum": Sorted, host_memory = &["segment_ids"];
    "SegmentMean": Sorted, host_memory = &["segment_ids"];
    "SegmentProd": Sorted, host_memory = &["segment_ids"];
    "SparseSegmentSum": Sorted, host_memory = &["indices", "segment_ids"];
    "SparseSegmentMean": Sorted, host_memory = &["indices", "segment_ids"];
    "UnsortedSegmentSum": Unsorted, host_memory = &["num_segments"];
    "UnsortedSegmentProd": Unsorted, host_memory = &["num_segments"];
}

/// Registers kernels that yield the same bits in any order.
macro_rules! exact {
    ($($op:literal: $kernel:ty, $types:expr, $host:expr;)*) => {$(
        register_kernel!($op on "CUDA": $kernel, types = ("T", $types), host_memory = $host,
            numerics = Numerics::EXACT);
    )*};
}

exact! {
    "SegmentSum": Sorted, super::INTEGERS, &["segment_ids"];
    "SegmentMean": Sorted, super::INTEGERS, &["segment_ids"];
    "SegmentProd": Sorted, super::INTEGERS, &["segment_ids"];
    "SegmentMax": Sorted, NUMBERS, &["segment_ids"];
    "SegmentMin": Sorted, NUMBERS, &["segment_ids"];
    "SparseSegmentSum": Sorted, super::INTEGERS, &["indices", "segment_ids"];
    "UnsortedSegmentSum": Unsorted, super::INTEGERS, &["num_segments"];
    "UnsortedSegmentProd": Unsorted, super::INTEGERS, &["num_segments"];
    "UnsortedSegmentMax": Unsorted, NUMBERS, &["num_segments"];
    "UnsortedSegmentMin": Unsorted, NUMBERS, &["num_segments"];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_begin_behind_each_other() {
        assert_eq!(begins(&[0, 0, 2, 5], 6).unwrap(), [0, 2, 2, 3, 3, 3, 4]);
        assert_eq!(begins(&[], 0).unwrap(), [0]);
        assert_eq!(begins(&[3], 4).unwrap(), [0, 0, 0, 0, 1]);
    }

    #[test]
    fn the_layout_fits_rows_and_segments() {
        assert_eq!(size_of::<Layout>(), 40);
        let of = |segments, inner, rows| Layout::new([segments, inner, rows], 1, 100);
        let sides = |it: Layout| [it.width, it.height, it.tiles, it.parts];
        assert_eq!(sides(of(1000, 1, 3000)), [1, 1, 1, 1]);
        assert_eq!(sides(of(1000, 100, 3000)), [32, 1, 4, 1]);
        assert_eq!(sides(of(1000, 1, 1 << 20)), [1, 256, 1, 1]);
        assert_eq!(sides(of(1, 1, 1 << 20)), [1, 256, 1, 256]);
        assert_eq!(sides(of(2, 6, 1 << 12)), [8, 32, 1, 4]);
        let pieces =
            |it: Layout, longest| it.pieces(&Order { begins: 0, rows: 0, count: 5000, longest });
        assert_eq!((pieces(of(1000, 1, 5000), 512), pieces(of(1000, 1, 5000), 513)), (0, 5));
        assert_eq!(pieces(of(1, 1, 1 << 20), 1 << 20), 0, "in parts already");
    }
}
