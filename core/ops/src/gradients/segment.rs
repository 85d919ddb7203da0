//! Gradients of reductions of the rows of segments.

use super::{Made, Outcome};
use tenon_author::{GradientContext, register_gradient};
use tenon_framework::{DType, KernelError, abi::GraphValue};

/// The rows of a value with these numbers.
fn rows(c: &GradientContext<'_>, of: GraphValue, ids: GraphValue) -> Made {
    c.op("GatherV2").input(of).input(ids).input(c.int(0)?).done()
}

// Sorted segments.
register_gradient!("SegmentSum", |c| c.set(0, rows(c, c.gradient(0)?, c.input(1))?));
register_gradient!("SegmentMean", |c| {
    let (x, ids, g) = (c.input(0), c.input(1), c.gradient(0)?);
    let sizes = c.binary("SegmentSum", c.cast(ones_per_row(c, x, ids)?, c.dtype(g))?, ids)?;
    c.set(0, rows(c, c.div(g, sizes)?, ids)?)
});
register_gradient!("SegmentMax", sorted_extreme);
register_gradient!("SegmentMin", sorted_extreme);
register_gradient!("SegmentProd", |c| {
    let parts = Product::new(c, |op, x| c.binary(op, x, c.input(1)))?;
    let (g, ids) = (parts.gradient, c.input(1));
    let slopes = parts.slopes(c, |value| rows(c, value, ids))?;
    c.set(0, c.mul(rows(c, g, ids)?, slopes)?)
});

/// Ones, one for each row, which broadcast with the rows.
fn ones_per_row(c: &GradientContext<'_>, x: GraphValue, ids: GraphValue) -> Made {
    let Some(rank) = c.rank(x) else { return c.unary("OnesLike", x) };
    let ones = c.unary("OnesLike", c.cast(ids, DType::INT32)?)?;
    let mut shape = vec![1; rank.max(1)];
    shape[0] = -1;
    c.reshape(ones, c.ints(&shape)?)
}

/// Divides the gradient of a segment equally among the elements that equal its extreme.
fn sorted_extreme(c: &GradientContext<'_>) -> Outcome {
    let (x, ids, g) = (c.input(0), c.input(1), c.gradient(0)?);
    let equal = c.binary("Equal", x, rows(c, c.output(0), ids)?)?;
    let count = c.binary("SegmentSum", c.cast(equal, c.dtype(g))?, ids)?;
    let shares = rows(c, c.div(g, count)?, ids)?;
    c.set(0, c.select(equal, shares, c.zeros_like(x)?)?)
}

/// The gradient of a product of the elements of each segment: no element can be divided by if it is
/// zero, so that segments with one zero, and with several, are apart.
struct Product {
    /// The output's gradient, 0 for segments with several zeros.
    gradient: GraphValue,
    is_zero: GraphValue,
    /// The elements, with 1 for each zero.
    safe: GraphValue,
    /// The products of these.
    safe_product: GraphValue,
}

impl Product {
    /// `reduce` makes the reduction of this kind, `SegmentSum` or `SegmentProd`, of a value.
    fn new(
        c: &GradientContext<'_>,
        reduce: impl Fn(&str, GraphValue) -> Made,
    ) -> Result<Product, KernelError> {
        let (x, g) = (c.input(0), c.gradient(0)?);
        let is_zero = c.binary("Equal", x, c.scalar(x, 0.0)?)?;
        let zeros = reduce("SegmentSum", c.cast(is_zero, DType::INT32)?)?;
        let many = c.binary("Greater", zeros, c.int(1)?)?;
        let gradient = c.select(many, c.zeros_like(g)?, g)?;
        let safe = c.select(is_zero, c.unary("OnesLike", x)?, x)?;
        Ok(Product { gradient, is_zero, safe, safe_product: reduce("SegmentProd", safe)? })
    }

    /// The derivative of each product by its elements; `pick` gives the elements what belongs to
    /// their segment.
    fn slopes(&self, c: &GradientContext<'_>, pick: impl Fn(GraphValue) -> Made) -> Made {
        let others = c.div(pick(c.output(0))?, self.safe)?;
        c.select(self.is_zero, pick(self.safe_product)?, others)
    }
}

