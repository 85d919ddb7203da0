//! Calls of kernels in C++: elements, threads, lists, strings, errors.

use half::{bf16, f16};
use tenon_abi::DType;
use tenon_framework::{Code, Tensor};
use tenon_tests::{
    bench::{Bench, elements, floats, scalar, texts},
    zoo::cpp_zoo,
};

fn zoo() -> Bench {
    Bench::with([cpp_zoo()])
}

#[test]
fn every_element_type_has_a_type_in_cpp() {
    let bench = zoo();
    let types = DType::ALL.iter().filter(|dtype| !dtype.is_reserved() && !dtype.needs_drop());
    let mut copied = 0;
    for &dtype in types {
        let raw: Vec<u8> = (0..3 * dtype.size().unwrap()).map(|at| at as u8 % 2).collect();
        let x = Tensor::from_bytes(dtype, &[3], &raw).unwrap();
        let y = bench.node("ZooCppCopy").call(&[x]).unwrap_or_else(|e| panic!("{dtype}: {e}"));
        assert_eq!((y[0].dtype(), y[0].as_bytes().unwrap()), (dtype, &raw[..]));
        copied += 1;
    }
    assert_eq!(copied, 20, "every type with elements of fixed size");
}

#[test]
fn arithmetic_on_floats_of_16_bits_is_rounded_once() {
    let bench = zoo();
    let square = |x: Tensor| bench.node("ZooCppSquare").call(&[x]).unwrap().remove(0);
    let numbers = [0.0f32, -1.5, 3.25, 250.0, 1e-3];
    let halves: Vec<f16> = numbers.iter().map(|&x| f16::from_f32(x)).collect();
    let brains: Vec<bf16> = numbers.iter().map(|&x| bf16::from_f32(x)).collect();
    let of_half = halves.iter().map(|x| f16::from_f32(x.to_f32() * x.to_f32() + 1.0));
    let of_brain = brains.iter().map(|x| bf16::from_f32(x.to_f32() * x.to_f32() + 1.0));
    let x = Tensor::from_slice(&[5], &halves).unwrap();
    assert_eq!(elements::<f16>(&square(x)), of_half.collect::<Vec<_>>());
    let x = Tensor::from_slice(&[5], &brains).unwrap();
    assert_eq!(elements::<bf16>(&square(x)), of_brain.collect::<Vec<_>>());
    let x = Tensor::from_slice(&[3], &[2u8, 15, 16]).unwrap();
    assert_eq!(elements::<u8>(&square(x)), [5, 226, 1], "integers wrap as in C++");
}

/// Whether these bits are the nearest number of 16 bits to `x`, ties to even. `value` is that of bits; infinity has
/// the value that would come next.
fn is_nearest(x: f64, bits: u16, value: impl Fn(u16) -> f64) -> bool {
    let (size, sign) = (bits & 0x7fff, bits & 0x8000);
    let far = |size: u16| (x.abs() - value(size)).abs();
    let neighbours = [size.checked_sub(1), Some(size + 1)];
    let best = neighbours.into_iter().flatten().all(|other| {
        value(other) <= value(size) && other > size
            || far(size) < far(other)
            || far(size) == far(other) && size % 2 == 0
    });
    best && (sign != 0) == x.is_sign_negative()
}

#[test]
fn doubles_are_rounded_once_to_floats_of_16_bits() {
    let bench = zoo();
    let mut numbers = vec![0.0f64, -0.0, 65519.99, 65520.0, 1e300, -1e300, 1e-300, 5.9e-8];
    numbers.extend([2.98e-8, 2.9802322387695312e-8, 3e-8, -6.1e-5, 3.4e38, 3.39e38, 9.18e-41]);
    // Halfway between two neighbours, just above and just below.
    for step in 0..200 {
        let tie = 1.0 + f64::from(step) / 2048.0;
        numbers.extend([tie, tie + 1e-12, tie - 1e-12, -tie * 3e-6, tie * 1e-39]);
    }
    let x = Tensor::from_slice(&[numbers.len() as i64], &numbers).unwrap();
    let narrow = |dtype| {
        let node = bench.node("ZooCppNarrow").attr("T", dtype);
        node.call(std::slice::from_ref(&x)).unwrap().remove(0)
    };
    let of_half = |bits| match bits {
        0x7c00.. => 65536.0,
        _ => f16::from_bits(bits).to_f64(),
    };
    let of_brain = |bits| match bits {
        0x7f80.. => 2f64.powi(128),
        _ => bf16::from_bits(bits).to_f64(),
    };
    for (x, half) in numbers.iter().zip(elements::<f16>(&narrow(DType::HALF))) {
        assert!(is_nearest(*x, half.to_bits(), of_half), "{x:e}: {half:e} as half");
    }
    for (x, brain) in numbers.iter().zip(elements::<bf16>(&narrow(DType::BFLOAT16))) {
        assert!(is_nearest(*x, brain.to_bits(), of_brain), "{x:e}: {brain:e} as bfloat16");
    }
    let special = Tensor::from_slice(&[3], &[f64::NAN, f64::INFINITY, f64::NEG_INFINITY]).unwrap();
    let halves = bench.node("ZooCppNarrow").attr("T", DType::HALF).call(&[special]).unwrap();
    let halves = elements::<f16>(&halves[0]);
    assert!(halves[0].is_nan() && halves[1..] == [f16::INFINITY, f16::NEG_INFINITY], "{halves:?}");
}

