//! Products against plain sums in 64 bits, on every instruction set that this CPU has.

use proptest::prelude::*;
use tenon_int8::{
    isa::{ALL, Isa, TWINS, choose},
    output::{Multipliers, Scales, Slopes, Stage, Terms, Width, column_terms},
    pack::Source,
    product::{PackedRight, Product, flip, flipped_zero},
};
use tenon_sdk::{
    DType,
    fixed_point::{Multiplier, QuantizedRange, Scale, multiply_by_float},
};

/// A product with all that belongs to it.
#[derive(Debug, Clone)]
struct Case {
    sizes: [usize; 3],
    types: [DType; 2],
    transposed: [bool; 2],
    left: Vec<u8>,
    right: Vec<u8>,
    left_zero: i32,
    right_zeros: Vec<i32>,
    bias: Vec<i32>,
}

fn value(byte: u8, dtype: DType) -> i64 {
    if dtype == DType::QINT8 { byte.cast_signed().into() } else { byte.into() }
}

impl Case {
    /// The sums, in 64 bits, by their definition.
    fn sums(&self) -> Vec<i64> {
        let [m, n, k] = self.sizes;
        let left = |i: usize, p: usize| if self.transposed[0] { p * m + i } else { i * k + p };
        let right = |p: usize, j: usize| if self.transposed[1] { j * k + p } else { p * n + j };
        let sum = |i: usize, j: usize| -> i64 {
            let zero = i64::from(self.right_zeros[j % self.right_zeros.len()]);
            let terms = (0..k).map(|p| {
                (value(self.left[left(i, p)], self.types[0]) - i64::from(self.left_zero))
                    * (value(self.right[right(p, j)], self.types[1]) - zero)
            });
            terms.sum::<i64>() + self.bias.get(j).map_or(0, |&bias| bias.into())
        };
        (0..m * n).map(|at| sum(at / n, at % n)).collect()
    }

    /// The bytes that a kernel writes, computed in two parts of rows and columns.
    fn run(&self, isa: &'static Isa, stage: impl Fn(usize) -> StageOf) -> Vec<u8> {
        let [m, n, k] = self.sizes;
        let flips = [flip(isa, self.types[0], true), flip(isa, self.types[1], false)];
        let left = Source::new(&self.left, [m, k], self.transposed[0], flips[0]);
        let right = Source::new(&self.right, [n, k], !self.transposed[1], flips[1]);
        let packed = PackedRight::pack(isa, &right).expect("it is small");
        let packed = packed.view();
        let left_zero = flipped_zero(self.left_zero, self.types[0], flips[0]);
        let zeros: Vec<i32> =
            self.right_zeros.iter().map(|&z| flipped_zero(z, self.types[1], flips[1])).collect();
        let padded = packed.padded_columns();
        let mut columns = vec![0; padded];
        let mut each: Vec<i32> = zeros.iter().map(|zero| -zero).collect();
        let slopes = if let [slope] = *each {
            Slopes::One(slope)
        } else {
            each.resize(padded, 0);
            Slopes::Each(&each)
        };
        column_terms(packed, left_zero, slopes, &self.bias, &mut columns);
        let stage = stage(padded);
        let mut to = vec![0xAA; m * n * stage.as_stage().value_bytes()];
        let terms = Terms { columns: &columns, slopes };
        let product = Product::new(left, packed, terms, stage.as_stage(), &mut to);
        let mut scratch = vec![0x55; product.scratch_bytes()];
        let (rows, columns) = (product.row_panels(), product.column_panels());
        for rows in [0..rows / 2, rows / 2..rows] {
            for columns in [0..columns / 3, columns / 3..columns] {
                // SAFETY: one part after the other.
                unsafe { product.run(rows.clone(), columns, &mut scratch) };
            }
        }
        to
    }
}

/// A stage with what it borrows.
enum StageOf {
    Sums,
    Real(Vec<f32>),
    Float(Vec<f32>, QuantizedRange, Width),
    Fixed([Vec<i32>; 2], QuantizedRange, Width),
}

impl StageOf {
    fn as_stage(&self) -> Stage<'_> {
        match self {
            StageOf::Sums => Stage::Sums([i32::MIN, i32::MAX]),
            StageOf::Real(scales) => Stage::Real(scales, [-1e30, 1e30]),
            StageOf::Float(scales, range, width) => {
                Stage::Float(Scales::new(scales), *range, *width)
            }
            StageOf::Fixed(by, range, width) => {
                Stage::Fixed(Multipliers { mantissas: &by[0], exponents: &by[1] }, *range, *width)
            }
        }
    }
}

fn supported() -> impl Iterator<Item = &'static Isa> {
    ALL.iter().chain(TWINS).copied().filter(|isa| isa.is_supported())
}

fn i32s(bytes: &[u8]) -> Vec<i64> {
    bytes.as_chunks().0.iter().map(|&b| i32::from_le_bytes(b).into()).collect()
}

