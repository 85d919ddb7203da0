//! Two- and three-dimensional convolutions as implicit matrix products: `conv.cu`.

use super::{
    call::Call,
    epilogue::Inputs,
    sizes::{Axis, Strides, divisor, lanes_of, small},
};
use crate::{
    compile::{Entry, Source, Variant},
    device::Facts,
    kernels::divisor::Divisor,
    launch::{Grid, Operand, device_for},
    source,
};
use tenon_sdk::{
    KernelError,
    author::CreateContext,
    geometry::{Conv3dGeometry, DataFormat, WindowDim},
};

static SOURCE: Source = source!("conv.cu");

/// Element types.
pub(super) const TYPES: [&str; 4] = ["f16", "bf16", "f32", "f64"];

/// The variant of a two-dimensional convolution.
pub(super) fn variant(ty: &str, format: DataFormat) -> Variant {
    Variant::new(&SOURCE)
        .define("T", ty)
        .define("CHANNELS_FIRST", u8::from(format == DataFormat::Nchw))
        .define("LARGE_TILES", u8::from(has_large_tiles(ty)))
}

/// Whether large tiles exist: sums of doubles take too many registers for them.
fn has_large_tiles(ty: &str) -> bool {
    ty != "f64"
}

/// `Convolution` in `conv.cuh`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sizes {
    rows: Axis,
    columns: Axis,
    by_channels: Divisor<u32>,
    by_columns: Divisor<u32>,
    channels: u32,
    outputs: u32,
    groups: u32,
    depth: u32,
    pixels: i64,
    x: Strides,
    y_image: i64,
    y_pixel: i64,
    y_channel: i64,
    tiles: u32,
    packed_output: u32,
    planes: Axis,
    by_rows: Divisor<u32>,
    unused: u32,
    x_plane: i64,
}

impl Sizes {
    /// Sizes of a known geometry, without tiles; `aligned`: whether the output is aligned to 16
    /// bytes.
    fn new(g: &Conv3dGeometry, aligned: bool) -> Result<Sizes, KernelError> {
        let [planes, rows, columns] = &g.windows;
        let kernels = [planes.kernel, rows.kernel, columns.kernel];
        let depth =
            kernels.iter().try_fold(g.filter_channels, |depth, taps| depth.checked_mul(*taps));
        let outputs = group_outputs(g);
        let strides = |size: fn(&WindowDim) -> i64, channels| {
            Strides::new(g.format, size(planes) * size(rows), size(columns), channels)
        };
        let x = strides(|window| window.input, g.in_channels);
        let y = strides(|window| window.output, g.out_channels);
        Ok(Sizes {
            rows: Axis::new(rows)?,
            columns: Axis::new(columns)?,
            by_channels: divisor(g.filter_channels)?,
            by_columns: divisor(columns.kernel)?,
            channels: small("channels", g.filter_channels)?,
            outputs: small("outputs", outputs)?,
            groups: small("groups", g.groups)?,
            depth: small("elements of a patch", depth.unwrap_or(i64::MAX))?,
            pixels: g.batch * planes.output * rows.output * columns.output,
            x,
            y_image: y.image,
            y_pixel: y.column,
            y_channel: y.channel,
            tiles: 0,
            packed_output: u32::from(aligned && y.channel == 1 && outputs % 4 == 0),
            planes: Axis::new(planes)?,
            by_rows: divisor(rows.kernel)?,
            unused: 0,
            x_plane: rows.input * x.row,
        })
    }
}

/// Number of outputs of a group.
fn group_outputs(g: &Conv3dGeometry) -> i64 {
    g.out_channels / g.groups
}

/// How a call is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Plan {
    sizes: Sizes,
    large: bool,
    packed: bool,
    grid: Grid,
}

