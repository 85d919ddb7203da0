//! Changes of graphs.

use super::{Mutant, Seed, values::changed};
use crate::{
    fuzz::bytes::Bytes,
    graphs::{GraphRun, RunExpected},
};
use std::collections::BTreeMap;
use tenon_framework::{DType, Tensor, registry::Registry, text::cut};
use tenon_runtime::proto::{AttrValue, AttrValueKind, GraphDef, NodeDef, VersionDef};

/// Most changes of one graph.
const MOST_CHANGES: usize = 6;

/// Ops that steer, which change places with each other.
const STEERING: [&str; 8] =
    ["Switch", "Merge", "Enter", "Exit", "NextIteration", "LoopCond", "Identity", "RefSwitch"];

/// Ops that read and write what is outside of the process.
const OUTSIDE: [&str; 5] = ["WriteFile", "ReadFile", "MatchingFiles", "Print", "PrintV2"];

/// Makes mutants.
pub(super) struct Mutator {
    /// Ops by the numbers of their input and output arguments.
    ops: BTreeMap<(usize, usize), Vec<String>>,
}

/// A graph while it is changed.
struct Changing<'a, 'b> {
    graph: GraphDef,
    seed: &'a Seed,
    ops: &'a BTreeMap<(usize, usize), Vec<String>>,
    bytes: &'a mut Bytes<'b>,
    changes: Vec<String>,
}

impl Mutator {
    pub(super) fn new(registry: &Registry) -> Mutator {
        let mut ops: BTreeMap<(usize, usize), Vec<String>> = BTreeMap::new();
        for op in registry.ops().filter(|op| !OUTSIDE.contains(&&*op.name)) {
            ops.entry((op.inputs.len(), op.outputs.len())).or_default().push(op.name.clone());
        }
        ops.values_mut().for_each(|names| names.sort_unstable());
        Mutator { ops }
    }

    pub(super) fn mutant(&self, seed: &Seed, bytes: &mut Bytes<'_>) -> Mutant {
        let golden = &seed.golden;
        let run = &golden.runs[bytes.below(golden.runs.len())];
        let optimised = !bytes.one_in(4);
        let graph = golden.graph.clone();
        let mut changing = Changing { graph, seed, ops: &self.ops, bytes, changes: Vec::new() };
        for _ in 0..=changing.bytes.below(MOST_CHANGES) {
            changing.change();
        }
        let (feeds, fetches, targets) = changing.step(run);
        Mutant {
            seed: golden.name.clone(),
            changes: changing.changes,
            graph: changing.graph,
            feeds,
            fetches,
            targets,
            optimised,
        }
    }
}

impl Changing<'_, '_> {
    /// Changes one thing.
    fn change(&mut self) {
        if self.graph.node.is_empty() {
            return;
        }
        let at = self.bytes.below(self.graph.node.len());
        let node = &self.graph.node[at];
        let before = format!("{} ({})", cut(&node.name), cut(&node.op));
        let what = match self.bytes.below(16) {
            0..=2 => self.change_attr(at),
            3 | 4 => self.change_op(at),
            5..=7 => self.change_input(at),
            8 => self.change_count(at),
            9 => self.add_control(at),
            10 => self.change_attrs(at),
            11 => self.insert(at),
            12 => self.copy(at),
            13 => self.steer(at),
            14 => self.change_whole(at),
            _ => self.redirect(at),
        };
        self.changes.push(format!("{before}: {}", cut(&what)));
    }

    fn any_node(&mut self) -> String {
        let at = self.bytes.below(self.graph.node.len());
        self.graph.node[at].name.clone()
    }

    /// An output of some node, as an input names it; most times of this type.
    fn any_output(&mut self, like: Option<DType>) -> String {
        let start = self.bytes.below(self.graph.node.len());
        let nodes = self.graph.node.iter().cycle().skip(start).take(self.graph.node.len());
        let strict = !self.bytes.one_in(6);
        let fits = |node: &NodeDef| {
            let types = self.seed.types.get(&node.name)?;
            types.iter().position(|&dtype| like.is_none_or(|like| dtype.base() == like.base()))
        };
        let found = nodes.filter_map(|node| Some((node.name.clone(), fits(node)?))).next();
        match found.filter(|_| strict) {
            Some((name, 0)) => name,
            Some((name, output)) => format!("{name}:{output}"),
            None => {
                let name = self.any_node();
                let output = self.bytes.of(&[0, 1, 2, 65_535]);
                format!("{name}:{output}")
            }
        }
    }

    /// The type of the tensor that an input names, as far as the seed gives it.
    fn type_of(&self, input: &str) -> Option<DType> {
        let (node, output) = input.rsplit_once(':').unwrap_or((input, "0"));
        self.seed.types.get(node)?.get(output.parse::<usize>().ok()?).copied()
    }

