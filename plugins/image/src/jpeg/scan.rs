//! Reads the coefficients of a scan: all in a baseline file, some bits of some of them in a
//! progressive one.

use super::{
    Problem,
    bits::{Bits, Codes},
    header::{Frame, ZIGZAG},
};

/// The coefficients that a scan contains, and the bits of them.
#[derive(Debug, Clone, Copy)]
pub struct Band {
    pub start: u8,
    pub end: u8,
    /// The bit that was read before, plus one; 0 for none.
    pub high: u8,
    pub low: u8,
}

/// State that carries over from block to block.
#[derive(Default)]
struct State {
    predictions: [i32; 4],
    /// Number of further blocks without coefficients in this band.
    empty: u32,
}

/// Reads a scan of these planes, each with the numbers of its tables. Returns where it ends and, if
/// the image ends in it, the number of complete rows of groups of blocks.
pub fn read(
    contents: &[u8],
    at: usize,
    planes: &[(usize, usize, usize)],
    band: Band,
    frame: &mut Frame,
) -> Result<(usize, Option<usize>), Problem> {
    check(band, planes.len())?;
    let mut bits = Bits::new(contents, at);
    let groups = match planes {
        // The blocks of a single plane are contiguous, without fill blocks.
        [(plane, ..)] => frame.components[*plane].own_blocks,
        _ => frame.groups(),
    };
    let [across, down] = groups;
    let (mut state, mut left, mut is_lost) = (State::default(), frame.interval, false);
    let mut whole = None;
    for group in 0..across * down {
        if frame.interval > 0 && left == 0 {
            bits.restart();
            (state, left, is_lost) = (State::default(), frame.interval, false);
        }
        left = left.wrapping_sub(1);
        if is_lost {
            continue;
        }
        let place = [group % across, group / across];
        read_group(&mut bits, planes, place, band, frame, &mut state)?;
        if bits.starved && whole.is_none() {
            whole = Some(place[1]);
        }
        if bits.is_beyond() {
            if bits.ends_file() {
                return Ok((bits.next_marker(), whole));
            }
            // The rest up to the next restart stays as it is.
            is_lost = true;
        }
    }
    Ok((bits.next_marker(), whole))
}

/// Reads the blocks of a group: of each plane as many as it has samples, or one of a single plane.
fn read_group(
    bits: &mut Bits<'_>,
    planes: &[(usize, usize, usize)],
    place: [usize; 2],
    band: Band,
    frame: &mut Frame,
    state: &mut State,
) -> Result<(), Problem> {
    for (number, &(plane, dc, ac)) in planes.iter().enumerate() {
        let inside = if planes.len() == 1 {
            [1, 1]
        } else {
            [frame.components[plane].across, frame.components[plane].down]
        };
        for sub in 0..inside[0] * inside[1] {
            let x = place[0] * inside[0] + sub % inside[0];
            let y = place[1] * inside[1] + sub / inside[0];
            let tables = [
                frame.dc.get(dc).and_then(Option::as_ref),
                frame.ac.get(ac).and_then(Option::as_ref),
            ];
            let component = &mut frame.components[plane];
            let first = (y * component.blocks[0] + x) * 64;
            let Some(block) = component.coefficients[first..].first_chunk_mut() else {
                continue;
            };
            let progressive = frame.progressive;
            decode_block(bits, block, tables, (progressive, band), number, state)?;
        }
    }
    Ok(())
}

fn check(Band { start, end, high, low }: Band, planes: usize) -> Result<(), Problem> {
    let is_dc = start == 0 && end == 0;
    let is_ac = start > 0 && start <= end && end < 64 && planes == 1;
    let is_whole = start == 0 && end == 63 && high == 0 && low == 0;
    match (is_dc || is_ac || is_whole) && low < 14 && (high == 0 || high == low + 1) {
        true => Ok(()),
        false => Err("a scan of coefficients that there are not".into()),
    }
}