impl Plan {
    /// The fastest plan: large tiles where they fill the GPU, and copies of 16 bytes where the
    /// operands allow them.
    fn new(
        g: &Conv3dGeometry,
        [y, x, filter]: [&Operand; 3],
        has_large: bool,
        facts: &Facts,
    ) -> Result<Plan, KernelError> {
        let mut sizes = Sizes::new(g, y.is_aligned(16))?;
        let blocks = |edge: i64| {
            let tiles = group_outputs(g).max(0) as u64;
            let tiles = tiles.div_ceil(edge as u64);
            let down = (sizes.pixels as u64).div_ceil(edge as u64);
            (tiles, down.saturating_mul(tiles).saturating_mul(g.groups.max(0) as u64))
        };
        let large =
            has_large && group_outputs(g) > 64 && blocks(128).1 >= u64::from(facts.multiprocessors);
        let (edge, threads) = if large { (128, 256) } else { (64, 128) };
        let (tiles, count) = blocks(edge);
        sizes.tiles = tiles as u32;
        let lanes = lanes_of(y.dtype).max(1);
        let of_filter =
            filter.is_aligned(16) && group_outputs(g) % lanes == 0 && g.out_channels % lanes == 0;
        let of_image = g.format == DataFormat::Nchw
            || x.is_aligned(16) && g.filter_channels % lanes == 0 && g.in_channels % lanes == 0;
        let packed = of_filter && of_image;
        Ok(Plan { sizes, large, packed, grid: Grid::block_each(count, threads)? })
    }
}

type Convolve = Entry<(u64, u64, u64, Sizes, Inputs)>;

/// The entries of a variant: small and large tiles, each element by element and packed.
pub(super) struct Tiles {
    small: [Convolve; 2],
    large: Option<[Convolve; 2]>,
}

impl Tiles {
    /// Compiles a variant for `ty`.
    ///
    /// # Errors
    /// The variant cannot be compiled or loaded.
    pub fn new(c: &CreateContext<'_>, ty: &str, variant: &Variant) -> Result<Tiles, KernelError> {
        let module = device_for(c)?.modules().get(variant)?;
        // SAFETY: entries take three addresses, `Convolution` and `EpilogueInputs`, whose layouts
        // are those of `Sizes` and `Inputs`.
        let entry = |name| unsafe { module.entry(name) };
        let large = match has_large_tiles(ty) {
            true => Some([entry("conv_large")?, entry("conv_large_packed")?]),
            false => None,
        };
        Ok(Tiles { small: [entry("conv_small")?, entry("conv_small_packed")?], large })
    }

    fn entry_for(&self, plan: &Plan) -> &Convolve {
        let entries = self.large.as_ref().filter(|_| plan.large).unwrap_or(&self.small);
        &entries[usize::from(plan.packed)]
    }