    fn change_attr(&mut self, at: usize) -> String {
        let count = self.graph.node[at].attr.len();
        if count == 0 {
            return self.change_attrs(at);
        }
        let which = self.bytes.below(count);
        let name = self.graph.node[at].attr.keys().nth(which).cloned().unwrap_or_default();
        if let Some(value) = self.graph.node[at].attr.get_mut(&name) {
            changed(value, self.bytes);
        }
        format!("attribute {name} is another")
    }

    fn change_attrs(&mut self, at: usize) -> String {
        let other = self.bytes.below(self.graph.node.len());
        let others = self.graph.node[other].attr.clone();
        let attrs = &mut self.graph.node[at].attr;
        match self.bytes.below(4) {
            0 => {
                let gone = attrs.keys().next().cloned().unwrap_or_default();
                attrs.remove(&gone);
                format!("attribute {gone} is gone")
            }
            1 => {
                attrs.extend(others);
                "attributes of another node come along".to_owned()
            }
            2 => {
                attrs.values_mut().for_each(|value| value.value = None);
                "attributes have no value".to_owned()
            }
            _ => {
                let value = AttrValueKind::S(b"new".to_vec());
                attrs.insert("of_a_newer_writer".to_owned(), AttrValue { value: Some(value) });
                "an attribute that the op does not have".to_owned()
            }
        }
    }

    /// Another op, most times one with as many arguments.
    fn change_op(&mut self, at: usize) -> String {
        let name = self.graph.node[at].op.clone();
        let alike = self.ops.values().find(|ops| ops.binary_search(&name).is_ok());
        let all: Vec<&Vec<String>> = self.ops.values().collect();
        let ops = match alike.filter(|_| !self.bytes.one_in(8)) {
            Some(ops) => ops,
            None => all[self.bytes.below(all.len())],
        };
        let op = match self.bytes.one_in(16) {
            true => "NobodyRegisteredThis".to_owned(),
            false => ops[self.bytes.below(ops.len())].clone(),
        };
        self.graph.node[at].op.clone_from(&op);
        format!("op {op}")
    }

    fn change_input(&mut self, at: usize) -> String {
        let count = self.graph.node[at].input.len();
        if count == 0 {
            return self.add_control(at);
        }
        let which = self.bytes.below(count);
        let like = self.type_of(&self.graph.node[at].input[which]);
        let input = self.any_output(like);
        self.graph.node[at].input[which].clone_from(&input);
        format!("input {which} is {input}")
    }

    /// An input more or less, with the number that says so where there is one.
    fn change_count(&mut self, at: usize) -> String {
        let first = self.graph.node[at].input.first().cloned();
        let like = first.as_deref().and_then(|input| self.type_of(input));
        let more = self.bytes.one_in(2);
        let input = self.any_output(like);
        let node = &mut self.graph.node[at];
        if more {
            node.input.insert(0, input);
        } else if !node.input.is_empty() {
            node.input.remove(0);
        }
        let step = if more { 1 } else { -1 };
        for name in ["N", "num_split", "num"] {
            if let Some(AttrValue { value: Some(AttrValueKind::I(n)) }) = node.attr.get_mut(name) {
                *n = n.wrapping_add(step);
            }
        }
        if more { "an input more" } else { "an input less" }.to_owned()
    }

    fn add_control(&mut self, at: usize) -> String {
        let name = self.any_node();
        let node = &mut self.graph.node[at];
        match self.bytes.below(4) {
            0 => {
                node.input.retain(|input| !input.starts_with('^'));
                "no control inputs".to_owned()
            }
            1 => {
                node.input.extend([format!("^{name}"), format!("^{name}")]);
                format!("waits twice for {name}")
            }
            _ => {
                node.input.push(format!("^{name}"));
                format!("waits for {name}")
            }
        }
    }

    /// A new node on the edge to the first input.
    fn insert(&mut self, at: usize) -> String {
        let Some(input) = self.graph.node[at].input.first().cloned() else {
            return self.copy(at);
        };
        let op = self.bytes.of(&[
            "Identity",
            "Neg",
            "Relu",
            "Square",
            "StopGradient",
            "Exit",
            "NextIteration",
            "Enter",
            "LoopCond",
            "Shape",
            "Squeeze",
            "Cast",
        ]);
        let dtype = self.type_of(&input).unwrap_or(DType::FLOAT).base();
        let value = |dtype: DType| AttrValue { value: Some(AttrValueKind::Type(dtype.0 as i32)) };
        let frame = AttrValue { value: Some(AttrValueKind::S(b"frame".to_vec())) };
        let mut attr = BTreeMap::from([("T".to_owned(), value(dtype))]);
        match op {
            "Enter" => drop(attr.insert("frame_name".to_owned(), frame)),
            "LoopCond" => attr.clear(),
            "Cast" => {
                let to = self.bytes.of(&[DType::FLOAT, DType::INT32, DType::HALF, DType::BOOL]);
                let types = [("SrcT", value(dtype)), ("DstT", value(to))];
                attr = types.map(|(name, value)| (name.to_owned(), value)).into();
            }
            _ => {}
        }
        let name = format!("inserted_{}", self.graph.node.len());
        self.graph.node[at].input[0].clone_from(&name);
        let (op, input) = (op.to_owned(), vec![input]);
        let text = format!("{op} before it");
        self.graph.node.push(NodeDef { name, op, input, attr, ..NodeDef::default() });
        text
    }

