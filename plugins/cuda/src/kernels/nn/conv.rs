//! `Conv2D` and `_FusedConv2D` as implicit matrix products.

use super::{
    call::Call,
    conv_tiles::{self, TYPES, Tiles},
    epilogue::{self, Epilogue},
};
use crate::{compile::Variant, kernels::dtype::name_of};
use tenon_sdk::{
    DType, KernelError,
    geometry::{Conv2dGeometry, ConvAttributes, DataFormat},
    prelude::*,
    reg::Numerics,
};

pub(super) fn variants() -> Vec<Variant> {
    let formats = [DataFormat::Nhwc, DataFormat::Nchw];
    let plain = TYPES.iter().flat_map(|ty| formats.map(|format| variant(ty, format, "")));
    let fused = epilogue::examples();
    let fused = fused.iter().map(|steps| variant("f32", DataFormat::Nhwc, steps));
    plain.chain(fused).collect()
}

fn variant(ty: &str, format: DataFormat, steps: &str) -> Variant {
    let variant = conv_tiles::variant(ty, format);
    if steps.is_empty() { variant } else { variant.define("STEPS", steps) }
}

pub(super) struct Conv2d {
    pub attributes: ConvAttributes,
    pub epilogue: Epilogue,
    tiles: Tiles,
}

impl Conv2d {
    /// Like [`Tiles::enqueue`].
    pub fn enqueue(&self, call: &Call<'_>, g: &Conv2dGeometry) -> Result<(), KernelError> {
        self.tiles.enqueue(call, &(*g).into())
    }
}

impl Kernel for Conv2d {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let (attributes, epilogue) = (ConvAttributes::new(c)?, Epilogue::new(c)?);
        let ty = name_of(c.attr("T")?)?;
        let variant = variant(ty, attributes.format(), &epilogue.text());
        Ok(Conv2d { attributes, epilogue, tiles: Tiles::new(c, ty, &variant)? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let g = Conv2dGeometry::new(&self.attributes.params(c.dims(0), c.dims(1)))?;
        match Call::new(c, &self.epilogue, &g.output_dims(), g.format)? {
            Some(call) => self.enqueue(&call, &g),
            None => Ok(()),
        }
    }
}

convolutions!(Conv2d: "Conv2D", "_FusedConv2D");
