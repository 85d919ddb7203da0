//! Conversions between space and batch, and between space and depth.

use super::{
    REAL, copy,
    gather::gather,
    moves::{Item, Move, TEXTS, check_rank, check_vector, produce},
};
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::{
        DepthFormat, Dims, SpaceBatchPlan, TransposePlan, batch_to_space_dims, space_to_batch_dims,
    },
    reg::{Numerics, join_types},
    register_kernel,
};

/// Which side is the output.
#[derive(Clone, Copy, PartialEq, Eq)]
enum To {
    Batch,
    Space,
}

/// The runs to move, and the side that is the output.
struct Blocks(SpaceBatchPlan, To);

impl Move for Blocks {
    fn run<T: Item>(
        &self,
        _: &ComputeContext<'_>,
        x: &[&[T]],
        y: &mut [T],
    ) -> Result<(), KernelError> {
        let Blocks(plan, to) = self;
        if *to == To::Batch {
            y.fill(T::default());
        }
        for (space, batch) in plan.runs().flat_map(|(space, batch)| space.zip(batch)) {
            let (from, at) = if *to == To::Batch { (space, batch) } else { (batch, space) };
            copy(&x[0][from..][..plan.run], &mut y[at..][..plan.run]);
        }
        Ok(())
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

fn write(c: &ComputeContext<'_>, to: To, block: &[i64], pairs: &[i64]) -> Result<(), KernelError> {
    let dims = c.dims(0);
    let (output, plan) = match to {
        To::Batch => {
            let output = space_to_batch_dims(dims, block, pairs)?;
            (output, SpaceBatchPlan::new(dims, &output, block, pairs)?)
        }
        To::Space => {
            let output = batch_to_space_dims(dims, block, pairs)?;
            (output, SpaceBatchPlan::new(&output, dims, block, pairs)?)
        }
    };
    produce(c, &[0], &output, &Blocks(plan, to))
}

fn nd(c: &ComputeContext<'_>, to: To) -> Result<(), KernelError> {
    check_vector(c, 1, "block_shape")?;
    let block = c.integers(1)?;
    write(c, to, &block, &pairs(c, 2, block.len())?)
}

fn space_to_batch_nd(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    nd(c, To::Batch)
}

fn batch_to_space_nd(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    nd(c, To::Space)
}

/// A kernel for images with a square block.
macro_rules! square {
    ($($kernel:ident $op:literal $pairs:literal $to:expr;)*) => {$(
        #[doc = concat!("`", $op, "`.")]
        struct $kernel(i64);

        impl Kernel for $kernel {
            fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
                Ok($kernel(c.attr("block_size")?))
            }

            fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
                check_rank(c, 0, "input", 4)?;
                write(c, $to, &[self.0; 2], &pairs(c, 1, 2)?)
            }
        }

        register_kernel!($op on "CPU": $kernel, types = ("T", MOVED),
            host_memory = &[$pairs],
            numerics = Numerics::EXACT);
    )*};
}

square! {
    SpaceToBatch "SpaceToBatch" "paddings" To::Batch;
    BatchToSpace "BatchToSpace" "crops" To::Space;
}

/// The input, transposed.
struct Turned<'a>(&'a TransposePlan);

impl Move for Turned<'_> {
    fn run<T: Item>(
        &self,
        _: &ComputeContext<'_>,
        x: &[&[T]],
        y: &mut [T],
    ) -> Result<(), KernelError> {
        gather(self.0.extents(), self.0.strides(), 0, x[0], y)
    }
}

/// The attributes of the ops between space and depth.
struct Depth {
    block: i64,
    format: DepthFormat,
}

impl Depth {
    fn new(c: &CreateContext<'_>) -> Result<Depth, KernelError> {
        let format = DepthFormat::parse(c.attr("data_format")?)?;
        Ok(Depth { block: c.attr("block_size")?, format })
    }

    fn turn(
        c: &ComputeContext<'_>,
        output: &Dims,
        parts: &(Dims, Dims),
    ) -> Result<(), KernelError> {
        produce(c, &[0], output, &Turned(&TransposePlan::new(&parts.0, &parts.1)?))
    }
}

/// `SpaceToDepth`.
struct SpaceToDepth(Depth);

impl Kernel for SpaceToDepth {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(SpaceToDepth(Depth::new(c)?))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (Depth { block, format }, dims) = (&self.0, c.dims(0));
        let output = format.space_to_depth_dims(dims, *block)?;
        Depth::turn(c, &output, &format.space_to_depth_parts(dims, *block)?)
    }
}

/// `DepthToSpace`.
struct DepthToSpace(Depth);

impl Kernel for DepthToSpace {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(DepthToSpace(Depth::new(c)?))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (Depth { block, format }, dims) = (&self.0, c.dims(0));
        let output = format.depth_to_space_dims(dims, *block)?;
        Depth::turn(c, &output, &format.depth_to_space_parts(dims, *block)?)
    }
}

/// Types that TensorFlow moves into the batch: those of [`REAL`] without bool, its first.
const MOVED: &[DType] = REAL.split_at(1).1;
/// Types that TensorFlow moves into the depth.
const DEEP: &[DType] = &join_types::<{ TEXTS.len() + 1 }>(TEXTS, &[DType::QINT8]);

register_kernel!("SpaceToBatchND" on "CPU": fn space_to_batch_nd, types = ("T", MOVED),
    host_memory = &["block_shape", "paddings"], numerics = Numerics::EXACT);
register_kernel!("BatchToSpaceND" on "CPU": fn batch_to_space_nd, types = ("T", MOVED),
    host_memory = &["block_shape", "crops"], numerics = Numerics::EXACT);
register_kernel!("SpaceToDepth" on "CPU": SpaceToDepth, types = ("T", DEEP),
    numerics = Numerics::EXACT);
register_kernel!("DepthToSpace" on "CPU": DepthToSpace, types = ("T", DEEP),
    numerics = Numerics::EXACT);
