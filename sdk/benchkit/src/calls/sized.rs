//! Calls for ops that say nothing of their measurement: such that arithmetic or memory is what counts.
//!
//! What is valid is known from the op's own cases, else from what a check finds that its shape function accepts.
//! Sizes that are left open there are made large; attributes are at their defaults. What a check makes up itself is
//! small and odd: it looks for mistakes.

use super::{
    Call, Wish, attrs,
    declared::{self, Row},
    inputs,
};
use std::{collections::BTreeMap, sync::Arc};
use tenon_framework::{
    PartialShape,
    attr::AttrMap,
    attr_view::AttrTable,
    infer::{Symbols, ValueInfo, infer},
    op::{Case, OpDef, Sizes},
};
use tenon_testkit::check::{CheckCase, Fill, Tag};

/// Elements of the largest input: in the first cache, in the second or third, in memory. The last only where the work
/// grows as the elements do: a product of that size would take minutes.
const ELEMENTS: [i64; 3] = [1 << 12, 1 << 18, 1 << 22];

/// Calls from an op's own cases, the first that suits.
pub fn from_cases(op: &Arc<OpDef>, types: &AttrMap, wish: &Wish) -> Vec<Call> {
    let mut cases = op.cases().iter().filter(|text| declared::is_for(text, types));
    cases.find_map(|text| from_case(op, text, types, wish)).unwrap_or_default()
}

fn from_case(op: &Arc<OpDef>, text: &Case, types: &AttrMap, wish: &Wish) -> Option<Vec<Call>> {
    // Every input is described, or the text says not enough.
    op.inputs.iter().all(|arg| text.input(&arg.name).is_some()).then_some(())?;
    let mut single = text.clone();
    for choice in &mut single.attrs {
        let default = op.attr(&choice.name).and_then(|attr| attr.default.as_ref()).map(attrs::text);
        let usual = choice.values.iter().position(|value| Some(attrs::text(value)) == default);
        choice.values = vec![choice.values.swap_remove(usual.unwrap_or(0))];
    }
    let settings = declared::settings(op, &single, types, wish).ok()?;
    let symbols: Vec<Vec<&str>> = (single.inputs.iter().flat_map(|input| &input.tensors))
        .map(|tensor| {
            let terms = tensor.dims.iter().filter_map(|dim| dim.symbol.as_ref());
            let symbols = terms.map(|(_, symbol)| symbol.as_str());
            symbols.filter(|symbol| op.attr(symbol).is_none()).collect()
        })
        .collect();
    let plan = Plan::of(symbols);
    // A symbol that is in no shape, but in the values of an index.
    let others = single.used_symbols().into_iter().filter(|symbol| op.attr(symbol).is_none());
    let others: Vec<&str> = others.collect();
    let made = |target: i64| {
        let mut row: Row<'_> = others.iter().map(|symbol| (*symbol, 1)).collect();
        row.extend(plan.sizes(target));
        for choice in &text.symbols {
            row.entry(&choice.symbol).and_modify(|size| *size = nearest(&choice.sizes, *size));
        }
        declared::instance(op, &single, settings.first()?, &row, wish).ok()?
    };
    accepted(op, plan.targets().filter_map(made))
}

/// The allowed size that is nearest below, or the least.
fn nearest(sizes: &Sizes, wanted: i64) -> i64 {
    match sizes {
        Sizes::Range(low, high) => wanted.min(high - 1).max(*low),
        Sizes::List(all) => {
            let below = all.iter().filter(|&&size| size <= wanted).max();
            *below.or(all.iter().min()).unwrap_or(&wanted)
        }
    }
}

/// Calls like one that a check makes up, with sizes made large.
pub fn from_generated(op: &Arc<OpDef>, generated: &[CheckCase], wish: &Wish) -> Option<Vec<Call>> {
    let defaults = attrs::defaults(op);
    let usual = |case: &&CheckCase| {
        let texts = attrs::texts(&case.attrs);
        let is_type = |name: &str| case.attrs.get(name).is_some_and(|v| v.as_type().is_some());
        texts.iter().all(|(name, text)| {
            is_type(name) || defaults.get(name).is_none_or(|default| default == text)
        })
    };
    let ordinary = |case: &&CheckCase| {
        !case.is(Tag::Special) && !case.is(Tag::Empty) && case.inputs.iter().any(is_data)
    };
    let mut bases: Vec<(&CheckCase, Plan<i64>)> = (generated.iter().filter(ordinary))
        .filter(usual)
        .map(|case| (case, plan_of(case)))
        .collect();
    // Matrices first: rows and columns are what most ops know. Of one rank those without broadcasts, then the most
    // sizes that differ.
    bases.sort_by_key(|(case, plan)| {
        let rank = plan.largest.len();
        let order = [2, 1, 3, 4].iter().position(|&known| known == rank).unwrap_or(rank + 4);
        (order, case.is(Tag::Broadcast), std::cmp::Reverse(plan.symbols().len()))
    });
    bases.iter().take(8).find_map(|(case, plan)| scaled(op, case, plan, wish))
}

/// Whether an input holds elements that are the checker's choice; else its very values, and so its shape, count.
fn is_data(input: &tenon_testkit::check::Argument) -> bool {
    !input.constant && matches!(input.fill, Fill::Uniform { .. } | Fill::Special { .. })
}

