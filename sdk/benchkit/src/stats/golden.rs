//! SciPy's results, which `tests/stats/make.py` computes.

use super::{bootstrap, describe, holm, lehmann, random::Random, rank};
use serde::Deserialize;

#[derive(Deserialize)]
struct Goldens {
    series: Vec<Series>,
    pairs: Vec<Pair>,
    holm: Holm,
    normal: Vec<Normal>,
}

#[derive(Deserialize)]
struct Series {
    values: Vec<f64>,
    median: f64,
    mad: f64,
    p5: f64,
    p95: f64,
    interval: [f64; 2],
    hodges_lehmann: f64,
}

#[derive(Deserialize)]
struct Pair {
    a: Vec<f64>,
    b: Vec<f64>,
    u: f64,
    p: f64,
    ratio: f64,
}

#[derive(Deserialize)]
struct Holm {
    p: Vec<f64>,
    corrected: Vec<f64>,
}

#[derive(Deserialize)]
struct Normal {
    z: f64,
    upper: f64,
}

fn goldens() -> Goldens {
    serde_json::from_str(include_str!("../../tests/stats/goldens.json")).unwrap()
}

#[track_caller]
fn near(found: f64, expected: f64, relative: f64) {
    let distance = (found - expected).abs();
    assert!(distance <= relative * expected.abs(), "found {found}, expected {expected}");
}

#[test]
fn medians_quantiles_and_spread_are_numpys() {
    for series in goldens().series {
        let sorted = describe::sorted(&series.values);
        near(describe::median(&series.values), series.median, 1e-12);
        near(describe::mad(&series.values), series.mad, 1e-9);
        near(describe::quantile(&sorted, 0.05), series.p5, 1e-12);
        near(describe::quantile(&sorted, 0.95), series.p95, 1e-12);
    }
}

#[test]
fn the_interval_of_the_median_is_scipys_where_samples_are_drawn_one_by_one() {
    for series in goldens().series {
        let mut random = Random::new(5);
        let medians = (0..20_000).map(|_| {
            let mut drawn = Vec::new();
            bootstrap::draw(&series.values, 1, &mut random, &mut drawn);
            describe::median_in_place(&mut drawn)
        });
        let [low, high] = bootstrap::middle(medians.collect(), 0.95);
        // Both are random: their ends lie within a tenth of the interval's width.
        let width = series.interval[1] - series.interval[0];
        assert!((low - series.interval[0]).abs() <= 0.1 * width, "{low} {:?}", series.interval);
        assert!((high - series.interval[1]).abs() <= 0.1 * width, "{high} {:?}", series.interval);
        // The blocks that are drawn otherwise leave the interval of independent samples what it is, roughly.
        let [low, high] = bootstrap::median_interval(&[series.values], 5);
        assert!((0.4..2.0).contains(&((high - low) / width)), "{low} {high} {:?}", series.interval);
    }
}

#[test]
fn the_estimates_of_hodges_and_lehmann_are_the_medians_of_all_pairs() {
    let goldens = goldens();
    let mut pairs = Vec::new();
    for series in goldens.series {
        near(lehmann::one_sample(&series.values, &mut pairs), series.hodges_lehmann, 1e-12);
    }
    for pair in goldens.pairs {
        near(lehmann::unpaired(&pair.a, &pair.b, 1).unwrap().ratio, pair.ratio, 1e-9);
    }
}

#[test]
fn the_rank_test_is_scipys() {
    for pair in goldens().pairs {
        let test = rank::mann_whitney(&pair.a, &pair.b).unwrap();
        near(test.u, pair.u, 1e-12);
        near(test.p, pair.p, 1e-9);
    }
}

#[test]
fn holms_correction_and_the_normal_distribution_are_scipys() {
    let goldens = goldens();
    let corrected = holm::holm(&goldens.holm.p);
    corrected
        .iter()
        .zip(&goldens.holm.corrected)
        .for_each(|(found, wanted)| near(*found, *wanted, 1e-12));
    for normal in goldens.normal {
        near(rank::upper_tail(normal.z), normal.upper, 1e-12);
    }
}
