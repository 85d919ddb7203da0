//! CUDA on machines where something is missing, too old or too new: what the plugin says, and what still works. Each
//! test has a process of its own, since libraries are looked for once, on the fake CUDA stack or parts of it.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};
use tempfile::TempDir;
use tenon_framework::device::base::DeviceBase;
use tenon_graph::{GraphBuilder, GraphError};
use tenon_runtime::{
    Runtime, RuntimeError, Session, SessionOptions,
    framework::{Code, DType, PartialShape, Tensor},
};
use tenon_tests::{
    cuda::{machine_with, runtime_on, take_log, variables},
    process::alone,
    session::{floats, run, session, session_with, values},
};

const CPU: &str = "/device:CPU:0";
const CUDA: &str = "/device:CUDA:0";
const SECOND: &str = "/device:CUDA:1";
const NUMBERS: [f32; 3] = [1.0, -2.5, 3.0];
const SQUARES: [f32; 3] = [1.0, 6.25, 9.0];
/// Every library of NVIDIA's that the plugin uses.
const WHOLE: [&str; 4] = ["cuda", "nvrtc", "cublasLt", "cudnn"];

/// Runs a test again in a process that has no library of the system's, with these settings of the fake stack.
fn on_a_machine(test: &str, settings: &[(&str, &str)]) -> bool {
    let settings = settings.iter().map(|(name, value)| (*name, PathBuf::from(value)));
    alone(
        &format!("cuda_machines::{test}"),
        &variables().into_iter().chain(settings).collect::<Vec<_>>(),
    )
}

fn started(machine: &Path) -> Runtime {
    runtime_on(machine, Path::new("none"), &[("runtime.record_after", "-1")])
}

/// Why there is no device, or not every one.
fn reasons(runtime: &Runtime) -> Vec<String> {
    let absent = runtime.devices().absent().into_iter();
    absent.filter(|it| it.device_type == "CUDA").map(|it| it.reason).collect()
}

fn devices(runtime: &Runtime) -> usize {
    runtime.devices().devices().iter().filter(|it| it.name().to_string().contains("CUDA")).count()
}

/// `y = x^2` on this device and no other.
fn squares(runtime: &Runtime, device: &'static str) -> Session {
    let options = SessionOptions { soft_placement: Some(false), ..SessionOptions::default() };
    session_with(runtime, options, |b| {
        let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
        b.op("Square").name("y").input(x).device(device).build().map(|_| ())
    })
}

fn squared(session: &Session) -> Result<Tensor, RuntimeError> {
    let x = floats(&NUMBERS);
    Ok(run(session, &[("x", x)], &["y"])?.remove(0))
}

/// The plugin loads and has no device, for one reason; the CPU computes, and a node that names the GPU fails.
#[track_caller]
fn has_no_device(machine: &Path, words: &[&str]) {
    let runtime = started(machine);
    let reasons = reasons(&runtime);
    assert_eq!((devices(&runtime), reasons.len()), (0, 1), "{reasons:?}");
    for part in words {
        assert!(reasons[0].contains(part), "expected '{part}' in: {}", reasons[0]);
    }
    let y = squared(&squares(&runtime, CPU)).expect("the CPU computes");
    assert_eq!(values(&y), SQUARES);
    let error = squared(&squares(&runtime, CUDA)).expect_err("there is no such device").to_string();
    assert!(error.contains("CUDA:0"), "{error}");
}

#[test]
fn without_a_driver() {
    if on_a_machine("without_a_driver", &[]) {
        let words = ["there is no libcuda.so", "comes with NVIDIA's driver", "library_path"];
        has_no_device(&machine_with(&[]), &words);
    }
}

#[test]
fn with_an_old_driver() {
    if on_a_machine("with_an_old_driver", &[("FAKE_CUDA_DRIVER", "11080")]) {
        let words =
            ["the driver is of CUDA 11.8", "expected 12.0 or later", "install a newer driver"];
        has_no_device(&machine_with(&WHOLE), &words);
    }
}

#[test]
fn with_a_driver_that_does_not_start() {
    let order = [("FAKE_CUDA_FAIL", "cuInit:1:803")];
    if on_a_machine("with_a_driver_that_does_not_start", &order) {
        let words = ["the driver does not start", "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)"];
        has_no_device(&machine_with(&WHOLE), &words);
    }
}

#[test]
fn without_a_gpu() {
    if on_a_machine("without_a_gpu", &[("FAKE_CUDA_DEVICES", "0")]) {
        let words = ["the driver finds no GPU", "CUDA_VISIBLE_DEVICES"];
        has_no_device(&machine_with(&WHOLE), &words);
    }
}

