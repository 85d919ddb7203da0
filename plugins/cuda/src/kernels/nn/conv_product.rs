//! `Conv2D` and `_FusedConv2D` with 1x1 filters, as products by cuBLASLt: label `cublaslt`.
//!
//! With channels last, images are a matrix with a row for each pixel, and a 1x1 filter is the other
//! factor, so nothing is reordered. Steps that the library does not perform would need a pass over
//! the results, which takes longer than most such convolutions: other kernels are faster for those.

use crate::{
    cublaslt,
    kernels::linalg::{Attributes, Fused, does_all},
    launch::Launch,
    settings,
};
use tenon_sdk::{
    DType, KernelError,
    author::Supported,
    geometry::{Conv2dGeometry, ConvAttributes, DataFormat, MatMulGeometry, WindowDim},
    prelude::*,
    reg::Numerics,
};

/// The product that equals the convolution; as an error, the reason why none does.
fn product_of(g: &Conv2dGeometry) -> Result<MatMulGeometry, String> {
    let is_pixel = |dim: &WindowDim| dim.kernel == 1 && dim.stride == 1 && dim.output == dim.input;
    let refused = |found: String| {
        let wanted = "a product is a convolution of a 1x1 filter, stride 1, no padding, one group";
        Err(format!("{wanted} and format NHWC: found {found}"))
    };
    let (h, w) = (&g.height, &g.width);
    if g.format != DataFormat::Nhwc || g.groups != 1 {
        return refused(format!("{:?} and {} groups", g.format, g.groups));
    }
    if !is_pixel(h) || !is_pixel(w) {
        return refused(format!(
            "{}x{}, strides {} and {}, outputs of {}x{} for inputs of {}x{}",
            h.kernel, w.kernel, h.stride, w.stride, h.output, w.output, h.input, w.input
        ));
    }
    let pixels = [g.batch, h.input, w.input];
    let rows = pixels.iter().try_fold(1i64, |product, one| product.checked_mul(*one));
    let rows = rows.ok_or_else(|| format!("more pixels than there are numbers: {pixels:?}"))?;
    let (images, filter) = ([rows, g.in_channels], [g.in_channels, g.out_channels]);
    MatMulGeometry::new(&images, &filter, false, false).map_err(|error| error.to_string())
}

fn answer(c: &CreateContext<'_>) -> Result<Supported, KernelError> {
    cublaslt::require()?;
    let attributes = ConvAttributes::new(c)?;
    let steps = Attributes::where_fused(c)?;
    let steps = steps.as_ref().map_or(&[][..], Attributes::steps);
    if !does_all(c, steps, c.attr("T")?)? {
        let names: Vec<&str> = steps.iter().map(|step| step.name()).collect();
        let rule = "cuBLASLt follows a product by BiasAdd, Add, Gelu, and by Relu where cuda.fuse_relu is true";
        return Ok(Supported::No(format!("{rule}: found {}", names.join(", "))));
    }
    let (input, filter) = (c.input_shape(0), c.input_shape(1));
    let (Some(input), Some(filter)) = (input.full(), filter.full()) else {
        return Ok(Supported::DependsOnShapes);
    };
    let g = Conv2dGeometry::new(&attributes.params(input.dims(), filter.dims()))?;
    Ok(match product_of(&g) {
        Ok(_) => Supported::Yes,
        Err(reason) => Supported::No(reason),
    })
}

struct ProductConv2d {
    attributes: ConvAttributes,
    fused: Fused,
    steps: Option<Attributes>,
}

impl Kernel for ProductConv2d {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let steps = Attributes::where_fused(c)?;
        let tf32 = settings::convolution_tf32(c.knobs())?;
        let fused = Fused::new(c, c.attr("T")?, [false; 2], tf32, steps.as_ref())?;
        Ok(ProductConv2d { attributes: ConvAttributes::new(c)?, fused, steps })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let g = Conv2dGeometry::new(&self.attributes.params(c.dims(0), c.dims(1)))?;
        let product = product_of(&g).map_err(KernelError::unimplemented)?;
        let (launch, dims) = (Launch::new(c)?, g.output_dims());
        let arguments = match &self.steps {
            Some(steps) => steps.bind(c, &launch, &dims)?,
            None => Default::default(),
        };
        let y = launch.output(0, &dims)?;
        self.fused.run(&launch, &product, [launch.input(0)?, launch.input(1)?, y], arguments)
    }
}

impl Supports for ProductConv2d {
    fn supports(c: &CreateContext<'_>) -> Supported {
        answer(c).unwrap_or_else(|error| Supported::No(error.message))
    }
}

convolutions!(ProductConv2d: "Conv2D", "_FusedConv2D", label = "cublaslt", priority = 1);

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_sdk::geometry::{Conv2dParams, Padding};

    fn product(
        filter: [i64; 4],
        strides: [i64; 4],
        padding: (Padding, &[i64]),
        format: DataFormat,
    ) -> Result<[usize; 3], String> {
        let g = Conv2dGeometry::new(&Conv2dParams {
            input: &[2, 5, 7, 12],
            filter: &filter,
            strides: &strides,
            dilations: &[1; 4],
            padding: padding.0,
            explicit_paddings: padding.1,
            format,
        });
        product_of(&g.map_err(|error| error.to_string())?).map(|g| [g.m, g.k, g.n])
    }

    #[test]
    fn one_pixel_of_stride_1_is_a_product_and_nothing_else() {
        use DataFormat::{Nchw, Nhwc};
        let (same, valid) = ((Padding::Same, &[][..]), (Padding::Valid, &[][..]));
        assert_eq!(product([1, 1, 12, 20], [1; 4], same, Nhwc), Ok([70, 12, 20]));
        assert_eq!(product([1, 1, 12, 20], [1; 4], valid, Nhwc), Ok([70, 12, 20]));
        let padded = (Padding::Explicit, &[0, 0, 1, 0, 0, 0, 0, 0][..]);
        for (filter, strides, padding, format) in [
            ([1, 1, 12, 20], [1, 2, 2, 1], same, Nhwc),
            ([1, 1, 12, 20], [1; 4], padded, Nhwc),
            ([3, 1, 12, 20], [1; 4], same, Nhwc),
            ([1, 1, 6, 20], [1; 4], same, Nhwc),
            ([1, 1, 5, 20], [1; 4], same, Nchw),
        ] {
            let found = product(filter, strides, padding, format).expect_err("it is not a product");
            assert!(found.contains("a 1x1 filter"), "{found}");
        }
    }
}