// Segments in any order; elements with negative ids belong to none.
register_gradient!("UnsortedSegmentSum", |c| {
    let ids = Ids::new(c)?;
    c.set(0, ids.pick(c, c.gradient(0)?)?)
});
register_gradient!("UnsortedSegmentMax", unsorted_extreme);
register_gradient!("UnsortedSegmentMin", unsorted_extreme);
register_gradient!("UnsortedSegmentProd", |c| {
    let ids = Ids::new(c)?;
    let parts = Product::new(c, |op, x| unsorted(c, op, x))?;
    let slopes = parts.slopes(c, |value| rows(c, value, ids.clipped))?;
    c.set(0, c.mul(ids.pick(c, parts.gradient)?, slopes)?)
});

/// The reduction of unsorted segments for `op` of sorted ones.
fn unsorted(c: &GradientContext<'_>, op: &str, x: GraphValue) -> Made {
    let node = c.op(&format!("Unsorted{op}")).input(x);
    node.input(c.input(1)).input(c.input(2)).done()
}

/// The ids of unsorted segments.
struct Ids {
    /// The ids, with 0 for negative ones.
    clipped: GraphValue,
    /// Which ids are not negative, in a shape that broadcasts with the elements.
    counted: GraphValue,
}

impl Ids {
    fn new(c: &GradientContext<'_>) -> Result<Ids, KernelError> {
        let ids = match c.dtype(c.input(1)) {
            DType::INT64 => c.input(1),
            _ => c.cast(c.input(1), DType::INT32)?,
        };
        let zero = c.scalar(ids, 0.0)?;
        let counted = c.binary("GreaterEqual", ids, zero)?;
        let clipped = c.binary("Maximum", ids, zero)?;
        let axis = c.int(0)?;
        let shape = match (c.known_dims(ids), c.rank(c.input(0))) {
            (Some(mut dims), Some(rank)) => {
                dims.resize(rank.max(dims.len()), 1);
                c.ints(&dims)?
            }
            _ => {
                let added = c.sub(c.rank_of(c.input(0))?, c.rank_of(ids)?)?;
                let added = c.reshape(added, c.ints(&[1])?)?;
                let ones = c.binary("Fill", added, c.int(1)?)?;
                c.op("ConcatV2").input(c.shape_of(ids)?).input(ones).input(axis).done()?
            }
        };
        Ok(Ids { clipped, counted: c.reshape(counted, shape)? })
    }

    /// The rows of a value that belong to the ids, 0 for negative ones.
    fn pick(&self, c: &GradientContext<'_>, value: GraphValue) -> Made {
        let picked = rows(c, value, self.clipped)?;
        c.select(self.counted, picked, c.zeros_like(picked)?)
    }
}

fn unsorted_extreme(c: &GradientContext<'_>) -> Outcome {
    let (x, g, ids) = (c.input(0), c.gradient(0)?, Ids::new(c)?);
    let equal = c.binary("Equal", x, ids.pick(c, c.output(0))?)?;
    let equal = c.binary("LogicalAnd", equal, ids.counted)?;
    let count = unsorted(c, "SegmentSum", c.cast(equal, c.dtype(g))?)?;
    let shares = ids.pick(c, c.div(g, count)?)?;
    c.set(0, c.select(equal, shares, c.zeros_like(x)?)?)
}

// Picked rows.
register_gradient!("SparseSegmentSum", |c| picked(c, "SparseSegmentSumGrad"));
register_gradient!("SparseSegmentMean", |c| picked(c, "SparseSegmentMeanGrad"));
register_gradient!("SparseSegmentSqrtN", |c| picked(c, "SparseSegmentSqrtNGrad"));
register_gradient!("SparseSegmentSumWithNumSegments", |c| picked(c, "SparseSegmentSumGrad"));
register_gradient!("SparseSegmentMeanWithNumSegments", |c| picked(c, "SparseSegmentMeanGrad"));
register_gradient!("SparseSegmentSqrtNWithNumSegments", |c| picked(c, "SparseSegmentSqrtNGrad"));

fn picked(c: &GradientContext<'_>, op: &str) -> Outcome {
    let x = c.input(0);
    let rows = match c.dims(x).as_deref() {
        Some(&[rows, ..]) if rows >= 0 => c.number(DType::INT32, rows as f64)?,
        _ => {
            let zero = c.int(0)?;
            c.op("GatherV2").input(c.shape_of(x)?).input(zero).input(zero).done()?
        }
    };
    let given = [c.gradient(0)?, c.input(1), c.input(2), rows];
    if c.attr("sparse_gradient")? {
        let parts = c.op(&format!("{op}V2")).inputs(given).outputs()?;
        return c.set_slices(0, parts[0], parts[1], c.shape_of(x)?);
    }
    c.set(0, c.op(op).inputs(given).done()?)
}
