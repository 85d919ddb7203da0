//! `SpaceToBatchND` and `BatchToSpaceND`, and their forms for images: `SpaceToBatch`,
//! `BatchToSpace`.

use super::{
    REAL, check_vector,
    words::{
        BySize, ByWord, Divisor, Index, MAX_DIMS, SIZES, check_rank, element_bytes, is_short,
        word_bytes,
    },
};
use crate::{
    Cuda,
    compile::{Source, Variant},
    launch::{Grid, Launch, device_for},
    source,
};
use tenon_sdk::{
    DType, KernelError,
    geometry::{Dims, batch_to_space_dims, element_count, row_major_strides, space_to_batch_dims},
    prelude::*,
    reg::Numerics,
};

static SOURCE: Source = source!("space.cu");

pub(super) fn variants() -> Vec<Variant> {
    let of = |to: To| [to.variant::<u32>(), to.variant::<u64>()];
    [of(To::Batch), of(To::Space)].concat()
}

/// Which side is the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum To {
    Batch,
    Space,
}

impl To {
    fn variant<I: Index>(self) -> Variant {
        let variant = Variant::new(&SOURCE).define("Index", I::NAME);
        if self == To::Batch { variant.define("TO_THE_BATCH", 1) } else { variant }
    }

    fn stem(self) -> &'static str {
        match self {
            To::Batch => "to_batch",
            To::Space => "to_space",
        }
    }

    fn output(self, dims: &[i64], block: &[i64], pairs: &[i64]) -> Result<Dims, KernelError> {
        Ok(match self {
            To::Batch => space_to_batch_dims(dims, block, pairs)?,
            To::Space => batch_to_space_dims(dims, block, pairs)?,
        })
    }
}

/// `Blocks` in the source.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Blocks<I> {
    rank: u32,
    run: Divisor<I>,
    extents: [Divisor<I>; MAX_DIMS],
    blocks: [Divisor<I>; MAX_DIMS],
    before: [I; MAX_DIMS],
    sizes: [I; MAX_DIMS],
    shift: [I; MAX_DIMS],
    across: [i64; MAX_DIMS],
    within: [i64; MAX_DIMS],
    space: [i64; MAX_DIMS],
    batch_image: i64,
    space_image: i64,
}

/// A call: shapes of both sides, block, and a pair of paddings or crops for each dimension of the
/// block.
struct Plan<'a> {
    to: To,
    space: &'a [i64],
    batch: &'a [i64],
    block: &'a [i64],
    pairs: &'a [i64],
}

impl Plan<'_> {
    /// Number of elements that are contiguous on both sides.
    fn run(&self) -> Result<usize, KernelError> {
        Ok(element_count(&self.space[self.block.len() + 1..])?)
    }

    /// The parameter for words of `elements` elements; neither side may be empty.
    fn blocks<I: Index>(&self, elements: i64) -> Result<Blocks<I>, KernelError> {
        let (from, to) = (row_major_strides(self.space)?, row_major_strides(self.batch)?);
        let mut all = Blocks {
            rank: check_rank(self.block.len())?,
            run: I::divisor(self.run()? as u64 / elements as u64),
            extents: [I::divisor(1); MAX_DIMS],
            blocks: [I::divisor(1); MAX_DIMS],
            before: [I::default(); MAX_DIMS],
            sizes: [I::default(); MAX_DIMS],
            shift: [I::default(); MAX_DIMS],
            across: [0; MAX_DIMS],
            within: [0; MAX_DIMS],
            space: [0; MAX_DIMS],
            batch_image: to[0] / elements,
            space_image: from[0] / elements,
        };
        // The images of place k of a block follow those of the places before it.
        let mut within = self.space[0].wrapping_mul(to[0]);
        for (d, at) in (0..self.block.len()).rev().enumerate() {
            let (block, size) = (self.block[at], self.space[at + 1]);
            let [before, behind] = [self.pairs[2 * at], self.pairs[2 * at + 1]];
            let of = |places: i64| I::of(places as u64);
            all.sizes[d] = of(size);
            let extent = if self.to == To::Batch { size + before + behind } else { size };
            (all.before[d], all.shift[d]) = match self.to {
                To::Batch => (of(before), of(0)),
                To::Space => (of(0), of(before)),
            };
            all.extents[d] = I::divisor(extent as u64);
            all.blocks[d] = I::divisor(block as u64);
            all.across[d] = to[at + 1] / elements;
            all.within[d] = within / elements;
            all.space[d] = from[at + 1] / elements;
            within = within.wrapping_mul(block);
        }
        Ok(all)
    }
}

type Entries<I> = ByWord<(u64, u64, I, Blocks<I>), { SIZES.len() }>;

/// The kernels of a direction.
struct Mover {
    to: To,
    entries: BySize<Entries<u32>, Entries<u64>>,
}

impl Mover {
    fn new(c: &CreateContext<'_>, to: To) -> Result<Mover, KernelError> {
        Ok(Mover { to, entries: BySize::new(Mover::entries(device_for(c)?, to)?) })
    }

    fn entries<I: Index>(device: &Cuda, to: To) -> Result<Entries<I>, KernelError> {
        let module = device.modules().get(&to.variant::<I>())?;
        // SAFETY: the entry takes two addresses, a count, and `Blocks`.
        unsafe { ByWord::new(&module, to.stem()) }
    }

