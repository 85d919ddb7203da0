//! Shapes that a user says more of.

use crate::fail::Failure;
use tenon_framework::PartialShape;
use tenon_graph::{Inferred, Output};

/// Makes the shape of an output more exact. Nodes that were added before keep what was inferred for them.
///
/// # Errors
/// The shape contradicts the one that is known.
pub(crate) fn refine(
    inferred: &mut Inferred,
    output: Output,
    shape: &PartialShape,
) -> Result<(), Failure> {
    inferred.set_shape(output, &merged(&inferred.shape(output), shape)?);
    Ok(())
}

/// What two descriptions of one shape say together.
fn merged(one: &PartialShape, other: &PartialShape) -> Result<PartialShape, Failure> {
    let (Some(a), Some(b)) = (one.dims(), other.dims()) else {
        return Ok(if one.dims().is_some() { one.clone() } else { other.clone() });
    };
    let fits = |(&a, &b): (&i64, &i64)| a < 0 || b < 0 || a == b;
    if a.len() != b.len() || !a.iter().zip(b).all(fits) {
        return Err(Failure::invalid(format!("the shape is {one}, found {other}")));
    }
    let dims: Vec<i64> = a.iter().zip(b).map(|(&a, &b)| if a < 0 { b } else { a }).collect();
    Ok(PartialShape::new(&dims)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_descriptions_of_a_shape_say_more_than_one() {
        let shape = |dims: &[i64]| PartialShape::new(dims).unwrap();
        assert_eq!(merged(&shape(&[2, -1]), &shape(&[-1, 3])).unwrap(), shape(&[2, 3]));
        assert_eq!(merged(&PartialShape::UNKNOWN, &shape(&[-1])).unwrap(), shape(&[-1]));
        assert_eq!(merged(&shape(&[4]), &PartialShape::UNKNOWN).unwrap(), shape(&[4]));
        assert!(merged(&shape(&[2]), &shape(&[3])).is_err());
        assert!(merged(&shape(&[2]), &shape(&[2, 2])).is_err());
    }
}