#[test]
fn quantised_elements_are_read_as_their_integers() {
    let bench = zoo();
    let x = Tensor::from_bytes(DType::QINT8, &[3], &[1, 255, 0]).unwrap();
    let y = bench.node("ZooCppNegateBytes").call(&[x]).unwrap();
    assert_eq!(y[0].as_bytes().unwrap(), [255, 1, 0]);
}

#[test]
fn an_output_takes_over_the_buffer_of_a_donated_input() {
    let bench = zoo();
    let x = floats(&[1.0, 2.0, 3.0]);
    let (y, taken) = bench.node("ZooCppSquare").call_donating(vec![x]).unwrap();
    assert_eq!(elements::<f32>(&y[0]), [2.0, 5.0, 10.0]);
    assert_eq!(taken, [Some(0)]);
}

#[test]
fn parallel_units_add_up_and_what_one_throws_is_the_error() {
    let bench = zoo();
    for n in [0i64, 1, 1000, 100_000] {
        let sum = bench.node("ZooCppParallel").call(&[scalar(n)]).unwrap();
        assert_eq!(elements::<i64>(&sum[0]), [(0..n).map(|at| at * at).sum::<i64>()]);
    }
    let failing = bench.node("ZooCppParallel").attr("fail_at", 777i64);
    let error = failing.call(&[scalar(10_000i64)]).unwrap_err();
    assert_eq!(error.code, Code::OUT_OF_RANGE);
    assert!(error.message.contains("unit 777 fails"), "{error}");
}

#[test]
fn lists_and_several_outputs() {
    let bench = zoo();
    let xs = [floats(&[1.0, 2.0]), floats(&[]), floats(&[10.0])];
    let outputs = bench.node("ZooCppLists").attr("N", 3i64).call(&xs).unwrap();
    let values: Vec<Vec<f32>> = outputs.iter().map(elements).collect();
    assert_eq!(values, [vec![14.0, 15.0], vec![], vec![23.0], vec![13.0]]);
}

#[test]
fn strings_are_read_and_written() {
    let bench = zoo();
    let long = "long ".repeat(100);
    let x = Tensor::from_strings(&[3], &["", "abc", &long]).unwrap();
    let y = bench.node("ZooCppReverse").call(&[x]).unwrap();
    assert_eq!(texts(&y[0]), ["".to_owned(), "cba".to_owned(), long.chars().rev().collect()]);
}

#[test]
fn what_a_kernel_throws_becomes_the_error_of_its_call() {
    let bench = zoo();
    let cases = [
        ("after the output", Code::FAILED_PRECONDITION, "after the output after 1 output"),
        ("other type", Code::INTERNAL, "input 0: the kernel expects double, found float"),
        ("standard", Code::INTERNAL, "a standard exception"),
        ("memory", Code::RESOURCE_EXHAUSTED, "no memory"),
        ("anything", Code::INTERNAL, "an exception of an unknown type"),
        ("missing", Code::INTERNAL, "input 3: the call has 1"),
        ("scratch", Code::RESOURCE_EXHAUSTED, "are too many"),
        ("refused", Code::INVALID_ARGUMENT, "how: 'refused' is refused"),
    ];
    for (how, code, words) in cases {
        let error = bench.node("ZooCppFails").attr("how", how).call(&[floats(&[1.0])]).unwrap_err();
        assert_eq!(error.code, code, "{how}: {error}");
        assert!(error.message.contains(words), "{how}: {error}");
    }
}

#[test]
fn a_call_is_completed_by_another_thread() {
    let bench = zoo();
    let y = bench.node("ZooCppLater").call(&[floats(&[1.0, -2.0])]).unwrap();
    assert_eq!(elements::<f32>(&y[0]), [2.0, -4.0]);
    let error = bench.node("ZooCppLater").call(&[floats(&[])]).unwrap_err();
    assert_eq!(error.code, Code::INVALID_ARGUMENT);
    assert!(error.message.contains("x: expected an element"), "{error}");
}
