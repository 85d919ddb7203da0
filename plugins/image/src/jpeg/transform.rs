//! Transforms blocks of coefficients to levels. Numbers are integers with some fractional bits; the
//! places and the manner of rounding determine the levels, so that each step equals that of
//! libjpeg.

/// The levels of a block, of which the first `size` of each row and column are used.
pub type Levels = [[u8; 8]; 8];

/// The factors of coefficients.
pub struct Quantiser {
    factors: [i32; 64],
    kind: Kind,
}

/// How a block is transformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// To 8 x 8 levels, with full accuracy (Loeffler, Ligtenberg and Moschytz).
    Accurate,
    /// To 8 x 8 levels, with few multiplications (Arai, Agui and Nakajima).
    Fast,
    /// To this number of rows and columns: 4, 2 or 1.
    Reduced(usize),
}

impl Kind {
    /// Number of levels in a row.
    pub fn size(self) -> usize {
        match self {
            Kind::Reduced(size) => size,
            _ => 8,
        }
    }
}

impl Quantiser {
    pub fn new(table: &[u16; 64], kind: Kind) -> Quantiser {
        let factor = |at: usize| match kind {
            // The fast transform's own scale, with two fractional bits.
            Kind::Fast => {
                let scale = (16384.0 * scale_of(at / 8) * scale_of(at % 8)).round() as i64;
                ((i64::from(table[at]) * scale + (1 << 11)) >> 12) as i32
            }
            _ => table[at].into(),
        };
        Quantiser { factors: std::array::from_fn(factor), kind }
    }

    pub fn levels(&self, block: &[i16; 64]) -> Levels {
        let at = |row: usize, column: usize| {
            i32::from(block[row * 8 + column]).wrapping_mul(self.factors[row * 8 + column])
        };
        match self.kind {
            Kind::Accurate => both(at, |x| accurate(x, 11), |x| accurate(x, 18)),
            Kind::Fast => both(at, fast, |x| fast(x).map(|x| x >> 5)),
            Kind::Reduced(4) => both(at, |x| four(x, 12), |x| four(x, 19)),
            Kind::Reduced(2) => both(at, |x| two(x, 13), |x| two(x, 20)),
            Kind::Reduced(_) => {
                let mut levels = Levels::default();
                levels[0][0] = level(rounded(at(0, 0), 3));
                levels
            }
        }
    }
}

/// `sqrt(2) cos(k pi / 16)`, and 1 for 0.
fn scale_of(k: usize) -> f64 {
    if k == 0 {
        1.0
    } else {
        std::f64::consts::SQRT_2 * (k as f64 * std::f64::consts::PI / 16.0).cos()
    }
}

fn level(x: i32) -> u8 {
    (x + 128).clamp(0, 255) as u8
}

/// Shifts right by `bits`, rounding to nearest.
fn rounded(x: i32, bits: u32) -> i32 {
    x.wrapping_add(1 << (bits - 1)) >> bits
}

/// Transforms columns, then rows.
fn both(
    at: impl Fn(usize, usize) -> i32,
    columns: impl Fn([i32; 8]) -> [i32; 8],
    rows: impl Fn([i32; 8]) -> [i32; 8],
) -> Levels {
    let mut middle = [[0; 8]; 8];
    for column in 0..8 {
        let y = columns(std::array::from_fn(|row| at(row, column)));
        for (row, y) in middle.iter_mut().zip(y) {
            row[column] = y;
        }
    }
    middle.map(|row| rows(row).map(level))
}

/// Multiplies by a number with 13 fractional bits.
fn by(x: i32, factor: f64) -> i32 {
    x.wrapping_mul((factor * 8192.0).round() as i32)
}

fn sum(terms: &[i32]) -> i32 {
    terms.iter().fold(0, |sum, x| sum.wrapping_add(*x))
}

/// Sums and differences of mirrored pairs.
fn mirrored<const N: usize>(even: [i32; N], odd: [i32; N], bits: u32) -> [i32; 8] {
    let mut y = [0; 8];
    for (k, (even, odd)) in even.into_iter().zip(odd).enumerate() {
        y[k] = rounded(even.wrapping_add(odd), bits);
        y[2 * N - 1 - k] = rounded(even.wrapping_sub(odd), bits);
    }
    y
}

