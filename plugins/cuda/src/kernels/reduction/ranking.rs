//! `InTopK`, `InTopKV2`, `NthElement`.

use super::{NUMBERS, top::threads_of};
use crate::{
    compile::{Entry, Source, Variant},
    kernels::dtype::name_of,
    launch::{Grid, Launch, THREADS, device_for},
    source,
};
use tenon_sdk::{DType, KernelError, geometry::RankedRows, prelude::*, reg::Numerics};

static NTH: Source = source!("nth.cu");
static IN_TOP_K: Source = source!("in_top_k.cu");

pub(super) fn variants() -> Vec<Variant> {
    let all = NUMBERS.iter().filter_map(|element| nth(*element).ok());
    all.chain([Variant::new(&IN_TOP_K)]).collect()
}

fn nth(element: DType) -> Result<Variant, KernelError> {
    Ok(Variant::new(&NTH).define("DTYPE", name_of(element)?))
}

struct NthElement {
    reverse: bool,
    nth: Entry<(u64, u64, u32, u32)>,
}

impl Kernel for NthElement {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let module = device_for(c)?.modules().get(&nth(c.input_types()[0])?)?;
        // SAFETY: `nth` takes two addresses and two numbers of 32 bits.
        Ok(NthElement { reverse: c.attr("reverse")?, nth: unsafe { module.entry("nth")? } })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let n = c.integer(1, "n")?;
        let rows = RankedRows::with_place(c.dims(0), n)?;
        let launch = Launch::new(c)?;
        let x = launch.input(0)?;
        let y = launch.output(0, &c.dims(0)[..c.dims(0).len() - 1])?;
        // The rank of the element among the greatest, counted from 1.
        let (len, n) = (rows.len as u32, n as u32);
        let k = if self.reverse { n + 1 } else { len - n };
        let grid = Grid::block_each(y.elements, threads_of(len.into()))?;
        // SAFETY: the grid has a block for each row; `n` is below its length.
        unsafe { launch.run(&self.nth, grid, (y.address, x.address, len, k)) }
    }
}

/// Longest row for lanes of one warp, and elements for each lane of a shorter one, as in the
/// source.
const WARP_ROW: usize = 1024;
const FEW: usize = 8;

struct InTopK {
    /// `None`: the third input gives it.
    k: Option<i64>,
    lanes: Entry<(u64, u64, u64, u32, u64, u64, i64)>,
    blocks: Entry<(u64, u64, u64, u32, u64, u64, i64)>,
}

impl Kernel for InTopK {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let module = device_for(c)?.modules().get(&Variant::new(&IN_TOP_K))?;
        // SAFETY: both entries take three addresses, the bytes of a target, and three numbers of 64
        // bits.
        unsafe {
            Ok(InTopK {
                k: c.attr("k").ok(),
                lanes: module.entry("in_top_k_lanes")?,
                blocks: module.entry("in_top_k_blocks")?,
            })
        }
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let rows = RankedRows::of_predictions(c.dims(0), c.dims(1))?;
        let k = self.k.map_or_else(|| c.integer(2, "k"), Ok)?;
        let launch = Launch::new(c)?;
        let (x, targets) = (launch.input(0)?, launch.input(1)?);
        let y = launch.output(0, c.dims(1))?;
        let size = targets.dtype.size().unwrap_or(0) as u32;
        let (entry, group) = match rows.len <= WARP_ROW {
            true => (&self.lanes, rows.len.div_ceil(FEW).next_power_of_two().min(32) as u32),
            false => (&self.blocks, THREADS),
        };
        let grid = Grid::stride(y.elements.saturating_mul(group.into()), launch.facts());
        let (count, classes) = (rows.count as u64, rows.len as u64);
        // SAFETY: there are `classes` predictions and a target for each row.
        unsafe {
            let arguments = (y.address, x.address, targets.address, size, count, classes, k);
            launch.run(entry, grid, arguments)
        }
    }
}

register_kernel!("NthElement" on "CUDA": NthElement, types = ("T", NUMBERS), host_memory = &["n"],
    numerics = Numerics::EXACT);
register_kernel!("InTopK" on "CUDA": InTopK, numerics = Numerics::EXACT);
register_kernel!("InTopKV2" on "CUDA": InTopK, host_memory = &["k"], numerics = Numerics::EXACT);
