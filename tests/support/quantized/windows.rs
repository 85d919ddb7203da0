//! Convolutions by their definition.

use tenon_framework::attr::AttrValue;
use tenon_testkit::host::Node;

/// Sizes and attributes of a convolution with channels last.
#[derive(Clone, Copy, Debug)]
pub struct Windows {
    /// Images, rows, columns, channels.
    pub input: [usize; 4],
    /// Rows, columns, channels, output channels or multiplier.
    pub filter: [usize; 4],
    /// Down and across.
    pub strides: [usize; 2],
    /// Down and across.
    pub dilations: [usize; 2],
    /// `SAME`, `VALID` or `EXPLICIT`.
    pub padding: &'static str,
    /// Above, below, left, right.
    pub explicit: [usize; 4],
}

impl Windows {
    /// Without strides, dilations and padding.
    pub fn new(input: [usize; 4], filter: [usize; 4]) -> Windows {
        Windows {
            input,
            filter,
            strides: [1; 2],
            dilations: [1; 2],
            padding: "VALID",
            explicit: [0; 4],
        }
    }

    /// Outputs and pixels of padding before the first input of a dimension.
    fn outputs(&self, dim: usize) -> [usize; 2] {
        let (input, stride) = (self.input[1 + dim], self.strides[dim]);
        let span = (self.filter[dim] - 1) * self.dilations[dim] + 1;
        let [before, after] = [self.explicit[2 * dim], self.explicit[2 * dim + 1]];
        match self.padding {
            "SAME" => {
                let outputs = input.div_ceil(stride);
                let missing = (outputs.max(1) - 1) * stride + span;
                [outputs, missing.saturating_sub(input) / 2]
            }
            "VALID" => [(input + stride).saturating_sub(span) / stride, 0],
            _ => [(input + before + after + stride).saturating_sub(span) / stride, before],
        }
    }

    /// Output pixels of all images.
    pub fn pixels(&self) -> usize {
        self.input[0] * self.outputs(0)[0] * self.outputs(1)[0]
    }

    /// Elements of the images and of the filter.
    pub fn lens(&self) -> [usize; 2] {
        [self.input.iter().product(), self.filter.iter().product()]
    }

    /// The node with the attributes.
    pub fn attrs<'h>(&self, node: Node<'h>) -> Node<'h> {
        let four =
            |[down, across]: [usize; 2]| AttrValue::from(vec![1, down as i64, across as i64, 1]);
        let node = node
            .attr("strides", four(self.strides))
            .attr("dilations", four(self.dilations))
            .attr("padding", self.padding);
        if self.padding != "EXPLICIT" {
            return node;
        }
        let mut paddings = vec![0; 8];
        for (to, &padding) in paddings[2..6].iter_mut().zip(&self.explicit) {
            *to = padding as i64;
        }
        node.attr("explicit_paddings", paddings)
    }

    /// The sum of a function of the taps of an output pixel that are in its image: it gets the channels, and the first
    /// elements of the tap's pixel and of its part of a filter of one output.
    pub fn sum(&self, pixel: usize, tap: impl Fn(usize, [usize; 2]) -> i64) -> i64 {
        let [_, height, width, channels] = self.input;
        let [[rows, above], [columns, left]] = [self.outputs(0), self.outputs(1)];
        let (image, y, x) = (pixel / (rows * columns), pixel / columns % rows, pixel % columns);
        let mut sum = 0;
        for ky in 0..self.filter[0] {
            for kx in 0..self.filter[1] {
                let y = (y * self.strides[0] + ky * self.dilations[0]).checked_sub(above);
                let x = (x * self.strides[1] + kx * self.dilations[1]).checked_sub(left);
                let (Some(y), Some(x)) = (y, x) else { continue };
                if y < height && x < width {
                    let first = ((image * height + y) * width + x) * channels;
                    sum += tap(channels, [first, (ky * self.filter[1] + kx) * channels]);
                }
            }
        }
        sum
    }
}
