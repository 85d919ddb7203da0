//! `_QuantizedFusedConv2D` and `_QuantizedFusedDepthwiseConv2dNative` through the loaded plugin: against plain sums in
//! 64 bits, on every instruction set of this CPU, with constants packed and not; and what they refuse.

use tenon_framework::{DType, attr::AttrValue};
use tenon_tests::quantized::{BYTES, Call, Form, OUTPUTS, Windows, all_refused, host, isas};

/// Sizes and attributes of many kinds: channels around the lines and lanes of packed rows, windows that reach over every
/// edge, of one tap, larger than the image.
fn windows(depthwise: bool) -> Vec<Windows> {
    let mut all = Vec::new();
    let channels = [1, 3, 5, 16, 17, 33, 64, 66];
    let kernels = [[3, 3], [1, 1], [2, 5], [7, 7], [1, 4], [3, 1]];
    for at in 0..48 {
        let (channels, [height, width]) = (channels[at % 8], kernels[at % 6]);
        let outputs = if depthwise { [1, 1, 2, 3, 1][at % 5] } else { 1 + at * 13 % 70 };
        let padding = ["SAME", "VALID", "EXPLICIT"][at / 2 % 3];
        let dilations = [1 + usize::from(at % 7 == 3), 1 + usize::from(at % 5 == 2)];
        let least = if padding == "SAME" { [1; 2] } else { [height, width] };
        let size = |dim: usize| (least[dim] - 1) * dilations[dim] + 1 + at * (5 + dim) % 8;
        all.push(Windows {
            strides: [1 + at % 2, 1 + at / 3 % 3],
            dilations,
            padding,
            explicit: if padding == "EXPLICIT" { [at % 3, 2, 9, at % 4] } else { [0; 4] },
            ..Windows::new(
                [1 + at % 3, size(0), size(1), channels],
                [height, width, channels, outputs],
            )
        });
    }
    all
}

fn calls(form: fn(Windows, [DType; 2], DType) -> Call, depthwise: bool) -> Vec<Call> {
    let windows = windows(depthwise).into_iter().enumerate();
    windows
        .map(|(at, windows)| {
            let types = [BYTES[at % 2], BYTES[at / 2 % 2]];
            form(windows, types, OUTPUTS[at % 5]).varied(at)
        })
        .collect()
}

fn every_instruction_set_agrees(calls: &[Call]) {
    let expected: Vec<_> = calls.iter().map(Call::expected).collect();
    for isa in isas() {
        let host = host(&isa);
        for (call, expected) in calls.iter().zip(&expected) {
            let what = format!("{isa} {:?} {:?} {}", call.form, call.types, call.out);
            assert_eq!(&call.run(&host).expect("the call"), expected, "{what}");
            if !call.b.is_empty() {
                assert_eq!(&call.run_packed(&host), expected, "{what}, packed");
            }
        }
    }
}

#[test]
fn convolutions_are_what_the_definition_says() {
    every_instruction_set_agrees(&calls(Call::convolution, false));
}

#[test]
fn depthwise_convolutions_are_what_the_definition_says() {
    every_instruction_set_agrees(&calls(Call::depthwise, true));
}

/// A generator of its own, so that a case is the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn byte_of(&mut self, dtype: DType) -> i32 {
        let byte = self.below(256) as u8;
        if dtype == DType::QINT8 { byte.cast_signed().into() } else { byte.into() }
    }

    /// Windows that fit, of one output channel for each of `channels` or of any number.
    fn windows(&mut self, depthwise: bool) -> Windows {
        let mut two = |bound: usize| [1 + self.below(bound), 1 + self.below(bound)];
        let (kernel, strides, dilations, more) = (two(4), two(3), two(3), two(9));
        let padding = ["SAME", "VALID", "EXPLICIT"][self.below(3)];
        let explicit = [0; 4].map(|_| if padding == "EXPLICIT" { self.below(4) } else { 0 });
        let channels = 1 + self.below(70);
        let outputs = 1 + self.below(if depthwise { 3 } else { 40 });
        let [height, width] = [0, 1].map(|dim| (kernel[dim] - 1) * dilations[dim] + more[dim]);
        let input = [1 + self.below(2), height, width, channels];
        let filter = [kernel[0], kernel[1], channels, outputs];
        Windows { strides, dilations, padding, explicit, ..Windows::new(input, filter) }
    }
}

/// Sums of random windows over random values, with zero points anywhere.
#[test]
fn random_windows_are_exact() {
    let random = &mut Random(20);
    let calls: Vec<Call> = (0..120)
        .map(|at| {
            let types = [BYTES[at % 2], BYTES[at / 2 % 2]];
            let windows = random.windows(at % 3 == 0);
            let call = match at % 3 {
                0 => Call::depthwise(windows, types, DType::QINT32),
                _ => Call::convolution(windows, types, DType::QINT32),
            };
            let zeros = if at % 5 == 0 { call.sizes[1] } else { 1 };
            Call {
                a: call.a.iter().map(|_| random.below(256) as u8).collect(),
                b: call.b.iter().map(|_| random.below(256) as u8).collect(),
                a_zero: random.byte_of(types[0]),
                b_zero: (0..zeros).map(|_| random.byte_of(types[1])).collect(),
                bias: call.bias.clone().filter(|_| at % 7 > 2),
                ..call
            }
        })
        .collect();
    every_instruction_set_agrees(&calls);
}

