//! Comparison of made-up records.

use super::*;
use crate::{
    record::{
        Around, Case, CostSource, Input, Machine, Report, Run, Summary, Timing, Verdict, Work,
        testing::{self, variant},
    },
    stats::{describe::summary, random::Random},
};

/// `processes` times `rounds` samples about `level`, with a tenth of a per cent of noise and 1 % between processes.
fn samples(level: f64, processes: u32, rounds: u32, seed: u64) -> Samples {
    let mut random = Random::new(seed);
    let (mut ns, mut round_of, mut process_of) = (Vec::new(), Vec::new(), Vec::new());
    for process in 0..processes {
        let own = level * (1.0 + if processes > 1 { 0.01 * random.normal() } else { 0.0 });
        for round in 0..rounds {
            ns.push(own * (1.0 + 0.001 * random.normal().abs()));
            round_of.push(round);
            process_of.push(process);
        }
    }
    let summary = summary(&ns, &process_of, seed, true);
    Samples { ns, rounds: round_of, processes: process_of, batch: 10, summary, around: None }
}

fn record(label: &str, at: i64, kernel: Samples) -> Record {
    let dims = vec![at, at];
    let input = Input { name: "x".into(), dtype: "float".into(), dims, constant: false };
    let case = Case {
        op: "Square".into(),
        attrs: [].into(),
        inputs: vec![input],
        at: Some(at),
        node: None,
        calls: 1,
    };
    let Summary { median, min, max, .. } = kernel.summary;
    Record {
        bench: "Square".into(),
        peer: format!("tenon-cpu {label}"),
        version: "0.1.0".into(),
        size: format!("x={at}x{at}"),
        threads: 1,
        cold: false,
        counters: None,
        median_ns: median,
        min_ns: min,
        max_ns: max,
        samples: kernel.ns.len() as u32,
        rate: 1.0,
        best_rate: 1.0,
        unit: "GB/s".into(),
        cpu: "A CPU".into(),
        case,
        variant: variant(label),
        timing: Timing::Kernel,
        kernel,
        dispatch: None,
        work: Work { flops: None, read: 4.0, written: 4.0, source: CostSource::Op },
        reached: None,
        checked: None,
        sampled: None,
        profile: None,
    }
}

fn report(records: Vec<Record>, processes: u32) -> Report {
    let run = Run {
        processes,
        machine: Machine::default(),
        noise_floor: noise_floor(&records),
        command: Vec::new(),
        plugins: Vec::new(),
        ..testing::run()
    };
    let (comparisons, crossovers, problems) = (Vec::new(), Vec::new(), Vec::new());
    Report { run, records, comparisons, crossovers, problems }
}

#[test]
fn variants_are_compared_with_the_chosen_one_or_a_label() {
    let records = vec![
        record("", 64, samples(100.0, 1, 60, 1)),
        record("fast", 64, samples(50.0, 1, 60, 2)),
        record("same", 64, samples(100.5, 1, 60, 3)),
    ];
    let found = side_by_side(&records, &Against::Chosen, None, 1);
    assert_eq!(
        found.iter().map(|c| (c.record, c.base)).collect::<Vec<_>>(),
        [(1, Some(0)), (2, Some(0))]
    );
    assert_eq!((found[0].verdict, found[1].verdict), (Verdict::Faster, Verdict::Same));
    assert!((found[0].speedup - 2.0).abs() < 0.01 && found[0].against == "ordinary", "{found:?}");
    // A half per cent shows in the interval, and is below the threshold.
    assert!(found[1].interval[1] < 1.0);
    let by_label = side_by_side(&records, &Against::Label("fast".into()), None, 1);
    assert_eq!(by_label[0].verdict, Verdict::Slower);
    assert!(side_by_side(&records, &Against::Label("none".into()), None, 1).is_empty());
}

#[test]
fn a_noisy_variant_does_not_hide_the_difference_of_two_others() {
    // Every second round of it takes four times as long, as of a simulated device.
    let mut restless = samples(1000.0, 1, 60, 4);
    restless.ns.iter_mut().skip(1).step_by(2).for_each(|ns| *ns *= 4.0);
    let records = vec![
        record("", 64, samples(100.0, 1, 60, 1)),
        record("slower", 64, samples(115.0, 1, 60, 2)),
        record("restless", 64, restless),
    ];
    let found = side_by_side(&records, &Against::Chosen, None, 1);
    assert_eq!((found[0].verdict, found[0].threshold), (Verdict::Slower, LEAST_BETWEEN_VARIANTS));
    assert!((2.9..3.1).contains(&found[1].threshold), "{found:?}");
    let wanted = side_by_side(&records, &Against::Chosen, Some(0.3), 1);
    assert_eq!((wanted[0].verdict, wanted[0].threshold), (Verdict::Same, 0.3));
    // The same between runs.
    let earlier = report(records, 1);
    let now = report(vec![record("", 64, samples(115.0, 1, 60, 5))], 1);
    let found = against_baseline(&now, &earlier, None);
    assert_eq!(found.comparisons[0].threshold, LEAST_BETWEEN_RUNS);
}

