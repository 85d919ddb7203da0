//! Gradients that plugins bring, in both languages.

use super::zoo_sessions::runtime;
use tenon_gradient::{Gradient, Options, gradients};
use tenon_graph::{GraphBuilder, Output};
use tenon_runtime::{
    Session, SessionOptions,
    framework::{Code, DType, PartialShape},
};
use tenon_tests::{
    bench::{elements, floats},
    session::run,
    zoo::Language,
};

#[test]
fn an_op_of_a_plugin_has_the_gradient_that_it_brings() {
    for language in Language::ALL {
        let runtime = runtime(language);
        let registry = runtime.registry();
        let mut b = GraphBuilder::new(&registry);
        let shape = || PartialShape::new(&[2]).unwrap();
        let a = b.placeholder("a", DType::FLOAT, shape()).unwrap();
        let x = b.placeholder("x", DType::FLOAT, shape()).unwrap();
        let product = b.op(&language.op("GradientProduct")).name("product").input(a).input(x);
        let product = product.build().unwrap();
        let y = b.op("Square").name("y").input(product).build().unwrap();
        let made = gradients(&mut b, &[y.into()], &[a, x], &Options::default()).unwrap();
        let tensors: Vec<Output> = made
            .iter()
            .map(|gradient| match gradient {
                Some(Gradient::Dense(values)) => *values,
                other => panic!("{language:?}: expected a tensor, found {other:?}"),
            })
            .collect();
        let names: Vec<String> = tensors.iter().map(|&t| b.graph().output_name(t)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let session = Session::new(&runtime, SessionOptions::default()).unwrap();
        session.extend_graph(&b.finish()).unwrap();
        let feeds = [("a", floats(&[1.0, 2.0])), ("x", floats(&[3.0, -1.0]))];
        let fetched = run(&session, &feeds, &names).unwrap();
        // 2 a x * x, and 2 a x * a.
        assert_eq!(elements::<f32>(&fetched[0]), [18.0, 4.0], "{language:?}");
        assert_eq!(elements::<f32>(&fetched[1]), [6.0, -8.0], "{language:?}");
    }
}

#[test]
fn a_gradient_of_a_plugin_refuses_a_node_by_its_own_words() {
    for language in Language::ALL {
        let runtime = runtime(language);
        let registry = runtime.registry();
        let mut b = GraphBuilder::new(&registry);
        let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN).unwrap();
        let op = language.op("GradientRefused");
        let y = b.op(&op).name("y").input(x).build().unwrap();
        let error = gradients(&mut b, &[y.into()], &[x], &Options::default()).unwrap_err();
        assert_eq!(error.code(), Code::FAILED_PRECONDITION, "{language:?}");
        let expected = format!("gradient of node 'y' (op '{op}'): the zoo refuses");
        assert_eq!(error.to_string(), expected, "{language:?}");
    }
}
