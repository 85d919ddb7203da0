//! Ops through which tensors enter and leave a part of a graph: arguments, results, transfers.

use crate::shape::nothing_known;
use tenon_author::{ShapeContext, ShapeResult, register_op};
use tenon_framework::{Code, PartialShape, op::OpRole};

register_op!(
    "_Arg",
    outputs = &["output: T"],
    attrs = &["T: type", "index: int >= 0"],
    shape = noted,
    stateful = true,
    role = OpRole::Arg,
    checks = true,
    summary = "An argument of the call frame.",
);

register_op!(
    "_Retval",
    inputs = &["input: T"],
    attrs = &["T: type", "index: int >= 0"],
    shape = nothing_known,
    stateful = true,
    role = OpRole::Retval,
    checks = true,
    summary = "A result of the call frame.",
);

register_op!(
    "_Send",
    inputs = &["tensor: T"],
    attrs = &[
        "T: type",
        "tensor_name: string",
        "send_device: string",
        "send_device_incarnation: int",
        "recv_device: string",
        "client_terminated: bool = false",
    ],
    shape = nothing_known,
    stateful = true,
    role = OpRole::Sender,
    checks = true,
    summary = "Hands a tensor to the rendezvous.",
);

register_op!(
    "_Recv",
    outputs = &["tensor: tensor_type"],
    attrs = &[
        "tensor_type: type",
        "tensor_name: string",
        "send_device: string",
        "send_device_incarnation: int",
        "recv_device: string",
        "client_terminated: bool = false",
    ],
    shape = noted,
    stateful = true,
    role = OpRole::Receiver,
    checks = true,
    summary = "Takes a tensor from the rendezvous.",
);

/// The shape is taken from `_output_shapes` if the creator of the node has set it, as in
/// TensorFlow.
fn noted(c: &ShapeContext<'_>) -> ShapeResult {
    let noted = match c.attr::<Vec<PartialShape>>("_output_shapes") {
        Ok(noted) => noted,
        Err(error) if error.code == Code::NOT_FOUND => return Ok(()),
        Err(error) => return Err(error),
    };
    let dims = noted.first().and_then(PartialShape::dims);
    c.set_output(0, dims.map_or_else(|| c.unknown(), |dims| c.shape_of(dims)))
}

#[cfg(test)]
mod tests {
    use crate::testing::check;
    use tenon_framework::{
        PartialShape,
        attr::{AttrList, AttrValue},
    };

    #[test]
    fn an_argument_has_the_noted_shape() {
        let index = ("index", AttrValue::Int(0));
        check("_Arg", std::slice::from_ref(&index), &[(&[], "?")]);
        let noted = AttrList::Shape(vec![PartialShape::new(&[-1, 3]).unwrap()]);
        check(
            "_Arg",
            &[index.clone(), ("_output_shapes", AttrValue::List(noted))],
            &[(&[], "[?,3]")],
        );
        check(
            "_Arg",
            &[index, ("_output_shapes", AttrValue::Int(3))],
            &[(&[], "! attribute _output_shapes: expected list(shape), found int")],
        );
    }

    #[test]
    fn transfers_say_nothing_of_shapes() {
        check("_Recv", &[], &[(&[], "?")]);
        for op in ["_Send", "_Retval"] {
            check(
                op,
                &[],
                &[(&["[2]"], ""), (&[], &format!("! op {op}: expected 1 inputs, found 0"))],
            );
        }
    }
}
