//! `Conv2D` and `_FusedConv2D` as implicit products of matrices.

use super::{
    epilogue::{self, Epilogue, Inputs},
    sizes::{Attributes, Axis, Strides, divisor, lanes_of, small},
};
use crate::kernels::divisor::Divisor;
use crate::{
    compile::{Entry, Source, Variant},
    device::Facts,
    kernels::dtype::name_of,
    launch::{Grid, Launch, Operand, device_for},
    source,
};
use tenon_sdk::{
    DType, KernelError,
    geometry::{Conv2dGeometry, DataFormat},
    prelude::*,
    reg::Numerics,
};

static SOURCE: Source = source!("conv.cu");

/// Element types.
const TYPES: [&str; 4] = ["f16", "bf16", "f32", "f64"];

pub(super) fn variants() -> Vec<Variant> {
    let formats = [DataFormat::Nhwc, DataFormat::Nchw];
    let plain = TYPES.iter().flat_map(|ty| formats.map(|format| variant(ty, format, "")));
    let fused = epilogue::examples();
    let fused = fused.iter().map(|steps| variant("f32", DataFormat::Nhwc, steps));
    plain.chain(fused).collect()
}

fn variant(ty: &str, format: DataFormat, steps: &str) -> Variant {
    let variant = Variant::new(&SOURCE)
        .define("T", ty)
        .define("CHANNELS_FIRST", u8::from(format == DataFormat::Nchw))
        .define("LARGE_TILES", u8::from(has_large_tiles(ty)));
    if steps.is_empty() { variant } else { variant.define("STEPS", steps) }
}

/// Sums of doubles take too many registers.
fn has_large_tiles(ty: &str) -> bool {
    ty != "f64"
}

/// `Convolution` of `conv.cuh`.
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
}

impl Sizes {
    /// Of a known geometry without tiles; `aligned`: whether the output is, to 16 bytes.
    fn new(g: &Conv2dGeometry, aligned: bool) -> Result<Sizes, KernelError> {
        let (rows, columns) = (Axis::new(&g.height)?, Axis::new(&g.width)?);
        let taps = g.height.kernel.checked_mul(g.width.kernel);
        let depth = taps.and_then(|taps| taps.checked_mul(g.filter_channels));
        let outputs = g.group_outputs();
        let x = Strides::new(g.format, g.height.input, g.width.input, g.in_channels);
        let y = Strides::new(g.format, g.height.output, g.width.output, g.out_channels);
        Ok(Sizes {
            rows,
            columns,
            by_channels: divisor(g.filter_channels)?,
            by_columns: divisor(g.width.kernel)?,
            channels: small("channels", g.filter_channels)?,
            outputs: small("outputs", outputs)?,
            groups: small("groups", g.groups)?,
            depth: small("elements of a patch", depth.unwrap_or(i64::MAX))?,
            pixels: g.batch * g.height.output * g.width.output,
            x,
            y_image: y.image,
            y_pixel: y.column,
            y_channel: y.channel,
            tiles: 0,
            packed_output: u32::from(aligned && y.channel == 1 && outputs % 4 == 0),
        })
    }
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
    /// The fastest of the ways there are: large tiles where they fill the GPU, and copies of 16 bytes where they can
    /// be.
    fn new(
        g: &Conv2dGeometry,
        [y, x, filter]: [&Operand; 3],
        has_large: bool,
        facts: &Facts,
    ) -> Result<Plan, KernelError> {
        let mut sizes = Sizes::new(g, y.is_aligned(16))?;
        let blocks = |edge: i64| {
            let tiles = g.group_outputs().max(0) as u64;
            let tiles = tiles.div_ceil(edge as u64);
            let down = (sizes.pixels as u64).div_ceil(edge as u64);
            (tiles, down.saturating_mul(tiles).saturating_mul(g.groups.max(0) as u64))
        };
        let large = has_large
            && g.group_outputs() > 64
            && blocks(128).1 >= u64::from(facts.multiprocessors);
        let (edge, threads) = if large { (128, 256) } else { (64, 128) };
        let (tiles, count) = blocks(edge);
        sizes.tiles = tiles as u32;
        let lanes = lanes_of(y.dtype).max(1);
        let of_filter =
            filter.is_aligned(16) && g.group_outputs() % lanes == 0 && g.out_channels % lanes == 0;
        let of_image = g.format == DataFormat::Nchw
            || x.is_aligned(16) && g.filter_channels % lanes == 0 && g.in_channels % lanes == 0;
        let packed = of_filter && of_image;
        Ok(Plan { sizes, large, packed, grid: Grid::block_each(count, threads)? })
    }
}

