//! Random graphs of ops that the CPU has kernels for.

use tenon_graph::{GraphBuilder, GraphError, Output};
use tenon_runtime::framework::{DType, PartialShape, Tensor};

/// A small generator of random numbers (splitmix64), so that a graph is known by its seed.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    pub fn one_of<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

/// A tensor of a random graph.
#[derive(Clone)]
struct Value {
    output: Output,
    dtype: DType,
    dims: Vec<i64>,
}

/// What is fed to a random graph, and what is fetched from it.
#[derive(Default)]
pub struct Plan {
    pub feeds: Vec<(String, Tensor)>,
    pub fetches: Vec<String>,
}

/// Builds a random graph.
pub struct Maker<'b, 'r> {
    b: &'b mut GraphBuilder<'r>,
    random: Random,
    values: Vec<Value>,
    plan: Plan,
}

const SHAPES: &[&[i64]] = &[&[], &[4], &[3, 4], &[2, 3, 4], &[1, 4], &[3, 1], &[4, 4], &[0, 4]];
/// Constants that passes have rules for, and others.
const NUMBERS: &[f32] = &[0.0, -0.0, 1.0, -1.0, 0.5, 3.0, f32::INFINITY, f32::NAN];

impl<'b, 'r> Maker<'b, 'r> {
    /// Builds a graph of so many nodes.
    ///
    /// # Errors
    /// An op that is not there.
    pub fn build(b: &'b mut GraphBuilder<'r>, seed: u64, nodes: usize) -> Result<Plan, GraphError> {
        let mut maker =
            Maker { b, random: Random(seed), values: Vec::new(), plan: Plan::default() };
        for dtype in [DType::FLOAT, DType::INT32, DType::FLOAT, DType::FLOAT] {
            maker.placeholder(dtype)?;
        }
        maker.constant()?;
        while maker.values.len() < nodes {
            maker.node()?;
        }
        for _ in 0..4 {
            let at = maker.random.below(maker.values.len());
            maker.fetch(at);
        }
        maker.fetch(maker.values.len() - 1);
        Ok(maker.plan)
    }

    fn fetch(&mut self, at: usize) {
        let name = self.b.graph().output_name(self.values[at].output);
        if !self.plan.fetches.contains(&name)
            && !self.plan.feeds.iter().any(|(fed, _)| *fed == name)
        {
            self.plan.fetches.push(name);
        }
    }

    fn tensor(&mut self, dtype: DType, dims: &[i64]) -> Tensor {
        let count = dims.iter().product::<i64>() as usize;
        let equal = self.random.below(2) == 0;
        let number = *self.random.one_of(NUMBERS);
        let mut value = || match equal {
            true => number,
            false => (self.random.below(2000) as f32 - 1000.0) / 64.0,
        };
        let values: Vec<f32> = (0..count).map(|_| value()).collect();
        match dtype {
            DType::INT32 => {
                let whole: Vec<i32> = values.iter().map(|value| *value as i32).collect();
                Tensor::from_slice(dims, &whole)
            }
            _ => Tensor::from_slice(dims, &values),
        }
        .expect("values of a small shape")
    }

    fn placeholder(&mut self, dtype: DType) -> Result<(), GraphError> {
        let dims = self.random.one_of(SHAPES).to_vec();
        let declared: Vec<i64> =
            dims.iter().map(|&dim| if self.random.below(3) == 0 { -1 } else { dim }).collect();
        let shape = match self.random.below(4) {
            0 => PartialShape::UNKNOWN,
            _ => PartialShape::new(&declared).expect("a small shape"),
        };
        let name = format!("x{}", self.values.len());
        let output = self.b.placeholder(&name, dtype, shape)?;
        // No number of the special ones: those come from constants too often.
        let fed = self.tensor(dtype, &dims);
        self.plan.feeds.push((format!("{name}:0"), fed));
        self.values.push(Value { output, dtype, dims });
        Ok(())
    }

