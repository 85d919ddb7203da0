//! A graph under construction, and what its values will be.

use super::Case;
use crate::fuzz::bytes::Bytes;
use half::{bf16, f16};
use std::{collections::HashMap, fmt::Write};
use tenon_framework::{
    DType, PartialShape, Tensor,
    attr::{AttrMap, AttrValue},
    infer::{Symbols, ValueInfo, infer},
    registry::Registry,
};
use tenon_runtime::{
    graph::{GraphBuilder, NodeId, Output},
    optimize::BUILT_IN,
};

/// What will become of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is computed, as far as is known.
    Alive,
    /// It is on a branch that is not taken.
    Dead,
    /// Its node fails.
    Fails,
}

/// A tensor of the graph.
#[derive(Debug, Clone)]
pub(super) struct Value {
    pub output: Output,
    pub dtype: DType,
    /// Its dimensions in the step.
    pub dims: Vec<i64>,
    pub fate: Fate,
}

/// Numbers that rules look for, and others.
const NUMBERS: &[f64] =
    &[1.0, 0.5, -0.75, 2.0, 0.0, 1.25, -1.0, 0.25, 1.5, -0.5, 0.125, -2.0, 0.75, -0.0, 3.0, -1.5];

/// The graph, with the values so far.
pub(super) struct Pool<'r, 'd> {
    b: GraphBuilder<'r>,
    pub registry: &'r Registry,
    pub bytes: Bytes<'d>,
    pub values: Vec<Value>,
    feeds: Vec<(String, Tensor)>,
    infos: HashMap<Output, ValueInfo>,
    fates: HashMap<NodeId, Fate>,
    symbols: Symbols,
    text: String,
}

impl<'r, 'd> Pool<'r, 'd> {
    pub fn new(registry: &'r Registry, bytes: Bytes<'d>) -> Pool<'r, 'd> {
        Pool {
            b: GraphBuilder::new(registry),
            registry,
            bytes,
            values: Vec::new(),
            feeds: Vec::new(),
            infos: HashMap::new(),
            fates: HashMap::new(),
            symbols: Symbols::default(),
            text: String::new(),
        }
    }

