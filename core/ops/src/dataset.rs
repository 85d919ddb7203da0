//! Datasets, and iterators over them.
//!
//! A dataset is a value of a variant that says how elements are made, an iterator a resource that has the place
//! of the next one. Each element has a tensor for each component; the attributes `output_types` and
//! `output_shapes` say of which types and shapes. The kernels are plugins/data/src/dataset and
//! plugins/data/src/iterator.

mod file;
mod fold;
mod function;
mod iterator;
mod random;
mod source;
mod transform;

use crate::shape::{input_of_rank, scalar_or_vector, scalar_output};
use tenon_author::{ShapeContext, ShapeResult};
use tenon_framework::{KernelError, PartialShape};

/// A dataset from inputs that are scalars, as far as they have names here.
fn dataset(c: &ShapeContext<'_>, scalars: &[&'static str]) -> ShapeResult {
    for (at, name) in scalars.iter().enumerate() {
        input_of_rank(c, at, name, 0)?;
    }
    scalar_output(c)
}

/// A dataset of the records of files: one name or several, and inputs that are scalars, as far as they have names here.
fn files(c: &ShapeContext<'_>, scalars: &[&'static str]) -> ShapeResult {
    scalar_or_vector(c, 0, "filenames")?;
    for (at, name) in scalars.iter().enumerate() {
        input_of_rank(c, at + 1, name, 0)?;
    }
    scalar_output(c)
}

/// A handle, and the variant that deletes what it leads to.
fn handle_and_deleter(c: &ShapeContext<'_>) -> ShapeResult {
    c.set_output(0, c.scalar())?;
    c.set_output(1, c.scalar())
}

/// The components of an element, from one scalar.
fn element(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 0, "the input", 0)?;
    let shapes: Vec<PartialShape> = c.attr("output_shapes")?;
    if shapes.len() != c.output_count() {
        return Err(KernelError::invalid_argument(format!(
            "output_shapes: expected a shape for each of {} components, found {}",
            c.output_count(),
            shapes.len()
        )));
    }
    for (at, shape) in shapes.iter().enumerate() {
        if let Some(dims) = shape.dims() {
            c.set_output(at, c.shape_of(dims))?;
        }
    }
    Ok(())
}

/// A scalar from the handle of an iterator.
fn of_iterator(c: &ShapeContext<'_>) -> ShapeResult {
    dataset(c, &["resource_handle"])
}

/// A handle from a text.
fn from_text(c: &ShapeContext<'_>) -> ShapeResult {
    dataset(c, &["string_handle"])
}

#[cfg(test)]
mod tests {
    use crate::testing::{check, infer};
    use tenon_framework::{
        DType, PartialShape,
        attr::{AttrList, AttrValue},
    };

    fn form(shapes: &[&[i64]]) -> [(&'static str, AttrValue); 2] {
        let types = vec![DType::INT64; shapes.len()];
        let shapes = shapes.iter().map(|dims| PartialShape::new(dims).unwrap()).collect();
        [
            ("output_types", types.into()),
            ("output_shapes", AttrValue::List(AttrList::Shape(shapes))),
        ]
    }

    #[test]
    fn a_dataset_is_made_from_scalars() {
        check("RangeDataset", &form(&[&[]]), &[(&["[]", "?", "[]"], "[]")]);
        check("TextLineDataset", &[], &[(&["[n]", "[]", "[]"], "[]"), (&["[]", "[]", "?"], "[]")]);
        for (op, inputs) in [
            ("RangeDataset", ["[]", "[1]", "[]"]),
            ("TextLineDataset", ["[n,2]", "[]", "[]"]),
            ("TextLineDataset", ["[n]", "[2]", "[]"]),
        ] {
            let attrs = if op == "RangeDataset" { form(&[&[]]).to_vec() } else { Vec::new() };
            assert!(infer(op, &attrs, &inputs).starts_with('!'), "{op} of {inputs:?}");
        }
    }

    #[test]
    fn an_element_has_the_shapes_of_the_attribute() {
        let expected = [(&["[]"][..], "[3,?]; []")];
        check("IteratorGetNext", &form(&[&[3, -1], &[]]), &expected);
    }
}
