//! `Add` (and `AddV2`), `Sub`, `Mul`, `RealDiv` (and `Div` of floats), `Maximum`, `Minimum`,
//! `SquaredDifference`, `Pow`, `Atan2`: with broadcasting; and `AddN`.
//! 16-bit floats compute in `f32` and round once per operation.

use tenon_framework::element::{Float, Number};
use tenon_geometry::BroadcastPlan;

/// Writes `f(x, y)` to every element of `z`, with `x` and `y` broadcast as planned.
pub fn map<T, U, V>(
    plan: &BroadcastPlan<2>,
    x: &[T],
    y: &[U],
    z: &mut [V],
    f: impl Fn(&T, &U) -> V,
) {
    debug_assert_eq!(plan.len(), z.len());
    for run in plan.runs() {
        for (i, z) in z[run.output..][..run.len].iter_mut().enumerate() {
            let x = &x[run.offsets[0] + i * run.strides[0]];
            let y = &y[run.offsets[1] + i * run.strides[1]];
            *z = f(x, y);
        }
    }
}

/// `x + y`; integers wrap.
pub fn add<T: Number>(plan: &BroadcastPlan<2>, x: &[T], y: &[T], z: &mut [T]) {
    map(plan, x, y, z, |x, y| x.add(*y));
}

/// `x - y`; integers wrap.
pub fn sub<T: Number>(plan: &BroadcastPlan<2>, x: &[T], y: &[T], z: &mut [T]) {
    map(plan, x, y, z, |x, y| x.sub(*y));
}

/// `x * y`; integers wrap.
pub fn mul<T: Number>(plan: &BroadcastPlan<2>, x: &[T], y: &[T], z: &mut [T]) {
    map(plan, x, y, z, |x, y| x.mul(*y));
}

/// `x / y` of floats: infinite for `y = 0`, NaN for `0 / 0`.
pub fn real_div<T: Float>(plan: &BroadcastPlan<2>, x: &[T], y: &[T], z: &mut [T]) {
    map(plan, x, y, z, |x, y| T::narrow(x.widen() / y.widen()));
}

/// `(x - y)^2`; integers wrap, 16-bit floats round once.
pub fn squared_difference<T: Number>(plan: &BroadcastPlan<2>, x: &[T], y: &[T], z: &mut [T]) {
    map(plan, x, y, z, |x, y| {
        let difference = x.widen().sub(y.widen());
        T::narrow(difference.mul(difference))
    });
}

/// `x` to the power of `y`, as the C standard has it: 1 for `y = 0` and for `x = 1`.
pub fn pow<T: Float>(plan: &BroadcastPlan<2>, x: &[T], y: &[T], z: &mut [T]) {
    map(plan, x, y, z, |x, y| T::from_f64(x.to_f64().powf(y.to_f64())));
}

/// The angle of the points `(x, y)`, of which `y` is the first input.
pub fn atan2<T: Float>(plan: &BroadcastPlan<2>, y: &[T], x: &[T], z: &mut [T]) {
    map(plan, y, x, z, |y, x| T::from_f64(y.to_f64().atan2(x.to_f64())));
}

/// The larger of two values; NaN when one is NaN.
pub fn maximum<T: Number>(plan: &BroadcastPlan<2>, x: &[T], y: &[T], z: &mut [T]) {
    map(plan, x, y, z, |x, y| larger(*x, *y));
}

/// The smaller of two values; NaN when one is NaN.
pub fn minimum<T: Number>(plan: &BroadcastPlan<2>, x: &[T], y: &[T], z: &mut [T]) {
    map(plan, x, y, z, |&x, &y| if y.is_nan() || y < x { y } else { x });
}

/// The larger value; NaN when one is NaN, the first of equal ones.
pub(crate) fn larger<T: Number>(x: T, y: T) -> T {
    if y.is_nan() || y > x { y } else { x }
}

