//! Kinds of elements.

use tenon_abi::{DType, TensorGive, VariantElement};
use tenon_framework::{Code, Shape, Tensor, tensor::host_memory};
use tenon_host::{instance::PreparedCall, sink::MessageSink};
use tenon_tests::{
    bench::{Bench, elements, floats, scalar, texts},
    zoo::Language,
};

#[test]
fn bytes_of_every_type() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        for &dtype in DType::ALL.iter().filter(|d| !d.is_reserved() && !d.needs_drop()) {
            let node = bench.node(&language.op("Bytes")).attr("T", dtype);
            if node.explain().winner.is_none() {
                assert_eq!(language, Language::C, "the Rust kernel takes every type: {dtype}");
                continue;
            }
            let raw: Vec<u8> = (0..3 * dtype.size().unwrap()).map(|at| at as u8 % 2).collect();
            let x = Tensor::from_bytes(dtype, &[3], &raw).unwrap();
            let outputs = node.call(&[x]).unwrap();
            assert_eq!(elements::<u8>(&outputs[0]), raw, "{language:?}: {dtype}");
        }
        let strings = bench.node(&language.op("Bytes")).attr("T", DType::STRING);
        assert_eq!(strings.create().unwrap_err().code, Code::NOT_FOUND, "no bytes of strings");
    }
}

/// The bytes that C takes for true reach the host as 1, whichever way the output was made.
#[test]
fn bools_of_any_byte_are_0_or_1_for_the_host() {
    let bench = Bench::zoo(Language::C);
    for elements in [4usize, 5000, 100_000] {
        let bytes: Vec<u8> = (0..elements).map(|at| [0, 40, 1, 255][at % 4]).collect();
        let expected: Vec<u8> = bytes.iter().map(|&byte| u8::from(byte != 0)).collect();
        let x = Tensor::from_slice(&[elements as i64], &bytes).unwrap();
        for op in ["ZooCMask", "ZooCMaskLater"] {
            let instance = bench.node(op).create().unwrap();
            let inputs = [x.clone()];
            let mut call = PreparedCall::new(&instance, &inputs, &bench.env).unwrap();
            let shape = Shape::new(&[elements as i64]).unwrap();
            // The outputs of a call that completes later cannot be planned by a second one of the same record.
            for planned in [false, op == "ZooCMask"] {
                if planned { call.run_planned(&[shape]) } else { call.run() }.unwrap();
                let y = call.outputs().swap_remove(0);
                assert_eq!(y.as_bytes().unwrap(), expected, "{op}, {elements}, {planned}");
            }
            assert_eq!(inputs[0].as_bytes().unwrap(), bytes, "the input is as before");
        }
    }
}

#[test]
fn an_input_of_bytes_is_not_returned_as_bools_without_a_copy() {
    let bench = Bench::zoo(Language::C);
    let x = Tensor::from_slice(&[3], &[0u8, 40, 1]).unwrap();
    let error = bench.node("ZooCMaskShared").call(&[x]).unwrap_err();
    let says = if super::ISOLATED { "of another kind than those" } else { "copy its elements" };
    assert!(error.message.contains(says), "{error}");
}

#[test]
fn strings() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let long = "long ".repeat(1000);
        let values = ["", "abc", "gone", &long, "nul\0"];
        let x = Tensor::from_strings(&[5], &values).unwrap();
        let instance =
            bench.node(&language.op("Strings")).attr("removed", "gone").create().unwrap();
        let reversed = |text: &str| text.chars().rev().collect::<String>();
        let inputs = [x];
        let mut call = PreparedCall::new(&instance, &inputs, &bench.env).unwrap();
        for _ in 0..3 {
            call.run().unwrap();
            let expected = ["", "cba", "", &*reversed(&long), "\0lun"];
            assert_eq!(texts(&call.outputs()[0]), expected, "{language:?}");
        }
        assert_eq!(texts(&inputs[0]), values, "the input is as before");
    }
}

fn live(bench: &Bench, language: Language) -> i64 {
    elements::<i64>(&bench.node(&language.op("VariantLive")).call(&[]).unwrap()[0])[0]
}

