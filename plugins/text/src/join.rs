//! `StringJoin`, `ReduceJoin`, `UnsortedSegmentJoin`, `StringStrip`, `StringSplitV2` and the older `StringSplit`.

use crate::text;
use tenon_sdk::{
    Code, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::{
        Dims, GeometryError, byte_size, element_count, join_dims, normalize_axis, row_major_strides,
    },
    growth,
    reg::Numerics,
    register_kernel,
};

struct Join {
    separator: Vec<u8>,
}

impl Kernel for Join {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Join { separator: c.attr::<&[u8]>("separator")?.to_vec() })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let mut dims: &[i64] = &[];
        let mut inputs = Vec::with_capacity(c.input_count());
        for at in 0..c.input_count() {
            let found = c.dims(at);
            if !dims.is_empty() && !found.is_empty() && dims != found {
                return Err(KernelError::invalid_argument(format!(
                    "inputs must be scalars or have one shape, found {dims:?} and {found:?}"
                )));
            }
            dims = if found.is_empty() { dims } else { found };
            inputs.push((c.strings(at)?, found.is_empty()));
        }
        c.write_texts(0, dims, |at, joined| {
            let parts = inputs.iter().map(|(texts, scalar)| texts[if *scalar { 0 } else { at }]);
            join(parts, &self.separator, joined)
        })
    }
}

register_kernel!("StringJoin" on "CPU": Join, numerics = Numerics::EXACT);

/// Appends the parts with the separator between them.
pub fn join<'a>(
    parts: impl Iterator<Item = &'a [u8]>,
    separator: &[u8],
    joined: &mut Vec<u8>,
) -> Result<(), KernelError> {
    for (number, part) in parts.enumerate() {
        if number > 0 {
            growth::append(joined, separator)?;
        }
        growth::append(joined, part)?;
    }
    Ok(())
}

struct ReduceJoin {
    keep_dims: bool,
    separator: Vec<u8>,
}

impl Kernel for ReduceJoin {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let separator = c.attr::<&[u8]>("separator")?.to_vec();
        Ok(ReduceJoin { keep_dims: c.attr("keep_dims")?, separator })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (x, dims, axes) = (c.strings(0)?, c.dims(0), c.integers(1)?);
        let output = join_dims(dims, &axes, self.keep_dims)?;
        let strides = row_major_strides(dims)?;
        let mut joined = Grid::default();
        for &axis in &axes {
            let axis = normalize_axis("reduction_indices", axis, dims.len())?;
            joined.push(dims[axis], strides[axis])?;
        }
        // The first axis varies fastest.
        joined.reverse();
        let mut kept = Grid::default();
        for axis in 0..dims.len() {
            let own = |&named: &i64| normalize_axis("", named, dims.len()) == Ok(axis);
            if !axes.iter().any(own) {
                kept.push(dims[axis], strides[axis])?;
            }
        }
        // Without outputs nothing is joined, although the number of parts may exceed memory.
        let count = element_count(&output)?;
        let places = if count == 0 { 0..0 } else { 0..element_count(&joined.sizes)? };
        let places = growth::collected(places.map(|number| joined.offset(number)))?;
        c.write_texts(0, &output, |number, text| {
            let first = kept.offset(number);
            join(places.iter().map(|place| x[first + place]), &self.separator, text)
        })
    }
}

register_kernel!("ReduceJoin" on "CPU": ReduceJoin, host_memory = &["reduction_indices"], numerics = Numerics::EXACT);

/// Some dimensions of a tensor, with their strides.
#[derive(Default)]
struct Grid {
    sizes: Dims,
    strides: Dims,
}

impl Grid {
    fn push(&mut self, size: i64, stride: i64) -> Result<(), KernelError> {
        self.sizes.push(size)?;
        Ok(self.strides.push(stride)?)
    }

    fn reverse(&mut self) {
        self.sizes.reverse();
        self.strides.reverse();
    }

