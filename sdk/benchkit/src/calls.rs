//! The calls to be measured.
//!
//! A [`Call`] is an op with every attribute and a recipe for every input. Calls come from shapes that the user gives,
//! one by one or along a sweep; else they are those that the op itself ships; else they are made large after what the op
//! accepts; or they are recorded from a graph.

mod attrs;
mod declared;
mod generated;
mod graph;
mod inputs;
mod sized;
mod types;

use crate::{
    error::BenchError,
    record::{Case, Input, SweepAxis},
    wanted::Shapes,
};
use std::{collections::BTreeMap, sync::Arc};
use tenon_framework::{
    DType,
    op::{OpDef, Signature},
    registry::KernelDef,
};
use tenon_testkit::check::CheckCase;

pub use graph::{Recorded, record};

/// One call.
#[derive(Debug, Clone)]
pub struct Call {
    /// The op.
    pub op: Arc<OpDef>,
    /// Attributes and inputs.
    pub case: CheckCase,
    /// Value of the sweep's symbol.
    pub at: Option<i64>,
    /// The first node of a graph that makes it.
    pub node: Option<String>,
    /// Nodes that make it in one step.
    pub calls: u64,
}

/// What the user wants of an op.
#[derive(Debug, Clone, Default)]
pub struct Wish {
    /// Shapes, one set per case.
    pub shapes: Vec<Shapes>,
    /// Values of a symbol in the shapes.
    pub sweep: Option<SweepAxis>,
    /// Attributes as text, by name.
    pub attrs: Vec<(String, String)>,
    /// Element type.
    pub dtype: Option<DType>,
    /// Elements of inputs: name, values, whether it is a scalar.
    pub values: Vec<(String, Vec<i64>, bool)>,
    /// Inputs that are constants.
    pub constants: Vec<String>,
    /// Of the elements.
    pub seed: u64,
}

impl Call {
    /// The call as a record has it.
    ///
    /// # Errors
    /// Attributes that the op does not allow.
    pub fn recorded(&self) -> Result<Case, BenchError> {
        let signature = Signature::resolve(&self.op, &self.case.attrs)?;
        let input = |(at, argument): (usize, &tenon_testkit::check::Argument)| Input {
            name: signature.input_arg_of(&self.op, at).unwrap_or_default().to_owned(),
            dtype: argument.dtype.to_string(),
            dims: argument.dims.clone(),
            constant: argument.constant,
        };
        Ok(Case {
            op: self.op.name.clone(),
            attrs: attrs::texts(&self.case.attrs),
            inputs: self.case.inputs.iter().enumerate().map(input).collect(),
            at: self.at,
            node: self.node.clone(),
            calls: self.calls,
        })
    }

    /// Shapes, and attributes that are not at their defaults, for a reader.
    ///
    /// # Errors
    /// As [`Call::recorded`].
    pub fn size(&self) -> Result<String, BenchError> {
        let case = self.recorded()?;
        let defaults = attrs::defaults(&self.op);
        let other = |(name, value): &(&String, &String)| defaults.get(*name) != Some(*value);
        let attrs = case.attrs.iter().filter(other).map(|(name, value)| format!("{name}={value}"));
        let parts: Vec<String> = [case.shapes()].into_iter().chain(attrs).collect();
        Ok(parts.join(" ").trim().to_owned())
    }

    /// Elements of the largest input.
    pub fn elements(&self) -> i64 {
        let elements = self.case.inputs.iter().map(|input| input.dims.iter().product());
        elements.max().unwrap_or(0)
    }

    /// The element type that its work is counted in: that of the first input, else of the first output.
    pub fn dtype(&self) -> DType {
        let first = self.case.inputs.first().map(|input| input.dtype);
        let output =
            || Signature::resolve(&self.op, &self.case.attrs).ok()?.outputs.first().copied();
        first.or_else(output).unwrap_or(DType::INVALID)
    }
}

/// The calls of an op that the user wants, for kernels of which one will be measured.
///
/// # Errors
/// The wish does not fit the op; nothing is known of the op's inputs.
pub fn of_op(
    op: &Arc<OpDef>,
    kernels: &[Arc<KernelDef>],
    wish: &Wish,
) -> Result<Vec<Call>, BenchError> {
    let types = types::choose(op, kernels, wish)?;
    if let Some((name, _)) = wish.attrs.iter().find(|(name, _)| op.attr(name).is_none()) {
        let known: Vec<&str> = op.attrs.iter().map(|attr| attr.name.as_str()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(BenchError::wish(
            &op.name,
            format!("has no attribute '{name}': its attributes are {known}"),
        ));
    }
    if !wish.shapes.is_empty() {
        return along_sweep(op, &types, wish);
    }
    if let Some(sweep) = &wish.sweep {
        let symbol = &sweep.symbol;
        let problem = format!(
            "--sweep {symbol} needs shapes that use it, such as --shape x=[{symbol},{symbol}]"
        );
        return Err(BenchError::wish(&op.name, problem));
    }
    inputs::check_names(op, wish, &Shapes::default())?;
    if !op.bench().calls.is_empty() {
        return declared::calls(op, &types, wish);
    }
    if wish.values.is_empty() && wish.constants.is_empty() {
        return generated::large(op, kernels, &types, wish);
    }
    let problem = "no shapes are known for these inputs: give them by --shape NAME=SHAPE,...";
    Err(BenchError::wish(&op.name, problem))
}

/// The calls of an op that a check makes up, which are smaller than usual ones; else those of [`of_op`].
///
/// # Errors
/// As [`of_op`].
pub fn made_up(
    op: &Arc<OpDef>,
    kernels: &[Arc<KernelDef>],
    wish: &Wish,
) -> Result<Vec<Call>, BenchError> {
    let types = types::choose(op, kernels, wish)?;
    generated::calls(op, kernels, &types, wish.seed).or_else(|_| of_op(op, kernels, wish))
}

fn along_sweep(
    op: &Arc<OpDef>,
    types: &tenon_framework::attr::AttrMap,
    wish: &Wish,
) -> Result<Vec<Call>, BenchError> {
    let mut calls = Vec::new();
    for shapes in &wish.shapes {
        let points: Vec<Option<i64>> = match &wish.sweep {
            Some(sweep) if shapes.symbols().contains(&sweep.symbol.as_str()) => {
                sweep.values.iter().copied().map(Some).collect()
            }
            Some(sweep) => {
                let problem = format!("no shape uses the symbol '{}' of --sweep", sweep.symbol);
                return Err(BenchError::wish(&op.name, problem));
            }
            None => vec![None],
        };
        for at in points {
            let symbols: BTreeMap<&str, i64> =
                wish.sweep.iter().zip(at).map(|(sweep, at)| (sweep.symbol.as_str(), at)).collect();
            let case = inputs::case(op, types, wish, shapes, &symbols)?;
            calls.push(Call { op: Arc::clone(op), case, at, node: None, calls: 1 });
        }
    }
    Ok(calls)
}

#[cfg(test)]
mod tests;
