//! Cases for a kernel from its op's definition, without knowing the op.
//!
//! Attributes have their defaults, then other values (`settings`); inputs have shapes of a palette, and those
//! that the shape function accepts are kept (`search`), axes, permutations and sizes with values that it accepts;
//! of these a budget of cases is chosen so that every tag, attribute value and rank comes up, then pairs of them
//! (`choose`). What a signature does not say, an op's own cases and golden data add.
//!
//! # Invariants
//! - Cases are a function of registry, seed and budget: neither of the order in which subjects are asked for,
//!   nor of the clock, nor of the machine.
//! - The values of an input depend on the case's name, so that another case changes none.
//! - Kernels of one op with like types get the same cases.

mod choose;
mod declared;
mod further;
mod golden;
mod out_of_range;
mod palette;
mod search;
mod settings;
mod subjects;

use super::{Argument, CheckCase, Fill, Subject, Tag, fill::seed_of};
use choose::{Candidate, Class, Values};
pub use declared::described;
pub use further::{far, huge};
pub use golden::Goldens;
pub use out_of_range::beyond;
pub(super) use search::reindexed;
use search::{Chosen, Limits, Role, Search, Skeleton};
use settings::{Setting, dims_text};
use std::{cell::RefCell, collections::BTreeMap, rc::Rc};
pub use subjects::subjects;
use tenon_framework::{
    DType,
    abi::AttrKind,
    attr::{AttrMap, AttrType, AttrValue},
    attr_view::AttrTable,
    op::{AttrDef, Case, OpDef},
};

/// How much is generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Of all generators.
    pub seed: u64,
    /// Generated cases of a subject at most; an op's own cases come on top.
    pub cases_per_subject: usize,
    /// A wider palette, and every golden case.
    pub full: bool,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget { seed: 0, cases_per_subject: 24, full: false }
    }
}

/// The cases of a subject.
#[derive(Debug, Clone, Default)]
pub struct Generated {
    /// The cases, each with its own name.
    pub cases: Vec<CheckCase>,
    /// Why there are no cases.
    pub uncovered: Option<String>,
    /// The op's own cases of which its shape function accepts nothing.
    pub refused: Vec<String>,
    /// How the shape function panicked, with the inputs for which it did so first.
    pub panic: Option<String>,
}

/// The cases of one subject. For those of many subjects keep a [`Generator`], which searches once for kernels that
/// get the same cases.
pub fn generate(subject: &Subject, budget: &Budget) -> Generated {
    Generator::new(*budget, None).generate(subject)
}

/// A budget with what follows from it.
#[derive(Debug, Clone, Copy)]
struct Scope(Budget);

impl Scope {
    fn seed_of(self, words: &[&str]) -> u64 {
        seed_of(self.0.seed, words.iter().copied())
    }

    /// Settings in which attributes meet.
    fn mixtures(self) -> usize {
        if self.0.full { 24 } else { 6 }
    }

    fn limits(self, base: bool) -> Limits {
        let factor = if self.0.full { 4 } else { 1 };
        Limits {
            tries: factor * if base { 6000 } else { 500 },
            elements: if self.0.full { 1 << 22 } else { 300_000 },
            companions: if base { 8 * factor } else { 3 },
            values: 4 * factor,
        }
    }

    fn palette(self, base: bool) -> Vec<&'static [i64]> {
        match (base, self.0.full) {
            (true, true) => [palette::SAMPLED, palette::MORE].concat(),
            (true, false) | (false, true) => palette::SAMPLED.to_vec(),
            (false, false) => palette::FEW.to_vec(),
        }
    }
}

/// Which types get the same cases.
#[derive(Debug, Clone, Copy)]
enum Likes {
    /// Those of a class.
    Class,
    /// None: each has its own.
    Nothing,
}

/// What the shape function of an op accepts.
struct Searched {
    settings: Vec<Setting>,
    skeletons: Vec<Skeleton>,
    tried: usize,
    refusal: Option<String>,
    /// The op's own cases that are refused.
    refused: Vec<String>,
    /// How the shape function panicked first.
    panic: Option<String>,
}

/// What was chosen of it for kinds of types.
struct Plan {
    searched: Rc<Searched>,
    chosen: Vec<Candidate>,
}

/// Generates the cases of many subjects.
pub struct Generator {
    scope: Scope,
    goldens: Option<Rc<Goldens>>,
    searched: RefCell<BTreeMap<String, Rc<Searched>>>,
    plans: RefCell<BTreeMap<String, Rc<Plan>>>,
}