    /// The offset of a point; in its index the last dimension varies fastest.
    fn offset(&self, mut number: usize) -> usize {
        let mut offset = 0;
        for (&size, &stride) in self.sizes.iter().zip(&*self.strides).rev() {
            offset += number % size as usize * stride as usize;
            number /= size as usize;
        }
        offset
    }
}

/// `UnsortedSegmentJoin`.
struct SegmentJoin {
    separator: Vec<u8>,
}

impl Kernel for SegmentJoin {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(SegmentJoin { separator: growth::copied(c.attr::<&[u8]>("separator")?)? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (dims, of_ids) = (c.dims(0), c.dims(1));
        let count = c.integer(2, "num_segments")?;
        if count < 0 {
            let (what, found) = ("num_segments", count);
            return Err(GeometryError::TooSmall { what, least: 0, found }.into());
        }
        if of_ids.is_empty() || !dims.starts_with(of_ids) {
            let code =
                if of_ids.len() > dims.len() { Code::OUT_OF_RANGE } else { Code::INVALID_ARGUMENT };
            let message = format!(
                "segment_ids must have the first dimensions of inputs, one at least, found shape {of_ids:?} for inputs \
                 of shape {dims:?}"
            );
            return Err(KernelError::new(code, message));
        }
        let ids = c.integers(1)?;
        if let Some(found) = ids.iter().find(|id| !(0..count).contains(*id)) {
            return Err(KernelError::invalid_argument(format!(
                "segment_ids must lie in [0, {count}), as num_segments says, found {found}"
            )));
        }
        let mut rows = growth::collected(0..ids.len())?;
        rows.sort_by_key(|&row| ids[row]);
        let mut output = Dims::from_slice(&[count])?;
        dims[of_ids.len()..].iter().try_for_each(|&size| output.push(size))?;
        byte_size(&output, 24)?;
        let (texts, width) = (c.strings(0)?, element_count(&output[1..])?);
        c.write_texts(0, &output, |at, joined| {
            let (segment, column) = ((at / width) as i64, at % width);
            let first = rows.partition_point(|&row| ids[row] < segment);
            let own = rows[first..].iter().take_while(|&&row| ids[row] == segment);
            for &row in own {
                // No separator follows what is empty so far.
                if !joined.is_empty() {
                    growth::append(joined, &self.separator)?;
                }
                growth::append(joined, texts[row * width + column])?;
            }
            Ok(())
        })
    }
}

register_kernel!("UnsortedSegmentJoin" on "CPU": SegmentJoin, host_memory = &["num_segments"],
    numerics = Numerics::EXACT);

/// Number of strings between checks whether the step still needs the result.
const LOOK: usize = 1024;

/// `StringSplitV2`.
struct Split {
    /// Most splits; `None` for no limit.
    most: Option<usize>,
}

impl Kernel for Split {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Split { most: crate::count_attr(c, "maxsplit")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let separator = text(c, 1, "sep")?;
        parts(c, |text, parts| self.split(text, separator, parts))
    }
}

/// Writes the parts of each string as a sparse matrix; `split` appends those of one.
fn parts<'c>(
    c: &ComputeContext<'c>,
    split: impl Fn(&'c [u8], &mut Vec<&'c [u8]>) -> Result<(), KernelError>,
) -> Result<(), KernelError> {
    let &[rows] = c.dims(0) else {
        return Err(KernelError::invalid_argument(format!(
            "input must be a vector, found shape {:?}",
            c.dims(0)
        )));
    };
    let (mut parts, mut places, mut widest) = (Vec::new(), Vec::new(), 0);
    for (row, text) in c.strings(0)?.into_iter().enumerate() {
        let before = parts.len();
        if row % LOOK == 0 {
            c.watch().check()?;
        }
        split(text, &mut parts)?;
        widest = widest.max(parts.len() - before);
        growth::reserve(&mut places, parts.len() - before)?;
        places.extend((0..parts.len() - before).map(|column| [row as i64, column as i64]));
    }
    let count = parts.len() as i64;
    let indices = c.output::<i64>(0, &[count, 2])?.data;
    indices.copy_from_slice(places.as_flattened());
    c.set_strings(1, &[count], parts.into_iter())?;
    c.output::<i64>(2, &[2])?.data.copy_from_slice(&[rows, widest as i64]);
    Ok(())
}

