//! What moves memory, on the fake CUDA stack, at the sizes at which kernels change their ways: rows that a few lanes,
//! warps, blocks or several passes take, planes that are transposed in elements, words and packs, whole numbers that are
//! divided. What is expected is computed here, in f64, by index or in i128.

use tenon_graph::{GraphError, NodeBuilder, Output};
use tenon_runtime::framework::{DType, PartialShape, Tensor, element::Element};
use tenon_tests::{
    cuda::cuda_runtime,
    session::{run, session_as_written, turn, values},
};

const CUDA: &str = "/device:CUDA:0";
const CPU: &str = "/device:CPU:0";

fn tensor<T: Element>(dims: &[i64], values: &[T]) -> Tensor {
    Tensor::from_slice(dims, values).expect("as many values as the shape has")
}

/// Multiples of 1/8 from -6 to 6, which every float type holds.
fn eighths(count: i64, seed: i64) -> Vec<f32> {
    let value = |at: i64| ((at * 37 + at / 11 * 5 + seed) % 97 - 48) as f32 / 8.0;
    (0..count).map(value).collect()
}

/// Outputs of an op on CUDA, as floats: the first `casts` inputs are floats that become `ty`.
fn outputs(
    op: &str,
    ty: DType,
    (inputs, casts): (&[Tensor], usize),
    count: usize,
    attrs: impl for<'a, 'r> Fn(NodeBuilder<'a, 'r>) -> NodeBuilder<'a, 'r>,
) -> Vec<Vec<f32>> {
    let names: Vec<String> = (0..inputs.len()).map(|at| format!("x{at}")).collect();
    let session = session_as_written(&cuda_runtime(&[]), |b| {
        let mut given = Vec::new();
        for (at, (name, input)) in names.iter().zip(inputs).enumerate() {
            let shape = PartialShape::new(input.shape().dims()).expect("a shape");
            let x = b.placeholder(name, input.dtype(), shape)?;
            given.push(match at < casts {
                true => b.op("Cast").input(x).attr("DstT", ty).device(CPU).build()?.into(),
                false => x,
            });
        }
        let node = attrs(b.op(op).name("op").inputs(given).device(CUDA)).build()?;
        for at in 0..count {
            let name = format!("y{at}");
            let cast =
                b.op("Cast").name(&name).input(Output { node, output: at as u32 }).device(CPU);
            cast.attr("DstT", DType::FLOAT).build()?;
        }
        Ok::<_, GraphError>(())
    });
    let feeds: Vec<_> = names.iter().map(String::as_str).zip(inputs.iter().cloned()).collect();
    let fetches: Vec<String> = (0..count).map(|at| format!("y{at}")).collect();
    let fetches: Vec<&str> = fetches.iter().map(String::as_str).collect();
    run(&session, &feeds, &fetches).expect("the step runs").iter().map(values).collect()
}

fn assert_near(what: &str, found: &[f32], expected: &[f64], within: f64) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        let difference = (f64::from(*found) - expected).abs();
        assert!(
            difference <= within * (1.0 + expected.abs()),
            "{what}: y[{at}] is {found}, expected {expected}"
        );
    }
}

/// What rounding to a type, and sums in the type that it computes in, may come to.
fn within(ty: DType) -> f64 {
    match ty {
        DType::HALF => 1e-3,
        DType::BFLOAT16 => 1e-2,
        _ => 4e-6,
    }
}

/// Rows and columns: those of one lane and of several, of a warp, of blocks of 1 to 8 warps, of several passes; whole
/// packs and not; rows that do not fill a warp's groups.
const SHAPES: [[i64; 2]; 19] = [
    [70, 1],
    [33, 3],
    [45, 8],
    [37, 9],
    [19, 16],
    [13, 31],
    [5, 64],
    [5, 100],
    [3, 255],
    [3, 256],
    [3, 257],
    [2, 1000],
    [2, 1024],
    [2, 1025],
    [2, 2048],
    [1, 4100],
    [2, 8192],
    [2, 8200],
    [1, 8193],
];
const TYPES: [DType; 3] = [DType::FLOAT, DType::HALF, DType::DOUBLE];

/// Powers of a row, their sum, and the logits below the greatest one.
fn soft(row: &[f32]) -> (Vec<f64>, f64, Vec<f64>) {
    let most = row.iter().copied().fold(f32::MIN, f32::max);
    let below: Vec<f64> = row.iter().map(|x| f64::from(x - most)).collect();
    let powers: Vec<f64> = below.iter().map(|x| x.exp()).collect();
    let sum = powers.iter().sum();
    (powers, sum, below)
}

#[test]
fn softmax_of_rows_of_every_length() {
    let _turn = turn();
    for ty in TYPES {
        for dims @ [rows, cols] in SHAPES {
            let x = eighths(rows * cols, 3);
            let all = x.chunks(cols as usize).map(soft);
            let expected: Vec<[Vec<f64>; 2]> = all
                .map(|(powers, sum, below)| {
                    let shares = powers.iter().map(|power| power / sum).collect();
                    [shares, below.iter().map(|x| x - sum.ln()).collect()]
                })
                .collect();
            for (at, op) in ["Softmax", "LogSoftmax"].into_iter().enumerate() {
                let found = outputs(op, ty, (&[tensor(&dims, &x)], 1), 1, |node| node);
                let expected: Vec<f64> =
                    expected.iter().flat_map(|both| both[at].clone()).collect();
                assert_near(&format!("{op} of {ty} {dims:?}"), &found[0], &expected, within(ty));
            }
        }
    }
}

