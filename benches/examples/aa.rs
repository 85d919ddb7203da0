//! The A/A experiment: how often a comparison finds a difference where there is none, and where there is one.
//!
//! In each trial the same kernel is measured twice, by criterion in two runs, one after the other, as its comparison
//! works, and by benchkit side by side and in two runs, with the same time for each. Trials of the methods take turns,
//! so that all meet the same noise. With `--shift PERCENT` the second kernel has so much more to do.
//!
//!     cargo run --release -p tenon-benches --example aa -- --trials 100 [--shift 5] [--hog] [--seconds 0.4]
//!
//! Prints a JSON line per method: trials, alarms (differences found), the median and the 95th percentile of what
//! it takes the ratio for. `--hog` adds a thread that takes the processor away in bursts.

use criterion::Criterion;
use std::{
    fs,
    hint::spin_loop,
    path::Path,
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};
use tenon_benches::{Failure, add_instance, environment, filled, runtime};
use tenon_benchkit::{
    sampler::{Plan, Subject, interleave},
    stats::{
        describe::{quantile, sorted},
        lehmann::{Ratio, blocks, paired, unpaired},
        random::Random,
        rank::mann_whitney,
    },
};
use tenon_runtime::host::instance::PreparedCall;

/// Elements of the kernel, an addition of floats.
const ELEMENTS: usize = 4000;
/// What criterion takes for noise: its default.
const CRITERION_NOISE: f64 = 0.01;

#[derive(Clone, Copy)]
struct Setup {
    trials: usize,
    shift: f64,
    seconds: f64,
    hog: bool,
}

impl Setup {
    fn of_process() -> Result<Setup, Failure> {
        let mut setup = Setup { trials: 0, shift: 0.0, seconds: 0.4, hog: false };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut number = || -> Result<f64, Failure> {
                Ok(words.next().ok_or(format!("{word} takes a number"))?.parse()?)
            };
            match word.as_str() {
                "--trials" => setup.trials = number()? as usize,
                "--shift" => setup.shift = number()? / 100.0,
                "--seconds" => setup.seconds = number()?,
                "--hog" => setup.hog = true,
                _ => {
                    return Err(
                        format!("{word}: expected --trials, --shift, --seconds or --hog").into()
                    );
                }
            }
        }
        if setup.trials == 0 { Err("give --trials N".into()) } else { Ok(setup) }
    }

    fn elements(self, second: bool) -> usize {
        if second { (ELEMENTS as f64 * (1.0 + self.shift)) as usize } else { ELEMENTS }
    }

    fn plan(self, seed: u64) -> Plan {
        Plan {
            budget: Duration::from_secs_f64(self.seconds),
            precision: 0.0,
            seed,
            ..Plan::default()
        }
    }
}

/// Samples of kernels over so many elements, taken turn by turn.
fn sample(elements: &[usize], plan: &Plan) -> Result<Vec<Vec<f64>>, Failure> {
    let runtime = runtime()?;
    let instance = add_instance(&runtime)?;
    let env = environment(&runtime);
    let mut calls = Vec::new();
    for &count in elements {
        let x = filled(&[count as i64], |at| at as f32);
        let mut call = PreparedCall::new(&instance, &[x.clone(), x], &env)?;
        call.run()?;
        calls.push(call);
    }
    let mut runs: Vec<_> = calls
        .iter_mut()
        .map(|call| |calls: u64| call.repeat(calls).map_err(|error| error.to_string()))
        .collect();
    let mut subjects: Vec<&mut dyn Subject> = runs.iter_mut().map(|run| run as _).collect();
    let series = interleave(&mut subjects, plan, &mut |_| {}).map_err(|failed| failed.message)?;
    Ok(series.into_iter().map(|series| series.ns).collect())
}

/// One run of criterion, in this process: it reads and writes `CRITERION_HOME`, and prints its verdict.
fn criterion_run(elements: usize, seconds: f64) -> Result<(), Failure> {
    let runtime = runtime()?;
    let instance = add_instance(&runtime)?;
    let env = environment(&runtime);
    let x = filled(&[elements as i64], |at| at as f32);
    let mut call = PreparedCall::new(&instance, &[x.clone(), x], &env)?;
    call.run()?;
    // As benchkit: warming up is part of the time.
    let mut criterion = Criterion::default()
        .without_plots()
        .warm_up_time(Duration::from_secs_f64(0.2 * seconds))
        .measurement_time(Duration::from_secs_f64(0.8 * seconds));
    criterion.bench_function("aa", |b| {
        b.iter_custom(|calls| {
            let began = Instant::now();
            assert!(call.repeat(calls).is_ok(), "the kernel does not fail");
            began.elapsed()
        });
    });
    Ok(())
}

/// What a method says of one trial.
struct Said {
    alarm: bool,
    ratio: f64,
}

