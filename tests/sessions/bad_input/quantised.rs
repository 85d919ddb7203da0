//! Ranges, zeros and sums that the ops on quantised types refuse.

use tenon_framework::element::{Element, QInt32, QUInt8};
use tenon_runtime::framework::{Code, DType, Tensor, attr::AttrValue};
use tenon_testkit::host::{Node, TestHost, elements, library, scalar};
use tenon_tests::session::{Turn, turn};

/// A host, whose memory other tests do not count meanwhile.
fn host() -> (Turn, TestHost) {
    (turn(), TestHost::with([library("tenon-cpu"), library("tenon-int8")]))
}

fn filled<T: Element>(dims: &[i64], value: T) -> Tensor {
    let count = dims.iter().product::<i64>() as usize;
    Tensor::from_slice(dims, &vec![value; count]).unwrap()
}

/// The inputs, then scalars.
fn with<const N: usize>(inputs: &[Tensor], ends: [f32; N]) -> Vec<Tensor> {
    inputs.iter().cloned().chain(ends.map(scalar)).collect()
}

#[track_caller]
fn refuses(node: &Node<'_>, inputs: &[Tensor], expected: &str) {
    let error = node.call(inputs).unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (Code::INVALID_ARGUMENT, expected));
}

#[test]
fn ranges_have_finite_ends_in_order() {
    let (_turn, host) = host();
    let quantize = || host.node("QuantizeV2").attr("T", DType::QUINT8);
    let says = |found: &str| {
        format!(
            "min_range and max_range must be finite, min_range at most max_range, and their difference below 3.4e38, found {found}"
        )
    };
    let x = [filled(&[2], 1f32)];
    refuses(&quantize(), &with(&x, [2.0, 1.0]), &says("2 and 1"));
    refuses(&quantize(), &with(&x, [f32::NAN, 1.0]), &says("NaN and 1"));
    refuses(&quantize(), &with(&x, [0.0, f32::INFINITY]), &says("0 and inf"));
    let wide = quantize().call(&with(&x, [-3e38, 3e38])).unwrap_err();
    assert!(wide.message.contains("their difference below 3.4e38"), "{}", wide.message);
    let codes = [filled(&[2], QUInt8(1))];
    refuses(&host.node("Dequantize"), &with(&codes, [2.0, 1.0]), &says("2 and 1"));
    let relu = says("NaN and 1").replace("_range", "_features");
    refuses(&host.node("QuantizedRelu"), &with(&codes, [f32::NAN, 1.0]), &relu);
}

#[test]
fn ranges_of_channels_are_as_many() {
    let (_turn, host) = host();
    let node = host.node("QuantizeV2").attr("T", DType::QUINT8).attr("axis", 1i64);
    let ends = |count: i64| [filled(&[count], 0f32), filled(&[count], 1f32)].to_vec();
    let inputs = |count| [vec![filled(&[2, 3], 1f32)], ends(count)].concat();
    refuses(&node, &inputs(2), "min_range must hold 3 values, got 2");
    let node = host.node("FakeQuantWithMinMaxVarsPerChannel");
    refuses(&node, &inputs(4), "min must hold 3 values, got 4");
    let node = host.node("QuantizeV2").attr("T", DType::QUINT8).attr("axis", 2i64);
    refuses(&node, &inputs(3), "axis must lie in [-2, 2), got 2");
}

#[test]
fn levels_and_bits_are_in_range() {
    let (_turn, host) = host();
    let x = [filled(&[2], 1f32)];
    let node = |bits: i64| host.node("FakeQuantWithMinMaxVars").attr("num_bits", bits);
    refuses(&node(17), &with(&x, [-1.0, 1.0]), "num_bits must be from 2 to 16, found 17");
    refuses(
        &node(8),
        &with(&x, [1.0, 1.0]),
        "max must be larger than min, or both be 0, found 1 for both",
    );
    let node = host.node("QuantizeAndDequantizeV2").attr("num_bits", 62i64);
    let message = "num_bits must be from 1 to 61 for signed numbers, found 62";
    refuses(&node, &with(&x, [-1.0, 1.0]), message);
    let node = host.node("QuantizeV2").attr("T", DType::QUINT8);
    let node = node.attr("ensure_minimum_range", f32::NAN);
    let message = "ensure_minimum_range must be finite and at least 0, found NaN";
    refuses(&node, &with(&x, [-1.0, 1.0]), message);
}

/// A bound that is refused where it could be exceeded, and not a number that came out wrong.
#[test]
fn sums_of_products_fit_in_32_bits() {
    let (_turn, host) = host();
    let product = |terms: i64, ends| {
        let (a, b) = (filled(&[1, terms], QUInt8(255)), filled(&[terms, 1], QUInt8(255)));
        host.node("QuantizedMatMul").call(&with(&[a, b], ends))
    };
    let sum = product(33025, [0.0, 1.0, 0.0, 1.0]).unwrap();
    assert_eq!(elements::<QInt32>(&sum[0]), [QInt32(33025 * 255 * 255)]);
    let error = product(33026, [0.0, 1.0, 0.0, 1.0]).unwrap_err();
    assert_eq!(error.code, Code::INVALID_ARGUMENT);
    for part in ["at most 33025 terms", "(zeros at 0 and 0)", "found 33026", "split the sum"] {
        assert!(error.message.contains(part), "{}", error.message);
    }
    assert!(product(131_071, [-128.0, 127.0, -128.0, 127.0]).is_ok());
    let far = product(1, [1000.0, 1001.0, 1000.0, 1001.0]).unwrap_err().message;
    assert!(far.contains("at most 0 terms"), "{far}");
    let window = vec![1i64; 4];
    let (x, w) = (filled(&[1, 9, 9, 500], QUInt8(0)), filled(&[9, 9, 500, 1], QUInt8(0)));
    let node = host.node("QuantizedConv2D").attr("strides", window).attr("padding", "VALID");
    let error = node.call(&with(&[x, w], [0.0, 1.0, 0.0, 1.0])).unwrap_err().message;
    assert!(error.contains("found 40500"), "{error}");
}

#[test]
fn outputs_of_ranges_that_are_too_wide_are_refused() {
    let (_turn, host) = host();
    let x = [filled(&[2], QUInt8(1)), filled(&[2], QUInt8(1))];
    let ends = [-1e37, 1e37, -1e37, 1e37];
    for op in ["QuantizedAdd", "QuantizedMul"] {
        let message = host.node(op).call(&with(&x, ends)).unwrap_err().message;
        assert!(
            message.starts_with("the output's minimum and its maximum must be finite"),
            "{message}"
        );
    }
    let sums = [filled(&[1, 1, 1, 2], QInt32(5)), filled(&[2], -1f32), filled(&[2], 1f32)];
    let node = host.node("RequantizePerChannel").attr("out_type", DType::QINT8);
    refuses(
        &node,
        &with(&sums, [0.0, 1.0]),
        "requested_output_min must be below 0 for qint8, found 0",
    );
    let clip = host.node("RequantizationRangePerChannel");
    let clip = clip.attr("clip_value_max", AttrValue::Float(f32::NAN));
    refuses(&clip, &sums, "clip_value_max must be above 0, found NaN");
}
