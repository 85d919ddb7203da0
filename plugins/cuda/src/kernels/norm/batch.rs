//! `FusedBatchNorm`, `FusedBatchNormV2`, `FusedBatchNormV3`: the last has an extra output, which is
//! 0.
//!
//! `y = (x - mean) / sqrt(variance + epsilon) * scale + offset` per channel. In training, mean and
//! variance are those of the batch, which one reduction computes in one pass.

use super::rows::{lanes_of, module_of};
use crate::{
    compile::{Entry, Source, Variant},
    kernels::{
        dtype::name_of,
        reduction::{Reducer, Reduction, Shape},
    },
    launch::{Grid, Launch, Operand, THREADS},
    source,
};
use tenon_sdk::{
    DType, KernelError,
    geometry::{BatchNormAttributes, ChannelSplit, ReducePlan},
    prelude::*,
    reg::Numerics,
};

static SOURCE: Source = source!("norm_batch.cu");

pub(super) fn variants() -> Vec<Variant> {
    let types = [DType::FLOAT, DType::HALF, DType::BFLOAT16];
    types.iter().filter_map(|dtype| variant(*dtype).ok()).collect()
}

fn variant(dtype: DType) -> Result<Variant, KernelError> {
    Ok(Variant::new(&SOURCE).define("DTYPE", name_of(dtype)?))
}

/// `Mode` in `norm_batch.cu`: which statistics to normalise by.
const GIVEN: u32 = 0;
const BATCH: u32 = 1;
const EMPTY: u32 = 2;

/// `Statistics` in `norm_batch.cu`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Statistics {
    batch: u64,
    given: [u64; 2],
    running: [u64; 2],
    reserved: [u64; 2],
    nothing: u64,
    channels: u32,
    mode: u32,
    share: f32,
    unbiased: f32,
}

/// `Affine` in `norm_batch.cu`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Affine {
    mean: u64,
    variance: u64,
    scale: u64,
    offset: u64,
    epsilon: f32,
    /// 0: a struct that is copied to the GPU has no uninitialised bytes.
    padding: u32,
}

/// `Rows` in `norm_batch.cu`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Rows {
    rows: u64,
    channels: u64,
    chunk: u64,
    tiles: u32,
    width: u32,
    affine: Affine,
}

/// `Planes` in `norm_batch.cu`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Planes {
    planes: u64,
    inner: u64,
    chunk: u64,
    chunks: u32,
    channels: u32,
    affine: Affine,
}

/// Number of elements of a plane that a warp processes.
const PLANE_CHUNK: u64 = 4096;

pub(super) struct FusedBatchNorm {
    pub attributes: BatchNormAttributes,
    /// The reduction for the batch's statistics, in training.
    moments: Option<Reducer>,
    statistics: Entry<(Statistics,)>,
    rows: [Entry<(u64, u64, Rows)>; 2],
    planes: [Entry<(u64, u64, Planes)>; 2],
}

impl Kernel for FusedBatchNorm {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let (attributes, element) = (BatchNormAttributes::new(c)?, c.input_types()[0]);
        let moments = Reduction { fold: "Moments", element, index: None };
        let moments = attributes.is_training.then(|| Reducer::new(c, moments)).transpose()?;
        let module = module_of(c, variant(element))?;
        // SAFETY: the parameters are those of the entry points of `norm_batch.cu`; tests compare
        // the structs' sizes.
        unsafe {
            Ok(FusedBatchNorm {
                attributes,
                moments,
                statistics: module.entry("statistics")?,
                rows: [module.entry("normalise_rows")?, module.entry("normalise_rows_packed")?],
                planes: [
                    module.entry("normalise_planes")?,
                    module.entry("normalise_planes_packed")?,
                ],
            })
        }
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        match self.begin(c)? {
            Some(call) => self.normalise(&call),
            None => Ok(()),
        }
    }
}

