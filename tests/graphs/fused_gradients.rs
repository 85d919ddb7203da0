//! The gradients of GELU and of layer normalisation in the forms in which graphs express these: one node each after
//! the passes, which computes what the graph says as it is written.

use std::collections::BTreeMap;
use tenon_gradient::{Gradient, Options, gradients};
use tenon_graph::{GraphBuilder, GraphError, Output};
use tenon_runtime::{
    CallableOptions, Session, SessionOptions,
    framework::{DType, PartialShape, Tensor, attr::AttrValue},
};
use tenon_tests::session::{run, runtime};

type Made = Result<Output, GraphError>;

/// A graph under construction, of one element type.
struct Net<'b, 'r> {
    b: &'b mut GraphBuilder<'r>,
    dtype: DType,
    count: usize,
}

impl Net<'_, '_> {
    fn op(&mut self, op: &str, inputs: &[Output]) -> Made {
        self.with(op, inputs, &[])
    }

    fn with(&mut self, op: &str, inputs: &[Output], attrs: &[(&str, AttrValue)]) -> Made {
        self.count += 1;
        let name = format!("n{}", self.count);
        let mut node = self.b.op(op).name(&name).inputs(inputs.iter().copied());
        for (name, value) in attrs {
            node = node.attr(name, value.clone());
        }
        Ok(node.build()?.into())
    }

    fn number(&mut self, value: f64) -> Made {
        self.count += 1;
        let value = Tensor::number(self.dtype, value).expect("a number");
        self.b.constant(&format!("c{}", self.count), value)
    }

    fn scaled(&mut self, by: f64, x: Output) -> Made {
        let by = self.number(by)?;
        self.op("Mul", &[by, x])
    }

    fn mean(&mut self, x: Output) -> Made {
        self.count += 1;
        let axis = Tensor::from_slice(&[1], &[-1i32]).expect("a vector");
        let axis = self.b.constant(&format!("c{}", self.count), axis)?;
        self.with("Mean", &[x, axis], &[("keep_dims", true.into())])
    }
}

/// How a function is written: `x`, and for a normalisation scale and offset.
type Form = fn(&mut Net<'_, '_>, &[Output]) -> Made;

const EPSILON: f64 = 0.0009765625;

/// The deviation from the mean, the mean, and the variance with epsilon.
fn parts(net: &mut Net<'_, '_>, x: Output, squared: bool) -> Result<[Output; 3], GraphError> {
    let mean = net.mean(x)?;
    let deviation = net.op("Sub", &[x, mean])?;
    let squares = match squared {
        true => net.op("Square", &[deviation])?,
        false => net.op("SquaredDifference", &[x, mean])?,
    };
    let (variance, epsilon) = (net.mean(squares)?, net.number(EPSILON)?);
    Ok([deviation, mean, net.op("AddV2", &[variance, epsilon])?])
}

/// The mean, and the root times the scale.
fn moments(net: &mut Net<'_, '_>, x: &[Output], stop: bool) -> Result<[Output; 2], GraphError> {
    let mean = net.mean(x[0])?;
    let fixed = if stop { net.op("StopGradient", &[mean])? } else { mean };
    let squares = net.op("SquaredDifference", &[x[0], fixed])?;
    let (variance, epsilon) = (net.mean(squares)?, net.number(EPSILON)?);
    let safe = net.op("AddV2", &[variance, epsilon])?;
    let root = net.op("Rsqrt", &[safe])?;
    Ok([mean, net.op("Mul", &[root, x[1]])?])
}

fn by_moments(net: &mut Net<'_, '_>, x: &[Output], stop: bool) -> Made {
    let [mean, inverse] = moments(net, x, stop)?;
    let product = net.op("Mul", &[x[0], inverse])?;
    let shift = net.op("Mul", &[mean, inverse])?;
    let rest = net.op("Sub", &[x[2], shift])?;
    net.op("AddV2", &[product, rest])
}

fn by_root(net: &mut Net<'_, '_>, x: &[Output], squared: bool) -> Made {
    let [deviation, _, safe] = parts(net, x[0], squared)?;
    let root = net.op("Rsqrt", &[safe])?;
    let normal = net.op("Mul", &[deviation, root])?;
    let scaled = net.op("Mul", &[normal, x[1]])?;
    net.op("AddV2", &[scaled, x[2]])
}

