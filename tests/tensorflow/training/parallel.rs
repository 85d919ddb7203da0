//! Towers on two devices against one device, in one step, each alone, and through accumulators.

use super::model::{STEPS, Trained, dense_loss, ids, near, of_training, sparse_loss, variables};
use std::ops::Range;
use tenon_framework::{Code, DType, Shape};
use tenon_graph::{GraphBuilder, Output};
use tenon_runtime::{Runtime, SessionOptions};
use tenon_tests::session::runtime;
use tenon_training::{
    SyncReplicas, Towers, TrainError, Variable, Variables, global_step,
    optimizer::{
        Adam, GradientDescent, MinimizeOptions, Momentum, Optimizer, VariableGradient,
        compute_gradients,
    },
    towers,
};

const CPU: &str = "/device:CPU:0";
const TWO: [&str; 2] = [CPU, "/device:CPU:1"];
const FLOAT: DType = DType::FLOAT;

/// The loss of a model for some of the rows.
fn loss(
    b: &mut GraphBuilder<'_>,
    model: &str,
    made: &[Variable],
    ids: Output,
    rows: Range<usize>,
) -> Result<Output, TrainError> {
    if model == "dense" {
        return dense_loss(b, FLOAT, (made[0].value, made[1].value), rows);
    }
    let range = [rows.start as i64, rows.len() as i64];
    let [begin, size] = range.map(|at| tenon_framework::Tensor::from_slice(&[1], &[at]).unwrap());
    let begin = b.constant("begin", begin)?;
    let size = b.constant("size", size)?;
    let ids = b.op("Slice").input(ids).input(begin).input(size).build()?;
    sparse_loss(b, FLOAT, (&made[0], &made[1]), ids.into(), rows)
}

fn placeholder(b: &mut GraphBuilder<'_>) -> Result<Output, TrainError> {
    Ok(b.placeholder("ids", DType::INT32, Shape::new(&[4])?.into())?)
}

/// Towers for halves of the batch.
fn halves<'r>(
    b: &mut GraphBuilder<'r>,
    all: &mut Variables,
    model: &str,
    devices: &[&str],
) -> Result<Towers, TrainError> {
    let made = b.with_device(CPU, |b| variables(b, all, model, FLOAT))??;
    let ids = placeholder(b)?;
    let options = MinimizeOptions { variables: Some(made.clone()), ..MinimizeOptions::default() };
    towers(b, devices, CPU, |b, _, at| {
        let loss = loss(b, model, &made, ids, at * 2..at * 2 + 2)?;
        Ok((loss, compute_gradients(b, &Variables::new(), loss, &options)?))
    })
}

/// The variables after ten steps on one device.
fn alone(runtime: &Runtime, model: &str, optimizer: &dyn Optimizer) -> (Vec<f64>, Vec<f64>) {
    let trained = Trained::new(runtime, |b, all| {
        let made = variables(b, all, model, FLOAT)?;
        let ids = placeholder(b)?;
        let loss = loss(b, model, &made, ids, 0..4)?;
        let train = optimizer.minimize(b, all, loss, &MinimizeOptions::default())?;
        b.op("NoOp").name("train").control(train).build()?;
        Ok(())
    });
    for at in 0..STEPS {
        trained.run(&[("ids", ids(at))], &[], &["train"]);
    }
    values(&trained)
}

fn values(trained: &Trained) -> (Vec<f64>, Vec<f64>) {
    let names: Vec<&str> = trained.variables.trainable().map(|v| v.name.as_str()).collect();
    (trained.value(names[0]), trained.value(names[1]))
}

#[track_caller]
fn same(found: &(Vec<f64>, Vec<f64>), expected: &(Vec<f64>, Vec<f64>)) {
    near("the first variable", &found.0, &expected.0, 1e-6);
    near("the second variable", &found.1, &expected.1, 1e-6);
}

#[test]
fn towers_in_one_step_train_as_one_device() {
    let runtime = of_training();
    for model in ["dense", "sparse"] {
        let adam = Adam::new(0.01);
        let trained = Trained::new(&runtime, |b, all| {
            // Towers of another model beside these have other names.
            b.op("NoOp").name("tower_1/other").build()?;
            let towers = halves(b, all, model, &TWO)?;
            for (at, tower) in towers.towers.iter().enumerate() {
                let node = b.graph().node(tower.loss.node);
                assert_eq!(node.name, ["tower_0/loss", "tower_1_1/loss"][at]);
                assert_eq!(node.device.to_string(), TWO[at]);
            }
            let step = global_step(b, all)?;
            let (train, loss) = towers.synchronous(b, all, &adam, Some(&step))?;
            b.op("NoOp").name("train").control(train).build()?;
            b.op("Identity").name("loss").input(loss).build()?;
            Ok(())
        });
        let first = trained.run(&[("ids", ids(0))], &["loss"], &[])[0][0];
        for at in 0..STEPS {
            trained.run(&[("ids", ids(at))], &[], &["train"]);
        }
        assert_eq!(trained.value("global_step"), [STEPS as f64]);
        assert!(trained.run(&[("ids", ids(0))], &["loss"], &[])[0][0] < first);
        same(&values(&trained), &alone(&runtime, model, &adam));
    }
}

