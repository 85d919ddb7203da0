//! Gradients of the ops that resize, move and project images, cut boxes out of them, and convert colours.

use super::{Made, Outcome};
use tenon_author::{GradientContext, register_gradient};
use tenon_framework::{DType, KernelError, abi::GraphValue};

const GRID: &[&str] = &["align_corners", "half_pixel_centers"];

register_gradient!("ResizeBilinear", |c| {
    let known = [DType::FLOAT, DType::BFLOAT16, DType::HALF, DType::DOUBLE];
    resized(c, "ResizeBilinearGrad", &known)
});
register_gradient!("ResizeBicubic", |c| {
    resized(c, "ResizeBicubicGrad", &[DType::FLOAT, DType::DOUBLE])
});
register_gradient!("ResizeNearestNeighbor", |c| {
    let size = super::part_of_shape(c, c.shape_of(c.input(0))?, Some(1), Some(3))?;
    let node = c.op("ResizeNearestNeighborGrad").input(c.gradient(0)?).input(size);
    c.set(0, node.copy(GRID).done()?)
});

register_gradient!("ImageProjectiveTransformV2", |c| {
    let node = c.op("ImageProjectiveTransformV2").inputs(projected_back(c)?);
    c.set(0, node.copy(PROJECTION).done()?)
});
register_gradient!("ImageProjectiveTransformV3", |c| {
    let node = c.op("ImageProjectiveTransformV3").inputs(projected_back(c)?);
    c.set(0, node.input(c.number(DType::FLOAT, 0.0)?).copy(PROJECTION).done()?)
});

const PROJECTION: &[&str] = &["interpolation", "fill_mode"];

/// The gradient, the inverses of the transforms, and the size of the images.
fn projected_back(c: &GradientContext<'_>) -> Result<[GraphValue; 3], KernelError> {
    // The last element of a matrix of three rows is 1.
    let paddings = c.reshape(c.ints(&[0, 0, 0, 1])?, c.ints(&[2, 2])?)?;
    let one = c.number(DType::FLOAT, 1.0)?;
    let whole = c.op("PadV2").input(c.input(1)).input(paddings).input(one).done()?;
    let matrices = c.reshape(whole, c.ints(&[-1, 3, 3])?)?;
    let inverses = c.reshape(c.unary("MatrixInverse", matrices)?, c.ints(&[-1, 9])?)?;
    let parts = c.op("SplitV").input(inverses).input(c.ints(&[8, 1])?).input(c.int(1)?);
    let parts = parts.attr("num_split", 2i64).outputs()?;
    let inverses = c.div(parts[0], parts[1])?;
    let size = super::part_of_shape(c, c.shape_of(c.input(0))?, Some(1), Some(3))?;
    Ok([c.gradient(0)?, inverses, size])
}

register_gradient!("ScaleAndTranslate", |c| {
    if c.dtype(c.input(0)) != DType::FLOAT {
        return Ok(());
    }
    let node = c.op("ScaleAndTranslateGrad").input(c.gradient(0)?).input(c.input(0));
    let node = node.input(c.input(2)).input(c.input(3)).copy(&["kernel_type", "antialias"]);
    c.set(0, node.done()?)
});

/// The gradient of images of one of the `known` types; others have none.
fn resized(c: &GradientContext<'_>, op: &str, known: &[DType]) -> Outcome {
    if !known.contains(&c.dtype(c.input(0))) {
        return Ok(());
    }
    c.set(0, c.op(op).input(c.gradient(0)?).input(c.input(0)).copy(GRID).done()?)
}

register_gradient!("CropAndResize", |c| {
    let (g, image, boxes, indices) = (c.gradient(0)?, c.input(0), c.input(1), c.input(2));
    let dtype = c.dtype(image);
    if c.wants(0) && [DType::FLOAT, DType::HALF, DType::DOUBLE].contains(&dtype) {
        let node = c.op("CropAndResizeGradImage").input(g).input(boxes).input(indices);
        let node = node.input(c.shape_of(image)?).attr("T", dtype);
        c.set(0, node.copy(&["method"]).done()?)?;
    }
    if !c.wants(1) {
        return Ok(());
    }
    // By the boxes, the gradient is that of bilinear interpolation for either method.
    let node = c.op("CropAndResizeGradBoxes").input(g).input(image).input(boxes);
    c.set(1, node.input(indices).done()?)
});

register_gradient!("RGBToHSV", |c| {
    let last = |value| c.op("Unpack").input(value).attr("num", 3i64).attr("axis", -1i64).outputs();
    let (parts, hsv, grads) = (last(c.input(0))?, last(c.output(0))?, last(c.gradient(0)?)?);
    let colours = Colours::new(c, &parts, &hsv)?;
    let of = |channel: usize| {
        let hue = c.mul(grads[0], colours.hue(channel)?)?;
        let saturation = c.mul(grads[1], colours.saturation(channel)?)?;
        c.add(c.add(c.mul(grads[2], colours.greatest[channel])?, saturation)?, hue)
    };
    let all = (0..3).map(of).collect::<Result<Vec<_>, KernelError>>()?;
    c.set(0, c.op("Pack").inputs(all).attr("axis", -1i64).done()?)
});

