//! Gradients of the standard ops against TensorFlow's (`tests/goldens/gradients`), and by central differences where
//! TensorFlow's are so too. Each op of which TensorFlow has a gradient is in the index, so that a missing entry fails.

use super::numeric::dense;
use serde_json::Value;
use std::{fs, path::PathBuf};
use tenon_gradient::{Gradient, Options, gradients};
use tenon_graph::{GraphBuilder, Output};
use tenon_runtime::{
    Runtime, Session, SessionOptions,
    framework::{
        DType, PartialShape, Tensor,
        element::{Complex, bf16, f16},
        op::GradientRule,
    },
};
use tenon_testkit::{
    GoldenCase,
    archive::Archive,
    golden::{Expected, read_op},
};
use tenon_tests::session::{run, runtime};

/// Ops whose gradients need shapes before the step, and say so.
const NEED_SHAPES: [&str; 3] = ["MatrixSolveLs", "Qr", "Svd"];

/// Inputs that have a gradient here and none in TensorFlow, by op and number.
const BEYOND: [(&str, usize); 1] = [("PadV2", 2)];

/// Entries that TensorFlow lacks: their op is the inverse of one that has an entry.
const MORE_ENTRIES: [&str; 1] = ["MaxPoolGradGradV2"];

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("goldens").join(name)
}

/// A line of the index.
struct Line(Value);

impl Line {
    fn text(&self, key: &str) -> &str {
        self.0[key].as_str().unwrap_or_else(|| panic!("{key} of {}", self.0))
    }

    fn has(&self, key: &str) -> bool {
        !self.0[key].is_null()
    }

    fn list(&self, key: &str) -> Vec<usize> {
        let items = self.0[key].as_array().map_or(&[][..], Vec::as_slice);
        items.iter().map(|item| item.as_u64().expect("a number") as usize).collect()
    }

    fn tolerance(&self) -> f64 {
        self.0["tolerance"].as_f64().expect("a tolerance")
    }

    /// The name of an array.
    fn array(&self, what: &str, input: usize) -> String {
        let outputs: String = self.list("outputs").iter().map(usize::to_string).collect();
        format!("{}.{}.{outputs}.{what}{input}", self.text("op"), self.text("case"))
    }
}

/// The weights of a tensor's elements in the sum: those of `make.py`.
fn weights(dtype: DType, dims: &[i64], start: usize) -> Tensor {
    let count = dims.iter().product::<i64>() as usize;
    let real = |k: usize| ((7 * k + 3) % 11) as f64 / 4.0 - 1.25 + 0.125;
    let imaginary = |k: usize| ((5 * k + 1) % 13) as f64 / 4.0 - 1.5;
    let all = start..start + count;
    let reals = all.clone().map(real);
    let both = all.map(|k| Complex::new(real(k), imaginary(k)));
    let made = match dtype {
        DType::HALF => Tensor::from_slice(dims, &reals.map(f16::from_f64).collect::<Vec<_>>()),
        DType::BFLOAT16 => Tensor::from_slice(dims, &reals.map(bf16::from_f64).collect::<Vec<_>>()),
        DType::FLOAT => Tensor::from_slice(dims, &reals.map(|x| x as f32).collect::<Vec<_>>()),
        DType::DOUBLE => Tensor::from_slice(dims, &reals.collect::<Vec<_>>()),
        DType::COMPLEX128 => Tensor::from_slice(dims, &both.collect::<Vec<_>>()),
        DType::COMPLEX64 => {
            let both = both.map(|x| Complex::new(x.re as f32, x.im as f32));
            Tensor::from_slice(dims, &both.collect::<Vec<_>>())
        }
        other => panic!("weights of type {other}"),
    };
    made.expect("as many values as elements")
}

/// The numbers of a tensor; of a complex one both parts of each.
fn numbers(tensor: &Tensor) -> Vec<f64> {
    match tensor.dtype() {
        DType::HALF => tensor.as_slice::<f16>().unwrap().iter().map(|x| x.to_f64()).collect(),
        DType::BFLOAT16 => tensor.as_slice::<bf16>().unwrap().iter().map(|x| x.to_f64()).collect(),
        DType::FLOAT => tensor.as_slice::<f32>().unwrap().iter().map(|&x| x.into()).collect(),
        DType::DOUBLE => tensor.as_slice::<f64>().unwrap().to_vec(),
        DType::COMPLEX64 => {
            let parts = tensor.as_slice::<Complex<f32>>().unwrap();
            parts.iter().flat_map(|x| [x.re.into(), x.im.into()]).collect()
        }
        DType::COMPLEX128 => {
            let parts = tensor.as_slice::<Complex<f64>>().unwrap();
            parts.iter().flat_map(|x| [x.re, x.im]).collect()
        }
        other => panic!("a gradient of type {other}"),
    }
}

