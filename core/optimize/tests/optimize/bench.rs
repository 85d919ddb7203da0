//! A graph and its optimised form, as text.

use crate::support::{Cpu, registry};
use tenon_framework::{KernelError, Tensor};
use tenon_graph::{
    Evaluate, Graph, GraphBuilder, GraphError, Node, Output, PlacerOptions, Subgraph, infer_shapes,
    place, prune,
};
use tenon_optimize::{Limits, Optimized, Options, Pass, Step, built_in, optimize};

/// Adds, multiplies and negates float vectors of one length and scalars; it supports no other op.
pub struct Sums;

impl Evaluate for Sums {
    fn evaluate(&self, node: &Node, inputs: &[Tensor]) -> Result<Vec<Tensor>, KernelError> {
        let unknown = || KernelError::unimplemented("no kernel");
        let values: Vec<&[f32]> = inputs
            .iter()
            .map(|input| input.as_slice::<f32>().map_err(KernelError::from))
            .collect::<Result<_, _>>()?;
        let largest = inputs.iter().max_by_key(|input| input.elements()).ok_or_else(unknown)?;
        let at = |input: usize, index: usize| values[input][index % values[input].len().max(1)];
        let one: &dyn Fn(usize) -> f32 = match (node.op.name.as_str(), values.len()) {
            ("AddV2", 2) => &|i| at(0, i) + at(1, i),
            ("Mul", 2) => &|i| at(0, i) * at(1, i),
            ("Neg", 1) => &|i| -at(0, i),
            ("Split3", 1) => {
                let copies = vec![inputs[0].clone(); 3];
                return Ok(copies);
            }
            _ => return Err(unknown()),
        };
        let made: Vec<f32> = (0..largest.elements()).map(one).collect();
        Ok(vec![Tensor::from_slice(largest.shape().dims(), &made)?])
    }
}

pub struct Case {
    pub graph: Graph,
    pub feeds: Vec<Output>,
    pub fetches: Vec<Output>,
    pub targets: Vec<&'static str>,
}

impl Case {
    /// A graph whose placeholders are fed; `make` returns the tensors to fetch.
    pub fn new(make: impl FnOnce(&mut GraphBuilder<'static>) -> Vec<Output>) -> Case {
        let mut b = crate::support::builder();
        let fetches = make(&mut b);
        let graph = b.finish();
        let placeholders = graph.nodes().filter(|(_, node)| node.op.name == "Placeholder");
        let feeds = placeholders.map(|(id, _)| Output::from(id)).collect();
        Case { graph, feeds, fetches, targets: Vec::new() }
    }

    pub fn sub(&self) -> Subgraph {
        let targets: Vec<_> =
            self.targets.iter().map(|name| self.graph.find(name).unwrap()).collect();
        prune(&self.graph, &self.feeds, &self.fetches, &targets).unwrap()
    }

    /// The graph after these passes.
    pub fn optimized(&self, passes: &[&dyn Pass]) -> Optimized {
        self.limited(passes, 10 << 20)
    }

    pub fn limited(&self, passes: &[&dyn Pass], folding_limit: usize) -> Optimized {
        self.run(passes, folding_limit, Limits::default(), None).unwrap()
    }

    /// Like [`Case::optimized`], with limits.
    pub fn within(&self, passes: &[&dyn Pass], limits: Limits<'_>) -> Optimized {
        self.try_within(passes, limits).unwrap()
    }

    pub fn try_within(
        &self,
        passes: &[&dyn Pass],
        limits: Limits<'_>,
    ) -> Result<Optimized, GraphError> {
        self.run(passes, 10 << 20, limits, None)
    }

    /// Like [`Case::optimized`], on a device that computes images in this format.
    pub fn with_format(&self, passes: &[&dyn Pass], format: Option<&'static str>) -> Optimized {
        self.run(passes, 10 << 20, Limits::default(), format).unwrap()
    }

    fn run(
        &self,
        passes: &[&dyn Pass],
        folding_limit: usize,
        limits: Limits<'_>,
        format: Option<&'static str>,
    ) -> Result<Optimized, GraphError> {
        let cpu = Cpu::new(format);
        let sub = self.sub();
        let shapes = infer_shapes(&self.graph, &sub, &[]).unwrap();
        let placement = place(&self.graph, &sub, &cpu, &PlacerOptions::default()).unwrap();
        let step = Step { graph: &self.graph, sub: &sub, shapes, placement };
        let options = Options {
            registry: registry(),
            view: &cpu,
            evaluate: &Sums,
            skip: &|_| None,
            rounds: 4,
            folding_limit,
            limits,
        };
        optimize(step, passes, &options)
    }

    /// The graph after the pass of this name, or after all.
    pub fn after(&self, pass: &str) -> String {
        let all = built_in();
        let passes: Vec<&dyn Pass> =
            all.iter().map(|p| &**p).filter(|p| pass == "all" || p.name() == pass).collect();
        let done = self.optimized(&passes);
        for pass in &done.report.passes {
            assert_eq!(pass.error, None, "{pass:?}");
        }
        assert!(done.report.rounds < 4, "it comes to rest: {:?}", done.report);
        text(&done)
    }
}

/// One line per node that runs: `y = AddV2(x, c) ^z`, in the order of names.
pub fn text(done: &Optimized) -> String {
    let name = |output: &Output| match (done.graph.node(output.node).name.as_str(), output.output) {
        (name, 0) => name.to_owned(),
        (name, at) => format!("{name}:{at}"),
    };
    let line = |node: &Node| {
        let inputs: Vec<String> = node.inputs.iter().map(name).collect();
        let mut line = format!("{} = {}({})", node.name, node.op.name, inputs.join(", "));
        for control in &node.control_inputs {
            line += &format!(" ^{}", done.graph.node(*control).name);
        }
        line
    };
    let mut lines: Vec<String> =
        done.sub.order.iter().map(|id| line(done.graph.node(*id))).collect();
    lines.sort();
    lines.join("\n")
}

/// The value of a constant of the graph.
pub fn constant(done: &Optimized, name: &str) -> Tensor {
    let node = done.graph.node(done.graph.find(name).unwrap());
    match node.attrs.get("value") {
        Some(tenon_framework::attr::AttrValue::Tensor(value)) => value.clone(),
        other => panic!("{name} is not a constant: {other:?}"),
    }
}

/// Compares the graph after passes with the expected text, lines trimmed.
#[track_caller]
pub fn check(
    pass: &str,
    expected: &str,
    make: impl FnOnce(&mut GraphBuilder<'static>) -> Vec<Output>,
) {
    let found = Case::new(make).after(pass);
    let lines = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
    };
    let mut expected = lines(expected);
    expected.sort();
    assert_eq!(lines(&found), expected, "\n{found}");
}
