//! Moving averages over ten steps.

use super::model::{STEPS, Trained, cases, dtype, model, of_training, tolerance};
use std::collections::BTreeMap;
use tenon_framework::{DType, Shape};
use tenon_training::{
    Averaged, ExponentialMovingAverage, global_step,
    optimizer::{GradientDescent, MinimizeOptions, Optimizer},
};

#[test]
fn averages_are_tensorflows() {
    let (runtime, cases) = (of_training(), cases("averages"));
    assert_eq!(cases.len(), 6);
    for case in &cases {
        let (name, dtype) = (case["name"].as_str().unwrap(), dtype(case));
        let mut average = ExponentialMovingAverage::new(0.75);
        let trained = Trained::new(&runtime, |b, variables| {
            let loss = model(b, variables, "dense", dtype)?;
            let of = variables.trainable().cloned().map(Averaged::Variable);
            let mut of: Vec<Averaged> = of.collect();
            of.push(Averaged::Tensor(loss, Shape::new(&[])?));
            let step = global_step(b, variables)?;
            average.zero_debias = name == "debiased";
            average.num_updates = (name == "with_updates").then(|| step.clone());
            let options = MinimizeOptions { global_step: Some(step), ..MinimizeOptions::default() };
            let train = GradientDescent::new(0.1).minimize(b, variables, loss, &options)?;
            let averaged = average.apply(b, variables, &of, &[train])?;
            b.op("NoOp").name("train").control(averaged).build()?;
            Ok(())
        });
        for _ in 0..STEPS {
            trained.run(&[], &[], &["train"]);
        }
        let what = format!("{name}, {dtype}");
        trained.check_names(&what, &case["variables"]);
        trained.check(&what, &case["variables"], tolerance(dtype));
        let expected: BTreeMap<String, String> = case["restore"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, variable)| (name.clone(), variable.as_str().unwrap().to_owned()))
            .collect();
        let found = average.variables_to_restore(&trained.variables);
        let found: BTreeMap<String, String> =
            found.into_iter().map(|(name, variable)| (name, variable.name)).collect();
        assert_eq!(found, expected, "{what}");
    }
}

#[test]
fn an_average_of_integers_is_refused() {
    let registry = of_training().registry();
    let mut b = tenon_graph::GraphBuilder::new(&registry);
    let mut variables = tenon_training::Variables::new();
    let step = global_step(&mut b, &mut variables).unwrap();
    let average = ExponentialMovingAverage::new(0.5);
    let error = average.apply(&mut b, &mut variables, &[Averaged::Variable(step)], &[]);
    assert_eq!(
        error.unwrap_err().to_string(),
        format!(
            "the type of 'global_step', which is averaged: expected half, bfloat16, float or double, found {}",
            DType::INT64
        )
    );
}