/// Values at both ends of their types, zero points at the other, so that padding is as far from the values as it can be.
#[test]
fn extremes_do_not_saturate() {
    let patterns: [[u8; 2]; 5] = [[255, 255], [128, 128], [127, 128], [255, 0], [0, 0]];
    let mut calls = Vec::new();
    for (at, [even, odd]) in patterns.into_iter().cycle().take(40).enumerate() {
        let types = [BYTES[at / 5 % 2], BYTES[at / 10 % 2]];
        let end = |dtype: DType, high: bool| match dtype {
            DType::QINT8 => {
                if high {
                    127
                } else {
                    -128
                }
            }
            _ => {
                if high {
                    255
                } else {
                    0
                }
            }
        };
        let windows = |channels: usize, outputs: usize| Windows {
            padding: "SAME",
            ..Windows::new([1, 4, 5, channels], [3, 3, channels, outputs])
        };
        for call in [
            Call::convolution(windows(40, 17), types, DType::QINT32),
            Call::depthwise(windows(37, 2), types, DType::QINT32),
        ] {
            calls.push(Call {
                a: (0..call.a.len()).map(|i| if i % 2 == 0 { even } else { odd }).collect(),
                b: (0..call.b.len()).map(|i| if i % 2 == 0 { odd } else { even }).collect(),
                a_zero: end(types[0], at / 20 == 0),
                b_zero: vec![end(types[1], at % 2 == 0)],
                ..call
            });
        }
    }
    every_instruction_set_agrees(&calls);
}

/// Large enough that the host's threads share the work, by rows and by columns.
#[test]
fn threads_do_not_change_results() {
    let host = host("");
    let same = |input, filter| Windows { padding: "SAME", ..Windows::new(input, filter) };
    for call in [
        Call::convolution(same([1, 30, 20, 16], [3, 3, 16, 48]), BYTES, DType::QUINT8),
        Call::convolution(same([1, 2, 3, 64], [3, 3, 64, 300]), BYTES, DType::QUINT8),
        Call::convolution(same([2, 20, 20, 32], [1, 1, 32, 96]), BYTES, DType::QINT8),
        Call::depthwise(same([1, 40, 40, 70], [3, 3, 70, 1]), BYTES, DType::QUINT8),
        Call::depthwise(same([2, 20, 21, 24], [3, 3, 24, 4]), BYTES, DType::QUINT8),
    ] {
        let call = call.per_column();
        assert_eq!(call.run(&host).expect("the call"), call.expected(), "{:?}", call.form);
    }
}

#[test]
fn no_images_no_pixels_and_no_channels_leave_nothing() {
    let host = host("");
    for [n, h, w, outputs] in [[0, 4, 4, 5], [2, 0, 4, 5], [2, 4, 0, 5], [2, 4, 4, 0]] {
        let windows = Windows { padding: "SAME", ..Windows::new([n, h, w, 3], [2, 2, 3, outputs]) };
        let call = Call::convolution(windows, BYTES, DType::QINT8);
        assert!(call.run(&host).expect("the call").is_empty(), "{windows:?}");
        if outputs > 0 {
            let call = Call::depthwise(windows, BYTES, DType::QINT8);
            assert!(call.run(&host).expect("the call").is_empty(), "{windows:?}");
        }
    }
    // Nothing but padding: the bias is left.
    let windows = Windows {
        padding: "EXPLICIT",
        explicit: [2, 2, 1, 3],
        ..Windows::new([1, 0, 4, 3], [2, 2, 3, 5])
    };
    for call in [
        Call::convolution(windows, BYTES, DType::QINT32),
        Call::depthwise(windows, BYTES, DType::QINT32),
    ] {
        assert_eq!(call.run(&host).expect("the call"), call.expected());
        assert!(!call.expected().is_empty());
    }
}

/// One more tap than 32 bits hold is refused, and the most that they hold is computed.
#[test]
fn the_deepest_window_is_computed_and_a_deeper_one_refused() {
    let host = host("");
    let deep = |form: fn(Windows, [DType; 2], DType) -> Call, filter: [usize; 4]| {
        let [height, width, channels, _] = filter;
        let windows = Windows::new([1, height, width, channels], filter);
        let call = form(windows, [DType::QUINT8; 2], DType::QINT32);
        let (a, b) = (vec![255; call.a.len()], vec![255; call.b.len()]);
        Call { a, b, a_zero: 0, b_zero: vec![0], bias: None, ..call }
    };
    let deepest = (33_025 * 65_025i32).to_le_bytes();
    // 33025 = 25 * 1321.
    for (form, most, more) in [
        (Call::convolution as fn(_, _, _) -> _, [5, 5, 1321, 1], [1, 2, 16_513, 1]),
        (Call::depthwise, [25, 1321, 1, 1], [2, 16_513, 1, 1]),
    ] {
        assert_eq!(deep(form, most).run(&host).expect("the deepest"), deepest);
        let message = deep(form, more).refused(&host);
        assert!(message.contains("allow up to 33025 products"), "{message}");
    }
}

