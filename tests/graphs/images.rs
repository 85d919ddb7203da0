//! What is encoded decodes to what it was: exactly as PNG, within some levels as JPEG.

use tenon_framework::{Code, DType, Tensor};
use tenon_graph::{GraphBuilder, GraphError, Output};
use tenon_runtime::RuntimeError;
use tenon_tests::session::{run, runtime, session};

/// A sequence of numbers that looks random.
fn noise(seed: u64) -> impl Iterator<Item = u64> + Clone {
    let step = |state: &u64| {
        Some(state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407))
    };
    std::iter::successors(Some(seed), step).skip(1).map(|state| state >> 33)
}

/// Runs a graph of one result named `y`.
fn result(
    make: impl FnOnce(&mut GraphBuilder<'_>) -> Result<(), GraphError>,
) -> Result<Tensor, RuntimeError> {
    let session = session(&runtime(&["tenon_cpu", "tenon_image"], &[]), make);
    run(&session, &[], &["y:0"]).map(|mut fetched| fetched.remove(0))
}

fn encoded(
    b: &mut GraphBuilder<'_>,
    op: &str,
    image: Tensor,
    quality: Option<i64>,
) -> Result<Output, GraphError> {
    let image = b.constant("image", image)?;
    let mut node = b.op(op).name("encoded").input(image);
    if let Some(quality) = quality {
        node = node.attr("quality", quality);
    }
    Ok(node.build()?.into())
}

#[test]
fn png_keeps_every_pixel() {
    for channels in 1..=4 {
        for (height, width) in [(1, 1), (1, 9), (13, 7), (32, 31)] {
            let (dims, count) = ([height, width, channels], (height * width * channels) as usize);
            let levels = noise(count as u64).take(count);
            let narrow: Vec<u8> = levels.clone().map(|level| level as u8).collect();
            let wide: Vec<u16> = levels.map(|level| level as u16).collect();
            let images = [
                (DType::UINT8, Tensor::from_slice(&dims, &narrow).unwrap()),
                (DType::UINT16, Tensor::from_slice(&dims, &wide).unwrap()),
            ];
            for (dtype, image) in images {
                let back = result(|b| {
                    let contents = encoded(b, "EncodePng", image.clone(), None)?;
                    b.op("DecodePng")
                        .name("y")
                        .input(contents)
                        .attr("dtype", dtype)
                        .build()
                        .map(|_| ())
                })
                .unwrap();
                assert_eq!(back.shape(), image.shape());
                assert_eq!(back.as_bytes().unwrap(), image.as_bytes().unwrap(), "{dtype} {dims:?}");
            }
        }
    }
}

/// A ramp, which a photograph is like where nothing else is.
fn ramp(channels: i64) -> Tensor {
    let level =
        |at: i64| ((at / channels % 40) * 4 + (at / channels / 40) * 2 + at % channels * 20) as u8;
    let levels: Vec<u8> = (0..40 * 30 * channels).map(level).collect();
    Tensor::from_slice(&[30, 40, channels], &levels).unwrap()
}

#[test]
fn jpeg_stays_near() {
    for channels in [1, 3] {
        // The better the quality, the smaller the mean difference of levels.
        for (quality, allowed) in [(100, 1.0), (95, 1.5), (50, 4.0)] {
            let image = ramp(channels);
            let back = result(|b| {
                let contents = encoded(b, "EncodeJpeg", image.clone(), Some(quality))?;
                // The fast transform, which is the default, loses a level itself at such qualities.
                let decode = b.op("DecodeJpeg").name("y").input(contents);
                decode.attr("dct_method", "INTEGER_ACCURATE").build().map(|_| ())
            })
            .unwrap();
            assert_eq!(back.shape(), image.shape());
            let pairs = back.as_bytes().unwrap().iter().zip(image.as_bytes().unwrap());
            let sum: f64 = pairs.map(|(a, b)| f64::from(a.abs_diff(*b))).sum();
            let mean = sum / image.elements() as f64;
            println!("{channels} channels, quality {quality}: mean difference {mean:.3} levels");
            assert!(mean <= allowed, "{channels} channels, quality {quality}: {mean}");
        }
    }
}

#[test]
fn density_and_metadata_are_written() {
    let file = result(|b| {
        let image = b.constant("image", ramp(3))?;
        let node = b.op("EncodeJpeg").name("y").input(image).attr("xmp_metadata", "<x/>");
        let node =
            node.attr("density_unit", "cm").attr("x_density", 10i64).attr("y_density", 20i64);
        node.build().map(|_| ())
    })
    .unwrap();
    let file = file.as_strings().unwrap()[0].to_vec();
    assert_eq!(file[..4], [0xff, 0xd8, 0xff, 0xe0]);
    // Unit, and two densities, after the segment's length, its name and its version.
    assert_eq!(file[13..18], [2, 0, 10, 0, 20]);
    let metadata = b"\xff\xe1\x00\x23http://ns.adobe.com/xap/1.0/\0<x/>\xff";
    assert_eq!(file[20..][..metadata.len()], metadata[..]);
}

#[test]
fn damaged_files_are_refused() {
    for op in ["Png", "Jpeg"] {
        let encode = format!("Encode{op}");
        let file = result(|b| {
            let image = b.constant("image", ramp(3))?;
            b.op(&encode).name("y").input(image).build().map(|_| ())
        })
        .unwrap();
        let file = file.as_strings().unwrap()[0].to_vec();
        let decode = |bytes: &[u8]| {
            let contents = Tensor::from_strings(&[], &[bytes]).unwrap();
            result(|b| {
                let contents = b.constant("contents", contents)?;
                b.op(&format!("Decode{op}")).name("y").input(contents).build().map(|_| ())
            })
        };
        let mut random = noise(7);
        for _ in 0..60 {
            let mut damaged = file.clone();
            for _ in 0..8 {
                let at = random.next().unwrap() as usize % damaged.len();
                damaged[at] = random.next().unwrap() as u8;
            }
            // Some damage is to levels alone; whatever is refused is the caller's mistake.
            if let Err(error) = decode(&damaged) {
                assert_eq!(error.code(), Code::INVALID_ARGUMENT, "{error}");
            }
        }
        for len in (0..file.len() - 2).step_by(97) {
            let error = decode(&file[..len]).unwrap_err();
            assert_eq!(error.code(), Code::INVALID_ARGUMENT, "{len} bytes: {error}");
        }
    }
}