/// A call whose statistics are written or enqueued.
pub(super) struct Call<'a> {
    pub launch: Launch<'a>,
    pub split: ChannelSplit,
    channels: u32,
    pub x: Operand,
    pub y: Operand,
    /// Mean, variance, scale and offset: a float for each channel.
    pub lists: [Operand; 4],
}

impl FusedBatchNorm {
    /// Prepares a call. `None`: there is nothing to normalise.
    ///
    /// # Errors
    /// Shapes that do not match; out of memory; the driver's error.
    pub fn begin<'a>(&self, c: &'a ComputeContext<'a>) -> Result<Option<Call<'a>>, KernelError> {
        let split = self.attributes.split(std::array::from_fn(|input| c.dims(input)))?;
        let channels = u32::try_from(split.channels).map_err(|_| {
            KernelError::invalid_argument(format!(
                "expected fewer than 2^32 channels, found {}",
                split.channels
            ))
        })?;
        let launch = Launch::new(c)?;
        let (x, y) = (launch.input(0)?, launch.output(0, c.dims(0))?);
        let [mean, variance] = self.statistics(c, &launch, &split, channels, x)?;
        let lists = [mean, variance, launch.input(1)?, launch.input(2)?];
        Ok((x.elements > 0).then_some(Call { launch, split, channels, x, y, lists }))
    }

    /// Enqueues the normalisation.
    ///
    /// # Errors
    /// Too many blocks; the driver's error.
    pub fn normalise(&self, call: &Call<'_>) -> Result<(), KernelError> {
        let &Call { ref launch, ref split, channels, x, y, lists } = call;
        let aligned = [x, y].iter().chain(&lists).all(|operand| operand.is_aligned(16));
        let [mean, variance, scale, offset] = lists.map(|operand| operand.address);
        let epsilon = self.attributes.epsilon;
        let affine = Affine { mean, variance, scale, offset, epsilon, padding: 0 };
        if split.inner == 1 {
            self.normalise_rows(launch, split, [x, y], affine, aligned)
        } else {
            self.normalise_planes(launch, split, channels, [x, y], affine, aligned)
        }
    }

    /// Writes the output statistics; returns the ones to normalise by.
    fn statistics(
        &self,
        c: &ComputeContext<'_>,
        launch: &Launch<'_>,
        split: &ChannelSplit,
        channels: u32,
        x: Operand,
    ) -> Result<[Operand; 2], KernelError> {
        let output = |at: usize| launch.output(at, &[i64::from(channels)]);
        let (running, reserved) = ([output(1)?, output(2)?], [output(3)?, output(4)?]);
        let given = [launch.input(3)?, launch.input(4)?];
        let nothing = if c.output_count() == 6 { launch.output(5, &[])?.address } else { 0 };
        let (mode, batch) = match &self.moments {
            _ if x.elements == 0 => (EMPTY, 0),
            None => (GIVEN, 0),
            Some(moments) => (BATCH, batch_moments(moments, launch, split, x)?),
        };
        let count = split.per_channel() as f64;
        let addresses = |both: [Operand; 2]| both.map(|operand| operand.address);
        let statistics = Statistics {
            batch,
            given: addresses(given),
            running: addresses(running),
            reserved: addresses(reserved),
            nothing,
            channels,
            mode,
            share: self.attributes.factor,
            unbiased: (count / (count - 1.0).max(1.0)) as f32,
        };
        // At least one thread: the last output is written even without channels.
        let grid = Grid::stride(u64::from(channels).max(1), launch.facts());
        // SAFETY: every list has a value for each channel, except given statistics that the entry
        // does not read.
        unsafe { launch.run(&self.statistics, grid, (statistics,))? };
        Ok(if mode == GIVEN { given } else { reserved })
    }