#[test]
fn a_gpu_that_is_too_old_is_left_out_and_the_next_one_serves() {
    let test = "a_gpu_that_is_too_old_is_left_out_and_the_next_one_serves";
    if on_a_machine(test, &[("FAKE_CUDA_DEVICES", "2"), ("FAKE_CUDA_CC", "5.0,9.0")]) {
        let runtime = started(&machine_with(&WHOLE));
        let reasons = reasons(&runtime);
        assert_eq!((devices(&runtime), reasons.len()), (1, 1), "{reasons:?}");
        for part in ["CUDA:0", "compute capability 5.0", "expected 7.5 or more"] {
            assert!(reasons[0].contains(part), "expected '{part}' in: {}", reasons[0]);
        }
        let y = squared(&squares(&runtime, SECOND)).expect("the second GPU computes");
        assert_eq!(values(&y), SQUARES);
    }
}

#[test]
fn a_gpu_that_is_newer_than_the_compiler_gets_portable_code() {
    let test = "a_gpu_that_is_newer_than_the_compiler_gets_portable_code";
    if on_a_machine(test, &[("FAKE_CUDA_CC", "12.9")]) {
        let cache = TempDir::new().expect("a folder");
        let compiled = || {
            let runtime = runtime_on(&machine_with(&WHOLE), cache.path(), &[]);
            let y = squared(&squares(&runtime, CUDA)).expect("the GPU computes");
            assert_eq!(values(&y), SQUARES);
            let mut files: Vec<_> =
                fs::read_dir(cache.path()).expect("it is there").flatten().collect();
            assert_eq!(files.len(), 1, "one kernel");
            files.remove(0).path()
        };
        // 12.1 is the newest that the fake compiler knows.
        let file = compiled();
        assert_eq!(file.extension().and_then(|it| it.to_str()), Some("ptx"));
        let text = String::from_utf8_lossy(&fs::read(&file).expect("it can be read")).into_owned();
        assert!(text.contains("ptx 121\n"), "{}", &text[..100.min(text.len())]);
        assert_eq!(compiled(), file, "and the second runtime takes it from there");
    }
}

#[test]
fn without_the_compiler_kernels_say_what_to_install() {
    if on_a_machine("without_the_compiler_kernels_say_what_to_install", &[]) {
        let runtime = started(&machine_with(&["cuda"]));
        assert_eq!((devices(&runtime), reasons(&runtime).len()), (1, 0));
        let error = squared(&squares(&runtime, CUDA)).expect_err("nothing compiles");
        assert_eq!(error.code(), Code::UNAVAILABLE, "{error}");
        let text = error.to_string();
        for part in ["y", "there is no libnvrtc.so", "nvidia-cuda-nvrtc", "library_path"] {
            assert!(text.contains(part), "expected '{part}' in: {text}");
        }
        let y = squared(&squares(&runtime, CPU)).expect("the CPU computes");
        assert_eq!(values(&y), SQUARES);
    }
}

/// `y`: a product of matrices, then `z`: a convolution, with a kernel of this label where one is asked for.
fn product_and_convolution(
    b: &mut GraphBuilder<'_>,
    labels: [Option<&str>; 2],
) -> Result<(), GraphError> {
    let shape = |dims: &[i64]| PartialShape::new(dims).expect("a shape");
    let x = b.placeholder("x", DType::FLOAT, shape(&[2, 3]))?;
    let mut y = b.op("MatMul").name("y").input(x).input(x).attr("transpose_b", true).device(CUDA);
    if let Some(label) = labels[0] {
        y = y.attr("_kernel", label);
    }
    y.build()?;
    let image = b.placeholder("image", DType::FLOAT, shape(&[1, 4, 4, 8]))?;
    let filter = b.placeholder("filter", DType::FLOAT, shape(&[3, 3, 8, 8]))?;
    let z = b.op("Conv2D").name("z").input(image).input(filter).device(CUDA);
    let mut z = z.attr("strides", vec![1i64; 4]).attr("padding", "VALID");
    if let Some(label) = labels[1] {
        z = z.attr("_kernel", label);
    }
    z.build().map(|_| ())
}

/// What `product_and_convolution` gives for matrices and images of ones.
fn compute(session: &Session) -> Result<(), RuntimeError> {
    let ones = |dims: &[i64]| {
        let count = dims.iter().product::<i64>() as usize;
        floats(&vec![1.0; count]).reshaped(dims).expect("as many elements")
    };
    let feeds =
        [("x", ones(&[2, 3])), ("image", ones(&[1, 4, 4, 8])), ("filter", ones(&[3, 3, 8, 8]))];
    let found = run(session, &feeds, &["y", "z"])?;
    assert_eq!(values(&found[0]), [3.0; 4]);
    assert_eq!(values(&found[1]), [72.0; 32]);
    Ok(())
}

