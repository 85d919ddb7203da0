//! Whether the shape function computes with sizes of 64 bits.
//!
//! Sizes that a case may have are small, and a shape function whose arithmetic is of 32 bits is right about them. It
//! runs without any memory, so it is asked about large ones too: where a dimension of an output grows in equal steps
//! with a size (`rows * times`), it has to go on so beyond 32 bits, or be refused. The finding is a dimension that
//! is wrong by a multiple of 2^32, which nothing but a cut explains: a shape function may stop growing for reasons
//! of its own, such as the end of another input.

use super::{choice::Chosen, site::Site};
use crate::{harness::Form, node::Node};
use tenon_framework::{
    DType, PartialShape, Tensor,
    abi::AttrKind,
    attr::{AttrMap, AttrType, AttrValue},
    op::OpDef,
};

/// Small sizes that are tried, in equal steps.
const SMALL: [i64; 6] = [2, 3, 4, 5, 6, 7];
/// How many of them have to be accepted before a rule is derived.
const ENOUGH: usize = 4;
/// What a large size has in its lower 32 bits: no size, axis or amount of any case.
const ODD: i64 = 16_273;
const WORD: i128 = 1 << 32;

/// A size that is changed.
enum Variable {
    Attr(String),
    /// All dimensions of inputs that have this size.
    Dims(i64),
    /// All elements of a constant input of this type.
    Constant(usize, DType),
}

impl Variable {
    fn words(&self) -> String {
        match self {
            Variable::Attr(name) => format!("attribute {name}"),
            Variable::Dims(size) => format!("the dimension {size} of the inputs"),
            Variable::Constant(at, _) => format!("the elements of input {at}"),
        }
    }

    /// The large size: of 64 bits, or, for elements of 32 bits, the greatest whose products are not.
    fn large(&self) -> i64 {
        match self {
            Variable::Constant(_, DType::INT32) => i64::from(i32::MAX) - ODD,
            _ => WORD as i64 + ODD,
        }
    }
}

/// The problem, if there is one.
pub(super) fn examine(site: &Site<'_>, chosen: &Chosen) -> Result<(), String> {
    if site.subject.op.remote.is_some() {
        return Ok(());
    }
    variables(&site.subject.op, chosen)
        .iter()
        .try_for_each(|variable| grows(site, chosen, variable))
}

fn variables(op: &OpDef, chosen: &Chosen) -> Vec<Variable> {
    let args = || op.inputs.iter().chain(&op.outputs);
    let is_count = |name: &String| args().any(|arg| arg.number_attr.as_ref() == Some(name));
    let integers = op.attrs.iter().filter(|attr| attr.ty == AttrType::one(AttrKind::INT));
    let integers = integers.filter(|attr| !is_count(&attr.name));
    let mut all: Vec<Variable> = integers.map(|attr| Variable::Attr(attr.name.clone())).collect();
    let is_constant = |at: usize| chosen.case.inputs.get(at).is_some_and(|input| input.constant);
    let mut sizes = std::collections::BTreeSet::new();
    for (at, input) in chosen.inputs.iter().enumerate() {
        match input.dtype() {
            DType::INT32 | DType::INT64 if is_constant(at) => {
                all.push(Variable::Constant(at, input.dtype()));
            }
            _ if is_constant(at) => {}
            _ => sizes.extend(input.shape().dims().iter().copied().filter(|&size| size > 0)),
        }
    }
    all.extend(sizes.into_iter().map(Variable::Dims));
    all
}

