//! The forms in which each op is timed: shapes and attributes that its code treats differently.
//!
//! A form is made for an element type and a size: about so many elements in its largest tensor. An op that the
//! plugin has a reference kernel for and that has no forms here is an error of the program, so that none is left
//! out.

use crate::input::{Range, attrs, ints, number, numbers, pairs, text, values};
use tenon_framework::{
    DType, Tensor,
    attr::{AttrMap, AttrValue},
};

/// One form of an op.
pub struct Form {
    /// What sets it apart from the op's other forms.
    pub name: &'static str,
    /// Attributes; those that are left out have their defaults.
    pub attrs: AttrMap,
    /// Inputs.
    pub inputs: Vec<Tensor>,
}

/// What forms are made for.
#[derive(Clone, Copy)]
pub struct Size {
    /// Element type.
    pub dtype: DType,
    /// About how many elements.
    pub elements: usize,
    /// `rows * cols` is about as many, and neither is a power of two.
    pub rows: usize,
    /// See `rows`.
    pub cols: usize,
    /// Side of a square with about as many.
    pub side: usize,
}

impl Size {
    /// A size.
    pub fn new(dtype: DType, elements: usize) -> Size {
        let side = (elements as f64).sqrt() as usize;
        let cols = (side * 5 / 4).max(1);
        Size { dtype, elements, rows: (elements / cols).max(1), cols, side: side.max(1) }
    }

    /// Values of both signs.
    pub fn input(&self, dims: &[usize], seed: u64) -> Tensor {
        values(self.dtype, dims, Range::Signed, seed)
    }

    /// Values above zero.
    pub fn positive(&self, dims: &[usize], seed: u64) -> Tensor {
        values(self.dtype, dims, Range::Positive, seed)
    }

    /// A form with attribute `T`.
    pub fn form(&self, name: &'static str, inputs: Vec<Tensor>) -> Form {
        Form { name, attrs: attrs([("T", AttrValue::Type(self.dtype))]), inputs }
    }
}

impl Form {
    /// The form with one more attribute.
    pub fn with(mut self, name: &str, value: AttrValue) -> Form {
        self.attrs.insert(name.to_owned(), value);
        self
    }
}

/// The forms of an op; `None` where nobody wrote any.
pub fn forms(op: &str, size: &Size) -> Option<Vec<Form>> {
    Some(match op {
        "Neg" | "Square" | "Exp" | "Tanh" | "Sigmoid" | "Relu" | "Relu6" => {
            vec![size.form("vector", vec![size.input(&[size.elements], 1)])]
        }
        "Sqrt" | "Rsqrt" | "Log" => {
            vec![size.form("vector", vec![size.positive(&[size.elements], 1)])]
        }
        "Add" | "AddV2" | "Sub" | "Mul" | "RealDiv" | "Maximum" | "Minimum" => binary(size),
        "AddN" => vec![add_n("two", size, 2), add_n("ten", size, 10)],
        "Cast" => casts(size),
        "Sum" | "Mean" | "Max" => reductions(size),
        "ArgMax" => arg_max(size),
        "MatMul" => products(size),
        "BatchMatMulV2" => batches(size),
        "ConcatV2" => concats(size),
        "Pack" => packs(size),
        "Pad" => pads(size),
        "Fill" => fills(size),
        "StridedSlice" => slices(size),
        "Transpose" => transposes(size),
        "BiasAdd" => biases(size),
        "Softmax" => softmaxes(size),
        _ => return crate::images::forms(op, size),
    })
}

fn binary(s: &Size) -> Vec<Form> {
    let (r, c) = (s.rows, s.cols);
    let two = |name, x: &[usize], y: &[usize]| s.form(name, vec![s.input(x, 1), s.positive(y, 2)]);
    vec![
        two("same", &[s.elements], &[s.elements]),
        two("scalar", &[s.elements], &[]),
        two("scalar_left", &[], &[s.elements]),
        two("row", &[r, c], &[c]),
        two("row_left", &[c], &[r, c]),
        two("column", &[r, c], &[r, 1]),
        two("outer", &[r, 1], &[1, c]),
        two("middle", &[r, c / 5, 5], &[r, 1, 5]),
    ]
}

fn add_n(name: &'static str, s: &Size, count: usize) -> Form {
    let inputs = (0..count).map(|at| s.input(&[s.elements], at as u64 + 1)).collect();
    s.form(name, inputs).with("N", AttrValue::Int(count as i64))
}

