//! Products by every instruction set that this CPU has, beside sums of doubles.

use super::{
    blocks::Product,
    ending::{Ending, Finish},
    isa::{Isa, Tiled},
    left::Left,
    matrices,
    right::{PackedRight, Right, pack, packed_len},
};
use crate::{
    kernels::linalg::product::{Factor, Operand, Target},
    lane::Compute,
    testing::values,
};
use half::{bf16, f16};
use std::{ops::Range, sync::Mutex};

/// Rows, columns and depth of products: of one tile, of parts of a tile, of several blocks and
/// slices, and of empty products.
const SIZES: [[usize; 3]; 15] = [
    [1, 1, 5],
    [1, 48, 64],
    [1, 100, 33],
    [2, 65, 31],
    [3, 17, 1],
    [7, 16, 9],
    [8, 96, 50],
    [9, 47, 129],
    [64, 64, 64],
    [33, 130, 700],
    [17, 33, 1500],
    [70, 3, 20],
    [5, 9, 0],
    [200, 50, 16],
    [20, 150, 700],
];

fn supported<S: Factor + Tiled>() -> impl Iterator<Item = &'static Isa<S>> {
    S::ALL.iter().copied().filter(|isa| isa.is_supported())
}

/// Asserts that results are the sums of products, to within the given count of roundings of the sum
/// of their absolute values.
fn assert_product<S: Factor>(
    [m, n, k]: [usize; 3],
    a: impl Fn(usize, usize) -> f64,
    b: impl Fn(usize, usize) -> f64,
    found: &[S],
    name: &str,
) {
    let epsilon = if size_of::<S>() == 4 { 2f64.powi(-24) } else { 2f64.powi(-53) };
    for (at, &found) in found.iter().enumerate() {
        let terms = (0..k).map(|p| a(at / n, p) * b(p, at % n));
        let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), x: f64| (sum + x, size + x.abs()));
        let error = (found.to_f64() - sum).abs();
        assert!(error <= 8.0 * epsilon * size, "{name} {m}x{n}x{k}: {at} is {found:?}, not {sum}");
    }
}

/// Checks products with the rows of `A` dense, apart and transposed, and the columns of `B`
/// likewise.
fn check_layouts<S: Factor + Tiled>() {
    for (isa, [m, n, k]) in supported::<S>().flat_map(|isa| SIZES.map(|size| (isa, size))) {
        let (a, b) =
            (values::<S>(m * (k + 3) + k * (m + 1), 1), values::<S>(k * (n + 5) + n * (k + 2), 2));
        let lefts = [[k, 1], [k + 3, 1], [1, m + 1]];
        let rights = [[n, 1], [n + 5, 1], [1, k + 2]];
        for (a_strides, b_strides) in lefts.into_iter().flat_map(|a| rights.map(|b| (a, b))) {
            let left = Operand { data: &a, rows: m, cols: k, strides: a_strides };
            let right = Operand { data: &b, rows: k, cols: n, strides: b_strides };
            let mut found = vec![S::ONE; m * n];
            // SAFETY: the target is the whole vector.
            let target = unsafe { Target::new(found.as_mut_ptr(), m, n, [n, 1]) };
            matrices::alone(isa, &left, &right, &target);
            let at = |data: &[S], strides: [usize; 2], i: usize, j: usize| {
                data[i * strides[0] + j * strides[1]].to_f64()
            };
            assert_product(
                [m, n, k],
                |i, p| at(&a, a_strides, i, p),
                |p, j| at(&b, b_strides, p, j),
                &found,
                isa.name,
            );
        }
    }
}

#[test]
fn every_instruction_set_multiplies_every_layout() {
    check_layouts::<f32>();
    check_layouts::<f64>();
}

fn packed<'p, S: Factor, T: Compute<Wide = S>>(
    isa: &'static Isa<S>,
    matrix: &Operand<'_, T>,
    memory: &'p mut Vec<S>,
) -> Right<'p, S> {
    let size = [matrix.rows, matrix.cols];
    *memory = vec![S::ONE; packed_len(isa, size).expect("it is small")];
    pack(isa, matrix, 0..matrix.cols.div_ceil(isa.columns), memory);
    Right::packed(isa, size, memory)
}

