//! Reductions of sizes at which kernels on a GPU change their ways, against the CPU's kernels: several blocks for one
//! result, several passes of a sort, more than shared memory holds. Values are small integers, so that sums are exact
//! in any order.

use tenon_runtime::framework::{PartialShape, Tensor, element::Element};
use tenon_tests::{
    cuda::cuda_runtime,
    session::{run, session, turn},
};

/// Numbers from 0 to `below`, without a pattern.
fn numbers(count: usize, below: u64) -> impl Iterator<Item = i32> {
    let mut state = 0x2545_f491_4f6c_dd1du64;
    (0..count).map(move |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below) as i32
    })
}

fn tensor<T: Element>(dims: &[i64], values: Vec<T>) -> Tensor {
    Tensor::from_slice(dims, &values).expect("as many values as the shape has")
}

fn floats(dims: &[i64], below: u64) -> Tensor {
    let count = dims.iter().product::<i64>() as usize;
    tensor(dims, numbers(count, below).map(|x| x as f32 - (below / 2) as f32).collect())
}

fn integers(dims: &[i64], below: u64) -> Tensor {
    let count = dims.iter().product::<i64>() as usize;
    tensor(dims, numbers(count, below).collect())
}

fn sorted(count: usize, below: u64) -> Tensor {
    let mut ids: Vec<i32> = numbers(count, below).collect();
    ids.sort_unstable();
    tensor(&[count as i64], ids)
}

fn scalar(value: i32) -> Tensor {
    tensor(&[], vec![value])
}

/// Both devices give the same bits.
fn agree(op: &str, inputs: &[Tensor], outputs: usize) {
    agree_with(op, inputs, &[], outputs);
}

/// The same with attributes.
fn agree_with(op: &str, inputs: &[Tensor], attrs: &[(&str, bool)], outputs: usize) {
    let _turn = turn();
    let runtime = cuda_runtime(&[]);
    let names: Vec<String> = (0..inputs.len()).map(|at| format!("x{at}")).collect();
    let session = session(&runtime, |b| {
        let mut given = Vec::new();
        for (name, input) in names.iter().zip(inputs) {
            let shape = PartialShape::new(input.shape().dims()).expect("a shape");
            given.push(b.placeholder(name, input.dtype(), shape)?);
        }
        for (name, device) in [("gpu", "/device:CUDA:0"), ("cpu", "/device:CPU:0")] {
            let node = b.op(op).name(name).device(device);
            let node = attrs.iter().fold(node, |node, &(name, value)| node.attr(name, value));
            given.iter().fold(node, |node, &input| node.input(input)).build()?;
        }
        Ok(())
    });
    let feeds: Vec<(&str, Tensor)> =
        names.iter().map(String::as_str).zip(inputs.iter().cloned()).collect();
    for output in 0..outputs {
        let (gpu, cpu) = (format!("gpu:{output}"), format!("cpu:{output}"));
        let found = run(&session, &feeds, &[&gpu, &cpu]).expect("the step runs");
        assert_eq!(found[0].shape().dims(), found[1].shape().dims(), "{op}, output {output}");
        let (gpu, cpu) = (found[0].as_bytes().unwrap(), found[1].as_bytes().unwrap());
        let at = gpu.iter().zip(cpu).position(|(gpu, cpu)| gpu != cpu);
        assert_eq!(at, None, "{op}, output {output}: byte {at:?} differs");
    }
}

#[test]
fn segments_in_any_order() {
    // Of 700 segments two passes of the sort, of 100000 three; few long segments are done in parts.
    for (rows, inner, segments) in [(50_000, 1, 700), (6000, 6, 3), (9000, 8, 100_000), (0, 3, 4)] {
        let data = floats(&[rows, inner], 100);
        let ids = integers(&[rows], segments);
        agree("UnsortedSegmentSum", &[data, ids, scalar(segments as i32)], 1);
    }
}

