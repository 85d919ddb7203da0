//! Reads what nodes compute as polynomials in the values of a function and of its gradient.

use super::{
    super::{conditions::is_last_axis, numbers::single},
    Function,
    polynomial::{Atom, Polynomial},
};
use crate::{Draft, broadcast::leaves_shape, spread};
use std::collections::HashMap;
use tenon_framework::{
    DType,
    attr::AttrValue,
    infer::{Dimension, Item},
};
use tenon_graph::{NodeId, Output};

/// The most nodes that are read for a function.
const MOST_NODES: usize = 256;
/// The most nodes one above the other.
const MOST_DEPTH: usize = 64;

/// What a value has its elements for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Space {
    /// One number.
    Number,
    /// A value for each position of the last dimension.
    Channels,
    /// A value for each row, with a last dimension of size 1.
    Rows,
    /// A value for each row, without the last dimension.
    Flat,
    /// A value for each element of the operand.
    Whole,
}

use Space::{Channels, Flat, Number, Rows, Whole};

/// What a node computes.
#[derive(Debug, Clone)]
pub(super) struct Value {
    pub polynomial: Polynomial,
    pub space: Space,
}

impl Value {
    fn new(polynomial: Polynomial, space: Space) -> Value {
        Value { polynomial, space }
    }

    fn atom(atom: Atom, power: i8, space: Space) -> Value {
        Value::new(Polynomial::term(1.0, &[(atom, power)]), space)
    }
}

/// The elements of a value that is computed from two by broadcasting.
fn joined(a: Space, b: Space) -> Option<Space> {
    match (a, b) {
        (a, b) if a == b => Some(a),
        (Number, other) | (other, Number) => Some(other),
        (Rows, Channels) | (Channels, Rows) => Some(Whole),
        (Whole, Rows | Channels) | (Rows | Channels, Whole) => Some(Whole),
        _ => None,
    }
}

/// Reads nodes.
pub(super) struct Reader<'d, 'a> {
    draft: &'d Draft<'a>,
    function: &'d Function,
    gradient: Output,
    depth: usize,
    seen: HashMap<Output, Option<Value>>,
}

impl<'d, 'a> Reader<'d, 'a> {
    /// A reader for a function, the gradient of whose result is `gradient`.
    pub fn new(draft: &'d Draft<'a>, function: &'d Function, gradient: Output) -> Reader<'d, 'a> {
        Reader { draft, function, gradient, depth: 0, seen: HashMap::new() }
    }

    /// What a value is; `None` if it is not known to be a polynomial.
    pub fn read(&mut self, output: Output) -> Option<Value> {
        if output == self.function.x {
            return Some(Value::atom(Atom::X, 1, Whole));
        }
        if output == self.gradient {
            return Some(Value::atom(Atom::Gradient, 1, Whole));
        }
        if Some(output) == self.function.scale {
            return Some(Value::atom(Atom::Scale, 1, Channels));
        }
        if let Some(constant) = self.draft.constant(output) {
            let number = single(constant)?;
            let fits = leaves_shape(self.draft, output, self.function.x);
            return fits.then(|| Value::new(Polynomial::number(number), Number));
        }
        if let Some(seen) = self.seen.get(&output) {
            return seen.clone();
        }
        if self.seen.len() >= MOST_NODES || self.depth >= MOST_DEPTH {
            return None;
        }
        // A loop leads back to a node that is being read.
        self.seen.insert(output, None);
        self.depth += 1;
        let id = self.draft.source(output).filter(|_| output.output == 0);
        let value = id.and_then(|id| self.node(id));
        self.depth -= 1;
        self.seen.insert(output, value.clone());
        value
    }