/// Cuts a product into strips and panels.
type Cuts<'c, S> = &'c dyn Fn(&Product<'_, S>) -> Vec<[Range<usize>; 2]>;

/// Checks that parts of the results, in any order and cut anywhere, equal those of the whole, to
/// the bit.
fn check_parts<S: Factor + Tiled>() {
    let [m, n, k] = [100, 230, 1400];
    let (a, b) = (values::<S>(m * k, 1), values::<S>(k * n, 2));
    let (a, b) = (Operand::dense(&a, m, k), Operand::dense(&b, k, n));
    for isa in supported::<S>() {
        let mut memory = Vec::new();
        let right = packed(isa, &b, &mut memory);
        let run = |parts: Cuts<'_, S>| {
            let mut found = vec![S::ONE; m * n];
            // SAFETY: the target is the whole vector.
            let target = unsafe { Target::new(found.as_mut_ptr(), m, n, [n, 1]) };
            let product = Product::new(&a, right, &target, Ending::NONE);
            for [strips, panels] in parts(&product) {
                // SAFETY: the parts are computed one after the other.
                unsafe { product.run(strips, panels) };
            }
            found
        };
        let whole = run(&|p| vec![[0..p.strips(), 0..p.panels()]]);
        let rows = run(&|p| (0..p.strips()).rev().map(|at| [at..at + 1, 0..p.panels()]).collect());
        let columns =
            run(&|p| (0..p.panels()).rev().map(|at| [0..p.strips(), at..at + 1]).collect());
        assert!(whole == rows && whole == columns, "{}", isa.name);
        let mut target = vec![S::ONE; m * n];
        // SAFETY: the target is the whole vector.
        let to = unsafe { Target::new(target.as_mut_ptr(), m, n, [n, 1]) };
        matrices::alone(isa, &a, &b, &to);
        assert!(whole == target, "{}: on its own", isa.name);
    }
}

#[test]
fn results_do_not_depend_on_how_a_product_is_split() {
    check_parts::<f32>();
    check_parts::<f64>();
}

/// The function that follows gets every result once, with its position, after the result is stored.
#[test]
fn what_comes_after_sees_every_result_once() {
    for (isa, [m, n, k]) in supported::<f32>().flat_map(|isa| SIZES.map(|size| (isa, size))) {
        let (a, b) = (values::<f32>(m * k, 1), values::<f32>(k * n, 2));
        let (a, b) = (Operand::dense(&a, m, k), Operand::dense(&b, k, n));
        let mut memory = Vec::new();
        let right = packed(isa, &b, &mut memory);
        for stride in [n, n + 3] {
            let mut found = vec![-1.0; m * stride];
            let seen = Mutex::new(vec![f32::NAN; m * stride]);
            let after = |first: usize, y: &mut [f32]| {
                let mut seen = seen.lock().expect("no panic");
                for (seen, y) in seen[first..].iter_mut().zip(y) {
                    assert!(seen.is_nan(), "seen before");
                    (*seen, *y) = (*y, *y + 1.0);
                }
            };
            // SAFETY: the target is the whole vector.
            let target = unsafe { Target::new(found.as_mut_ptr(), m, n, [stride, 1]) };
            let product = Product::new(&a, right, &target, Ending::after(Some(&after)));
            // SAFETY: only this call uses the target.
            unsafe { product.run(0..product.strips(), 0..product.panels()) };
            let seen = seen.into_inner().expect("no panic");
            for (at, (found, seen)) in found.into_iter().zip(seen).enumerate() {
                match at % stride < n {
                    true => assert_eq!(found, seen + 1.0, "{}: {at}", isa.name),
                    false => assert!(found == -1.0 && seen.is_nan(), "{}: {at}", isa.name),
                }
            }
        }
    }
}

