//! Ops that move blocks of space into the batch or the depth, and back; and windows as rows.

use crate::shape::{dims_of, input_of_rank, input_of_rank_at_least, with_identity};
use tenon_author::{ShapeContext, ShapeResult, register_op};
use tenon_framework::KernelError;
use tenon_geometry::{
    DepthFormat, Dims, GeometryError, Padding, PatchGeometry, batch_to_space_dims,
    space_to_batch_dims,
};

/// Registers an op that moves blocks between space and depth.
macro_rules! depth {
    ($($name:literal: $shape:ident, $summary:literal, $cases:expr;)*) => {$(
        register_op!(
            $name,
            inputs = &["input: T"],
            outputs = &["output: T"],
            attrs = &[
                "T: type",
                "block_size: int >= 2",
                "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'",
            ],
            shape = $shape,
            summary = $summary,
            cases = $cases,
        );
    )*};
}

depth! {
    "SpaceToDepth": space_to_depth,
        "Blocks of rows and columns moved into the channels.",
        &[
            "twos; block_size = 2; input: [n, 4, 6, c]",
            "threes; block_size = 3; input: [n, 3, 9, c]",
            "planes; block_size = 2; data_format = 'NCHW'; input: [n, c, 4, 6]",
            "groups; block_size = 2; data_format = 'NCHW_VECT_C'; input: [n, c, 4, 6, 4]",
        ];
    "DepthToSpace": depth_to_space,
        "Channels moved into blocks of rows and columns.",
        &[
            "twos; block_size = 2; input: [n, 2, c, 8]",
            "threes; block_size = 3; input: [n, 3, c, 9]",
            "planes; block_size = 2; data_format = 'NCHW'; input: [n, 4, 3, c]",
            "groups; block_size = 2; data_format = 'NCHW_VECT_C'; input: [n, 4, 3, c, 4]",
        ];
}

register_op!(
    "SpaceToBatch",
    inputs = &["input: T", "paddings: Tpaddings"],
    outputs = &["output: T"],
    attrs = &["T: type", "Tpaddings: {int32, int64} = DT_INT32", "block_size: int >= 2"],
    shape = space_to_batch,
    summary = "Blocks of rows and columns of padded images moved into the batch.",
    cases = &[
        "plain; block_size = 2; input: [n, 4, 6, c]; paddings: [2, 2] values(0)",
        "padded; block_size = 3; input: [n, 5, 7, c]; paddings: [2, 2] values(1, 0, 0, 2)",
    ],
);

register_op!(
    "SpaceToBatchND",
    inputs = &["input: T", "block_shape: Tblock_shape", "paddings: Tpaddings"],
    outputs = &["output: T"],
    attrs = &[
        "T: type",
        "Tblock_shape: {int32, int64} = DT_INT32",
        "Tpaddings: {int32, int64} = DT_INT32",
    ],
    shape = space_to_batch_nd,
    summary = "Blocks of the padded dimensions behind the batch moved into it.",
    cases = &[
        "one; input: [n, 4, c]; block_shape: [1] values(2); paddings: [1, 2] values(1)",
        "two; input: [n, 5, 7, c]; block_shape: [2] values(2, 3); paddings: [2, 2] values(0, 1, 1, 1)",
        "whole; n in 1..40; input: [2, n]; block_shape: [1] values(n); paddings: [1, 2] values(0)",
    ],
);

register_op!(
    "BatchToSpace",
    inputs = &["input: T", "crops: Tidx"],
    outputs = &["output: T"],
    attrs = &["T: type", "block_size: int >= 2", "Tidx: {int32, int64} = DT_INT32"],
    shape = batch_to_space,
    summary = "Parts of the batch moved into blocks of rows and columns, then cropped.",
    cases = &[
        "plain; block_size = 2; input: [4, n, 3, c]; crops: [2, 2] values(0)",
        "threes; block_size = 3; input: [9, n, 3, c]; crops: [2, 2] values(0)",
        "cropped; block_size = 2; input: [8, 3, 2, c]; crops: [2, 2] values(1, 0, 2, 1)",
    ],
);

register_op!(
    "BatchToSpaceND",
    inputs = &["input: T", "block_shape: Tblock_shape", "crops: Tcrops"],
    outputs = &["output: T"],
    attrs = &[
        "T: type",
        "Tblock_shape: {int32, int64} = DT_INT32",
        "Tcrops: {int32, int64} = DT_INT32",
    ],
    shape = batch_to_space_nd,
    summary =
        "Parts of the batch moved into blocks of the dimensions behind it, which are cropped.",
    cases = &[
        "one; input: [6, 4, c]; block_shape: [1] values(2); crops: [1, 2] values(1)",
        "two; input: [12, n, 2, c]; n in 1..20; block_shape: [2] values(2, 3); crops: [2, 2] values(0, 2, 1, 0)",
        "plain; input: [4, n]; block_shape: [1] values(2); crops: [1, 2] values(0)",
        "threes; input: [9, n, c]; block_shape: [1] values(3); crops: [1, 2] values(0)",
    ],
);