    fn constant(&mut self) -> Result<(), GraphError> {
        let dtype = *self.random.one_of(&[DType::FLOAT, DType::FLOAT, DType::INT32]);
        let dims = self.random.one_of(SHAPES).to_vec();
        let value = self.tensor(dtype, &dims);
        let output = self.b.constant(&format!("c{}", self.b.graph().len()), value)?;
        self.values.push(Value { output, dtype, dims });
        Ok(())
    }

    fn pick(&mut self) -> Value {
        // Late values more often, so that chains form.
        let count = self.values.len();
        let at = self.random.below(count).max(self.random.below(count));
        self.values[at].clone()
    }

    fn vector(&mut self, values: &[i64]) -> Result<Output, GraphError> {
        let narrow: Vec<i32> = values.iter().map(|&value| value as i32).collect();
        let name = format!("v{}_{}", self.values.len(), self.b.graph().len());
        let tensor = Tensor::from_slice(&[narrow.len() as i64], &narrow).expect("a vector");
        self.b.constant(&name, tensor)
    }

    fn push(
        &mut self,
        op: &str,
        inputs: &[Output],
        dtype: DType,
        dims: Vec<i64>,
    ) -> Result<(), GraphError> {
        let name = format!("n{}", self.b.graph().len());
        let control = (self.random.below(8) == 0).then(|| self.pick().output.node);
        let mut node = self.b.op(op).name(&name).inputs(inputs.iter().copied());
        if op == "Cast" {
            node = node.attr("DstT", dtype);
        }
        if let Some(control) = control {
            node = node.control(control);
        }
        let output = node.build()?.into();
        self.values.push(Value { output, dtype, dims });
        Ok(())
    }

    fn node(&mut self) -> Result<(), GraphError> {
        match self.random.below(14) {
            0 => self.constant(),
            12 => self.dense(),
            13 => self.image(),
            1..=3 => self.unary(),
            4..=6 => self.binary(),
            7 => self.reshape(),
            8 => self.transpose(),
            9 => self.reduction(),
            10 => self.join(),
            _ => self.product_or_branch(),
        }
    }

    fn unary(&mut self) -> Result<(), GraphError> {
        let x = self.pick();
        let both = ["Neg", "Identity", "StopGradient", "Relu", "Snapshot", "Square"];
        let float = ["Tanh", "Sigmoid", "Exp", "Sqrt", "Neg", "Relu6", "Identity"];
        let op = match x.dtype {
            DType::FLOAT => *self.random.one_of(
                &[both, [float[0], float[1], float[2], float[3], float[5], "Neg"]].concat(),
            ),
            _ => *self.random.one_of(&both),
        };
        match self.random.below(6) {
            0 => {
                let to = if x.dtype == DType::FLOAT { DType::DOUBLE } else { DType::INT64 };
                self.push("Cast", &[x.output], to, x.dims.clone())?;
                let wide = self.values.pop().expect("it was just pushed");
                self.push("Cast", &[wide.output], x.dtype, x.dims)
            }
            _ => self.push(op, &[x.output], x.dtype, x.dims),
        }
    }

    fn binary(&mut self) -> Result<(), GraphError> {
        let x = self.pick();
        let fits = |y: &&Value| y.dtype == x.dtype && broadcast(&x.dims, &y.dims).is_some();
        let fitting: Vec<Value> = self.values.iter().filter(fits).cloned().collect();
        let y = self.random.one_of(&fitting).clone();
        let Some(dims) = broadcast(&x.dims, &y.dims) else { return Ok(()) };
        let mut ops = vec!["AddV2", "Sub", "Mul", "Maximum", "Minimum", "AddV2", "Mul"];
        if x.dtype == DType::FLOAT {
            ops.push("RealDiv");
        }
        let op = *self.random.one_of(&ops);
        let swap = self.random.below(2) == 0;
        let inputs = if swap { [y.output, x.output] } else { [x.output, y.output] };
        self.push(op, &inputs, x.dtype, dims)
    }