#[test]
fn layer_norm_of_rows_of_every_length() {
    let _turn = turn();
    for ty in [DType::FLOAT, DType::HALF] {
        for dims @ [rows, cols] in SHAPES {
            let x = eighths(rows * cols, 5);
            let [scale, offset] = [7, 11].map(|seed| eighths(cols, seed));
            let affine = scale.iter().zip(&offset).map(|(s, o)| (f64::from(*s), f64::from(*o)));
            let affine: Vec<(f64, f64)> = affine.collect();
            let mut expected = Vec::new();
            for row in x.chunks(cols as usize) {
                let mean = row.iter().copied().map(f64::from).sum::<f64>() / cols as f64;
                let off = |x: &f32| f64::from(*x) - mean;
                let variance = row.iter().map(|x| off(x).powi(2)).sum::<f64>() / cols as f64;
                let root = (variance + 0.001f32 as f64).sqrt();
                let both = row.iter().zip(&affine);
                expected.extend(both.map(|(x, (scale, offset))| off(x) / root * scale + offset));
            }
            let inputs = [tensor(&dims, &x), tensor(&[cols], &scale), tensor(&[cols], &offset)];
            let found = outputs("_FusedLayerNorm", ty, (&inputs, 3), 1, |node| node);
            assert_near(&format!("norm of {ty} {dims:?}"), &found[0], &expected, within(ty) * 4.0);
        }
    }
}

#[test]
fn losses_of_rows_of_every_length() {
    let _turn = turn();
    for (ty, dims) in SHAPES.map(|dims| (DType::FLOAT, dims)).into_iter().chain([
        (DType::HALF, [21, 24]),
        (DType::HALF, [3, 520]),
        (DType::DOUBLE, [9, 14]),
    ]) {
        let [rows, cols] = dims;
        let x = eighths(rows * cols, 1);
        let classes: Vec<i32> = (0..rows as i32).map(|row| row * 5 % cols as i32).collect();
        let shares: Vec<f32> = eighths(rows * cols, 2).iter().map(|x| x.abs() / 8.0).collect();
        let mut expected = [const { Vec::new() }; 4];
        for (row, x) in x.chunks(cols as usize).enumerate() {
            let (powers, sum, below) = soft(x);
            let own = &shares[row * cols as usize..][..cols as usize];
            let term = |at: usize| sum.ln() - below[at];
            let dense = own.iter().enumerate().map(|(at, share)| f64::from(*share) * term(at));
            expected[0].push(dense.sum());
            expected[2].push(term(classes[row] as usize));
            for (at, power) in powers.iter().enumerate() {
                expected[1].push(power / sum - f64::from(own[at]));
                expected[3].push(power / sum - f64::from(at == classes[row] as usize));
            }
        }
        let x = tensor(&dims, &x);
        let labels = [tensor(&dims, &shares), tensor(&[rows], &classes)];
        let ops = ["SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits"];
        for (at, (op, labels)) in ops.into_iter().zip(labels).enumerate() {
            let found = outputs(op, ty, (&[x.clone(), labels], 2 - at), 2, |node| node);
            for (found, expected) in found.iter().zip(&expected[2 * at..]) {
                assert_near(&format!("{op} of {ty} {dims:?}"), found, expected, within(ty) * 2.0);
            }
        }
    }
}

#[test]
fn the_greatest_predictions_of_rows_of_every_length() {
    let _turn = turn();
    for dims @ [rows, cols] in SHAPES {
        let x = eighths(rows * cols, 4);
        let targets: Vec<i32> = (0..rows as i32).map(|row| row * 3 % (cols as i32 + 1)).collect();
        let among = |(row, target): (usize, &i32)| {
            let row = &x[row * cols as usize..][..cols as usize];
            let own = row.get(*target as usize);
            own.map_or(0.0, |own| f64::from(row.iter().filter(|x| *x > own).count() < 4))
        };
        let expected: Vec<f64> = targets.iter().enumerate().map(among).collect();
        let inputs = [tensor(&dims, &x), tensor(&[rows], &targets)];
        let found = outputs("InTopK", DType::FLOAT, (&inputs, 0), 1, |node| node.attr("k", 4i64));
        assert_near(&format!("InTopK {dims:?}"), &found[0], &expected, 0.0);
    }
}

/// Where element `at` of the output comes from.
fn source(dims: &[i64], perm: &[i32], mut at: i64) -> i64 {
    let mut steps = vec![1; dims.len()];
    (0..dims.len() - 1).rev().for_each(|d| steps[d] = steps[d + 1] * dims[d + 1]);
    let mut from = 0;
    for &d in perm.iter().rev() {
        from += at % dims[d as usize] * steps[d as usize];
        at /= dims[d as usize];
    }
    from
}