fn accurate(x: [i32; 8], bits: u32) -> [i32; 8] {
    let z = by(x[2].wrapping_add(x[6]), 0.541_196_1);
    let (a, b) = (z.wrapping_sub(by(x[6], 1.847_759_065)), z.wrapping_add(by(x[2], 0.765_366_865)));
    let (c, d) =
        (x[0].wrapping_add(x[4]).wrapping_shl(13), x[0].wrapping_sub(x[4]).wrapping_shl(13));
    let even = [c.wrapping_add(b), d.wrapping_add(a), d.wrapping_sub(a), c.wrapping_sub(b)];
    let z5 = by(sum(&[x[7], x[3], x[5], x[1]]), 1.175_875_602);
    let z1 = by(x[7].wrapping_add(x[1]), -0.899_976_223);
    let z2 = by(x[5].wrapping_add(x[3]), -2.562_915_447);
    let z3 = by(x[7].wrapping_add(x[3]), -1.961_570_56).wrapping_add(z5);
    let z4 = by(x[5].wrapping_add(x[1]), -0.390_180_644).wrapping_add(z5);
    let odd = [
        sum(&[by(x[1], 1.501_321_11), z1, z4]),
        sum(&[by(x[3], 3.072_711_026), z2, z3]),
        sum(&[by(x[5], 2.053_119_869), z2, z4]),
        sum(&[by(x[7], 0.298_631_336), z1, z3]),
    ];
    mirrored(even, odd, bits)
}

/// Multiplies by a number with 8 fractional bits, which are truncated.
fn cut(x: i32, factor: i32) -> i32 {
    x.wrapping_mul(factor) >> 8
}

fn fast(x: [i32; 8]) -> [i32; 8] {
    const HALF: i32 = 362;
    let (a, b) = (x[0].wrapping_add(x[4]), x[0].wrapping_sub(x[4]));
    let c = x[2].wrapping_add(x[6]);
    let d = cut(x[2].wrapping_sub(x[6]), HALF).wrapping_sub(c);
    let even = [a.wrapping_add(c), b.wrapping_add(d), b.wrapping_sub(d), a.wrapping_sub(c)];
    let (z13, z10) = (x[5].wrapping_add(x[3]), x[5].wrapping_sub(x[3]));
    let (z11, z12) = (x[1].wrapping_add(x[7]), x[1].wrapping_sub(x[7]));
    let z5 = cut(z10.wrapping_add(z12), 473);
    let first = z11.wrapping_add(z13);
    let second = cut(z10, -669).wrapping_add(z5).wrapping_sub(first);
    let third = cut(z11.wrapping_sub(z13), HALF).wrapping_sub(second);
    let fourth = cut(z12, 277).wrapping_sub(z5).wrapping_add(third);
    let mut y = [0; 8];
    // The fourth pair is swapped.
    for (k, odd) in [first, second, third, fourth.wrapping_neg()].into_iter().enumerate() {
        y[k] = even[k].wrapping_add(odd);
        y[7 - k] = even[k].wrapping_sub(odd);
    }
    y
}

fn four(x: [i32; 8], bits: u32) -> [i32; 8] {
    let a = x[0].wrapping_shl(14);
    let b = by(x[2], 1.847_759_065).wrapping_sub(by(x[6], 0.765_366_865));
    let inner = sum(&[
        by(x[7], -0.211_164_243),
        by(x[5], 1.451_774_981),
        by(x[3], -2.172_734_803),
        by(x[1], 1.061_594_337),
    ]);
    let outer = sum(&[
        by(x[7], -0.509_795_579),
        by(x[5], -0.601_344_887),
        by(x[3], 0.899_976_223),
        by(x[1], 2.562_915_447),
    ]);
    mirrored([a.wrapping_add(b), a.wrapping_sub(b)], [outer, inner], bits)
}

fn two(x: [i32; 8], bits: u32) -> [i32; 8] {
    let odd = sum(&[
        by(x[7], -0.720_959_822),
        by(x[5], 0.850_430_095),
        by(x[3], -1.272_758_58),
        by(x[1], 3.624_509_785),
    ]);
    mirrored([x[0].wrapping_shl(15)], [odd], bits)
}
