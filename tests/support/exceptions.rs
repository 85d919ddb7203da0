//! Golden cases that TensorFlow's kernels take, and its shape functions refuse where they know the shapes.

use tenon_testkit::{Exception, GoldenCase, Harness, Outcome, run_refused_with_shapes};

/// Windows that are larger than the image by less than a stride.
pub const REFUSED_WITH_SHAPES: &[Exception] = &{
    const fn window(op: &'static str, case: &'static str) -> Exception {
        let reason =
            "the shape function refuses windows larger than the input, the kernel gives nothing";
        Exception { op, case, reason }
    }
    [
        window("AvgPool", "*_nothing_left*"),
        window("AvgPool3D", "*_nothing_left"),
        window("Conv2D", "*_nothing_left*"),
        window("Conv3D", "*_nothing_left"),
        window("DepthwiseConv2dNative", "*_nothing_left*"),
        window("MaxPool", "*_nothing_left*"),
        window("MaxPool3D", "*_nothing_left"),
        window("QuantizedAvgPool", "nothing_left"),
        window("QuantizedMaxPool", "nothing_left"),
    ]
};

/// Runs a case by the kernel of a label; of those here, that the shape function refuses it is part of what it says.
pub fn run(harness: &Harness, case: &GoldenCase, label: &str) -> Outcome {
    match REFUSED_WITH_SHAPES.iter().any(|exception| exception.covers(&case.op, &case.name)) {
        true => run_refused_with_shapes(harness, case, Some(label)),
        false => harness.run(case, Some(label)),
    }
}
