//! Rates of schedules at the steps 0 to 13.

use super::model::{Trained, cases, dtype, listed, near, of_training, tolerance};
use tenon_framework::{Code, DType};
use tenon_graph::GraphBuilder;
use tenon_training::{
    Variables, global_step,
    schedule::{Decay, Schedule},
};

fn schedule(name: &str) -> Schedule {
    let decay =
        |kind, staircase| Schedule::Decay { kind, rate: 0.1, steps: 4.0, decay: 0.5, staircase };
    match name {
        "exponential" => Schedule::exponential(0.1, 4.0, 0.5),
        "exponential_stairs" => decay(Decay::Exponential, true),
        "natural" => decay(Decay::NaturalExponential, false),
        "inverse_time" => decay(Decay::InverseTime, false),
        "inverse_time_stairs" => decay(Decay::InverseTime, true),
        "piecewise" => {
            Schedule::Piecewise { boundaries: vec![3, 7], values: vec![0.1, 0.01, 0.001] }
        }
        "polynomial" => {
            Schedule::Polynomial { rate: 0.1, steps: 8.0, end: 0.01, power: 2.0, cycle: false }
        }
        "polynomial_cycle" => {
            Schedule::Polynomial { rate: 0.1, steps: 5.0, end: 0.01, power: 1.0, cycle: true }
        }
        "cosine" => Schedule::Cosine { rate: 0.1, steps: 10.0, alpha: 0.125 },
        "restarts" => {
            Schedule::CosineRestarts { rate: 0.1, steps: 3.0, t_mul: 2.0, m_mul: 0.5, alpha: 0.125 }
        }
        "restarts_equal" => {
            Schedule::CosineRestarts { rate: 0.1, steps: 5.0, t_mul: 1.0, m_mul: 0.5, alpha: 0.0 }
        }
        "warmup" => {
            let cosine = Schedule::Cosine { rate: 0.5, steps: 8.0, alpha: 0.125 };
            cosine.after_warmup(0.0, 0.5, 4.0)
        }
        other => panic!("a schedule that is not known: {other}"),
    }
}

#[test]
fn rates_are_tensorflows() {
    let (runtime, cases) = (of_training(), cases("schedules"));
    assert_eq!(cases.len(), 19);
    for case in &cases {
        let (name, dtype) = (case["name"].as_str().unwrap(), dtype(case));
        let trained = Trained::new(&runtime, |b, variables| {
            let step = global_step(b, variables)?;
            schedule(name).build(b, "rate", &step, dtype)?;
            let one = b.constant("one", tenon_framework::Tensor::scalar(1i64)?)?;
            b.op("AssignAddVariableOp").name("next").input(step.handle).input(one).build()?;
            Ok(())
        });
        let rates = (0..14).map(|_| {
            let rate = trained.run(&[], &["rate"], &[])[0][0];
            trained.run(&[], &[], &["next"]);
            rate
        });
        let (rates, expected) = (rates.collect::<Vec<_>>(), listed(&case["rates"]));
        near(&format!("{name}, {dtype}"), &rates, &expected, tolerance(dtype));
    }
}

#[test]
fn a_constant_stays() {
    let trained = Trained::new(&of_training(), |b, variables| {
        let step = global_step(b, variables)?;
        Schedule::Constant(0.25).build(b, "rate", &step, DType::FLOAT)?;
        Ok(())
    });
    assert_eq!(trained.run(&[], &["rate"], &[]), [[0.25]]);
}

#[test]
fn what_is_no_schedule_is_named() {
    let registry = of_training().registry();
    let (mut b, mut all) = (GraphBuilder::new(&registry), Variables::new());
    let step = global_step(&mut b, &mut all).unwrap();
    let mut refused = |schedule: Schedule, expected: &str| {
        let error = schedule.build(&mut b, "rate", &step, DType::FLOAT).unwrap_err();
        assert_eq!((error.code(), error.to_string().as_str()), (Code::INVALID_ARGUMENT, expected));
    };
    let of = |boundaries: &[i64], values: &[f64]| Schedule::Piecewise {
        boundaries: boundaries.to_vec(),
        values: values.to_vec(),
    };
    refused(
        of(&[3, 3], &[1.0, 2.0, 3.0]),
        "the boundaries of a schedule: expected ascending steps, found [3, 3]",
    );
    refused(
        of(&[3, 4], &[1.0, 2.0]),
        "the number of values of a schedule: expected 3, one more than boundaries, found 2",
    );
    let nothing = "the steps of a schedule: expected a positive number, found 0";
    refused(Schedule::cosine(0.1, 0.0), nothing);
    refused(Schedule::linear(0.1, 0.0, 0.0).after_warmup(0.0, 0.1, 2.0), nothing);
    let restarts =
        Schedule::CosineRestarts { rate: 0.1, steps: 3.0, t_mul: 0.5, m_mul: 1.0, alpha: 0.0 };
    refused(restarts, "t_mul of a schedule: expected at least 1, found 0.5");
}
