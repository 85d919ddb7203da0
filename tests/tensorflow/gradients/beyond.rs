//! Gradients of forms that TensorFlow refuses to compute or to differentiate, by central differences: channels first,
//! transforms of another length than their input's, losses whose inputs broadcast.

use super::numeric::{Input, any, check_graph, check_with, ints};
use tenon_graph::{GraphBuilder, NodeId, Output};
use tenon_runtime::framework::{DType, Tensor};
use tenon_tests::session::runtime;

/// Both parts of a complex value, as the outputs of one node.
fn parts(b: &mut GraphBuilder<'_>, value: impl Into<Output>) -> NodeId {
    let value = value.into();
    let [real, imaginary] = ["Real", "Imag"]
        .map(|op| b.op(op).input(value).attr("Tout", DType::DOUBLE).build().unwrap());
    b.op("IdentityN").input(real).input(imaginary).build().unwrap()
}

#[test]
fn transforms_of_real_numbers_of_another_length() {
    let runtime = runtime(&["tenon_cpu", "tenon_fft"], &[]);
    for length in [3, 4, 5, 6] {
        check_graph(&runtime, "RFFT", &[any(&[2, 6]), ints(&[length])], |b, x| {
            let y = b.op("RFFT").inputs(x.iter().copied()).attr("Tcomplex", DType::COMPLEX128);
            let y = y.build().unwrap();
            parts(b, y)
        });
    }
    for lengths in [[3, 4], [4, 3], [4, 5], [1, 1]] {
        check_graph(&runtime, "RFFT2D", &[any(&[4, 5]), ints(&lengths)], |b, x| {
            let y = b.op("RFFT2D").inputs(x.iter().copied()).attr("Tcomplex", DType::COMPLEX128);
            let y = y.build().unwrap();
            parts(b, y)
        });
    }
}

#[test]
fn transforms_to_real_numbers_of_another_length() {
    let runtime = runtime(&["tenon_cpu", "tenon_fft"], &[]);
    let inverse = |op: &'static str| {
        move |b: &mut GraphBuilder<'_>, x: &[Output]| {
            let value = b.op("Complex").input(x[0]).input(x[1]).attr("Tout", DType::COMPLEX128);
            let value = value.build().unwrap();
            let y = b.op(op).input(value).input(x[2]);
            y.attr("Treal", DType::DOUBLE).build().unwrap()
        }
    };
    for length in [1, 4, 5, 6, 7] {
        check_graph(
            &runtime,
            "IRFFT",
            &[any(&[2, 4]), any(&[2, 4]), ints(&[length])],
            inverse("IRFFT"),
        );
    }
    for lengths in [[2, 4], [3, 5], [3, 3]] {
        let inputs = [any(&[3, 3]), any(&[3, 3]), ints(&lengths)];
        check_graph(&runtime, "IRFFT2D", &inputs, inverse("IRFFT2D"));
    }
}

#[test]
fn channels_first() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    let (images, filter) = (any(&[1, 2, 4, 5]), any(&[2, 3, 2, 3]));
    let pool: [(&str, &[i64]); 2] = [("ksize", &[1, 1, 2, 3]), ("strides", &[1, 1, 2, 1])];
    for padding in ["SAME", "VALID"] {
        check_with(&runtime, "Conv2D", &[images.clone(), filter.clone()], |node| {
            let node = node.attr("strides", vec![1i64, 1, 2, 1]).attr("padding", padding);
            node.attr("data_format", "NCHW")
        });
        for op in ["AvgPool", "MaxPool"] {
            check_with(&runtime, op, std::slice::from_ref(&images), |mut node| {
                for (name, list) in pool {
                    node = node.attr(name, list.to_vec());
                }
                node.attr("padding", padding).attr("data_format", "NCHW")
            });
        }
    }
    check_with(&runtime, "DepthwiseConv2dNative", &[images, any(&[2, 2, 2, 2])], |node| {
        let node = node.attr("strides", vec![1i64, 1, 1, 1]).attr("padding", "SAME");
        node.attr("data_format", "NCHW")
    });
}

/// The losses alone: the second output is the gradient of labels whose sum is 1.
fn losses(b: &mut GraphBuilder<'_>, x: &[Output]) -> NodeId {
    let op = "SoftmaxCrossEntropyWithLogits";
    let loss = b.op(op).inputs(x.iter().copied()).build().unwrap();
    b.op("Identity").input(loss).build().unwrap()
}

#[test]
fn losses_of_logits_and_labels_that_broadcast() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    let constant =
        |dims: &[i64], values: &[f64]| Input::Constant(Tensor::from_slice(dims, values).unwrap());
    let row = constant(&[1, 4], &[0.1, 0.2, 0.3, 0.4]);
    check_graph(&runtime, "logits", &[any(&[3, 4]), row.clone()], losses);
    check_graph(&runtime, "labels of a column", &[row, any(&[3, 1])], losses);
    let rows = constant(&[2, 4], &[0.1, 0.2, 0.3, 0.4, 0.5, 0.25, 0.0, 0.25]);
    check_graph(&runtime, "logits of a row", &[any(&[1, 4]), rows.clone()], losses);
    check_graph(&runtime, "logits of a column", &[any(&[2, 1]), rows.clone()], losses);
    check_graph(&runtime, "labels of a row", &[rows, any(&[1, 4])], losses);
}
