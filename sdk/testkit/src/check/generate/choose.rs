//! A few cases out of many: each tag, attribute value, rank and recipe of values at least once, then as many of
//! their pairs as the budget holds.

use super::{
    palette,
    search::{Chosen, Role, Skeleton},
    settings::Setting,
};
use crate::check::Tag;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap},
};
use tenon_framework::DType;

/// A recipe for the data of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Values {
    /// About zero, both signs.
    Moderate,
    /// Positive, without cancellation.
    Positive,
    /// Integers, with many ties; sums of them are exact.
    Whole,
    /// To where functions saturate.
    Wide,
    /// NaN, infinities, denormals, extremes.
    Special,
    /// Each number once, from 0 up.
    Permutation,
    /// What a sum in too narrow a type loses.
    Stagnation,
}

impl Values {
    pub fn name(self) -> &'static str {
        match self {
            Values::Moderate => "",
            Values::Positive => "positive",
            Values::Whole => "whole",
            Values::Wide => "wide",
            Values::Special => "special",
            Values::Permutation => "permutation",
            Values::Stagnation => "stagnation",
        }
    }
}

/// A skeleton with a recipe for its data.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub skeleton: usize,
    pub values: Values,
}

/// Kinds of element types, for which the same cases are good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    Float,
    /// 16 bits: sums are to be kept in a wider type.
    Narrow,
    Complex,
    Integer,
    Unsigned,
    Quantised,
    Bool,
    String,
    Other,
}

impl Class {
    pub fn of(dtype: DType) -> Class {
        match dtype {
            DType::FLOAT | DType::DOUBLE => Class::Float,
            DType::HALF | DType::BFLOAT16 => Class::Narrow,
            DType::COMPLEX64 | DType::COMPLEX128 => Class::Complex,
            DType::INT8 | DType::INT16 | DType::INT32 | DType::INT64 => Class::Integer,
            DType::UINT8 | DType::UINT16 | DType::UINT32 | DType::UINT64 => Class::Unsigned,
            DType::QINT8 | DType::QUINT8 | DType::QINT16 | DType::QUINT16 | DType::QINT32 => {
                Class::Quantised
            }
            DType::BOOL => Class::Bool,
            DType::STRING => Class::String,
            _ => Class::Other,
        }
    }

    /// Recipes that differ for the class.
    fn recipes(self) -> &'static [Values] {
        use Values::{Moderate, Permutation, Positive, Special, Stagnation, Whole, Wide};
        match self {
            Class::Float | Class::Complex => &[Moderate, Positive, Whole, Wide, Special],
            Class::Narrow => &[Moderate, Positive, Whole, Wide, Special, Stagnation],
            Class::Integer | Class::Unsigned => &[Moderate, Positive, Wide, Special, Permutation],
            Class::Quantised => &[Moderate, Special],
            Class::String => &[Moderate, Special],
            Class::Bool | Class::Other => &[Moderate],
        }
    }
}

/// The inputs that carry data: all, where indices have no data beside them.
pub(super) fn data<'s>(types: &[(DType, Role)], inputs: &'s [Chosen]) -> Vec<(DType, &'s Chosen)> {
    let pairs = || types.iter().zip(inputs);
    let of = |role: Role| {
        pairs()
            .filter(move |((_, own), chosen)| *own == role && !chosen.constant)
            .map(|((dtype, _), chosen)| (*dtype, chosen))
            .collect::<Vec<_>>()
    };
    let data = of(Role::Data);
    if data.is_empty() { of(Role::Index) } else { data }
}

const PRIMES: [i64; 12] = [7, 13, 17, 31, 131, 173, 193, 257, 1031, 2053, 4099, 131_075];

/// The tags of a case with these inputs.
pub(super) fn tags(data: &[(DType, &Chosen)], values: Values) -> Vec<Tag> {
    let dims: Vec<&[i64]> = data.iter().map(|(_, chosen)| &chosen.dims[..]).collect();
    let all = |f: &dyn Fn(&[i64]) -> bool| !dims.is_empty() && dims.iter().all(|dims| f(dims));
    let any = |f: &dyn Fn(&[i64]) -> bool| dims.iter().any(|dims| f(dims));
    let prime = |dims: &[i64]| {
        dims.iter().any(|size| PRIMES.contains(size)) && dims.iter().all(|size| size % 2 == 1)
    };
    [
        (Tag::Empty, any(&|dims| palette::elements(dims) == 0)),
        (Tag::Scalar, all(&|dims| dims.is_empty())),
        (Tag::One, all(&|dims| !dims.is_empty() && palette::elements(dims) == 1)),
        (Tag::Prime, any(&prime)),
        (Tag::Large, any(&|dims| palette::elements(dims) >= palette::LARGE)),
        (Tag::Broadcast, dims.iter().any(|other| *other != dims[0])),
        (Tag::Special, values == Values::Special),
    ]
    .into_iter()
    .filter_map(|(tag, holds)| holds.then_some(tag))
    .collect()
}