fn check_sums(case: &Case) {
    let expected = case.sums();
    for isa in supported() {
        let found = i32s(&case.run(isa, |_| StageOf::Sums));
        assert_eq!(found, expected, "{} {:?} {:?}", isa.name, case.sizes, case.types);
    }
}

/// A generator of its own, so that a case is the same on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

const TYPES: [DType; 2] = [DType::QUINT8, DType::QINT8];

fn zero(random: &mut Random, dtype: DType) -> i32 {
    let byte = random.next() as u8;
    value(byte, dtype) as i32
}

fn random_case(seed: u64, sizes: [usize; 3], types: [DType; 2], transposed: [bool; 2]) -> Case {
    let mut random = Random(seed);
    let [m, n, k] = sizes;
    let zeros = if seed.is_multiple_of(3) && n > 0 { n } else { 1 };
    Case {
        sizes,
        types,
        transposed,
        left: random.bytes(m * k),
        right: random.bytes(k * n),
        left_zero: zero(&mut random, types[0]),
        right_zeros: (0..zeros).map(|_| zero(&mut random, types[1])).collect(),
        bias: if seed.is_multiple_of(2) {
            (0..n).map(|_| random.next() as i32 >> 8).collect()
        } else {
            Vec::new()
        },
    }
}

fn pairs_of_types() -> impl Iterator<Item = [DType; 2]> {
    TYPES.into_iter().flat_map(|left| TYPES.map(|right| [left, right]))
}

#[test]
fn every_size_around_a_tile_is_exact() {
    let mut seed = 1;
    for m in [1, 2, 3, 4, 5, 6, 7, 13, 14, 15, 29] {
        for n in [1, 15, 16, 17, 32, 33, 97] {
            for k in [1, 2, 3, 4, 5, 63, 64, 65, 131] {
                seed += 1;
                let types = [TYPES[seed % 2], TYPES[seed / 2 % 2]];
                let transposed = [seed % 5 == 0, seed % 7 == 0];
                check_sums(&random_case(seed as u64, [m, n, k], types, transposed));
            }
        }
    }
}

#[test]
fn empty_matrices_give_the_bias_or_nothing() {
    for sizes in [[3, 5, 0], [0, 5, 3], [3, 0, 5], [0, 0, 0]] {
        check_sums(&random_case(4, sizes, TYPES, [false; 2]));
    }
}

/// Extremes, at depths where a sum of 16 bits would have wrapped long ago, for every pair of types.
#[test]
fn extremes_do_not_saturate() {
    for types in pairs_of_types() {
        for (left, right) in [
            ([255, 255], [255, 255]),
            ([128, 128], [128, 128]),
            ([127, 127], [127, 127]),
            ([255, 0], [127, 128]),
            ([128, 127], [128, 127]),
            ([255, 255], [128, 128]),
        ] {
            for k in [1, 2, 129, 1031] {
                let [m, n] = [15, 33];
                let case = Case {
                    sizes: [m, n, k],
                    types,
                    transposed: [false; 2],
                    left: (0..m * k).map(|at| left[at % 2]).collect(),
                    right: (0..k * n).map(|at| right[at % 2]).collect(),
                    left_zero: value(left[1], types[0]) as i32,
                    right_zeros: vec![value(right[1], types[1]) as i32],
                    bias: Vec::new(),
                };
                check_sums(&case);
                check_sums(&Case { left_zero: 0, right_zeros: vec![0], ..case });
            }
        }
    }
}

/// The deepest product that 32 bits hold, with the largest values.
#[test]
fn the_deepest_sum_is_exact() {
    let k = 33_025;
    let case = Case {
        sizes: [2, 3, k],
        types: [DType::QUINT8; 2],
        transposed: [false, true],
        left: vec![255; 2 * k],
        right: vec![255; 3 * k],
        left_zero: 0,
        right_zeros: vec![0],
        bias: Vec::new(),
    };
    assert_eq!(case.sums(), [33_025 * 65_025; 6]);
    check_sums(&case);
}

fn check_output(case: &Case, range: QuantizedRange, width: Width, scales: &[f32]) {
    let sums = case.sums();
    let n = case.sizes[1];
    let scale = |j: usize| scales[j % scales.len()];
    let multiplier =
        |j: usize| Scale::new("scale", scale(j)).and_then(Multiplier::new).expect("in range");
    let [low, high] = range.steps();
    let bytes = |values: Vec<i32>| -> Vec<u8> {
        let width = if width == Width::Byte { 1 } else { 2 };
        values.iter().flat_map(|value| value.to_le_bytes()[..width].to_vec()).collect()
    };
    let each = |f: &dyn Fn(i32, usize) -> i32| {
        bytes(sums.iter().enumerate().map(|(at, &sum)| f(sum as i32, at % n)).collect())
    };
    let by_float = each(&|sum, j| multiply_by_float(sum, scale(j), [low, high]) + range.zero_point);
    let by_multiplier =
        each(&|sum, j| multiplier(j).apply(sum).clamp(low, high) + range.zero_point);
    for isa in supported() {
        let float = |padded| StageOf::Float((0..padded).map(scale).collect(), range, width);
        assert_eq!(case.run(isa, float), by_float, "{} {case:?}", isa.name);
        let parts = |padded| {
            let by = (0..padded).map(multiplier);
            let (mantissas, exponents) = by.map(|by| (by.mantissa(), by.exponent())).unzip();
            [mantissas, exponents]
        };
        let fixed = |padded| StageOf::Fixed(parts(padded), range, width);
        assert_eq!(case.run(isa, fixed), by_multiplier, "{} {case:?}", isa.name);
        let real: Vec<u8> = (sums.iter().enumerate())
            .flat_map(|(at, &sum)| (sum as i32 as f32 * scale(at % n)).to_le_bytes())
            .collect();
        let found = case.run(isa, |padded| StageOf::Real((0..padded).map(scale).collect()));
        assert_eq!(found, real, "{} {case:?}", isa.name);
    }
}

