//! Matches patterns.

use super::numbers::is_number;
use crate::{Draft, broadcast::leaves_shape};
use std::collections::HashMap;
use tenon_framework::{
    attr::{AttrList, AttrValue},
    fusion::{Call, Expr, FusionDef, Term, Value},
    op::Symmetry,
};
use tenon_graph::{NodeId, Output};

/// The value of a name in a pattern.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Binding {
    One(Output),
    Rest(Vec<Output>),
}

/// A matched pattern.
#[derive(Debug, Clone, Default)]
pub(super) struct Found {
    /// The tensors by name.
    pub tensors: HashMap<String, Binding>,
    /// The attributes by name; an op is stored as its name.
    pub captures: HashMap<String, AttrValue>,
    /// The nodes; the pattern's last node comes first.
    pub nodes: Vec<NodeId>,
}

impl Found {
    /// The tensor with this name.
    pub fn tensor(&self, name: &str) -> Option<Output> {
        match self.tensors.get(name) {
            Some(Binding::One(output)) => Some(*output),
            _ => None,
        }
    }
}

/// The number of nodes in a pattern.
pub(super) fn size(expr: &Expr) -> usize {
    match &expr.term {
        Term::Call(call) => 1 + call.args.iter().map(size).sum::<usize>(),
        _ => 0,
    }
}

/// Matches the pattern of a fusion whose last node is `id`.
pub(super) fn find(draft: &Draft<'_>, id: NodeId, fusion: &FusionDef) -> Option<Found> {
    let found = find_open(draft, id, fusion)?;
    Matcher { draft, root: id, fusion }.is_closed(&found).then_some(found)
}

/// Like [`find`], whatever reads the inner nodes.
pub(super) fn find_open(draft: &Draft<'_>, id: NodeId, fusion: &FusionDef) -> Option<Found> {
    let mut found = Found::default();
    let matcher = Matcher { draft, root: id, fusion };
    matcher.expr(&fusion.pattern, id.into(), &mut found).then_some(found)
}

struct Matcher<'d, 'a> {
    draft: &'d Draft<'a>,
    root: NodeId,
    fusion: &'d FusionDef,
}

impl Matcher<'_, '_> {
    /// Whether the fused op has an effect.
    fn has_effect(&self) -> bool {
        self.draft.registry().op(&self.fusion.result.op).is_some_and(|op| op.stateful)
    }

    /// Whether no node outside the match reads an inner node. A node that only waits for one can
    /// wait for the last node instead, unless that one depends on it.
    fn is_closed(&self, found: &Found) -> bool {
        let inner = found.nodes.iter().filter(|id| **id != self.root);
        inner.into_iter().all(|&id| {
            !self.draft.is_kept(id)
                && self.draft.users(id).iter().all(|user| {
                    found.nodes.contains(user)
                        || self.draft.waiters(id).any(|waiter| waiter == *user)
                            && !self.draft.node(*user).inputs.iter().any(|input| input.node == id)
                            && self.is_apart(*user)
                })
        })
    }

    /// Whether the last node certainly does not depend on a node.
    fn is_apart(&self, id: NodeId) -> bool {
        /// Nodes that are looked at; more are taken to lead to the last node.
        const MOST: usize = 32;
        let (mut seen, mut next) = (vec![id], 0);
        while next < seen.len() {
            let users = self.draft.users(seen[next]);
            next += 1;
            self.draft.spend(users.len());
            for &user in users.iter() {
                if user == self.root || seen.len() == MOST {
                    return false;
                }
                if !seen.contains(&user) {
                    seen.push(user);
                }
            }
        }
        true
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
        // The last node may have an effect, which the fused op then has too.
        let is_free = self.draft.is_rewritable(id)
            || id == self.root && self.has_effect() && self.draft.is_extensible(id);
        if !here || !call.ops.contains(&node.op.name) || !is_free {
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
        if call.args.len() == 2
            && let &[x, y] = &inputs[..]
            && self.draft.node(id).op.facts().symmetry != Symmetry::None
        {
            // Try both orders of the inputs.
            let mut swapped = found.clone();
            if self.all(&call.args, &[x, y], found) {
                return true;
            }
            let fits = self.all(&call.args, &[y, x], &mut swapped);
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
        self.all(fixed, inputs, found)
    }

    /// Whether the inputs match the expressions, and broadcasting with the pattern's numbers keeps
    /// the shapes of the other inputs.
    fn all(&self, exprs: &[Expr], inputs: &[Output], found: &mut Found) -> bool {
        let pairs = || exprs.iter().zip(inputs);
        pairs().all(|(expr, &input)| self.expr(expr, input, found))
            && pairs().filter(|(expr, _)| self.is_number(expr)).all(|(_, &number)| {
                let mut others = pairs().filter(|(expr, _)| !self.is_number(expr));
                others.any(|(_, &other)| leaves_shape(self.draft, number, other))
            })
    }

    /// Whether the fused op takes this value as a number, so that its shape is lost.
    fn is_number(&self, expr: &Expr) -> bool {
        let is_taken = |name: &String| {
            let mut attrs = self.fusion.result.attrs.iter();
            attrs.any(|(_, value)| matches!(value, Value::Number(taken) if taken == name))
        };
        matches!(expr.term, Term::Number(_)) || expr.name.as_ref().is_some_and(is_taken)
    }
}

/// Stores a value under a name, or compares it with the value already there.
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
    crate::attrs::same_attrs(&map(a), &map(b))
}

/// Whether an attribute matches the pattern's value.
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

/// Whether two equations are equal up to the names of their labels.
fn same_equation(a: &str, b: &str) -> bool {
    numbered(a).eq(numbered(b))
}

/// The equation with each label replaced by its number in order of first appearance.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equations_are_the_same_whatever_their_labels() {
        assert!(same_equation("BTNH,BSNH->BNTS", "aecd, abcd -> aceb"));
        assert!(!same_equation("BTNH,BSNH->BNTS", "aecd,abcd->acbe"));
        assert!(!same_equation("ij,jk->ik", "ij,jk"));
        assert!(!same_equation("ij,jk->ik", "...ij,...jk->...ik"));
    }
}