/// Elements that show what a recipe is for, and more than which it costs too much.
const TELLING: i64 = 48;
const COSTLY: i64 = 1 << 14;

/// The recipes that a skeleton is worth; `most` is what the skeletons have of elements that are not costly.
fn recipes(data: &[(DType, &Chosen)], most: i64) -> Vec<Values> {
    let Some(&(dtype, first)) = data.first() else { return vec![Values::Moderate] };
    let count = palette::elements(&first.dims);
    let empty = data.iter().any(|(_, chosen)| palette::elements(&chosen.dims) == 0);
    let telling = count >= TELLING.min(most) && count <= COSTLY;
    let suits = |values: &Values| match values {
        Values::Moderate => true,
        Values::Positive => !empty,
        Values::Stagnation => (900..=COSTLY).contains(&count),
        _ => telling && !empty,
    };
    // Where the op's own case says how all data is made, there is nothing to choose.
    if data.iter().all(|(_, chosen)| chosen.recipe.is_some() || chosen.values.is_some()) {
        return vec![Values::Moderate];
    }
    Class::of(dtype).recipes().iter().copied().filter(suits).collect()
}

/// What it is worth to cover a thing that no chosen case covers. A pair that no chosen case has together is worth
/// a hundredth of 1: pairs decide between candidates of which neither adds a thing.
mod worth {
    /// A tag.
    pub const TAG: u32 = 1000;
    /// A buffer that fills its blocks.
    pub const WHOLE: u32 = 300;
    /// One of the op's own cases.
    pub const CASE: u32 = 300;
    /// A recipe for the data.
    pub const VALUES: u32 = 200;
    /// A value of an attribute.
    pub const ATTR: u32 = 100;
    /// A recipe, with long dimensions or without.
    pub const LONG: u32 = 50;
    /// A long sum.
    pub const SUM: u32 = 30;
    /// A rank of an input with this many dimensions of 1, a pattern of indices.
    pub const SHAPE: u32 = 20;
}

/// What a candidate covers, with how much that is worth.
fn features(
    setting: &Setting,
    skeleton: &Skeleton,
    types: &[(DType, Role)],
    values: Values,
) -> Vec<(String, u32)> {
    let data = data(types, &skeleton.inputs);
    let long = data.iter().any(|(_, chosen)| chosen.dims.iter().any(|&size| size > 1000));
    let mut all = vec![
        (format!("long {long} {values:?}"), worth::LONG),
        (format!("{values:?}"), worth::VALUES),
    ];
    all.extend(tags(&data, values).into_iter().map(|tag| (format!("{tag:?}"), worth::TAG)));
    all.extend(setting.features.iter().map(|feature| (feature.clone(), worth::ATTR)));
    for (at, chosen) in skeleton.inputs.iter().take(4).enumerate() {
        let ones = chosen.dims.iter().filter(|&&size| size == 1).count();
        all.push((format!("dims {at} {} {ones}", chosen.dims.len()), worth::SHAPE));
        let values = chosen.values.iter();
        all.extend(values.map(|values| (format!("{at} {}", pattern(values)), worth::SHAPE)));
    }
    // A buffer without a byte to spare before the page that guards it: what is read beyond it faults.
    for (at, (_, chosen)) in data.iter().take(4).enumerate() {
        let count = palette::elements(&chosen.dims);
        all.extend(
            (count > 0 && count % WHOLE == 0).then(|| (format!("whole {at}"), worth::WHOLE)),
        );
    }
    let declared = skeleton.declared.as_ref().and_then(|name| name.split(':').next());
    all.extend(declared.map(|name| (format!("case {name}"), worth::CASE)));
    all.extend(summed(skeleton, values).filter(|_| long).map(|name| (name, worth::SUM)));
    all
}

/// Which dimension a sum goes over, its indices say: each long one must be summed up.
fn summed(skeleton: &Skeleton, values: Values) -> Option<String> {
    let first = skeleton.inputs.first().filter(|_| values == Values::Stagnation)?;
    let indices = skeleton.inputs.iter().filter_map(|chosen| chosen.values.as_ref());
    Some(format!("sum {:?} {:?}", first.dims, indices.collect::<Vec<_>>()))
}

/// This many elements of any type fill whole blocks of the host's alignment.
const WHOLE: i64 = 64;

/// What a list of indices is like.
fn pattern(values: &[i64]) -> String {
    let negative = values.iter().any(|&value| value < 0);
    let zero = values.iter().all(|&value| value == 0);
    let equal = values.windows(2).all(|pair| pair[0] == pair[1]);
    format!("{negative} {zero} {equal} {} {}", values.is_sorted(), values.len().min(4))
}