const NORMS: [(&str, Form); 6] = [
    ("layer_norm", |net, x| by_root(net, x, true)),
    ("difference", |net, x| by_root(net, x, false)),
    ("quotient", |net, x| {
        let [deviation, _, safe] = parts(net, x[0], true)?;
        let root = net.op("Sqrt", &[safe])?;
        let normal = net.op("RealDiv", &[deviation, root])?;
        let scaled = net.op("Mul", &[normal, x[1]])?;
        net.op("AddV2", &[scaled, x[2]])
    }),
    ("moments", |net, x| by_moments(net, x, false)),
    ("moments with a fixed mean", |net, x| by_moments(net, x, true)),
    ("moments_reshaped", |net, x| {
        let [mean, inverse] = moments(net, x, false)?;
        let product = net.op("Mul", &[x[0], inverse])?;
        let negative = net.op("Neg", &[mean])?;
        let shift = net.op("Mul", &[negative, inverse])?;
        let rest = net.op("AddV2", &[shift, x[2]])?;
        net.op("AddV2", &[product, rest])
    }),
];

/// `0.5 x (1 + curve)`, where the curve is of a multiple of x.
fn halved(net: &mut Net<'_, '_>, x: Output, curve: Output) -> Made {
    let (half, one) = (net.scaled(0.5, x)?, net.number(1.0)?);
    let sum = net.op("AddV2", &[one, curve])?;
    net.op("Mul", &[half, sum])
}

/// The error function of x divided by sqrt(2), as a product or as a quotient.
fn erf(net: &mut Net<'_, '_>, x: Output, product: bool) -> Made {
    use std::f64::consts::{FRAC_1_SQRT_2, SQRT_2};
    let (op, number) = if product { ("Mul", FRAC_1_SQRT_2) } else { ("RealDiv", SQRT_2) };
    let number = net.number(number)?;
    let inner = net.op(op, &[x, number])?;
    net.op("Erf", &[inner])
}

/// `x 0.5 (1 + curve)`.
fn late(net: &mut Net<'_, '_>, x: Output, curve: Output) -> Made {
    let one = net.number(1.0)?;
    let sum = net.op("AddV2", &[one, curve])?;
    let half = net.scaled(0.5, sum)?;
    net.op("Mul", &[x, half])
}

/// The approximation, whose cube is made by `cube`.
fn by_tanh(net: &mut Net<'_, '_>, x: Output, cube: Form) -> Made {
    let cube = cube(net, &[x])?;
    let scaled = net.scaled(0.044715, cube)?;
    let sum = net.op("AddV2", &[x, scaled])?;
    let inner = net.scaled(0.797_884_560_802_865_4, sum)?;
    let curve = net.op("Tanh", &[inner])?;
    halved(net, x, curve)
}

const GELUS: [(&str, Form); 8] = [
    ("gelu_product", |net, x| erf(net, x[0], true).and_then(|curve| halved(net, x[0], curve))),
    ("gelu_quotient", |net, x| erf(net, x[0], false).and_then(|curve| halved(net, x[0], curve))),
    ("gelu_complement", |net, x| {
        let (half, negative) = (net.scaled(0.5, x[0])?, net.op("Neg", &[x[0]])?);
        let root = net.number(std::f64::consts::FRAC_1_SQRT_2)?;
        let inner = net.op("Mul", &[negative, root])?;
        let curve = net.op("Erfc", &[inner])?;
        net.op("Mul", &[half, curve])
    }),
    ("gelu_scaled_late", |net, x| erf(net, x[0], true).and_then(|curve| late(net, x[0], curve))),
    ("gelu_scaled_late_quotient", |net, x| {
        erf(net, x[0], false).and_then(|curve| late(net, x[0], curve))
    }),
    ("gelu_tanh_power", |net, x| {
        by_tanh(net, x[0], |net, x| {
            let three = net.number(3.0)?;
            net.op("Pow", &[x[0], three])
        })
    }),
    ("gelu_tanh_products", |net, x| {
        by_tanh(net, x[0], |net, x| {
            let square = net.op("Mul", &[x[0], x[0]])?;
            net.op("Mul", &[x[0], square])
        })
    }),
    ("gelu_tanh_square", |net, x| {
        by_tanh(net, x[0], |net, x| {
            let square = net.op("Square", &[x[0]])?;
            net.op("Mul", &[x[0], square])
        })
    }),
];

