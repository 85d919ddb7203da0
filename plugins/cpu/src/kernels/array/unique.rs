//! `Unique` and its variants, and `ListDiff`.
//!
//! Values are compared as numbers: both zeros are equal, and NaN is not equal to anything.

use super::{
    REAL, Word, by_size, copy, element_size,
    moves::{Item, Move, check_vector, make, write_integers},
    words,
};
use std::{
    collections::{HashMap, hash_map::RandomState},
    hash::{BuildHasher, Hash, Hasher},
};
use tenon_sdk::{
    DType, KernelError,
    author::ComputeContext,
    geometry::{Dims, element_count, normalize_axis},
    growth,
    reg::{Numerics, join_types},
    register_kernel,
};

/// The key of a value, which equal values share.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key<'a> {
    Bits(u64),
    Text(&'a [u8]),
}

/// The keys of an input's elements; `None` for a value that is not equal to anything.
fn keys<'a>(c: &ComputeContext<'a>, input: usize) -> Result<Vec<Option<Key<'a>>>, KernelError> {
    let dtype = c.slot(input)?.dtype;
    if dtype == DType::STRING {
        return growth::collected(c.strings(input)?.into_iter().map(|text| Some(Key::Text(text))));
    }
    by_size!(element_size(c, input)?, keys_of_words(c, input, float_of(dtype)))
}

/// The sign bit and the exponent bits of a float type.
fn float_of(dtype: DType) -> Option<(u64, u64)> {
    match dtype {
        DType::HALF => Some((1 << 15, 0x7c00)),
        DType::BFLOAT16 => Some((1 << 15, 0x7f80)),
        DType::FLOAT => Some((1 << 31, 0x7f80_0000)),
        DType::DOUBLE => Some((1 << 63, 0x7ff0_0000_0000_0000)),
        _ => None,
    }
}

/// The bits that equal values share; `None` for NaN.
#[inline(always)]
fn shared_bits(bits: u64, float: Option<(u64, u64)>) -> Option<u64> {
    let Some((sign, exponent)) = float else { return Some(bits) };
    match bits & !sign {
        0 => Some(0),
        size if size > exponent => None,
        _ => Some(bits),
    }
}

fn keys_of_words<'a, W: Word + Into<u128>>(
    c: &ComputeContext<'a>,
    input: usize,
    float: Option<(u64, u64)>,
) -> Result<Vec<Option<Key<'a>>>, KernelError> {
    let key = |&word: &W| shared_bits(word.into() as u64, float).map(Key::Bits);
    growth::collected(words::<W>(c.input_bytes(input)?)?.iter().map(key))
}

/// Groups the elements of a vector of numbers.
fn groups_of_words<W: Word + Into<u128>>(
    c: &ComputeContext<'_>,
    float: Option<(u64, u64)>,
) -> Result<Groups, KernelError> {
    let words = words::<W>(c.input_bytes(0)?)?;
    let key = |&word: &W| Ok(shared_bits(word.into() as u64, float));
    Groups::of(c, words.iter().map(key), Secret::default())
}

/// Hashes of numbers, by products with two secret numbers. Who does not know them cannot make
/// numbers that collide.
#[derive(Clone, Copy)]
struct Secret {
    added: u64,
    factor: u64,
}

impl Default for Secret {
    fn default() -> Secret {
        // The keys of a map's own hashes come from the system.
        let hashes = RandomState::new();
        Secret { added: hashes.hash_one(0), factor: hashes.hash_one(1) | 1 }
    }
}

impl BuildHasher for Secret {
    type Hasher = Folded;
    fn build_hasher(&self) -> Folded {
        Folded { secret: *self, hash: 0 }
    }
}

/// A hash of a number.
struct Folded {
    secret: Secret,
    hash: u64,
}

impl Hasher for Folded {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    #[inline(always)]
    fn write_u64(&mut self, number: u64) {
        let Secret { added, factor } = self.secret;
        self.hash = folded((self.hash ^ number).wrapping_add(added), factor);
    }

    #[inline(always)]
    fn finish(&self) -> u64 {
        folded(self.hash, self.secret.added | 1)
    }
}

/// The halves of a product, combined.
#[inline(always)]
fn folded(x: u64, y: u64) -> u64 {
    let product = u128::from(x) * u128::from(y);
    product as u64 ^ (product >> 64) as u64
}

/// The first position of each distinct value, the value of each element, and the number of elements
/// of each value.
struct Groups {
    firsts: Vec<usize>,
    which: Vec<i64>,
    counts: Vec<i64>,
}