register_op!(
    "ExtractImagePatches",
    inputs = &["images: T"],
    outputs = &["patches: T"],
    attrs = &[
        "ksizes: list(int) >= 4",
        "strides: list(int) >= 4",
        "rates: list(int) >= 4",
        "T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, \
         complex64, complex128, bool}",
        "padding: {'SAME', 'VALID'}",
    ],
    shape = patches,
    summary = "The windows over images, each laid out as the channels of one pixel.",
    cases = &[
        "plain; ksizes = [1, 2, 3, 1]; strides = [1, 1, 2, 1]; rates = [1, 1, 1, 1]; \
         padding in {'SAME', 'VALID'}; images: [n, 5, 7, c]",
        "spread; ksizes = [1, 3, 2, 1]; strides = [1, 2, 1, 1]; rates = [1, 2, 3, 1]; \
         padding in {'SAME', 'VALID'}; images: [n, 6, 7, c]",
    ],
);

register_op!(
    "ExtractVolumePatches",
    inputs = &["input: T"],
    outputs = &["patches: T"],
    attrs = &[
        "ksizes: list(int) >= 5",
        "strides: list(int) >= 5",
        "T: realnumbertype",
        "padding: {'SAME', 'VALID'}",
    ],
    shape = volume_patches,
    summary = "The windows over volumes, each laid out as the channels of one pixel.",
    cases = &[
        "plain; ksizes = [1, 2, 3, 2, 1]; strides = [1, 1, 2, 1, 1]; padding in {'SAME', 'VALID'}; \
         input: [n, 4, 5, 3, c]"
    ],
);

/// The shape of a tensor after blocks move between space and depth.
fn depth(
    c: &ShapeContext<'_>,
    dims: impl Fn(DepthFormat, &[i64], i64) -> Result<Dims, GeometryError>,
) -> ShapeResult {
    let format = DepthFormat::parse(c.attr("data_format")?)?;
    let rank = if format == DepthFormat::NchwVectC { 5 } else { 4 };
    let input = input_of_rank(c, 0, "input", rank)?;
    let sizes = c.dims(input).unwrap_or_default();
    let output = dims(format, &sizes, c.attr("block_size")?)?;
    c.set_output(0, with_identity(c, &output, |at| (at == 0).then(|| c.dim(input, at))))
}

fn space_to_depth(c: &ShapeContext<'_>) -> ShapeResult {
    depth(c, DepthFormat::space_to_depth_dims)
}

fn depth_to_space(c: &ShapeContext<'_>) -> ShapeResult {
    depth(c, DepthFormat::depth_to_space_dims)
}

type BatchDims = fn(&[i64], &[i64], &[i64]) -> Result<Dims, GeometryError>;

/// The shape of a tensor after blocks move between space and batch, with the pairs in an input, if
/// the block is known.
fn between(
    c: &ShapeContext<'_>,
    block: Option<Vec<i64>>,
    pairs: usize,
    dims: BatchDims,
) -> ShapeResult {
    let input = c.input(0);
    let columns = dims_of(c, input_of_rank(c, pairs, "paddings and crops", 2)?)[1];
    if let Some(found) = c.value(columns).filter(|&columns| columns != 2) {
        let what = "the number of columns of paddings and crops";
        return Err(GeometryError::SizeMismatch { what, expected: 2, found }.into());
    }
    let Some(sizes) = c.dims(input) else { return c.set_output(0, c.unknown()) };
    let (Some(block), Some(pairs)) = (block, c.constant_integers(pairs)) else {
        return c.set_output(0, c.unknown_of_rank(sizes.len()));
    };
    let output = dims(&sizes, &block, &pairs)?;
    let same = |at: usize| at > block.len();
    c.set_output(0, with_identity(c, &output, |at| same(at).then(|| c.dim(input, at))))
}

fn square(c: &ShapeContext<'_>) -> Result<Option<Vec<i64>>, KernelError> {
    input_of_rank(c, 0, "input", 4)?;
    let size: i64 = c.attr("block_size")?;
    Ok(Some(vec![size, size]))
}

fn block(c: &ShapeContext<'_>) -> Result<Option<Vec<i64>>, KernelError> {
    let block = input_of_rank(c, 1, "block_shape", 1)?;
    let len = c.value(c.dim(block, 0)).unwrap_or(0) as usize;
    input_of_rank_at_least(c, 0, "input", len.saturating_add(1))?;
    Ok(c.constant_integers(1))
}

