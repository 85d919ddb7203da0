//! VGG19 (Simonyan and Zisserman, 2014) from weights to a prediction: the guide sdk/docs/vgg19.md goes through it.
//!
//!     vgg19 --weights vgg19.safetensors --photograph cat.jpg
//!
//! Weights are those that torchvision's `vgg19` saves, under its names; without a file they are drawn at random. The
//! graph is written as a `GraphDef`, for `tenon run`, `tenon bench` and `tenon quantize`.

mod network;
mod photograph;
mod training;
mod weights;

use clap::Parser;
use network::{Constants, Network};
use std::{error::Error, fs, path::PathBuf, process::ExitCode, time::Instant};
use tenon_runtime::{
    CallableOptions, Runtime, RuntimeOptions, Session, SessionOptions, framework::Tensor,
    graph::GraphBuilder, proto::encode,
};
use tenon_testkit::npy;
use weights::Weights;

/// Builds VGG19, runs it on a photograph, and writes the graph.
#[derive(Debug, Parser)]
struct Args {
    /// Weights by torchvision's names
    #[arg(long, value_name = "FILE.safetensors")]
    weights: Option<PathBuf>,
    /// What to classify; a made-up picture without it
    #[arg(long, value_name = "FILE.jpg")]
    photograph: Option<PathBuf>,
    /// Where the graph is written
    #[arg(long, value_name = "FILE.pb", default_value = "vgg19.pb")]
    out: PathBuf,
    /// Where the photograph is written as the network sees it
    #[arg(long, value_name = "FILE.npy", default_value = "image.npy")]
    image: PathBuf,
    /// Rows and columns of the image; the weights of a file want 224
    #[arg(long, default_value_t = 224, value_parser = clap::value_parser!(i64).range(32..=1024))]
    size: i64,
    /// Divides the number of channels: a smaller network for a first look
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(i64).range(1..=64))]
    scale: i64,
    /// Then trains as many steps on the image, as class 0
    #[arg(long, value_name = "STEPS", default_value_t = 0)]
    train: u32,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    let (runtime, report) = Runtime::new(RuntimeOptions::default())?;
    for rejected in &report.rejected {
        eprintln!("plugin refused: {}", rejected.error);
    }
    let network = Network { size: args.size, scale: args.scale };
    let weights = Weights::new(&runtime, args.weights.as_deref())?;
    let registry = runtime.registry();
    let mut builder = GraphBuilder::new(&registry);
    network.build(&mut builder, &weights, &mut Constants)?;
    let graph = builder.finish();
    println!("{} nodes", graph.len());
    let graph = graph.to_graph_def()?;
    fs::write(&args.out, encode(&graph)?)?;

    let jpeg = match &args.photograph {
        Some(file) => fs::read(file)?,
        None => photograph::made_up(&runtime)?,
    };
    let image = photograph::prepared(&runtime, &jpeg, args.size)?;
    npy::write(&args.image, &image)?;

    let session = Session::new(&runtime, SessionOptions::default())?;
    session.extend_owned(graph)?;
    let callable = session.callable(CallableOptions::new(&["image"], &["probabilities"]))?;
    let mut fetched: Vec<Tensor> = Vec::new();
    // The first step packs the weights.
    callable.run(std::slice::from_ref(&image), &mut fetched)?;
    let began = Instant::now();
    callable.run(std::slice::from_ref(&image), &mut fetched)?;
    println!("a step takes {:.1} ms", 1e3 * began.elapsed().as_secs_f64());
    for (class, probability) in highest(fetched[0].as_slice()?) {
        println!("class {class:3}: {:.1}%", 100.0 * probability);
    }
    println!("the graph is in {}, the image in {}", args.out.display(), args.image.display());
    training::train(&runtime, &network, &weights, &image, args.train)
}

/// The five classes of highest probability.
fn highest(probabilities: &[f32]) -> Vec<(usize, f32)> {
    let mut classes: Vec<(usize, f32)> = probabilities.iter().copied().enumerate().collect();
    classes.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    classes.truncate(5);
    classes
}
