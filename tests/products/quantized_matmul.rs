//! `_QuantizedFusedMatMul` through the loaded plugin: against plain sums in 64 bits and the stages of
//! `fixed_point`, on every instruction set of this CPU, with constants packed and not; and what it refuses.

use tenon_framework::DType;
use tenon_tests::quantized::{BYTES, Call, Form, OUTPUTS, all_refused, host, isas};

fn calls() -> Vec<Call> {
    let outs = OUTPUTS.into_iter().cycle().take(40).enumerate();
    outs.map(|(at, out)| {
        let sizes = [1 + at * 7 % 31, 1 + at * 13 % 70, 1 + at * 29 % 150];
        let call = Call::new(sizes, [BYTES[at % 2], BYTES[at / 2 % 2]], out);
        Call { form: Form::MatMul([at % 4 == 1, at % 5 < 2]), ..call }.varied(at)
    })
    .collect()
}

#[test]
fn every_instruction_set_gives_what_the_definition_says() {
    for isa in isas() {
        let host = host(&isa);
        for call in calls() {
            let expected = call.expected();
            let what = format!("{isa} {:?} {:?} {}", call.sizes, call.types, call.out);
            assert_eq!(call.run(&host).expect("the call"), expected, "{what}");
            assert_eq!(call.run_packed(&host), expected, "{what}, packed");
        }
    }
}

/// Large enough that the host's two threads share the work, by rows and by columns.
#[test]
fn threads_do_not_change_results() {
    let host = host("");
    for sizes in [[300, 96, 64], [5, 700, 64]] {
        let call = Call::new(sizes, BYTES, DType::QUINT8).per_column();
        assert_eq!(call.run(&host).expect("the call"), call.expected(), "{sizes:?}");
        assert_eq!(call.run_packed(&host), call.expected(), "{sizes:?}, packed");
    }
}

#[test]
fn nothing_to_sum_leaves_the_bias_and_no_rows_leave_nothing() {
    let host = host("");
    for sizes in [[3, 4, 0], [0, 4, 3], [3, 0, 4]] {
        let call = Call::new(sizes, BYTES, DType::QINT8);
        assert_eq!(call.run(&host).expect("the call"), call.expected(), "{sizes:?}");
    }
}

#[test]
fn a_scale_that_is_none_is_refused() {
    let host = host("");
    let call = Call::new([2, 3, 4], [DType::QUINT8, DType::QINT8], DType::QUINT8);
    for scale in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        for bad in [
            Call { a_scale: scale, ..call.clone() },
            Call { b_scale: vec![0.5, scale, 0.5], ..call.clone() },
            Call { out_scale: scale, ..call.clone() },
        ] {
            let message = bad.refused(&host);
            assert!(message.contains("scale must be finite and above 0, got"), "{message}");
        }
    }
    let refusals = [
        (Call { a_scale: 1e30, ..call.clone() }, "must be in [2^-32, 2^30)"),
        (
            Call { out: DType::QINT32, b_scale: vec![0.5, f32::NAN, 0.5], ..call.clone() },
            "b_scale must be finite and above 0, got NaN",
        ),
        (
            Call { out: DType::FLOAT, a_scale: 1e19, b_scale: vec![1e19], ..call.clone() },
            "must be in [2^-126, 2^97)",
        ),
        (
            Call { out: DType::FLOAT, a_scale: 1e-30, b_scale: vec![1e-30], ..call.clone() },
            "must be in [2^-126, 2^97)",
        ),
        (
            Call { sizes: [0, 3, 4], a: vec![], b_scale: vec![0.5, 0.5, -1.0], ..call.clone() },
            "b_scale must be finite and above 0, got -1",
        ),
    ];
    all_refused(&host, refusals);
}

