//! Finding a pattern.

use crate::{NodeId, Output, optimize::Draft};
use std::collections::HashMap;
use tenon_framework::{
    DType, Tensor,
    attr::{AttrList, AttrValue},
    fusion::{Call, Expr, Term, Value},
};

/// What a name of a pattern stands for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Binding {
    One(Output),
    Rest(Vec<Output>),
}

/// A pattern that was found.
#[derive(Debug, Clone, Default)]
pub(super) struct Found {
    /// Tensors by name.
    pub tensors: HashMap<String, Binding>,
    /// Attributes, and ops as texts, by name.
    pub captures: HashMap<String, AttrValue>,
    /// The nodes, the last one of the pattern first.
    pub nodes: Vec<NodeId>,
}

impl Found {
    /// The tensor of a name.
    pub fn tensor(&self, name: &str) -> Option<Output> {
        match self.tensors.get(name) {
            Some(Binding::One(output)) => Some(*output),
            _ => None,
        }
    }
}

/// Number of nodes of a pattern.
pub(super) fn size(expr: &Expr) -> usize {
    match &expr.term {
        Term::Call(call) => 1 + call.args.iter().map(size).sum::<usize>(),
        _ => 0,
    }
}

/// The pattern, ending in this node.
pub(super) fn find(draft: &Draft<'_>, id: NodeId, pattern: &Expr) -> Option<Found> {
    let mut found = Found::default();
    let matcher = Matcher { draft, root: id };
    let fits = matcher.expr(pattern, id.into(), &mut found);
    (fits && matcher.is_closed(&found)).then_some(found)
}

struct Matcher<'d, 'a> {
    draft: &'d Draft<'a>,
    root: NodeId,
}

impl Matcher<'_, '_> {
    /// Whether nothing but the pattern uses what is inside it.
    fn is_closed(&self, found: &Found) -> bool {
        let inner = found.nodes.iter().filter(|id| **id != self.root);
        inner.into_iter().all(|&id| {
            !self.draft.is_kept(id)
                && !self.draft.is_waited_for(id)
                && self.draft.users(id).iter().all(|user| found.nodes.contains(user))
        })
    }

    fn expr(&self, expr: &Expr, output: Output, found: &mut Found) -> bool {
        if let Some(name) = &expr.name {
            if let Some(bound) = found.tensors.get(name) {
                return *bound == Binding::One(output);
            }
            found.tensors.insert(name.clone(), Binding::One(output));
        }
        match &expr.term {
            Term::Tensor => true,
            Term::Rest => false,
            Term::Number(number) => {
                self.draft.constant(output).is_some_and(|constant| is_number(constant, *number))
            }
            Term::Call(call) => self.call(call, output, found),
        }
    }

    fn call(&self, call: &Call, output: Output, found: &mut Found) -> bool {
        let Some(id) = self.draft.source(output).filter(|_| output.output == 0) else {
            return false;
        };
        let node = self.draft.node(id);
        let here = self.draft.devices[id.index()] == self.draft.devices[self.root.index()];
        if !here || !call.ops.contains(&node.op.name) || !self.draft.is_rewritable(id) {
            return false;
        }
        if !found.nodes.contains(&id) {
            found.nodes.push(id);
        }
        let op = AttrValue::String(node.op.name.as_bytes().to_vec());
        if call.capture.as_ref().is_some_and(|name| !capture(found, name, &op)) {
            return false;
        }
        let attrs = call.attrs.iter().all(|(name, wanted)| {
            self.draft.attr(id, name).is_some_and(|value| fits(found, name, wanted, value))
        });
        attrs && self.args(call, id, found)
    }

