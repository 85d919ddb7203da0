//! Sparse tensors as three messages: their indices, values and shape.

use super::{places, set_places, shape_in};
use crate::shape::{input_of_rank, input_of_rank_at_least, same_size};
use tenon_author::{ShapeContext, ShapeHandle, ShapeResult, register_op};
use tenon_geometry::GeometryError;

const PLACES: &[&str] = &["sparse_indices: int64", "sparse_values: T", "sparse_shape: int64"];
const VALUES: &[&str] = &["sparse_indices: int64", "sparse_values: dtype", "sparse_shape: int64"];
const OUT_TYPE: &str = "out_type: {string, variant} = DT_STRING";

register_op!(
    "SerializeSparse",
    inputs = PLACES,
    outputs = &["serialized_sparse: out_type"],
    attrs = &["T: type", OUT_TYPE],
    cases = &[
        "values; sparse_indices: [3, 2] values(0, 1, 1, 0, 2, 3); sparse_values: [3]; sparse_shape: [2] values(3, 4)"
    ],
    shape = serialize,
    summary = "A sparse tensor as three messages.",
);

register_op!(
    "SerializeManySparse",
    inputs = PLACES,
    outputs = &["serialized_sparse: out_type"],
    attrs = &["T: type", OUT_TYPE],
    cases = &[
        "values; sparse_indices: [3, 2] values(0, 1, 1, 0, 2, 3); sparse_values: [3]; sparse_shape: [2] values(3, 4)"
    ],
    shape = serialize_many,
    summary = "Each part of a sparse tensor along the first dimension as three messages.",
);

register_op!(
    "DeserializeSparse",
    inputs = &["serialized_sparse: Tserialized"],
    outputs = VALUES,
    attrs = &["dtype: type", "Tserialized: {string, variant} = DT_STRING"],
    shape = deserialize,
    summary = "Sparse tensors of three messages each, as one of them all, which has the dimensions of the messages first.",
);

register_op!(
    "DeserializeManySparse",
    inputs = &["serialized_sparse: string"],
    outputs = VALUES,
    attrs = &["dtype: type"],
    shape = deserialize_many,
    summary =
        "A sparse tensor whose parts along the first dimension are those of three messages each.",
);

fn serialize(c: &ShapeContext<'_>) -> ShapeResult {
    for (at, what, rank) in
        [(0, "sparse_indices", 2), (1, "sparse_values", 1), (2, "sparse_shape", 1)]
    {
        input_of_rank(c, at, what, rank)?;
    }
    c.set_output(0, c.shape_of(&[3]))
}

fn serialize_many(c: &ShapeContext<'_>) -> ShapeResult {
    places(c, [0, 1, 2])?;
    let shape = shape_in(c, 2, "sparse_shape")?;
    let parts = match c.rank(shape) {
        Some(found) if found < 2 => {
            let what = "sparse_shape";
            return Err(GeometryError::RankTooSmall { what, expected: 2, found }.into());
        }
        Some(_) => c.dim(shape, 0),
        None => c.make_dim(None),
    };
    c.set_output(0, c.make_shape(&[parts, c.make_dim(Some(3))]))
}

/// Checks that the last dimension has the three messages.
fn check_messages(c: &ShapeContext<'_>, messages: ShapeHandle) -> ShapeResult {
    let Some(last) = c.rank(messages).and_then(|rank| rank.checked_sub(1)) else { return Ok(()) };
    let three = c.make_dim(Some(3));
    same_size(c, "the last dimension of serialized_sparse", three, c.dim(messages, last))?;
    Ok(())
}

fn deserialize(c: &ShapeContext<'_>) -> ShapeResult {
    check_messages(c, input_of_rank_at_least(c, 0, "serialized_sparse", 1)?)?;
    set_places(c, 0, c.make_dim(None), c.make_dim(None))
}

fn deserialize_many(c: &ShapeContext<'_>) -> ShapeResult {
    check_messages(c, input_of_rank(c, 0, "serialized_sparse", 2)?)?;
    set_places(c, 0, c.make_dim(None), c.make_dim(None))
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn messages_are_three() {
        check("SerializeSparse", &[], &[(&["[n,2]", "[n]", "[2]"], "[3]")]);
        let many: [(&[&str], &str); 2] = [
            (&["[n,2]", "[n]", "= [5,4]"], "[5,3]"),
            (&["[n,1]", "[n]", "= [5]"], "! sparse_shape must have at least 2 dimensions, got 1"),
        ];
        check("SerializeManySparse", &[], &many);
        let wrong = "! the last dimension of serialized_sparse must be 3, got 4";
        check("DeserializeSparse", &[], &[(&["[2,n,3]"], "[?,?]; [?]; [?]"), (&["[4]"], wrong)]);
        check("DeserializeManySparse", &[], &[(&["[n,3]"], "[?,?]; [?]; [?]")]);
    }
}