#[test]
fn a_long_segment_among_short_ones() {
    // Two thirds of the rows are of segment 7, some of segment 2000; all others are short.
    let hub = |at: usize, id: i32| match at % 100 {
        0..66 => 7,
        66..80 => 2000,
        _ => id,
    };
    for (rows, inner) in [(9000, 1), (9000, 6), (6000, 8), (5000, 300)] {
        let data = floats(&[rows, inner], 100);
        let ids: Vec<i32> =
            numbers(rows as usize, 3000).enumerate().map(|(at, id)| hub(at, id)).collect();
        let unsorted = tensor(&[rows], ids.clone());
        for op in ["UnsortedSegmentSum", "UnsortedSegmentMax"] {
            agree(op, &[data.clone(), unsorted.clone(), scalar(3000)], 1);
        }
        let mut ids = ids;
        ids.sort_unstable();
        let picked = integers(&[rows], rows as u64);
        let sorted = tensor(&[rows], ids);
        agree("SegmentMin", &[data.clone(), sorted.clone()], 1);
        agree("SparseSegmentSum", &[data, picked, sorted], 1);
    }
}

#[test]
fn sorted_segments() {
    // Where 5000 segments begin is copied, where 900 do comes with the launch.
    for (rows, inner, segments) in [(20_000, 4, 5000), (3000, 3, 900), (30_000, 2, 2)] {
        let data = floats(&[rows as i64, inner], 100);
        agree("SegmentSum", &[data, sorted(rows, segments)], 1);
    }
    let picked = integers(&[2500], 500);
    agree("SparseSegmentSum", &[floats(&[500, 5], 100), picked, sorted(2500, 1000)], 1);
}

#[test]
fn scans_of_long_lines() {
    // In parts: of rows by packs and not, of columns; lines that end with less than a part.
    for (dims, axis) in [
        (&[1, 60_000][..], 1),
        (&[2, 40_001], 1),
        (&[30_000, 3], 0),
        (&[2, 9001, 5], 1),
        (&[300, 200], 1),
    ] {
        agree("Cumsum", &[floats(dims, 7), scalar(axis)], 1);
        agree("Cumsum", &[integers(dims, 1000), scalar(axis)], 1);
        for (exclusive, reverse) in [(true, false), (false, true), (true, true)] {
            let attrs = [("exclusive", exclusive), ("reverse", reverse)];
            agree_with("Cumsum", &[integers(dims, 1000), scalar(axis)], &attrs, 1);
        }
    }
}

#[test]
fn the_greatest_of_short_rows() {
    // By a warp each: fewer elements than lanes, as many, several for each lane; all of them, many equal ones.
    for (rows, len, k) in [(1, 1, 1), (700, 7, 7), (40, 32, 32), (300, 64, 2), (9, 1000, 5)] {
        for below in [3, 1 << 20] {
            agree("TopKV2", &[floats(&[rows, len], below), scalar(k)], 2);
            agree("TopKV2", &[integers(&[rows, len], below), scalar(k)], 2);
        }
    }
    // No numbers are less than all others.
    let some = numbers(50 * 90, 4).map(|x| if x == 0 { f32::NAN } else { x as f32 });
    let some = tensor(&[50, 90], some.collect());
    agree("TopKV2", &[some.clone(), scalar(80)], 2);
    agree("TopKV2", &[tensor(&[2, 3], vec![f32::NAN; 6]), scalar(3)], 2);
}

#[test]
fn the_greatest_of_long_rows() {
    // In parts, sorted in shared memory, in device memory, with many equal ones and with few.
    for (rows, len, k) in [(1, 20_000, 10), (2, 3000, 2048), (2, 5000, 3000), (3, 4000, 4000)] {
        for below in [100, 1 << 20] {
            agree("TopKV2", &[floats(&[rows, len], below), scalar(k)], 2);
        }
    }
    agree("NthElement", &[floats(&[2, 20_000], 1 << 20), scalar(7777)], 1);
}

#[test]
fn counts_in_shared_and_in_device_memory() {
    for size in [300, 20_000] {
        let numbers = integers(&[20_000], size + 4);
        let none = floats(&[0], 1);
        let weights = floats(&[20_000], 10);
        agree("Bincount", &[numbers.clone(), scalar(size as i32), none], 1);
        agree("Bincount", &[numbers, scalar(size as i32), weights], 1);
    }
}