    fn normalise_rows(
        &self,
        launch: &Launch<'_>,
        split: &ChannelSplit,
        [x, y]: [Operand; 2],
        affine: Affine,
        aligned: bool,
    ) -> Result<(), KernelError> {
        let (rows, channels) = (split.outer as u64, split.channels as u64);
        let packed = aligned && channels.is_multiple_of(lanes_of(x.dtype));
        let packs = channels / if packed { lanes_of(x.dtype) } else { 1 };
        let width = packs.next_power_of_two().min(64);
        let (tiles, height) = (packs.div_ceil(width), u64::from(THREADS) / width);
        let full = u64::from(launch.facts().multiprocessors) * 8;
        let chunk = rows.div_ceil(full.div_ceil(tiles)).next_multiple_of(height * 4);
        let grid = Grid::block_each(tiles.saturating_mul(rows.div_ceil(chunk)), THREADS)?;
        let rows = Rows { rows, channels, chunk, tiles: tiles as u32, width: width as u32, affine };
        // SAFETY: x and y have `rows * channels` elements, the lists `channels`.
        unsafe { launch.run(&self.rows[usize::from(packed)], grid, (y.address, x.address, rows)) }
    }

    fn normalise_planes(
        &self,
        launch: &Launch<'_>,
        split: &ChannelSplit,
        channels: u32,
        [x, y]: [Operand; 2],
        affine: Affine,
        aligned: bool,
    ) -> Result<(), KernelError> {
        let (planes, inner) = ((split.outer * split.channels) as u64, split.inner as u64);
        let packed = aligned && inner.is_multiple_of(lanes_of(x.dtype));
        let chunks = inner.div_ceil(PLANE_CHUNK);
        let grid = Grid::stride(planes.saturating_mul(chunks).saturating_mul(32), launch.facts());
        let chunks = chunks as u32;
        let planes = Planes { planes, inner, chunk: PLANE_CHUNK, chunks, channels, affine };
        // SAFETY: x and y have `planes * inner` elements, the lists `channels`.
        unsafe {
            launch.run(&self.planes[usize::from(packed)], grid, (y.address, x.address, planes))
        }
    }
}

/// The address of the mean and variance of each channel of a batch that is not empty.
fn batch_moments(
    moments: &Reducer,
    launch: &Launch<'_>,
    split: &ChannelSplit,
    x: Operand,
) -> Result<u64, KernelError> {
    let dims = [split.outer as i64, split.channels as i64, split.inner as i64];
    let plan = ReducePlan::new(&dims, &[0, 2], false)?;
    let address = launch.scratch(split.channels.saturating_mul(size_of::<[f32; 2]>()))?;
    moments.run_to(launch, &Shape::of(&plan), x, address)?;
    Ok(address)
}

register_kernel!("FusedBatchNorm" on "CUDA": FusedBatchNorm, types = ("T", &[DType::FLOAT]),
    numerics = Numerics::relative(1e-6, 1e-5).accumulation(DType::FLOAT));

/// Registers the versions in which `x` may be narrower than the statistics.
macro_rules! versions {
    ($($op:literal),*) => {$(
        register_kernel!($op on "CUDA": FusedBatchNorm, types = ("T", &[DType::FLOAT]),
            types = ("U", &[DType::FLOAT]), numerics = Numerics::relative(1e-6, 1e-5).accumulation(DType::FLOAT));
        register_kernel!($op on "CUDA": FusedBatchNorm, types = ("T", &[DType::HALF]),
            types = ("U", &[DType::FLOAT]), numerics = Numerics::relative(1e-3, 2e-3).accumulation(DType::FLOAT));
        register_kernel!($op on "CUDA": FusedBatchNorm, types = ("T", &[DType::BFLOAT16]),
            types = ("U", &[DType::FLOAT]), numerics = Numerics::relative(1e-2, 1.6e-2).accumulation(DType::FLOAT));
    )*};
}

versions!("FusedBatchNormV2", "FusedBatchNormV3");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layouts_are_those_of_the_source() {
        assert_eq!((size_of::<Statistics>(), size_of::<Affine>()), (80, 40));
        assert_eq!((size_of::<Rows>(), size_of::<Planes>()), (72, 72));
    }
}
