//! One training: steps with hooks over a session, with a live line.

use super::{
    data::Images,
    model::{HELD_OUT, IMAGES, LABELS, Model},
};
use crate::{demo::assets::Digits, error::CliError, progress::progress};
use indicatif::ProgressBar;
use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};
use tenon_runtime::{AnySession, Runtime, SessionOptions, framework::Tensor};
use tenon_training::{
    CheckpointSaver, Every, Hook, LocalTarget, LoopOptions, ManagerOptions, MonitoredSession,
    StopAtStep, TrainError, read_step,
};

/// How often, in a training, the images that it has not seen are classified.
const EVALUATIONS: u64 = 30;

/// What a training does.
pub struct Plan<'a> {
    /// Its name.
    pub name: &'static str,
    /// The devices with a tower each.
    pub devices: &'a [&'a str],
    /// The steps after which the learning rate is lowest.
    pub steps: u64,
    /// The last step, which may come before.
    pub last: u64,
    /// Where checkpoints are, and the steps between two; the training goes on from the newest.
    pub checkpoints: Option<(&'a Path, u64)>,
    /// What happens after each step; gets its number.
    pub after_step: &'a dyn Fn(u64),
}

/// What a training gave.
#[derive(Debug, Clone)]
pub struct Trained {
    /// Its name.
    pub name: &'static str,
    /// The loss before each update.
    pub losses: Vec<f32>,
    /// Step, and images classified right after it.
    pub right: Vec<(u64, usize)>,
    /// Time of the steps, without evaluations.
    pub time: Duration,
    /// The weights at the end.
    pub weights: Vec<Tensor>,
}

/// Trains.
///
/// # Errors
/// A plugin is missing, a step fails, or a checkpoint cannot be written or read.
pub fn train(
    runtime: &Runtime,
    images: &Images,
    digits: &Digits,
    plan: &Plan<'_>,
) -> Result<Trained, CliError> {
    let model = Model::build(runtime, plan.devices, plan.steps)?;
    let mut training = open(runtime, &model, plan)?;
    let session = Arc::clone(training.session().ok_or_else(ended)?);
    let first = match &model.scaffold.global_step {
        Some(step) => read_step(&*session, step)?.unsigned_abs(),
        None => 0,
    };
    let mut trained = Trained {
        name: plan.name,
        losses: Vec::new(),
        right: Vec::new(),
        time: Duration::ZERO,
        weights: Vec::new(),
    };
    let bar = progress(plan.last, plan.name);
    let every = (plan.steps / EVALUATIONS).max(1);
    let mut at = first;
    while !training.should_stop() {
        let (batch, labels) = images.batch(at).map_err(TrainError::from)?;
        let begin = Instant::now();
        let feeds = [(IMAGES, batch), (LABELS, labels)];
        let fetched = training.run(&feeds, &[&model.loss], &[&model.train])?;
        trained.time += begin.elapsed();
        trained.losses.push(fetched[0].as_slice::<f32>().map_err(TrainError::from)?[0]);
        at += 1;
        if at.is_multiple_of(every) || at == plan.last {
            trained.right.push((at, classify(&*session, &model, digits)?));
        }
        show(&bar, at, &trained, digits.count());
        (plan.after_step)(at);
    }
    trained.weights = weights(&*session, &model)?;
    training.close()?;
    bar.finish_and_clear();
    Ok(trained)
}

fn open(runtime: &Runtime, model: &Model, plan: &Plan<'_>) -> Result<MonitoredSession, CliError> {
    let mut hooks: Vec<Box<dyn Hook>> = vec![Box::new(StopAtStep::last(plan.last as i64))];
    let mut manager = ManagerOptions::default();
    if let Some((folder, every)) = plan.checkpoints {
        hooks.push(Box::new(CheckpointSaver::new(folder, Every::Steps(every as i64))));
        manager.checkpoint_folder = Some(folder.to_owned());
    }
    let options = SessionOptions { soft_placement: Some(true), ..SessionOptions::default() };
    let target = Arc::new(LocalTarget::new(runtime, options));
    let options = LoopOptions { manager, ..LoopOptions::default() };
    Ok(MonitoredSession::open(target, model.scaffold.clone(), hooks, options)?)
}

fn ended() -> CliError {
    CliError::Demo("the training has no session".to_owned())
}

/// How many of the images that the training has not seen are classified right.
fn classify(session: &dyn AnySession, model: &Model, digits: &Digits) -> Result<usize, TrainError> {
    let feeds = [(HELD_OUT, digits.images.clone())];
    let fetched = session.run_step(&feeds, &[&model.classes], &[], None)?;
    let classes = fetched[0].as_slice::<i64>()?;
    let right =
        digits.labels.iter().zip(classes).filter(|(label, class)| i64::from(**label) == **class);
    Ok(right.count())
}

/// The values of the weights.
///
/// # Errors
/// They have none.
pub fn weights(session: &dyn AnySession, model: &Model) -> Result<Vec<Tensor>, TrainError> {
    let names: Vec<&str> = model.weights.iter().map(String::as_str).collect();
    Ok(session.run_step(&[], &names, &[], None)?)
}

/// The line: the bar, the loss of the last ten steps, and the accuracy.
fn show(bar: &ProgressBar, at: u64, trained: &Trained, images: usize) {
    bar.set_position(at);
    let last = &trained.losses[trained.losses.len().saturating_sub(10)..];
    let loss = last.iter().sum::<f32>() / last.len().max(1) as f32;
    let accuracy =
        trained.right.last().map_or(0.0, |(_, right)| 100.0 * *right as f64 / images as f64);
    bar.set_message(format!("{}  loss {loss:.4}  accuracy {accuracy:.1} %", trained.name));
}