/// Whether dimensions that grow in equal steps go on growing so.
fn grows(site: &Site<'_>, chosen: &Chosen, variable: &Variable) -> Result<(), String> {
    let small: Vec<(i64, Vec<Option<i64>>)> = (SMALL.iter())
        .filter_map(|&size| Some((size, dims(site, chosen, variable, size)?)))
        .collect();
    let large = variable.large();
    if small.len() < ENOUGH {
        return Ok(());
    }
    // Refused, as sizes beyond any memory may be.
    let Some(found) = dims(site, chosen, variable, large) else { return Ok(()) };
    for (at, &found) in found.iter().enumerate() {
        let points = small.iter().map(|(size, dims)| Some((*size, (*dims.get(at)?)?)));
        let Some(points) = points.collect::<Option<Vec<_>>>() else { continue };
        let (Some(found), Some(expected)) = (found, line(&points, large)) else { continue };
        let cut = expected - i128::from(found);
        if cut != 0 && cut % WORD == 0 {
            let (first, last) = (points[0], points[points.len() - 1]);
            let what = variable.words();
            return Err(format!(
                "{what}: for {} the shape function says {}, for {} {}, and for {large} {found} instead of \
                 {expected}: its arithmetic is cut to 32 bits",
                first.0, first.1, last.0, last.1
            ));
        }
    }
    Ok(())
}

/// The value at a place of a straight line through all points; `None` without a rising one.
fn line(points: &[(i64, i64)], at: i64) -> Option<i128> {
    let wide = |(x, y): (i64, i64)| (i128::from(x), i128::from(y));
    let ((x0, y0), (x1, y1)) = (wide(points[0]), wide(*points.last()?));
    let (run, rise) = (x1 - x0, y1 - y0);
    let on_it = |&point: &(i64, i64)| {
        let (x, y) = wide(point);
        (y - y0) * run == (x - x0) * rise
    };
    if rise <= 0 || rise % run != 0 || !points.iter().all(on_it) {
        return None;
    }
    Some(y0 + (i128::from(at) - x0) * (rise / run))
}

/// The dimensions of all outputs, one list, where the shape function takes a size.
fn dims(
    site: &Site<'_>,
    chosen: &Chosen,
    variable: &Variable,
    size: i64,
) -> Option<Vec<Option<i64>>> {
    let node = node(site, chosen, variable, size)?;
    let inferred = node.infer().ok()?;
    let of = |shape: PartialShape| -> Vec<Option<i64>> {
        let dims = shape.dims().unwrap_or_default().iter();
        dims.map(|&dim| (dim >= 0).then_some(dim)).collect()
    };
    Some(inferred.iter().flat_map(|info| of(info.shape.partial())).collect())
}

fn node(site: &Site<'_>, chosen: &Chosen, variable: &Variable, size: i64) -> Option<Node> {
    let mut attrs: AttrMap = chosen.case.attrs.clone();
    let mut inputs = chosen.inputs.clone();
    match variable {
        Variable::Attr(name) => {
            attrs.insert(name.clone(), AttrValue::Int(size));
        }
        Variable::Constant(at, dtype) => {
            let (dims, count) = (inputs[*at].shape().dims(), inputs[*at].elements());
            let filled = match *dtype {
                DType::INT32 => Tensor::from_slice(dims, &vec![i32::try_from(size).ok()?; count]),
                _ => Tensor::from_slice(dims, &vec![size; count]),
            };
            inputs[*at] = filled.ok()?;
        }
        Variable::Dims(_) => {}
    }
    let mut node = site.node_with(&chosen.case, attrs, &inputs, Form::Shapes).ok()?;
    if let Variable::Dims(own) = variable {
        for (at, shape) in node.input_shapes.iter_mut().enumerate() {
            if node.constants[at].is_none() {
                let dims = shape.dims()?.iter().map(|&dim| if dim == *own { size } else { dim });
                *shape = PartialShape::new(&dims.collect::<Vec<_>>()).ok()?;
            }
        }
    }
    Some(node)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_through_all_points_or_is_none() {
        let large = WORD as i64 + ODD;
        assert_eq!(line(&[(2, 6), (3, 9), (4, 12)], large), Some(3 * i128::from(large)));
        assert_eq!(line(&[(2, 7), (3, 8), (4, 9)], 100), Some(105));
        assert_eq!(line(&[(2, 4), (3, 9), (4, 16)], large), None, "no line");
        assert_eq!(line(&[(2, 1), (4, 2), (6, 3)], large), None, "a division");
        assert_eq!(line(&[(2, 5), (3, 5), (4, 5)], large), None, "it does not grow");
    }
}