fn child(words: &[String], home: &Path) -> Result<String, Failure> {
    let output =
        Command::new(std::env::current_exe()?).args(words).env("CRITERION_HOME", home).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Two runs of criterion; the second compares.
fn criterion(setup: Setup, home: &Path) -> Result<Said, Failure> {
    let run = |second: bool| {
        let words =
            ["criterion-run", &setup.elements(second).to_string(), &setup.seconds.to_string()];
        child(&words.map(str::to_owned), home)
    };
    run(false)?;
    let said = run(true)?;
    let change = home.join("aa/change/estimates.json");
    let change: serde_json::Value = serde_json::from_str(&fs::read_to_string(change)?)?;
    let mean = change["mean"]["point_estimate"].as_f64().ok_or("criterion gives no change")?;
    fs::remove_dir_all(home)?;
    let alarm = said.contains("has regressed") || said.contains("has improved");
    Ok(Said { alarm, ratio: 1.0 + mean })
}

/// Two runs of benchkit, compared as `--baseline` does with one process each, but at criterion's threshold.
fn two_runs(setup: Setup, seed: u64, home: &Path) -> Result<Said, Failure> {
    let run = |second: bool| -> Result<Vec<f64>, Failure> {
        let words = [
            "benchkit-run".to_owned(),
            setup.elements(second).to_string(),
            setup.seconds.to_string(),
            (2 * seed + u64::from(second)).to_string(),
        ];
        Ok(serde_json::from_str(&child(&words, home)?)?)
    };
    let (first, second) = (blocks(&run(false)?, 20), blocks(&run(true)?, 20));
    let ratio = unpaired(&second, &first, seed).ok_or("no samples")?;
    let test = mann_whitney(&second, &first).ok_or("no samples")?;
    let large = ratio.ratio.ln().abs() > CRITERION_NOISE.ln_1p();
    Ok(Said { alarm: test.p < 0.05 && large, ratio: ratio.ratio })
}

/// One run of benchkit with both side by side.
fn side_by_side(setup: Setup, seed: u64) -> Result<Ratio, Failure> {
    let samples = sample(&[setup.elements(false), setup.elements(true)], &setup.plan(seed))?;
    Ok(paired(&samples[1], &samples[0], seed).ok_or("no samples")?)
}

fn line(peer: &str, setup: Setup, said: &[Said]) {
    let sizes: Vec<f64> = said.iter().map(|said| said.ratio.ln().abs().exp_m1()).collect();
    let sizes = sorted(&sizes);
    println!(
        "{{\"bench\":\"aa\",\"peer\":\"{peer}\",\"size\":\"Add {ELEMENTS}\",\"threads\":1,\"shift\":{},\"hog\":{},\
         \"seconds\":{},\"trials\":{},\"alarms\":{},\"median_change\":{:.5},\"p95_change\":{:.5}}}",
        setup.shift,
        setup.hog,
        setup.seconds,
        said.len(),
        said.iter().filter(|said| said.alarm).count(),
        quantile(&sizes, 0.5),
        quantile(&sizes, 0.95),
    );
}

/// Takes the processor away in bursts of up to half a second, until told to stop.
fn hog(over: &AtomicBool) {
    let mut random = Random::new(7);
    while !over.load(Ordering::Relaxed) {
        let burst = |random: &mut Random| Duration::from_millis(random.below(500) as u64);
        thread::sleep(burst(&mut random));
        let end = Instant::now() + burst(&mut random);
        while Instant::now() < end && !over.load(Ordering::Relaxed) {
            spin_loop();
        }
    }
}

fn trials(setup: Setup) -> Result<(), Failure> {
    let home = std::env::temp_dir().join(format!("tenon-aa-{}", std::process::id()));
    let mut said: [Vec<Said>; 4] = Default::default();
    for trial in 0..setup.trials as u64 {
        said[0].push(criterion(setup, &home)?);
        let ratio = side_by_side(setup, trial)?;
        let alarm = |threshold| Said { alarm: ratio.differs(threshold), ratio: ratio.ratio };
        said[1].push(alarm(CRITERION_NOISE));
        said[2].push(alarm(tenon_benchkit::compare::LEAST_BETWEEN_VARIANTS));
        said[3].push(two_runs(setup, trial, &home)?);
        eprint!("\r{}/{}", trial + 1, setup.trials);
    }
    eprintln!();
    let peers = [
        "criterion 0.8, two runs",
        "benchkit side by side, 1 %",
        "benchkit side by side, 2 % (the default)",
        "benchkit two runs, 1 %",
    ];
    for (peer, said) in peers.into_iter().zip(&said) {
        line(peer, setup, said);
    }
    Ok(())
}

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["criterion-run", elements, seconds] => criterion_run(elements.parse()?, seconds.parse()?),
        ["benchkit-run", elements, seconds, seed] => {
            let setup = Setup { trials: 1, shift: 0.0, seconds: seconds.parse()?, hog: false };
            let samples = sample(&[elements.parse()?], &setup.plan(seed.parse()?))?;
            println!("{}", serde_json::to_string(&samples[0])?);
            Ok(())
        }
        _ => {
            let setup = Setup::of_process()?;
            let over = AtomicBool::new(!setup.hog);
            thread::scope(|scope| {
                scope.spawn(|| hog(&over));
                let done = trials(setup);
                over.store(true, Ordering::Relaxed);
                done
            })
        }
    }
}