/// A function over inputs of these shapes, with -1 where a size is not known before the step.
struct Case {
    form: Form,
    dtype: DType,
    dims: Vec<Vec<i64>>,
    known: bool,
    /// Whether the gradient of x has another term.
    connected: bool,
}

const BATCH: i64 = 6;

impl Case {
    fn norm(form: Form, dtype: DType, dims: &[i64]) -> Case {
        let last = dims[dims.len() - 1];
        let dims = vec![dims.to_vec(), vec![last], vec![last]];
        Case { form, dtype, dims, known: true, connected: false }
    }

    fn gelu(form: Form, dtype: DType, dims: &[i64]) -> Case {
        Case { form, dtype, dims: vec![dims.to_vec()], known: true, connected: false }
    }

    /// The value and its gradients by the inputs, as doubles: the names to fetch.
    fn build(&self, b: &mut GraphBuilder<'_>) -> Result<Vec<String>, GraphError> {
        let mut net = Net { b, dtype: self.dtype, count: 0 };
        let mut xs = Vec::new();
        for (at, dims) in self.dims.iter().enumerate() {
            let mut dims = dims.clone();
            if !self.known && at == 0 {
                dims[0] = -1;
            }
            let shape = PartialShape::new(&dims).expect("a shape");
            let wide = net.b.placeholder(&format!("x{at}"), DType::DOUBLE, shape)?;
            xs.push(net.with("Cast", &[wide], &[("DstT", self.dtype.into())])?);
        }
        let value = (self.form)(&mut net, &xs)?;
        let y = match self.connected {
            true => {
                let past = net.scaled(0.25, xs[0])?;
                let sine = net.op("Sin", &[past])?;
                net.op("AddV2", &[value, sine])?
            }
            false => value,
        };
        // A gradient that the passes cannot see through.
        let outer = net.op("Cos", &[y])?;
        let made = gradients(net.b, &[outer], &xs, &Options::default()).expect("they exist");
        let made = made.into_iter().map(|gradient| match gradient {
            Some(Gradient::Dense(gradient)) => gradient,
            other => panic!("a tensor, not {other:?}"),
        });
        let mut names = Vec::new();
        for result in [outer].into_iter().chain(made) {
            let wide = net.with("Cast", &[result], &[("DstT", DType::DOUBLE.into())])?;
            names.push(net.b.graph().output_name(wide));
        }
        Ok(names)
    }

    /// Numbers that every type has.
    fn feeds(&self) -> Vec<(String, Tensor)> {
        let tensor = |(at, dims): (usize, &Vec<i64>)| {
            let count = dims.iter().product::<i64>() as usize;
            let number = |i: usize| ((i * 37 + at * 11) % 61) as f64 / 16.0 - 1.5;
            let numbers: Vec<f64> = (0..count).map(number).collect();
            (format!("x{at}"), Tensor::from_slice(dims, &numbers).expect("as many elements"))
        };
        self.dims.iter().enumerate().map(tensor).collect()
    }
}

/// How many nodes of each op the step has, and what it fetches, as doubles.
fn ran(case: &Case, optimize: &str) -> (BTreeMap<String, usize>, Vec<Vec<f64>>) {
    let runtime = runtime(&["tenon_cpu"], &[("graph.optimize", optimize)]);
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let names = case.build(&mut b).expect("the graph is right");
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let session = Session::new(&runtime, SessionOptions::default()).expect("the options are right");
    session.extend_graph(&b.finish()).expect("a built graph can be read");
    let feeds = case.feeds();
    let fed: Vec<&str> = feeds.iter().map(|(name, _)| name.as_str()).collect();
    let options = CallableOptions::new(&fed, &names);
    let mut counts = BTreeMap::new();
    for node in session.partitions(&options).expect("it compiles").iter().flat_map(|p| &p.node) {
        *counts.entry(node.op.clone()).or_insert(0) += 1;
    }
    let feeds: Vec<(&str, Tensor)> =
        feeds.iter().map(|(name, tensor)| (name.as_str(), tensor.clone())).collect();
    let fetched = run(&session, &feeds, &names).expect("it runs");
    let doubles = |tensor: &Tensor| tensor.as_slice::<f64>().expect("doubles").to_vec();
    (counts, fetched.iter().map(doubles).collect())
}

