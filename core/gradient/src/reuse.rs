//! What the differentiations of a graph and of the functions that it calls share.
//!
//! A function is differentiated once for all calls of it with the same attributes, the same gradients given and wanted,
//! and the same known shapes. The engine of a function's body has this state while it runs, and the library of the graph
//! with it, so that neither is copied.

use crate::{
    body::{Body, Flow},
    engine::Engine,
};
use std::{collections::HashMap, rc::Rc};
use tenon_framework::{DType, PartialShape, attr::FuncValue};
use tenon_graph::{FunctionKey, GraphBuilder, Output};

/// What makes the gradients of two calls the same functions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    functions: Vec<FunctionKey>,
    /// Of each result: whether it has a gradient.
    results: Vec<bool>,
    /// Of each argument: whether its gradient is wanted.
    args: Vec<bool>,
    shapes: Vec<Option<Vec<i64>>>,
}

impl Key {
    /// The key of calls of these functions.
    pub fn new<'f>(
        functions: impl IntoIterator<Item = &'f FuncValue>,
        flow: &Flow,
        shapes: &[PartialShape],
    ) -> Key {
        Key {
            functions: functions.into_iter().map(FunctionKey::of).collect(),
            results: flow.results.clone(),
            args: flow.args.clone(),
            shapes: shapes.iter().map(|shape| shape.dims().map(<[i64]>::to_vec)).collect(),
        }
    }
}

/// The functions for the gradient of a call.
pub(crate) struct CallFunctions<'r> {
    pub body: Body<'r>,
    /// The function with further results; `None` if its gradient reads no values.
    pub forward: Option<FuncValue>,
    /// The gradient; `None` if none flows.
    pub backward: Option<FuncValue>,
}

/// The functions for the gradient of a conditional.
pub(crate) struct BranchFunctions<'r> {
    pub bodies: Vec<Body<'r>>,
    pub layout: BranchLayout,
    /// The branches with further results; empty if no gradient reads values.
    pub forward: Vec<FuncValue>,
    /// The gradients of the branches; empty if none flows.
    pub backward: Vec<FuncValue>,
}

/// What the gradient of one branch is defined over: values of all branches, in one order.
pub(crate) struct BranchLayout {
    /// Arguments of which some branch has a gradient, with the type of the gradient.
    pub args: Vec<(usize, DType)>,
    /// Arguments that the gradient of some branch reads, or of which some branch lacks a gradient.
    pub read: Vec<usize>,
}

/// A loop whose gradient is made.
pub(crate) struct Loop<'r> {
    /// The body, with the gradient of one iteration.
    pub body: Body<'r>,
    pub cond: FuncValue,
    pub name: String,
    /// The variables that have a gradient.
    pub carried: Vec<usize>,
    /// The values of an iteration that its gradient reads.
    pub listed: Vec<Output>,
    /// The variables that its gradient reads and that the loop does not change.
    pub fixed: Vec<usize>,
}

/// A loop whose gradient is made, with the functions for it.
pub(crate) struct LoopFunctions<'r> {
    pub found: Loop<'r>,
    /// Condition and body of the forward loop, then of the backward loop; `None` if no variable has a gradient.
    pub functions: Option<[FuncValue; 4]>,
}

/// The shared state.
#[derive(Default)]
pub(crate) struct Shared<'r> {
    /// The number of functions that were differentiated so far, for the graph and in functions.
    pub bodies: usize,
    pub calls: HashMap<Key, Rc<CallFunctions<'r>>>,
    pub branches: HashMap<Key, Rc<BranchFunctions<'r>>>,
    pub loops: HashMap<Key, Rc<LoopFunctions<'r>>>,
    /// The next number to try for the name of a function.
    numbers: HashMap<String, u64>,
}

impl<'r> Engine<'_, 'r> {
    /// Lets the engine of a function's body run with the shared state and the library of this one.
    pub fn lend<T>(
        &mut self,
        inner: &mut Engine<'_, 'r>,
        run: impl FnOnce(&mut Engine<'_, 'r>) -> T,
    ) -> T {
        exchange(self, inner);
        let result = run(inner);
        exchange(self, inner);
        result
    }

    /// An unused name of a function.
    pub fn function_name(&mut self, near: &str, what: &str) -> String {
        let base = format!("{near}_{what}");
        let number = self.shared.numbers.entry(base.clone()).or_insert(0);
        loop {
            let name = if *number == 0 { base.clone() } else { format!("{base}_{number}") };
            *number += 1;
            if self.b.graph().function(&name).is_none() {
                return name;
            }
        }
    }
}

fn exchange<'r>(outer: &mut Engine<'_, 'r>, inner: &mut Engine<'_, 'r>) {
    std::mem::swap(&mut outer.shared, &mut inner.shared);
    exchange_libraries(outer.b, inner.b);
}

fn exchange_libraries(outer: &mut GraphBuilder<'_>, inner: &mut GraphBuilder<'_>) {
    let library = outer.take_library();
    outer.set_library(inner.take_library());
    inner.set_library(library);
}
