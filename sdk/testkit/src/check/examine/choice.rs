//! Which cases of a subject are used where a few must do.

use super::site::Site;
use crate::{
    check::case::{CheckCase, Fill, Tag},
    harness::Form,
};
use std::time::{Duration, Instant};
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
                | Fill::Huge { seed }
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

/// A case of which one call takes longer is not called again and again where there is another.
const SLOW: Duration = Duration::from_millis(250);

/// At most `count` cases that the kernel takes, of as many kinds as possible, with what they give.
pub(super) fn accepted(
    site: &Site<'_>,
    cases: &[CheckCase],
    count: usize,
) -> Vec<(Chosen, Vec<Tensor>)> {
    of_kinds(site, cases, count, Duration::MAX)
}

/// The same for what is called again and again: quick ones, or one where all that it takes are slow.
pub(super) fn repeated(
    site: &Site<'_>,
    cases: &[CheckCase],
    count: usize,
) -> Vec<(Chosen, Vec<Tensor>)> {
    of_kinds(site, cases, count, SLOW)
}

fn of_kinds(
    site: &Site<'_>,
    cases: &[CheckCase],
    count: usize,
    longest: Duration,
) -> Vec<(Chosen, Vec<Tensor>)> {
    let rank = |case: &CheckCase| ORDER.iter().position(|&tag| case.is(tag)).unwrap_or(ORDER.len());
    let mut by_kind: Vec<Vec<&CheckCase>> = vec![Vec::new(); ORDER.len() + 1];
    for case in cases {
        by_kind[rank(case)].push(case);
    }
    let rounds = by_kind.iter().map(Vec::len).max().unwrap_or(0);
    let turns =
        (0..rounds).flat_map(|round| by_kind.iter().filter_map(move |kind| kind.get(round)));
    let (mut quick, mut slow) = (Vec::new(), None);
    for case in turns {
        let Some(chosen) = Chosen::new(case) else { continue };
        let begin = Instant::now();
        let Ok(outputs) = site.run(&chosen.case, &chosen.inputs, Form::Shapes) else { continue };
        if begin.elapsed() > longest {
            slow.get_or_insert((chosen, outputs));
            continue;
        }
        quick.push((chosen, outputs));
        if quick.len() == count {
            break;
        }
    }
    if quick.is_empty() { slow.into_iter().collect() } else { quick }
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
