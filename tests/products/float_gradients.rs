//! Gradients of convolutions of floats through the loaded plugin: against plain sums in double, on every instruction set of
//! this CPU, and with several numbers of threads.

use crate::float_products::{assert_close, host, isas, values};
use std::sync::Arc;
use tenon_framework::{DType, Tensor, attr::AttrValue};
use tenon_runtime::host::{
    call::StepEnv, instance::call_once, pool::ThreadPool, resources::Resources,
};
use tenon_testkit::host::{Node, TestHost, elements};

/// A convolution, channels last.
struct Case {
    image: [usize; 4],
    filter: [usize; 4],
    strides: [usize; 2],
    dilations: [usize; 2],
    /// Before and after the rows, before and after the columns.
    padding: [usize; 4],
}

const fn case(image: [usize; 4], filter: [usize; 4], stride: usize, padding: usize) -> Case {
    Case { image, filter, strides: [stride; 2], dilations: [1; 2], padding: [padding; 4] }
}

/// Phases with and without taps, of which some read padding alone; groups; rows of more and of fewer pixels than a tile has
/// rows; several images in a block, and several blocks in an image; parts of the sum.
const CONVOLUTIONS: [Case; 14] = [
    case([2, 9, 8, 17], [3, 3, 17, 50], 1, 1),
    case([3, 9, 8, 16], [3, 3, 16, 20], 2, 1),
    case([2, 8, 8, 16], [1, 1, 16, 33], 2, 0),
    case([2, 7, 9, 24], [1, 1, 24, 10], 1, 0),
    case([2, 9, 7, 12], [2, 2, 12, 9], 3, 0),
    case([2, 5, 6, 32], [3, 3, 16, 30], 1, 1),
    case([1, 4, 5, 20], [3, 3, 20, 6], 1, 4),
    case([9, 3, 2, 16], [3, 3, 16, 16], 1, 1),
    case([2, 36, 40, 9], [3, 3, 9, 20], 1, 1),
    case([1, 64, 40, 1], [5, 5, 1, 32], 1, 2),
    case([1, 19, 18, 3], [7, 7, 3, 64], 2, 3),
    case([1, 6, 300, 16], [1, 5, 16, 7], 2, 2),
    Case { dilations: [2, 3], ..case([2, 11, 13, 10], [3, 3, 10, 18], 1, 2) },
    Case {
        strides: [2, 4],
        dilations: [2, 6],
        padding: [3, 1, 9, 4],
        ..case([2, 10, 21, 18], [3, 3, 18, 17], 1, 0)
    },
];

/// Channels that fill vectors and that do not, rows of taps of which tiles are made and others.
const DEPTHWISE: [Case; 7] = [
    case([2, 9, 8, 33], [3, 3, 33, 1], 1, 1),
    case([2, 9, 10, 40], [3, 3, 40, 1], 2, 1),
    case([1, 30, 40, 70], [5, 5, 70, 1], 1, 2),
    case([1, 8, 9, 16], [2, 2, 16, 1], 3, 0),
    case([2, 5, 6, 8], [3, 3, 8, 1], 1, 4),
    case([2, 7, 6, 6], [3, 2, 6, 3], 2, 1),
    Case { dilations: [2, 3], ..case([2, 11, 13, 10], [3, 3, 10, 1], 1, 2) },
];

/// The gradient by the input or by the filter.
#[derive(Debug, Clone, Copy, PartialEq)]
enum By {
    Input,
    Filter,
}

fn dims(sizes: &[usize]) -> Vec<i64> {
    sizes.iter().map(|&size| size as i64).collect()
}

impl Case {
    fn outputs(&self, depthwise: bool) -> [usize; 4] {
        let size = |dim: usize| {
            let span = (self.filter[dim] - 1) * self.dilations[dim] + 1;
            let padded = self.image[dim + 1] + self.padding[2 * dim] + self.padding[2 * dim + 1];
            (padded - span) / self.strides[dim] + 1
        };
        let channels = if depthwise { self.image[3] * self.filter[3] } else { self.filter[3] };
        [self.image[0], size(0), size(1), channels]
    }

    fn tensors(&self, depthwise: bool) -> [Vec<f32>; 3] {
        let outputs = self.outputs(depthwise);
        let of = |sizes: &[usize], seed: u32| values(&dims(sizes), seed);
        [of(&self.image, 77_777), of(&self.filter, 12_345), of(&outputs, 54_321)]
    }

