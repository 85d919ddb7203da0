//! Tests of refused and damaged files. tests/goldens/image compares decoded files with TensorFlow.

use super::*;

const WHOLE: Options = Options {
    ratio: 1,
    accurate: true,
    fancy: true,
    channels: 0,
    recovers: false,
    acceptable: 1.0,
};

fn marked(marker: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() + 2) as u16;
    [&[0xff, marker][..], &length.to_be_bytes(), body].concat()
}

/// A grey file of this size, whose blocks all have the same level: a code of one bit for a
/// difference of 0, and one for the end of a block.
fn flat(width: u16, height: u16, mark: &[u8]) -> Vec<u8> {
    let [h, w] = [height, width].map(u16::to_be_bytes);
    let codes = |head: u8| [&[head, 1][..], &[0; 15], &[0]].concat();
    let blocks = usize::from(width.div_ceil(8)) * usize::from(height.div_ceil(8));
    // Two zero bits per block, and ones to the end of the byte.
    let mut bits = vec![0u8; blocks / 4];
    if !blocks.is_multiple_of(4) {
        bits.push(0xff >> (2 * (blocks % 4)));
    }
    [
        vec![0xff, 0xd8],
        marked(0xdb, &[&[0][..], &[1; 64]].concat()),
        marked(0xc0, &[8, h[0], h[1], w[0], w[1], 1, 1, 0x11, 0]),
        marked(0xc4, &codes(0)),
        marked(0xc4, &codes(0x10)),
        marked(0xda, &[1, 1, 0, 0, 63, 0]),
        bits,
        mark.to_vec(),
    ]
    .concat()
}

fn why(contents: &[u8], options: Options) -> String {
    match decode(contents, options) {
        Err(Problem::Wrong(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_of_one_level_is_that_level() {
    for (width, height) in [(1, 1), (8, 8), (9, 20), (64, 3)] {
        let image = decode(&flat(width, height, b"\xff\xd9"), WHOLE).unwrap();
        assert_eq!((image.width, image.height, image.channels), (width.into(), height.into(), 1));
        assert!(image.levels.iter().all(|level| *level == 128));
    }
}

#[test]
fn a_file_without_its_end_is_read_as_far_as_it_goes() {
    let file = flat(512, 80, b"");
    let text = why(&file, WHOLE);
    assert!(text.contains("72 of whose 80 rows are whole, a fraction of 0.9, while"), "{text}");
    let image = decode(&file, Options { acceptable: 0.9, ..WHOLE }).unwrap();
    let (there, missing) = image.levels.split_at(72 * 512);
    assert!(there.iter().all(|level| *level == 128) && missing.iter().all(|level| *level == 0));
    let image = decode(&file, Options { recovers: true, ..WHOLE }).unwrap();
    assert!(image.levels.iter().all(|level| *level == 128));
    let text = why(&flat(64, 8, b""), Options { acceptable: 0.0, ..WHOLE });
    assert!(text.contains("0 of whose 8 rows"), "{text}");
}

#[test]
fn memory_is_not_asked_for_by_a_header() {
    let mut file = flat(8, 8, b"\xff\xd9");
    // Height and width.
    let at = file.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap() + 5;
    file[at..at + 4].copy_from_slice(&[0x40, 0, 0x40, 0]);
    let text = why(&file, Options { recovers: true, ..WHOLE });
    assert!(text.contains("16384 x 16384 pixels in"), "{text}");
    file[at..at + 4].fill(0xff);
    let text = why(&file, WHOLE);
    assert!(text.contains("65535 x 65535 pixels are more than"), "{text}");
}

#[test]
fn kinds_of_files_that_others_read_are_told_apart() {
    let is_other = |file: &[u8]| matches!(decode(file, WHOLE), Err(Problem::Other));
    let file = flat(8, 8, b"\xff\xd9");
    let at = file.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
    for marker in [0xc3, 0xc5, 0xc9, 0xcf] {
        let mut other = file.clone();
        other[at + 1] = marker;
        assert!(is_other(&other), "{marker:x}");
    }
    let mut twelve_bits = file.clone();
    twelve_bits[at + 4] = 12;
    assert!(is_other(&twelve_bits));
}

/// Each byte is changed in some ways, and the file is cut after it: the result is an image or an
/// error, with checked arithmetic.
#[test]
fn damaged_files_end() {
    let file = flat(40, 40, b"\xff\xd9");
    let tried = |file: &[u8]| {
        for ratio in [1, 2, 4, 8] {
            let options = Options { ratio, recovers: true, ..WHOLE };
            if let Ok(image) = decode(file, options) {
                assert_eq!(image.levels.len(), image.width * image.height * image.channels);
            }
        }
    };
    for at in 3..file.len() {
        for byte in [0, 1, 0x22, 0x7f, 0xff, file[at] ^ 1, file[at] ^ 0x10] {
            let mut damaged = file.clone();
            damaged[at] = byte;
            tried(&damaged);
        }
        tried(&file[..at]);
    }
}