/// The largest of the absolute values, at least 1.
fn scale(values: &[f64]) -> f64 {
    values.iter().filter(|x| x.is_finite()).fold(1.0, |most, x| x.abs().max(most))
}

/// Where the values differ by more than `tolerance` times the largest of them.
fn difference(found: &[f64], expected: &[f64], tolerance: f64) -> Option<String> {
    if found.len() != expected.len() {
        return Some(format!("{} numbers, expected {}", found.len(), expected.len()));
    }
    let allowed = tolerance * scale(expected);
    let same = |(found, expected): (&f64, &f64)| {
        found == expected
            || (found.is_nan() && expected.is_nan())
            || (found - expected).abs() <= allowed
    };
    let at = found.iter().zip(expected).position(|pair| !same(pair))?;
    Some(format!("element {at}: {}, expected {} within {allowed:e}", found[at], expected[at]))
}

/// A node of a golden case, and the gradients of a sum of its outputs.
struct Made {
    session: Session,
    feeds: Vec<(String, Tensor)>,
    ys: Vec<String>,
    /// For each of the line's inputs the first and the second gradient, if there is one.
    first: Vec<Option<String>>,
    second: Vec<Option<String>>,
}

/// Adds the inputs of a case: constants, and placeholders, which the feeds are for.
fn inputs_of(
    b: &mut GraphBuilder<'_>,
    case: &GoldenCase,
    shapes: bool,
) -> (Vec<Output>, Vec<(String, Tensor)>) {
    let (mut inputs, mut feeds) = (Vec::new(), Vec::new());
    for (at, tensor) in case.inputs.iter().enumerate() {
        if case.const_inputs.contains(&at) {
            inputs.push(b.constant(&format!("c{at}"), tensor.clone()).unwrap());
            continue;
        }
        let shape = match shapes {
            true => PartialShape::new(tensor.shape().dims()).unwrap(),
            false => PartialShape::UNKNOWN,
        };
        let name = format!("x{at}");
        inputs.push(b.placeholder(&name, tensor.dtype(), shape).unwrap());
        feeds.push((name, tensor.clone()));
    }
    (inputs, feeds)
}

/// A gradient that is a constant.
fn given(b: &mut GraphBuilder<'_>, name: String, weights: Tensor) -> Option<Gradient> {
    Some(Gradient::Dense(b.constant(&name, weights).unwrap()))
}

/// The gradients of a sum of some outputs of a node.
fn first_gradients(
    b: &mut GraphBuilder<'_>,
    case: &GoldenCase,
    line: &Line,
    inputs: &[Output],
) -> Result<(Vec<Output>, Vec<Option<Output>>), String> {
    let mut node = b.op(&case.op).name("node").inputs(inputs.iter().copied());
    for (name, value) in case.attrs.iter() {
        node = node.attr(name, value.clone());
    }
    let node = node.build().map_err(|error| error.to_string())?;
    let Expected::Outputs(expected) = &case.expected else {
        return Err("the case is one of an error".to_owned());
    };
    let outputs = line.list("outputs");
    let ys: Vec<Output> = outputs.iter().map(|&at| Output::new(node, at as u32)).collect();
    let weights_of = |&at: &usize| weights(expected[at].dtype, &expected[at].dims, 17 * at);
    let given = outputs.iter().map(|at| given(b, format!("w{at}"), weights_of(at))).collect();
    let xs: Vec<Output> = line.list("inputs").iter().map(|&at| inputs[at]).collect();
    let first = differentiate(b, &ys, &xs, given)?;
    Ok((ys, first))
}

/// The gradients of a sum of the gradients.
fn second_gradients(
    b: &mut GraphBuilder<'_>,
    case: &GoldenCase,
    line: &Line,
    inputs: &[Output],
    first: &[Option<Output>],
) -> Result<Vec<Option<Output>>, String> {
    let (zeros, numbers) = (line.list("zeros"), line.list("inputs"));
    let there: Vec<(usize, Output)> = (numbers.iter().zip(first))
        .filter(|(at, _)| !zeros.contains(at))
        .filter_map(|(&at, dx)| Some((at, (*dx)?)))
        .collect();
    let weights_of = |at: usize| {
        let x = &case.inputs[at];
        weights(x.dtype(), x.shape().dims(), 5 + at)
    };
    let given = there.iter().map(|&(at, _)| given(b, format!("v{at}"), weights_of(at))).collect();
    let dxs: Vec<Output> = there.into_iter().map(|(_, dx)| dx).collect();
    let xs: Vec<Output> = numbers.iter().map(|&at| inputs[at]).collect();
    differentiate(b, &dxs, &xs, given).map_err(|error| format!("second: {error}"))
}