/// The sum of one or more inputs of the same length.
///
/// Every addition rounds, in TensorFlow's order: with `r` the number of inputs modulo 8 (8 and 9 for 0 and 1),
/// the first `r` are added from left to right, then sums of eight inputs at a time are added to that.
pub fn add_n<T: Number>(inputs: &[&[T]], output: &mut [T]) {
    let first = match inputs.len() % 8 {
        r @ (0 | 1) => (r + 8).min(inputs.len()),
        r => r,
    };
    let (first, rest) = inputs.split_at(first);
    let sum = |inputs: &[&[T]], i: usize| {
        inputs.iter().map(|input| input[i]).reduce(Number::add).unwrap_or(T::ZERO)
    };
    for (i, output) in output.iter_mut().enumerate() {
        *output = rest.chunks(8).fold(sum(first, i), |total, eight| total.add(sum(eight, i)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::{bf16, f16};

    type Kernel<T> = fn(&BroadcastPlan<2>, &[T], &[T], &mut [T]);

    fn run<T: Number>(f: Kernel<T>, x: (&[i64], &[T]), y: (&[i64], &[T])) -> Vec<T> {
        let plan = BroadcastPlan::new([x.0, y.0]).unwrap();
        let mut z = vec![T::ZERO; plan.len()];
        f(&plan, x.1, y.1, &mut z);
        z
    }

    #[test]
    fn broadcasting() {
        let (x, y) = ([1, 2], [10, 20, 30]);
        let z = run(sub, (&[2, 1], &x), (&[3], &y));
        assert_eq!(z, [-9, -19, -29, -8, -18, -28]);
        assert_eq!(run(mul, (&[], &[3u8]), (&[2], &[100, 2])), [44, 6]);
        assert_eq!(run::<f32>(add, (&[0], &[]), (&[1], &[1.0])), []);
    }

    #[test]
    fn division() {
        let x = [1.0, -1.0, 0.0, f32::INFINITY];
        let z = run(real_div, (&[4], &x), (&[4], &[0.0, 0.0, 0.0, f32::INFINITY]));
        assert_eq!(z[..2], [f32::INFINITY, -f32::INFINITY]);
        assert!(z[2].is_nan() && z[3].is_nan());
        let half = [f16::ONE, f16::from_f32(3.0)];
        assert_eq!(run(real_div, (&[1], &half[..1]), (&[1], &half[1..]))[0].to_bits(), 0x3555);
    }

    #[test]
    fn powers_angles_and_differences() {
        let (x, y) = ([-2.0, 0.0, 4.0], [3.0, -1.0, 0.5f32]);
        assert_eq!(run(pow, (&[3], &x), (&[3], &y)), [-8.0, f32::INFINITY, 2.0]);
        assert_eq!(run(atan2, (&[], &[0.0]), (&[2], &[1.0, -1.0])), [0.0, std::f32::consts::PI]);
        assert_eq!(run(squared_difference, (&[2], &[3, -128i8]), (&[], &[1])), [4, 1]);
    }

    #[test]
    fn nan_wins() {
        let (x, y) = ([f32::NAN, 1.0, 2.0], [1.0, f32::NAN, 3.0]);
        for (f, last) in [(maximum as Kernel<f32>, 3.0), (minimum, 2.0)] {
            let z = run(f, (&[3], &x), (&[3], &y));
            assert!(z[0].is_nan() && z[1].is_nan());
            assert_eq!(z[2], last);
        }
    }

    #[test]
    fn add_n_rounds_in_tensorflow_s_order() {
        let sum = |first: f32, ones: usize| {
            let inputs: Vec<[f16; 1]> = std::iter::once([f16::from_f32(first)])
                .chain(std::iter::repeat_n([f16::ONE], ones))
                .collect();
            let inputs: Vec<&[f16]> = inputs.iter().map(|x| &x[..]).collect();
            let mut output = [f16::ZERO];
            add_n(&inputs, &mut output);
            output[0].to_f32()
        };
        // tf.raw_ops.AddN of half [2048] and 3 or 9 times [1]
        assert_eq!(sum(2048.0, 3), 2048.0);
        assert_eq!(sum(2048.0, 9), 2056.0);
        assert_eq!(sum(5.0, 0), 5.0);
        let ones = [bf16::ONE];
        let mut inputs = vec![&ones[..]; 10];
        let big = [bf16::from_f32(256.0)];
        inputs[0] = &big;
        let mut output = [bf16::ZERO];
        add_n(&inputs, &mut output);
        assert_eq!(output[0].to_f32(), 264.0);
    }
}
