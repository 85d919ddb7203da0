//! `ArgMax`, and `ArgMin`, which is the same search in the opposite order.

use crate::{
    arch::vectorised,
    side,
    split::{Parts, for_units},
};
use half::{bf16, f16};
use std::marker::PhantomData;
use tenon_reference::{LowestFinite, reduction::IndexElement};
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::ArgGeometry,
    reg::Numerics,
    register_kernel,
};

/// The number of columns that are searched side by side.
const COLUMNS: usize = 64;
/// The number of elements that are searched together for the position of the largest.
const BLOCK: usize = 32;
/// The greatest length of rows that are searched side by side.
const SHORT: usize = 64;
/// The number of rows that are searched side by side.
const ROWS: usize = 8;
/// The number of rows whose indices are written together.
const WRITTEN: usize = 256;

/// A type of elements with a key, which compares in one instruction and in the order of the
/// elements, NaN being the lowest.
trait Key: LowestFinite {
    type Key: Copy + PartialOrd + Send + Sync;
    /// The key of the lowest finite value.
    const LOWEST: Self::Key;
    fn key(self) -> Self::Key;
    /// The key in the opposite order, with NaN still the lowest; `LOWEST` is the opposite key of
    /// the highest finite value.
    fn opposite(self) -> Self::Key;
}

/// The end of the order that is searched for.
trait End: 'static {
    fn key<T: Key>(x: T) -> T::Key;
}

struct Greatest;
struct Least;

impl End for Greatest {
    #[inline(always)]
    fn key<T: Key>(x: T) -> T::Key {
        x.key()
    }
}

impl End for Least {
    #[inline(always)]
    fn key<T: Key>(x: T) -> T::Key {
        x.opposite()
    }
}

macro_rules! own_keys {
    (|$x:ident| $opposite:expr; $($ty:ty),*) => {$(
        impl Key for $ty {
            type Key = $ty;
            const LOWEST: $ty = <$ty as LowestFinite>::LOWEST_FINITE;
            #[inline(always)]
            fn key(self) -> $ty {
                self
            }
            #[inline(always)]
            fn opposite(self) -> $ty {
                let $x = self;
                $opposite
            }
        }
    )*};
}

own_keys!(|x| !x; bool, i8, i16, i32, i64, u8, u16, u32, u64);
own_keys!(|x| -x; f32, f64);

macro_rules! keys_of_bits {
    ($($ty:ty: $infinity:literal;)*) => {$(
        impl Key for $ty {
            type Key = i16;
            const LOWEST: i16 = 1 - $infinity;
            #[inline(always)]
            fn key(self) -> i16 {
                let bits = self.to_bits() as i16;
                let magnitude = bits & i16::MAX;
                let key = if bits < 0 { -magnitude } else { magnitude };
                if magnitude > $infinity { i16::MIN } else { key }
            }
            #[inline(always)]
            fn opposite(self) -> i16 {
                // The key of NaN has no opposite, and stays.
                self.key().wrapping_neg()
            }
        }
    )*};
}

keys_of_bits! {
    f16: 0x7c00;
    bf16: 0x7f80;
}

#[inline(always)]
fn larger<K: Copy + PartialOrd>(best: K, x: K) -> K {
    if x > best { x } else { best }
}

/// The index of the first of the largest elements of a row; NaN is never the largest. 0 where
/// nothing is above the lowest finite value.
///
/// Two passes, both without branches on the elements: the largest value, then its place.
#[inline(always)]
fn row<T: Key, E: End>(x: &[T]) -> usize {
    let best = side::fold(x, T::LOWEST, |best, x| larger(best, E::key(x)), larger);
    let is_best = |x: &T| E::key(*x) == best;
    let block = x.chunks(BLOCK).position(|x| x.iter().fold(false, |any, x| any | is_best(x)));
    let first = block.unwrap_or(0) * BLOCK;
    let place = x[first..].iter().position(is_best).unwrap_or(0);
    if best > T::LOWEST { first + place } else { 0 }
}

