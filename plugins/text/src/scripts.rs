//! `UnicodeScript`: the script of each character, as the Unicode Character Database, version 13, has it,
//! by the numbers of ICU's `UScriptCode`.

use tenon_sdk::{KernelError, author::ComputeContext, growth, reg::Numerics, register_kernel};

/// Per range of characters that share their script, up to the next one, a word of four bytes, the lowest
/// first: the script in the first byte, the first character in the others.
const RANGES: &[u8] = include_bytes!("scripts.bin");

/// The first number after those of characters.
const END: i32 = 0x11_0000;

/// The script of a character; `None` for what is none.
fn script_of(ranges: &[u32], character: i32) -> Option<i32> {
    let character = u32::try_from(character).ok().filter(|&character| character < END as u32)?;
    let after = ranges.partition_point(|range| range >> 8 <= character);
    ranges[..after].last().map(|range| (range & 0xff) as i32)
}

fn ranges() -> Result<Vec<u32>, KernelError> {
    let words = RANGES.as_chunks::<4>().0;
    growth::collected(words.iter().map(|&word| u32::from_le_bytes(word)))
}

fn script(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (x, ranges) = (c.input::<i32>(0)?, ranges()?);
    let y = c.output::<i32>(0, x.dims)?.data;
    for (y, &x) in y.iter_mut().zip(x.data) {
        *y = script_of(&ranges, x).unwrap_or(-1);
    }
    Ok(())
}

register_kernel!("UnicodeScript" on "CPU": fn script, numerics = Numerics::EXACT);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_have_the_scripts_of_icu() {
        let ranges = ranges().unwrap();
        assert!(ranges.first() == Some(&0) && ranges.is_sorted_by(|a, b| a >> 8 < b >> 8));
        // Common 0, Cyrillic 8, Greek 14, Han 17, Latin 25, Thai 38, unknown 103.
        let some = [(0x20, 0), (0x44f, 8), (0x3bb, 14), (0x6f22, 17), (0x7a, 25), (0xe01, 38)];
        for (character, script) in some {
            assert_eq!(script_of(&ranges, character), Some(script), "{character:#x}");
        }
        assert_eq!(script_of(&ranges, END - 1), Some(103));
        for none in [-1, END, i32::MAX, i32::MIN] {
            assert_eq!(script_of(&ranges, none), None);
        }
    }
}
