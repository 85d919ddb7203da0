//! The ways in which an output comes to be.

use tenon_framework::Tensor;
use tenon_host::instance::{PreparedCall, call_once};
use tenon_tests::{
    bench::{Bench, elements, floats},
    zoo::Language,
};

/// Without a plan nothing is planned, and the kernel says so; a planned output is a matter of sessions.
#[test]
fn planned_output() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let outputs = bench.node(&language.op("Planned")).call(&[floats(&[1.0, 2.0])]).unwrap();
        assert_eq!(elements::<f32>(&outputs[0]), [1.0, 2.0], "{language:?}");
        assert_eq!(elements::<bool>(&outputs[1]), [false]);
    }
}

#[test]
fn allocated_output() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let instance = bench.node(&language.op("Allocate")).create().unwrap();
        let cases: [(&[f32], &[i64]); 3] =
            [(&[0.0, 1.0, 0.0, -2.0], &[1, 3]), (&[0.0; 3], &[]), (&[1.0; 5], &[0, 1, 2, 3, 4])];
        for (x, expected) in cases {
            let outputs = call_once(&instance, &[floats(x)], &bench.env).unwrap();
            assert_eq!(elements::<i64>(&outputs[0]), expected, "{language:?}");
            assert_eq!(outputs[0].shape().dims(), [expected.len() as i64]);
        }
    }
}

#[test]
fn forwarded_output() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let node = bench.node(&language.op("Forward"));
        let held = floats(&[1.0, 2.0]);
        let outputs = node.call(std::slice::from_ref(&held)).unwrap();
        assert_eq!(elements::<f32>(&outputs[0]), [2.0, 3.0], "{language:?}");
        assert_eq!(elements::<bool>(&outputs[1]), [false], "somebody holds the input");
        assert_eq!(elements::<f32>(&held), [1.0, 2.0], "which is as before");

        let (outputs, taken) = node.call_donating(vec![floats(&[1.0, 2.0])]).unwrap();
        assert_eq!(elements::<f32>(&outputs[0]), [2.0, 3.0], "{language:?}");
        // What the host made can be read in another process, and never written.
        let takes = !super::ISOLATED;
        assert_eq!(elements::<bool>(&outputs[1]), [takes], "{language:?}: nobody holds it");
        assert_eq!(taken[0], takes.then_some(0));

        let (outputs, taken) = node.call_donating(vec![held.clone()]).unwrap();
        assert_eq!((elements::<bool>(&outputs[1]), taken[0]), (vec![false], None));
        assert_eq!(elements::<f32>(&held), [1.0, 2.0], "{language:?}");
    }
}

#[test]
fn shared_output() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let x = Tensor::from_slice(&[2, 3], &[0f32, 1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        let outputs = bench.node(&language.op("Share")).call(std::slice::from_ref(&x)).unwrap();
        assert_eq!(outputs[0].shape().dims(), [6], "{language:?}");
        assert_eq!(outputs[0].buffer().data(), x.buffer().data(), "one buffer");
    }
}

#[test]
fn unused_output() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let instance = bench.node(&language.op("Unused")).create().unwrap();
        let inputs = [floats(&[1.0, 2.0])];
        let mut call = PreparedCall::new(&instance, &inputs, &bench.env).unwrap();
        call.run().unwrap();
        let outputs = call.outputs();
        assert_eq!(elements::<f32>(&outputs[0]), [3.0], "{language:?}");
        assert_eq!(elements::<bool>(&outputs[1]), [false], "here every output is read");
    }
}
