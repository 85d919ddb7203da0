//! Ten steps with each optimiser, of tensors and of slices.

use super::model::{
    STEPS, Trained, cases, dtype, ids, listed, model, near, of_training, tolerance,
};
use tenon_framework::{Code, DType};
use tenon_graph::GraphBuilder;
use tenon_runtime::framework::registry::Registry;
use tenon_training::{
    Initial, TrainError, Variable, Variables, global_step,
    optimizer::{
        Adadelta, Adagrad, Adam, AdamW, Adamax, DecoupledWeightDecay, Ftrl, Gate, GradientDescent,
        MinimizeOptions, Momentum, Optimizer, RmsProp, compute_gradients, weight_decay_loss,
    },
    schedule::Schedule,
};

/// The optimiser of a case of `generate.py`.
fn optimizer(
    b: &mut GraphBuilder<'_>,
    name: &str,
    step: &Variable,
    dtype: DType,
) -> Result<Box<dyn Optimizer>, TrainError> {
    let ftrl = || Ftrl { initial_accumulator_value: 0.125, ..Ftrl::new(0.125) };
    let rms = |epsilon, centered| {
        let rms = RmsProp::new(0.01);
        Box::new(RmsProp { decay: 0.9, momentum: 0.5, epsilon, centered, ..rms })
    };
    let epsilon = (-20f64).exp2();
    let adam = |amsgrad| {
        let adam = Adam::new(0.0078125);
        Box::new(Adam { beta1: 0.875, beta2: 0.96875, epsilon, amsgrad, ..adam })
    };
    Ok(match name {
        "gradient_descent" => Box::new(GradientDescent::new(0.1)),
        "momentum" => Box::new(Momentum::new(0.1)),
        "nesterov" => Box::new(Momentum { use_nesterov: true, ..Momentum::new(0.1) }),
        "adagrad" => Box::new(Adagrad::new(0.1)),
        "rms_prop" => rms(1e-10, false),
        "rms_prop_centered" => rms(1e-5, true),
        "adam" => Box::new(Adam::new(0.01)),
        "adadelta" => Box::new(Adadelta { epsilon: 1e-6, ..Adadelta::new(1.0) }),
        "ftrl" => Box::new(Ftrl {
            l1_regularization_strength: 0.0078125,
            l2_regularization_strength: 0.015625,
            ..ftrl()
        }),
        "ftrl_power" => Box::new(Ftrl { learning_rate_power: -0.25, ..ftrl() }),
        "ftrl_shrinkage" => {
            Box::new(Ftrl { l2_shrinkage_regularization_strength: 0.0625, ..ftrl() })
        }
        "ftrl_beta" => Box::new(Ftrl { beta: 0.25, ..ftrl() }),
        "scheduled" => {
            let rate = Schedule::exponential(0.1, 3.0, 0.5).build(b, "rate", step, dtype)?;
            Box::new(Momentum::new(rate))
        }
        "keras_sgd" => Box::new(GradientDescent::new(0.125)),
        "keras_nesterov" => {
            Box::new(Momentum { momentum: 0.875, use_nesterov: true, ..Momentum::new(0.125) })
        }
        "keras_adam" => adam(false),
        "keras_amsgrad" => adam(true),
        "keras_adamw" => Box::new(AdamW {
            weight_decay: 0.0625,
            beta1: 0.875,
            beta2: 0.96875,
            epsilon,
            ..AdamW::new(0.0078125)
        }),
        "keras_adamax" => {
            let adamax = Adamax::new(0.0078125);
            Box::new(Adamax { beta1: 0.875, beta2: 0.96875, epsilon, ..adamax })
        }
        other => panic!("an optimiser that is not known: {other}"),
    })
}

#[test]
fn optimizers_train_as_tensorflows() {
    let (runtime, cases) = (of_training(), cases("optimizers"));
    assert_eq!(cases.len(), 74);
    for case in &cases {
        let (name, kind) = (case["name"].as_str().unwrap(), case["model"].as_str().unwrap());
        let dtype = dtype(case);
        let what = format!("{name}, {kind}, {dtype}");
        let trained = Trained::new(&runtime, |b, variables| {
            let loss = model(b, variables, kind, dtype)?;
            let step = global_step(b, variables)?;
            let optimizer = optimizer(b, name, &step, dtype)?;
            let options = MinimizeOptions { global_step: Some(step), ..MinimizeOptions::default() };
            let train = optimizer.minimize(b, variables, loss, &options)?;
            b.op("NoOp").name("train").control(train).build()?;
            Ok(())
        });
        let losses = (0..STEPS).map(|at| {
            let loss = trained.run(&[("ids", ids(at))], &["loss"], &[])[0][0];
            trained.run(&[("ids", ids(at))], &[], &["train"]);
            loss
        });
        near(&what, &losses.collect::<Vec<_>>(), &listed(&case["losses"]), tolerance(dtype));
        trained.check(&what, &case["variables"], tolerance(dtype));
        if !name.starts_with("keras") {
            trained.check_names(&what, &case["variables"]);
        }
        assert_eq!(trained.value("global_step"), [STEPS as f64]);
    }
}