#[test]
fn what_cannot_be_right_is_refused() {
    let host = host("");
    let call = Call::new([2, 3, 4], [DType::QUINT8, DType::QINT8], DType::QUINT8);
    let refusals = [
        (
            Call { a_zero: 256, ..call.clone() },
            "a_zero_point must be a value of quint8, in [0, 255], got 256",
        ),
        (
            Call { b_zero: vec![0, 0, -129], ..call.clone() },
            "b_zero_point must be a value of qint8, in [-128, 127], got -129",
        ),
        (
            Call { out_zero: -1, ..call.clone() },
            "out_zero_point must be a value of quint8, in [0, 255], got -1",
        ),
        (Call { b_scale: vec![0.5; 2], ..call.clone() }, "b_scale must hold 3 values, got 2"),
        (Call { b_zero: vec![0; 4], ..call.clone() }, "b_zero_point must hold 3 values, got 4"),
        (Call { bias: Some(vec![0; 2]), ..call.clone() }, "bias must hold 3 values, got 2"),
        (
            Call { activation: "CLAMP", clamp: [2.0, 2.0], ..call.clone() },
            "clamp_min must be below clamp_max",
        ),
        (
            Call { activation: "RELU6", out: DType::QINT32, ..call.clone() },
            "activation RELU6 needs the output's scale",
        ),
        (Call { bias: Some(vec![0, i32::MAX, 0]), ..call.clone() }, "can leave 32 bits"),
    ];
    all_refused(&host, refusals);
}

#[test]
fn an_empty_product_costs_nothing_however_wide_or_deep() {
    let host = host("");
    let empty = |sizes: [usize; 3]| Call {
        sizes,
        a: vec![255; sizes[0] * sizes[2]],
        b: vec![],
        b_scale: vec![0.5],
        bias: None,
        ..Call::new([0, 0, 0], [DType::QUINT8; 2], DType::QINT32)
    };
    // No columns of many terms, and many columns of none for no rows.
    for (mut call, zeros) in [(empty([1, 0, 9_000_000]), vec![]), (empty([0, 1 << 34, 0]), vec![5])]
    {
        call.b_zero = zeros;
        assert!(call.run(&host).expect("the call").is_empty());
    }
}

#[test]
fn the_deepest_product_is_computed_and_a_deeper_one_refused() {
    let host = host("");
    let deep = |k: usize| Call {
        a: vec![255; k],
        b: vec![255; k],
        a_zero: 0,
        b_zero: vec![0],
        bias: None,
        ..Call::new([1, 1, k], [DType::QUINT8; 2], DType::QINT32)
    };
    let call = deep(33_025);
    assert_eq!(call.run(&host).expect("the deepest"), (33_025 * 65_025i32).to_le_bytes());
    let message = deep(33_026).refused(&host);
    assert!(message.contains("allow up to 33025 products"), "{message}");
}

/// The worked example of plugins/int8/docs/quantization.md: its numbers are those that the op gives.
#[test]
fn the_worked_example_is_what_the_op_gives() {
    let text = include_str!("../../plugins/int8/docs/quantization.md");
    let host = host("");
    let sums = Call {
        a: vec![20, 30, 10, 12],
        b: vec![1, 254, 3, 4],
        a_scale: 0.5,
        a_zero: 10,
        b_scale: vec![0.25, 0.125],
        b_zero: vec![0, 0],
        out_scale: 0.5,
        out_zero: 100,
        bias: Some(vec![5, -8]),
        ..Call::new([2, 2, 2], [DType::QUINT8, DType::QINT8], DType::QINT32)
    };
    let as_i32s = |bytes: Vec<u8>| -> Vec<i32> {
        bytes.as_chunks().0.iter().map(|&bytes| i32::from_le_bytes(bytes)).collect()
    };
    let found = as_i32s(sums.run(&host).expect("the sums"));
    assert_eq!(found, [75, 52, 11, 0]);
    let floats = Call { out: DType::QUINT8, ..sums.clone() };
    let fixed = Call { requantize: "FIXED_POINT", ..floats.clone() };
    let (floats, fixed) = (floats.run(&host).expect("floats"), fixed.run(&host).expect("fixed"));
    for line in [
        format!("sums       {found:?}"),
        format!("FLOAT       {floats:?}"),
        format!("FIXED_POINT {fixed:?}"),
    ] {
        assert!(text.contains(&line), "the example has no line {line:?}");
    }
}