    fn run(&self, c: &ComputeContext<'_>, block: &[i64], pairs: &[i64]) -> Result<(), KernelError> {
        let dims = c.dims(0);
        let output = self.to.output(dims, block, pairs)?;
        let launch = Launch::new(c)?;
        let (x, y) = (launch.input(0)?, launch.output(0, &output)?);
        if y.elements == 0 {
            return Ok(());
        }
        let (space, batch) = match self.to {
            To::Batch => (dims, &output[..]),
            To::Space => (&output[..], dims),
        };
        let plan = Plan { to: self.to, space, batch, block, pairs };
        let size = element_bytes(&x)?;
        let bytes = word_bytes(size, [plan.run()? as i64], &[&x, &y]);
        let (lanes, words) = ((bytes / size) as i64, y.elements * size / bytes);
        let grid = Grid::stride(words, launch.facts());
        // SAFETY: the geometry has checked both shapes against block and pairs.
        unsafe {
            if is_short(words.max(x.elements * size / bytes)) {
                let call = (y.address, x.address, words as u32, plan.blocks(lanes)?);
                launch.run(self.entries.short().of(bytes), grid, call)
            } else {
                let long = self.entries.long(|| Mover::entries(launch.device(), self.to))?;
                launch.run(long.of(bytes), grid, (y.address, x.address, words, plan.blocks(lanes)?))
            }
        }
    }
}

/// The pairs in an input of paddings or crops, one for each dimension of the block.
fn pairs(c: &ComputeContext<'_>, input: usize, rows: usize) -> Result<Vec<i64>, KernelError> {
    if c.dims(input) == [rows as i64, 2] {
        return c.integers(input);
    }
    Err(KernelError::invalid_argument(format!(
        "paddings and crops must have shape [{rows}, 2], found {:?}",
        c.dims(input)
    )))
}

fn nd(c: &ComputeContext<'_>, mover: &Mover) -> Result<(), KernelError> {
    check_vector(c, 1, "block_shape")?;
    let block = c.integers(1)?;
    mover.run(c, &block, &pairs(c, 2, block.len())?)
}

struct SpaceToBatchNd(Mover);

impl Kernel for SpaceToBatchNd {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(SpaceToBatchNd(Mover::new(c, To::Batch)?))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        nd(c, &self.0)
    }
}

struct BatchToSpaceNd(Mover);

impl Kernel for BatchToSpaceNd {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(BatchToSpaceNd(Mover::new(c, To::Space)?))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        nd(c, &self.0)
    }
}

/// The forms for images, with a square block.
struct Images(i64, Mover);

impl Images {
    fn new(c: &CreateContext<'_>, to: To) -> Result<Images, KernelError> {
        Ok(Images(c.attr("block_size")?, Mover::new(c, to)?))
    }

    fn run(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        if c.dims(0).len() != 4 {
            return Err(KernelError::invalid_argument(format!(
                "input must have 4 dimensions, found shape {:?}",
                c.dims(0)
            )));
        }
        self.1.run(c, &[self.0; 2], &pairs(c, 1, 2)?)
    }
}

struct SpaceToBatch(Images);

impl Kernel for SpaceToBatch {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(SpaceToBatch(Images::new(c, To::Batch)?))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        self.0.run(c)
    }
}

struct BatchToSpace(Images);

impl Kernel for BatchToSpace {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(BatchToSpace(Images::new(c, To::Space)?))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        self.0.run(c)
    }
}

/// Types that TensorFlow moves into the batch: those of [`REAL`] without bool, its first.
const MOVED: &[DType] = REAL.split_at(1).1;

register_kernel!("SpaceToBatchND" on "CUDA": SpaceToBatchNd, types = ("T", MOVED),
    host_memory = &["block_shape", "paddings"], numerics = Numerics::EXACT);
register_kernel!("BatchToSpaceND" on "CUDA": BatchToSpaceNd, types = ("T", MOVED),
    host_memory = &["block_shape", "crops"], numerics = Numerics::EXACT);
register_kernel!("SpaceToBatch" on "CUDA": SpaceToBatch, types = ("T", MOVED),
    host_memory = &["paddings"], numerics = Numerics::EXACT);
register_kernel!("BatchToSpace" on "CUDA": BatchToSpace, types = ("T", MOVED),
    host_memory = &["crops"], numerics = Numerics::EXACT);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_lays_blocks_out_as_the_device_does() {
        assert_eq!(size_of::<Blocks<u32>>(), 16 + 2 * 96 + 3 * 32 + 3 * 64 + 16);
        assert_eq!(size_of::<Blocks<u64>>(), 8 + 24 + 2 * 192 + 3 * 64 + 3 * 64 + 16);
    }

    #[test]
    fn places_of_a_block_are_images_of_their_own() {
        let (space, pairs) = ([2, 3, 4, 5], [1, 0, 2, 0]);
        let batch = space_to_batch_dims(&space, &[2, 3], &pairs).unwrap();
        assert_eq!(batch, [12, 2, 2, 5]);
        let plan =
            Plan { to: To::Batch, space: &space, batch: &batch, block: &[2, 3], pairs: &pairs };
        let all = plan.blocks::<u32>(5).unwrap();
        assert_eq!((all.batch_image, all.space_image), (4, 12));
        assert_eq!((&all.across[..2], &all.within[..2]), (&[1, 2][..], &[8, 24][..]));
        assert_eq!((&all.space[..2], &all.before[..2]), (&[1, 4][..], &[2, 1][..]));
    }
}