fn both() -> [Call; 2] {
    let windows = Windows::new([1, 4, 4, 3], [2, 2, 3, 3]);
    let filter = Windows { filter: [2, 2, 3, 1], ..windows };
    [
        Call::convolution(windows, BYTES, DType::QUINT8),
        Call::depthwise(filter, BYTES, DType::QUINT8),
    ]
}

#[test]
fn parameters_that_cannot_be_right_are_refused() {
    let host = host("");
    for call in both() {
        for scale in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            let must = "must be finite and above 0, got";
            all_refused(
                &host,
                [
                    (Call { a_scale: scale, ..call.clone() }, &format!("input_scale {must}")),
                    (
                        Call { b_scale: vec![0.5, 0.5, scale], ..call.clone() },
                        &format!("filter_scale {must}"),
                    ),
                    (Call { out_scale: scale, ..call.clone() }, &format!("out_scale {must}")),
                ],
            );
        }
        all_refused(
            &host,
            [
                (
                    Call { a_zero: -1, ..call.clone() },
                    "input_zero_point must be a value of quint8, in [0, 255], got -1",
                ),
                (
                    Call { b_zero: vec![0, 128, 0], ..call.clone() },
                    "filter_zero_point must be a value of qint8, in [-128, 127], got 128",
                ),
                (
                    Call { out_zero: 256, ..call.clone() },
                    "out_zero_point must be a value of quint8, in [0, 255], got 256",
                ),
                (
                    Call { b_scale: vec![0.5; 2], ..call.clone() },
                    "filter_scale must hold 3 values, got 2",
                ),
                (
                    Call { b_zero: vec![0; 4], ..call.clone() },
                    "filter_zero_point must hold 3 values, got 4",
                ),
                (Call { bias: Some(vec![0; 2]), ..call.clone() }, "bias must hold 3 values, got 2"),
                (Call { a_scale: 1e30, ..call.clone() }, "must be in [2^-32, 2^30)"),
                (
                    Call { activation: "RELU6", out: DType::QINT32, ..call.clone() },
                    "activation RELU6 needs the output's scale",
                ),
                (Call { bias: Some(vec![0, i32::MIN, 0]), ..call.clone() }, "can leave 32 bits"),
            ],
        );
    }
}

#[test]
fn windows_that_do_not_fit_are_refused() {
    let host = host("");
    let refused = |windows: Windows, depthwise: bool, expected: &str| {
        // Factors of the right sizes, with attributes that may be none.
        let fits = Windows { strides: [1; 2], dilations: [1; 2], ..windows };
        let call = match depthwise {
            true => Call::depthwise(fits, BYTES, DType::QUINT8),
            false => Call::convolution(fits, BYTES, DType::QUINT8),
        };
        let form = if depthwise { Form::Depthwise(windows) } else { Form::Conv(windows) };
        all_refused(&host, [(Call { form, bias: None, ..call }, expected)]);
    };
    let fits = Windows::new([1, 4, 4, 4], [2, 2, 4, 3]);
    for depthwise in [false, true] {
        let large = Windows { filter: [6, 2, 4, 3], ..fits };
        refused(large, depthwise, "window");
        refused(Windows { strides: [0, 1], ..fits }, depthwise, "strides");
        refused(Windows { dilations: [1, 0], ..fits }, depthwise, "dilations");
        refused(
            Windows { explicit: [1; 4], padding: "EXPLICIT", strides: [0, 1], ..fits },
            depthwise,
            "strides",
        );
    }
    refused(Windows { filter: [2, 2, 3, 3], ..fits }, false, "the depth of the input");
    refused(
        Windows { filter: [2, 2, 2, 4], ..fits },
        false,
        "the input depth of the filter must be 4, got 2",
    );
    refused(Windows { filter: [2, 2, 3, 3], ..fits }, true, "the depth of input and filter");
}

#[test]
fn other_formats_and_dilations_of_batches_are_refused() {
    let host = host("");
    for call in both() {
        for (attr, value, expected) in [
            ("data_format", AttrValue::from("NCHW"), "data_format"),
            ("strides", AttrValue::from(vec![1i64, 1, 1, 2]), "strides"),
            ("dilations", AttrValue::from(vec![2i64, 1, 1, 1]), "dilations"),
            ("explicit_paddings", AttrValue::from(vec![1i64; 8]), "explicit_paddings"),
            ("strides", AttrValue::from(vec![1i64; 3]), "strides"),
        ] {
            let node = call.node(&host).attr(attr, value);
            let error = node.call(&call.inputs()).expect_err("refused").message;
            assert!(error.contains(expected), "{error}");
        }
    }
}