#[test]
fn a_tower_on_an_accelerator_trains_as_the_cpu() {
    let plugins = ["tenon_cpu", "tenon_data", "tenon_train", "tenon_accel"];
    let runtime = runtime(&plugins, &[]);
    let momentum = Momentum::new(0.1);
    let options = SessionOptions { soft_placement: Some(true), ..SessionOptions::default() };
    let trained = Trained::with(&runtime, options, |b, all| {
        let towers = halves(b, all, "dense", &["/device:ACCEL:0", CPU])?;
        let (train, _) = towers.synchronous(b, all, &momentum, None)?;
        b.op("NoOp").name("train").control(train).build()?;
        Ok(())
    });
    let targets = ["train"];
    let (_, metadata) =
        trained.session.run(&[("ids", ids(0))], &[], &targets, &Default::default()).unwrap();
    let product = metadata.nodes.iter().find(|node| node.name == "tower_0/MatMul").unwrap();
    assert!(product.device.ends_with("ACCEL:0"), "{}", product.device);
    for at in 1..STEPS {
        trained.run(&[("ids", ids(at))], &[], &targets);
    }
    same(&values(&trained), &alone(&runtime, "dense", &momentum));
}

/// Each tower's op is a step by its half of the batch.
#[test]
fn towers_by_themselves_take_steps_in_turn() {
    let runtime = of_training();
    let momentum = Momentum::new(0.1);
    let train = |is_towers: bool| {
        Trained::new(&runtime, |b, all| {
            let ops = if is_towers {
                halves(b, all, "sparse", &TWO)?.asynchronous(b, all, &momentum, None)?
            } else {
                let made = variables(b, all, "sparse", FLOAT)?;
                let ids = placeholder(b)?;
                let mut half = |at: usize| {
                    let scope = format!("half_{at}");
                    let rows = at * 2..at * 2 + 2;
                    let loss =
                        b.with_name_scope(&scope, |b| loss(b, "sparse", &made, ids, rows))?;
                    momentum.minimize(b, all, loss, &MinimizeOptions::default())
                };
                vec![half(0)?, half(1)?]
            };
            for (at, op) in ops.into_iter().enumerate() {
                b.op("NoOp").name(&format!("train_{at}")).control(op).build()?;
            }
            Ok(())
        })
    };
    let (found, expected) = (train(true), train(false));
    // Both share the slots of one optimiser.
    assert_eq!(found.variables.all().len(), 4);
    for trained in [&found, &expected] {
        for at in 0..STEPS {
            trained.run(&[("ids", ids(at))], &[], &[&format!("train_{}", at % 2)]);
        }
    }
    same(&values(&found), &values(&expected));
}

/// Replicas on two threads and a chief on a third one give what one device gives.
#[test]
fn replicas_that_wait_for_each_other_train_as_one_device() {
    let runtime = of_training();
    let momentum = Momentum::new(0.1);
    let trained = Trained::new(&runtime, |b, all| {
        let towers = halves(b, all, "dense", &TWO)?;
        let step = global_step(b, all)?;
        let sync = SyncReplicas { to_aggregate: 2 };
        let made = sync.build(b, all, &momentum, &towers, &step)?;
        assert!(made.local.all().iter().all(|step| all.find(&step.name).is_none()));
        let ops = [made.start, made.chief, made.close, made.train[0], made.train[1]];
        for (name, op) in ["start", "chief", "close", "train_0", "train_1"].iter().zip(ops) {
            b.op("NoOp").name(name).control(op).build()?;
        }
        Ok(())
    });
    trained.run(&[], &[], &["start"]);
    std::thread::scope(|scope| {
        for name in ["train_0", "train_1"] {
            let trained = &trained;
            scope.spawn(move || (0..STEPS).for_each(|_| drop(trained.run(&[], &[], &[name]))));
        }
        (0..STEPS).for_each(|_| drop(trained.run(&[], &[], &["chief"])));
    });
    assert_eq!(trained.value("global_step"), [STEPS as f64]);
    same(&values(&trained), &alone(&runtime, "dense", &momentum));
    trained.run(&[], &[], &["close"]);
    let waiting = trained.session.run(&[], &[], &["train_0"], &Default::default());
    assert_eq!(waiting.unwrap_err().code(), Code::OUT_OF_RANGE);
}

