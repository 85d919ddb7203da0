//! Parts of tensors: how texts and messages name them, and which elements they are.

use crate::{
    BundleError,
    entry::{MOST_DIMS, element_count},
    messages::TensorSliceProto,
};
use std::fmt;

/// A part of one dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Extent {
    /// The first element.
    pub start: i64,
    /// The number of elements; `None` for the whole dimension.
    pub length: Option<i64>,
}

/// The whole of a dimension.
pub const WHOLE: Extent = Extent { start: 0, length: None };

/// A part of a tensor: one extent for each dimension.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TensorSlice(pub Vec<Extent>);

/// A part of a tensor in numbers: start and length in each dimension.
pub(crate) type Region = Vec<(u64, u64)>;

impl TensorSlice {
    /// The whole of a tensor with this many dimensions.
    pub fn whole(rank: usize) -> TensorSlice {
        TensorSlice(vec![WHOLE; rank])
    }

    /// Whether each dimension is whole by its form.
    pub fn is_whole(&self) -> bool {
        self.0.iter().all(|extent| extent.length.is_none())
    }

    /// Whether it has all elements of a tensor.
    pub fn covers(&self, dims: &[i64]) -> bool {
        self.is_whole() || self.dims(dims).is_some_and(|found| found == dims)
    }

    /// The shape of the part; `None` if it is not within the tensor.
    pub fn dims(&self, dims: &[i64]) -> Option<Vec<i64>> {
        Some(self.region(dims)?.iter().map(|&(_, length)| length as i64).collect())
    }

    /// Start and length in each dimension; `None` if the part is not within the tensor.
    pub(crate) fn region(&self, dims: &[i64]) -> Option<Region> {
        if self.0.len() != dims.len() {
            return None;
        }
        let one = |(extent, &dim): (&Extent, &i64)| {
            let length = extent.length.unwrap_or(dim);
            let end = extent.start.checked_add(length)?;
            let is_within = extent.start >= 0 && length >= 0 && end <= dim;
            is_within.then_some((extent.start as u64, length as u64))
        };
        self.0.iter().zip(dims).map(one).collect()
    }

    pub(crate) fn to_proto(&self) -> TensorSliceProto {
        TensorSliceProto::of(&self.0)
    }
}

/// As in `shape_and_slice`: `0,2:-`.
impl fmt::Display for TensorSlice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, extent) in self.0.iter().enumerate() {
            let gap = if at == 0 { "" } else { ":" };
            match extent.length {
                None => write!(f, "{gap}-")?,
                Some(length) => write!(f, "{gap}{},{length}", extent.start)?,
            }
        }
        Ok(())
    }
}

/// A part of a tensor whose whole shape is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The shape of the whole tensor.
    pub dims: Vec<i64>,
    /// The part.
    pub slice: TensorSlice,
    /// The shape of the part.
    pub part: Vec<i64>,
}

impl Part {
    /// Reads an element of `shape_and_slices`: the sizes of all dimensions and, after a blank, the extents, such as
    /// `4 3 0,2:-`. An empty text is the whole tensor: `None`.
    ///
    /// # Errors
    /// The text does not have this form, or an extent is not within its dimension.
    pub fn parse(text: &[u8]) -> Result<Option<Part>, BundleError> {
        if text.is_empty() {
            return Ok(None);
        }
        let shown = String::from_utf8_lossy(text).into_owned();
        let wrong = |what: &str| BundleError::Argument(format!("{what}: {shown}"));
        let words: Vec<&str> = shown.split(' ').collect();
        let [sizes @ .., extents] = &words[..] else { return Err(wrong("expected a shape")) };
        if sizes.is_empty() {
            return Err(wrong("Need least two elements in shape_and_slice specification"));
        }
        let size = |text: &&str| {
            let size = text.parse().ok().filter(|&size: &i64| size >= 0);
            size.ok_or_else(|| wrong("Non numerical dimension in shape_and_slice"))
        };
        let dims = sizes.iter().map(size).collect::<Result<Vec<_>, _>>()?;
        if dims.len() > MOST_DIMS {
            return Err(BundleError::Argument(format!(
                "expected at most {MOST_DIMS} dimensions in shape_and_slice, found {}",
                dims.len()
            )));
        }
        if element_count(&dims).is_none() {
            return Err(wrong(
                "expected a shape of less than 2^63 elements in shape_and_slice, found",
            ));
        }
        let slice =
            extents.split(':').map(|text| extent(text, &shown)).collect::<Result<_, _>>()?;
        let slice = TensorSlice(slice);
        if slice.0.len() != dims.len() {
            return Err(wrong("expected an extent for each dimension of shape_and_slice, found"));
        }
        match slice.dims(&dims) {
            Some(part) => Ok(Some(Part { dims, slice, part })),
            None => Err(BundleError::Argument(format!(
                "Extent out of bounds: expected extents within shape {dims:?}, found slice {slice}"
            ))),
        }
    }
}