impl Generator {
    /// A generator; golden cases come with golden data.
    pub fn new(budget: Budget, goldens: Option<Rc<Goldens>>) -> Generator {
        Generator {
            scope: Scope(budget),
            goldens,
            searched: RefCell::default(),
            plans: RefCell::default(),
        }
    }

    /// The cases of a subject: golden ones first.
    pub fn generate(&self, subject: &Subject) -> Generated {
        let mut cases = self.golden_cases(subject);
        let mut plan = self.plan(subject, Likes::Class);
        let mut found = self.planned(subject, &plan);
        if found.is_empty() {
            // Where sizes follow from the types, as in `Bitcast`.
            plan = self.plan(subject, Likes::Nothing);
            found = self.planned(subject, &plan);
        }
        let searched = &plan.searched;
        cases.extend(found);
        number_equal_names(&mut cases);
        let uncovered = cases.is_empty().then(|| why_none(subject, searched));
        let (refused, panic) = (searched.refused.clone(), searched.panic.clone());
        Generated { cases, uncovered, refused, panic }
    }

    /// The cases of a plan that a subject's own types fit.
    fn planned(&self, subject: &Subject, plan: &Plan) -> Vec<CheckCase> {
        let searched = &plan.searched;
        let case = |candidate: &Candidate| {
            let skeleton = &searched.skeletons[candidate.skeleton];
            self.case(subject, &searched.settings[skeleton.setting], skeleton, candidate.values)
        };
        plan.chosen.iter().filter_map(case).collect()
    }

    fn golden_cases(&self, subject: &Subject) -> Vec<CheckCase> {
        let Some(goldens) = &self.goldens else { return Vec::new() };
        let all = goldens.cases(subject);
        let count = self.scope.0.cases_per_subject.max(1);
        if self.scope.0.full || all.len() <= count {
            return all;
        }
        // Spread over the file, in which like cases stand together.
        let total = all.len();
        let taken = |at: usize| at * count / total != (at + 1) * count / total;
        all.into_iter().enumerate().filter(|(at, _)| taken(*at)).map(|(_, case)| case).collect()
    }

    fn plan(&self, subject: &Subject, likes: Likes) -> Rc<Plan> {
        let op = &*subject.op;
        let like = match likes {
            Likes::Class => like_types(op, &subject.types, |dtype| {
                move |other| Class::of(other) == Class::of(dtype)
            }),
            Likes::Nothing => subject.types.clone(),
        };
        let lists = lists_of(subject);
        let key = format!("{} {likes:?} {like:?} {lists:?}", op.name);
        if let Some(plan) = self.plans.borrow().get(&key) {
            return Rc::clone(plan);
        }
        let searched = self.searched(op, &subject.types, &lists, likes);
        let with_types = |setting: &Setting| {
            let mut attrs = setting.attrs.clone();
            attrs.extend(like.clone());
            search::roles(op, &attrs).unwrap_or_default()
        };
        let types: Vec<_> = searched.settings.iter().map(with_types).collect();
        let count = self.scope.0.cases_per_subject;
        let chosen = choose::choose(&searched.settings, &searched.skeletons, &types, count);
        let plan = Rc::new(Plan { searched, chosen });
        self.plans.borrow_mut().insert(key, Rc::clone(&plan));
        plan
    }

    fn searched(
        &self,
        op: &OpDef,
        types: &AttrMap,
        lists: &BTreeMap<String, Vec<DType>>,
        likes: Likes,
    ) -> Rc<Searched> {
        let types = match likes {
            Likes::Class => like_types(op, types, |_| |_| true),
            Likes::Nothing => types.clone(),
        };
        let key = format!("{} {types:?} {lists:?}", op.name);
        if let Some(searched) = self.searched.borrow().get(&key) {
            return Rc::clone(searched);
        }
        let searched = Rc::new(self.search(op, &types, lists));
        self.searched.borrow_mut().insert(key, Rc::clone(&searched));
        searched
    }

