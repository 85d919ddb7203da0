//! An op's own cases: texts in its definition (core/abi/docs/cases.md) that say what is valid where the signature
//! does not.
//!
//! An op that has some gets its cases from them alone: that it declares them says that shapes which the shape
//! function accepts may be wrong all the same. Sizes that a case leaves open are rows of a small table: ordinary
//! ones, primes, ones, a zero in each place, and in each place one that makes the input large. Element types, and
//! elements that a case does not describe, are the checker's choice as without it.

use super::{
    Scope, palette,
    search::{self, Chosen, Role, Search, Skeleton},
    settings::{self, Setting},
};
use crate::check::{
    Fill,
    fill::{Listed, Random, listed},
};
use std::collections::BTreeMap;
use tenon_framework::{
    DType, Tensor,
    attr::{AttrMap, AttrValue},
    attr_view::AttrTable,
    op::{AttrDef, Case, Item, OpDef, Signature, Sizes, TensorCase, TermRange, Values},
};

/// How a case makes the elements of an input that carries data.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Recipe {
    /// Numbers between two, both included.
    Uniform(f64, f64),
    /// Integers from the first up to the second, which is not included.
    Whole(i64, i64),
    /// These; a single one fills the tensor.
    List(Vec<Listed>),
    /// Strings, each one of these.
    Strings(Vec<Vec<u8>>),
    /// The integers from 0 up, each once.
    Permutation,
}

impl Recipe {
    /// The elements of an input of this type.
    pub fn fill(&self, dtype: DType, dims: &[i64], seed: u64) -> Option<Fill> {
        Some(match self {
            Recipe::Uniform(low, high) => {
                let above = if dtype.is_integer() || dtype.is_quantized() { 1.0 } else { 0.0 };
                Fill::Uniform { low: *low, high: high + above, seed }
            }
            Recipe::Whole(low, high) => Fill::Whole { low: *low, high: *high, seed },
            Recipe::Permutation => Fill::Permutation { seed },
            Recipe::List(items) => Fill::Explicit(listed(dtype, dims, items).ok()?),
            Recipe::Strings(texts) => {
                let mut random = Random::new(seed);
                let count = palette::elements(dims);
                let one = |_| texts[random.integer(0, texts.len() as i64) as usize].clone();
                let chosen: Vec<Vec<u8>> = (0..count).map(one).collect();
                Fill::Explicit(Tensor::from_strings(dims, &chosen).ok()?)
            }
        })
    }
}

/// What is found of an op's own cases.
#[derive(Default)]
pub(super) struct Declared {
    pub settings: Vec<Setting>,
    pub skeletons: Vec<Skeleton>,
    /// Cases of which the shape function accepts nothing, each with what it says.
    pub refused: Vec<String>,
    pub tried: usize,
    /// How the shape function panicked first.
    pub panic: Option<String>,
}

/// All that an op's own cases give for these types.
pub(super) fn declared(
    op: &OpDef,
    types: &AttrMap,
    lists: &dyn Fn(&AttrDef) -> Vec<DType>,
    scope: &Scope,
) -> Declared {
    let mut all = Declared::default();
    for case in op.cases() {
        if !types.iter().all(|(name, dtype)| allows(case, name, dtype)) {
            continue;
        }
        let before = all.skeletons.len();
        let mut refusal = None;
        for setting in settings::declared(op, types, case, lists, scope) {
            let place = all.settings.len();
            let instance = Instance { op, case, setting: &setting, place, scope };
            instance.run(&mut all, &mut refusal);
            all.settings.push(setting);
        }
        if all.skeletons.len() == before {
            let refusal = refusal.unwrap_or_else(|| "no sizes suit it".to_owned());
            all.refused.push(format!("case '{}' of op {}: {refusal}", case.name, op.name));
        }
    }
    all
}

/// Whether a case is for this type.
fn allows(case: &Case, name: &str, dtype: &AttrValue) -> bool {
    let same = |value: &AttrValue| value.as_type() == dtype.as_type();
    case.attr(name).is_none_or(|values| values.iter().any(same))
}

/// A case under a setting.
struct Instance<'a> {
    op: &'a OpDef,
    case: &'a Case,
    setting: &'a Setting,
    place: usize,
    scope: &'a Scope,
}

/// Sizes by symbol.
type Row<'a> = BTreeMap<&'a str, i64>;

