//! `Unique` and its variants, and `ListDiff`.
//!
//! Values are compared as numbers: both zeros are equal, and NaN is not equal to anything.

use super::{
    REAL, Word, by_size, copy, element_size,
    moves::{Item, Move, check_vector, make, write_integers},
    words,
};
use std::collections::HashMap;
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

fn keys_of_words<'a, W: Word + Into<u128>>(
    c: &ComputeContext<'a>,
    input: usize,
    float: Option<(u64, u64)>,
) -> Result<Vec<Option<Key<'a>>>, KernelError> {
    let key = |&word: &W| {
        let bits = word.into() as u64;
        let Some((sign, exponent)) = float else { return Some(Key::Bits(bits)) };
        match bits & !sign {
            0 => Some(Key::Bits(0)),
            size if size > exponent => None,
            _ => Some(Key::Bits(bits)),
        }
    };
    growth::collected(words::<W>(c.input_bytes(input)?)?.iter().map(key))
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
    fn of<K: std::hash::Hash + Eq>(
        c: &ComputeContext<'_>,
        keys: impl ExactSizeIterator<Item = Result<Option<K>, KernelError>>,
    ) -> Result<Groups, KernelError> {
        let which = growth::with_room(keys.len())?;
        let mut groups = Groups { firsts: Vec::new(), which, counts: Vec::new() };
        let mut known = HashMap::new();
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
    let (dims, keys) = (c.dims(0), keys(c, 0)?);
    if dims.len() == 1 {
        return Groups::of(c, keys.into_iter().map(Ok));
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
    Groups::of(c, (0..size).map(slice))
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