    /// All passes most of the time, else one of this project's alone.
    pub fn choose_pass(&mut self) -> Option<&'static str> {
        self.bytes.one_in(4).then(|| self.bytes.of(BUILT_IN))
    }

    /// The case, where it has something to fetch.
    pub fn finish(mut self, pass: Option<&'static str>) -> Option<Case> {
        let computed = |value: &&Value| {
            let op = &self.b.graph().node(value.output.node).op.name;
            op != "Placeholder" && op != "Const"
        };
        let all: Vec<Value> = self.values.iter().filter(computed).cloned().collect();
        let (alive, others): (Vec<Value>, Vec<Value>) =
            all.into_iter().partition(|value| value.fate == Fate::Alive);
        let mut fetches = Vec::new();
        for _ in 0..1 + self.bytes.below(3) {
            let other = self.bytes.one_in(12) && !others.is_empty();
            let from = if other { &others } else { &alive };
            if from.is_empty() {
                return None;
            }
            // The last one, where no bytes are left.
            let at = self.bytes.below(from.len()).min(self.bytes.below(from.len()));
            let name = self.b.graph().output_name(from[from.len() - 1 - at].output);
            if !fetches.contains(&name) {
                fetches.push(name);
            }
        }
        let def = self.b.finish().to_graph_def().ok()?;
        Some(Case { def, feeds: self.feeds, fetches, pass, text: self.text })
    }

    /// One of the values that `fits`, a late one more often than an early one.
    pub fn pick(&mut self, fits: impl Fn(&Value) -> bool) -> Option<Value> {
        let fitting: Vec<usize> =
            (0..self.values.len()).filter(|&at| fits(&self.values[at])).collect();
        if fitting.is_empty() {
            return None;
        }
        let back = self.bytes.below(fitting.len()).min(self.bytes.below(fitting.len()));
        Some(self.values[fitting[fitting.len() - 1 - back]].clone())
    }

    /// One of the values that are alive, seldom another.
    pub fn pick_alive(&mut self, fits: impl Fn(&Value) -> bool) -> Option<Value> {
        let any = self.bytes.one_in(16);
        self.pick(|value| fits(value) && (any || value.fate == Fate::Alive))
    }

    /// Adds a node; its outputs, where the op takes the inputs.
    pub fn node(&mut self, op: &str, inputs: &[Output], attrs: AttrMap) -> Option<Vec<Value>> {
        let control = if self.bytes.one_in(10) { self.pick_alive(|_| true) } else { None };
        let control: Vec<NodeId> = control.iter().map(|value| value.output.node).collect();
        self.node_after(op, inputs, attrs, &control)
    }

    /// As [`Pool::node`], after these nodes.
    pub fn node_after(
        &mut self,
        op: &str,
        inputs: &[Output],
        attrs: AttrMap,
        control: &[NodeId],
    ) -> Option<Vec<Value>> {
        let name = format!("n{}", self.b.graph().len());
        let mut node = self.b.op(op).name(&name).inputs(inputs.iter().copied());
        for (name, value) in attrs {
            node = node.attr(&name, value);
        }
        for &id in control {
            node = node.control(id);
        }
        let id = node.build().ok()?;
        self.told(id);
        let built = self.b.graph().node(id).clone();
        let known: Vec<ValueInfo> =
            inputs.iter().map(|input| self.infos.get(input).cloned().unwrap_or_default()).collect();
        let known: Vec<&ValueInfo> = known.iter().collect();
        let made = infer(&built.op, &built.attrs, &known, &mut self.symbols);
        let fate = self.fate(op, inputs, control, made.is_ok());
        let infos = made.unwrap_or_else(|_| vec![ValueInfo::default(); built.outputs().len()]);
        self.fates.insert(id, fate);
        let mut values = Vec::new();
        for (at, (&dtype, info)) in built.outputs().iter().zip(infos).enumerate() {
            let output = Output::new(id, at as u32);
            let full = info.shape.partial().full().map(|shape| shape.dims().to_vec());
            self.infos.insert(output, info);
            values.push(Value { output, dtype, dims: full.unwrap_or_default(), fate });
        }
        self.values.extend(values.iter().cloned());
        Some(values)
    }

    fn fate(&self, op: &str, inputs: &[Output], control: &[NodeId], fits: bool) -> Fate {
        let of = |id: &NodeId| self.fates.get(id).copied().unwrap_or(Fate::Alive);
        let dead_input = |input: &Output| {
            of(&input.node) == Fate::Dead
                || self.values.iter().any(|v| v.output == *input && v.fate == Fate::Dead)
        };
        let dead = if op == "Merge" {
            inputs.iter().all(dead_input)
        } else {
            inputs.iter().any(dead_input) || control.iter().any(|id| of(id) == Fate::Dead)
        };
        let fails = |id: &NodeId| of(id) == Fate::Fails;
        match dead {
            true => Fate::Dead,
            false
                if !fits
                    || inputs.iter().any(|input| fails(&input.node))
                    || control.iter().any(fails) =>
            {
                Fate::Fails
            }
            false => Fate::Alive,
        }
    }

    /// Says of outputs of a node what becomes of them.
    pub fn set_fate(&mut self, output: Output, fate: Fate) {
        for value in self.values.iter_mut().filter(|value| value.output == output) {
            value.fate = fate;
        }
    }

    /// Says of a node that it fails.
    pub fn fails(&mut self, value: &Value) {
        self.fates.insert(value.output.node, Fate::Fails);
        self.set_fate(value.output, Fate::Fails);
    }

    fn told(&mut self, id: NodeId) {
        let node = self.b.graph().node(id);
        let inputs: Vec<String> =
            node.inputs.iter().map(|input| self.b.graph().output_name(*input)).collect();
        let mut line = format!("{} = {}({})", node.name, node.op.name, inputs.join(", "));
        for control in &node.control_inputs {
            let _ = write!(line, " ^{}", self.b.graph().node(*control).name);
        }
        let attrs = node.attrs.attrs().iter().filter(|(name, _)| *name != "T");
        for (name, value) in attrs {
            let text = match value {
                AttrValue::Tensor(tensor) => shown(tensor),
                _ => format!("{value:?}"),
            };
            let _ = write!(line, " {name}={text}");
        }
        self.text += &line;
        self.text.push('\n');
    }

    /// A constant.
    pub fn constant(&mut self, tensor: Tensor) -> Option<Value> {
        let attrs = AttrMap::from([
            ("dtype".to_owned(), tensor.dtype().into()),
            ("value".to_owned(), tensor.into()),
        ]);
        self.node_after("Const", &[], attrs, &[])?.pop()
    }

    /// A vector of integers.
    pub fn ints(&mut self, values: &[i64]) -> Option<Value> {
        let narrow: Vec<i32> = values.iter().map(|&value| value as i32).collect();
        self.constant(Tensor::from_slice(&[narrow.len() as i64], &narrow).ok()?)
    }

    /// A placeholder that is fed, of which all, some or nothing of the shape is known.
    pub fn placeholder(&mut self, fed: Tensor) -> Option<Value> {
        let dims = fed.shape().dims().to_vec();
        let shape = match self.bytes.below(3) {
            0 => PartialShape::UNKNOWN,
            known => {
                let declared = dims
                    .iter()
                    .map(|&dim| if known == 1 && self.bytes.one_in(2) { -1 } else { dim });
                PartialShape::new(&declared.collect::<Vec<_>>()).ok()?
            }
        };
        let attrs = AttrMap::from([
            ("dtype".to_owned(), fed.dtype().into()),
            ("shape".to_owned(), shape.into()),
        ]);
        let mut value = self.node_after("Placeholder", &[], attrs, &[])?.pop()?;
        self.infos.insert(value.output, ValueInfo::of_constant(fed.clone()));
        value.dims.clone_from(&dims);
        if let Some(last) = self.values.last_mut() {
            last.dims = dims;
        }
        self.feeds.push((self.b.graph().output_name(value.output), fed));
        Some(value)
    }

    /// A value of this type and shape: fed, or a constant.
    pub fn leaf(&mut self, dtype: DType, dims: &[i64]) -> Option<Value> {
        let tensor = self.tensor(dtype, dims)?;
        if self.bytes.one_in(3) { self.constant(tensor) } else { self.placeholder(tensor) }
    }

    /// A tensor of plain numbers, all of one or of several.
    pub fn tensor(&mut self, dtype: DType, dims: &[i64]) -> Option<Tensor> {
        let count = usize::try_from(dims.iter().product::<i64>()).ok()?;
        let first = self.bytes.below(NUMBERS.len());
        let step = self.bytes.below(3);
        let number = |at: usize| NUMBERS[(first + at * step * 5) % NUMBERS.len()];
        tensor_of(dtype, dims, &(0..count).map(number).collect::<Vec<_>>())
    }
}