    fn search(
        &self,
        op: &OpDef,
        types: &AttrMap,
        lists: &BTreeMap<String, Vec<DType>>,
    ) -> Searched {
        let of_list = |attr: &AttrDef| lists.get(&attr.name).cloned().unwrap_or_default();
        if !op.cases().is_empty() {
            let declared::Declared { settings, skeletons, refused, tried, panic } =
                declared::declared(op, types, &of_list, &self.scope);
            let refusal = refused.last().cloned();
            return Searched { settings, skeletons, tried, refusal, refused, panic };
        }
        let settings = settings::settings(op, types, &of_list, &self.scope);
        let (mut skeletons, mut tried, mut refusal, mut panic) = (Vec::new(), 0, None, None);
        for (place, setting) in settings.iter().enumerate() {
            let types = search::roles(op, &setting.attrs).unwrap_or_default();
            if types.iter().any(|(_, role)| *role == Role::Opaque) {
                continue;
            }
            // Until one setting is feasible, each may turn out to be the base.
            let base = skeletons.is_empty();
            let given = vec![None; types.len()];
            let limits = self.scope.limits(base);
            let mut search = Search::new(op, place, setting, (types, given), limits);
            search.run(&self.scope.palette(base));
            tried += search.tried;
            refusal = search.refusal.or(refusal);
            panic = panic.or(search.panic);
            skeletons.append(&mut search.found);
        }
        Searched { settings, skeletons, tried, refusal, refused: Vec::new(), panic }
    }

    /// The case of a skeleton for the types of a subject.
    fn case(
        &self,
        subject: &Subject,
        setting: &Setting,
        skeleton: &Skeleton,
        values: Values,
    ) -> Option<CheckCase> {
        let mut attrs = setting.attrs.clone();
        attrs.extend(subject.types.clone());
        let types = search::roles(&subject.op, &attrs).ok()?;
        // The sizes were found for a type like this one, of which elements can be made.
        if types.iter().any(|(_, role)| *role == Role::Opaque) {
            return None;
        }
        let table = AttrTable::new(attrs.clone());
        search::inferred(&subject.op, &table, &types, &skeleton.inputs).ok()?;
        let name = name_of(setting, skeleton, values);
        let data = choose::data(&types, &skeleton.inputs);
        let mut tags = choose::tags(&data, values);
        tags.extend(skeleton.declared.as_ref().map(|_| Tag::Declared));
        let fills =
            Fills { data: &data, values, scope: self.scope, words: [&subject.op.name, &name] };
        let argument = |(at, (chosen, &(dtype, role))): (usize, (&Chosen, &(DType, Role)))| {
            Some(Argument {
                dtype,
                dims: chosen.dims.clone(),
                fill: fills.of(at, dtype, role, chosen)?,
                constant: chosen.constant,
            })
        };
        let inputs = skeleton.inputs.iter().zip(&types).enumerate().map(argument);
        Some(CheckCase { inputs: inputs.collect::<Option<_>>()?, name, tags, attrs })
    }
}

impl std::fmt::Debug for Generator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Generator({:?}, {} plans)", self.scope.0, self.plans.borrow().len())
    }
}

/// For each type the first that is like it and that the op allows. Shape functions do not tell them apart; where
/// one does, a case that it refuses for a subject's own type is left out.
fn like_types<F: Fn(DType) -> bool>(
    op: &OpDef,
    types: &AttrMap,
    like: impl Fn(DType) -> F,
) -> AttrMap {
    // A tensor among the attributes has the type itself, and a case may be for one type alone.
    let tensors = op.attrs.iter().any(|attr| attr.ty.kind == AttrKind::TENSOR);
    let sets_type = |case: &Case| types.keys().any(|name| case.attr(name).is_some());
    if tensors || op.cases().iter().any(sets_type) {
        return types.clone();
    }
    let first = |(name, value): (&String, &AttrValue)| {
        let Some(dtype) = value.as_type() else { return (name.clone(), value.clone()) };
        let allowed = op.attr(name).and_then(|attr| attr.allowed.as_ref());
        let fits = |other: DType| match allowed {
            Some(tenon_framework::op::Allowed::Types(types)) => types.contains(&other),
            _ => true,
        };
        let like = like(dtype);
        let mut all = DType::ALL.iter().copied();
        let first = all.find(|&other| subjects::is_made(other) && fits(other) && like(other));
        (name.clone(), AttrValue::Type(first.unwrap_or(dtype)))
    };
    types.iter().map(first).collect()
}

/// The types that the `list(type)` attributes of a kernel may hold.
fn lists_of(subject: &Subject) -> BTreeMap<String, Vec<DType>> {
    let lists = subject.op.attrs.iter().filter(|attr| attr.ty == AttrType::list(AttrKind::TYPE));
    lists.map(|attr| (attr.name.clone(), subjects::types_of(&subject.kernel, attr))).collect()
}

/// Recipes of a case's inputs.
struct Fills<'a> {
    data: &'a [(DType, &'a Chosen)],
    values: Values,
    scope: Scope,
    words: [&'a str; 2],
}