    fn node(&mut self, id: NodeId) -> Option<Value> {
        let (draft, function) = (self.draft, self.function);
        draft.spend(1);
        let node = draft.node(id);
        if node.outputs().is_empty() {
            return None;
        }
        let here = draft.devices[id.index()] == draft.devices[function.last.index()];
        let same_type = draft.dtype(id.into()) == draft.dtype(function.x);
        if !here || !same_type || !draft.is_rewritable(id) {
            return None;
        }
        let inputs = &node.inputs[..];
        match (node.op.name.as_str(), inputs) {
            ("Rsqrt", _) if function.has(id) => Some(Value::atom(Atom::Root, 1, Rows)),
            ("Sqrt", _) if function.has(id) => Some(Value::atom(Atom::Root, -1, Rows)),
            ("Erf" | "Erfc" | "Tanh", _) if function.has(id) => {
                Some(Value::atom(Atom::Curve, 1, Whole))
            }
            ("AddN" | "AddV2" | "Add", [first, rest @ ..]) => self.sum(*first, rest),
            ("Sum" | "Mean", &[x, axes]) => self.row_sum(id, x, axes),
            ("Reshape" | "Squeeze" | "ExpandDims", &[x, ..]) => self.reshaped(id, x),
            ("BroadcastTo", &[x, _]) => self.spread(id, x),
            ("Cast", &[x]) => self.row_length(x),
            ("Exp", &[x]) => self.bell(x),
            (op, &[x]) => {
                let Value { polynomial: x, space } = self.read(x)?;
                Some(Value::new(of_one(op, x)?, space))
            }
            (op, &[x, y]) => {
                let (x, y) = (self.read(x)?, self.read(y)?);
                let space = joined(x.space, y.space)?;
                Some(Value::new(of_two(op, x.polynomial, &y.polynomial)?, space))
            }
            _ => None,
        }
    }

    fn sum(&mut self, first: Output, rest: &[Output]) -> Option<Value> {
        let Value { mut polynomial, mut space } = self.read(first)?;
        for &input in rest {
            let other = self.read(input)?;
            space = joined(space, other.space)?;
            polynomial = polynomial.plus(&other.polynomial);
        }
        Some(Value::new(polynomial, space))
    }

    /// `e^(-x^2 / 2)`.
    fn bell(&mut self, exponent: Output) -> Option<Value> {
        let Value { polynomial, space } = self.read(exponent)?;
        let expected = Polynomial::term(-0.5, &[(Atom::X, 2)]);
        let fits = space == Whole && polynomial.is(&expected, self.function.tolerance);
        fits.then(|| Value::atom(Atom::Bell, 1, Whole))
    }

    /// A sum or a mean over rows.
    fn row_sum(&mut self, id: NodeId, x: Output, axes: Output) -> Option<Value> {
        let length = self.function.length?;
        if !self.sums_rows(axes) {
            return None;
        }
        let Value { polynomial, space: Whole } = self.read(x)? else { return None };
        let keeps = matches!(self.draft.attr(id, "keep_dims"), Some(AttrValue::Bool(true)));
        let sum = polynomial.row_sum(length)?;
        let is_mean = self.draft.node(id).op.name == "Mean";
        let result = if is_mean { sum.scaled(1.0 / length) } else { sum };
        Some(Value::new(result, if keeps { Rows } else { Flat }))
    }