#[test]
fn the_point_where_one_overtakes_the_other_is_found() {
    // `wide` costs 40 more and gains from 96 on.
    let at = |n: i64, seed: u64| {
        let level = n as f64;
        let wide = 40.0 + 0.5 * level;
        [
            record("", n, samples(level, 1, 60, seed)),
            record("wide", n, samples(wide, 1, 60, seed + 50)),
        ]
    };
    let records: Vec<Record> =
        [32, 64, 80, 96, 128].into_iter().flat_map(|n| at(n, n as u64)).collect();
    let comparisons = side_by_side(&records, &Against::Chosen, None, 1);
    let found = crossovers(&records, &comparisons);
    assert_eq!(found.len(), 1);
    // At 80 both are equal.
    assert_eq!(
        (found[0].above.as_str(), found[0].after, found[0].from),
        ("wide", Some(64), Some(96))
    );
    let always: Vec<Record> = [200, 400].into_iter().flat_map(|n| at(n, n as u64)).collect();
    let comparisons = side_by_side(&always, &Against::Chosen, None, 1);
    let found = crossovers(&always, &comparisons);
    assert_eq!((found[0].above.as_str(), found[0].after, found[0].from), ("wide", None, Some(200)));
}

#[test]
fn a_slower_kernel_is_a_regression_and_the_same_one_is_not() {
    let earlier = report(
        vec![record("", 64, samples(100.0, 9, 40, 1)), record("b", 64, samples(70.0, 9, 40, 2))],
        9,
    );
    let now = report(
        vec![record("", 64, samples(115.0, 9, 40, 3)), record("b", 64, samples(70.0, 9, 40, 4))],
        9,
    );
    let found = against_baseline(&now, &earlier, None);
    let verdicts: Vec<Verdict> = found.comparisons.iter().map(|c| c.verdict).collect();
    assert_eq!(verdicts, [Verdict::Slower, Verdict::Same]);
    assert_eq!((found.regressions(), found.compared()), (1, 2));
    assert!(found.comparisons[0].p.unwrap() < 0.001 && found.notes.is_empty());
    let back = against_baseline(&earlier, &now, None);
    assert_eq!(back.comparisons[0].verdict, Verdict::Faster);
}

#[test]
fn a_change_within_the_threshold_is_none_however_certain() {
    let earlier = report(vec![record("", 64, samples(100.0, 9, 40, 1))], 9);
    let now = report(vec![record("", 64, samples(104.0, 9, 40, 3))], 9);
    let found = against_baseline(&now, &earlier, None);
    assert!(found.comparisons[0].p.unwrap() < 0.01, "{found:?}");
    assert_eq!(found.comparisons[0].verdict, Verdict::Same);
    let strict = against_baseline(&now, &earlier, Some(0.0));
    // What processes differ by is the least threshold, also where the user wants none.
    assert!(strict.comparisons[0].threshold > 0.0);
}

#[test]
fn what_cannot_be_compared_says_why() {
    let earlier = report(
        vec![record("", 64, samples(100.0, 1, 40, 1)), record("", 99, samples(1.0, 1, 40, 1))],
        1,
    );
    let mut elsewhere = record("", 64, samples(100.0, 1, 40, 2));
    elsewhere.cpu = "Another".into();
    let mut threads = record("", 64, samples(100.0, 1, 40, 2));
    threads.threads = 2;
    let now = report(vec![elsewhere, threads, record("new", 64, samples(1.0, 1, 40, 1))], 1);
    let found = against_baseline(&now, &earlier, None);
    let notes: Vec<&str> = found.comparisons.iter().map(|c| c.note.as_deref().unwrap()).collect();
    assert_eq!(notes[0], "the CPU was A CPU, is Another");
    assert_eq!(notes[1], "the number of threads was 1, is 2");
    assert_eq!(notes[2], "is not in the earlier run");
    assert_eq!((found.compared(), found.missing.len()), (0, 1));
    assert!(found.missing[0].contains("x=99x99") && found.notes[0].contains("--processes 9"));
}

fn around(others: f64, waited: f64) -> Option<Around> {
    Some(Around { others, waited, stolen: 0.0 })
}

/// The records of one kernel that takes 100 in a quiet run and `now` in the next one, beside such work of others.
fn runs(now: f64, beside: Option<Around>) -> [Report; 2] {
    [(100.0, around(0.0, 0.0), 1), (now, beside, 3)].map(|(level, around, seed)| {
        let kernel = Samples { around, ..samples(level, 1, 60, seed) };
        let mut made = report(vec![record("", 64, kernel)], 1);
        made.run.machine.cores = 2;
        made
    })
}