    /// Enqueues a call of this geometry. A two-dimensional variant takes images of one plane.
    ///
    /// # Errors
    /// Sizes that a launch does not support.
    pub fn enqueue(&self, call: &Call<'_>, g: &Conv3dGeometry) -> Result<(), KernelError> {
        let Call { launch, y, x, filter, inputs } = call;
        let plan = Plan::new(g, [y, x, filter], self.large.is_some(), launch.facts())?;
        let arguments = (y.address, x.address, filter.address, plan.sizes, *inputs);
        // SAFETY: the geometry is that of these shapes, so reads stay within images and filter, and
        // writes within the output; the steps' inputs have a value for each channel or output.
        unsafe { launch.run(self.entry_for(&plan), plan.grid, arguments) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_sdk::{
        DType,
        geometry::{Conv2dGeometry, Conv2dParams, Padding},
    };

    fn facts(multiprocessors: u32) -> Facts {
        Facts {
            ordinal: 0,
            name: String::new(),
            capability: 90,
            multiprocessors,
            memory: 1 << 30,
            l2_bytes: 1 << 20,
            shared_bytes: 1 << 16,
            numa_node: None,
            bus_id: None,
            driver: 13_000,
        }
    }

    fn params<'a>(input: &'a [i64], filter: &'a [i64], format: DataFormat) -> Conv2dParams<'a> {
        let ones = &[1; 5][..input.len()];
        Conv2dParams {
            input,
            filter,
            strides: ones,
            dilations: ones,
            padding: Padding::Same,
            explicit_paddings: &[],
            format,
        }
    }

    fn plan(input: [i64; 4], filter: [i64; 4], format: DataFormat, offset: u64) -> Plan {
        let g = Conv2dGeometry::new(&params(&input, &filter, format)).unwrap().into();
        let operand = |address| Operand { address, elements: 1, dtype: DType::HALF };
        let (aligned, x) = (operand(512), operand(512 + offset));
        Plan::new(&g, [&aligned, &x, &aligned], true, &facts(100)).unwrap()
    }

    #[test]
    fn large_tiles_are_for_what_fills_the_gpu() {
        let big = plan([8, 56, 56, 64], [3, 3, 64, 128], DataFormat::Nhwc, 0);
        assert_eq!((big.large, big.packed), (true, true));
        assert_eq!((big.grid.blocks[0], big.grid.threads[0], big.sizes.tiles), (196, 256, 1));
        let few_pixels = plan([1, 14, 14, 64], [3, 3, 64, 512], DataFormat::Nhwc, 0);
        assert_eq!((few_pixels.large, few_pixels.grid.blocks[0]), (false, 4 * 8));
        let few_outputs = plan([8, 56, 56, 64], [3, 3, 64, 64], DataFormat::Nhwc, 0);
        assert!(!few_outputs.large);
        // A tile's outputs belong to one group: 2 groups, 40 outputs each.
        let groups = plan([1, 8, 8, 16], [1, 1, 8, 80], DataFormat::Nhwc, 0);
        assert_eq!((groups.sizes.tiles, groups.grid.blocks[0], groups.packed), (1, 2, true));
    }

    #[test]
    fn packs_need_whole_packs_at_aligned_places() {
        let packed = |input, filter, format, offset| plan(input, filter, format, offset).packed;
        let (nhwc, nchw) = (DataFormat::Nhwc, DataFormat::Nchw);
        assert!(packed([1, 8, 8, 16], [3, 3, 16, 24], nhwc, 0));
        assert!(!packed([1, 8, 8, 16], [3, 3, 16, 24], nhwc, 8), "the images");
        assert!(!packed([1, 8, 8, 3], [3, 3, 3, 24], nhwc, 0), "channels");
        assert!(!packed([1, 8, 8, 16], [3, 3, 16, 12], nhwc, 0), "outputs");
        assert!(packed([1, 3, 8, 8], [3, 3, 3, 24], nchw, 8), "the filter alone");
        let output = |filter, format| plan([1, 8, 8, 16], filter, format, 0).sizes.packed_output;
        assert_eq!(output([1, 1, 16, 12], nhwc), 1);
        assert_eq!(output([1, 1, 16, 6], nhwc), 0);
    }

    #[test]
    fn planes_are_a_dimension_of_images() {
        assert_eq!(size_of::<Sizes>(), 208);
        let sizes = |input: &[i64; 5], format| {
            let g = Conv3dGeometry::new(&params(input, &[3, 2, 1, 8, 16], format)).unwrap();
            Sizes::new(&g, true).unwrap()
        };
        let last = sizes(&[2, 4, 5, 6, 8], DataFormat::Nhwc);
        assert_eq!((last.pixels, last.depth, last.x_plane), (240, 48, 240));
        assert_eq!((last.x.image, last.x.row, last.y_image, last.y_channel), (960, 48, 1920, 1));
        let first = sizes(&[2, 8, 4, 5, 6], DataFormat::Nchw);
        assert_eq!((first.pixels, first.depth, first.x_plane), (240, 48, 30));
        assert_eq!((first.x.channel, first.y_channel, first.y_pixel), (120, 120, 1));
    }
}
