//! Forms of the ops on images.

use crate::{
    forms::{Form, Size, window},
    input::{ints, text},
};
use tenon_framework::{DType, attr::AttrValue};

/// A picture with about as many elements as the size says: height and width, channels.
struct Picture {
    side: usize,
    channels: usize,
}

impl Picture {
    fn new(size: &Size) -> Picture {
        let channels = if size.elements < 10_000 { 16 } else { 32 };
        let side = ((size.elements / channels) as f64).sqrt() as usize;
        Picture { side: side.max(4), channels }
    }

    fn dims(&self, format: &str) -> [usize; 4] {
        match format {
            "NHWC" => [1, self.side, self.side, self.channels],
            _ => [1, self.channels, self.side, self.side],
        }
    }
}

/// The forms of an op on images; `None` where it is none.
pub fn forms(op: &str, size: &Size) -> Option<Vec<Form>> {
    Some(match op {
        "Conv2D" => convolutions(size),
        "DepthwiseConv2dNative" => depthwise(size),
        "MaxPool" | "AvgPool" => pools(size),
        "FusedBatchNormV3" => normalisations(size),
        _ => return None,
    })
}

fn convolutions(s: &Size) -> Vec<Form> {
    let picture = Picture::new(s);
    let conv = |name, side: usize, strides, padding, format| {
        let filter = [side, side, picture.channels, picture.channels];
        let inputs = vec![s.input(&picture.dims(format), 1), s.input(&filter, 2)];
        window(s.form(name, inputs), strides, padding, format)
    };
    vec![
        conv("3x3", 3, [1, 1], "SAME", "NHWC"),
        conv("3x3_valid", 3, [1, 1], "VALID", "NHWC"),
        conv("3x3_strided", 3, [2, 2], "SAME", "NHWC"),
        conv("1x1", 1, [1, 1], "VALID", "NHWC"),
        conv("3x3_nchw", 3, [1, 1], "SAME", "NCHW"),
        conv("3x3_dilated", 3, [1, 1], "SAME", "NHWC").with("dilations", ints(&[1, 2, 2, 1])),
        first_layer(s),
    ]
}

/// Three channels in, sixteen out.
fn first_layer(s: &Size) -> Form {
    let side = ((s.elements / 3) as f64).sqrt() as usize;
    let inputs = vec![s.input(&[1, side, side, 3], 1), s.input(&[3, 3, 3, 16], 2)];
    window(s.form("first_layer", inputs), [1, 1], "SAME", "NHWC")
}

fn depthwise(s: &Size) -> Vec<Form> {
    let picture = Picture::new(s);
    let conv = |name, multiplier: usize, strides, padding, format| {
        let filter = [3, 3, picture.channels, multiplier];
        let inputs = vec![s.input(&picture.dims(format), 1), s.input(&filter, 2)];
        window(s.form(name, inputs), strides, padding, format)
    };
    vec![
        conv("3x3", 1, [1, 1], "SAME", "NHWC"),
        conv("3x3_valid", 1, [1, 1], "VALID", "NHWC"),
        conv("3x3_strided", 1, [2, 2], "SAME", "NHWC"),
        conv("3x3_multiplied", 2, [1, 1], "SAME", "NHWC"),
        conv("3x3_nchw", 1, [1, 1], "SAME", "NCHW"),
    ]
}

fn pools(s: &Size) -> Vec<Form> {
    let picture = Picture::new(s);
    let pool = |name, side: i64, stride: i64, padding, format| {
        let inputs = vec![s.input(&picture.dims(format), 1)];
        let sizes = if format == "NHWC" { [1, side, side, 1] } else { [1, 1, side, side] };
        window(s.form(name, inputs), [stride; 2], padding, format).with("ksize", ints(&sizes))
    };
    vec![
        pool("2x2", 2, 2, "VALID", "NHWC"),
        pool("3x3_overlapping", 3, 2, "SAME", "NHWC"),
        pool("3x3_dense", 3, 1, "SAME", "NHWC"),
        pool("2x2_nchw", 2, 2, "VALID", "NCHW"),
        pool("whole", picture.side as i64, 1, "VALID", "NHWC"),
    ]
}

fn normalisations(s: &Size) -> Vec<Form> {
    let picture = Picture::new(s);
    let float = Size { dtype: DType::FLOAT, ..*s };
    let norm = |name, training: bool, format: &str| {
        let channels = [picture.channels];
        let given = if training { [0] } else { channels };
        let inputs = vec![
            s.input(&picture.dims(format), 1),
            float.positive(&channels, 2),
            float.input(&channels, 3),
            float.input(&given, 4),
            float.positive(&given, 5),
        ];
        s.form(name, inputs)
            .with("U", AttrValue::Type(DType::FLOAT))
            .with("is_training", AttrValue::Bool(training))
            .with("data_format", text(format))
    };
    vec![
        norm("inference", false, "NHWC"),
        norm("inference_nchw", false, "NCHW"),
        norm("training", true, "NHWC"),
        norm("training_nchw", true, "NCHW"),
    ]
}