    fn reshape(&mut self) -> Result<(), GraphError> {
        let x = self.pick();
        let count: i64 = x.dims.iter().product();
        match self.random.below(4) {
            0 => {
                let shape = self.b.op("Shape").input(x.output).build()?;
                self.push("Reshape", &[x.output, shape.into()], x.dtype, x.dims)
            }
            1 if count > 0 => {
                let flat = self.vector(&[-1])?;
                self.push("Reshape", &[x.output, flat], x.dtype, vec![count])
            }
            2 => {
                let axis = self.vector(&[0])?;
                let dims = [&[1], x.dims.as_slice()].concat();
                self.push("ExpandDims", &[x.output, axis], x.dtype, dims)
            }
            _ => {
                let shape = self.vector(&x.dims)?;
                self.push("Reshape", &[x.output, shape], x.dtype, x.dims)
            }
        }
    }

    fn transpose(&mut self) -> Result<(), GraphError> {
        let x = self.pick();
        let mut perm: Vec<i64> = (0..x.dims.len() as i64).collect();
        for at in (1..perm.len()).rev() {
            let other = self.random.below(at + 1);
            perm.swap(at, other);
        }
        let dims = perm.iter().map(|&at| x.dims[at as usize]).collect();
        let perm = self.vector(&perm)?;
        self.push("Transpose", &[x.output, perm], x.dtype, dims)
    }

    fn reduction(&mut self) -> Result<(), GraphError> {
        let x = self.pick();
        if x.dims.is_empty() || x.dims.contains(&0) {
            return self.unary();
        }
        let axis = self.random.below(x.dims.len());
        let none = self.random.below(5) == 0;
        let axes =
            self.vector(if none { &[] } else { std::slice::from_ref(&[0, 1, 2, 3][axis]) })?;
        let mut dims = x.dims.clone();
        if !none {
            dims.remove(axis);
        }
        let op = if x.dtype == DType::FLOAT {
            *self.random.one_of(&["Sum", "Mean", "Max"])
        } else {
            "Sum"
        };
        self.push(op, &[x.output, axes], x.dtype, dims)
    }

    fn join(&mut self) -> Result<(), GraphError> {
        let x = self.pick();
        if x.dims.is_empty() {
            return self.push("AddN", &[x.output], x.dtype, x.dims);
        }
        let fits = |y: &&Value| {
            y.dtype == x.dtype && y.dims.len() == x.dims.len() && y.dims[1..] == x.dims[1..]
        };
        let fitting: Vec<Value> = self.values.iter().filter(fits).cloned().collect();
        let y = self.random.one_of(&fitting).clone();
        let name = format!("axis{}", self.b.graph().len());
        let axis = self.b.constant(&name, Tensor::scalar(0i32).expect("a scalar"))?;
        let mut dims = x.dims.clone();
        dims[0] += y.dims[0];
        self.push("ConcatV2", &[x.output, y.output, axis], x.dtype, dims)
    }

    fn product_or_branch(&mut self) -> Result<(), GraphError> {
        let x = self.pick();
        let float = |y: &&Value| y.dtype == DType::FLOAT && y.dims.len() == 2;
        let fits = |y: &&Value| float(y) && x.dims.len() == 2 && y.dims[0] == x.dims[1];
        let fitting: Vec<Value> = self.values.iter().filter(fits).cloned().collect();
        if x.dtype == DType::FLOAT && !fitting.is_empty() && self.random.below(2) == 0 {
            let y = self.random.one_of(&fitting).clone();
            return self.push(
                "MatMul",
                &[x.output, y.output],
                DType::FLOAT,
                vec![x.dims[0], y.dims[1]],
            );
        }
        self.branch(&x)
    }

