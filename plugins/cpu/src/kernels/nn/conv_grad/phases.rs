//! The inputs of a convolution by the remainder of their positions, padding included, divided by
//! the stride.
//!
//! The inputs of one phase are read by the same taps, at neighbouring outputs. So their gradient is
//! a convolution with stride 1 over the gradient of the outputs, with these taps in reverse:
//!
//! ```text
//! taps a b c, stride 2, one pixel of padding:     dx[0] = b dy[0]
//!                                                 dx[1] = c dy[0] + a dy[1]
//!                                                 dx[2] = b dy[1]
//! even inputs: the tap b; odd ones: the taps c a over dy
//! ```

use tenon_sdk::geometry::{Conv2dGeometry, DataFormat, WindowDim};

/// The inputs of one phase along a dimension.
#[derive(Debug, Clone, Copy)]
pub struct Phase {
    /// The first input.
    pub first: usize,
    /// The last tap that reads it, which is the first one of the reversed window, and the distance
    /// to the tap before that one.
    last_tap: usize,
    tap_step: usize,
    /// The window over the gradient; without taps, the gradient of these inputs is 0.
    pub window: WindowDim,
}

impl Phase {
    /// The tap of the convolution that is tap `at` of the reversed window.
    pub fn tap(&self, at: usize) -> usize {
        self.last_tap - at * self.tap_step
    }

    fn new(w: &WindowDim, first: i64) -> Phase {
        let [stride, dilation, pad] = [w.stride, w.dilation, w.pad_before].map(i128::from);
        let phase = (i128::from(first) + pad) % stride;
        let tap_step = stride / common_divisor(stride, dilation);
        let found =
            (0..i128::from(w.kernel).min(tap_step)).find(|k| k * dilation % stride == phase);
        let kernel = found.map_or(0, |tap| (i128::from(w.kernel) - 1 - tap) / tap_step + 1);
        let last_tap = found.unwrap_or(0) + (kernel - 1).max(0) * tap_step;
        // Input `first` reads this output by the last tap.
        let start = (i128::from(first) + pad - last_tap * dilation).div_euclid(stride);
        let output = (i128::from(w.input) - 1 - i128::from(first)) / stride + 1;
        let dilation = tap_step * dilation / stride;
        let end = start + output - 1 + (kernel - 1).max(0) * dilation;
        let window = WindowDim {
            name: w.name,
            input: w.output,
            kernel: kernel as i64,
            stride: 1,
            dilation: bounded(dilation),
            pad_before: bounded(-start),
            pad_after: bounded(end + 1 - i128::from(w.output)),
            output: output as i64,
        };
        let [last_tap, tap_step] = [last_tap, tap_step].map(|tap| tap as usize);
        Phase { first: first as usize, last_tap, tap_step, window }
    }
}

/// A position that is far outside in either case.
fn bounded(position: i128) -> i64 {
    const FAR: i128 = 1 << 60;
    position.clamp(-FAR, FAR) as i64
}

fn common_divisor(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// The phases of a dimension that have inputs, in the order of their first ones, which are the
/// first inputs.
pub fn phases(w: &WindowDim) -> impl Iterator<Item = Phase> + Clone {
    let w = *w;
    (0..w.stride.min(w.input)).map(move |first| Phase::new(&w, first))
}

/// The convolution over the gradient, channels last, that gives the inputs of two phases.
pub fn transposed(g: &Conv2dGeometry, rows: &Phase, columns: &Phase) -> Conv2dGeometry {
    Conv2dGeometry {
        format: DataFormat::Nhwc,
        batch: g.batch,
        in_channels: g.out_channels,
        out_channels: g.in_channels,
        groups: g.groups,
        filter_channels: g.group_outputs(),
        height: rows.window,
        width: columns.window,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Input, kernel, stride, dilation, padding before, padding after.
    const CASES: [[i64; 6]; 10] = [
        [9, 3, 1, 1, 1, 1],
        [9, 3, 2, 1, 1, 0],
        [8, 3, 2, 1, 0, 1],
        [7, 2, 3, 1, 0, 0],
        [10, 1, 2, 1, 0, 0],
        [12, 5, 2, 3, 6, 6],
        [12, 4, 4, 2, 1, 2],
        [12, 3, 6, 4, 5, 7],
        [3, 2, 1, 1, 7, 4],
        [2, 1, 5, 1, 0, 0],
    ];

    /// For each input, the pairs of a tap and the output for which it reads that input.
    fn readers(w: &WindowDim) -> Vec<Vec<[usize; 2]>> {
        let mut all = vec![Vec::new(); w.input as usize];
        for (output, tap) in
            (0..w.output as usize).flat_map(|o| (0..w.kernel as usize).map(move |t| (o, t)))
        {
            if let Some(input) = w.input_at(output, tap) {
                all[input].push([output, tap]);
            }
        }
        all
    }

    #[test]
    fn each_input_gets_the_taps_that_read_it() {
        for [input, kernel, stride, dilation, pad_before, pad_after] in CASES {
            let span = (kernel - 1) * dilation + 1;
            let output = (input + pad_before + pad_after - span + stride) / stride;
            let w = WindowDim {
                name: "rows",
                input,
                kernel,
                stride,
                dilation,
                pad_before,
                pad_after,
                output,
            };
            let expected = readers(&w);
            let mut seen = 0;
            for phase in phases(&w) {
                for at in 0..phase.window.output as usize {
                    let mut found: Vec<[usize; 2]> = (0..phase.window.kernel as usize)
                        .filter_map(|tap| {
                            let output = phase.window.input_at(at, tap)?;
                            Some([output, phase.tap(tap)])
                        })
                        .collect();
                    found.sort_unstable();
                    assert_eq!(found, expected[phase.first + at * stride as usize], "{w:?}");
                    seen += 1;
                }
            }
            assert_eq!(seen, input, "{w:?}");
        }
    }
}
