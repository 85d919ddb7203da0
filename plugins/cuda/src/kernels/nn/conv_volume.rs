//! `Conv3D` as an implicit matrix product.

use super::{
    call::Call,
    conv_tiles::{self, TYPES, Tiles},
    epilogue::Epilogue,
};
use crate::{compile::Variant, kernels::dtype::name_of};
use tenon_sdk::{
    DType, KernelError,
    geometry::{Conv3dGeometry, ConvAttributes, DataFormat},
    prelude::*,
    reg::Numerics,
};

pub(super) fn variants() -> Vec<Variant> {
    let formats = [DataFormat::Nhwc, DataFormat::Nchw];
    TYPES.iter().flat_map(|ty| formats.map(|format| variant(ty, format))).collect()
}

fn variant(ty: &str, format: DataFormat) -> Variant {
    conv_tiles::variant(ty, format).define("VOLUME", 1)
}

struct Conv3d {
    attributes: ConvAttributes,
    /// Without steps: no fused op has this convolution.
    epilogue: Epilogue,
    tiles: Tiles,
}

impl Kernel for Conv3d {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let attributes = ConvAttributes::new(c)?;
        let ty = name_of(c.attr("T")?)?;
        let tiles = Tiles::new(c, ty, &variant(ty, attributes.format()))?;
        Ok(Conv3d { attributes, epilogue: Epilogue::new(c)?, tiles })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let g = Conv3dGeometry::forward(&self.attributes.params(c.dims(0), c.dims(1)))?;
        match Call::new(c, &self.epilogue, &g.output_dims(), g.format)? {
            Some(call) => self.tiles.enqueue(&call, &g),
            None => Ok(()),
        }
    }
}

macro_rules! kernels {
    ($($ty:ident, $accumulation:ident, $absolute:expr, $relative:expr;)*) => {$(
        register_kernel!("Conv3D" on "CUDA": Conv3d, types = ("T", &[DType::$ty]),
            numerics = Numerics::relative($absolute, $relative).accumulation(DType::$accumulation));
    )*};
}

// Bounds relative to the sum of the absolute terms, as in two dimensions.
kernels! {
    FLOAT, FLOAT, 1e-30, 4e-6;
    DOUBLE, DOUBLE, 1e-300, 8e-15;
    HALF, FLOAT, 6e-8, 2e-3;
    BFLOAT16, FLOAT, 1e-30, 1.6e-2;
}