/// A tensor of numbers, each rounded to the type.
pub(super) fn tensor_of(dtype: DType, dims: &[i64], values: &[f64]) -> Option<Tensor> {
    let tensor = match dtype {
        DType::DOUBLE => Tensor::from_slice(dims, values),
        DType::FLOAT => Tensor::from_slice(dims, &cast(values, |value| value as f32)),
        DType::HALF => Tensor::from_slice(dims, &cast(values, f16::from_f64)),
        DType::BFLOAT16 => Tensor::from_slice(dims, &cast(values, bf16::from_f64)),
        DType::INT32 => Tensor::from_slice(dims, &cast(values, |value| value as i32)),
        DType::INT64 => Tensor::from_slice(dims, &cast(values, |value| value as i64)),
        DType::BOOL => Tensor::from_slice(dims, &cast(values, |value| value > 0.0)),
        _ => return None,
    };
    tensor.ok()
}

fn cast<T>(values: &[f64], to: impl Fn(f64) -> T) -> Vec<T> {
    values.iter().map(|&value| to(value)).collect()
}

/// Shape and first elements.
pub(super) fn shown(tensor: &Tensor) -> String {
    let values = match tensor.dtype() {
        DType::FLOAT => tensor.as_slice::<f32>().map(|values| format!("{values:?}")),
        DType::DOUBLE => tensor.as_slice::<f64>().map(|values| format!("{values:?}")),
        DType::INT32 => tensor.as_slice::<i32>().map(|values| format!("{values:?}")),
        _ => tensor.as_bytes().map(|bytes| format!("bytes {bytes:?}")),
    };
    let values: String = values.unwrap_or_default().chars().take(120).collect();
    format!("{} {:?} {values}", tensor.dtype(), tensor.shape().dims())
}