fn space_to_batch(c: &ShapeContext<'_>) -> ShapeResult {
    between(c, square(c)?, 1, space_to_batch_dims)
}

fn space_to_batch_nd(c: &ShapeContext<'_>) -> ShapeResult {
    between(c, block(c)?, 2, space_to_batch_dims)
}

fn batch_to_space(c: &ShapeContext<'_>) -> ShapeResult {
    between(c, square(c)?, 1, batch_to_space_dims)
}

fn batch_to_space_nd(c: &ShapeContext<'_>) -> ShapeResult {
    between(c, block(c)?, 2, batch_to_space_dims)
}

fn patches(c: &ShapeContext<'_>) -> ShapeResult {
    let images = input_of_rank(c, 0, "images", 4)?;
    let (ksizes, strides, rates): (Vec<i64>, Vec<i64>, Vec<i64>) =
        (c.attr("ksizes")?, c.attr("strides")?, c.attr("rates")?);
    let sizes = c.dims(images).unwrap_or_default();
    let padding = Padding::parse(c.attr("padding")?)?;
    let patches = PatchGeometry::new(&sizes, [&ksizes, &strides, &rates], padding)?;
    c.set_output(0, with_identity(c, &patches.output, |at| (at == 0).then(|| c.dim(images, 0))))
}

fn volume_patches(c: &ShapeContext<'_>) -> ShapeResult {
    let input = input_of_rank(c, 0, "input", 5)?;
    let (ksizes, strides): (Vec<i64>, Vec<i64>) = (c.attr("ksizes")?, c.attr("strides")?);
    let padding = Padding::parse(c.attr("padding")?)?;
    let sizes = c.dims(input).unwrap_or_default();
    let patches = PatchGeometry::of_volumes(&sizes, [&ksizes, &strides], padding)?;
    c.set_output(0, with_identity(c, &patches.output, |at| (at == 0).then(|| c.dim(input, 0))))
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn space_and_depth() {
        let two = [("block_size", 2i64.into())];
        check(
            "SpaceToDepth",
            &two,
            &[
                (&["[n,4,6,3]"], "[n,2,3,12]"),
                (&["?"], "[?,?,?,?]"),
                (&["[n,3,6,3]"], "! the height of input (3) must be a multiple of block_size (2)"),
                (&["[3]"], "! input must have 4 dimensions, got 1"),
            ],
        );
        check("DepthToSpace", &two, &[(&["[n,2,3,12]"], "[n,4,6,3]")]);
        let planes = [("block_size", 2i64.into()), ("data_format", "NCHW".into())];
        check("DepthToSpace", &planes, &[(&["[n,12,2,3]"], "[n,3,4,6]")]);
    }

    #[test]
    fn space_and_batch() {
        check(
            "SpaceToBatchND",
            &[],
            &[
                (&["[2,3,n,c]", "= [3]", "= [[1,2]]"], "[6,2,n,c]"),
                (&["[2,3]", "[1]", "[1,2]"], "[?,?]"),
                (&["[2]", "= [3]", "= [[1,2]]"], "! input must have at least 2 dimensions, got 1"),
                (
                    &["[2,3]", "= [2]", "= [[0,0]]"],
                    "! a dimension of input with its paddings (3) must be a multiple of block_shape (2)",
                ),
            ],
        );
        check("BatchToSpaceND", &[], &[(&["[6,2,m]", "= [3]", "= [[1,2]]"], "[2,3,m]")]);
        let two = [("block_size", 2i64.into())];
        check("SpaceToBatch", &two, &[(&["[1,2,4,c]", "= [[0,0],[0,0]]"], "[4,1,2,c]")]);
        check("BatchToSpace", &two, &[(&["[4,1,2,c]", "= [[0,0],[0,1]]"], "[1,2,3,c]")]);
    }

    #[test]
    fn windows_as_rows() {
        let list = |a: i64, b: i64| vec![1, a, b, 1];
        let attrs = [
            ("ksizes", list(2, 3).into()),
            ("strides", list(1, 2).into()),
            ("rates", list(2, 1).into()),
            ("padding", "VALID".into()),
        ];
        check(
            "ExtractImagePatches",
            &attrs,
            &[(&["[n,5,7,3]"], "[n,3,3,18]"), (&["?"], "[?,?,?,?]")],
        );
        let attrs = [
            ("ksizes", vec![1i64, 2, 3, 1, 1].into()),
            ("strides", vec![1i64, 1, 2, 1, 1].into()),
            ("padding", "VALID".into()),
        ];
        check(
            "ExtractVolumePatches",
            &attrs,
            &[
                (&["[n,4,5,3,2]"], "[n,3,2,3,12]"),
                (&["[n,4,5,3]"], "! input must have 5 dimensions, got 4"),
            ],
        );
    }
}
