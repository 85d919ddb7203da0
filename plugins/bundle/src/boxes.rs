//! Copying between boxes: the elements that a stored part and a wanted part have in common.

use crate::{slice::Region, strings::Strings};
use tenon_sdk::{KernelError, growth};

/// Number of elements of a region.
pub fn volume(region: &[(u64, u64)]) -> u64 {
    region.iter().map(|&(_, length)| length).product()
}

/// What two regions of one tensor have in common; `None` if that is nothing.
pub fn overlap(a: &[(u64, u64)], b: &[(u64, u64)]) -> Option<Region> {
    let one = |(&(a, a_len), &(b, b_len)): (&(u64, u64), &(u64, u64))| {
        let start = a.max(b);
        let end = (a + a_len).min(b + b_len);
        (start < end).then(|| (start, end - start))
    };
    a.iter().zip(b).map(one).collect()
}

/// The position of an element of the tensor in a region of it.
fn position(at: &[u64], region: &[(u64, u64)]) -> usize {
    let add = |sum: u64, (&at, &(start, length)): (&u64, &(u64, u64))| sum * length + (at - start);
    at.iter().zip(region).fold(0, add) as usize
}

/// Calls `copy` with the position in `from`, the position in `to` and the length of each run of elements that `common` has.
fn runs<E>(
    common: &[(u64, u64)],
    from: &[(u64, u64)],
    to: &[(u64, u64)],
    mut copy: impl FnMut(usize, usize, usize) -> Result<(), E>,
) -> Result<(), E> {
    let (outer, run) = match common.split_last() {
        Some((&(_, run), outer)) => (outer, run as usize),
        None => (common, 1),
    };
    let mut at: Vec<u64> = common.iter().map(|&(start, _)| start).collect();
    loop {
        copy(position(&at, from), position(&at, to), run)?;
        let next = (0..outer.len()).rev().find(|&dim| at[dim] + 1 < outer[dim].0 + outer[dim].1);
        let Some(dim) = next else { return Ok(()) };
        at[dim] += 1;
        for inner in dim + 1..outer.len() {
            at[inner] = outer[inner].0;
        }
    }
}

/// Which elements have been found.
#[derive(Debug)]
struct Coverage {
    bits: Vec<u64>,
    found: usize,
    count: usize,
}

impl Coverage {
    /// None of `count` elements.
    fn new(count: usize) -> Result<Coverage, KernelError> {
        Ok(Coverage { bits: growth::filled(count.div_ceil(64), 0)?, found: 0, count })
    }

    /// Marks elements.
    fn mark(&mut self, begin: usize, len: usize) -> Result<(), Twice> {
        for at in begin..begin + len {
            let (word, bit) = (&mut self.bits[at / 64], 1 << (at % 64));
            if *word & bit != 0 {
                return Err(Twice);
            }
            *word |= bit;
        }
        self.found += len;
        Ok(())
    }
}

/// Two stored parts have the same element.
#[derive(Debug, PartialEq, Eq)]
pub struct Twice;

/// Puts a tensor together from stored parts of it.
pub struct Gather<'g> {
    out: &'g mut [u8],
    each: usize,
    wanted: &'g [(u64, u64)],
    coverage: Coverage,
}

impl<'g> Gather<'g> {
    /// `out` has the elements of `wanted`, of `each` bytes.
    pub fn new(
        out: &'g mut [u8],
        each: usize,
        wanted: &'g [(u64, u64)],
    ) -> Result<Gather<'g>, KernelError> {
        let coverage = Coverage::new(out.len() / each)?;
        Ok(Gather { out, each, wanted, coverage })
    }

    /// Takes what is wanted of a stored part.
    pub fn add(&mut self, region: &[(u64, u64)], bytes: &[u8]) -> Result<(), Twice> {
        let Some(common) = overlap(region, self.wanted) else { return Ok(()) };
        runs(&common, region, self.wanted, |from, to, run| {
            self.coverage.mark(to, run)?;
            let each = self.each;
            self.out[to * each..][..run * each]
                .copy_from_slice(&bytes[from * each..][..run * each]);
            Ok(())
        })
    }

    /// Whether every element was found.
    pub fn is_complete(&self) -> bool {
        self.coverage.found == self.coverage.count
    }
}

/// Puts a tensor of strings together from stored parts of it.
pub struct GatherStrings<'g> {
    wanted: &'g [(u64, u64)],
    coverage: Coverage,
    parts: Vec<Strings>,
    /// The part and the position in it of each element.
    places: Vec<(usize, usize)>,
}

impl<'g> GatherStrings<'g> {
    /// Of the `count` elements of `wanted`.
    pub fn new(count: usize, wanted: &'g [(u64, u64)]) -> Result<GatherStrings<'g>, KernelError> {
        let (coverage, places) = (Coverage::new(count)?, growth::filled(count, (0, 0))?);
        Ok(GatherStrings { wanted, coverage, parts: Vec::new(), places })
    }

    /// Takes what is wanted of a stored part.
    pub fn add(&mut self, region: &[(u64, u64)], part: Strings) -> Result<(), Twice> {
        let Some(common) = overlap(region, self.wanted) else { return Ok(()) };
        let number = self.parts.len();
        self.parts.push(part);
        runs(&common, region, self.wanted, |from, to, run| {
            self.coverage.mark(to, run)?;
            (0..run).for_each(|at| self.places[to + at] = (number, from + at));
            Ok(())
        })
    }

    /// All elements; `None` if one was not found.
    pub fn finish(self) -> Result<Option<Strings>, KernelError> {
        if self.coverage.found < self.coverage.count {
            return Ok(None);
        }
        let mut strings = Strings::default();
        self.places.iter().try_for_each(|&(part, at)| strings.push(self.parts[part].get(at)))?;
        Ok(Some(strings))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_meet_each_common_element_once() {
        let (from, to) = ([(1, 2), (0, 3), (2, 2)], [(0, 4), (1, 2), (1, 3)]);
        let common = overlap(&from, &to).unwrap();
        assert_eq!(common, [(1, 2), (1, 2), (2, 2)]);
        let mut seen = Vec::new();
        runs(&common, &from, &to, |a, b, len| {
            seen.extend((0..len).map(|at| (a + at, b + at)));
            Ok::<_, ()>(())
        })
        .unwrap();
        let mut expected = Vec::new();
        for i in 1..3u64 {
            for j in 1..3u64 {
                for k in 2..4u64 {
                    let a = ((i - 1) * 3 + j) * 2 + (k - 2);
                    let b = (i * 2 + (j - 1)) * 3 + (k - 1);
                    expected.push((a as usize, b as usize));
                }
            }
        }
        assert_eq!(seen, expected);
        assert_eq!(overlap(&[(0, 2)], &[(2, 2)]), None);
        assert_eq!(overlap(&[], &[]), Some(Vec::new()));
    }

    #[test]
    fn an_element_counts_once() {
        let mut out = [0u8; 6];
        let mut gather = Gather::new(&mut out, 2, &[(1, 3)]).unwrap();
        assert_eq!(gather.add(&[(0, 3)], &[1, 2, 3, 4, 5, 6]), Ok(()));
        assert!(!gather.is_complete());
        assert_eq!(gather.add(&[(2, 2)], &[7, 8, 9, 9]), Err(Twice));
        assert_eq!(gather.add(&[(3, 1)], &[7, 8]), Ok(()));
        assert!(gather.is_complete());
        assert_eq!(out, [3, 4, 5, 6, 7, 8]);
    }
}
