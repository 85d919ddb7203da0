//! From a JPEG file to what the network takes, by the image plugin's ops.

use std::error::Error;
use tenon_runtime::{
    RunOptions, Runtime, Session, SessionOptions,
    framework::{PartialShape, Tensor},
    graph::{GraphBuilder, GraphError, Output},
};

/// Means and standard deviations of red, green and blue in ImageNet, as torchvision's networks expect them.
const MEANS: [f32; 3] = [0.485, 0.456, 0.406];
const DEVIATIONS: [f32; 3] = [0.229, 0.224, 0.225];

/// The picture as [1, size, size, 3], normalised.
///
/// # Errors
/// Bytes that are no JPEG file; plugins without the ops.
pub fn prepared(runtime: &Runtime, jpeg: &[u8], size: i64) -> Result<Tensor, Box<dyn Error>> {
    let contents = Tensor::from_strings(&[], &[jpeg])?;
    run(runtime, "jpeg", contents, "image", |b, jpeg| {
        let size = Tensor::from_slice(&[2], &[size as i32; 2])?;
        let (size, axis) = (b.constant("size", size)?, b.constant("axis", Tensor::scalar(0_i32)?)?);
        let full = b.constant("full", Tensor::scalar(255.0_f32)?)?;
        let means = b.constant("means", Tensor::from_slice(&[3], &MEANS)?)?;
        let deviations = b.constant("deviations", Tensor::from_slice(&[3], &DEVIATIONS)?)?;
        let pixels = b.op("DecodeJpeg").input(jpeg).attr("channels", 3_i64).build()?;
        let pixels = b.op("ExpandDims").input(pixels).input(axis).build()?;
        let resized = b.op("ResizeBilinear").input(pixels).input(size);
        let resized = resized.attr("half_pixel_centers", true).build()?;
        let light = b.op("RealDiv").input(resized).input(full).build()?;
        let centred = b.op("Sub").input(light).input(means).build()?;
        b.op("RealDiv").name("image").input(centred).input(deviations).build()?;
        Ok(())
    })
}

/// A picture of 1280 x 960 pixels, where there is no photograph: two gradients and a disc.
///
/// # Errors
/// Plugins without the op.
pub fn made_up(runtime: &Runtime) -> Result<Vec<u8>, Box<dyn Error>> {
    const WIDTH: i64 = 1280;
    const HEIGHT: i64 = 960;
    let pixel = |at: i64| {
        let (x, y) = (at % WIDTH, at / WIDTH);
        let inside = (x - WIDTH / 2).pow(2) + (y - HEIGHT / 2).pow(2) < (HEIGHT / 3).pow(2);
        [(x * 255 / WIDTH) as u8, (y * 255 / HEIGHT) as u8, if inside { 220 } else { 40 }]
    };
    let pixels: Vec<u8> = (0..WIDTH * HEIGHT).flat_map(pixel).collect();
    let pixels = Tensor::from_slice(&[HEIGHT, WIDTH, 3], &pixels)?;
    let encoded = run(runtime, "pixels", pixels, "jpeg", |b, pixels| {
        b.op("EncodeJpeg").name("jpeg").input(pixels).build()?;
        Ok(())
    })?;
    Ok(encoded.as_strings()?[0].to_vec())
}

/// One step of a graph with one feed and one fetch.
fn run(
    runtime: &Runtime,
    feed: &str,
    value: Tensor,
    fetch: &str,
    build: impl FnOnce(&mut GraphBuilder<'_>, Output) -> Result<(), Box<dyn Error>>,
) -> Result<Tensor, Box<dyn Error>> {
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let fed: Result<Output, GraphError> =
        b.placeholder(feed, value.dtype(), PartialShape::from(*value.shape()));
    build(&mut b, fed?)?;
    let session = Session::new(runtime, SessionOptions::default())?;
    session.extend(&b.finish().to_graph_def()?)?;
    let (mut fetched, _) = session.run(&[(feed, value)], &[fetch], &[], &RunOptions::default())?;
    Ok(fetched.remove(0))
}
