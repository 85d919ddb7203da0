//! `DepthwiseConv2dNative` and `_FusedDepthwiseConv2dNative`: each channel with its own filters,
//! computed directly.

use super::{
    call::Call,
    epilogue::{self, Epilogue, Inputs},
    sizes::{Axis, Items, OutputSizes, Strides, packed_lanes, small},
};
use crate::{
    compile::{Entry, Source, Variant},
    kernels::dtype::name_of,
    launch::{Grid, Operand, device_for},
    source,
};
use tenon_sdk::{
    DType, KernelError,
    geometry::{Conv2dGeometry, ConvAttributes, DataFormat},
    prelude::*,
    reg::Numerics,
};

static SOURCE: Source = source!("depthwise.cu");

pub(super) fn variants() -> Vec<Variant> {
    let formats = [DataFormat::Nhwc, DataFormat::Nchw];
    let plain = ["f16", "bf16", "f32", "f64"]
        .iter()
        .flat_map(|ty| formats.map(|format| variant(ty, format, "")));
    let fused = epilogue::examples();
    let fused = fused.iter().map(|steps| variant("f32", DataFormat::Nhwc, steps));
    plain.chain(fused).collect()
}

fn variant(ty: &str, format: DataFormat, steps: &str) -> Variant {
    let variant = Variant::new(&SOURCE)
        .define("T", ty)
        .define("CHANNELS_FIRST", u8::from(format == DataFormat::Nchw));
    if steps.is_empty() { variant } else { variant.define("STEPS", steps) }
}

/// `Depthwise` in `depthwise.cu`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sizes {
    rows: Axis,
    columns: Axis,
    items: Items,
    multiplier: u32,
    outputs: u32,
    x: Strides,
    y: Strides,
}

/// Neighbouring outputs of an item with channels last, as in `depthwise.cu`.
const COLUMNS: i64 = 4;

impl Sizes {
    /// Sizes of a geometry that has outputs, and whether it is processed in packs.
    fn new(g: &Conv2dGeometry, all: [&Operand; 3]) -> Result<(Sizes, bool), KernelError> {
        let lanes = match g.format {
            DataFormat::Nhwc if g.group_outputs() == 1 => packed_lanes(g.out_channels, &all),
            _ => 1,
        };
        let output = OutputSizes {
            format: g.format,
            images: g.batch,
            rows: g.height.output,
            columns: g.width.output,
            channels: g.out_channels,
        };
        let columns = if g.format == DataFormat::Nhwc { COLUMNS } else { 1 };
        let sizes = Sizes {
            rows: Axis::new(&g.height)?,
            columns: Axis::new(&g.width)?,
            items: output.items(lanes, columns)?,
            multiplier: small("outputs of a channel", g.group_outputs())?,
            outputs: small("outputs", g.out_channels)?,
            x: Strides::new(g.format, g.height.input, g.width.input, g.in_channels),
            y: output.strides(),
        };
        Ok((sizes, lanes > 1))
    }
}

type Convolve = Entry<(u64, u64, u64, Sizes, Inputs)>;

struct Depthwise {
    attributes: ConvAttributes,
    epilogue: Epilogue,
    single: Convolve,
    packed: Option<Convolve>,
}

impl Kernel for Depthwise {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let (attributes, epilogue) = (ConvAttributes::depthwise(c)?, Epilogue::new(c)?);
        let variant = variant(name_of(c.attr("T")?)?, attributes.format(), &epilogue.text());
        let module = device_for(c)?.modules().get(&variant)?;
        // SAFETY: entries take three addresses, `Depthwise` and `EpilogueInputs`, whose layouts are
        // those of `Sizes` and `Inputs`.
        let entry = |name| unsafe { module.entry(name) };
        let packed = match attributes.format() {
            DataFormat::Nhwc => Some(entry("depthwise_packed")?),
            DataFormat::Nchw => None,
        };
        Ok(Depthwise { attributes, epilogue, single: entry("depthwise")?, packed })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let g = Conv2dGeometry::depthwise(&self.attributes.params(c.dims(0), c.dims(1)))?;
        let Some(call) = Call::new(c, &self.epilogue, &g.output_dims(), g.format)? else {
            return Ok(());
        };
        let Call { launch, y, x, filter, inputs } = &call;
        let (sizes, packed) = Sizes::new(&g, [y, x, filter])?;
        let entry = self.packed.as_ref().filter(|_| packed).unwrap_or(&self.single);
        let grid = Grid::stride(sizes.items.count(), launch.facts());
        let arguments = (y.address, x.address, filter.address, sizes, *inputs);
        // SAFETY: the geometry is that of these shapes, so reads stay within images and filter, and
        // writes within the output; the steps' inputs have a value for each channel or output.
        unsafe { launch.run(entry, grid, arguments) }
    }
}

convolutions!(Depthwise: "DepthwiseConv2dNative", "_FusedDepthwiseConv2dNative");
