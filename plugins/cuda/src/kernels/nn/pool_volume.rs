//! `MaxPool3D` and `AvgPool3D`. With channels first, each channel is treated as an image with one
//! channel.

use super::{
    pool::Fold,
    sizes::{Axis, Items, packed_lanes, small},
};
use crate::{
    compile::{Entry, Source, Variant},
    kernels::dtype::name_of,
    launch::{Grid, Launch, Operand, device_for},
    source,
};
use tenon_sdk::{
    DType, KernelError,
    geometry::{DataFormat, Pool3dGeometry, PoolAttributes},
    prelude::*,
    reg::Numerics,
};

static SOURCE: Source = source!("pool_volume.cu");

pub(super) fn variants() -> Vec<Variant> {
    let folds = [Fold::Greatest, Fold::Mean];
    ["bf16", "f32"].iter().flat_map(|ty| folds.map(|fold| variant(ty, fold))).collect()
}

fn variant(ty: &str, fold: Fold) -> Variant {
    Variant::new(&SOURCE).define("T", ty).define("FOLD", format!("{fold:?}"))
}

/// `Pooling` in `pool_volume.cu`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sizes {
    windows: [Axis; 3],
    items: Items<4>,
    channels: u32,
}

impl Sizes {
    /// Sizes of a geometry that has outputs, and whether it is processed in packs.
    fn new(g: &Pool3dGeometry, all: [&Operand; 2]) -> Result<(Sizes, bool), KernelError> {
        let (images, channels) = match g.format {
            DataFormat::Nhwc => (g.batch, g.channels),
            DataFormat::Nchw => (g.batch * g.channels, 1),
        };
        let lanes = packed_lanes(channels, &all);
        let [planes, rows, columns] = g.windows.map(|window| window.output);
        let [first, second, third] = g.windows.each_ref().map(Axis::new);
        let sizes = Sizes {
            windows: [first?, second?, third?],
            items: Items::new(images, [channels / lanes, columns, rows, planes])?,
            channels: small("channels", channels)?,
        };
        Ok((sizes, lanes > 1))
    }
}

type Pooling = Entry<(u64, u64, Sizes)>;

/// The pooling of a node.
struct Pool {
    attributes: PoolAttributes,
    single: Pooling,
    packed: Pooling,
}

impl Pool {
    fn new(c: &CreateContext<'_>, fold: Fold) -> Result<Pool, KernelError> {
        let variant = variant(name_of(c.attr("T")?)?, fold);
        let module = device_for(c)?.modules().get(&variant)?;
        // SAFETY: entries take two addresses and `Pooling`, whose layout is that of `Sizes`.
        let entry = |name| unsafe { module.entry(name) };
        Ok(Pool {
            attributes: PoolAttributes::new(c)?,
            single: entry("pool_volume")?,
            packed: entry("pool_volume_packed")?,
        })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let g = Pool3dGeometry::new(&self.attributes.params(c.dims(0)))?;
        let launch = Launch::new(c)?;
        let (x, y) = (launch.input(0)?, launch.output(0, &g.output_dims())?);
        if y.elements == 0 {
            return Ok(());
        }
        let (sizes, packed) = Sizes::new(&g, [&y, &x])?;
        let entry = if packed { &self.packed } else { &self.single };
        let grid = Grid::stride(sizes.items.count(), launch.facts());
        // SAFETY: the geometry is that of these shapes, so reads stay within the input, and each
        // item writes its own part of the output.
        unsafe { launch.run(entry, grid, (y.address, x.address, sizes)) }
    }
}

macro_rules! kernels {
    ($($name:ident $fold:ident;)*) => {$(
        struct $name(Pool);

        impl Kernel for $name {
            fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
                Pool::new(c, Fold::$fold).map($name)
            }

            fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
                self.0.compute(c)
            }
        }
    )*};
}

kernels! {
    MaxPool3d Greatest;
    AvgPool3d Mean;
}

register_kernel!("MaxPool3D" on "CUDA": MaxPool3d, types = ("T", &[DType::BFLOAT16, DType::FLOAT]),
    numerics = Numerics::EXACT);
register_kernel!("AvgPool3D" on "CUDA": AvgPool3d, types = ("T", &[DType::FLOAT]),
    numerics = Numerics::relative(1e-37, 2e-6).accumulation(DType::FLOAT));
register_kernel!("AvgPool3D" on "CUDA": AvgPool3d, types = ("T", &[DType::BFLOAT16]),
    numerics = Numerics::relative(1e-37, 1.6e-2).accumulation(DType::FLOAT));

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_sdk::geometry::{Padding, Pool2dParams};

    fn sizes(format: DataFormat, address: u64) -> (Sizes, bool) {
        let params = Pool2dParams {
            input: &[2, 8, 6, 5, 4],
            ksize: &[1, 1, 2, 2, 1],
            strides: &[1, 1, 2, 1, 1],
            padding: Padding::Valid,
            explicit_paddings: &[],
            format,
        };
        let operand = Operand { address, elements: 1, dtype: DType::FLOAT };
        Sizes::new(&Pool3dGeometry::new(&params).unwrap(), [&operand, &operand]).unwrap()
    }

    #[test]
    fn channels_that_are_first_are_images() {
        assert_eq!(size_of::<Sizes>(), 128);
        let (last, packed) = sizes(DataFormat::Nhwc, 512);
        assert_eq!((last.items.count(), last.channels, packed), (2 * 8 * 3 * 4, 4, true));
        let (single, packed) = sizes(DataFormat::Nhwc, 516);
        assert_eq!((single.items.count(), single.channels, packed), (2 * 8 * 3 * 4 * 4, 4, false));
        let (first, packed) = sizes(DataFormat::Nchw, 512);
        assert_eq!((first.items.count(), first.channels, packed), (2 * 8 * 3 * 4 * 4, 1, false));
    }
}