/// Whether one fused node computes the function and one its gradient, and no other node does.
#[track_caller]
fn check(name: &str, case: &Case, ops: [&str; 2], tolerance: f64) {
    let (counts, found) = ran(case, "true");
    let dtype = case.dtype;
    for op in ops {
        assert_eq!(counts.get(op), Some(&1), "{name} {dtype}: {op} in {counts:?}");
    }
    for op in ["Mean", "Rsqrt", "Sqrt", "Erf", "Erfc", "Tanh", "TanhGrad", "RsqrtGrad", "Exp"] {
        assert_eq!(counts.get(op), None, "{name} {dtype}: {counts:?}");
    }
    let wide = Case { dtype: DType::DOUBLE, dims: case.dims.clone(), ..*case };
    let (_, expected) = ran(&wide, "false");
    for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert_eq!(found.len(), expected.len(), "{name} {dtype}: {at}");
        let size = expected.iter().fold(0.0f64, |size, x| size.max(x.abs()));
        for (found, expected) in found.iter().zip(expected) {
            let error = (found - expected).abs();
            assert!(error <= tolerance * size, "{name} {dtype} {at}: {found} for {expected}");
        }
    }
}

const NORM: [&str; 2] = ["_FusedLayerNorm", "_FusedLayerNormGrad"];
const GELU: [&str; 2] = ["_FusedGelu", "_FusedGeluGrad"];
/// Of rounding a sum over rows, its terms, and what they are the cosine of.
const TOLERANCES: [(DType, f64); 4] =
    [(DType::FLOAT, 1e-5), (DType::DOUBLE, 1e-13), (DType::HALF, 5e-3), (DType::BFLOAT16, 0.15)];

#[test]
fn every_form_of_layer_normalisation_has_one_gradient() {
    for (name, form) in NORMS {
        check(name, &Case::norm(form, DType::FLOAT, &[BATCH, 33]), NORM, 1e-5);
        check(name, &Case::norm(form, DType::FLOAT, &[2, 3, 32]), NORM, 1e-5);
        let unknown = Case { known: false, ..Case::norm(form, DType::FLOAT, &[BATCH, 32]) };
        check(&format!("{name} of any batch"), &unknown, NORM, 1e-5);
    }
}

#[test]
fn every_form_of_gelu_has_one_gradient() {
    for (name, form) in GELUS {
        check(name, &Case::gelu(form, DType::FLOAT, &[BATCH, 33]), GELU, 1e-5);
        let unknown = Case { known: false, ..Case::gelu(form, DType::FLOAT, &[BATCH, 32]) };
        check(&format!("{name} of any batch"), &unknown, GELU, 1e-5);
    }
}

#[test]
fn fused_gradients_are_of_every_type() {
    for (dtype, tolerance) in TOLERANCES {
        check("layer_norm", &Case::norm(NORMS[0].1, dtype, &[BATCH, 64]), NORM, tolerance);
        for form in [0, 5] {
            let (name, form) = GELUS[form];
            check(name, &Case::gelu(form, dtype, &[BATCH, 64]), GELU, tolerance);
        }
    }
}

#[test]
fn the_gradient_of_a_connection_past_the_function_is_added() {
    for (name, form) in [NORMS[0], NORMS[3]] {
        let case = Case { connected: true, ..Case::norm(form, DType::FLOAT, &[BATCH, 33]) };
        check(name, &case, NORM, 1e-5);
    }
    let case = Case { connected: true, ..Case::gelu(GELUS[5].1, DType::FLOAT, &[BATCH, 33]) };
    check("gelu_tanh_power", &case, GELU, 1e-5);
}