impl Made {
    fn new(
        runtime: &Runtime,
        case: &GoldenCase,
        line: &Line,
        shapes: bool,
    ) -> Result<Made, String> {
        let registry = runtime.registry();
        let mut b = GraphBuilder::new(&registry);
        let (inputs, feeds) = inputs_of(&mut b, case, shapes);
        let (ys, first) = first_gradients(&mut b, case, line, &inputs)?;
        let second = match line.has("second") {
            true => second_gradients(&mut b, case, line, &inputs, &first)?,
            false => Vec::new(),
        };
        let name = |value: Output| b.graph().output_name(value);
        let names = |values: Vec<Option<Output>>| {
            values.into_iter().map(|value| value.map(name)).collect::<Vec<_>>()
        };
        let (first, second) = (names(first), names(second));
        let ys = ys.into_iter().map(name).collect();
        let session = Session::new(runtime, SessionOptions::default()).unwrap();
        session.extend_graph(&b.finish()).map_err(|error| error.to_string())?;
        Ok(Made { session, feeds, ys, first, second })
    }

    fn run(&self, names: &[&str], moved: Option<(&str, Tensor)>) -> Result<Vec<Tensor>, String> {
        let value = |(name, tensor): &(String, Tensor)| match &moved {
            Some((other, moved)) if other == name => moved.clone(),
            _ => tensor.clone(),
        };
        let feeds: Vec<(&str, Tensor)> =
            self.feeds.iter().map(|feed| (feed.0.as_str(), value(feed))).collect();
        run(&self.session, &feeds, names).map_err(|error| error.to_string())
    }

    /// Compares gradients with the arrays of the index; those that are not `there` are to be none.
    fn compare(
        &self,
        line: &Line,
        what: &str,
        found: &[Option<String>],
        there: &[usize],
        archive: &mut Archive,
    ) -> Result<(), String> {
        let names: Vec<&str> = found.iter().flatten().map(String::as_str).collect();
        let mut made = self.run(&names, None)?.into_iter();
        for (at, name) in line.list("inputs").into_iter().zip(found) {
            let made = name.as_ref().and_then(|_| made.next());
            let expected = match there.contains(&at) {
                true => {
                    Some(read(archive, &line.array(what, at), made.as_ref().map(Tensor::dtype))?)
                }
                false => None,
            };
            let problem = match (&made, expected) {
                (Some(made), Some(expected)) => {
                    difference(&numbers(made), &expected, line.tolerance())
                }
                (Some(_), None) if BEYOND.contains(&(line.text("op"), at)) => None,
                (Some(made), None) => {
                    let made = numbers(made);
                    difference(&made, &vec![0.0; made.len()], line.tolerance())
                }
                (None, Some(expected)) => {
                    let is_zero = expected.iter().all(|&x| x == 0.0);
                    (!is_zero).then(|| "none, expected a gradient".to_owned())
                }
                (None, None) => None,
            };
            if let Some(problem) = problem {
                return Err(format!("{what}{at}: {problem}"));
            }
        }
        Ok(())
    }

    /// Compares the gradient by an input of doubles with differences of the sum.
    fn check_slopes(&self, case: &GoldenCase, line: &Line, at: usize) -> Result<(), String> {
        let x = &case.inputs[at];
        let place = line.list("inputs").iter().position(|&input| input == at);
        let Some(gradient) = place.and_then(|place| self.first[place].as_deref()) else {
            return Err(format!("input {at} has no gradient"));
        };
        let gradient = numbers(&self.run(&[gradient], None)?[0]);
        let names: Vec<&str> = self.ys.iter().map(String::as_str).collect();
        let values = x.as_slice::<f64>().unwrap();
        let mut slopes = Vec::new();
        for element in 0..values.len() {
            let step = 1e-6 * values[element].abs().max(1.0);
            let sum = |by: f64| -> Result<f64, String> {
                let mut moved = values.to_vec();
                moved[element] += by;
                let moved = Tensor::from_slice(x.shape().dims(), &moved).unwrap();
                let ys = self.run(&names, Some((&format!("x{at}"), moved)))?;
                let of = |(y, &output): (&Tensor, &usize)| -> f64 {
                    let w = numbers(&weights(y.dtype(), y.shape().dims(), 17 * output));
                    numbers(y).iter().zip(w).map(|(y, w)| y * w).sum()
                };
                Ok(ys.iter().zip(&line.list("outputs")).map(of).sum())
            };
            slopes.push((sum(step)? - sum(-step)?) / (2.0 * step));
        }
        match difference(&gradient, &slopes, 5e-6) {
            Some(problem) => Err(format!("by differences, input {at}: {problem}")),
            None => Ok(()),
        }
    }
}

/// The numbers of an array; an array of bfloat16 has only bits, and is read as the type of what is compared with it.
fn read(archive: &mut Archive, name: &str, dtype: Option<DType>) -> Result<Vec<f64>, String> {
    let tensor = archive.tensor_of_any_shape(name, dtype).map_err(|error| error.to_string())?;
    Ok(numbers(&tensor))
}

