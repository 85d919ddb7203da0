//! What a kernel learns when it is created.

use tenon_abi::DType;
use tenon_framework::{
    Code, PartialShape, Tensor,
    attr::{AttrList, AttrValue, FuncValue},
    registry::Removal,
};
use tenon_host::instance::{KernelInstance, PackCache, call_once};
use tenon_tests::{
    bench::{Bench, elements, floats, scalar, texts},
    zoo::Language,
};

fn shape(dims: &[i64]) -> PartialShape {
    PartialShape::new(dims).unwrap()
}

fn function(name: &str) -> FuncValue {
    FuncValue { name: name.to_owned(), call: vec![1, 0, 2], definition: vec![3, 255] }
}

#[test]
fn attributes() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let node = bench.node(&language.op("Attributes"));
        let node = node.attr("i", -7i64).attr("f", 0.5f32).attr("b", true).attr("s", "text");
        let outputs =
            node.attr("t", DType::INT64).attr("shape", shape(&[2, -1])).call(&[]).unwrap();
        assert_eq!(texts(&outputs[0]), ["-7", "0.5", "true", "text", "9", "[2,?]"], "{language:?}");
    }
}

#[test]
fn attribute_lists() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let list = AttrValue::List;
        let strings = vec![b"a".to_vec(), b"bc".to_vec()];
        let outputs = bench
            .node(&language.op("AttributeLists"))
            .attr("ints", vec![1i64, -2])
            .attr("floats", list(AttrList::Float(vec![0.25, 3.5])))
            .attr("bools", list(AttrList::Bool(vec![true, false])))
            .attr("strings", list(AttrList::String(strings)))
            .attr("types", vec![DType::FLOAT, DType::STRING])
            .attr("shapes", list(AttrList::Shape(vec![shape(&[]), PartialShape::UNKNOWN])))
            .attr("tensors", list(AttrList::Tensor(vec![floats(&[1.0, 2.0]), scalar(3i32)])))
            .attr("funcs", list(AttrList::Func(vec![function("f"), function("g")])))
            .call(&[])
            .unwrap();
        let expected = [
            "1;-2;",
            "0.25;3.5;",
            "true;false;",
            "a;bc;",
            "1;7;",
            "[];<unknown>;",
            "1x2;3x1;",
            "f;g;",
        ];
        assert_eq!(texts(&outputs[0]), expected, "{language:?}");
    }
}

#[test]
fn empty_lists() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let mut node = bench.node(&language.op("AttributeLists"));
        let empty = [
            ("ints", AttrList::Int(Vec::new())),
            ("floats", AttrList::Float(Vec::new())),
            ("bools", AttrList::Bool(Vec::new())),
            ("strings", AttrList::String(Vec::new())),
            ("types", AttrList::Type(Vec::new())),
            ("shapes", AttrList::Shape(Vec::new())),
            ("tensors", AttrList::Tensor(Vec::new())),
            ("funcs", AttrList::Func(Vec::new())),
        ];
        for (name, list) in empty {
            node = node.attr(name, AttrValue::List(list));
        }
        assert_eq!(texts(&node.call(&[]).unwrap()[0]), [""; 8], "{language:?}");
    }
}

#[test]
fn attribute_tensor() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let node = |value: Tensor| bench.node(&language.op("AttributeTensor")).attr("value", value);
        let outputs = node(floats(&[1.5, -2.0])).call(&[]).unwrap();
        assert_eq!(elements::<f32>(&outputs[0]), [1.5, -2.0], "{language:?}");
        assert_eq!(elements::<f32>(&node(floats(&[])).call(&[]).unwrap()[0]), [0f32; 0]);
        let error = node(scalar(1i32)).call(&[]).unwrap_err();
        assert_eq!(error.code, Code::INVALID_ARGUMENT, "{language:?}: {error}");
        assert!(error.message.contains("expected a tensor of float"), "{error}");
    }
}

#[test]
fn attribute_function() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let value = AttrValue::Func(function("body"));
        let node = bench.node(&language.op("AttributeFunction")).attr("f", value);
        let outputs = node.call(&[]).unwrap();
        let facts = outputs[0].as_strings().unwrap();
        assert_eq!(facts, [&b"body"[..], &[1, 0, 2], &[3, 255]], "{language:?}");
    }
}