    /// The dimensions of the operand.
    fn dims(&self) -> Option<&'d [Dimension]> {
        self.draft.value(self.function.x)?.shape.dims()
    }

    /// Whether the axes of a sum over a value of the operand's shape are the last one.
    fn sums_rows(&self, axes: Output) -> bool {
        let found = || {
            let dims = self.dims()?;
            let (last, leading) = dims.split_last()?;
            let [own, other] = spread::operands(self.draft, axes)?;
            let leads = own.items().iter().copied().take(leading.len());
            Some(
                own.items().len() == dims.len()
                    && own.items().last() == Some(&Item::Known(1))
                    && leads.eq(leading.iter().map(|dim| Item::from(*dim)))
                    && other.items().last() == Some(&Item::from(*last)),
            )
        };
        is_last_axis(self.draft, axes, self.function.x) || found().unwrap_or(false)
    }

    /// Whether the axes of a sum over a value of the operand's shape are all but the last one.
    pub fn sums_columns(&self, axes: Output) -> bool {
        let found = || {
            let dims = self.dims()?;
            let (last, leading) = dims.split_last()?;
            if let Some(mut axes) = self.draft.integers(axes) {
                axes.sort_unstable();
                return Some(axes.into_iter().eq(0..leading.len() as i64));
            }
            let [own, other] = spread::operands(self.draft, axes)?;
            let length = Item::from(*last);
            Some(own.items() == [length] && other.items().len() == dims.len())
        };
        found().unwrap_or(false)
    }

    /// Whether a value has the operand's shape but for a last dimension of size 1.
    fn is_rows(&self, output: Output) -> bool {
        let found = self.draft.value(output).and_then(|value| value.shape.dims());
        match (found.and_then(<[_]>::split_last), self.dims().and_then(<[_]>::split_last)) {
            (Some((last, leading)), Some((_, expected))) => {
                last.value() == 1 && leading == expected
            }
            _ => false,
        }
    }

    fn reshaped(&mut self, id: NodeId, x: Output) -> Option<Value> {
        let Value { polynomial, space } = self.read(x)?;
        let is_rows = matches!(space, Rows | Flat) && self.is_rows(id.into());
        is_rows.then(|| Value::new(polynomial, Rows))
    }

    fn spread(&mut self, id: NodeId, x: Output) -> Option<Value> {
        let Value { polynomial, space } = self.read(x)?;
        let fits = space != Flat && self.draft.same_shape(id.into(), self.function.x);
        fits.then(|| Value::new(polynomial, Whole))
    }

    /// The length of rows, as the gradient of a mean computes it: the number of elements divided by
    /// the number of rows.
    fn row_length(&self, x: Output) -> Option<Value> {
        let length = self.function.length?;
        let &[whole, rows] = self.inputs_of(x, "FloorDiv")? else { return None };
        let &[rows, one] = self.inputs_of(rows, "Maximum")? else { return None };
        let (&[whole], &[rows]) = (self.inputs_of(whole, "Size")?, self.inputs_of(rows, "Size")?)
        else {
            return None;
        };
        let is_one = self.draft.integers(one).is_some_and(|one| one == [1]);
        let fits = is_one && self.draft.same_shape(whole, self.function.x) && self.is_rows(rows);
        fits.then(|| Value::new(Polynomial::number(length), Number))
    }

    /// The inputs of the node that computes a value, if it has this op.
    fn inputs_of(&self, output: Output, op: &str) -> Option<&'d [Output]> {
        let node = self.draft.node(self.draft.source(output)?);
        (node.op.name == op).then_some(&node.inputs[..])
    }
}

/// A function of one value.
fn of_one(op: &str, x: Polynomial) -> Option<Polynomial> {
    match op {
        "Neg" => Some(x.scaled(-1.0)),
        "Square" => x.power(2.0),
        "Identity" | "StopGradient" => Some(x),
        _ => None,
    }
}

/// A function of two values.
fn of_two(op: &str, x: Polynomial, y: &Polynomial) -> Option<Polynomial> {
    match op {
        "Sub" => Some(x.plus(&y.clone().scaled(-1.0))),
        "SquaredDifference" => x.plus(&y.clone().scaled(-1.0)).power(2.0),
        "Mul" => x.times(y),
        "RealDiv" => x.times(&y.reciprocal()?),
        "Pow" => x.power(y.as_number()?),
        // The first input is the result of the function, the second one its gradient.
        "TanhGrad" => y.times(&x.power(2.0)?.scaled(-1.0).plus(&Polynomial::number(1.0))),
        "RsqrtGrad" => Some(y.times(&x.power(3.0)?)?.scaled(-0.5)),
        "SqrtGrad" => Some(y.times(&x.reciprocal()?)?.scaled(0.5)),
        _ => None,
    }
}

/// How far a coefficient may be from the exact one: what a few roundings of constants come to.
pub(super) fn tolerance(dtype: DType) -> Option<f64> {
    let digits = match dtype {
        DType::DOUBLE => 52,
        DType::FLOAT => 23,
        DType::HALF => 10,
        DType::BFLOAT16 => 7,
        _ => return None,
    };
    Some(8.0 * 0.5f64.powi(digits))
}