fn casts(s: &Size) -> Vec<Form> {
    let to = |(name, target): (&'static str, DType)| Form {
        name,
        attrs: attrs([("SrcT", AttrValue::Type(s.dtype)), ("DstT", AttrValue::Type(target))]),
        inputs: vec![s.input(&[s.elements], 1)],
    };
    let targets = [
        ("to_float", DType::FLOAT),
        ("to_double", DType::DOUBLE),
        ("to_half", DType::HALF),
        ("to_bfloat16", DType::BFLOAT16),
        ("to_int8", DType::INT8),
        ("to_int32", DType::INT32),
        ("to_int64", DType::INT64),
        ("to_uint8", DType::UINT8),
        ("to_bool", DType::BOOL),
    ];
    targets.into_iter().map(to).collect()
}

fn reductions(s: &Size) -> Vec<Form> {
    let (r, c) = (s.rows, s.cols);
    let over =
        |name, dims: &[usize], axes: &[i32]| s.form(name, vec![s.input(dims, 1), numbers(axes)]);
    vec![
        over("all", &[s.elements], &[0]),
        over("last", &[r, c], &[1]),
        over("first", &[r, c], &[0]),
        over("middle", &[5, r / 5, c], &[1]),
        over("outer", &[r / 5, c, 5], &[0, 2]),
        over("last_short", &[s.elements / 4, 4], &[1]),
    ]
}

fn arg_max(s: &Size) -> Vec<Form> {
    let (r, c) = (s.rows, s.cols);
    let along = |name, dims: &[usize], axis| s.form(name, vec![s.input(dims, 1), number(axis)]);
    vec![
        along("all", &[s.elements], 0),
        along("last", &[r, c], 1),
        along("first", &[r, c], 0),
        along("middle", &[5, r / 5, c], 1),
        along("last_short", &[s.elements / 4, 4], 1),
    ]
}

fn products(s: &Size) -> Vec<Form> {
    let n = s.side;
    let product = |name, a: &[usize], b: &[usize], flags: [bool; 2]| {
        s.form(name, vec![s.input(a, 1), s.input(b, 2)])
            .with("transpose_a", AttrValue::Bool(flags[0]))
            .with("transpose_b", AttrValue::Bool(flags[1]))
    };
    vec![
        product("square", &[n, n], &[n, n], [false, false]),
        product("left_transposed", &[n, n], &[n, n], [true, false]),
        product("right_transposed", &[n, n], &[n, n], [false, true]),
        product("both_transposed", &[n, n], &[n, n], [true, true]),
        product("row", &[1, s.rows], &[s.rows, s.cols], [false, false]),
        product("row_transposed", &[1, s.cols], &[s.rows, s.cols], [false, true]),
        product("column", &[s.rows, s.cols], &[s.cols, 1], [false, false]),
        product("inner", &[1, s.elements], &[s.elements, 1], [false, false]),
        product("outer", &[s.rows, 1], &[1, s.cols], [false, false]),
        product("few_rows", &[4, s.rows], &[s.rows, s.cols], [false, false]),
    ]
}

fn batches(s: &Size) -> Vec<Form> {
    let small = (s.elements / 64).max(1);
    let large = (s.elements / 1024).max(1);
    let batch = |name, x: &[usize], y: &[usize], flags: [bool; 2]| {
        s.form(name, vec![s.input(x, 1), s.input(y, 2)])
            .with("adj_x", AttrValue::Bool(flags[0]))
            .with("adj_y", AttrValue::Bool(flags[1]))
    };
    vec![
        batch("small", &[small, 8, 8], &[small, 8, 8], [false, false]),
        batch("small_adjoint", &[small, 8, 8], &[small, 8, 8], [true, true]),
        batch("large", &[large, 32, 32], &[large, 32, 32], [false, false]),
        batch("broadcast", &[small, 8, 8], &[8, 8], [false, false]),
        batch("rows", &[small, 1, 64], &[64, 8], [false, false]),
    ]
}

fn concats(s: &Size) -> Vec<Form> {
    let joined = |name, dims: &[usize], count: usize, axis: i32| {
        let mut inputs: Vec<_> = (0..count).map(|at| s.input(dims, at as u64 + 1)).collect();
        inputs.push(number(axis));
        s.form(name, inputs).with("N", AttrValue::Int(count as i64))
    };
    let (r, c) = (s.rows, s.cols);
    vec![
        joined("first_axis", &[r / 2, c], 2, 0),
        joined("last_axis", &[r, c / 2], 2, 1),
        joined("columns", &[s.elements / 2, 1], 2, 1),
        joined("ten", &[r, c / 10], 10, 1),
    ]
}