/// Red, green and blue of pixels, and where each of them is the greatest, the least, and above 0, as
/// 1 and 0. Of equal ones red is the greatest before blue and green, and blue the least before green
/// and red.
struct Colours<'c, 'a> {
    c: &'c GradientContext<'a>,
    parts: [GraphValue; 3],
    greatest: [GraphValue; 3],
    least: [GraphValue; 3],
    positive: [GraphValue; 3],
    /// The inverse of the squares of saturation and value.
    inverse: GraphValue,
}

impl<'c, 'a> Colours<'c, 'a> {
    fn new(
        c: &'c GradientContext<'a>,
        parts: &[GraphValue],
        hsv: &[GraphValue],
    ) -> Result<Self, KernelError> {
        let [r, g, b] = [parts[0], parts[1], parts[2]];
        let both = |first: (&str, [GraphValue; 2]), second: (&str, [GraphValue; 2])| {
            let test = |(op, [x, y]): (&str, [GraphValue; 2])| c.binary(op, x, y);
            c.cast(c.binary("LogicalAnd", test(first)?, test(second)?)?, c.dtype(r))
        };
        let positive = |x| c.cast(c.binary("Greater", x, c.scalar(x, 0.0)?)?, c.dtype(r));
        let squares = |x| inverse(c, c.unary("Square", x)?);
        Ok(Colours {
            c,
            parts: [r, g, b],
            greatest: [
                both(("GreaterEqual", [r, b]), ("GreaterEqual", [r, g]))?,
                both(("Greater", [g, r]), ("GreaterEqual", [g, b]))?,
                both(("Greater", [b, r]), ("Greater", [b, g]))?,
            ],
            least: [
                both(("Less", [r, b]), ("Less", [r, g]))?,
                both(("LessEqual", [g, r]), ("Less", [g, b]))?,
                both(("LessEqual", [b, r]), ("LessEqual", [b, g]))?,
            ],
            positive: [positive(r)?, positive(g)?, positive(b)?],
            inverse: c.mul(squares(hsv[1])?, squares(hsv[2])?)?,
        })
    }

    /// The derivative of the saturation by a channel.
    fn saturation(&self, at: usize) -> Made {
        let (c, [next, last]) = (self.c, [(at + 1) % 3, (at + 2) % 3]);
        let sum = |marks: &[GraphValue; 3]| {
            let parts = [next, last].map(|other| c.mul(marks[other], self.parts[other]));
            let [first, second] = parts;
            c.add(first?, second?)
        };
        let own = self.parts[at];
        let as_greatest = c.mul(sum(&self.least)?, inverse(c, c.unary("Square", own)?)?)?;
        let as_greatest = c.mul(self.greatest[at], as_greatest)?;
        let as_least = c.mul(self.least[at], inverse(c, sum(&self.greatest)?)?)?;
        c.mul(self.positive[at], c.sub(as_greatest, as_least)?)
    }

    /// The derivative of the hue by a channel; `u` and `v` are the channels after it.
    fn hue(&self, at: usize) -> Made {
        let (c, [next, last]) = (self.c, [(at + 1) % 3, (at + 2) % 3]);
        let [own, u, v] = [self.parts[at], self.parts[next], self.parts[last]];
        let behind = c.sub(v, u)?;
        // Where this channel is the greatest; the least, below u or v; in between, below u or v.
        let where_greatest = c.mul(self.greatest[at], c.mul(behind, self.inverse)?)?;
        let as_greatest = c.mul(self.positive[at], where_greatest)?;
        let below = |other: usize| {
            let square = c.unary("Square", c.sub(self.parts[other], own)?)?;
            let slope = c.mul(behind, inverse(c, square)?)?;
            c.mul(self.least[at], slope)
        };
        let between = |least: usize, slope| c.mul(self.least[least], slope);
        let under = |greatest: usize, slopes: [GraphValue; 2]| {
            let mark = c.mul(self.positive[greatest], self.greatest[greatest])?;
            c.mul(mark, c.add(slopes[0], slopes[1])?)
        };
        let first = under(next, [below(next)?, between(last, inverse(c, behind)?)?])?;
        let second = under(last, [below(last)?, between(next, inverse(c, behind)?)?])?;
        c.scale(c.add(as_greatest, c.add(first, second)?)?, 1.0 / 6.0)
    }
}

/// `1 / x`, and 0 for 0.
fn inverse(c: &GradientContext<'_>, x: GraphValue) -> Made {
    c.binary("DivNoNan", c.scalar(x, 1.0)?, x)
}
