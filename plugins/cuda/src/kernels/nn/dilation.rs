//! `Dilation2D`, computed directly.

use super::sizes::{Axis, Items, OutputSizes, Strides, packed_lanes, small};
use crate::{
    compile::{Entry, Source, Variant},
    kernels::dtype::name_of,
    launch::{Grid, Launch, device_for},
    source,
};
use tenon_sdk::{
    DType, KernelError,
    geometry::{DataFormat, Dilation2dGeometry, Dilation2dParams, Padding},
    prelude::*,
    reg::Numerics,
};

static SOURCE: Source = source!("dilation.cu");

pub(super) fn variants() -> Vec<Variant> {
    TYPES.iter().filter_map(|ty| name_of(*ty).ok()).map(variant).collect()
}

fn variant(ty: &str) -> Variant {
    Variant::new(&SOURCE).define("T", ty)
}

/// `Dilation` in `dilation.cu`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sizes {
    rows: Axis,
    columns: Axis,
    items: Items,
    channels: u32,
    unused: u32,
    x: Strides,
    y: Strides,
}

/// Neighbouring outputs of an item, as in `dilation.cu`.
const COLUMNS: i64 = 4;

impl Sizes {
    /// Sizes of a geometry that has outputs, in packs of `lanes` channels.
    fn new(g: &Dilation2dGeometry, lanes: i64) -> Result<Sizes, KernelError> {
        let output = OutputSizes {
            format: DataFormat::Nhwc,
            images: g.batch,
            rows: g.height.output,
            columns: g.width.output,
            channels: g.channels,
        };
        Ok(Sizes {
            rows: Axis::new(&g.height)?,
            columns: Axis::new(&g.width)?,
            items: output.items(lanes, COLUMNS)?,
            channels: small("channels", g.channels)?,
            unused: 0,
            x: Strides::new(output.format, g.height.input, g.width.input, g.channels),
            y: output.strides(),
        })
    }
}

type Dilate = Entry<(u64, u64, u64, Sizes)>;

struct Dilation2d {
    strides: Vec<i64>,
    rates: Vec<i64>,
    padding: Padding,
    single: Dilate,
    packed: Dilate,
}

impl Kernel for Dilation2d {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let module = device_for(c)?.modules().get(&variant(name_of(c.attr("T")?)?))?;
        // SAFETY: entries take three addresses and `Dilation`, whose layout is that of `Sizes`.
        let entry = |name| unsafe { module.entry(name) };
        Ok(Dilation2d {
            strides: c.attr("strides")?,
            rates: c.attr("rates")?,
            padding: Padding::parse(c.attr("padding")?)?,
            single: entry("dilation")?,
            packed: entry("dilation_packed")?,
        })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let g = Dilation2dGeometry::new(&Dilation2dParams {
            input: c.dims(0),
            filter: c.dims(1),
            strides: &self.strides,
            rates: &self.rates,
            padding: self.padding,
        })?;
        let launch = Launch::new(c)?;
        let (x, filter) = (launch.input(0)?, launch.input(1)?);
        let y = launch.output(0, &g.output_dims())?;
        if y.elements == 0 {
            return Ok(());
        }
        let lanes = packed_lanes(g.channels, &[&y, &x, &filter]);
        let sizes = Sizes::new(&g, lanes)?;
        let entry = if lanes > 1 { &self.packed } else { &self.single };
        let grid = Grid::stride(sizes.items.count(), launch.facts());
        // SAFETY: the geometry is that of these shapes, so reads stay within images and filter, and
        // writes within the output.
        unsafe { launch.run(entry, grid, (y.address, x.address, filter.address, sizes)) }
    }
}

/// Element types.
const TYPES: &[DType] = &[
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

register_kernel!("Dilation2D" on "CUDA": Dilation2d, types = ("T", TYPES), numerics = Numerics::EXACT);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_packs_of_neighbouring_columns() {
        assert_eq!(size_of::<Sizes>(), 160);
        let params = Dilation2dParams {
            input: &[2, 6, 7, 8],
            filter: &[2, 2, 8],
            strides: &[1, 2, 1, 1],
            rates: &[1, 1, 1, 1],
            padding: Padding::Valid,
        };
        let g = Dilation2dGeometry::new(&params).unwrap();
        let count = |lanes| Sizes::new(&g, lanes).unwrap().items.count();
        // 3 rows of 6 columns, in 2 groups each.
        assert_eq!((count(4), count(1)), (2 * 3 * 2 * 2, 2 * 3 * 2 * 8));
    }
}
