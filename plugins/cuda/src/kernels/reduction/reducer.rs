//! The entry points of `reduce.cu` for one fold, and their launches.

use super::plan::{Columns, Dims, Layout, Parts, Shape, Split, THREADS};
use crate::{
    compile::{Entry, Module, Source, Variant},
    kernels::{dtype::name_of, strided::Strided},
    launch::{Grid, Launch, Operand, device_for},
    source,
};
use std::sync::Arc;
use tenon_sdk::{Code, DType, KernelError, author::CreateContext};

static SOURCE: Source = source!("reduce.cu");

/// A reduction of elements: the fold, and the types of elements and results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::kernels) struct Reduction<'a> {
    /// Name of a template in `fold.cuh`, which is the name of the op.
    pub fold: &'a str,
    /// Type of the elements.
    pub element: DType,
    /// The type of the indices that a search yields.
    pub index: Option<DType>,
}

impl Reduction<'_> {
    /// The variant to compile.
    pub fn variant(&self) -> Result<Variant, KernelError> {
        let element = name_of(self.element)?;
        let arguments = match self.index {
            Some(index) => format!("{element}, {}", name_of(index)?),
            None => element.to_owned(),
        };
        let fold = format!("{}<{arguments}>", self.fold);
        Ok(Variant::new(&SOURCE).define("DTYPE", element).define("FOLD", fold))
    }

    /// Bytes of an element.
    pub fn size(&self) -> Result<u64, KernelError> {
        let size = self.element.size().filter(|size| *size > 0);
        size.map(|size| size as u64)
            .ok_or_else(|| KernelError::internal("an element without a size"))
    }

    /// Bytes of a fold's state.
    pub fn state_bytes(&self) -> Result<u64, KernelError> {
        let element = self.size()?;
        let integer = !matches!(
            self.element,
            DType::HALF | DType::BFLOAT16 | DType::FLOAT | DType::DOUBLE | DType::BOOL
        );
        let computed =
            if integer || self.element == DType::BOOL { element } else { element.max(4) };
        Ok(match self.fold {
            "Moments" => 16,
            // A value and a 32-bit index.
            _ if self.index.is_some() => {
                if computed == 8 {
                    16
                } else {
                    8
                }
            }
            "Mean" if integer => 8,
            _ => computed,
        })
    }
}

type Strides<D> = Entry<(u64, u64, u64, Parts, Strided<D, 1>, Strided<D, 1>)>;

/// A compiled reduction.
pub(in crate::kernels) struct Reducer {
    size: u64,
    state_bytes: u64,
    lanes: Entry<(u64, u64, u64, u64, u32)>,
    blocks: Entry<(u64, u64, u64, u64, u64, u32)>,
    columns: [Entry<(u64, u64, u64, Columns)>; 2],
    strided: [Strides<u32>; 2],
    strided_wide: [Strides<u64>; 2],
    merge: Entry<(u64, u64, u64, u32, u64, u32)>,
}

impl Reducer {
    /// Compiles a reduction.
    ///
    /// # Errors
    /// As [`crate::compile::Modules::get`].
    pub fn new(c: &CreateContext<'_>, reduction: Reduction<'_>) -> Result<Reducer, KernelError> {
        let (size, state_bytes) = (reduction.size()?, reduction.state_bytes()?);
        let module: Arc<Module> = device_for(c)?.modules().get(&reduction.variant()?)?;
        // SAFETY: the entry points of these names in `reduce.cu` take addresses and counts of 64
        // bits, parts and lanes of 32, and structs whose layouts tests compare.
        unsafe {
            Ok(Reducer {
                size,
                state_bytes,
                lanes: module.entry("reduce_lanes")?,
                blocks: module.entry("reduce_blocks")?,
                columns: [module.entry("reduce_columns")?, module.entry("reduce_columns_packed")?],
                strided: [module.entry("reduce_strided")?, module.entry("reduce_strided_blocks")?],
                strided_wide: [
                    module.entry("reduce_strided_wide")?,
                    module.entry("reduce_strided_blocks_wide")?,
                ],
                merge: module.entry("merge")?,
            })
        }
    }

    /// Enqueues the reduction: `x` has the elements of the shape, `y` one for each of its outputs.
    ///
    /// # Errors
    /// Out of scratch memory; the driver's error.
    pub fn run(
        &self,
        launch: &Launch<'_>,
        shape: &Shape,
        x: Operand,
        y: Operand,
    ) -> Result<(), KernelError> {
        self.run_to(launch, shape, x, y.address)
    }

