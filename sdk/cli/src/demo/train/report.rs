//! What `tenon demo train` prints, and its page.

use super::{Outcome, run::Trained};
use crate::{list::shown_path, output::time, table::Table};
use serde_json::{Value, json};
use std::{fmt::Write, path::Path};
use tenon_benchkit::html::curves::{self, Curve, Figure, Page};

/// Losses that a point of a curve averages, at most.
const SMOOTHED: usize = 20;

/// The figures of the three trainings, and what was found.
pub fn text(outcome: &Outcome, page: Option<&Path>) -> String {
    let mut table =
        Table::new(["trained on", ">steps", ">time per step", ">all steps", ">loss", ">accuracy"]);
    for trained in [&outcome.cpu, &outcome.accelerators] {
        let (steps, all) = (trained.losses.len(), trained.time.as_secs_f64() * 1e9);
        let right = trained.right.last().map_or(0, |(_, right)| *right);
        table.row([
            trained.name.to_owned(),
            steps.to_string(),
            time(all / steps.max(1) as f64),
            time(all),
            format!("{:.4}", last_loss(trained)),
            format!("{:.1} %", 100.0 * right as f64 / outcome.images as f64),
        ]);
    }
    let mut text = format!(
        "{} images of the training in batches of 64; {} held out\n\n{}\n",
        outcome.trained_on,
        outcome.images,
        table.render(0)
    );
    for (is_good, finding) in outcome.findings() {
        let _ = writeln!(text, "{} {finding}", if is_good { "ok  " } else { "FAIL" });
    }
    if let Some(page) = page {
        let _ = writeln!(text, "\ncurves: {}", shown_path(page));
    }
    text
}

fn last_loss(trained: &Trained) -> f64 {
    let last = &trained.losses[trained.losses.len().saturating_sub(SMOOTHED)..];
    last.iter().map(|loss| f64::from(*loss)).sum::<f64>() / last.len().max(1) as f64
}

/// The same for a program.
pub fn json(outcome: &Outcome) -> Value {
    let trained = |trained: &Trained| {
        json!({
            "name": trained.name,
            "losses": trained.losses,
            "right": trained.right.iter().map(|(step, right)| json!({"step": step, "right": right})).collect::<Vec<_>>(),
            "time_ns": trained.time.as_nanos() as u64,
        })
    };
    json!({
        "steps": outcome.steps,
        "images": outcome.images,
        "trainings": [trained(&outcome.cpu), trained(&outcome.accelerators)],
        "accuracy": outcome.accuracy(),
        "max_loss_difference": outcome.loss_difference(),
        "killed_at": outcome.resumed.killed_at,
        "resumed_from": outcome.resumed.resumed_from,
        "different_weights": outcome.different_weights(),
    })
}

/// How many losses a point averages: a curve has fifty points if it can.
fn window(losses: &[f32]) -> usize {
    (losses.len() / 50).clamp(1, SMOOTHED)
}

/// The page of curves.
pub fn page(outcome: &Outcome) -> String {
    let cpu = &outcome.cpu;
    curves::page(&Page {
        command: "tenon demo train".to_owned(),
        title: "A digit classifier, from random weights".to_owned(),
        line: format!(
            "{} steps of 64 images on the CPU in {}",
            cpu.losses.len(),
            time(cpu.time.as_secs_f64() * 1e9)
        ),
        findings: outcome.findings(),
        figures: vec![loss(outcome), accuracy(outcome), devices(outcome)],
    })
}

fn curve(name: &str, points: Vec<(f64, f64)>) -> Curve {
    Curve { name: name.to_owned(), points }
}

fn loss(outcome: &Outcome) -> Figure {
    let losses = &outcome.cpu.losses;
    Figure {
        title: "Loss of the training".to_owned(),
        note: format!(
            "Means over {} steps. The interruption is that of another process, which computes the same.",
            window(losses)
        ),
        x: "step".to_owned(),
        y: "cross entropy".to_owned(),
        is_log: true,
        curves: vec![curve("CPU", smoothed(losses))],
        marks: vec![(outcome.resumed.killed_at as f64, "killed, then resumed".to_owned())],
    }
}

fn accuracy(outcome: &Outcome) -> Figure {
    let percent = |right: usize| 100.0 * right as f64 / outcome.images as f64;
    let points = outcome.cpu.right.iter().map(|(step, right)| (*step as f64, percent(*right)));
    Figure {
        title: "Accuracy".to_owned(),
        note: "Of the images that the training has not seen.".to_owned(),
        x: "step".to_owned(),
        y: "classified right, %".to_owned(),
        curves: vec![curve("CPU", points.collect())],
        ..Figure::default()
    }
}

fn devices(outcome: &Outcome) -> Figure {
    let compared = outcome.accelerators.losses.len();
    let first = |trained: &Trained| {
        let losses = trained.losses.iter().take(compared).enumerate();
        losses.map(|(at, loss)| (at as f64 + 1.0, f64::from(*loss))).collect()
    };
    let note = "The first steps, each loss. Every ACCEL device has half of each batch; the gradients are averaged.";
    Figure {
        title: "Two devices compute the same".to_owned(),
        note: note.to_owned(),
        x: "step".to_owned(),
        y: "cross entropy".to_owned(),
        curves: vec![
            curve("CPU", first(&outcome.cpu)),
            curve("two ACCEL", first(&outcome.accelerators)),
        ],
        ..Figure::default()
    }
}

/// Means of some losses, each at the last step of them.
fn smoothed(losses: &[f32]) -> Vec<(f64, f64)> {
    let size = window(losses);
    let chunks = losses.chunks(size).enumerate();
    let mean =
        |chunk: &[f32]| chunk.iter().map(|loss| f64::from(*loss)).sum::<f64>() / chunk.len() as f64;
    chunks.map(|(at, chunk)| ((at * size + chunk.len()) as f64, mean(chunk))).collect()
}