impl<'a> Instance<'a> {
    fn run(&self, all: &mut Declared, refusal: &mut Option<String>) {
        let Ok(types) = search::roles(self.op, &self.setting.attrs) else { return };
        if types.iter().any(|(_, role)| *role == Role::Opaque) {
            return;
        }
        for row in self.rows() {
            let Some(given) = self.inputs(&types, &row) else { continue };
            let limits = self.scope.limits(false);
            let large = |chosen: &Option<Chosen>| {
                chosen.as_ref().is_some_and(|c| palette::elements(&c.dims) > limits.elements)
            };
            if given.iter().any(large) {
                continue;
            }
            let mut search =
                Search::new(self.op, self.place, self.setting, (types.clone(), given), limits);
            search.run(palette::FEW);
            all.tried += search.tried;
            *refusal = search.refusal.or(refusal.take());
            all.panic = all.panic.take().or(search.panic);
            let name = self.name(&row);
            let named = search.found.into_iter();
            all.skeletons.extend(named.map(|s| Skeleton { declared: Some(name.clone()), ..s }));
        }
    }

    /// `rows:n=7:k=13`
    fn name(&self, row: &Row<'_>) -> String {
        let sizes: String = row.iter().map(|(symbol, size)| format!(":{symbol}={size}")).collect();
        format!("{}{sizes}", settings::short(&AttrValue::from(self.case.name.as_str())))
    }

    /// Symbols that no attribute gives.
    fn symbols(&self) -> Vec<&'a str> {
        let used = self.case.used_symbols().into_iter();
        used.filter(|symbol| self.op.attr(symbol).is_none()).collect()
    }

    /// The sizes that are tried.
    fn rows(&self) -> Vec<Row<'a>> {
        const ORDINARY: [i64; 5] = [5, 3, 7, 4, 6];
        const PRIMES: [i64; 5] = [13, 7, 17, 31, 3];
        const SMALL: [i64; 5] = [2, 3, 1, 2, 3];
        const LONG: [i64; 4] = [131_075, 16_411, 4099, 1031];
        let symbols = self.symbols();
        let of = |others: &[i64; 5], own: Option<(usize, i64)>| -> Row<'a> {
            let sized = |(at, symbol): (usize, &&'a str)| {
                let own = own.filter(|(place, _)| *place == at).map(|(_, size)| size);
                (*symbol, self.allowed(symbol, own.unwrap_or(others[at % 5])))
            };
            symbols.iter().enumerate().map(sized).collect()
        };
        let mut rows = vec![of(&ORDINARY, None), of(&PRIMES, None), of(&[1; 5], None)];
        for place in 0..symbols.len() {
            rows.push(of(&ORDINARY, Some((place, 0))));
            rows.push(of(&PRIMES, Some((place, 1))));
            rows.push(of(&ORDINARY, Some((place, 65))));
            rows.extend(LONG.iter().map(|&size| of(&SMALL, Some((place, size)))));
        }
        let mut seen = std::collections::BTreeSet::new();
        rows.retain(|row| seen.insert(row.clone()));
        rows
    }

    /// A size that the case allows, this one if it does.
    fn allowed(&self, symbol: &str, size: i64) -> i64 {
        let choice = self.case.symbols.iter().find(|choice| choice.symbol == symbol);
        match choice.map(|choice| &choice.sizes) {
            Some(Sizes::Range(low, high)) if !(*low..*high).contains(&size) => {
                low + size.rem_euclid((high - low).max(1))
            }
            Some(Sizes::List(sizes)) if !sizes.contains(&size) => {
                sizes[size.rem_euclid(sizes.len() as i64) as usize]
            }
            _ => size,
        }
    }

    fn size(&self, row: &Row<'_>, symbol: &str) -> Option<i64> {
        let attr = || self.setting.attrs.get(symbol)?.as_int();
        row.get(symbol).copied().or_else(attr)
    }

    /// The inputs that the case describes; `None` when these sizes do not suit it.
    fn inputs(&self, types: &[(DType, Role)], row: &Row<'_>) -> Option<Vec<Option<Chosen>>> {
        let signature = Signature::resolve(self.op, &self.setting.attrs).ok()?;
        let mut given: Vec<Option<Chosen>> = vec![None; types.len()];
        for (arg, range) in self.op.inputs.iter().zip(&signature.input_args) {
            let Some(input) = self.case.input(&arg.name) else { continue };
            for number in 0..range.len as usize {
                let at = range.start as usize + number;
                let tensor = match &input.tensors[..] {
                    [one] => one,
                    many => many.get(number)?,
                };
                given[at] = Some(self.chosen(tensor, at, types[at], row)?);
            }
        }
        self.mark_constants(types, &mut given);
        Some(given)
    }

    fn chosen(
        &self,
        tensor: &TensorCase,
        at: usize,
        (dtype, role): (DType, Role),
        row: &Row<'_>,
    ) -> Option<Chosen> {
        let seed = self.scope.seed_of(&[&self.op.name, &self.name(row), &at.to_string()]);
        let (dims, recipe) = made(tensor, &|symbol| self.size(row, symbol), seed)?;
        let Some(recipe) = recipe else { return Some(Chosen::shape(dims)) };
        // Of an index the very value is what the shape function may look at.
        let values = match role {
            Role::Index => Some(integers(&recipe.fill(dtype, &dims, seed)?, dtype, &dims)?),
            _ => None,
        };
        let recipe = if values.is_some() { None } else { Some(recipe) };
        Some(Chosen { dims, values, constant: false, recipe })
    }

    /// Finds the indices at whose values the shape function looks: what it says differs when they are known.
    fn mark_constants(&self, types: &[(DType, Role)], given: &mut [Option<Chosen>]) {
        let table = AttrTable::new(self.setting.attrs.clone());
        for at in 0..given.len() {
            if given[at].as_ref().is_none_or(|chosen| chosen.values.is_none()) {
                continue;
            }
            let told = |constant: bool, given: &mut [Option<Chosen>]| {
                if let Some(chosen) = &mut given[at] {
                    chosen.constant = constant;
                }
                // Inputs that are still open count as scalars here; what is asked is whether anything changes.
                let inputs: Vec<Chosen> =
                    given.iter().map(|chosen| chosen.clone().unwrap_or_default()).collect();
                search::inferred(self.op, &table, types, &inputs).ok()
            };
            let without = told(false, given);
            // Known it stays, where that makes a difference.
            if told(true, given) == without {
                told(false, given);
            }
        }
    }
}