    /// Like [`Reducer::run`], with results at an address with enough room, such as scratch memory.
    ///
    /// # Errors
    /// As [`Reducer::run`].
    pub fn run_to(
        &self,
        launch: &Launch<'_>,
        shape: &Shape,
        x: Operand,
        y: u64,
    ) -> Result<(), KernelError> {
        if shape.outputs == 0 {
            return Ok(());
        }
        let aligned = x.is_aligned(16) && y.is_multiple_of(16);
        let layout = Layout::new(shape, self.size, aligned, launch.facts().multiprocessors)?;
        let parts = layout.parts();
        let partial = if parts > 1 { self.scratch(launch, shape.outputs, parts)? } else { 0 };
        let at = [partial, y, x.address];
        match layout {
            Layout::Lanes(lanes) => return self.run_lanes(launch, shape, at, lanes),
            Layout::Blocks(split) => self.run_blocks(launch, shape, at, split)?,
            Layout::Columns(columns, packed) => self.run_columns(launch, at, columns, packed)?,
            Layout::Strided(parts, dims, blocks) => {
                self.run_strided(launch, at, parts, dims, blocks)?
            }
        }
        if parts > 1 { self.run_merge(launch, shape, at, parts) } else { Ok(()) }
    }

    fn scratch(&self, launch: &Launch<'_>, outputs: u64, parts: u32) -> Result<u64, KernelError> {
        let bytes =
            outputs.checked_mul(u64::from(parts)).and_then(|all| all.checked_mul(self.state_bytes));
        let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok()).ok_or_else(|| {
            let message =
                format!("{parts} parts of each of {outputs} results do not fit in memory");
            KernelError::new(Code::RESOURCE_EXHAUSTED, message)
        })?;
        launch.scratch(bytes)
    }

    fn run_lanes(
        &self,
        launch: &Launch<'_>,
        shape: &Shape,
        [_, y, x]: [u64; 3],
        lanes: u32,
    ) -> Result<(), KernelError> {
        let grid = Grid::stride(shape.outputs.saturating_mul(lanes.into()), launch.facts());
        // SAFETY: the entry reads `outputs * reduced` elements and writes `outputs`.
        unsafe { launch.run(&self.lanes, grid, (y, x, shape.outputs, shape.reduced, lanes)) }
    }

    fn run_blocks(
        &self,
        launch: &Launch<'_>,
        shape: &Shape,
        [partial, y, x]: [u64; 3],
        Split { parts, chunk }: Split,
    ) -> Result<(), KernelError> {
        let blocks = shape.outputs.saturating_mul(parts.into());
        let grid = Grid::block_each(blocks, THREADS as u32)?;
        // SAFETY: the grid has `parts` blocks for each row of `reduced` elements, and where there
        // are several parts, `partial` has room for as many states.
        unsafe { launch.run(&self.blocks, grid, (partial, y, x, shape.reduced, chunk, parts)) }
    }

    fn run_columns(
        &self,
        launch: &Launch<'_>,
        [partial, y, x]: [u64; 3],
        columns: Columns,
        packed: bool,
    ) -> Result<(), KernelError> {
        let blocks = u64::from(columns.outer) * u64::from(columns.tiles) * u64::from(columns.parts);
        let grid = Grid::block_each(blocks, THREADS as u32)?;
        let entry = &self.columns[usize::from(packed)];
        // SAFETY: the grid covers the columns; packs are used only where the rows are whole aligned
        // packs.
        unsafe { launch.run(entry, grid, (partial, y, x, columns)) }
    }

    fn run_strided(
        &self,
        launch: &Launch<'_>,
        [partial, y, x]: [u64; 3],
        parts: Parts,
        dims: Dims,
        blocks: bool,
    ) -> Result<(), KernelError> {
        let all = parts.outputs.saturating_mul(parts.parts.into());
        let grid = if blocks {
            Grid::block_each(all, THREADS as u32)?
        } else {
            Grid::stride(all, launch.facts())
        };
        let kind = usize::from(blocks);
        // SAFETY: kept and reduced dimensions together are those of the input.
        unsafe {
            match dims {
                Dims::Narrow(kept, reduced) => {
                    launch.run(&self.strided[kind], grid, (partial, y, x, parts, kept, reduced))
                }
                Dims::Wide(kept, reduced) => launch.run(
                    &self.strided_wide[kind],
                    grid,
                    (partial, y, x, parts, kept, reduced),
                ),
            }
        }
    }

    fn run_merge(
        &self,
        launch: &Launch<'_>,
        shape: &Shape,
        [partial, y, _]: [u64; 3],
        parts: u32,
    ) -> Result<(), KernelError> {
        // Neighbouring threads read neighbouring states unless there are few results.
        let lanes = if shape.outputs < 1 << 14 { parts.next_power_of_two().min(32) } else { 1 };
        let grid = Grid::stride(shape.outputs.saturating_mul(lanes.into()), launch.facts());
        // SAFETY: the preceding launch wrote `parts * outputs` states.
        unsafe {
            launch.run(&self.merge, grid, (y, partial, shape.outputs, parts, shape.reduced, lanes))
        }
    }
}