/// A baseline comparison called a busy machine a regression.
#[test]
fn what_a_busy_machine_explains_is_not_judged() {
    let verdict = |now: f64, beside| {
        let [earlier, now] = runs(now, beside);
        let found = against_baseline(&now, &earlier, None);
        (found.comparisons[0].verdict, found)
    };
    for beside in [around(1.3, 0.0), around(0.0, 0.4)] {
        let (found, baseline) = verdict(140.0, beside);
        assert_eq!((found, baseline.regressions(), baseline.compared()), (Verdict::Busy, 0, 0));
    }
    let (_, baseline) = verdict(140.0, around(1.3, 0.0));
    let note = baseline.comparisons[0].note.clone().unwrap();
    assert!(note.starts_with("not judged, the machine was busy in this run: 1.40x slower than"));
    assert!(note.ends_with("but other processes used 1.3 processors meanwhile"), "{note}");
    // Three times as long is more than sharing explains, and a quiet machine explains nothing.
    assert_eq!(verdict(300.0, around(1.3, 0.0)).0, Verdict::Slower);
    assert_eq!(verdict(140.0, around(0.1, 0.02)).0, Verdict::Slower);
    assert_eq!(verdict(101.0, around(1.3, 0.0)).0, Verdict::Same);
}

#[test]
fn a_busy_baseline_makes_nothing_faster() {
    let [quiet, busy] = runs(140.0, around(1.3, 0.0));
    let found = against_baseline(&quiet, &busy, None);
    assert_eq!((found.comparisons[0].verdict, found.compared()), (Verdict::Busy, 0));
    assert!(found.comparisons[0].note.as_ref().unwrap().contains("busy in the earlier run"));
    let found = against_record(&quiet, &busy, None);
    assert_eq!(found[0].verdict, Verdict::Busy);
    // As busy as before, it is as it was before.
    let [_, earlier] = runs(100.0, around(1.3, 0.0));
    let [_, now] = runs(140.0, around(1.3, 0.0));
    assert_eq!(against_baseline(&now, &earlier, None).regressions(), 1);
}

/// Records of before do not say what else was done: there the fastest samples decide.
#[test]
fn samples_that_are_as_fast_as_before_are_no_regression() {
    let kernel = |seed: u64, late: usize| {
        let mut kernel = samples(100.0, 1, 60, seed);
        kernel.ns.iter_mut().skip(60 - late).for_each(|ns| *ns *= 1.5);
        kernel.summary = summary(&kernel.ns, &kernel.processes, seed, true);
        kernel
    };
    let earlier = report(vec![record("", 64, kernel(1, 0))], 1);
    let against = |late: usize| {
        let now = report(vec![record("", 64, kernel(2, late))], 1);
        against_baseline(&now, &earlier, None).comparisons[0].verdict
    };
    assert_eq!((against(50), against(60)), (Verdict::Busy, Verdict::Slower));
}

#[test]
fn a_record_of_another_run_stands_for_a_variant() {
    let earlier = report(vec![record("", 64, samples(100.0, 1, 40, 1))], 1);
    let now = report(
        vec![record("mine", 64, samples(50.0, 1, 40, 2)), record("", 65, samples(1.0, 1, 40, 1))],
        1,
    );
    let found = against_record(&now, &earlier, None);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].record, found[0].verdict), (0, Verdict::Faster));
}

#[test]
fn false_alarms_over_many_records_are_rare() {
    // 80 pairs of runs of 4 records each, in which nothing changed.
    let runs = |seed: u64| {
        let each = |at: u64| record("", at as i64, samples(100.0, 9, 8, 1000 * seed + at));
        report((1..=4).map(each).collect(), 9)
    };
    let alarms = (0..80u64)
        .filter(|&pair| {
            against_baseline(&runs(2 * pair), &runs(2 * pair + 1), None).regressions() > 0
        })
        .count();
    assert!(alarms <= 1, "{alarms} of 80");
}

#[test]
fn the_noise_floor_is_what_halves_of_a_run_differ_by() {
    let floor = noise_floor(&[record("", 1, samples(100.0, 8, 20, 1))]).unwrap();
    assert!((0.0001..0.03).contains(&floor), "{floor}");
    let within = noise_floor(&[record("", 1, samples(100.0, 1, 20, 1))]).unwrap();
    assert!(within < floor, "{within} {floor}");
    assert_eq!(noise_floor(&[]), None);
}

#[test]
fn names_are_as_short_as_tells_variants_apart() {
    let (plain, fast) = (variant(""), variant("fast"));
    assert_eq!(short_names(&[&plain, &fast]), ["ordinary", "fast"]);
    let rebuilt = Variant { digest: "fedcba9876".into(), ..plain.clone() };
    assert_eq!(
        short_names(&[&plain, &rebuilt]),
        ["ordinary of tenon-cpu abcdef", "ordinary of tenon-cpu fedcba"]
    );
    let other = Variant { plugin: "mine".into(), ..plain.clone() };
    assert_eq!(short_names(&[&plain, &other]), ["ordinary of tenon-cpu", "ordinary of mine"]);
    let elsewhere = Variant { device: "ACCEL".into(), ..other };
    assert_eq!(short_names(&[&plain, &elsewhere]), ["ordinary on CPU", "ordinary on ACCEL"]);
}