/// Chooses candidates one after the other, each time the one that adds most; the cheaper of equals, then the
/// earlier.
pub(super) fn choose(
    settings: &[Setting],
    skeletons: &[Skeleton],
    types: &[Vec<(DType, Role)>],
    count: usize,
) -> Vec<Candidate> {
    let (pool, names) = pool(settings, skeletons, types);
    let mut covered = Covered::new(names);
    let is_large = |at: usize| skeletons[pool[at].0.skeleton].elements >= palette::LARGE;
    let rank = |gain: u32, at: usize| {
        (gain, Reverse(skeletons[pool[at].0.skeleton].elements), Reverse(at))
    };
    // What a candidate adds never grows, so that the best one is found without looking at all of them again.
    let first = (0..pool.len()).map(|at| rank(covered.gain(&pool[at].1), at));
    let mut best: BinaryHeap<_> = first.collect();
    let (mut chosen, mut large, mut left) = (Vec::new(), 0, Vec::new());
    while let Some((stale, _, Reverse(at))) = best.pop() {
        let gain = covered.gain(&pool[at].1);
        let affordable = large * LARGE_SHARE < count || !is_large(at);
        if chosen.len() == count {
            break;
        } else if gain > 0 && gain < stale && affordable {
            best.push(rank(gain, at));
        } else if gain > 0 && affordable {
            large += usize::from(is_large(at));
            covered.add(&pool[at].1);
            chosen.push(pool[at].0);
        } else if !is_large(at) {
            left.push(at);
        }
    }
    left.sort_unstable();
    spread(&pool, &left, count - chosen.len(), &mut chosen);
    chosen.sort_by_key(|candidate| (candidate.skeleton, candidate.values));
    chosen
}

/// One case in this many at most is large.
const LARGE_SHARE: usize = 5;

/// A candidate, with the numbers of what it covers and what each is worth.
type Pooled = (Candidate, Vec<(u32, u32)>);

/// All candidates, and how many things there are to be covered.
fn pool(
    settings: &[Setting],
    skeletons: &[Skeleton],
    types: &[Vec<(DType, Role)>],
) -> (Vec<Pooled>, usize) {
    let first = |skeleton: &Skeleton| {
        let data = data(&types[skeleton.setting], &skeleton.inputs);
        data.first().map_or(0, |(_, chosen)| palette::elements(&chosen.dims))
    };
    let most = skeletons.iter().map(first).filter(|&count| count <= COSTLY).max().unwrap_or(0);
    let mut names: BTreeMap<String, u32> = BTreeMap::new();
    let mut pool = Vec::new();
    for (at, skeleton) in skeletons.iter().enumerate() {
        let types = &types[skeleton.setting];
        for values in recipes(&data(types, &skeleton.inputs), most) {
            let found = features(&settings[skeleton.setting], skeleton, types, values);
            let numbered = found.into_iter().map(|(name, worth)| {
                let next = names.len() as u32;
                (*names.entry(name).or_insert(next), worth)
            });
            pool.push((Candidate { skeleton: at, values }, numbered.collect()));
        }
    }
    (pool, names.len())
}

/// When all is covered, further skeletons from over the whole list.
fn spread(pool: &[Pooled], left: &[usize], count: usize, chosen: &mut Vec<Candidate>) {
    let used: BTreeSet<usize> = chosen.iter().map(|candidate| candidate.skeleton).collect();
    let fresh: Vec<usize> = left
        .iter()
        .copied()
        .filter(|&at| pool[at].0.values == Values::Moderate && !used.contains(&pool[at].0.skeleton))
        .collect();
    let total = fresh.len();
    let taken = (0..total).filter(|at| at * count / total != (at + 1) * count / total);
    chosen.extend(taken.map(|at| pool[fresh[at]].0));
}

/// Features and pairs of them that chosen cases have.
struct Covered {
    count: usize,
    pairs: Vec<bool>,
}

impl Covered {
    fn new(count: usize) -> Covered {
        Covered { count, pairs: vec![false; count * count] }
    }

    fn place(&self, a: u32, b: u32) -> usize {
        a.min(b) as usize * self.count + a.max(b) as usize
    }

    fn gain(&self, features: &[(u32, u32)]) -> u32 {
        let singles: u32 = features
            .iter()
            .filter(|(feature, _)| !self.pairs[self.place(*feature, *feature)])
            .map(|(_, worth)| worth * 100)
            .sum();
        let pairs = features
            .iter()
            .enumerate()
            .flat_map(|(at, &(a, _))| features[..at].iter().map(move |&(b, _)| (a, b)));
        singles + pairs.filter(|&(a, b)| !self.pairs[self.place(a, b)]).count() as u32
    }

    fn add(&mut self, features: &[(u32, u32)]) {
        for (at, &(a, _)) in features.iter().enumerate() {
            for &(b, _) in &features[..=at] {
                let place = self.place(a, b);
                self.pairs[place] = true;
            }
        }
    }
}