    /// A product, its bias and an activation, as a layer of a model has them.
    fn dense(&mut self) -> Result<(), GraphError> {
        let float = |x: &&Value| x.dtype == DType::FLOAT && x.dims.len() == 2 && x.dims[1] > 0;
        let matrices: Vec<Value> = self.values.iter().filter(float).cloned().collect();
        if matrices.is_empty() {
            return self.constant();
        }
        let x = self.random.one_of(&matrices).clone();
        let weights = self.tensor(DType::FLOAT, &[x.dims[1], 4]);
        let weights = self.b.constant(&format!("w{}", self.b.graph().len()), weights)?;
        let bias = self.tensor(DType::FLOAT, &[4]);
        let bias = self.b.constant(&format!("bias{}", self.b.graph().len()), bias)?;
        let dims = vec![x.dims[0], 4];
        self.push("MatMul", &[x.output, weights], DType::FLOAT, dims.clone())?;
        let product = self.values[self.values.len() - 1].output;
        let op = *self.random.one_of(&["BiasAdd", "AddV2"]);
        self.push(op, &[product, bias], DType::FLOAT, dims.clone())?;
        let sum = self.values[self.values.len() - 1].output;
        let act = *self.random.one_of(&["Relu", "Relu6", "Tanh", "Sigmoid", "Neg"]);
        self.push(act, &[sum], DType::FLOAT, dims)
    }

    /// A convolution with channels first, its bias and an activation.
    fn image(&mut self) -> Result<(), GraphError> {
        let known = |x: &&Value| x.dtype == DType::FLOAT && x.dims == [1, 2, 4, 4];
        let images: Vec<Value> = self.values.iter().filter(known).cloned().collect();
        let x = match images.is_empty() {
            false => self.random.one_of(&images).output,
            true => {
                let name = format!("image{}", self.b.graph().len());
                let shape = PartialShape::new(&[-1, 2, 4, 4]).expect("a small shape");
                let output = self.b.placeholder(&name, DType::FLOAT, shape)?;
                let fed = self.tensor(DType::FLOAT, &[1, 2, 4, 4]);
                self.plan.feeds.push((format!("{name}:0"), fed));
                output
            }
        };
        let filter = self.tensor(DType::FLOAT, &[3, 3, 2, 2]);
        let filter = self.b.constant(&format!("f{}", self.b.graph().len()), filter)?;
        let name = format!("n{}", self.b.graph().len());
        let conv = self.b.op("Conv2D").name(&name).input(x).input(filter).attr("padding", "SAME");
        let conv = conv.attr("strides", vec![1i64; 4]).attr("data_format", "NCHW").build()?;
        let bias = self.tensor(DType::FLOAT, &[2]);
        let bias = self.b.constant(&format!("bias{}", self.b.graph().len()), bias)?;
        let name = format!("n{}", self.b.graph().len());
        let sum = self.b.op("BiasAdd").name(&name).input(conv).input(bias);
        let sum = sum.attr("data_format", "NCHW").build()?;
        self.push("Relu", &[sum.into()], DType::FLOAT, vec![1, 2, 4, 4])
    }

    /// `if (p) relu(x) else -x`, `p` constant or fed.
    fn branch(&mut self, x: &Value) -> Result<(), GraphError> {
        let name = format!("p{}", self.b.graph().len());
        let value = Tensor::scalar(self.random.below(2) == 0).expect("a scalar");
        let p = match self.random.below(2) {
            0 => self.b.constant(&name, value)?,
            _ => {
                self.plan.feeds.push((format!("{name}:0"), value));
                let shape = PartialShape::new(&[]).expect("the shape of a scalar");
                self.b.placeholder(&name, DType::BOOL, shape)?
            }
        };
        let s = self.b.op("Switch").input(x.output).input(p).build()?;
        let yes = self.b.op("Relu").input(Output::new(s, 1)).build()?;
        let no = self.b.op("Neg").input(Output::new(s, 0)).build()?;
        let inputs = [no.into(), yes.into()];
        let name = format!("n{}", self.b.graph().len());
        let output = self.b.op("Merge").name(&name).inputs(inputs).build()?;
        self.values.push(Value { output: output.into(), dtype: x.dtype, dims: x.dims.clone() });
        Ok(())
    }
}

fn broadcast(a: &[i64], b: &[i64]) -> Option<Vec<i64>> {
    let rank = a.len().max(b.len());
    let at = |dims: &[i64], index: usize| {
        (index + dims.len()).checked_sub(rank).map_or(1, |index| dims[index])
    };
    let dim = |index| match (at(a, index), at(b, index)) {
        (a, b) if a == b || b == 1 => Some(a),
        (1, b) => Some(b),
        _ => None,
    };
    (0..rank).map(dim).collect()
}
