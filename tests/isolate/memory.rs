//! Where tensors of isolated plugins lie, and how much memory they may take.

use super::support::{alone, one_node, runtime, status, step};
use tenon_runtime::{
    RuntimeError,
    framework::{Code, DType, PartialShape, Shape, Tensor},
};
use tenon_tests::session::{floats, session_as_written};

#[test]
fn memory_beyond_the_limit_is_an_error_with_the_limit() {
    let _alone = alone();
    let knobs = [("host.isolate_memory_mb", "512"), ("host.isolate_faults", "0")];
    let runtime = runtime(&["tenon_cpu"], &["zoo_fatal"], &knobs);
    let session = one_node(&runtime, "FatalTwice", Some("grow"));
    for number in 0..10 {
        let Err(RuntimeError::Step(error)) = step(&session, floats(&[1.0; 3])) else {
            panic!("the step takes all memory")
        };
        assert_eq!(error.code, Code::RESOURCE_EXHAUSTED, "{error}");
        assert!(error.message.contains("may have 512 MiB (host.isolate_memory_mb)"), "{error}");
        let x = number as f32;
        assert_eq!(step(&session, floats(&[x])).unwrap(), [2.0 * x]);
    }
}

#[test]
fn tensors_beyond_the_limit_are_an_error_with_the_knob() {
    let _alone = alone();
    let runtime = runtime(&["tenon_cpu"], &["zoo_wrong"], &[("host.isolate_tensors_mb", "1")]);
    let session = session_as_written(&runtime, |b| {
        let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
        b.op("WrongFaults").name("y").input(x).attr("_kernel", "right").build()?;
        Ok(())
    });
    assert_eq!(step(&session, floats(&[1.0])).unwrap(), [2.0]);
    let Err(RuntimeError::Step(error)) = step(&session, floats(&vec![1.0; 1 << 20])) else {
        panic!("the output has 4 MiB")
    };
    assert_eq!(error.code, Code::RESOURCE_EXHAUSTED, "{error}");
    assert!(error.message.contains("raise host.isolate_tensors_mb"), "{error}");
    assert_eq!(step(&session, floats(&[3.0])).unwrap(), [6.0]);
    assert_eq!(status(&runtime, "zoo-wrong").faults, 0, "an error is not a fault");
}

/// A tensor of memory that the host gives is read where it lies, and what a plugin writes stays where it is.
#[test]
fn large_tensors_pass_whole_from_any_memory() {
    let _alone = alone();
    let runtime = runtime(&["tenon_cpu"], &["zoo_wrong"], &[]);
    let session = session_as_written(&runtime, |b| {
        let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
        let twice = b.op("WrongFaults").name("a").input(x).attr("_kernel", "right").build()?;
        let sum = b.op("Add").name("b").input(twice).input(twice).build()?;
        b.op("WrongFaults").name("y").input(sum).attr("_kernel", "right").build()?;
        Ok(())
    });
    for elements in [1usize, 255, 256, 257, 1 << 12, (1 << 20) + 3] {
        let values: Vec<f32> = (0..elements).map(|at| (at % 1000) as f32).collect();
        let expected: Vec<f32> = values.iter().map(|value| 8.0 * value).collect();
        let theirs = floats(&values);
        assert_eq!(step(&session, theirs).unwrap(), expected, "memory of the client's");
        let shape = Shape::new(&[elements as i64]).unwrap();
        let ours = Tensor::allocate(runtime.host_memory(), DType::FLOAT, shape).unwrap();
        // SAFETY: as many elements, which nobody else sees yet.
        unsafe {
            let to = ours.buffer().data().cast::<f32>();
            std::ptr::copy_nonoverlapping(values.as_ptr(), to, elements);
        }
        assert_eq!(step(&session, ours).unwrap(), expected, "memory of the runtime's");
    }
    drop(session);
    assert_eq!(status(&runtime, "zoo-wrong").tensor_bytes, 0, "nothing of it is in use");
}
