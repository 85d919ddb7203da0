//! A few cases out of many: each tag, attribute value, rank and recipe of values at least once, then as many of
//! their pairs as the budget holds.

use super::{
    palette,
    search::{Chosen, Role, Skeleton},
    settings::Setting,
};
use crate::check::Tag;
use std::collections::BTreeMap;
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
            .filter(move |((_, own), chosen)| *own == role && chosen.values.is_none())
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

/// The recipes that a skeleton is worth.
fn recipes(data: &[(DType, &Chosen)]) -> Vec<Values> {
    let Some(&(dtype, first)) = data.first() else { return vec![Values::Moderate] };
    let count = palette::elements(&first.dims);
    let empty = data.iter().any(|(_, chosen)| palette::elements(&chosen.dims) == 0);
    let suits = |values: &Values| match values {
        Values::Moderate => true,
        _ if empty => false,
        Values::Special => count <= 1 << 14,
        Values::Stagnation => count >= 1 << 12,
        Values::Whole | Values::Wide | Values::Permutation => count >= 2 && count <= 1 << 14,
        Values::Positive => true,
    };
    Class::of(dtype).recipes().iter().copied().filter(suits).collect()
}

/// What a candidate covers, with how much that is worth.
fn features(
    setting: &Setting,
    skeleton: &Skeleton,
    types: &[(DType, Role)],
    values: Values,
) -> Vec<(String, u32)> {
    let data = data(types, &skeleton.inputs);
    let tags = tags(&data, values).into_iter().map(|tag| (format!("{tag:?}"), 1000));
    let attrs = setting.features.iter().map(|feature| (feature.clone(), 100));
    let inputs = skeleton.inputs.iter().take(4).enumerate().flat_map(|(at, chosen)| {
        let rank = (format!("rank {at} {}", chosen.dims.len()), 20);
        let signs = chosen.values.as_ref().map(|values| {
            let negative = values.iter().any(|&value| value < 0);
            (format!("sign {at} {negative}"), 20)
        });
        [Some(rank), signs].into_iter().flatten()
    });
    let long = data.iter().any(|(_, chosen)| chosen.dims.iter().any(|&size| size > 1000));
    let sizes = [(format!("long {long} {values:?}"), 50), (format!("{values:?}"), 200)];
    tags.chain(attrs).chain(inputs).chain(sizes).collect()
}

/// Chooses candidates one after the other, each time the one that adds most; the cheaper of equals, then the
/// earlier.
pub(super) fn choose(
    settings: &[Setting],
    skeletons: &[Skeleton],
    types: &[Vec<(DType, Role)>],
    count: usize,
) -> Vec<Candidate> {
    let mut names: BTreeMap<String, u32> = BTreeMap::new();
    let mut pool: Vec<(Candidate, Vec<(u32, u32)>)> = Vec::new();
    for (at, skeleton) in skeletons.iter().enumerate() {
        let types = &types[skeleton.setting];
        for values in recipes(&data(types, &skeleton.inputs)) {
            let found = features(&settings[skeleton.setting], skeleton, types, values);
            let numbered = found.into_iter().map(|(name, worth)| {
                let next = names.len() as u32;
                (*names.entry(name).or_insert(next), worth)
            });
            pool.push((Candidate { skeleton: at, values }, numbered.collect()));
        }
    }
    let mut covered = Covered::new(names.len());
    let mut chosen = Vec::new();
    while chosen.len() < count {
        let gain = |(_, features): &(Candidate, Vec<(u32, u32)>)| covered.gain(features);
        let best = pool
            .iter()
            .enumerate()
            .map(|(at, entry)| {
                let cost = skeletons[entry.0.skeleton].elements;
                (gain(entry), std::cmp::Reverse(cost), std::cmp::Reverse(at))
            })
            .max();
        let Some((gain, _, std::cmp::Reverse(at))) = best else { break };
        if gain == 0 {
            break;
        }
        let (candidate, features) = pool.swap_remove(at);
        covered.add(&features);
        chosen.push(candidate);
    }
    chosen.sort_by_key(|candidate| (candidate.skeleton, candidate.values));
    chosen
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