#[test]
fn variants() {
    // One test: the count of living values is the process's.
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        if super::ISOLATED {
            let error =
                bench.node(&language.op("VariantMake")).call(&[scalar(2.5f32)]).unwrap_err();
            assert!(error.message.contains("a value of type variant cannot be given"), "{error}");
            continue;
        }
        let call = |name: &str, inputs: &[Tensor]| {
            bench.node(&language.op(name)).call(inputs).unwrap().swap_remove(0)
        };
        let read = |v: &Tensor| elements::<f32>(&call("VariantRead", std::slice::from_ref(v)))[0];
        assert_eq!(live(&bench, language), 0);
        let (a, b) = (call("VariantMake", &[scalar(2.5f32)]), call("VariantMake", &[scalar(4f32)]));
        assert_eq!((read(&a), read(&b)), (2.5, 4.0), "{language:?}");
        let copy = call("VariantClone", std::slice::from_ref(&a));
        let zeros = call("VariantZeros", std::slice::from_ref(&a));
        let sum = call("VariantAdd", &[a.clone(), b.clone()]);
        assert_eq!((read(&copy), read(&zeros), read(&sum)), (2.5, 0.0, 6.5), "{language:?}");
        assert_eq!(live(&bench, language), 5);
        host_side_of_variants(&a);
        drop((a, b, copy, zeros, sum));
        assert_eq!(live(&bench, language), 0, "{language:?}: each value is destroyed once");

        let instance = bench.node(&language.op("VariantMake")).create().unwrap();
        let inputs = [scalar(1f32)];
        let mut again = PreparedCall::new(&instance, &inputs, &bench.env).unwrap();
        for _ in 0..10 {
            again.run().unwrap();
        }
        drop(again);
        assert_eq!(live(&bench, language), 0, "{language:?}: also where an output is made again");

        let empty = Tensor::allocate(host_memory(), DType::VARIANT, Shape::new(&[]).unwrap());
        let error = bench.node(&language.op("VariantRead")).call(&[empty.unwrap()]).unwrap_err();
        assert_eq!(error.code, Code::INVALID_ARGUMENT, "an empty variant: {error}");
    }
    a_variant_of_another_type_is_refused();
}

/// The entries that the host calls itself.
fn host_side_of_variants(v: &Tensor) {
    let slot = v.slot();
    let (sink, mut copy) = (MessageSink::new(), std::ptr::null_mut());
    // SAFETY: a tensor of one variant, whose table is filled; the copy is destroyed by the same table.
    unsafe {
        let element = *slot.data.cast::<VariantElement>();
        let table = &*element.table;
        let nobody = TensorGive { run: None };
        let code =
            table.encode.unwrap()(element.value, std::ptr::null_mut(), nobody, sink.as_sink());
        sink.check(code).unwrap();
        assert_eq!(sink.take().as_deref(), Some("2.5"));
        let device = table.copy_to_device.unwrap();
        let null = std::ptr::null_mut();
        let on_host = tenon_abi::MemoryKind::HOST;
        let code = device(element.value, null, on_host, null.cast(), &mut copy, sink.as_sink());
        sink.check(code).unwrap();
        table.destroy.unwrap()(copy);
        let there = tenon_abi::MemoryKind::DEVICE;
        let code = device(element.value, null, there, null.cast(), &mut copy, sink.as_sink());
        let error = sink.check(code).unwrap_err();
        assert_eq!(error.code, Code::UNIMPLEMENTED);
        assert!(error.message.contains("it lives in host memory"), "{error}");
    }
}

fn a_variant_of_another_type_is_refused() {
    let bench = Bench::with(Language::ALL.map(Language::zoo));
    for (made, reader) in
        [("ZooVariantMake", "ZooCVariantRead"), ("ZooCVariantMake", "ZooVariantRead")]
    {
        let v = bench.node(made).call(&[floats(&[1.0])]).unwrap();
        let error = bench.node(reader).call(&v).unwrap_err();
        assert_eq!(error.code, Code::INVALID_ARGUMENT);
        assert!(error.message.contains("expected a variant of type"), "{error}");
    }
}
