//! Launches a kernel's call on its stream.
//!
//! `compute` runs on a thread of the host: it checks shapes, allocates outputs, and enqueues
//! launches, which capture addresses and sizes. The host frees buffers in stream order, so they
//! stay valid until the launches are done. Nothing here waits.

use crate::{
    compile::{Arguments, Entry},
    device::{Cuda, Facts, Stream},
};
use tenon_sdk::{
    DType, KernelError,
    abi::{MemoryKind, Slot},
    author::{ComputeContext, CreateContext, VarGuard},
    device::author::{device_of, stream_of},
};

/// Blocks and threads of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// Blocks, in three dimensions.
    pub blocks: [u32; 3],
    /// Threads of a block, in three dimensions.
    pub threads: [u32; 3],
    /// Bytes of dynamic shared memory of a block.
    pub shared: u32,
    /// Whether blocks loop over the work, so that any number of blocks is correct: at most as many
    /// are launched as run at once, since further ones would start when the others have done nearly
    /// everything.
    pub loops: bool,
}

/// Default number of threads of a block.
pub const THREADS: u32 = 256;

/// Most threads, and most blocks, that run on a multiprocessor at once.
const THREADS_AT_ONCE: u32 = 2048;
const BLOCKS_AT_ONCE: u32 = 32;

/// Most blocks of a grid in its first dimension.
const MOST_BLOCKS: u64 = (1 << 31) - 1;

impl Grid {
    /// A grid of `blocks` blocks with `threads` threads each.
    pub fn new(blocks: u32, threads: u32) -> Grid {
        Grid { blocks: [blocks, 1, 1], threads: [threads, 1, 1], shared: 0, loops: false }
    }

    /// Adds dynamic shared memory.
    #[must_use]
    pub fn shared(self, bytes: u32) -> Grid {
        Grid { shared: bytes, ..self }
    }

    /// Blocks of [`THREADS`] for a grid-stride loop over `items`: no more than fill the GPU.
    pub fn stride(items: u64, facts: &Facts) -> Grid {
        Grid::fill(items.div_ceil(u64::from(THREADS)), THREADS, facts)
    }

    /// Blocks of `threads` threads for a loop over `items`, in which a block takes one item at a
    /// time: no more than fill the GPU.
    pub fn fill(items: u64, threads: u32, facts: &Facts) -> Grid {
        let each = (THREADS_AT_ONCE / threads).clamp(1, BLOCKS_AT_ONCE);
        let full = u64::from(facts.multiprocessors) * u64::from(each);
        Grid { loops: true, ..Grid::new(items.min(full) as u32, threads) }
    }

    /// One block for each of `items` items.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for more than 2^31 - 1.
    pub fn block_each(items: u64, threads: u32) -> Result<Grid, KernelError> {
        if items > MOST_BLOCKS {
            return Err(KernelError::invalid_argument(format!(
                "{items} blocks of threads: expected at most {MOST_BLOCKS}"
            )));
        }
        Ok(Grid::new(items as u32, threads))
    }

    /// Whether the grid has no blocks.
    pub fn is_empty(&self) -> bool {
        self.blocks.contains(&0)
    }
}

/// A tensor in the device's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operand {
    /// Address.
    pub address: u64,
    /// Elements.
    pub elements: u64,
    /// Element type.
    pub dtype: DType,
}

impl Operand {
    fn new(slot: &Slot) -> Result<Operand, KernelError> {
        if slot.memory != MemoryKind::DEVICE {
            return Err(KernelError::internal(format!(
                "expected a tensor in memory kind {}, found one in kind {}",
                MemoryKind::DEVICE.0,
                slot.memory.0
            )));
        }
        Ok(Operand { address: slot.data.addr() as u64, elements: slot.elements, dtype: slot.dtype })
    }

    /// Whether the address is a multiple of `bytes`.
    pub fn is_aligned(&self, bytes: u64) -> bool {
        self.address.is_multiple_of(bytes)
    }
}

/// The device for which a kernel is created.
///
/// # Errors
/// `INTERNAL` when the host gives none.
pub fn device_for<'a>(c: &CreateContext<'a>) -> Result<&'a Cuda, KernelError> {
    if c.device_state().is_null() {
        return Err(KernelError::internal("a kernel of CUDA was given no device"));
    }
    // SAFETY: kernels of this crate are registered for CUDA alone, so that the host gives them an
    // open `Cuda`.
    Ok(unsafe { device_of::<Cuda>(c.device_state()) })
}

