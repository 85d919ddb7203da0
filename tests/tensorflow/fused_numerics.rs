//! How far the fused kernels are from a composition of single ops in double precision: the figures behind their
//! numerics contracts, in units of the element type's epsilon times a measure of what may cancel.
//!
//! `cargo test -p tenon-tests --test tensorflow fused_numerics -- --nocapture` prints the table.

use std::fmt::Write;
use tenon_graph::{GraphBuilder, GraphError, Output};
use tenon_runtime::{
    RunOptions, Runtime, Session, SessionOptions,
    framework::{
        DType, Tensor,
        attr::{AttrList, AttrValue},
    },
};
use tenon_tests::session::{graph, runtime};

type Made = Result<Output, GraphError>;
type Attrs = Vec<(&'static str, AttrValue)>;

/// A fused op, and what it stands for.
struct Fused {
    op: &'static str,
    attrs: Attrs,
    /// Dimensions of the inputs.
    inputs: Vec<Vec<i64>>,
    /// The same in single ops of doubles. With `true`, the measure: over absolute values.
    exact: fn(&mut Net<'_, '_>, &[Output], bool) -> Made,
}

/// Single ops of doubles.
struct Net<'b, 'r> {
    b: &'b mut GraphBuilder<'r>,
    count: usize,
}

impl Net<'_, '_> {
    fn op(&mut self, op: &str, inputs: &[Output], attrs: &[(&str, AttrValue)]) -> Made {
        self.count += 1;
        let name = format!("exact{}", self.count);
        let mut node = self.b.op(op).name(&name).inputs(inputs.iter().copied());
        for (name, value) in attrs {
            node = node.attr(name, value.clone());
        }
        Ok(node.build()?.into())
    }

    fn number(&mut self, value: f64) -> Made {
        self.count += 1;
        let tensor = Tensor::scalar(value).expect("a scalar");
        self.b.constant(&format!("number{}", self.count), tensor)
    }

    fn scaled(&mut self, x: Output, by: f64) -> Made {
        let by = self.number(by)?;
        self.op("Mul", &[x, by], &[])
    }

    /// The mean over the last dimension, which stays.
    fn mean(&mut self, x: Output) -> Made {
        self.count += 1;
        let axis = Tensor::scalar(-1i32).expect("a scalar");
        let axis = self.b.constant(&format!("axis{}", self.count), axis)?;
        self.op("Mean", &[x, axis], &[("keep_dims", true.into())])
    }

    fn sum(&mut self, parts: &[Output]) -> Made {
        let mut parts = parts.iter().copied();
        let first = parts.next().expect("a part");
        parts.try_fold(first, |sum, part| self.op("AddV2", &[sum, part], &[]))
    }
}

fn strings(texts: &[&str]) -> AttrValue {
    AttrValue::List(AttrList::String(texts.iter().map(|text| text.as_bytes().to_vec()).collect()))
}

fn window() -> [(&'static str, AttrValue); 2] {
    [("strides", vec![1i64, 1, 1, 1].into()), ("padding", "SAME".into())]
}

/// Bias and GELU, the step that is least exact, after a product; the measure is the sum of the absolute terms.
fn gelu_after(net: &mut Net<'_, '_>, product: Output, bias: Output, measure: bool) -> Made {
    let x = net.op("BiasAdd", &[product, bias], &[])?;
    if measure {
        return Ok(x);
    }
    gelu(net, x)
}

fn gelu(net: &mut Net<'_, '_>, x: Output) -> Made {
    let scaled = net.scaled(x, std::f64::consts::FRAC_1_SQRT_2)?;
    // 1 + erf(t) is erfc(-t), which does not cancel.
    let negative = net.op("Neg", &[scaled], &[])?;
    let tail = net.op("Erfc", &[negative], &[])?;
    let half = net.scaled(x, 0.5)?;
    net.op("Mul", &[half, tail], &[])
}

fn gelu_grad(net: &mut Net<'_, '_>, dy: Output, x: Output) -> Made {
    let scaled = net.scaled(x, -std::f64::consts::FRAC_1_SQRT_2)?;
    let tail = net.op("Erfc", &[scaled], &[])?;
    let distribution = net.scaled(tail, 0.5)?;
    let square = net.op("Square", &[x], &[])?;
    let exponent = net.scaled(square, -0.5)?;
    let bell = net.op("Exp", &[exponent], &[])?;
    let density = net.scaled(bell, 0.398_942_280_401_432_7)?;
    let along = net.op("Mul", &[x, density], &[])?;
    let slope = net.sum(&[distribution, along])?;
    net.op("Mul", &[dy, slope], &[])
}

fn attention_scores(net: &mut Net<'_, '_>, x: &[Output]) -> Made {
    let scores = net.op("BatchMatMulV2", &[x[0], x[1]], &[("adj_y", true.into())])?;
    net.scaled(scores, 0.25)
}

fn all() -> Vec<Fused> {
    let dense = |m, k, n| vec![vec![m, k], vec![k, n], vec![n]];
    let gelu_steps = || ("fused_ops", strings(&["BiasAdd", "GeluExact"]));
    let product: fn(&mut Net<'_, '_>, &[Output], bool) -> Made = |net, x, measure| {
        let product = net.op("MatMul", &x[..2], &[])?;
        gelu_after(net, product, x[2], measure)
    };
    let mut all = Vec::new();
    for (m, k, n) in [(7, 5, 9), (33, 64, 17), (4, 1025, 5)] {
        let attrs = vec![gelu_steps()];
        all.push(Fused { op: "_FusedMatMul", attrs, inputs: dense(m, k, n), exact: product });
    }
    for (c, m) in [(3, 4), (65, 7)] {
        let attrs = window().into_iter().chain([gelu_steps()]).collect();
        let inputs = vec![vec![2, 7, 9, c], vec![3, 3, c, m], vec![m]];
        all.push(Fused {
            op: "_FusedConv2D",
            attrs,
            inputs,
            exact: |net, x, measure| {
                let product = net.op("Conv2D", &x[..2], &window())?;
                gelu_after(net, product, x[2], measure)
            },
        });
        let attrs = window().into_iter().chain([gelu_steps()]).collect();
        all.push(Fused {
            op: "_FusedDepthwiseConv2dNative",
            attrs,
            inputs: vec![vec![2, 7, 9, c], vec![3, 3, c, 1], vec![c]],
            exact: |net, x, measure| {
                let product = net.op("DepthwiseConv2dNative", &x[..2], &window())?;
                gelu_after(net, product, x[2], measure)
            },
        });
    }
    for length in [5, 64, 1023] {
        let attrs = vec![("epsilon", AttrValue::Float(0.0009765625))];
        let inputs = vec![vec![9, length], vec![length], vec![length]];
        all.push(Fused { op: "_FusedLayerNorm", attrs, inputs, exact: layer_norm });
        let attrs = vec![("epsilon", AttrValue::Float(0.0009765625))];
        let inputs = vec![vec![9, length], vec![9, length], vec![length]];
        all.push(Fused { op: "_FusedLayerNormGrad", attrs, inputs, exact: layer_norm_grad });
        let inputs = vec![vec![9, length], vec![1, length]];
        let attrs = vec![("scale", AttrValue::Float(0.25)), ("num_mask", 1.into())];
        all.push(Fused { op: "_FusedSoftmaxScale", attrs, inputs, exact: softmax_scale });
        let inputs = vec![vec![2, 9, 16], vec![2, length, 16], vec![2, length, 7]];
        let attrs: Attrs =
            vec![("scale", AttrValue::Float(0.25)), ("num_mask", 0.into()), ("num_keep", 0.into())];
        all.push(Fused { op: "_FusedAttention", attrs, inputs, exact: attention });
    }
    all.extend(gelus());
    all
}

fn gelus() -> [Fused; 2] {
    let gradient = Fused {
        op: "_FusedGeluGrad",
        attrs: vec![("approximate", false.into())],
        inputs: vec![vec![40, 101], vec![40, 101]],
        exact: |net, x, measure| match measure {
            true => net.scaled(x[0], 1.2),
            false => gelu_grad(net, x[0], x[1]),
        },
    };
    let function = Fused {
        op: "_FusedGelu",
        attrs: vec![("approximate", false.into())],
        inputs: vec![vec![40, 101]],
        exact: |net, x, measure| if measure { Ok(x[0]) } else { gelu(net, x[0]) },
    };
    [gradient, function]
}

/// The measure: what rounding each `x`, the mean and the offset may come to.
fn layer_norm(net: &mut Net<'_, '_>, x: &[Output], measure: bool) -> Made {
    let mean = net.mean(x[0])?;
    let centred = net.op("Sub", &[x[0], mean], &[])?;
    let square = net.op("Square", &[centred], &[])?;
    let variance = net.mean(square)?;
    let epsilon = net.number(0.0009765625)?;
    let safe = net.sum(&[variance, epsilon])?;
    let root = net.op("Rsqrt", &[safe], &[])?;
    let base = if measure {
        let x = net.op("Abs", &[x[0]], &[])?;
        let mean = net.mean(x)?;
        net.sum(&[x, mean])?
    } else {
        centred
    };
    let normed = net.op("Mul", &[base, root], &[])?;
    let both = |net: &mut Net<'_, '_>, at: usize| {
        if measure { net.op("Abs", &[x[at]], &[]) } else { Ok(x[at]) }
    };
    let (scale, offset) = (both(net, 1)?, both(net, 2)?);
    let scaled = net.op("Mul", &[normed, scale], &[])?;
    net.sum(&[scaled, offset])
}

/// The deviation from the mean, and the root, of x.
fn moments(net: &mut Net<'_, '_>, x: Output) -> Result<[Output; 2], GraphError> {
    let mean = net.mean(x)?;
    let centred = net.op("Sub", &[x, mean], &[])?;
    let square = net.op("Square", &[centred], &[])?;
    let variance = net.mean(square)?;
    let epsilon = net.number(0.0009765625)?;
    let safe = net.sum(&[variance, epsilon])?;
    Ok([centred, net.op("Rsqrt", &[safe], &[])?])
}

/// `root (g - mean(g) - n mean(g n))`, with `g = scale dy` and `n = (x - mean) root`. The measure: the same of absolute
/// values, which are added.
fn layer_norm_grad(net: &mut Net<'_, '_>, x: &[Output], measure: bool) -> Made {
    let [centred, root] = moments(net, x[1])?;
    let size = |net: &mut Net<'_, '_>, x: Output| match measure {
        true => net.op("Abs", &[x], &[]),
        false => Ok(x),
    };
    let base = if measure {
        let wide = net.op("Abs", &[x[1]], &[])?;
        let mean = net.mean(wide)?;
        net.sum(&[wide, mean])?
    } else {
        centred
    };
    let normal = net.op("Mul", &[base, root], &[])?;
    let (dy, scale) = (size(net, x[0])?, size(net, x[2])?);
    let scaled = net.op("Mul", &[dy, scale], &[])?;
    let along = net.op("Mul", &[scaled, normal], &[])?;
    let (mean, along) = (net.mean(scaled)?, net.mean(along)?);
    let along = net.op("Mul", &[normal, along], &[])?;
    let rest = net.sum(&[mean, along])?;
    let all = net.op(if measure { "AddV2" } else { "Sub" }, &[scaled, rest], &[])?;
    net.op("Mul", &[all, root], &[])
}

/// The measure: the result times 1 and how far the exponent is from 0, since that is rounded before.
fn softmax_scale(net: &mut Net<'_, '_>, x: &[Output], measure: bool) -> Made {
    let scaled = net.scaled(x[0], 0.25)?;
    let logits = net.sum(&[scaled, x[1]])?;
    let result = net.op("Softmax", &[logits], &[])?;
    if !measure {
        return Ok(result);
    }
    let parts = [net.op("Abs", &[scaled], &[])?, net.op("Abs", &[x[1]], &[])?];
    let size = net.sum(&parts)?;
    weighted(net, result, size)
}

/// Weights times `1 + size + largest size of the row`.
fn weighted(net: &mut Net<'_, '_>, weights: Output, size: Output) -> Made {
    net.count += 1;
    let axis = Tensor::scalar(-1i32).expect("a scalar");
    let axis = net.b.constant(&format!("last{}", net.count), axis)?;
    let largest = net.op("Max", &[size, axis], &[("keep_dims", true.into())])?;
    let one = net.number(1.0)?;
    let factor = net.sum(&[size, largest, one])?;
    net.op("Mul", &[weights, factor], &[])
}

fn attention(net: &mut Net<'_, '_>, x: &[Output], measure: bool) -> Made {
    let scores = attention_scores(net, x)?;
    let weights = net.op("Softmax", &[scores], &[])?;
    if !measure {
        return net.op("BatchMatMulV2", &[weights, x[2]], &[]);
    }
    let mut sizes = Vec::new();
    for &x in x {
        sizes.push(net.op("Abs", &[x], &[])?);
    }
    let size = attention_scores(net, &sizes)?;
    let weights = weighted(net, weights, size)?;
    net.op("BatchMatMulV2", &[weights, sizes[2]], &[])
}

/// Ways to fill inputs: moderate, of many sizes, with a common offset, cancelling in pairs.
const FILLS: [fn(f64, f64, usize) -> f64; 4] = [
    |u, _, _| 4.0 * u - 2.0,
    |u, v, _| (2.0 * u - 1.0) * (8.0 * v - 6.0).exp2(),
    |u, _, _| 8.0 + u,
    |u, _, at| if at % 2 == 0 { 3.0 + u / 64.0 } else { -3.0 },
];

fn filled(dims: &[i64], seed: u64, fill: fn(f64, f64, usize) -> f64) -> Tensor {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let count: i64 = dims.iter().product();
    let values: Vec<f64> = (0..count as usize).map(|at| fill(next(), next(), at)).collect();
    Tensor::from_slice(dims, &values).expect("a tensor")
}

/// Largest distance from the composition, in units of `epsilon` times the measure.
fn worst(runtime: &Runtime, fused: &Fused, dtype: DType, epsilon: f64) -> f64 {
    let made = graph(runtime, |b| build(b, fused, dtype));
    let session = Session::new(runtime, SessionOptions::default()).expect("a session");
    session.extend(&made.to_graph_def().expect("a graph")).expect("a graph of known ops");
    let mut worst = 0.0f64;
    for (seed, fill) in FILLS.into_iter().enumerate() {
        let names: Vec<String> = (0..fused.inputs.len()).map(|at| format!("x{at}")).collect();
        let feeds: Vec<(&str, Tensor)> = names
            .iter()
            .zip(&fused.inputs)
            .enumerate()
            .map(|(at, (name, dims))| {
                (name.as_str(), filled(dims, (seed * 10 + at + 1) as u64, fill))
            })
            .collect();
        let fetches = ["found", "exact", "measure"];
        let (results, _) =
            session.run(&feeds, &fetches, &[], &RunOptions::default()).expect("a run");
        let [found, exact, measure] =
            [0, 1, 2].map(|at| results[at].as_slice::<f64>().expect("doubles"));
        for ((found, exact), measure) in found.iter().zip(exact).zip(measure) {
            // Beyond what half holds there is nothing to compare.
            if dtype == DType::HALF && exact.abs() > 65_000.0 {
                continue;
            }
            // Below the smallest normal number there are fewer digits.
            let measure = measure.abs().max(exact.abs()).max(1e-4);
            worst = worst.max((found - exact).abs() / (epsilon * measure));
            assert!(found.is_finite() && exact.is_finite(), "{} {dtype}", fused.op);
        }
    }
    worst
}

fn build(b: &mut GraphBuilder<'_>, fused: &Fused, dtype: DType) -> Result<(), GraphError> {
    let cast = |b: &mut GraphBuilder<'_>, name: &str, x: Output, to: DType| -> Made {
        Ok(b.op("Cast").name(name).input(x).attr("DstT", to).build()?.into())
    };
    let (mut narrow, mut wide, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
    for (at, dims) in fused.inputs.iter().enumerate() {
        let shape = tenon_runtime::framework::PartialShape::new(dims).expect("a shape");
        let x = b.placeholder(&format!("x{at}"), DType::DOUBLE, shape)?;
        let rounded = cast(b, &format!("narrow{at}"), x, dtype)?;
        narrow.push(rounded);
        wide.push(cast(b, &format!("wide{at}"), rounded, DType::DOUBLE)?);
    }
    let mut node = b.op(fused.op).name("fused").inputs(narrow);
    for (name, value) in &fused.attrs {
        node = node.attr(name, value.clone());
    }
    let found = node.build()?;
    cast(b, "found", found.into(), DType::DOUBLE)?;
    let mut net = Net { b, count: 0 };
    let exact = (fused.exact)(&mut net, &wide, false)?;
    for &x in &wide {
        // The other measures take absolute values themselves, where they need them.
        let plain = matches!(
            fused.op,
            "_FusedLayerNorm" | "_FusedLayerNormGrad" | "_FusedSoftmaxScale" | "_FusedAttention"
        );
        sizes.push(if plain { x } else { net.op("Abs", &[x], &[])? });
    }
    let measure = (fused.exact)(&mut net, &sizes, true)?;
    for (name, value) in [("exact", exact), ("measure", measure)] {
        net.b.op("Identity").name(name).input(value).build()?;
    }
    Ok(())
}

/// Kernels of doubles are those of floats over another type: the figures of floats stand for them.
const TYPES: [(DType, f64); 3] = [
    (DType::FLOAT, 1.1920928955078125e-7),
    (DType::HALF, 9.765625e-4),
    (DType::BFLOAT16, 7.8125e-3),
];

/// What a contract may allow at most, by op: units in the order of `TYPES`.
const ALLOWED: [(&str, [f64; 3]); 9] = [
    ("_FusedMatMul", [64.0; 3]),
    ("_FusedConv2D", [64.0; 3]),
    ("_FusedDepthwiseConv2dNative", [64.0; 3]),
    ("_FusedLayerNorm", [64.0; 3]),
    ("_FusedLayerNormGrad", [64.0; 3]),
    ("_FusedGelu", [64.0; 3]),
    ("_FusedGeluGrad", [64.0; 3]),
    ("_FusedSoftmaxScale", [64.0; 3]),
    ("_FusedAttention", [64.0; 3]),
];

#[test]
fn fused_kernels_are_as_near_as_their_contracts_say() {
    let runtime = runtime(&["tenon_cpu"], &[("graph.optimize", "false")]);
    let mut table = String::from("| op | float | half | bfloat16 |\n|---|---|---|---|\n");
    let all = all();
    for (op, allowed) in ALLOWED {
        write!(table, "| `{op}` |").expect("a string");
        for ((dtype, epsilon), allowed) in TYPES.into_iter().zip(allowed) {
            let own = all.iter().filter(|fused| fused.op == op);
            let found = own.map(|fused| worst(&runtime, fused, dtype, epsilon)).fold(0.0, f64::max);
            write!(table, " {found:.2} |").expect("a string");
            assert!(
                found > 0.0 && found <= allowed,
                "{op} {dtype}: {found} units, {allowed} allowed"
            );
        }
        table.push('\n');
    }
    println!("{table}");
}
