//! Sums of products by an equation.

use crate::shape::{broadcast_dims, dims_of};
use tenon_author::{Dim, ShapeContext, ShapeResult, register_op};
use tenon_framework::op::Refusal;
use tenon_geometry::{EinsumAxis, EinsumEquation, GeometryError};

register_op!(
    "Einsum",
    inputs = &["inputs: N * T"],
    outputs = &["output: T"],
    attrs = &["equation: string", "N: int >= 1", "T: type"],
    cases = &[
        "product; N = 2; equation = 'ij,jk->ik'; inputs: [a, b], [b, c]",
        "batches; N = 2; equation = '...ij,...jk->...ik'; inputs: [2, a, 3], [2, 3, c]",
        "diagonal; N = 1; equation = 'ii->i'; inputs: [a, a]",
    ],
    shape = einsum,
    refuses = Refusal::Shapes,
    summary = "The sum of products that an equation says, such as \"ij,jk->ik\", of one or two inputs. A label that only the output has is refused.",
);

fn einsum(c: &ShapeContext<'_>) -> ShapeResult {
    let equation = EinsumEquation::new(c.attr("equation")?)?;
    let count = c.input_count();
    if count != equation.inputs() {
        let (expected, found) = (equation.inputs() as i64, count as i64);
        let what = "the number of inputs that equation names";
        return Err(GeometryError::SizeMismatch { what, expected, found }.into());
    }
    let ranks: Option<Vec<usize>> = (0..count).map(|at| c.rank(c.input(at))).collect();
    let Some(ranks) = ranks else { return Ok(()) };
    let (inputs, output) = equation.axes(&ranks)?;
    let mut labels: Vec<(char, Dim)> = Vec::new();
    let mut broadcast: Vec<Dim> = Vec::new();
    for (at, axes) in inputs.iter().enumerate() {
        let mut own = Vec::new();
        for (axis, dim) in axes.iter().zip(dims_of(c, c.input(at))) {
            match axis {
                EinsumAxis::Broadcast(_) => own.push(dim),
                EinsumAxis::Label(label) => match labels.iter_mut().find(|one| one.0 == *label) {
                    Some((_, known)) => *known = c.merge_dim(*known, dim)?,
                    None => labels.push((*label, dim)),
                },
            }
        }
        broadcast = dims_of(c, broadcast_dims(c, &broadcast, &own)?);
    }
    let dims = output.iter().map(|axis| match axis {
        EinsumAxis::Broadcast(back) => broadcast[broadcast.len() - 1 - back],
        EinsumAxis::Label(label) => {
            let known = labels.iter().find(|one| one.0 == *label);
            known.map_or_else(|| c.make_dim(None), |one| one.1)
        }
    });
    c.set_output(0, c.make_shape(&dims.collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn labels_carry_their_sizes() {
        let equation = |text: &str| [("equation", text.into())];
        check(
            "Einsum",
            &equation("ij,jk->ki"),
            &[
                (&["[n,3]", "[?,4]"], "[4,n]"),
                (&["?", "[3,4]"], "?"),
                (
                    &["[2]", "[3,4]"],
                    "! equation \"ij,jk->ki\": input 0 must have 2 dimensions, got 1",
                ),
                (&["[2,2]"], "! the number of inputs that equation names must be 2, got 1"),
            ],
        );
        check("Einsum", &equation("...i,...i->...i"), &[(&["[5,1,n]", "[3,?]"], "[5,3,n]")]);
        check("Einsum", &equation("i->ii"), &[(&["[n]"], "[n,n]")]);
        let missing = "! equation \"i->j\": no input has the label 'j' of the output";
        check("Einsum", &equation("i->j"), &[(&["[3]"], missing)]);
    }
}
