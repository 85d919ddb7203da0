//! What the host lends.

use tenon_framework::Code;
use tenon_tests::{
    bench::{Bench, elements, floats, texts},
    log::Lines,
    zoo::Language,
};

#[test]
fn parallel_for() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let node = bench.node(&language.op("Parallel"));
        for count in [0, 1, 1000, 100_000] {
            let x: Vec<f32> = (0..count).map(|at| at as f32).collect();
            let outputs = node.call(&[floats(&x)]).unwrap();
            let doubled: Vec<f32> = x.iter().map(|x| x + x).collect();
            assert_eq!(elements::<f32>(&outputs[0]), doubled, "{language:?}");
            assert_eq!(elements::<bool>(&outputs[1]), [true], "workers are below their number");
        }
    }
}

#[test]
fn log_line() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let lines = Lines::default();
        let instance =
            bench.node(&language.op("Log")).attr("message", "a line of the zoo").create().unwrap();
        tracing::subscriber::with_default(lines.clone(), || {
            tenon_host::instance::call_once(&instance, &[], &bench.env).unwrap();
        });
        if super::ISOLATED {
            // The line comes on a thread of its own: tests/isolate/life.rs waits for it.
            continue;
        }
        let lines = lines.all();
        let plugin = language.plugin();
        let wanted = |line: &&String| {
            line.starts_with("WARN") && line.contains("a line of the zoo") && line.contains(plugin)
        };
        assert_eq!(lines.iter().filter(wanted).count(), 1, "{language:?}: {lines:?}");
    }
}

#[test]
fn host_memory() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let node = |n: i64| bench.node(&language.op("HostMemory")).attr("n", n);
        assert_eq!(elements::<i64>(&node(4).call(&[]).unwrap()[0]), [0, 1, 4, 9], "{language:?}");
        let error = node(1 << 40).call(&[]).unwrap_err();
        assert_eq!(error.code, Code::INVALID_ARGUMENT, "{error}");
    }
}

#[test]
fn names_and_clocks() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let outputs = bench.node(&language.op("Names")).named("outer/inner").call(&[]).unwrap();
        assert_eq!(texts(&outputs[0]), ["outer/inner"], "{language:?}");
        assert_eq!(elements::<bool>(&outputs[1]), [true], "one clock, which goes forward");
    }
}

#[test]
fn path_of_the_plugin() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let outputs = bench.node(&language.op("Path")).call(&[]).unwrap();
        let path = std::fs::canonicalize(language.zoo()).unwrap();
        assert_eq!(texts(&outputs[0]), [path.to_string_lossy()], "{language:?}");
    }
}
