//! Ops that repeat and mirror tensors.

use crate::shape::{dims_of, input_of_rank, with_identity};
use tenon_author::{ShapeContext, ShapeHandle, ShapeResult, register_op};
use tenon_framework::{
    KernelError,
    op::{GradientRule, Refusal},
};
use tenon_geometry::{
    GeometryError, broadcast_gradient_axes, broadcast_shape, check_broadcast_to, mirror_offset,
    mirror_pad_dims, mirror_pad_grad_dims, tile_dims,
};

register_op!(
    "Tile",
    inputs = &["input: T", "multiples: Tmultiples"],
    outputs = &["output: T"],
    attrs = &["T: type", "Tmultiples: {int32, int64} = DT_INT32"],
    shape = tile,
    refuses = Refusal::Shapes,
    deciding = &[1],
    summary = "The tensor repeated along each dimension.",
    cases = &[
        "vector; input: [n]; multiples: [1] integers(0..4)",
        "matrix; input: [n, m]; multiples: [2] integers(1..4)",
        "scalar; input: []; multiples: [0]",
    ],
    bench = &["rows; input: [64, 1024]; multiples: [2] values(16, 1)",],
);

register_op!(
    "BroadcastTo",
    inputs = &["input: T", "shape: Tidx"],
    outputs = &["output: T"],
    attrs = &["T: type", "Tidx: {int32, int64} = DT_INT32"],
    shape = broadcast_to,
    refuses = Refusal::Shapes,
    deciding = &[1],
    summary = "The tensor repeated along its dimensions of size 1, and along new leading ones.",
    cases = &[
        "same; input: [n]; shape: [1] values(n)",
        "rows; input: [n]; shape: [2] values(3, n)",
        "columns; input: [n, 1]; shape: [2] values(n, 7)",
        "scalar; input: []; shape: [2] values(2, 5)",
    ],
);

register_op!(
    "BroadcastArgs",
    inputs = &["s0: T", "s1: T"],
    outputs = &["r0: T"],
    attrs = &["T: {int32, int64} = DT_INT32"],
    shape = broadcast_args,
    summary = "The shape that two shapes broadcast to.",
    cases = SHAPES,
);

register_op!(
    "BroadcastGradientArgs",
    inputs = &["s0: T", "s1: T"],
    outputs = &["r0: T", "r1: T"],
    attrs = &["T: {int32, int64} = DT_INT32"],
    shape = broadcast_gradient_args,
    gradient = GradientRule::None,
    summary = "The dimensions over which the gradients of two broadcast operands are summed.",
    cases = SHAPES,
);

const SHAPES: &[&str] = &[
    "same; s0: [2] values(3, 5); s1: [2] values(3, 5)",
    "rows; s0: [2] values(3, 5); s1: [1] values(5)",
    "both; s0: [3] values(3, 1, 1); s1: [2] values(4, 1)",
    "scalar; s0: [0]; s1: [k] integers(1..4); k in 0..9",
];

/// Registers an op with mirrored paddings.
macro_rules! mirrored {
    ($($name:literal: $shape:ident, $summary:literal, $cases:expr;)*) => {$(
        register_op!(
            $name,
            inputs = &["input: T", "paddings: Tpaddings"],
            outputs = &["output: T"],
            attrs = &[
                "T: type",
                "Tpaddings: {int32, int64} = DT_INT32",
                "mode: {'REFLECT', 'SYMMETRIC'}",
            ],
            shape = $shape,
            summary = $summary,
            cases = $cases,
        );
    )*};
}