    /// The node twice, and some user of it takes the copy.
    fn copy(&mut self, at: usize) -> String {
        let mut node = self.graph.node[at].clone();
        let name = node.name.clone();
        node.name = format!("copy_{}", self.graph.node.len());
        let copy = node.name.clone();
        let user = self.graph.node.iter_mut().find(|user| user.input.contains(&name));
        if let Some(input) = user.and_then(|user| user.input.iter_mut().find(|i| **i == name)) {
            input.clone_from(&copy);
        }
        self.graph.node.push(node);
        format!("a copy {copy}")
    }

    /// Another role in control flow, or another frame.
    fn steer(&mut self, at: usize) -> String {
        let node = &mut self.graph.node[at];
        let frames = ["frame", "", "while/while_context", "outer"];
        match self.bytes.below(4) {
            0 => {
                let name = self.bytes.of(&frames);
                let value = AttrValueKind::S(name.as_bytes().to_vec());
                node.attr.insert("frame_name".to_owned(), AttrValue { value: Some(value) });
                format!("frame '{name}'")
            }
            1 => {
                let value = AttrValueKind::B(self.bytes.one_in(2));
                node.attr.insert("is_constant".to_owned(), AttrValue { value: Some(value) });
                "is_constant is another".to_owned()
            }
            _ => {
                let op = self.bytes.of(&STEERING);
                node.op = op.to_owned();
                format!("steers as {op}")
            }
        }
    }

    /// Who reads the node reads another.
    fn redirect(&mut self, at: usize) -> String {
        let name = self.graph.node[at].name.clone();
        let input = self.any_output(self.type_of(&name));
        for user in &mut self.graph.node {
            user.input.iter_mut().filter(|i| **i == name).for_each(|i| i.clone_from(&input));
        }
        format!("is read as {input}")
    }

    /// What is said of the node, or the graph, as a whole.
    fn change_whole(&mut self, at: usize) -> String {
        match self.bytes.below(6) {
            0 => {
                self.graph.node.remove(at);
                "is gone".to_owned()
            }
            1 => {
                self.graph.node.reverse();
                "the nodes stand in the other order".to_owned()
            }
            2 => {
                let producer = self.bytes.of(&[0, 21, 22, 2474, 99_999, -1]);
                let min_consumer = self.bytes.of(&[0, 0, 0, 99_999]);
                self.graph.versions =
                    Some(VersionDef { producer, min_consumer, bad_consumers: vec![1] });
                format!("producer {producer}")
            }
            3 => {
                let device = self.bytes.of(&["/cpu:0", "/device:CPU:7", "/job:other", "nonsense"]);
                device.clone_into(&mut self.graph.node[at].device);
                format!("device {device}")
            }
            4 => {
                let with = format!("loc:@{}", self.any_node());
                let list = tenon_runtime::proto::ListValue {
                    s: vec![with.clone().into_bytes()],
                    ..Default::default()
                };
                let value = AttrValueKind::List(Box::new(list));
                let attr = &mut self.graph.node[at].attr;
                attr.insert("_class".to_owned(), AttrValue { value: Some(value) });
                format!("stands with {with}")
            }
            _ => {
                let letters = self.bytes.of(&[1, 200, 100_000]);
                let name = "n".repeat(letters);
                name.clone_into(&mut self.graph.node[at].name);
                format!("a name of {letters} letters")
            }
        }
    }

    /// Feeds, fetches and targets: those of a run, of which something may be different.
    fn step(&mut self, run: &GraphRun) -> (Vec<(String, Tensor)>, Vec<String>, Vec<String>) {
        let (mut feeds, mut targets) = (run.feeds.clone(), run.targets.clone());
        let mut fetches: Vec<String> = match &run.expected {
            RunExpected::Fetches(fetches) => fetches.iter().map(|(name, _)| name.clone()).collect(),
            RunExpected::Error { fetches, .. } => fetches.clone(),
        };
        if self.graph.node.is_empty() {
            return (feeds, fetches, targets);
        }
        if self.bytes.one_in(4) {
            fetches = vec![self.any_output(None), self.any_output(None)];
        }
        if self.bytes.one_in(8) {
            targets.push(self.any_node());
        }
        if self.bytes.one_in(8) {
            feeds.pop();
        }
        if self.bytes.one_in(8)
            && let Some((_, value)) = feeds.last().cloned()
        {
            feeds.push((self.any_output(Some(value.dtype())), value));
        }
        (feeds, fetches, targets)
    }
}