type Convolve = Entry<(u64, u64, u64, Sizes, Inputs)>;

/// The entries of a variant: small and large tiles, each element by element and packed.
struct Entries {
    small: [Convolve; 2],
    large: Option<[Convolve; 2]>,
}

impl Entries {
    fn new(
        c: &CreateContext<'_>,
        variant: &Variant,
        has_large: bool,
    ) -> Result<Entries, KernelError> {
        let module = device_for(c)?.modules().get(variant)?;
        // SAFETY: entries take three addresses, `Convolution` and `EpilogueInputs`, whose layouts are those of `Sizes`
        // and `Inputs`.
        let entry = |name| unsafe { module.entry(name) };
        let large = match has_large {
            true => Some([entry("conv_large")?, entry("conv_large_packed")?]),
            false => None,
        };
        Ok(Entries { small: [entry("conv_small")?, entry("conv_small_packed")?], large })
    }

    fn of(&self, plan: &Plan) -> &Convolve {
        let entries = self.large.as_ref().filter(|_| plan.large).unwrap_or(&self.small);
        &entries[usize::from(plan.packed)]
    }
}

pub(super) struct Conv2d {
    pub attributes: Attributes,
    pub epilogue: Epilogue,
    entries: Entries,
}

impl Conv2d {
    /// Enqueues a call: `operands` are the output, which has elements, the images and the filter of this geometry,
    /// and `inputs` those of the steps.
    pub fn enqueue(
        &self,
        launch: &Launch<'_>,
        g: &Conv2dGeometry,
        operands: [&Operand; 3],
        inputs: Inputs,
    ) -> Result<(), KernelError> {
        let has_large = self.entries.large.is_some();
        let plan = Plan::new(g, operands, has_large, launch.facts())?;
        let [y, x, filter] = operands.map(|operand| operand.address);
        // SAFETY: the geometry of these shapes: reads of images and filter stay within them, writes within the
        // output, and the steps' inputs have a value for each channel or output.
        unsafe { launch.run(self.entries.of(&plan), plan.grid, (y, x, filter, plan.sizes, inputs)) }
    }
}

impl Kernel for Conv2d {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let (attributes, epilogue) = (Attributes::new(c)?, Epilogue::new(c)?);
        let ty = name_of(c.attr("T")?)?;
        let variant = variant(ty, attributes.format(), &epilogue.text());
        let entries = Entries::new(c, &variant, has_large_tiles(ty))?;
        Ok(Conv2d { attributes, epilogue, entries })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let g = Conv2dGeometry::new(&self.attributes.params(c.dims(0), c.dims(1)))?;
        let launch = Launch::new(c)?;
        let inputs = self.epilogue.bind(c, &launch, &g.output_dims(), g.format)?;
        let (x, filter) = (launch.input(0)?, launch.input(1)?);
        let y = launch.output(0, &g.output_dims())?;
        if y.elements == 0 {
            return Ok(());
        }
        self.enqueue(&launch, &g, [&y, &x, &filter], inputs)
    }
}

macro_rules! kernels {
    ($($ty:ident, $accumulation:ident, [$absolute:expr, $relative:expr], [$fused:expr, $by:expr];)*) => {$(
        register_kernel!("Conv2D" on "CUDA": Conv2d, types = ("T", &[DType::$ty]),
            numerics = Numerics::relative($absolute, $relative).accumulation(DType::$accumulation));
        register_kernel!("_FusedConv2D" on "CUDA": Conv2d, types = ("T", &[DType::$ty]),
            numerics = Numerics::relative($fused, $by).accumulation(DType::$accumulation));
    )*};
}

// Relative to the sum of the absolute terms, as the host's processor has it; fused ones with their functions.
kernels! {
    FLOAT, FLOAT, [1e-30, 4e-6], [1e-6, 8e-6];
    DOUBLE, DOUBLE, [1e-300, 8e-15], [1e-14, 1.6e-14];
    HALF, FLOAT, [6e-8, 2e-3], [1e-3, 4e-3];
    BFLOAT16, FLOAT, [1e-30, 1.6e-2], [8e-3, 3.2e-2];
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_sdk::geometry::{Conv2dParams, Padding};

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

    fn plan(input: [i64; 4], filter: [i64; 4], format: DataFormat, offset: u64) -> Plan {
        let ones = [1, 1, 1, 1];
        let params = Conv2dParams {
            input: &input,
            filter: &filter,
            strides: &ones,
            dilations: &ones,
            padding: Padding::Same,
            explicit_paddings: &[],
            format,
        };
        let g = Conv2dGeometry::new(&params).unwrap();
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
        // Tiles of outputs are of a group: 2 groups, 40 outputs each.
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
}
