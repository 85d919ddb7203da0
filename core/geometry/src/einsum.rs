//! Sums of products by an equation: `"ij,jk->ik"` is the product of two matrices.
//!
//! Each character of a subscript labels a dimension; `...` stands for any number of dimensions,
//! which broadcast. Labels that are missing from the output are summed over. A label that occurs
//! twice in an input takes its diagonal; one that occurs twice in the output writes a diagonal
//! among zeros.
//! output has twice writes a diagonal among zeros.

use crate::broadcast::broadcast_shape;
use crate::error::{GeometryError, Result};
use crate::offsets::Offsets;
use crate::size::{Dims, element_count, row_major_strides, validate_dims};

/// The name of a dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EinsumAxis {
    /// A label.
    Label(char),
    /// A dimension of the ellipsis, counted from its last one.
    Broadcast(usize),
}

/// A subscript; `None` is the ellipsis.
type Subscript = Vec<Option<char>>;

/// An equation of one or two inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EinsumEquation {
    text: String,
    inputs: Vec<Subscript>,
    output: Subscript,
}

impl EinsumEquation {
    /// Parses an equation.
    pub fn new(text: &str) -> Result<EinsumEquation> {
        let wrong = |problem: &str| problem_of(text, problem.to_owned());
        let (inputs, output) =
            text.split_once("->").ok_or_else(|| wrong("expected one '->', found none"))?;
        if output.contains("->") {
            return Err(wrong("expected one '->', found several"));
        }
        let subscript =
            |part: &str| subscript(part).ok_or_else(|| wrong("'.' must be part of one '...'"));
        let inputs = inputs.split(',').map(subscript).collect::<Result<Vec<Subscript>>>()?;
        if inputs.len() > 2 {
            return Err(wrong(&format!("expected 1 or 2 inputs, found {}", inputs.len())));
        }
        let output = subscript(output)?;
        let unknown = output
            .iter()
            .flatten()
            .find(|label| !inputs.iter().any(|input| input.contains(&Some(**label))));
        match unknown {
            Some(label) => Err(wrong(&format!("no input has the label {label:?} of the output"))),
            None => Ok(EinsumEquation { text: text.to_owned(), inputs, output }),
        }
    }

    /// The number of inputs.
    pub fn inputs(&self) -> usize {
        self.inputs.len()
    }

    /// The names of the dimensions, for inputs of these ranks and for the output.
    pub fn axes(&self, ranks: &[usize]) -> Result<(Vec<Vec<EinsumAxis>>, Vec<EinsumAxis>)> {
        let wrong = |problem: String| problem_of(&self.text, problem);
        if ranks.len() != self.inputs.len() {
            let (expected, found) = (self.inputs.len(), ranks.len());
            return Err(wrong(format!("expected {expected} inputs, got {found}")));
        }
        let mut broadcast = 0;
        for (at, (input, &rank)) in self.inputs.iter().zip(ranks).enumerate() {
            let labels = input.iter().flatten().count();
            if rank < labels || rank > labels && labels == input.len() {
                return Err(wrong(format!("input {at} must have {labels} dimensions, got {rank}")));
            }
            broadcast = broadcast.max(rank - labels);
        }
        if broadcast > 0 && !self.output.contains(&None) {
            return Err(wrong(format!(
                "{broadcast} dimensions broadcast, but the output has no '...'"
            )));
        }
        let inputs = self.inputs.iter().zip(ranks);
        let inputs =
            inputs.map(|(input, &rank)| expand(input, rank - input.iter().flatten().count()));
        Ok((inputs.collect(), expand(&self.output, broadcast)))
    }
}

fn problem_of(equation: &str, problem: String) -> GeometryError {
    GeometryError::Equation { equation: equation.to_owned(), problem }
}

fn subscript(text: &str) -> Option<Subscript> {
    let (before, behind) = text.split_once("...").map_or((text, None), |(a, b)| (a, Some(b)));
    let mut labels: Subscript = before.chars().map(Some).collect();
    if let Some(behind) = behind {
        labels.push(None);
        labels.extend(behind.chars().map(Some));
    }
    (!labels.contains(&Some('.'))).then_some(labels)
}

