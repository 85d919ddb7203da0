//! Which cases of a subject are used where a few must do.

use super::site::Site;
use crate::{
    check::case::{CheckCase, Fill, Tag},
    harness::Form,
};
use tenon_framework::Tensor;

/// A case with its inputs.
pub(super) struct Chosen {
    pub case: CheckCase,
    pub inputs: Vec<Tensor>,
}

impl Chosen {
    pub fn new(case: &CheckCase) -> Option<Chosen> {
        Some(Chosen { inputs: case.tensors().ok()?, case: case.clone() })
    }

    pub fn bytes(&self) -> usize {
        self.inputs.iter().map(Tensor::byte_len).sum()
    }

    /// The same case with other elements, where its recipes have any.
    pub fn varied(&self, by: u64) -> Option<Chosen> {
        let mut case = self.case.clone();
        for input in &mut case.inputs {
            match &mut input.fill {
                Fill::Uniform { seed, .. }
                | Fill::Special { seed }
                | Fill::Permutation { seed } => {
                    *seed = seed.wrapping_add(by.wrapping_mul(0x9e37_79b9_7f4a_7c15));
                }
                _ => {}
            }
        }
        Chosen::new(&case)
    }
}

/// The order in which kinds of cases are taken: those first that more can go wrong in.
const ORDER: [Tag; 9] = [
    Tag::Prime,
    Tag::Large,
    Tag::Broadcast,
    Tag::Declared,
    Tag::Golden,
    Tag::One,
    Tag::Scalar,
    Tag::Empty,
    Tag::Special,
];

/// At most `count` cases that the kernel takes, of as many kinds as possible, with what they give.
pub(super) fn accepted(
    site: &Site<'_>,
    cases: &[CheckCase],
    count: usize,
) -> Vec<(Chosen, Vec<Tensor>)> {
    let rank = |case: &CheckCase| ORDER.iter().position(|&tag| case.is(tag)).unwrap_or(ORDER.len());
    let mut by_kind: Vec<Vec<&CheckCase>> = vec![Vec::new(); ORDER.len() + 1];
    for case in cases {
        by_kind[rank(case)].push(case);
    }
    let rounds = by_kind.iter().map(Vec::len).max().unwrap_or(0);
    let turns =
        (0..rounds).flat_map(|round| by_kind.iter().filter_map(move |kind| kind.get(round)));
    let run = |case: &&CheckCase| {
        let chosen = Chosen::new(case)?;
        let outputs = site.run(&chosen.case, &chosen.inputs, Form::Shapes).ok()?;
        Some((chosen, outputs))
    };
    turns.filter_map(run).take(count).collect()
}

/// The accepted case with the fewest bytes that has elements at all, else any.
pub(super) fn smallest(site: &Site<'_>, cases: &[CheckCase]) -> Option<(Chosen, Vec<Tensor>)> {
    let has_elements = |chosen: &Chosen| {
        !chosen.inputs.is_empty() && chosen.inputs.iter().all(|input| input.elements() > 0)
    };
    let mut sorted: Vec<Chosen> = cases.iter().filter_map(Chosen::new).collect();
    sorted.sort_by_key(|chosen| (!has_elements(chosen), chosen.bytes()));
    sorted.into_iter().find_map(|chosen| {
        let outputs = site.run(&chosen.case, &chosen.inputs, Form::Shapes).ok()?;
        Some((chosen, outputs))
    })
}