fn decode_block(
    bits: &mut Bits<'_>,
    block: &mut [i16; 64],
    [dc, ac]: [Option<&Codes>; 2],
    (progressive, band): (bool, Band),
    number: usize,
    state: &mut State,
) -> Result<(), Problem> {
    let missing = || Problem::from("a scan whose codes are not there");
    if band.start == 0 {
        if band.high > 0 {
            block[0] |= i16::from(bits.bit()) << band.low;
        } else {
            let length = u32::from(dc.ok_or_else(missing)?.next(bits)?).min(15);
            let prediction = &mut state.predictions[number];
            *prediction = prediction.wrapping_add(bits.signed(length));
            block[0] = prediction.wrapping_shl(band.low.into()) as i16;
        }
    }
    if !progressive {
        return baseline(bits, block, ac.ok_or_else(missing)?);
    }
    match (band.start, band.high) {
        (0, _) => Ok(()),
        (_, 0) => first(bits, block, ac.ok_or_else(missing)?, band, &mut state.empty),
        _ => refine(bits, block, ac.ok_or_else(missing)?, band, &mut state.empty),
    }
}

fn baseline(bits: &mut Bits<'_>, block: &mut [i16; 64], codes: &Codes) -> Result<(), Problem> {
    let mut at = 1;
    while at < 64 {
        let symbol = codes.next(bits)?;
        let (zeros, length) = (usize::from(symbol >> 4), u32::from(symbol & 15));
        if length == 0 {
            if zeros < 15 {
                break;
            }
            at += 16;
            continue;
        }
        at += zeros;
        let value = bits.signed(length) as i16;
        if let Some(place) = ZIGZAG.get(at) {
            block[usize::from(*place)] = value;
        }
        at += 1;
    }
    Ok(())
}

/// Reads the upper bits of a band.
fn first(
    bits: &mut Bits<'_>,
    block: &mut [i16; 64],
    codes: &Codes,
    band: Band,
    empty: &mut u32,
) -> Result<(), Problem> {
    if *empty > 0 {
        *empty -= 1;
        return Ok(());
    }
    let (mut at, end) = (usize::from(band.start), usize::from(band.end));
    while at <= end {
        let symbol = codes.next(bits)?;
        let (zeros, length) = (u32::from(symbol >> 4), u32::from(symbol & 15));
        if length == 0 {
            if zeros < 15 {
                // This block, and this many after it.
                *empty = (1 << zeros) + bits.take(zeros) as u32 - 1;
                break;
            }
            at += 16;
            continue;
        }
        at += zeros as usize;
        let value = bits.signed(length).wrapping_shl(band.low.into()) as i16;
        if let Some(place) = ZIGZAG.get(at) {
            block[usize::from(*place)] = value;
        }
        at += 1;
    }
    Ok(())
}

/// Reads one more bit of a band: of existing numbers, and of new ones that consist of that bit.
fn refine(
    bits: &mut Bits<'_>,
    block: &mut [i16; 64],
    codes: &Codes,
    band: Band,
    empty: &mut u32,
) -> Result<(), Problem> {
    let (mut at, end) = (usize::from(band.start), usize::from(band.end));
    let one = 1i16 << band.low;
    if *empty == 0 {
        while at <= end {
            let symbol = codes.next(bits)?;
            let (zeros, length) = (u32::from(symbol >> 4), symbol & 15);
            let value = match length {
                0 if zeros < 15 => {
                    *empty = (1 << zeros) + bits.take(zeros) as u32;
                    break;
                }
                0 => 0,
                _ => {
                    if bits.bit() {
                        one
                    } else {
                        -one
                    }
                }
            };
            at = pass(bits, block, at..=end, zeros, one);
            if value != 0 && at <= end {
                block[usize::from(ZIGZAG[at])] = value;
            }
            at += 1;
        }
    }
    if *empty > 0 {
        pass(bits, block, at..=end, u32::MAX, one);
        *empty -= 1;
    }
    Ok(())
}

/// Skips a number of zeros, and refines the numbers between them; returns the place of the next
/// zero.
fn pass(
    bits: &mut Bits<'_>,
    block: &mut [i16; 64],
    places: std::ops::RangeInclusive<usize>,
    mut zeros: u32,
    one: i16,
) -> usize {
    let after = *places.end() + 1;
    for at in places {
        let value = &mut block[usize::from(ZIGZAG[at])];
        if *value != 0 {
            if bits.bit() && *value & one == 0 {
                *value = value.wrapping_add(if *value > 0 { one } else { -one });
            }
        } else if zeros == 0 {
            return at;
        } else {
            zeros -= 1;
        }
    }
    after
}
