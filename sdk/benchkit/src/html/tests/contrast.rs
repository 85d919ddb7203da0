//! Colours are distinct from the background, in light, dark, and on paper (WCAG 2.2, 1.4.3 and 1.4.11).

use super::super::STYLE;
use std::collections::BTreeMap;

/// The values of the `:root` blocks, in order: light, dark, paper.
fn schemes() -> Vec<BTreeMap<&'static str, [f64; 3]>> {
    let blocks = STYLE.split(":root {").skip(1).map(|rest| rest.split_once('}').unwrap().0);
    let colours = |block: &'static str| {
        let all = block.split(';').filter_map(|line| line.trim().split_once(": "));
        all.map(|(name, value)| (name, rgb(value))).collect()
    };
    blocks.map(colours).collect()
}

fn rgb(text: &str) -> [f64; 3] {
    let hex = text.strip_prefix('#').unwrap();
    [0, 2, 4].map(|at| f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0)
}

fn luminance(colour: [f64; 3]) -> f64 {
    let linear =
        colour.map(|c| if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055f64).powf(2.4) });
    0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
}

fn contrast(a: [f64; 3], b: [f64; 3]) -> f64 {
    let (a, b) = (luminance(a) + 0.05, luminance(b) + 0.05);
    a.max(b) / a.min(b)
}

#[test]
fn text_and_marks_are_told_from_the_background() {
    let schemes = schemes();
    assert_eq!(schemes.len(), 3);
    for scheme in schemes {
        for (name, least) in [
            ("--ink", 7.0),
            ("--soft", 4.5),
            ("--good", 4.5),
            ("--bad", 4.5),
            ("--s0", 4.5),
            ("--s1", 4.5),
        ] {
            let found = contrast(scheme[name], scheme["--paper"]);
            assert!(found >= least, "{name}: {found:.2}");
        }
        // The names of variants stand in their colours.
        for series in ["--s2", "--s3", "--s4", "--s5"] {
            let found = contrast(scheme[series], scheme["--paper"]);
            assert!(found >= 4.5, "{series}: {found:.2}");
        }
        assert!(contrast(scheme["--ink"], scheme["--wash"]) >= 7.0);
    }
}

#[test]
fn contrast_is_what_the_guidelines_say() {
    assert!((contrast([0.0; 3], [1.0; 3]) - 21.0).abs() < 1e-9);
    assert!((contrast(rgb("#777777"), [1.0; 3]) - 4.48).abs() < 0.01);
}