/// The dimensions of a subscript, with this number of dimensions for the ellipsis.
fn expand(labels: &[Option<char>], broadcast: usize) -> Vec<EinsumAxis> {
    let axes = |label: &Option<char>| match label {
        Some(label) => vec![EinsumAxis::Label(*label)],
        None => (0..broadcast).rev().map(EinsumAxis::Broadcast).collect(),
    };
    labels.iter().flat_map(axes).collect()
}

/// Some dimensions of a tensor, with their strides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EinsumBox {
    /// Sizes.
    pub extents: Dims,
    /// Strides in elements.
    pub strides: Dims,
}

impl EinsumBox {
    /// Appends a dimension.
    pub fn push(&mut self, extent: i64, stride: i64) -> Result<()> {
        self.extents.push(extent)?;
        self.strides.push(stride)
    }

    /// The offsets of the elements, from `base` on, in row-major order.
    pub fn offsets(&self, base: usize) -> Offsets {
        Offsets::new(&self.extents, &self.strides, base as i64)
    }

    /// The number of elements.
    pub fn count(&self) -> Result<usize> {
        element_count(&self.extents)
    }
}

/// An input, with its dimensions sorted by their use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EinsumOperand {
    /// The dimensions in both inputs and in the output.
    pub batch: EinsumBox,
    /// The dimensions in this input and in the output.
    pub free: EinsumBox,
    /// The dimensions in both inputs only.
    pub contracted: EinsumBox,
    /// The dimensions in this input only.
    pub summed: EinsumBox,
}

/// The computation of a sum of products of tensors of known shape, as matrix products: one for each
/// index of the batch, with the free dimensions of the first operand as rows and those of the
/// second as columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EinsumPlan {
    /// Shape of the output.
    pub output: Dims,
    /// One or two operands.
    pub operands: Vec<EinsumOperand>,
    /// The places of the products' elements: the batch, then the free dimensions of each operand.
    pub target: EinsumBox,
}

/// One dimension of the computation.
struct Dimension {
    axis: EinsumAxis,
    size: i64,
    /// The strides in the operands that have the dimension, and in the output.
    operands: [Option<i64>; 2],
    output: Option<i64>,
}

impl EinsumPlan {
    /// Checks the shapes and plans the computation.
    pub fn new(equation: &EinsumEquation, shapes: &[&[i64]]) -> Result<EinsumPlan> {
        shapes.iter().try_for_each(|dims| validate_dims(dims))?;
        let ranks: Vec<usize> = shapes.iter().map(|dims| dims.len()).collect();
        let (inputs, output_axes) = equation.axes(&ranks)?;
        let mut all: Vec<Dimension> = Vec::new();
        for (at, (axes, dims)) in inputs.iter().zip(shapes).enumerate() {
            let strides = row_major_strides(dims)?;
            for (&axis, (&size, &stride)) in axes.iter().zip(dims.iter().zip(&*strides)) {
                enter(&mut all, at, axis, size, stride)?;
            }
        }
        let size =
            |axis: &EinsumAxis| all.iter().find(|one| one.axis == *axis).map_or(1, |one| one.size);
        let sizes: Vec<i64> = output_axes.iter().map(size).collect();
        let output = Dims::from_slice(&sizes)?;
        element_count(&output)?;
        let strides = row_major_strides(&output)?;
        for (axis, &stride) in output_axes.iter().zip(&*strides) {
            if let Some(one) = all.iter_mut().find(|one| one.axis == *axis) {
                *one.output.get_or_insert(0) += stride;
            }
        }
        EinsumPlan::sorted(&all, shapes.len(), output)
    }