/// The label of the kernel that runs a node, and why the one with this label does not.
fn chosen(session: &Session, node: &str, label: &str) -> (String, Option<String>) {
    let explained = session.explain(Some(node)).expect("the node is there").remove(0);
    let kernels = explained.kernels.expect("it has kernels");
    let winner = kernels.winner.expect("one of them runs").label.clone();
    let of_label = kernels
        .candidates
        .iter()
        .filter(|it| it.kernel.label == label && it.kernel.device_type == "CUDA");
    let reasons: Vec<String> =
        of_label.filter_map(|it| it.removed.as_ref()).map(|it| it.to_string()).collect();
    (winner, reasons.into_iter().find(|it| it.contains("there is no")))
}

#[test]
fn kernels_of_nvidias_libraries_serve_where_the_libraries_are() {
    if on_a_machine("kernels_of_nvidias_libraries_serve_where_the_libraries_are", &[]) {
        let runtime = started(&machine_with(&WHOLE));
        let session = session(&runtime, |b| product_and_convolution(b, [None; 2]));
        assert_eq!(chosen(&session, "y", "cublaslt"), ("cublaslt".to_owned(), None));
        assert_eq!(chosen(&session, "z", "cudnn"), ("cudnn".to_owned(), None));
        compute(&session).expect("both libraries compute");
    }
}

#[test]
fn without_nvidias_libraries_the_plugins_own_kernels_serve() {
    if on_a_machine("without_nvidias_libraries_the_plugins_own_kernels_serve", &[]) {
        let runtime = started(&machine_with(&["cuda", "nvrtc"]));
        let own = session(&runtime, |b| product_and_convolution(b, [None; 2]));
        for (node, label, library) in
            [("y", "cublaslt", "libcublasLt.so"), ("z", "cudnn", "libcudnn.so")]
        {
            let (winner, why) = chosen(&own, node, label);
            assert_eq!(winner, "", "{node}");
            let why = why.unwrap_or_else(|| panic!("{label} was not asked"));
            for part in [library, "Python package", "library_path"] {
                assert!(why.contains(part), "expected '{part}' in: {why}");
            }
        }
        take_log();
        compute(&own).expect("the own kernels compute");
        let log = take_log();
        let launches = log.lines().filter(|line| line.starts_with("launch kernel=")).count();
        assert!(launches >= 2, "{log}");
        // Who asks for one of them hears why it is not there.
        let labels = [Some("cublaslt"), None];
        let asked = session(&runtime, |b| product_and_convolution(b, labels));
        let error = compute(&asked).expect_err("cuBLASLt is asked for").to_string();
        assert!(error.contains("there is no libcublasLt.so"), "{error}");
    }
}

#[test]
fn a_kernel_that_does_not_compile_fails_with_the_compilers_log() {
    let test = "a_kernel_that_does_not_compile_fails_with_the_compilers_log";
    let folder = TempDir::new().expect("a folder");
    let compiler = folder.path().join("compiler");
    let text = "#!/bin/sh\necho 'square.cu(7): error: expected a ;' >&2\nexit 1\n";
    fs::write(&compiler, text).expect("it can be written");
    fs::set_permissions(&compiler, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let (compiler, cold) = (compiler.display().to_string(), folder.path().join("cold"));
    let cold = cold.display().to_string();
    if on_a_machine(test, &[("FAKE_CUDA_CXX", &compiler), ("FAKE_CUDA_CACHE", &cold)]) {
        let cache = TempDir::new().expect("a folder");
        let runtime = runtime_on(&machine_with(&WHOLE), cache.path(), &[]);
        for _ in 0..2 {
            let error = squared(&squares(&runtime, CUDA)).expect_err("nothing compiles");
            assert_eq!(error.code(), Code::INTERNAL, "{error}");
            let text = error.to_string();
            for part in ["cannot compile", "square.cu(7): error: expected a ;", "y"] {
                assert!(text.contains(part), "expected '{part}' in: {text}");
            }
        }
        let kept = fs::read_dir(cache.path()).expect("it is there").count();
        assert_eq!(kept, 0, "nothing is kept of it");
        let y = squared(&squares(&runtime, CPU)).expect("the CPU computes");
        assert_eq!(values(&y), SQUARES);
    }
}