fn differentiate(
    b: &mut GraphBuilder<'_>,
    ys: &[Output],
    xs: &[Output],
    grad_ys: Vec<Option<Gradient>>,
) -> Result<Vec<Option<Output>>, String> {
    let made = gradients(b, ys, xs, &Options { grad_ys, ..Options::default() });
    let made = made.map_err(|error| error.to_string())?;
    Ok(made.into_iter().zip(xs).map(|(made, &x)| Some(dense(b, made?, x))).collect())
}

/// Everything about one line; what is wrong.
fn check(
    runtime: &Runtime,
    case: &GoldenCase,
    line: &Line,
    archive: &mut Archive,
) -> Result<(), String> {
    let zeros = line.list("zeros");
    let there: Vec<usize> =
        line.list("inputs").into_iter().filter(|at| !zeros.contains(at)).collect();
    for shapes in [true, false] {
        let made = match Made::new(runtime, case, line, shapes) {
            Err(problem) if !shapes && NEED_SHAPES.contains(&&*case.op) => {
                assert!(problem.contains("give its input a shape"), "{problem}");
                continue;
            }
            made => made?,
        };
        made.compare(line, "d", &made.first, &there, archive)?;
        if line.has("second") {
            made.compare(line, "dd", &made.second, &line.list("second"), archive)?;
        }
        if shapes {
            line.list("numeric").iter().try_for_each(|&at| made.check_slopes(case, line, at))?;
        }
    }
    Ok(())
}

/// Checks all ops of a family, of which there are this many cases.
fn family(name: &str, plugins: &[&str], cases: usize) {
    let runtime = runtime(plugins, &[]);
    let text = fs::read(folder("gradients").join("index.json")).unwrap();
    let index: Value = serde_json::from_slice(&text).unwrap();
    let lines = index["gradients"].as_array().unwrap().iter().cloned().map(Line);
    let lines: Vec<Line> = lines.filter(|line| line.text("family") == name).collect();
    let mut archive = Archive::open(&folder("gradients").join("gradients.npz")).unwrap();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for lines in lines.chunk_by(|a, b| a.text("op") == b.text("op")) {
        let op = lines[0].text("op");
        let registry = runtime.registry();
        let def = registry.op(op).expect("the op is registered");
        let entry = def.gradient().is_some();
        if lines[0].has("none") || lines[0].has("absent") {
            if entry != MORE_ENTRIES.contains(&op) {
                wrong.push(format!("{op}: TensorFlow has no gradient"));
            }
            continue;
        }
        count += lines.len();
        // TensorFlow has entries that give none: those of ops that the definition says have none here.
        if !entry && def.facts().gradient != GradientRule::None {
            wrong.push(format!("{op}: no gradient is registered"));
            continue;
        }
        let golden = read_op(&folder(name).join(format!("{op}.json"))).unwrap();
        for line in lines {
            let case = golden.iter().find(|case| case.name == line.text("case")).unwrap();
            if let Err(problem) = check(&runtime, case, line, &mut archive) {
                wrong.push(format!("{op} {} {:?}: {problem}", case.name, line.list("outputs")));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(count, cases, "cases of family {name}");
}

#[test]
fn math_unary() {
    family("math_unary", &["tenon_cpu"], 410);
}

#[test]
fn math_binary() {
    family("math_binary", &["tenon_cpu"], 325);
}

#[test]
fn array() {
    family("array", &["tenon_cpu"], 442);
}

#[test]
fn reduction() {
    family("reduction", &["tenon_cpu"], 185);
}

#[test]
fn linalg() {
    family("linalg", &["tenon_cpu", "tenon_linalg"], 304);
}

#[test]
fn fft() {
    family("fft", &["tenon_cpu", "tenon_fft"], 48);
}

#[test]
fn nn() {
    family("nn", &["tenon_cpu"], 237);
}

#[test]
fn nn_grad() {
    family("nn_grad", &["tenon_cpu"], 247);
}

#[test]
fn image() {
    family("image", &["tenon_cpu", "tenon_image", "tenon_linalg"], 40);
}

#[test]
fn quantization() {
    family("quantization", &["tenon_cpu", "tenon_int8"], 34);
}

#[test]
fn random() {
    family("random", &["tenon_cpu"], 12);
}

#[test]
fn logging() {
    family("logging", &["tenon_cpu", "tenon_text"], 1);
}

#[test]
fn ragged() {
    family("ragged", &["tenon_cpu", "tenon_data"], 24);
}

#[test]
fn recurrent() {
    family("recurrent", &["tenon_cpu"], 12);
}

#[test]
fn speech() {
    family("speech", &["tenon_cpu"], 8);
}