/// Shape of a tensor as a case describes it, and how its elements are made, none where that is the checker's choice;
/// `None` when these sizes do not suit it.
fn made(
    tensor: &TensorCase,
    size: &dyn Fn(&str) -> Option<i64>,
    seed: u64,
) -> Option<(Vec<i64>, Option<Recipe>)> {
    let dim = |dim: &tenon_framework::op::Term| dim.value(size).filter(|&dim| dim >= 0);
    let dims: Vec<i64> = tensor.dims.iter().map(dim).collect::<Option<_>>()?;
    let count = palette::elements(&dims);
    let recipe = match &tensor.values {
        Values::Any => return Some((dims, None)),
        Values::Uniform(low, high) => Recipe::Uniform(*low, *high),
        Values::Integers(range) => {
            let (low, high) = bounds(range, size, count)?;
            Recipe::Whole(low, high)
        }
        Values::Distinct(range) => Recipe::List(distinct(range, size, count, seed)?),
        Values::Permutation => Recipe::Permutation,
        Values::List(items) => Recipe::List(list(items, size, count)?),
        Values::Strings(texts) => Recipe::Strings(texts.clone()),
    };
    Some((dims, Some(recipe)))
}

/// Shape of an input of this type as a text of an op describes it, with the sizes of symbols from `size`, and its
/// elements, none where the text leaves them open. `None` when these sizes do not suit the text.
pub fn described(
    tensor: &TensorCase,
    dtype: DType,
    size: &dyn Fn(&str) -> Option<i64>,
    seed: u64,
) -> Option<(Vec<i64>, Option<Fill>)> {
    // Checked first: elements are made from it.
    tensor.elements(size)?;
    let (dims, recipe) = made(tensor, size, seed)?;
    let fill = match recipe {
        Some(recipe) => Some(recipe.fill(dtype, &dims, seed)?),
        None => None,
    };
    Some((dims, fill))
}

fn bounds(range: &TermRange, size: &dyn Fn(&str) -> Option<i64>, count: i64) -> Option<(i64, i64)> {
    // An empty range holds nothing, which is as many as there are to be chosen when there is no element.
    range.bounds(size).filter(|(low, high)| low < high || count == 0)
}

fn distinct(
    range: &TermRange,
    size: &dyn Fn(&str) -> Option<i64>,
    count: i64,
    seed: u64,
) -> Option<Vec<Listed>> {
    let (low, high) = bounds(range, size, count)?;
    if high - low < count || high - low > 1 << 20 {
        return None;
    }
    let mut all: Vec<i64> = (low..high).collect();
    let mut random = Random::new(seed);
    for at in 0..count {
        all.swap(at as usize, random.integer(at, high - low) as usize);
    }
    Some(all.into_iter().take(count as usize).map(Listed::Integer).collect())
}

fn list(items: &[Item], size: &dyn Fn(&str) -> Option<i64>, count: i64) -> Option<Vec<Listed>> {
    if items.len() != 1 && items.len() as i64 != count {
        return None;
    }
    let one = |item: &Item| {
        Some(match item {
            Item::Term(term) => Listed::Integer(term.value(size)?),
            Item::Float(value) => Listed::Real(*value),
            Item::Bool(value) => Listed::Integer(i64::from(*value)),
        })
    };
    items.iter().map(one).collect()
}

/// The integers of an index.
fn integers(fill: &Fill, dtype: DType, dims: &[i64]) -> Option<Vec<i64>> {
    let (dims, fill) = (dims.to_vec(), fill.clone());
    let tensor = crate::check::Argument { dtype, dims, fill, constant: false }.tensor().ok()?;
    search::index_values(&tensor)
}

#[cfg(test)]
#[path = "declared_tests.rs"]
mod tests;