    fn args(&self, call: &Call, id: NodeId, found: &mut Found) -> bool {
        let inputs = &self.draft.node(id).inputs;
        if let [a, b] = &call.args[..]
            && let &[x, y] = &inputs[..]
            && commutes(&self.draft.node(id).op.name)
        {
            // One order, and where that does not fit, the other.
            let mut swapped = found.clone();
            if self.expr(a, x, found) && self.expr(b, y, found) {
                return true;
            }
            let fits = self.expr(a, y, &mut swapped) && self.expr(b, x, &mut swapped);
            *found = swapped;
            return fits;
        }
        let (fixed, rest) = match call.args.split_last() {
            Some((last, fixed)) if last.term == Term::Rest => (fixed, Some(last)),
            _ => (&call.args[..], None),
        };
        if inputs.len() < fixed.len() || (rest.is_none() && inputs.len() != fixed.len()) {
            return false;
        }
        if let Some(Expr { name: Some(name), .. }) = rest {
            let left = Binding::Rest(inputs[fixed.len()..].to_vec());
            found.tensors.insert(name.clone(), left);
        }
        fixed.iter().zip(inputs).all(|(expr, &input)| self.expr(expr, input, found))
    }
}

fn commutes(op: &str) -> bool {
    matches!(op, "Add" | "AddV2" | "Mul" | "Maximum" | "Minimum" | "SquaredDifference")
}

/// Takes a value under a name, or compares it with what was taken.
fn capture(found: &mut Found, name: &str, value: &AttrValue) -> bool {
    match found.captures.get(name) {
        Some(taken) => same(taken, value),
        None => {
            found.captures.insert(name.to_owned(), value.clone());
            true
        }
    }
}

fn same(a: &AttrValue, b: &AttrValue) -> bool {
    let map = |value: &AttrValue| [("v".to_owned(), value.clone())].into_iter().collect();
    crate::optimize::attrs::same_attrs(&map(a), &map(b))
}

/// Whether an attribute is what a pattern says.
fn fits(found: &mut Found, name: &str, wanted: &Value, value: &AttrValue) -> bool {
    match (wanted, value) {
        (Value::Capture(name), value) => capture(found, name, value),
        (Value::Bool(wanted), AttrValue::Bool(value)) => wanted == value,
        (Value::Int(wanted), AttrValue::Int(value)) => wanted == value,
        (Value::Int(wanted), AttrValue::Float(value)) => *wanted as f32 == *value,
        (Value::Float(wanted), AttrValue::Float(value)) => *wanted as f32 == *value,
        (Value::Text(wanted), AttrValue::String(value)) if name == "equation" => {
            std::str::from_utf8(value).is_ok_and(|value| same_equation(wanted, value))
        }
        (Value::Text(wanted), AttrValue::String(value)) => wanted.as_bytes() == value,
        (Value::Text(wanted), AttrValue::Type(value)) => *wanted == value.to_string(),
        (Value::List(wanted), AttrValue::List(AttrList::Int(values))) => {
            let items = wanted
                .iter()
                .map(|item| if let Value::Int(item) = item { Some(item) } else { None });
            items.eq(values.iter().map(Some))
        }
        (Value::List(wanted), AttrValue::List(AttrList::String(values))) => {
            let items = wanted.iter().map(|item| match item {
                Value::Text(item) => Some(item.as_bytes()),
                _ => None,
            });
            items.eq(values.iter().map(|value| Some(value.as_slice())))
        }
        (Value::List(wanted), AttrValue::List(list)) => wanted.is_empty() && list.is_empty(),
        _ => false,
    }
}

/// Whether two equations say the same: they differ in the names of labels at most.
fn same_equation(a: &str, b: &str) -> bool {
    numbered(a).eq(numbered(b))
}

/// An equation in which each label is its number by first appearance.
fn numbered(equation: &str) -> impl Iterator<Item = Result<usize, char>> {
    let mut labels: Vec<char> = Vec::new();
    equation.chars().filter(|c| !c.is_whitespace()).map(move |c| {
        if !c.is_alphabetic() {
            return Err(c);
        }
        Ok(labels.iter().position(|label| *label == c).unwrap_or_else(|| {
            labels.push(c);
            labels.len() - 1
        }))
    })
}

