//! Ranges derived from values, and integer weights from floats.

use super::{
    Method, Noise, Observer, QuantizeError, Range,
    fold::Fold,
    layers::{Layer, LayerKind, Weights},
    weights::Quantized,
};
use tenon_framework::Tensor;
use tenon_geometry::fixed_point::Affine;
use tenon_graph::{NodeId, Output};

fn observed(method: Method, values: &[f32]) -> Range {
    let tensor = Tensor::from_slice(&[values.len() as i64], values).unwrap();
    let mut observer = Observer::new("x:0".to_owned(), method);
    for pass in 0..method.passes() {
        observer.take(pass, &tensor, 0).unwrap();
    }
    observer.range().unwrap()
}

/// Ten thousand values from -1 to 1, most of them near 0, and one outlier. With evenly spread
/// values, no level would be too wide for the relative entropy.
fn with_outlier() -> Vec<f32> {
    let mut values: Vec<f32> = (0..10_000).map(|at| (at as f32 / 5000.0 - 1.0).powi(3)).collect();
    values.push(50.0);
    values
}

#[test]
fn a_range_goes_from_the_least_to_the_greatest_value() {
    assert_eq!(observed(Method::MinMax, &[3.0, -2.0, 0.5]), Range { min: -2.0, max: 3.0 });
}

#[test]
fn a_percentile_and_entropy_cut_an_outlier_off() {
    let values = with_outlier();
    for method in [Method::Percentile(99.9), Method::Entropy] {
        let Range { min, max } = observed(method, &values);
        assert!(
            (-1.0..-0.9).contains(&min) && (0.9..8.0).contains(&max),
            "{method:?}: {min} {max}"
        );
    }
    let all = observed(Method::Percentile(100.0), &values);
    assert_eq!((all.min, all.max), (-1.0, 50.0));
}

#[test]
fn a_tensor_of_one_value_keeps_it() {
    for method in [Method::MinMax, Method::Percentile(99.0), Method::Entropy] {
        assert_eq!(observed(method, &[2.5; 9]), Range { min: 2.5, max: 2.5 }, "{method:?}");
        assert_eq!(observed(method, &[0.0; 9]), Range { min: 0.0, max: 0.0 }, "{method:?}");
    }
}

#[test]
fn what_is_not_finite_or_was_never_seen_is_refused() {
    let mut observer = Observer::new("x:0".to_owned(), Method::MinMax);
    let unseen = observer.range().unwrap_err();
    assert!(
        matches!(&unseen, QuantizeError::NotObserved { tensor } if tensor == "x:0"),
        "{unseen}"
    );
    let tensor = Tensor::from_slice(&[2], &[1.0, f32::INFINITY]).unwrap();
    let error = observer.take(0, &tensor, 7).unwrap_err().to_string();
    assert!(error.contains("'x:0': expected finite numbers, found inf in sample 7"), "{error}");
    let whole = Tensor::from_slice(&[1], &[1i32]).unwrap();
    let error = observer.take(0, &whole, 0).unwrap_err().to_string();
    assert_eq!(error, "'x:0': expected float, found int32");
    for percent in [50.0, 100.1, f64::NAN] {
        assert!(Method::Percentile(percent).check().is_err());
    }
}

#[test]
fn noise_is_compared_with_what_bytes_stand_for() {
    let float = Tensor::from_slice(&[3], &[1.0f32, -1.0, 2.0]).unwrap();
    let bytes = Tensor::from_bytes(tenon_framework::DType::QUINT8, &[3], &[12, 8, 13]).unwrap();
    let mut noise = Noise::default();
    noise.take("x", &float, &bytes, Some(Affine { scale: 0.5, zero_point: 10 })).unwrap();
    assert_eq!(noise, Noise { signal: 6.0, noise: 0.25, worst: 0.5, count: 3 });
    assert!((noise.decibels() - 13.802).abs() < 1e-3);
    assert!((noise.relative() - 0.204).abs() < 1e-3);
    assert!(noise.take("x", &float, &Tensor::scalar(1f32).unwrap(), None).is_err());
}