mirrored! {
    "MirrorPad": mirror_pad,
        "The tensor with its own elements, mirrored at the edge, before and after each dimension.",
        &[
            "vector; mode in {'REFLECT', 'SYMMETRIC'}; n in 4..200000; input: [n]; paddings: [1, 2] integers(0..4)",
            "matrix; mode in {'REFLECT', 'SYMMETRIC'}; n in 3..40; input: [n, 5]; paddings: [2, 2] integers(0..3)",
            "empty; mode = 'SYMMETRIC'; input: [0, 5]; paddings: [2, 2] values(0)",
        ];
    "MirrorPadGrad": mirror_pad_grad,
        "The gradient of a mirrored padding: what was mirrored is added where it came from.",
        &[
            "vector; mode in {'REFLECT', 'SYMMETRIC'}; n in 11..200000; input: [n]; paddings: [1, 2] integers(0..4)",
            "matrix; mode in {'REFLECT', 'SYMMETRIC'}; n in 8..40; input: [n, 9]; paddings: [2, 2] integers(0..3)",
            "empty; mode = 'SYMMETRIC'; input: [0, 5]; paddings: [2, 2] values(0)",
        ];
}

fn tile(c: &ShapeContext<'_>) -> ShapeResult {
    let multiples = input_of_rank(c, 1, "multiples", 1)?;
    let input = match c.value(c.dim(multiples, 0)) {
        Some(rank) => input_of_rank(c, 0, "input", rank as usize)?,
        None => c.input(0),
    };
    let Some(sizes) = c.dims(input) else { return c.set_output(0, c.unknown()) };
    let Some(multiples) = c.constant_integers(1) else {
        return c.set_output(0, c.unknown_of_rank(sizes.len()));
    };
    let tiled = tile_dims(&sizes, &multiples)?;
    c.set_output(0, with_identity(c, &tiled, |at| (multiples[at] == 1).then(|| c.dim(input, at))))
}

fn broadcast_to(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 1, "shape", 1)?;
    let output = c.constant_as_shape(1)?;
    if let (Some(input), Some(wanted)) = (c.dims(c.input(0)), c.dims(output)) {
        check_broadcast_to(&input, &wanted)?;
    }
    c.set_output(0, output)
}

fn broadcast_args(c: &ShapeContext<'_>) -> ShapeResult {
    let length = |at, what| Ok::<_, KernelError>(c.value(c.dim(input_of_rank(c, at, what, 1)?, 0)));
    let lengths = (length(0, "s0")?, length(1, "s1")?);
    if let (Some(a), Some(b)) = (c.constant_integers(0), c.constant_integers(1)) {
        broadcast_shape(&a, &b)?;
    }
    let rank = lengths.0.zip(lengths.1).map(|(a, b)| a.max(b));
    c.set_output(0, c.make_shape(&[c.make_dim(rank)]))
}

fn broadcast_gradient_args(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 0, "s0", 1)?;
    input_of_rank(c, 1, "s1", 1)?;
    let axes = match (c.constant_integers(0), c.constant_integers(1)) {
        (Some(a), Some(b)) => broadcast_gradient_axes(&a, &b)?.map(|axes| Some(axes.len() as i64)),
        _ if same_sizes(c) => [Some(0); 2],
        _ => [None; 2],
    };
    (0..2).try_for_each(|at| c.set_output(at, c.make_shape(&[c.make_dim(axes[at])])))
}

/// Whether both inputs are certain to be one shape, of which some sizes may be unknown.
fn same_sizes(c: &ShapeContext<'_>) -> bool {
    let (Ok(a), Ok(b)) = (c.constant_as_shape(0), c.constant_as_shape(1)) else { return false };
    let (Some(rank), true) = (c.rank(a), c.rank(a) == c.rank(b)) else { return false };
    (0..rank).all(|at| c.dim(a, at) == c.dim(b, at))
}

/// Input 0 and its sizes, with the rank given by the paddings in input 1.
fn padded_input(c: &ShapeContext<'_>) -> Result<(ShapeHandle, Option<Vec<i64>>), KernelError> {
    let paddings = dims_of(c, input_of_rank(c, 1, "paddings", 2)?);
    if let Some(found) = c.value(paddings[1]).filter(|&columns| columns != 2) {
        let what = "the number of columns of paddings";
        return Err(GeometryError::SizeMismatch { what, expected: 2, found }.into());
    }
    let input = match c.value(paddings[0]) {
        Some(rank) => input_of_rank(c, 0, "input", rank as usize)?,
        None => c.input(0),
    };
    Ok((input, c.dims(input)))
}