/// [`row`] for each of [`ROWS`] rows of `len` elements.
#[inline(always)]
fn short_rows<T: Key, E: End>(x: &[T], len: usize, y: &mut [u32; ROWS]) {
    let (mut best, mut index) = ([T::LOWEST; ROWS], [0; ROWS]);
    let rows: [&[T]; ROWS] = std::array::from_fn(|r| &x[r * len..][..len]);
    for i in 0..len {
        for ((row, best), index) in rows.iter().zip(&mut best).zip(&mut index) {
            let key = E::key(row[i]);
            let above = key > *best;
            *best = if above { key } else { *best };
            *index = if above { i as u32 } else { *index };
        }
    }
    *y = index;
}

vectorised! {
    /// [`row`] for each row of `len` elements.
    fn rows[T: Key, E: End](x: &[T], len: usize, indices: &mut [u32]) {
        let short = if len <= SHORT { indices.len() / ROWS * ROWS } else { 0 };
        let (several, single) = indices.split_at_mut(short);
        let (head, tail) = x.split_at(short * len);
        for (x, y) in head.chunks_exact(ROWS * len).zip(several.as_chunks_mut::<ROWS>().0) {
            short_rows::<T, E>(x, len, y);
        }
        for (x, y) in tail.chunks_exact(len).zip(single) {
            *y = row::<T, E>(x) as u32;
        }
    }
}

vectorised! {
    /// [`row`] for each of at most [`COLUMNS`] columns of `len` rows that are `stride` apart.
    fn columns[T: Key, E: End](x: &[T], len: usize, stride: usize, indices: &mut [u32]) {
        let mut best = [T::LOWEST; COLUMNS];
        indices.fill(0);
        for i in 0..len {
            let row = &x[i * stride..i * stride + indices.len()];
            for ((best, index), &x) in best.iter_mut().zip(indices.iter_mut()).zip(row) {
                let key = E::key(x);
                let above = key > *best;
                *best = if above { key } else { *best };
                *index = if above { i as u32 } else { *index };
            }
        }
    }
}

/// Writes indices in the type of the output.
fn write<I: IndexElement>(indices: &[u32], y: &mut [I]) {
    for (y, &index) in y.iter_mut().zip(indices) {
        *y = I::from_index(index as usize);
    }
}

/// Writes the indices of a geometry with `outer` of `range`. The searches write 32 bits, so that one of each serves all
/// types of the output.
fn search<T: Key, E: End, I: IndexElement>(
    g: &ArgGeometry,
    range: std::ops::Range<usize>,
    x: &[T],
    y: &mut [I],
) {
    let size = g.len * g.inner;
    if g.inner == 1 {
        let x = &x[range.start * size..range.end * size];
        for (x, y) in x.chunks(WRITTEN * size).zip(y.chunks_mut(WRITTEN)) {
            let mut indices = [0; WRITTEN];
            let indices = &mut indices[..y.len()];
            rows::<T, E>(x, size, indices);
            write(indices, y);
        }
        return;
    }
    for (outer, y) in range.zip(y.chunks_exact_mut(g.inner)) {
        let x = &x[outer * size..][..size];
        for (block, y) in y.chunks_mut(COLUMNS).enumerate() {
            let mut indices = [0; COLUMNS];
            let indices = &mut indices[..y.len()];
            columns::<T, E>(&x[block * COLUMNS..], g.len, g.inner, indices);
            write(indices, y);
        }
    }
}

struct Arg<T, E> {
    output: DType,
    kind: PhantomData<fn(T, E)>,
}