/// Equal sizes stand for one symbol, but ones, which stay.
fn plan_of(case: &CheckCase) -> Plan<i64> {
    let data = case.inputs.iter().filter(|input| is_data(input));
    let fixed: Vec<i64> = (case.inputs.iter().filter(|input| !is_data(input)))
        .flat_map(|input| input.dims.iter().copied())
        .collect();
    let open = |size: &i64| *size > 1 && !fixed.contains(size);
    Plan::of(data.map(|input| input.dims.iter().copied().filter(open).collect()).collect())
}

fn scaled(op: &Arc<OpDef>, case: &CheckCase, plan: &Plan<i64>, wish: &Wish) -> Option<Vec<Call>> {
    let mut attrs = case.attrs.clone();
    for (name, text) in &wish.attrs {
        attrs.insert(name.clone(), attrs::parse(op, name, text).ok()?);
    }
    let made = |plan: &Plan<i64>, target: i64| {
        let sizes = plan.sizes(target);
        let mut case = CheckCase { attrs: attrs.clone(), tags: Vec::new(), ..case.clone() };
        for (at, input) in case.inputs.iter_mut().enumerate().filter(|(_, input)| is_data(input)) {
            for dim in &mut input.dims {
                *dim = sizes.get(dim).copied().unwrap_or(*dim);
            }
            input.fill = inputs::fill(&op.name, input.dtype, wish.seed.wrapping_add(at as u64));
        }
        case
    };
    let whole = || accepted(op, plan.targets().map(|target| made(plan, target)));
    // One of the sizes may be the op's own, such as four coordinates.
    let without = |symbol: &i64| {
        let plan = plan.without(symbol);
        accepted(op, plan.targets().map(|target| made(&plan, target)))
    };
    whole().or_else(|| plan.symbols().iter().find_map(without))
}

/// The calls, where the shape function accepts all of them.
fn accepted(op: &Arc<OpDef>, cases: impl Iterator<Item = CheckCase>) -> Option<Vec<Call>> {
    let mut calls: Vec<Call> = Vec::new();
    for case in cases {
        let same = |known: &Call| {
            let dims = known.case.inputs.iter().map(|input| &input.dims);
            dims.eq(case.inputs.iter().map(|input| &input.dims))
        };
        if calls.iter().any(same) {
            continue;
        }
        accepts(op, &case).then_some(())?;
        calls.push(Call { op: Arc::clone(op), case, at: None, node: None, calls: 1 });
    }
    (!calls.is_empty()).then_some(calls)
}

/// Whether the shape function accepts a call, without its elements.
fn accepts(op: &OpDef, case: &CheckCase) -> bool {
    let mut symbols = Symbols::default();
    let mut infos = Vec::with_capacity(case.inputs.len());
    for input in &case.inputs {
        let info = if input.constant {
            input.tensor().ok().map(ValueInfo::of_constant)
        } else {
            let shape = PartialShape::new(&input.dims).ok();
            shape.map(|shape| ValueInfo::of_shape(&shape, &mut symbols))
        };
        let Some(info) = info else { return false };
        infos.push(info);
    }
    let inputs: Vec<&ValueInfo> = infos.iter().collect();
    let Ok(attrs) = AttrTable::with_defaults(op, case.attrs.clone()) else { return false };
    infer(op, &attrs, &inputs, &mut symbols).is_ok()
}

/// Which sizes are open, and where.
struct Plan<S> {
    /// The symbols of the input that has the most of them, in order.
    largest: Vec<S>,
    /// Those of all inputs.
    all: Vec<Vec<S>>,
}

impl<S: Ord + Clone> Plan<S> {
    fn of(all: Vec<Vec<S>>) -> Plan<S> {
        let largest = all.iter().rev().max_by_key(|symbols| symbols.len()).cloned();
        Plan { largest: largest.unwrap_or_default(), all }
    }

    /// Each symbol once.
    fn symbols(&self) -> Vec<S> {
        let mut symbols: Vec<S> = self.all.iter().flatten().cloned().collect();
        symbols.sort_unstable();
        symbols.dedup();
        symbols
    }

    /// Whether the largest input has every size, each once, so that the work grows as its elements do.
    fn is_linear(&self) -> bool {
        let mut own = self.largest.clone();
        own.sort_unstable();
        own == self.symbols()
    }

    /// Elements of the largest input that are worth measuring.
    fn targets(&self) -> impl Iterator<Item = i64> + use<S> {
        let count = if self.is_linear() { 3 } else { 2 };
        ELEMENTS.into_iter().take(if self.symbols().is_empty() { 1 } else { count })
    }

    /// A size for each symbol, so that the largest input has about this many elements.
    fn sizes(&self, elements: i64) -> BTreeMap<S, i64> {
        let rank = self.largest.len().max(1) as f64;
        let each = (elements as f64).powf(1.0 / rank).round() as i64;
        let each = if each > 16 { each / 8 * 8 } else { each.max(2) };
        self.symbols().into_iter().map(|symbol| (symbol, each)).collect()
    }

    /// The plan in which this symbol stays as it is.
    fn without(&self, symbol: &S) -> Plan<S> {
        let left = |symbols: &Vec<S>| symbols.iter().filter(|s| *s != symbol).cloned().collect();
        Plan::of(self.all.iter().map(left).collect())
    }
}