#[test]
fn planes_are_transposed_in_elements_words_and_packs() {
    let _turn = turn();
    let cases: [(&[i64], &[i32]); 9] = [
        // Whole packs of every type, in part of a tile and in several.
        (&[16, 32], &[1, 0]),
        (&[144, 272], &[1, 0]),
        (&[3, 80, 48], &[0, 2, 1]),
        (&[32, 5, 64], &[2, 1, 0]),
        // Whole packs of large elements, words of small ones.
        (&[36, 76], &[1, 0]),
        (&[70, 34], &[1, 0]),
        (&[2, 20, 3, 12], &[0, 3, 2, 1]),
        // Neither.
        (&[33, 65], &[1, 0]),
        (&[3, 11, 9], &[2, 0, 1]),
    ];
    for ty in [DType::UINT8, DType::HALF, DType::FLOAT, DType::DOUBLE] {
        for (dims, perm) in cases {
            let count: i64 = dims.iter().product();
            let x: Vec<f32> = (0..count).map(|at| (at * 7 % 251) as f32).collect();
            let inputs = [tensor(dims, &x), tensor(&[perm.len() as i64], perm)];
            let found = outputs("Transpose", ty, (&inputs, 1), 1, |node| node);
            let expected: Vec<f64> =
                (0..count).map(|at| f64::from(x[source(dims, perm, at) as usize])).collect();
            assert_near(&format!("transpose of {ty} {dims:?} {perm:?}"), &found[0], &expected, 0.0);
        }
    }
}

/// A number of some type, as that type keeps it.
fn wrapped(x: i128, bits: u32, signed: bool) -> i128 {
    let low = x & ((1 << bits) - 1);
    if signed && low >> (bits - 1) == 1 { low - (1 << bits) } else { low }
}

/// What each op is to give, where it has the type.
fn divided(op: &str, x: i128, y: i128) -> i128 {
    let floor = |x: i128, y: i128| x.div_euclid(y) - i128::from(y < 0 && x.rem_euclid(y) != 0);
    match (op, y) {
        ("Pow", _) if y < 0 => 0,
        ("Pow", _) => (0..y).fold(1, |power: i128, _| (power * x) & i128::from(u64::MAX)),
        (_, 0) => 0,
        ("Div" | "TruncateDiv", _) => x / y,
        ("FloorDiv", _) => floor(x, y),
        ("FloorMod", _) => x - y * floor(x, y),
        _ => x % y,
    }
}

fn divide<T: Element + Copy + Into<i128> + TryFrom<i128>>(ops: &[&str]) {
    let bits = 8 * size_of::<T>() as u32;
    let signed = T::try_from(-1).is_ok();
    let (least, most) = match signed {
        true => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
        false => (0, (1i128 << bits) - 1),
    };
    let some = [least, least + 1, -7, -3, -1, 0, 1, 2, 3, 5, 7, 100, most - 1, most];
    let some: Vec<T> = some.into_iter().filter_map(|x| T::try_from(x).ok()).collect();
    let pairs: Vec<(T, T)> = some.iter().flat_map(|x| some.iter().map(|y| (*x, *y))).collect();
    for &op in ops {
        // Powers with an exponent that a test can take step by step.
        let of = |(_, y): &&(T, T)| op != "Pow" || Into::<i128>::into(*y) <= 100;
        let pairs: Vec<(T, T)> = pairs.iter().filter(of).copied().collect();
        let (x, y): (Vec<T>, Vec<T>) = pairs.iter().copied().unzip();
        let dims = [x.len() as i64];
        let session = session_as_written(&cuda_runtime(&[]), |b| {
            let shape = PartialShape::new(&dims).expect("a shape");
            let x = b.placeholder("x", T::DTYPE, shape.clone())?;
            let y = b.placeholder("y", T::DTYPE, shape)?;
            b.op(op).name("z").input(x).input(y).device(CUDA).build()?;
            Ok(())
        });
        let feeds = [("x", tensor(&dims, &x)), ("y", tensor(&dims, &y))];
        let z = run(&session, &feeds, &["z"]).expect("the step runs");
        for ((x, y), z) in pairs.into_iter().zip(z[0].as_slice::<T>().expect("its type")) {
            let (x, y, z): (i128, i128, i128) = (x.into(), y.into(), (*z).into());
            let expected = wrapped(divided(op, x, y), bits, signed);
            assert_eq!(z, expected, "{op} of {}: {x}, {y}", T::DTYPE);
        }
    }
}

#[test]
fn whole_numbers_are_divided_and_what_cannot_be_is_0() {
    let _turn = turn();
    let all = ["Div", "TruncateDiv", "FloorDiv", "FloorMod"];
    divide::<i8>(&[&all[..], &["Pow"]].concat());
    divide::<i32>(&[&all[..], &["Mod", "TruncateMod", "Pow"]].concat());
    divide::<i64>(&[&all[..], &["Mod", "TruncateMod", "Pow"]].concat());
    divide::<u8>(&all);
    divide::<u64>(&all);
}