fn registry() -> std::sync::Arc<Registry> {
    of_training().registry()
}

#[test]
fn what_cannot_be_optimised_is_named() {
    let registry = registry();
    let (mut b, mut all) = (GraphBuilder::new(&registry), Variables::new());
    let empty = MinimizeOptions::default();
    let alone = b.constant("alone", tenon_framework::Tensor::scalar(1f32).unwrap()).unwrap();
    let check = |error: TrainError, expected: &str| {
        assert_eq!((error.code(), error.to_string().as_str()), (Code::INVALID_ARGUMENT, expected));
    };
    let error = compute_gradients(&mut b, &all, alone, &empty).unwrap_err();
    check(
        error,
        "what to optimise: expected at least one variable, found none; add one, or name variables in the options",
    );
    let w = all.add(&mut b, "w", DType::FLOAT, &[2], &Initial::Ones).unwrap();
    let error = Adam::new(0.1).minimize(&mut b, &mut all, alone, &empty).unwrap_err();
    check(
        error,
        "gradients: expected at least one, found none for any of [\"w\"]; check that the loss depends on them",
    );
    let double = b.constant("double", tenon_framework::Tensor::scalar(1f64).unwrap()).unwrap();
    let given = [(Some(tenon_gradient::Gradient::Dense(double)), w)];
    let error = Momentum::new(0.1).apply(&mut b, &mut all, &given, None).unwrap_err();
    check(
        error,
        "the gradient of variable 'w': expected float, the type of the variable, found double",
    );
    let ftrl = Ftrl { learning_rate_power: 0.5, ..Ftrl::new(0.1) };
    let error = ftrl.apply(&mut b, &mut all, &given, None).unwrap_err();
    check(error, "learning_rate_power of 'Ftrl': expected zero or a negative number, found 0.5");
}

/// As in TensorFlow, an optimiser keeps its slots, and another of the same name has others.
#[test]
fn slots_belong_to_an_optimiser() {
    let registry = registry();
    let (mut b, mut all) = (GraphBuilder::new(&registry), Variables::new());
    let loss = model(&mut b, &mut all, "dense", DType::FLOAT).unwrap();
    let first = Adam::new(0.1);
    let options = MinimizeOptions::default();
    let mut train = |optimizer: &Adam| {
        optimizer.minimize(&mut b, &mut all, loss, &options).unwrap();
        all.all().len()
    };
    assert_eq!([train(&first), train(&first.clone()), train(&Adam::new(0.1))], [8, 8, 14]);
    for name in ["w/Adam_1", "w/Adam_2", "w/Adam_3", "beta1_power_1"] {
        assert!(all.find(name).is_some_and(|slot| !slot.is_trainable), "{name}");
    }
}

/// All gradients are computed before the first update, whichever gate and decay there are.
#[test]
fn a_gate_over_the_graph_and_a_decay_give_the_same_step() {
    let runtime = of_training();
    let run = |gate, colocate, rate: f64| {
        let trained = Trained::new(&runtime, |b, variables| {
            let loss = model(b, variables, "sparse", DType::DOUBLE)?;
            let optimizer = DecoupledWeightDecay::new(GradientDescent::new(0.5), rate);
            let options = MinimizeOptions { gate, colocate, ..MinimizeOptions::default() };
            let train = optimizer.minimize(b, variables, loss, &options)?;
            b.op("NoOp").name("train").control(train).build()?;
            Ok(())
        });
        trained.run(&[("ids", ids(0))], &[], &["train"]);
        [trained.value("e"), trained.value("v")].concat()
    };
    let plain = run(Gate::None, false, 0.0);
    assert_eq!(run(Gate::Graph, true, 0.0), plain);
    assert_eq!(run(Gate::Op, true, 0.0), plain);
    // Row 2 of `e` has no gradient: it only loses a quarter of a half.
    let decayed = run(Gate::Graph, false, 0.25);
    assert_eq!((&plain[4..6], &decayed[4..6]), (&[-0.5, 0.25][..], &[-0.4375, 0.21875][..]));
}

/// Half the sum of squares times 0.5 has the gradient 0.5 w.
#[test]
fn a_decay_in_the_loss_draws_to_zero() {
    let runtime = of_training();
    let trained = Trained::new(&runtime, |b, variables| {
        let w = variables.add(b, "w", DType::FLOAT, &[2], &Initial::Filled(4.0))?;
        let loss = weight_decay_loss(b, 0.5, &[w])?;
        let options = MinimizeOptions::default();
        let train = GradientDescent::new(0.5).minimize(b, variables, loss, &options)?;
        b.op("NoOp").name("train").control(train).build()?;
        Ok(())
    });
    assert_eq!(trained.run(&[], &["weight_decay"], &[]), [[8.0]]);
    trained.run(&[], &[], &["train"]);
    assert_eq!(trained.value("w"), [3.0, 3.0]);
}