/// Whether each element of a constant is this number, as near as its type allows.
fn is_number(tensor: &Tensor, number: f64) -> bool {
    let Some(values) = numbers(tensor) else { return false };
    let near = match tensor.dtype() {
        DType::DOUBLE => 1e-7,
        DType::FLOAT => 1e-6,
        DType::HALF => 1e-3,
        DType::BFLOAT16 => 8e-3,
        _ => 0.0,
    };
    !values.is_empty() && values.iter().all(|value| (value - number).abs() <= near * number.abs())
}

/// The one value of a constant.
pub(super) fn single(tensor: &Tensor) -> Option<f64> {
    match numbers(tensor)?[..] {
        [value] => Some(value),
        _ => None,
    }
}

/// The elements as numbers, of small constants.
fn numbers(tensor: &Tensor) -> Option<Vec<f64>> {
    const MOST: usize = 64;
    fn all<T: tenon_framework::element::Element>(
        tensor: &Tensor,
        number: impl Fn(&T) -> f64,
    ) -> Option<Vec<f64>> {
        Some(tensor.as_slice::<T>().ok()?.iter().map(number).collect())
    }
    if tensor.elements() > MOST {
        return None;
    }
    match tensor.dtype() {
        DType::DOUBLE => all::<f64>(tensor, |x| *x),
        DType::FLOAT => all::<f32>(tensor, |x| f64::from(*x)),
        DType::INT32 => all::<i32>(tensor, |x| f64::from(*x)),
        DType::INT64 => all::<i64>(tensor, |x| *x as f64),
        DType::HALF | DType::BFLOAT16 => {
            let bytes = tensor.as_bytes().ok()?;
            let bits = bytes.chunks_exact(2).map(|pair| u16::from_ne_bytes([pair[0], pair[1]]));
            Some(bits.map(|bits| narrow(tensor.dtype(), bits)).collect())
        }
        _ => None,
    }
}

/// A number of 16 bits.
fn narrow(dtype: DType, bits: u16) -> f64 {
    if dtype == DType::BFLOAT16 {
        return f64::from(f32::from_bits(u32::from(bits) << 16));
    }
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    match exponent {
        0 => sign * fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => sign * f64::INFINITY,
        31 => f64::NAN,
        _ => sign * (1024.0 + fraction) * 2f64.powi(exponent - 25),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_sixteen_bits_are_read() {
        let half = [
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x0001, 2f64.powi(-24)),
            (0x3800, 0.5),
            (0x7c00, f64::INFINITY),
        ];
        for (bits, expected) in half {
            assert_eq!(narrow(DType::HALF, bits), expected);
        }
        assert!(narrow(DType::HALF, 0x7e00).is_nan());
        assert_eq!(narrow(DType::BFLOAT16, 0x3fc0), 1.5);
    }

    #[test]
    fn equations_are_the_same_whatever_their_labels() {
        assert!(same_equation("BTNH,BSNH->BNTS", "aecd, abcd -> aceb"));
        assert!(!same_equation("BTNH,BSNH->BNTS", "aecd,abcd->acbe"));
        assert!(!same_equation("ij,jk->ik", "ij,jk"));
        assert!(!same_equation("ij,jk->ik", "...ij,...jk->...ik"));
    }

    #[test]
    fn a_number_is_met_within_its_type() {
        let root = Tensor::scalar(std::f32::consts::FRAC_1_SQRT_2).unwrap();
        assert!(is_number(&root, std::f64::consts::FRAC_1_SQRT_2));
        assert!(!is_number(&root, 0.708));
        assert!(is_number(&Tensor::from_slice(&[2], &[2i32, 2]).unwrap(), 2.0));
        assert!(!is_number(&Tensor::from_slice::<f32>(&[0], &[]).unwrap(), 2.0));
    }
}
