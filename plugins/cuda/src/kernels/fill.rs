//! `Fill`, `ZerosLike`, `OnesLike`.

use super::dtype::word_of;
use crate::{
    compile::{Entry, Source, Variant},
    launch::{Grid, Launch, device_for},
    source,
};
use tenon_sdk::{DType, KernelError, prelude::*};

static SOURCE: Source = source!("fill.cu");

pub(super) fn variants() -> Vec<Variant> {
    ["u8", "u16", "u32", "u64"].iter().map(|word| variant(word)).collect()
}

fn variant(word: &str) -> Variant {
    Variant::new(&SOURCE).define("T", word)
}

/// Bytes of output that one thread writes at a time.
const PACK: u64 = 16;

fn grid(launch: &Launch<'_>, elements: u64, size: usize) -> Grid {
    Grid::stride((elements * size as u64).div_ceil(PACK), launch.facts())
}

/// `Fill`: the shape is in host memory, the value on the device.
struct Fill {
    size: usize,
    entry: Entry<(u64, u64, u64)>,
}

impl Kernel for Fill {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let (word, size) = word_of(c.attr("T")?)?;
        let module = device_for(c)?.modules().get(&variant(word))?;
        // SAFETY: `fill` takes two addresses and a count.
        Ok(Fill { size, entry: unsafe { module.entry("fill")? } })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        for (input, name, rank) in [(0, "dims", 1), (1, "value", 0)] {
            let found = c.dims(input);
            if found.len() != rank {
                let message = format!("{name}: expected {rank} dimensions, found shape {found:?}");
                return Err(KernelError::invalid_argument(message));
            }
        }
        let dims = c.integers(0)?;
        let launch = Launch::new(c)?;
        let (value, y) = (launch.input(1)?, launch.output(0, &dims)?);
        let grid = grid(&launch, y.elements, self.size);
        // SAFETY: the entry reads one element and writes `elements` of them.
        unsafe { launch.run(&self.entry, grid, (y.address, value.address, y.elements)) }
    }
}

register_kernel!("Fill" on "CUDA": Fill, types = ("T", FIXED), host_memory = &["dims"]);

/// Types that kernels move without interpreting them.
const FIXED: &[DType] = &[
    DType::BOOL,
    DType::INT8,
    DType::INT16,
    DType::INT32,
    DType::INT64,
    DType::UINT8,
    DType::UINT16,
    DType::UINT32,
    DType::UINT64,
    DType::HALF,
    DType::BFLOAT16,
    DType::FLOAT,
    DType::DOUBLE,
];