/// `StringSplit`: at each byte that the delimiter has; without one, every byte is a part.
struct SplitAny {
    skips_empty: bool,
}

impl Kernel for SplitAny {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(SplitAny { skips_empty: c.attr("skip_empty")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let delimiter = text(c, 1, "delimiter")?;
        parts(c, |text, parts| {
            if delimiter.is_empty() {
                return text.chunks(1).try_for_each(|byte| growth::push(parts, byte));
            }
            // A text without bytes has no part, whatever is skipped.
            let all = (!text.is_empty()).then(|| text.split(|byte| delimiter.contains(byte)));
            let mut all = all.into_iter().flatten();
            all.try_for_each(|part| match part.is_empty() && self.skips_empty {
                true => Ok(()),
                false => growth::push(parts, part),
            })
        })
    }
}

/// Each string without white space at its ends.
fn strip(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let texts = c.strings(0)?.into_iter().map(|text| {
        let text = trimmed(text);
        &text[..text.iter().rposition(|byte| !is_space(*byte)).map_or(0, |last| last + 1)]
    });
    c.set_strings(0, c.dims(0), texts)
}

impl Split {
    fn split<'a>(
        &self,
        text: &'a [u8],
        separator: &[u8],
        parts: &mut Vec<&'a [u8]>,
    ) -> Result<(), KernelError> {
        let before = parts.len();
        let done = |parts: &[&[u8]]| self.most.is_some_and(|most| parts.len() - before >= most);
        let mut rest = text;
        if separator.is_empty() {
            if done(parts) {
                return growth::push(parts, text);
            }
            rest = trimmed(rest);
            while !rest.is_empty() {
                let end = rest.iter().position(|byte| is_space(*byte)).unwrap_or(rest.len());
                growth::push(parts, &rest[..end])?;
                rest = trimmed(&rest[end..]);
                if done(parts) {
                    return growth::push(parts, rest);
                }
            }
            return Ok(());
        }
        while !done(parts) {
            let found = rest.windows(separator.len()).position(|part| part == separator);
            let Some(at) = found else { break };
            growth::push(parts, &rest[..at])?;
            rest = &rest[at + separator.len()..];
        }
        growth::push(parts, rest)
    }
}

fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == b'\x0b'
}

/// The text without leading white space.
fn trimmed(text: &[u8]) -> &[u8] {
    &text[text.iter().position(|byte| !is_space(*byte)).unwrap_or(text.len())..]
}

register_kernel!("StringStrip" on "CPU": fn strip, numerics = Numerics::EXACT);
register_kernel!("StringSplit" on "CPU": SplitAny, host_memory = &["delimiter"], numerics = Numerics::EXACT);
register_kernel!("StringSplitV2" on "CPU": Split, host_memory = &["sep"], numerics = Numerics::EXACT);

#[cfg(test)]
mod tests {
    use super::Split;

    #[test]
    fn splitting_ends_when_it_was_done_often_enough() {
        let split = |text: &'static str, separator: &str, most| {
            let mut parts = Vec::new();
            Split { most }.split(text.as_bytes(), separator.as_bytes(), &mut parts).unwrap();
            parts.into_iter().map(crate::shown).collect::<Vec<_>>()
        };
        assert_eq!(split(" a b  c", "", None), ["a", "b", "c"]);
        assert_eq!(split(" a b  c ", "", Some(1)), ["a", "b  c "]);
        assert_eq!(split(" x ", "", Some(1)), ["x", ""]);
        assert_eq!(split(" x ", "", Some(0)), [" x "]);
        assert_eq!(split("", "", None), [""; 0]);
        assert_eq!(split("a,b,", ",", None), ["a", "b", ""]);
        assert_eq!(split("a,b,", ",", Some(1)), ["a", "b,"]);
        assert_eq!(split("aaa", "aa", None), ["", "a"]);
    }
}