impl Fills<'_> {
    fn of(&self, at: usize, dtype: DType, role: Role, chosen: &Chosen) -> Option<Fill> {
        if let Some(values) = &chosen.values {
            return search::index_tensor(dtype, &chosen.dims, values).map(Fill::Explicit);
        }
        let [op, name] = self.words;
        let seed = self.scope.seed_of(&[op, name, &at.to_string()]);
        if let Some(recipe) = &chosen.recipe {
            return recipe.fill(dtype, &chosen.dims, seed);
        }
        let is_data = self.data.iter().any(|(_, own)| std::ptr::eq(*own, chosen));
        if role == Role::Index && !is_data {
            let sizes = self.data.iter().flat_map(|(_, chosen)| &chosen.dims);
            let high = sizes.copied().filter(|&size| size > 0).min().unwrap_or(1);
            return Some(Fill::Whole { low: 0, high, seed });
        }
        let first = self.data.first().is_some_and(|(_, own)| std::ptr::eq(*own, chosen));
        Some(data_fill(self.values, Class::of(dtype), first, seed))
    }
}

/// The recipe for an input that carries data; `first` is the first of them.
fn data_fill(values: Values, class: Class, first: bool, seed: u64) -> Fill {
    let uniform = |low: f64, high: f64| Fill::Uniform { low, high, seed };
    let integers = !matches!(class, Class::Float | Class::Narrow | Class::Complex);
    let unsigned = matches!(class, Class::Unsigned | Class::Bool);
    match values {
        Values::Moderate if unsigned => uniform(0.0, 16.0),
        Values::Moderate if integers => uniform(-8.0, 8.0),
        Values::Moderate => uniform(-2.0, 2.0),
        Values::Positive if integers => uniform(1.0, 16.0),
        Values::Positive => uniform(0.25, 2.0),
        Values::Whole => Fill::Whole { low: -3, high: 4, seed },
        Values::Wide if unsigned => uniform(0.0, 200.0),
        Values::Wide if integers => uniform(-100.0, 100.0),
        Values::Wide => uniform(-40.0, 40.0),
        Values::Special => Fill::Special { seed },
        Values::Permutation => Fill::Permutation { seed },
        Values::Stagnation if first => Fill::Stagnation,
        Values::Stagnation => Fill::Whole { low: 1, high: 2, seed },
    }
}

/// `7x13+2@1_0:keep_dims=true:special`: inputs, then attributes that are not at the base, then the recipe.
fn name_of(setting: &Setting, skeleton: &Skeleton, values: Values) -> String {
    let input = |chosen: &Chosen| match chosen.values.as_ref().filter(|_| chosen.constant) {
        None => dims_text(&chosen.dims),
        Some(values) => {
            let values: Vec<String> = values.iter().map(i64::to_string).collect();
            format!("{}@{}", dims_text(&chosen.dims), values.join("_"))
        }
    };
    let inputs: Vec<String> = skeleton.inputs.iter().map(input).collect();
    let inputs = if inputs.is_empty() { "none".to_owned() } else { inputs.join("+") };
    // An op's own case says the inputs, up to those that are the checker's choice.
    let inputs = skeleton.declared.as_ref().unwrap_or(&inputs);
    let parts = [inputs.as_str(), &setting.label, values.name()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(":")
}

fn number_equal_names(cases: &mut [CheckCase]) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for case in cases {
        let count = seen.entry(case.name.clone()).or_default();
        *count += 1;
        if *count > 1 {
            case.name = format!("{}~{count}", case.name);
        }
    }
}

fn why_none(subject: &Subject, searched: &Searched) -> String {
    let op = &subject.op.name;
    let opaque = searched.settings.iter().find_map(|setting| {
        let mut attrs = setting.attrs.clone();
        attrs.extend(subject.types.clone());
        let types = search::roles(&subject.op, &attrs).ok()?;
        types.iter().position(|(_, role)| *role == Role::Opaque).map(|at| (at, types[at].0))
    });
    if let Some((at, dtype)) = opaque {
        return format!("op {op}: input {at} is {dtype}, of which only kernels make elements");
    }
    let refusal = searched.refusal.as_deref().unwrap_or("nothing");
    format!(
        "op {op}: the shape function refused {} combinations of {} settings of attributes, the last with: {refusal}; \
         declare `cases` in the op's definition",
        searched.tried,
        searched.settings.len()
    )
}

#[cfg(test)]
mod tests;