impl<T: Key, E: End> Arg<T, E> {
    fn write<I: IndexElement>(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let x = c.input::<T>(0)?;
        let g = ArgGeometry::new(x.dims, c.integer(1, "dimension")?)?;
        if u32::try_from(g.len).is_err() {
            return Err(KernelError::invalid_argument(format!(
                "the dimension to search has {} elements, at most {} are supported",
                g.len,
                u32::MAX
            )));
        }
        let y = c.output::<I>(0, &g.output)?.data;
        if y.is_empty() {
            return Ok(());
        }
        let y = Parts::new(y);
        for_units(c, g.outer, 0.3 * (g.len * g.inner) as f64 + 5.0, |range| {
            // SAFETY: ranges of one split are disjoint.
            let y = unsafe { y.part(range.start * g.inner..range.end * g.inner) };
            search::<T, E, I>(&g, range, x.data, y);
        })
    }
}

impl<T: Key, E: End> Kernel for Arg<T, E> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Arg { output: c.attr("output_type")?, kind: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        match self.output {
            DType::INT16 => self.write::<i16>(c),
            DType::UINT16 => self.write::<u16>(c),
            DType::INT32 => self.write::<i32>(c),
            _ => self.write::<i64>(c),
        }
    }
}

type ArgMax<T> = Arg<T, Greatest>;
type ArgMin<T> = Arg<T, Least>;

register_kernel!("ArgMax" on "CPU": ArgMax<T>
    for "T" in [bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    host_memory = &["dimension"], numerics = Numerics::EXACT);

register_kernel!("ArgMin" on "CPU": ArgMin<T>
    for "T" in [bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    host_memory = &["dimension"], numerics = Numerics::EXACT);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{lane::Compute, testing::values};
    use tenon_reference::reduction::arg_max;

    fn check<T: Compute + Key>() {
        for (dims, axis) in [
            (&[7i64, 150][..], 1),
            (&[33, 100], 0),
            (&[4, 6, 70], 1),
            (&[5], 0),
            (&[21, 4], 1),
            (&[9, 64], 1),
        ] {
            let g = ArgGeometry::new(dims, axis).unwrap();
            let mut x = values::<T>(dims.iter().product::<i64>() as usize, 9);
            x[2] = T::from_f64(f64::NAN);
            let len = g.outer * g.inner;
            let (mut expected, mut found) = (vec![0i64; len], vec![-1i64; len]);
            arg_max(&g, &x, &mut expected);
            search::<T, Greatest, i64>(&g, 0..g.outer, &x, &mut found);
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn indices_are_those_of_the_reference() {
        check::<f32>();
        check::<f16>();
        check::<bf16>();
        check::<u8>();
        check::<i64>();
        assert_eq!(row::<_, Greatest>(&[f32::NAN, f32::NEG_INFINITY]), 0);
        assert_eq!(row::<_, Greatest>(&[f16::NAN, f16::NEG_INFINITY, f16::MIN]), 0);
    }

    #[test]
    fn keys_of_narrow_floats_are_in_the_order_of_the_values() {
        let all: Vec<f16> = (0..=u16::MAX).step_by(7).map(f16::from_bits).collect();
        for &x in &all {
            for y in
                [f16::NAN, f16::MIN, -f16::ONE, -f16::ZERO, f16::ZERO, f16::from_bits(1), f16::MAX]
            {
                assert_eq!(x.key() == y.key(), x == y || x.is_nan() && y.is_nan(), "{x} {y}");
                assert_eq!(x.key() > y.key(), x > y || y.is_nan() && !x.is_nan(), "{x} {y}");
            }
        }
        assert_eq!(row::<_, Least>(&[f16::NAN, f16::INFINITY, f16::ONE, -f16::ONE, -f16::ONE]), 3);
        assert_eq!(row::<_, Least>(&[f32::NAN, f32::INFINITY, f32::MAX]), 0);
        assert_eq!((row::<_, Least>(&[true, false]), row::<_, Least>(&[3u8, 255, 0, 0])), (1, 2));
        assert_eq!((f16::LOWEST, bf16::LOWEST), (f16::MIN.key(), bf16::MIN.key()));
    }
}
