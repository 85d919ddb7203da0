//! Loops as version 1 graphs have them.

use tenon_framework::{DType, Tensor};
use tenon_graph::{GraphBuilder, GraphError, NodeId, Output};

/// A node of one input.
///
/// # Errors
/// The op is not registered, or does not take it.
pub fn unary(
    b: &mut GraphBuilder<'_>,
    op: &str,
    name: &str,
    x: Output,
) -> Result<Output, GraphError> {
    Ok(b.op(op).name(name).input(x).build()?.into())
}

/// A node of two inputs.
///
/// # Errors
/// As [`unary`].
pub fn binary(
    b: &mut GraphBuilder<'_>,
    op: &str,
    name: &str,
    x: Output,
    y: Output,
) -> Result<Output, GraphError> {
    Ok(b.op(op).name(name).input(x).input(y).build()?.into())
}

/// `Switch`: the two sides, false first.
///
/// # Errors
/// As [`unary`].
pub fn switch(
    b: &mut GraphBuilder<'_>,
    name: &str,
    x: Output,
    predicate: Output,
) -> Result<(Output, Output), GraphError> {
    let node = b.op("Switch").name(name).input(x).input(predicate).build()?;
    Ok((Output::new(node, 0), Output::new(node, 1)))
}

/// A loop `while (counter) { counter -= 1; values = body(values) }`; node names begin with `name/`, and its
/// results are `name/counter_out` and `name/value_<n>_out`.
pub struct Loop<'l> {
    /// Its frame.
    pub name: &'l str,
    /// Iterations that may run at once.
    pub parallel: i64,
    /// An int32: how many iterations.
    pub counter: Output,
    /// What goes from one iteration to the next.
    pub values: &'l [Output],
    /// What is the same in all.
    pub constants: &'l [Output],
}

impl Loop<'_> {
    fn enter(
        &self,
        b: &mut GraphBuilder<'_>,
        name: &str,
        x: Output,
        constant: bool,
    ) -> Result<Output, GraphError> {
        let node = b.op("Enter").name(&format!("{}/{name}_in", self.name)).input(x);
        let node = node.attr("frame_name", self.name).attr("is_constant", constant);
        Ok(node.attr("parallel_iterations", self.parallel).build()?.into())
    }

    fn merge(&self, b: &mut GraphBuilder<'_>, name: &str, x: Output) -> Result<NodeId, GraphError> {
        let entered = self.enter(b, name, x, false)?;
        b.op("Merge").name(&format!("{}/{name}", self.name)).input(entered).input(entered).build()
    }

    /// Closes the loop of one value: its `NextIteration` and its `Exit`.
    fn close(
        &self,
        b: &mut GraphBuilder<'_>,
        name: &str,
        merge: NodeId,
        (left, next): (Output, Output),
    ) -> Result<Output, GraphError> {
        let next = unary(b, "NextIteration", &format!("{}/{name}_next", self.name), next)?;
        b.back_edge(merge, 1, next)?;
        unary(b, "Exit", &format!("{}/{name}_out", self.name), left)
    }

    /// Builds it. `body` gets the values of an iteration and the loop's constants. The counter that is left, and
    /// the values.
    ///
    /// # Errors
    /// As [`unary`].
    pub fn build(
        &self,
        b: &mut GraphBuilder<'_>,
        body: impl FnOnce(
            &mut GraphBuilder<'_>,
            &[Output],
            &[Output],
        ) -> Result<Vec<Output>, GraphError>,
    ) -> Result<Vec<Output>, GraphError> {
        let name = |part: &str| format!("{}/{part}", self.name);
        let constants = self.constants.iter().enumerate();
        let constants: Vec<Output> = constants
            .map(|(at, &x)| self.enter(b, &format!("constant_{at}"), x, true))
            .collect::<Result<_, _>>()?;
        let counter = self.merge(b, "counter", self.counter)?;
        let goes_on = b.op("Cast").name(&name("goes_on")).input(counter).attr("DstT", DType::BOOL);
        let goes_on: Output = goes_on.build()?.into();
        let goes_on = unary(b, "LoopCond", &name("condition"), goes_on)?;
        let (left, inside) = switch(b, &name("counter_switch"), counter.into(), goes_on)?;
        let one = Tensor::scalar(1i32).expect("a scalar");
        let one = b.op("Const").name(&name("one")).attr("dtype", DType::INT32).attr("value", one);
        let one: Output = one.control(inside.node).build()?.into();
        let less = binary(b, "Sub", &name("less"), inside, one)?;
        let mut results = vec![self.close(b, "counter", counter, (left, less))?];
        let (mut merges, mut lefts, mut insides) = (Vec::new(), Vec::new(), Vec::new());
        for (at, &x) in self.values.iter().enumerate() {
            let merge = self.merge(b, &format!("value_{at}"), x)?;
            let (left, inside) = switch(b, &name(&format!("switch_{at}")), merge.into(), goes_on)?;
            merges.push(merge);
            lefts.push(left);
            insides.push(inside);
        }
        let next = body(b, &insides, &constants)?;
        for (at, next) in next.into_iter().enumerate() {
            let value = format!("value_{at}");
            results.push(self.close(b, &value, merges[at], (lefts[at], next))?);
        }
        Ok(results)
    }
}