    fn sorted(all: &[Dimension], count: usize, output: Dims) -> Result<EinsumPlan> {
        let mut operands = vec![EinsumOperand::default(); count];
        let (mut batch, mut free) = (EinsumBox::default(), [EinsumBox::default(); 2]);
        for one in all {
            match (one.operands, one.output) {
                ([Some(_), Some(_)], Some(stride)) => batch.push(one.size, stride)?,
                ([Some(_), None], Some(stride)) => free[0].push(one.size, stride)?,
                ([None, Some(_)], Some(stride)) => free[1].push(one.size, stride)?,
                _ => {}
            }
            let shared = one.operands.iter().all(Option::is_some);
            for (operand, stride) in operands.iter_mut().zip(one.operands) {
                let Some(stride) = stride else { continue };
                let part = match (shared, one.output) {
                    (true, Some(_)) => &mut operand.batch,
                    (true, None) => &mut operand.contracted,
                    (false, Some(_)) => &mut operand.free,
                    (false, None) => &mut operand.summed,
                };
                part.push(one.size, stride)?;
            }
        }
        let mut target = batch;
        for part in free {
            for (&extent, &stride) in part.extents.iter().zip(&*part.strides) {
                target.push(extent, stride)?;
            }
        }
        Ok(EinsumPlan { output, operands, target })
    }
}

/// Adds a dimension of an input. A dimension of size 1 that broadcasts is left out for this
/// operand.
fn enter(
    all: &mut Vec<Dimension>,
    operand: usize,
    axis: EinsumAxis,
    size: i64,
    stride: i64,
) -> Result<()> {
    let repeats = matches!(axis, EinsumAxis::Broadcast(_)) && size == 1;
    let at = all.iter().position(|one| one.axis == axis).unwrap_or_else(|| {
        all.push(Dimension { axis, size, operands: [None; 2], output: None });
        all.len() - 1
    });
    let found = &mut all[at];
    match axis {
        EinsumAxis::Broadcast(_) => found.size = broadcast_shape(&[found.size], &[size])?[0],
        EinsumAxis::Label(_) if found.size != size => {
            let what = "each dimension of inputs with one label";
            return Err(GeometryError::SizeMismatch { what, expected: found.size, found: size });
        }
        EinsumAxis::Label(_) => {}
    }
    if !repeats {
        *found.operands[operand].get_or_insert(0) += stride;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(equation: &str, shapes: &[&[i64]]) -> Result<EinsumPlan> {
        EinsumPlan::new(&EinsumEquation::new(equation)?, shapes)
    }

    #[test]
    fn a_product_of_matrices() {
        let plan = plan("bij,bjk->kbi", &[&[2, 3, 4], &[2, 4, 5]]).unwrap();
        assert_eq!(plan.output, [5, 2, 3]);
        assert_eq!(
            (plan.target.extents, plan.target.strides.as_slice()),
            (Dims::from_slice(&[2, 3, 5]).unwrap(), &[3, 1, 6][..])
        );
        let [x, y] = plan.operands[..] else { panic!("two operands") };
        assert_eq!((x.free.strides[0], x.contracted.strides[0]), (4, 1));
        assert_eq!((y.free.strides[0], y.contracted.strides[0]), (1, 5));
    }

    #[test]
    fn broadcasts_and_diagonals() {
        let found = plan("...ij,...jk->...ik", &[&[7, 1, 2, 3], &[5, 3, 4]]).unwrap();
        assert_eq!(found.output, [7, 5, 2, 4]);
        assert!(found.operands.iter().all(|operand| operand.batch.extents.is_empty()));
        let found = plan("iij->j", &[&[3, 3, 4]]).unwrap();
        assert_eq!((found.output.as_slice(), found.operands[0].summed.strides[0]), (&[4][..], 16));
        assert_eq!(plan("i->ii", &[&[3]]).unwrap().target.strides, [4]);
    }

    #[test]
    fn what_is_refused() {
        for (equation, shapes) in [
            ("ij,jk", &[&[2i64, 3][..], &[3, 4]][..]),
            ("i->i->i", &[&[2]]),
            ("i.j->ij", &[&[2, 2]]),
            ("......->", &[&[2]]),
            ("i,j,k->", &[&[2], &[2], &[2]]),
            ("ij->k", &[&[2, 2]]),
            ("ij->ij", &[&[2]]),
            ("i->i", &[&[2, 2]]),
            ("i...->i", &[&[2, 2]]),
            ("ij,jk->ik", &[&[2, 3], &[4, 5]]),
            ("ii->i", &[&[2, 3]]),
            ("...,...->...", &[&[2], &[3]]),
            ("i->i", &[&[2], &[2]]),
            ("i->iiiiiiiiiiiiiiiiiiiiii", &[&[2]]),
        ] {
            assert!(plan(equation, shapes).is_err(), "{equation}");
        }
    }
}