/// Checks that finishing sums in registers gives the results of the same steps, one after the
/// other.
fn check_finish<S: Factor + Tiled>() {
    const SIZES: [[usize; 3]; 5] =
        [[1, 48, 64], [7, 16, 9], [9, 47, 12], [17, 33, 1500], [5, 9, 0]];
    for (isa, [m, n, k]) in supported::<S>().flat_map(|isa| SIZES.map(|size| (isa, size))) {
        let (a, b) = (values::<S>(m * k, 1), values::<S>(k * n, 2));
        let (a, b) = (Operand::dense(&a, m, k), Operand::dense(&b, k, n));
        let [bias, mean, factor, offset] = [3, 4, 5, 6].map(|seed| values::<S>(n, seed));
        let (mut other, high) = (values::<S>(m * n, 7), S::from_f64(0.75));
        other.iter_mut().step_by(11).for_each(|x| *x = S::from_f64(f64::NAN));
        let mut memory = Vec::new();
        let right = packed(isa, &b, &mut memory);
        let run = |finish| {
            let mut found = vec![S::ONE; m * n];
            // SAFETY: the target is the whole vector.
            let target = unsafe { Target::new(found.as_mut_ptr(), m, n, [n, 1]) };
            let product = Product::new(&a, right, &target, Ending { finish, ..Ending::NONE });
            // SAFETY: only this call uses the target.
            unsafe { product.run(0..product.strips(), 0..product.panels()) };
            found
        };
        let sums = run(Finish::NONE);
        for choice in 0..16 {
            let chosen = |bit: usize| choice >> bit & 1 == 1;
            let found = run(Finish {
                bias: chosen(0).then_some(&bias[..]),
                affine: chosen(1).then_some([&mean[..], &factor, &offset]),
                other: chosen(2).then_some(&other[..]),
                high: chosen(3).then_some(high),
            });
            for (at, (&found, &sum)) in found.iter().zip(&sums).enumerate() {
                let column = at % n;
                let mut x = sum;
                if chosen(0) {
                    x = x.add(bias[column]);
                }
                if chosen(1) {
                    x = x.sub(mean[column]).mul(factor[column]).add(offset[column]);
                }
                if chosen(2) {
                    x = x.add(other[at]);
                }
                if chosen(3) {
                    x = x.clamped(high);
                }
                let same = found == x || found.to_f64().is_nan() && x.to_f64().is_nan();
                assert!(same, "{} {m}x{n}x{k}, {choice:04b}, {at}: {found:?}, not {x:?}", isa.name);
            }
        }
    }
}

#[test]
fn sums_are_finished_in_registers_as_they_would_be_one_step_after_the_other() {
    check_finish::<f32>();
    check_finish::<f64>();
}

/// Checks that 16-bit floats are widened as they are packed.
fn check_narrow<T: Compute<Wide = f32>>() {
    let [m, n, k] = [19, 70, 45];
    let (a, b) = (values::<T>(m * k, 1), values::<T>(k * n, 2));
    let (left, right) = (Operand::dense(&a, m, k), Operand::dense(&b, k, n));
    for isa in supported::<f32>() {
        let constant = PackedRight::new(isa, &right).expect("it is small");
        let mut unpacked = vec![0.0; k * n];
        constant.unpack(&mut unpacked);
        assert!(unpacked.iter().zip(&b).all(|(&found, b)| found == b.up()), "{}", isa.name);
        let mut found = vec![1.0; m * n];
        // SAFETY: the target is the whole vector.
        let target = unsafe { Target::new(found.as_mut_ptr(), m, n, [n, 1]) };
        let left: &dyn Left<f32> = &left;
        let product = Product::new(left, constant.view(), &target, Ending::NONE);
        // SAFETY: only this call uses the target.
        unsafe { product.run(0..product.strips(), 0..product.panels()) };
        let (a, b) = (
            |i: usize, p: usize| a[i * k + p].to_f64(),
            |p: usize, j: usize| b[p * n + j].to_f64(),
        );
        assert_product([m, n, k], a, b, &found, isa.name);
    }
}

#[test]
fn narrow_floats_are_widened() {
    check_narrow::<f16>();
    check_narrow::<bf16>();
}