#[test]
fn create_facts() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let op = language.op("CreateFacts");
        let node = bench.node(&op).named("scope/facts").attr("N", 2i64);
        let node = node.shape(&[2, -1]).shape(&[]);
        let outputs = node.call(&[floats(&[1.0]), floats(&[2.0]), scalar(3i32)]).unwrap();
        let names = "xs;i;facts";
        let shapes = "[2,?];[];<unknown>;";
        let expected = [&op, "scope/facts", "", "1;1;3;", "7;", shapes, "0+2", "2+1", "0+1", names];
        assert_eq!(texts(&outputs[0]), expected, "{language:?}");
    }
}

#[test]
fn constant_view() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let node = || bench.node(&language.op("ConstantView"));
        let (x, c) = (floats(&[1.0, 2.0]), scalar(0.5f32));
        let outputs = node().constant(1, &c).call(&[x.clone(), c.clone()]).unwrap();
        assert_eq!(elements::<f32>(&outputs[0]), [1.5, 2.5], "{language:?}");
        let error = node().call(&[x, c]).unwrap_err();
        assert_eq!(error.code, Code::INVALID_ARGUMENT);
        assert!(error.message.contains("expected a constant"), "{error}");
    }
}

#[test]
fn prepacked_constant() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let node = bench.node(&language.op("Prepack"));
        let (x, w) = (floats(&[1.0, 1.0, 2.0]), floats(&[10.0, 20.0, 30.0]));
        let inputs = [x.clone(), w.clone()];
        let call = |instance: &KernelInstance| call_once(instance, &inputs, &bench.env).unwrap();
        let plain = node.create().unwrap();
        let outputs = call(&plain);
        assert_eq!(elements::<f32>(&outputs[0]), [30.0, 20.0, 20.0], "{language:?}");
        assert_eq!(elements::<i64>(&outputs[1]), [0], "without a packed form");

        let cache = PackCache::default();
        if super::ISOLATED {
            // A worker packs what it is given as constant when it makes a kernel; the host has nothing to share.
            let mut instance = node.create().unwrap();
            assert!(!instance.prepack(1, &w, &cache, "w").unwrap() && cache.is_empty());
            continue;
        }
        let packed = |key: &str| {
            let mut instance = node.create().unwrap();
            assert!(instance.prepack(1, &w, &cache, key).unwrap());
            assert!(!instance.prepack(0, &x, &cache, "x").unwrap(), "declined");
            assert!(instance.packed_bytes() >= 12);
            instance
        };
        let (first, second, other) = (packed("w"), packed("w"), packed("another"));
        let outputs = call(&first);
        assert_eq!(elements::<f32>(&outputs[0]), [30.0, 20.0, 20.0], "{language:?}");
        let form = |instance: &KernelInstance| elements::<i64>(&call(instance)[1])[0];
        assert_ne!(form(&first), 0);
        assert_eq!(form(&first), form(&second), "one form for both");
        assert_ne!(form(&first), form(&other));
        drop(first);
        assert_ne!(form(&second), 0, "the form outlives the state it was made by");
    }
}

#[test]
fn supports() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let node = |limit: i64| bench.node(&language.op("Supports")).attr("limit", limit);
        let small = |tensor: &Tensor| elements::<bool>(tensor)[0];
        let x = floats(&[1.0, 2.0, 3.0]);
        assert!(small(&node(3).shape(&[3]).call(std::slice::from_ref(&x)).unwrap()[0]));
        assert!(!small(&node(2).shape(&[3]).call(std::slice::from_ref(&x)).unwrap()[0]));
        let removed = |explained: tenon_framework::registry::Explanation| {
            let mut all = explained.candidates.into_iter();
            all.find(|c| c.kernel.label == "small").and_then(|c| c.removed)
        };
        let reason = "3 elements exceed the limit of 2".to_owned();
        assert_eq!(removed(node(2).shape(&[3]).explain()), Some(Removal::Supports { reason }));
        let reason = "limit is -1, expected at least 0".to_owned();
        assert_eq!(removed(node(-1).shape(&[3]).explain()), Some(Removal::Supports { reason }));
        assert!(node(2).shape(&[-1]).explain().depends_on_shapes(), "{language:?}");
        assert!(!node(3).shape(&[3]).explain().depends_on_shapes());
    }
}