fn packs(s: &Size) -> Vec<Form> {
    let packed = |name, count: usize, axis: i64| {
        let dims = [s.elements / count];
        let inputs = (0..count).map(|at| s.input(&dims, at as u64 + 1)).collect();
        s.form(name, inputs)
            .with("N", AttrValue::Int(count as i64))
            .with("axis", AttrValue::Int(axis))
    };
    vec![packed("first_axis", 2, 0), packed("last_axis", 2, -1), packed("ten_last", 10, -1)]
}

fn pads(s: &Size) -> Vec<Form> {
    let padded =
        |name, dims: &[usize], by: &[[i32; 2]]| s.form(name, vec![s.input(dims, 1), pairs(by)]);
    let channels = (s.elements / 64).max(1);
    vec![
        padded("vector", &[s.elements], &[[3, 5]]),
        padded("matrix", &[s.rows, s.cols], &[[1, 1], [2, 1]]),
        padded("image", &[1, 8, 8, channels], &[[0, 0], [1, 1], [1, 1], [0, 0]]),
        padded("columns", &[s.elements / 4, 4], &[[0, 0], [0, 1]]),
    ]
}

fn fills(s: &Size) -> Vec<Form> {
    let filled = |name, dims: &[i32]| s.form(name, vec![numbers(dims), s.positive(&[], 1)]);
    vec![filled("vector", &[s.elements as i32]), filled("matrix", &[s.rows as i32, s.cols as i32])]
}

fn slices(s: &Size) -> Vec<Form> {
    let slice = |name, dims: &[usize], spec: [&[i32]; 3]| {
        let mut inputs = vec![s.input(dims, 1)];
        inputs.extend(spec.map(numbers));
        s.form(name, inputs).with("Index", AttrValue::Type(DType::INT32))
    };
    let (n, r, c) = (s.elements as i32, s.rows as i32, s.cols as i32);
    let (vector, matrix) = ([s.elements], [s.rows, s.cols]);
    vec![
        slice("part", &vector, [&[1], &[n - 1], &[1]]),
        slice("every_other", &vector, [&[0], &[n], &[2]]),
        slice("reversed", &vector, [&[n - 1], &[-n - 1], &[-1]]),
        slice("block", &matrix, [&[1, 1], &[r - 1, c - 1], &[1, 1]]),
        slice("column", &matrix, [&[0, 2], &[r, 3], &[1, 1]]),
        slice("grid", &matrix, [&[0, 0], &[r, c], &[2, 3]]),
    ]
}

fn transposes(s: &Size) -> Vec<Form> {
    let turned =
        |name, dims: &[usize], perm: &[i32]| s.form(name, vec![s.input(dims, 1), numbers(perm)]);
    let (r, c) = (s.rows, s.cols);
    let channels = (s.elements / 64).max(1);
    vec![
        turned("matrix", &[r, c], &[1, 0]),
        turned("batch", &[5, r / 5, c], &[0, 2, 1]),
        turned("rows", &[5, r / 5, c], &[1, 0, 2]),
        turned("short_rows", &[r, c / 4, 4], &[1, 0, 2]),
        turned("reversed", &[r / 5, 5, c], &[2, 1, 0]),
        turned("to_nchw", &[1, 8, 8, channels], &[0, 3, 1, 2]),
        turned("to_nhwc", &[1, channels, 8, 8], &[0, 2, 3, 1]),
        turned("same", &[r, c], &[0, 1]),
    ]
}

fn biases(s: &Size) -> Vec<Form> {
    let channels = (s.elements / 64).max(1);
    let biased = |name, dims: &[usize], count: usize, format| {
        s.form(name, vec![s.input(dims, 1), s.input(&[count], 2)]).with("data_format", text(format))
    };
    vec![
        biased("rows", &[s.rows, s.cols], s.cols, "NHWC"),
        biased("image", &[1, 8, 8, channels], channels, "NHWC"),
        biased("few_channels", &[1, 8, s.elements / 24, 3], 3, "NHWC"),
        biased("nchw", &[1, channels, 8, 8], channels, "NCHW"),
    ]
}

fn softmaxes(s: &Size) -> Vec<Form> {
    let rows = |name, dims: &[usize]| s.form(name, vec![s.input(dims, 1)]);
    vec![
        rows("one", &[1, s.elements]),
        rows("square", &[s.rows, s.cols]),
        rows("ten", &[s.elements / 10, 10]),
    ]
}

/// Attributes that windows share.
pub fn window(form: Form, strides: [i64; 2], padding: &str, format: &str) -> Form {
    let [h, w] = strides;
    let strides = if format == "NHWC" { [1, h, w, 1] } else { [1, 1, h, w] };
    form.with("strides", ints(&strides))
        .with("padding", text(padding))
        .with("data_format", text(format))
}