/// A kernel's call, which enqueues launches.
pub struct Launch<'a> {
    context: &'a ComputeContext<'a>,
    device: &'a Cuda,
    stream: &'a Stream,
}

impl<'a> Launch<'a> {
    /// Takes device and stream from the call.
    ///
    /// # Errors
    /// `INTERNAL` when the host gives no device or no stream.
    pub fn new(context: &'a ComputeContext<'a>) -> Result<Launch<'a>, KernelError> {
        if context.device_state().is_null() {
            return Err(KernelError::internal("a kernel of CUDA was given no device"));
        }
        // SAFETY: kernels of this crate are registered for CUDA alone, so that the host gives them
        // an open `Cuda` and one of its streams, both alive while the call runs.
        let (device, stream) = unsafe {
            (device_of::<Cuda>(context.device_state()), stream_of::<Cuda>(context.stream()))
        };
        let stream =
            stream.ok_or_else(|| KernelError::internal("a kernel of CUDA was given no stream"))?;
        Ok(Launch { context, device, stream })
    }

    /// The device.
    pub fn device(&self) -> &'a Cuda {
        self.device
    }

    /// Properties of the GPU that kernels adapt to.
    pub fn facts(&self) -> &'a Facts {
        self.device.facts()
    }

    /// The stream of the call.
    pub fn stream(&self) -> &'a Stream {
        self.stream
    }

    /// An input, which must be in the device's memory.
    ///
    /// # Errors
    /// `INTERNAL` when it is in other memory.
    pub fn input(&self, input: usize) -> Result<Operand, KernelError> {
        Operand::new(self.context.slot(input)?)
    }

    /// An output in the device's memory: the planned buffer, or a new one.
    ///
    /// # Errors
    /// As [`Launch::input`]; out of memory.
    pub fn output(&self, output: usize, dims: &[i64]) -> Result<Operand, KernelError> {
        Operand::new(self.context.prepare(output, dims)?)
    }

    /// The value of a variable that the call has locked exclusively, to be written in place, and its
    /// sizes.
    ///
    /// # Errors
    /// It has no value; `INVALID_ARGUMENT` for another element type; as [`Launch::input`].
    pub fn variable(
        &self,
        locked: &mut VarGuard<'_>,
        at: usize,
        dtype: DType,
    ) -> Result<(Operand, Vec<i64>), KernelError> {
        let slot = locked.update(at)?;
        if slot.dtype != dtype {
            return Err(KernelError::invalid_argument(format!(
                "variable {at}: expected {dtype}, found {}",
                slot.dtype
            )));
        }
        // SAFETY: the slot shows a value, with its sizes, that the guard keeps locked.
        let dims = unsafe { slot.shape() }.to_vec();
        Ok((Operand::new(&slot)?, dims))
    }

    /// Device memory for the launches of this call.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` when out of memory.
    pub fn scratch(&self, bytes: usize) -> Result<u64, KernelError> {
        Ok(self.context.scratch(bytes, MemoryKind::DEVICE)?.addr() as u64)
    }

    /// Enqueues a launch.
    ///
    /// # Errors
    /// As [`Entry::launch`].
    ///
    /// # Safety
    /// - Addresses among the arguments come from this call's operands and scratch memory.
    /// - With these arguments and this grid, the entry stays within them.
    pub unsafe fn run<A: Arguments>(
        &self,
        entry: &Entry<A>,
        grid: Grid,
        arguments: A,
    ) -> Result<(), KernelError> {
        // SAFETY: the caller guarantees that the addresses come from this call, and that the entry
        // stays within them; the host keeps operands until what is enqueued is done.
        unsafe { entry.launch(self.stream, grid, arguments) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        Facts { multiprocessors: 10, ..Facts::default() }
    }

    #[test]
    fn grids_fill_the_gpu_and_no_more() {
        let grid = |items, threads| Grid::fill(items, threads, &facts()).blocks;
        assert_eq!(grid(3, 32), [3, 1, 1]);
        assert_eq!(grid(1 << 40, 32), [320, 1, 1]);
        assert_eq!(grid(1 << 40, 256), [80, 1, 1]);
        assert_eq!(grid(1 << 40, 1024), [20, 1, 1]);
        assert_eq!(Grid::stride(257, &facts()).blocks, [2, 1, 1]);
        assert!(Grid::stride(0, &facts()).is_empty());
    }
}