/// Number of elements between checks whether the step still needs the result.
const LOOK: usize = 1 << 14;

impl Groups {
    fn of<K: Hash + Eq, S: BuildHasher>(
        c: &ComputeContext<'_>,
        keys: impl ExactSizeIterator<Item = Result<Option<K>, KernelError>>,
        hashes: S,
    ) -> Result<Groups, KernelError> {
        let which = growth::with_room(keys.len())?;
        let mut groups = Groups { firsts: Vec::new(), which, counts: Vec::new() };
        let mut known = HashMap::with_hasher(hashes);
        for (at, key) in keys.enumerate() {
            if at.is_multiple_of(LOOK) {
                c.watch().check()?;
            }
            let next = groups.firsts.len();
            growth::reserve_entries(&mut known, 1)?;
            let group = key?.map_or(next, |key| *known.entry(key).or_insert(next));
            if group == next {
                growth::push(&mut groups.firsts, at)?;
                growth::push(&mut groups.counts, 0)?;
            }
            groups.counts[group] += 1;
            groups.which.push(group as i64);
        }
        Ok(groups)
    }
}

/// Slices along an axis, by position: `outer` times, of `size` pieces of `inner` elements.
struct Chosen<'a> {
    places: &'a [usize],
    size: usize,
    inner: usize,
}

impl Move for Chosen<'_> {
    fn run<T: Item>(
        &self,
        _: &ComputeContext<'_>,
        x: &[&[T]],
        y: &mut [T],
    ) -> Result<(), KernelError> {
        if y.is_empty() {
            return Ok(());
        }
        for (at, y) in y.chunks_exact_mut(self.inner).enumerate() {
            let (outer, place) = (at / self.places.len(), self.places[at % self.places.len()]);
            copy(&x[0][(outer * self.size + place) * self.inner..][..self.inner], y);
        }
        Ok(())
    }
}

/// The axis of a call that has one.
fn axis_of(c: &ComputeContext<'_>) -> Result<usize, KernelError> {
    check_vector(c, 1, "axis")?;
    match c.integers(1)?[..] {
        [] => vector_axis(c),
        [axis] => Ok(normalize_axis("axis", axis, c.dims(0).len())?),
        ref axes => {
            let message = format!("axis must hold at most one axis, found {}", axes.len());
            Err(KernelError::invalid_argument(message))
        }
    }
}

fn vector_axis(c: &ComputeContext<'_>) -> Result<usize, KernelError> {
    check_vector(c, 0, "x").map(|()| 0)
}

/// Groups the slices along an axis.
fn groups(c: &ComputeContext<'_>, axis: usize) -> Result<Groups, KernelError> {
    let (dims, dtype) = (c.dims(0), c.slot(0)?.dtype);
    if dims.len() == 1 && dtype != DType::STRING {
        return by_size!(element_size(c, 0)?, groups_of_words(c, float_of(dtype)));
    }
    let keys = keys(c, 0)?;
    if dims.len() == 1 {
        return Groups::of(c, keys.into_iter().map(Ok), RandomState::new());
    }
    let (outer, size) = (element_count(&dims[..axis])?, dims[axis] as usize);
    let inner = element_count(&dims[axis + 1..])?;
    let slice = |at: usize| {
        let pieces = (0..outer).map(|outer| (outer * size + at) * inner);
        let found = pieces.flat_map(|first| &keys[first..first + inner]).copied();
        let mut slice = growth::with_room(outer.saturating_mul(inner))?;
        for key in found {
            let Some(key) = key else { return Ok(None) };
            slice.push(key);
        }
        Ok(Some(slice))
    };
    Groups::of(c, (0..size).map(slice), RandomState::new())
}

/// Writes the outputs for slices without elements, which are all equal. There may be any number of
/// them, so nothing is allocated per slice before the outputs are.
fn write_empty(c: &ComputeContext<'_>, axis: usize) -> Result<(), KernelError> {
    let dims = c.dims(0);
    let mut output = Dims::from_slice(dims)?;
    output[axis] = 1;
    let how = Chosen { places: &[0], size: dims[axis] as usize, inner: 0 };
    make(c, c.slot(0)?.dtype, &[0], (0, &output), &how)?;
    write_integers(c, 1, &[dims[axis]], std::iter::repeat_n(0, dims[axis] as usize))?;
    match c.output_count() {
        3 => write_integers(c, 2, &[1], std::iter::once(dims[axis])),
        _ => Ok(()),
    }
}