fn mirror_pad(c: &ShapeContext<'_>) -> ShapeResult {
    let (input, Some(sizes)) = padded_input(c)? else { return c.set_output(0, c.unknown()) };
    let offset = mirror_offset(c.attr("mode")?)?;
    let Some(paddings) = c.constant_integers(1) else {
        return c.set_output(0, c.unknown_of_rank(sizes.len()));
    };
    let output = mirror_pad_dims(&sizes, &paddings, offset)?;
    let same = |at: usize| paddings[2 * at..2 * at + 2] == [0, 0];
    c.set_output(0, with_identity(c, &output, |at| same(at).then(|| c.dim(input, at))))
}

fn mirror_pad_grad(c: &ShapeContext<'_>) -> ShapeResult {
    let (input, Some(sizes)) = padded_input(c)? else { return c.set_output(0, c.unknown()) };
    let offset = mirror_offset(c.attr("mode")?)?;
    let Some(paddings) = c.constant_integers(1) else {
        return c.set_output(0, c.unknown_of_rank(sizes.len()));
    };
    let output = mirror_pad_grad_dims(&sizes, &paddings, offset)?;
    let same = |at: usize| paddings[2 * at..2 * at + 2] == [0, 0];
    c.set_output(0, with_identity(c, &output, |at| same(at).then(|| c.dim(input, at))))
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn repeated_tensors() {
        check(
            "Tile",
            &[],
            &[
                (&["[2,n,m]", "= [3,1,2]"], "[6,n,?]"),
                (&["?", "[2]"], "[?,?]"),
                (&["[2]", "= [-1]"], "! multiples must be at least 0, got -1"),
                (&["[2]", "[2]"], "! input must have 2 dimensions, got 1"),
            ],
        );
        check(
            "BroadcastTo",
            &[],
            &[
                (&["[3,1]", "= [2,3,4]"], "[2,3,4]"),
                (&["[3,1]", "[3]"], "[?,?,?]"),
                (
                    &["[3]", "= [2]"],
                    "! shapes [3] and [2] do not broadcast: each pair of dimensions must be equal or hold a 1: input is [3], shape is [1]",
                ),
            ],
        );
        check("BroadcastArgs", &[], &[(&["[2]", "[3]"], "[3]"), (&["[2]", "[?]"], "[?]")]);
        check(
            "BroadcastGradientArgs",
            &[],
            &[
                (&["[2]", "[3]"], "[?]; [?]"),
                (&["= [2,1]", "= [3,1,4]"], "[2]; [1]"),
                (&["[2]", "[2]"], "[?]; [?]"),
            ],
        );
    }

    #[test]
    fn mirrored_tensors() {
        let mode = |mode: &str| [("mode", mode.into())];
        check(
            "MirrorPad",
            &mode("REFLECT"),
            &[
                (&["[3,n]", "= [[2,1],[0,0]]"], "[6,n]"),
                (&["?", "[2,2]"], "[?,?]"),
                (&["[3]", "= [[3,0]]"], "! paddings must be at most 2, got 3"),
                (&["[3]", "[1,3]"], "! the number of columns of paddings must be 2, got 3"),
            ],
        );
        check("MirrorPad", &mode("SYMMETRIC"), &[(&["[3]", "= [[3,0]]"], "[6]")]);
        check(
            "MirrorPadGrad",
            &mode("SYMMETRIC"),
            &[
                (&["[6,n]", "= [[2,1],[0,0]]"], "[3,n]"),
                (&["[4]", "= [[3,0]]"], "! paddings must be at most 1, got 3"),
            ],
        );
    }
}