fn extent(text: &str, whole: &str) -> Result<Extent, BundleError> {
    if text == "-" {
        return Ok(WHOLE);
    }
    let numbers = text.split_once(',').map(|(start, length)| (start.parse(), length.parse()));
    match numbers {
        Some((Ok(start), Ok(length))) if start >= 0 && length > 0 => {
            Ok(Extent { start, length: Some(length) })
        }
        Some((Ok(start), Ok(length))) => Err(BundleError::Argument(format!(
            "Expected non-negative start and positive length but got start = {start}, length = {length}: string = \
             {whole}"
        ))),
        _ => Err(BundleError::Argument(format!(
            "Expected a pair of numbers or '-' but got '{text}': string = {whole}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_as_tensorflow_reads_them() {
        let part = Part::parse(b"4 3 0,2:-").unwrap().unwrap();
        assert_eq!((&part.dims[..], &part.part[..]), (&[4, 3][..], &[2, 3][..]));
        assert_eq!(part.slice.to_string(), "0,2:-");
        assert!(!part.slice.covers(&part.dims) && TensorSlice::whole(2).covers(&[4, 3]));
        assert_eq!(Part::parse(b"").unwrap(), None);
        for (text, code, message) in [
            ("3", 3, "Need least two elements in shape_and_slice specification: 3"),
            (
                "3 0,4",
                3,
                "Extent out of bounds: expected extents within shape [3], found slice 0,4",
            ),
            ("x 1,2", 3, "Non numerical dimension in shape_and_slice: x 1,2"),
            ("6 1", 3, "Expected a pair of numbers or '-' but got '1': string = 6 1"),
            ("-6 1,2", 3, "Non numerical dimension in shape_and_slice: -6 1,2"),
            (
                "6 1,2:-",
                3,
                "expected an extent for each dimension of shape_and_slice, found: 6 1,2:-",
            ),
            (
                "9223372036854775807 9223372036854775807,2",
                3,
                "Extent out of bounds: expected extents within shape [9223372036854775807], found slice 9223372036854775807,2",
            ),
        ] {
            let error = Part::parse(text.as_bytes()).unwrap_err();
            assert_eq!((error.code().0, error.to_string()), (code, message.to_owned()));
        }
        let shape = format!("{}-{}", "1 ".repeat(255), ":-".repeat(254));
        let error = Part::parse(shape.as_bytes()).unwrap_err().to_string();
        assert_eq!(error, "expected at most 254 dimensions in shape_and_slice, found 255");
        assert!(Part::parse(&shape.as_bytes()[2..shape.len() - 2]).is_ok());
        for shape in ["4294967296 4294967296 0,1:0,1", "9223372036854775807 2 0 -:-:-"] {
            let error = Part::parse(shape.as_bytes()).unwrap_err();
            assert_eq!(error.code().0, 3);
            assert!(error.to_string().starts_with("expected a shape of less than 2^63"), "{error}");
        }
        let error = Part::parse(b"6 0,0").unwrap_err().to_string();
        assert!(error.starts_with("Expected non-negative start and positive length"), "{error}");
    }
}