fn write(c: &ComputeContext<'_>, axis: usize) -> Result<(), KernelError> {
    if c.dims(0)[axis] > 0 && c.dims(0).contains(&0) {
        return write_empty(c, axis);
    }
    let (dims, groups) = (c.dims(0), groups(c, axis)?);
    let count = groups.firsts.len() as i64;
    let mut output = Dims::from_slice(dims)?;
    output[axis] = count;
    let inner = element_count(&dims[axis + 1..])?;
    let how = Chosen { places: &groups.firsts, size: dims[axis] as usize, inner };
    make(c, c.slot(0)?.dtype, &[0], (0, &output), &how)?;
    write_integers(c, 1, &[dims[axis]], groups.which.into_iter())?;
    match c.output_count() {
        3 => write_integers(c, 2, &[count], groups.counts.into_iter()),
        _ => Ok(()),
    }
}

fn unique(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    write(c, vector_axis(c)?)
}

fn unique_along(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    write(c, axis_of(c)?)
}

fn list_diff(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    check_vector(c, 0, "x")?;
    check_vector(c, 1, "y")?;
    let mut left_out = HashMap::new();
    for key in keys(c, 1)?.into_iter().flatten() {
        growth::reserve_entries(&mut left_out, 1)?;
        left_out.insert(key, ());
    }
    c.watch().check()?;
    let kept = |key: &Option<Key<'_>>| key.is_none_or(|key| !left_out.contains_key(&key));
    let keys = keys(c, 0)?;
    let places = growth::collected((0..keys.len()).filter(|&at| kept(&keys[at])))?;
    let output = [places.len() as i64];
    let how = Chosen { places: &places, size: keys.len(), inner: 1 };
    make(c, c.slot(0)?.dtype, &[0], (0, &output), &how)?;
    write_integers(c, 1, &output, places.iter().map(|&at| at as i64))
}

/// Types whose distinct values can be found.
const FOUND: &[DType] = &join_types::<{ REAL.len() + 1 }>(REAL, &[DType::STRING]);
/// The types of [`FOUND`] without bool, its first.
const LISTED: &[DType] = FOUND.split_at(1).1;

register_kernel!("Unique" on "CPU": fn unique, types = ("T", FOUND), numerics = Numerics::EXACT);
register_kernel!("UniqueWithCounts" on "CPU": fn unique, types = ("T", FOUND),
    numerics = Numerics::EXACT);
register_kernel!("UniqueV2" on "CPU": fn unique_along, types = ("T", FOUND),
    host_memory = &["axis"], numerics = Numerics::EXACT);
register_kernel!("UniqueWithCountsV2" on "CPU": fn unique_along, types = ("T", FOUND),
    host_memory = &["axis"], numerics = Numerics::EXACT);
register_kernel!("ListDiff" on "CPU": fn list_diff, types = ("T", LISTED),
    numerics = Numerics::EXACT);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_share_bits_as_they_are_equal() {
        let float = float_of(DType::FLOAT);
        let bits = |x: f32| shared_bits(x.to_bits().into(), float);
        assert_eq!(bits(0.0), bits(-0.0));
        assert_ne!(bits(1.0), bits(-1.0));
        assert!(bits(f32::NAN).is_none() && bits(-f32::NAN).is_none());
        assert!(bits(f32::INFINITY).is_some() && bits(f32::INFINITY) != bits(f32::NEG_INFINITY));
        assert_eq!(shared_bits(7, None), Some(7));
    }

    #[test]
    fn hashes_of_regular_numbers_spread_over_low_and_high_bits() {
        let secret = Secret { added: 0x243f_6a88_85a3_08d3, factor: 0x1319_8a2e_0370_7345 };
        for step in [1u64, 1 << 20, 1 << 32, 1 << 52, 0x10001] {
            let mut counts = [[0; 64]; 2];
            for i in 0..6400u64 {
                let hash = secret.hash_one(i.wrapping_mul(step));
                counts[0][(hash % 64) as usize] += 1;
                counts[1][(hash >> 58) as usize] += 1;
            }
            // Equal shares are 100 each.
            let is_even = counts.iter().flatten().all(|count| (40..200).contains(count));
            assert!(is_even, "{step:#x}: {counts:?}");
        }
        assert_ne!(Secret::default().hash_one(1), Secret::default().hash_one(1));
    }
}
