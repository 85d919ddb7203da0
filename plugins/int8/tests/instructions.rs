//! The instructions of the tiles of `avx_vnni`, read from this very executable: few CPUs could run them, and the compiler
//! has two codes for `vpdpbusd`, one of which those that have AVX-VNNI alone do not know. What the tiles compute is
//! tested in `products.rs`, by the twin of that set.
#![cfg(target_arch = "x86_64")]

use object::{Object, ObjectSection, ObjectSymbol};
use std::hint::black_box;
use tenon_int8::isa::{ALL, TWINS};

/// Tiles: of one row to six.
const TILES: usize = 6;

/// Whether these bytes begin `vpdpbusd` on 256 bits, VEX.256.66.0F38.W0 50 /r (Intel SDM, volume 2C).
fn is_vex([prefix, map, vector, opcode]: &[u8; 4]) -> bool {
    *prefix == 0xC4 && map & 0x1F == 0x02 && vector & 0x87 == 0x05 && *opcode == 0x50
}

/// Whether these bytes begin `vpdpbusd`, EVEX.66.0F38.W0 50 /r, on any number of bits.
fn is_evex([prefix, map, vector, _bits, opcode]: &[u8; 5]) -> bool {
    *prefix == 0x62 && map & 0x0F == 0x02 && vector & 0x87 == 0x05 && *opcode == 0x50
}

/// How often the tiles of an instruction set have the one code and the other. Where functions are not inlined, what the
/// tiles call, which has this name, has it for them.
fn counts(set: &str, instruction: &str) -> [usize; 2] {
    black_box((ALL, TWINS));
    let path = std::env::current_exe().expect("a path");
    let file = std::fs::read(path).expect("this executable can be read");
    let file = object::File::parse(&*file).expect("an object file");
    let (mut tiles, mut counts) = (0, [0; 2]);
    for symbol in file.symbols() {
        let name = symbol.name().unwrap_or_default();
        let is_tile = [set, "strip", "compiled"].iter().all(|word| name.contains(word));
        if !is_tile && !name.contains(instruction) {
            continue;
        }
        let section = symbol.section_index().and_then(|at| file.section_by_index(at).ok());
        let range = (symbol.address(), symbol.size());
        let code = section.and_then(|section| section.data_range(range.0, range.1).ok()?);
        let code = code.unwrap_or_else(|| panic!("no code of {name}"));
        tiles += usize::from(is_tile);
        counts[0] += code.array_windows().filter(|code| is_vex(code)).count();
        counts[1] += code.array_windows().filter(|code| is_evex(code)).count();
    }
    assert_eq!(tiles, TILES, "tiles of {set}");
    counts
}

#[test]
fn tiles_of_avx_vnni_are_what_its_cpus_know() {
    let [vex, evex] = counts("Vnni256", "_mm256_dpbusd_avx_epi32");
    assert!(vex > 0 && evex == 0, "{vex} of the right code, {evex} of the other");
}

/// So the test above tells the codes apart in code of the same source.
#[test]
fn tiles_of_its_twin_have_the_other_code() {
    let [vex, evex] = counts("Twin256", "_mm256_dpbusd_epi32");
    assert!(vex == 0 && evex > 0, "{vex} of the one code, {evex} of its own");
}

/// `vpdpbusd ymm1, ymm2, ymm3` in either code.
#[test]
fn codes_are_told_apart() {
    assert!(is_vex(&[0xC4, 0xE2, 0x6D, 0x50]) && !is_evex(&[0xC4, 0xE2, 0x6D, 0x50, 0xCB]));
    assert!(is_evex(&[0x62, 0xF2, 0x6D, 0x28, 0x50]) && !is_vex(&[0x62, 0xF2, 0x6D, 0x28]));
}