#[test]
fn ties_round_to_even_or_away_from_zero_as_the_stage_says() {
    // Sums from -40 to 40 times a half and a quarter.
    let case = Case {
        sizes: [81, 1, 1],
        types: [DType::QINT8; 2],
        transposed: [false; 2],
        left: (-40..=40i8).map(i8::cast_unsigned).collect(),
        right: vec![1],
        left_zero: 0,
        right_zeros: vec![0],
        bias: Vec::new(),
    };
    for zero_point in [0, 1, -3] {
        let range = QuantizedRange { zero_point, low: -128, high: 127 };
        check_output(&case, range, Width::Byte, &[0.5]);
        check_output(&case, range, Width::Word, &[0.25]);
    }
}

/// Sums at the ends of 32 bits, by multipliers on both sides of a quarter, from which on vectors leave the fixed point to
/// single lanes, and by the least of all.
#[test]
fn extreme_sums_are_requantised_exactly() {
    let bias: Vec<i32> = (0..32)
        .flat_map(|bit| [1i32 << bit, (1i32 << bit).wrapping_neg(), (1i32 << bit).wrapping_sub(1)])
        .collect();
    let n = bias.len();
    let case = Case {
        sizes: [3, n, 1],
        types: [DType::QUINT8, DType::QINT8],
        transposed: [false; 2],
        left: vec![0; 3],
        right: vec![1; n],
        left_zero: 0,
        right_zeros: vec![0],
        bias,
    };
    let quarter = 0.25f32;
    let scales = [
        2f32.powi(-32),
        3f32 * 2f32.powi(-32),
        2f32.powi(-25),
        0.1,
        quarter.next_down(),
        quarter,
        0.5f32.next_down(),
        0.5,
        1.0,
        3.0,
    ];
    for (low, high) in [(-128, 127), (0, 255), (-32_768, 32_767)] {
        let width = if high > 255 { Width::Word } else { Width::Byte };
        for zero_point in [low, 0, high] {
            let range = QuantizedRange { zero_point, low, high };
            for scale in scales {
                check_output(&case, range, width, &[scale]);
            }
            check_output(&case, range, width, &scales);
        }
    }
}

prop_compose! {
    fn cases()(
        m in 1usize..40, n in 1usize..70, k in 1usize..200, seed in any::<u64>(),
        left in 0usize..2, right in 0usize..2, transposed in any::<[bool; 2]>(),
    ) -> Case {
        random_case(seed, [m, n, k], [TYPES[left], TYPES[right]], transposed)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn sums_are_exact(case in cases()) {
        check_sums(&case);
    }

    #[test]
    fn outputs_are_those_of_the_stages(
        case in cases(),
        zero_point in -128..=127,
        bounds in any::<[u8; 2]>(),
        exponents in prop::collection::vec(-28f32..4.0, 1..4),
        words in any::<bool>(),
    ) {
        let bounds = bounds.map(|bound| i32::from(bound) - 128);
        let range = QuantizedRange {
            zero_point,
            low: bounds[0].min(bounds[1]),
            high: bounds[0].max(bounds[1]),
        };
        let scales: Vec<f32> = exponents.iter().map(|exponent| exponent.exp2()).collect();
        let width = if words { Width::Word } else { Width::Byte };
        check_output(&case, range, width, &scales);
    }
}

#[test]
fn the_knob_forces_what_the_cpu_has() {
    let name = |forced: &str, has: &dyn Fn(&Isa) -> bool| {
        choose(ALL, forced, has).map(|isa| isa.name).map_err(|error| error.message)
    };
    assert_eq!(name("", &|_| true), Ok(ALL[0].name));
    assert_eq!(name("", &|isa| isa.name == "portable"), Ok("portable"));
    assert_eq!(name("portable", &|_| true), Ok("portable"));
    let refused = name("mmx", &|isa| isa.name == "portable").expect_err("no such set");
    assert_eq!(refused, "knob isa: expected one of portable, which this CPU has, found 'mmx'");
}