    fn node<'h>(&self, host: &'h TestHost, depthwise: bool, by: By) -> Node<'h> {
        let op = match (depthwise, by) {
            (false, By::Input) => "Conv2DBackpropInput",
            (false, By::Filter) => "Conv2DBackpropFilter",
            (true, By::Input) => "DepthwiseConv2dNativeBackpropInput",
            (true, By::Filter) => "DepthwiseConv2dNativeBackpropFilter",
        };
        let around = |[y, x]: [usize; 2]| vec![1, y as i64, x as i64, 1];
        let padding = [vec![0, 0], dims(&self.padding), vec![0, 0]].concat();
        host.node(op)
            .attr("T", AttrValue::Type(DType::FLOAT))
            .attr("strides", around(self.strides))
            .attr("dilations", around(self.dilations))
            .attr("padding", "EXPLICIT")
            .attr("explicit_paddings", padding)
    }

    fn inputs(&self, depthwise: bool, by: By) -> Vec<Tensor> {
        let [x, f, dy] = self.tensors(depthwise);
        let outputs = self.outputs(depthwise);
        let tensor = |sizes: &[usize], values: &[f32]| {
            Tensor::from_slice(&dims(sizes), values).expect("a tensor")
        };
        let sizes = |sizes: &[usize]| {
            let sizes: Vec<i32> = sizes.iter().map(|&size| size as i32).collect();
            Tensor::from_slice(&[4], &sizes).expect("a vector")
        };
        let dy = tensor(&outputs, &dy);
        match by {
            By::Input => vec![sizes(&self.image), tensor(&self.filter, &f), dy],
            By::Filter => vec![tensor(&self.image, &x), sizes(&self.filter), dy],
        }
    }

    /// Calls `f` with the positions of the factors of each product of the convolution, in image, filter and output.
    fn each(&self, depthwise: bool, mut f: impl FnMut([usize; 3])) {
        let ([_, height, width, all], [kh, kw, channels, columns]) = (self.image, self.filter);
        let outputs = self.outputs(depthwise);
        let group = outputs[3] / (all / channels);
        let count = outputs.iter().product::<usize>();
        for at in 0..count {
            let (output, x) = (at % outputs[3], at / outputs[3] % outputs[2]);
            let row = at / outputs[3] / outputs[2];
            let (y, image) = (row % outputs[1], row / outputs[1]);
            for (ky, kx) in (0..kh).flat_map(|ky| (0..kw).map(move |kx| (ky, kx))) {
                let iy =
                    (y * self.strides[0] + ky * self.dilations[0]).wrapping_sub(self.padding[0]);
                let ix =
                    (x * self.strides[1] + kx * self.dilations[1]).wrapping_sub(self.padding[2]);
                if iy >= height || ix >= width {
                    continue;
                }
                let pixel = ((image * height + iy) * width + ix) * all;
                let tap = (ky * kw + kx) * channels;
                if depthwise {
                    let channel = output / columns;
                    f([pixel + channel, (tap + channel) * columns + output % columns, at]);
                    continue;
                }
                for channel in 0..channels {
                    let x = pixel + output / group * channels + channel;
                    f([x, (tap + channel) * columns + output, at]);
                }
            }
        }
    }

    fn expected(&self, depthwise: bool, by: By) -> Vec<f64> {
        let [x, filter, dy] = self.tensors(depthwise);
        let len = if by == By::Input { x.len() } else { filter.len() };
        let mut sums = vec![0.0; len];
        self.each(depthwise, |[at, weight, output]| {
            let dy = f64::from(dy[output]);
            match by {
                By::Input => sums[at] += f64::from(filter[weight]) * dy,
                By::Filter => sums[weight] += f64::from(x[at]) * dy,
            }
        });
        sums
    }
}

fn every_instruction_set_agrees_with_plain_sums(cases: &[Case], depthwise: bool) {
    for (number, case) in cases.iter().enumerate() {
        for by in [By::Input, By::Filter] {
            let (inputs, expected) = (case.inputs(depthwise, by), case.expected(depthwise, by));
            for isa in isas() {
                let (host, _alone) = host(&isa);
                let found = case.node(&host, depthwise, by).call(&inputs).expect("the call");
                let what = format!("{isa}, case {number}, by {by:?}");
                assert_close(&elements(&found[0]), &expected, &what);
            }
        }
    }
}

#[test]
fn gradients_of_convolutions_are_plain_sums() {
    every_instruction_set_agrees_with_plain_sums(&CONVOLUTIONS, false);
}

#[test]
fn gradients_of_depthwise_convolutions_are_plain_sums() {
    every_instruction_set_agrees_with_plain_sums(&DEPTHWISE, true);
}

/// To the last bit: sums are cut by the sizes, not by the threads.
#[test]
fn the_number_of_threads_changes_no_gradient() {
    let (host, _alone) = host("");
    for (cases, depthwise) in [(&CONVOLUTIONS[..], false), (&DEPTHWISE[..], true)] {
        for (number, case) in cases.iter().enumerate() {
            for by in [By::Input, By::Filter] {
                let inputs = case.inputs(depthwise, by);
                let kernel = case.node(&host, depthwise, by).create().expect("a kernel");
                let run = |threads: usize| -> Vec<u32> {
                    let pool = Arc::new(ThreadPool::new(threads));
                    let env = StepEnv::new(pool, Arc::new(Resources::new()));
                    let found = call_once(&kernel, &inputs, &env).expect("the call");
                    elements::<f32>(&found[0]).iter().map(|x| x.to_bits()).collect()
                };
                let one = run(1);
                for threads in [2, 5] {
                    assert!(run(threads) == one, "case {number}, by {by:?}, {threads} threads");
                }
            }
        }
    }
}