/// The first gradient of an update is enough. The one that a slow replica computed for the step before is dropped, and its
/// next one counts.
#[test]
fn a_slow_replica_is_a_backup() {
    let runtime = of_training();
    let momentum = Momentum::new(0.1);
    let trained = |to_aggregate: Option<i32>| {
        Trained::new(&runtime, |b, all| {
            let towers = halves(b, all, "dense", &TWO)?;
            let Some(to_aggregate) = to_aggregate else {
                let ops = towers.asynchronous(b, all, &momentum, None)?;
                b.op("NoOp").name("train_0").control(ops[0]).build()?;
                b.op("NoOp").name("train_1").control(ops[1]).build()?;
                return Ok(());
            };
            let step = global_step(b, all)?;
            let made = SyncReplicas { to_aggregate }.build(b, all, &momentum, &towers, &step)?;
            let ops = [made.start, made.chief, made.train[0], made.train[1]];
            for (name, op) in ["start", "chief", "train_0", "train_1"].iter().zip(ops) {
                b.op("NoOp").name(name).control(op).build()?;
            }
            Ok(())
        })
    };
    let (found, expected) = (trained(Some(1)), trained(None));
    let update = |name: &str| {
        std::thread::scope(|scope| {
            scope.spawn(|| found.run(&[], &[], &[name]));
            found.run(&[], &[], &["chief"]);
        });
        expected.run(&[], &[], &[name]);
        same(&values(&found), &values(&expected));
    };
    found.run(&[], &[], &["start"]);
    update("train_0");
    // Its gradient is of step 0, and its token of step 1 is there.
    found.run(&[], &[], &["train_1"]);
    update("train_1");
    // Now the other one is slow.
    found.run(&[], &[], &["train_0"]);
    update("train_0");
    assert_eq!(found.value("global_step"), [3.0]);
}

/// Of slices, each index gets the mean over the gradients that have it; with one gradient, that is the gradient.
#[test]
fn one_replica_of_slices_trains_as_one_device() {
    let runtime = of_training();
    let descent = GradientDescent::new(0.1);
    let trained = Trained::new(&runtime, |b, all| {
        let made = b.with_device(CPU, |b| variables(b, all, "sparse", FLOAT))??;
        let ids = placeholder(b)?;
        let options =
            MinimizeOptions { variables: Some(made.clone()), ..MinimizeOptions::default() };
        let one = towers(b, &[CPU], CPU, |b, _, _| {
            let loss = loss(b, "sparse", &made, ids, 0..4)?;
            Ok((loss, compute_gradients(b, all, loss, &options)?))
        })?;
        let step = global_step(b, all)?;
        let made = SyncReplicas { to_aggregate: 1 }.build(b, all, &descent, &one, &step)?;
        for (name, op) in [("start", made.start), ("chief", made.chief), ("train", made.train[0])] {
            b.op("NoOp").name(name).control(op).build()?;
        }
        Ok(())
    });
    trained.run(&[], &[], &["start"]);
    for at in 0..STEPS {
        std::thread::scope(|scope| {
            scope.spawn(|| trained.run(&[("ids", ids(at))], &[], &["train"]));
            trained.run(&[], &[], &["chief"]);
        });
    }
    same(&values(&trained), &alone(&runtime, "sparse", &descent));
}

#[test]
fn towers_that_do_not_fit_are_named() {
    let registry = of_training().registry();
    let (mut b, mut all) = (GraphBuilder::new(&registry), Variables::new());
    let none = towers(&mut b, &[], CPU, |_, _, _| unreachable!("no device")).unwrap_err();
    assert_eq!(none.to_string(), "devices of towers: expected at least one, found none");
    let made = variables(&mut b, &mut all, "dense", FLOAT).unwrap();
    let differ = towers(&mut b, &TWO, CPU, |b, _, at| {
        let gradient: VariableGradient = (None, made[at].clone());
        let loss = b.op("NoOp").build()?;
        Ok((loss.into(), vec![gradient]))
    });
    let error = differ.unwrap_err();
    assert_eq!(error.code(), Code::INVALID_ARGUMENT);
    assert_eq!(
        error.to_string(),
        "the variables of tower 1: expected [\"w\"], as in tower 0, found [\"b\"]"
    );
    let towers = halves(&mut b, &mut Variables::new(), "sparse", &TWO).unwrap();
    let step = global_step(&mut b, &mut all).unwrap();
    let sync = SyncReplicas { to_aggregate: 3 };
    let error = sync.build(&mut b, &mut all, &Momentum::new(0.1), &towers, &step).unwrap_err();
    assert_eq!(
        error.to_string(),
        "replicas to aggregate: expected between 1 and 2, the number of replicas, found 3"
    );
}