#[test]
fn a_number_that_became_nan_or_the_other_way_round_is_a_loss() {
    let compared = |expected: &[f32], found: &[f32]| {
        let tensor = |values: &[f32]| Tensor::from_slice(&[values.len() as i64], values).unwrap();
        let mut noise = Noise::default();
        noise.take("x", &tensor(expected), &tensor(found), None).unwrap();
        noise
    };
    let (nan, infinity) = (f32::NAN, f32::INFINITY);
    for (expected, found) in [(nan, 1.0), (1.0, nan), (infinity, 1.0), (infinity, -infinity)] {
        let noise = compared(&[1.0, expected], &[1.0, found]);
        assert_eq!(noise.decibels(), f64::NEG_INFINITY, "{expected} {found}");
        assert_eq!((noise.relative(), noise.worst), (f64::INFINITY, f64::INFINITY));
    }
    let noise = compared(&[2.0, nan, infinity], &[1.0, nan, infinity]);
    assert_eq!(noise, Noise { signal: 4.0, noise: 1.0, worst: 1.0, count: 3 });
    assert_eq!(compared(&[nan, infinity], &[nan, infinity]).relative(), 0.0);
}

/// A product whose channels have weights up to `greatest`, with folded factors and shifts.
fn layer_of(greatest: &[f32], factors: &[f64], shifts: Option<&[f64]>, depth: usize) -> Layer {
    let tensor = Output::new(NodeId(0), 0);
    Layer {
        kind: LayerKind::MatMul,
        anchor: NodeId(0),
        nodes: vec![NodeId(0)],
        input: tensor,
        output: tensor,
        weights: Weights { channels: factors.len(), depth, by_channel: false },
        greatest: greatest.to_vec(),
        fold: Fold { factors: factors.to_vec(), shifts: shifts.map(<[f64]>::to_vec) },
        activation: "NONE",
        pads: None,
    }
}

#[test]
fn weights_fill_their_bytes_channel_by_channel() {
    let layer = layer_of(&[1.0, 10.0], &[2.0, -1.0], Some(&[0.5, -3.0]), 2);
    let input = Affine { scale: 0.25, zero_point: 3 };
    let found = Quantized::new(&layer, &[1.0, 5.0, -0.5, 10.0], Some(input), None);
    assert_eq!(found.scales, [2.0f32 / 127.0, 10.0 / 127.0]);
    assert_eq!(found.weights, [127, -64, -64, -127]);
    // The steps are 0.25 * 2 / 127 and 0.25 * 10 / 127.
    assert_eq!(found.bias, Some(vec![127, -152]));
}

/// Tiny weights with a bias would make the bias exceed 32 bits: the channel's scale grows.
#[test]
fn a_bias_always_fits() {
    for depth in [1, 60_000] {
        let layer = layer_of(&[1e-12], &[1.0], Some(&[1e6]), depth);
        let input = Affine { scale: 1e-3, zero_point: 0 };
        let found = Quantized::new(&layer, &vec![1e-12; depth], Some(input), None);
        let bias = i64::from(found.bias.unwrap()[0]);
        assert!(bias > 1000 && bias + depth as i64 * 255 * 128 <= i64::from(i32::MAX), "{bias}");
        let real = bias as f64 * 1e-3 * f64::from(found.scales[0]);
        assert!((real / 1e6 - 1.0).abs() < 1e-3, "{real}");
    }
}

#[test]
fn a_channel_without_weights_has_a_scale_that_kernels_take() {
    let layer = layer_of(&[0.0, 3.0], &[1.0, 0.0], None, 1);
    let (input, output) =
        (Affine { scale: 1e-6, zero_point: 0 }, Affine { scale: 1e6, zero_point: 0 });
    let found = Quantized::new(&layer, &[0.0, 3.0], Some(input), Some(output));
    assert_eq!((found.weights, found.bias), (vec![0, 0], None));
    for scale in found.scales {
        let multiplier = f64::from(scale) * f64::from(input.scale) / f64::from(output.scale);
        assert!(multiplier >= 2f64.powi(-32), "{scale}");
    }
}

/// A 127th of these weights is not a normal float: they get few levels, but do not become 0.
#[test]
fn the_smallest_weights_are_not_lost() {
    let layer = layer_of(&[8e-38], &[1.0], None, 1);
    let found = Quantized::new(&layer, &[8e-38], None, None);
    let real = f32::from(found.weights[0]) * found.scales[0];
    assert!((real / 8e-38 - 1.0).abs() < 0.1 && found.scales[0].is_normal(), "{found:?}");
}

#[test]
fn factors_that_overflow_stay_apart() {
    let fold = |factor: f64, shift: f64| Fold { factors: vec![factor], shifts: Some(vec![shift]) };
    assert!(fold(1e30, 1.0).keeps_finite(&[1e8]));
    assert!(!fold(1e30, 1.0).keeps_finite(&[1e9]));
    assert!(!fold(1.0, 1e39).keeps_finite(&[1.0]));
    assert!(!fold(f64::INFINITY, 1.0).keeps_finite(&[0.0]));
}
