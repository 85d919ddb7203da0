//! Reduction of rows by segments: checks of the ids, indices and counts of segments.

use crate::size::{Dims, element_count};
use tenon_framework::KernelError;

/// The shape of a reduction by segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentPlan {
    /// Shape of the output: segments, then the dimensions of a row.
    pub output: Dims,
    /// Elements of a row.
    pub inner: usize,
}

impl SegmentPlan {
    /// The plan for sorted ids, one for each row of `data`.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the number of ids is wrong, or ids decrease or are below 0.
    pub fn sorted(data: &[i64], ids: &[i64], values: &[i64]) -> Result<SegmentPlan, KernelError> {
        let &rows = data.first().ok_or_else(data_is_scalar)?;
        if ids != [rows] {
            return Err(wrong_length(rows as usize, ids));
        }
        SegmentPlan::of_sorted(data, values)
    }

    /// The plan for sorted ids, one for each of the `picked` rows of `data`.
    ///
    /// # Errors
    /// As [`SegmentPlan::sorted`]; `INVALID_ARGUMENT` for rows that do not exist.
    pub fn picked(
        data: &[i64],
        (indices, picked): (&[i64], &[i64]),
        (ids, values): (&[i64], &[i64]),
    ) -> Result<SegmentPlan, KernelError> {
        let &rows = data.first().ok_or_else(data_is_scalar)?;
        if indices.len() != 1 || ids != indices {
            return Err(wrong_length(picked.len(), ids));
        }
        if let Some(at) = picked.iter().position(|index| !(0..rows).contains(index)) {
            return Err(KernelError::invalid_argument(format!(
                "indices[{at}] = {} is not in [0, {rows})",
                picked[at]
            )));
        }
        SegmentPlan::of_sorted(data, values)
    }

    /// The same reduction with this many segments, of which the last may have no rows.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a negative number, or one that an id reaches.
    pub fn with_segments(&self, segments: i64) -> Result<SegmentPlan, KernelError> {
        if segments < 0 {
            return Err(negative_count(segments));
        }
        match self.output.split_first() {
            Some((&found, row)) if found <= segments => SegmentPlan::new(segments, row),
            found => Err(KernelError::invalid_argument(format!(
                "segment ids must be below {segments}, the number of segments: the last is {}",
                found.map_or(0, |(found, _)| found - 1)
            ))),
        }
    }

    fn of_sorted(data: &[i64], ids: &[i64]) -> Result<SegmentPlan, KernelError> {
        check_sorted(ids)?;
        let segments = ids.last().map_or(Some(0), |last| last.checked_add(1));
        let segments = segments.ok_or_else(|| {
            KernelError::invalid_argument(format!("segment id {} is too large", i64::MAX))
        })?;
        SegmentPlan::new(segments, &data[1..])
    }

    /// The plan for ids in any order, whose shape is a prefix of that of `data`. The ids themselves
    /// are not read.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for another shape, or a negative number of segments.
    pub fn unsorted(data: &[i64], ids: &[i64], segments: i64) -> Result<SegmentPlan, KernelError> {
        if segments < 0 {
            return Err(negative_count(segments));
        }
        if !data.starts_with(ids) {
            return Err(KernelError::invalid_argument(format!(
                "the shape of data must begin with that of segment_ids, which is {ids:?}: got {data:?}"
            )));
        }
        SegmentPlan::new(segments, &data[ids.len()..])
    }

    fn new(segments: i64, row: &[i64]) -> Result<SegmentPlan, KernelError> {
        let mut output = Dims::EMPTY;
        output.push(segments)?;
        row.iter().try_for_each(|&dim| output.push(dim))?;
        Ok(SegmentPlan { output, inner: element_count(row)? })
    }
}

fn data_is_scalar() -> KernelError {
    KernelError::invalid_argument("data must have at least 1 dimensions, got 0")
}

fn negative_count(segments: i64) -> KernelError {
    KernelError::invalid_argument(format!("num_segments must be at least 0, got {segments}"))
}

fn wrong_length(expected: usize, found: &[i64]) -> KernelError {
    KernelError::invalid_argument(format!(
        "segment_ids must be a vector of {expected}, got {found:?}"
    ))
}

fn check_sorted(ids: &[i64]) -> Result<(), KernelError> {
    if let Some(&first) = ids.first().filter(|&&first| first < 0) {
        return Err(KernelError::invalid_argument(format!(
            "segment ids must be at least 0: segment_ids[0] is {first}"
        )));
    }
    match ids.windows(2).position(|pair| pair[0] > pair[1]) {
        None => Ok(()),
        Some(at) => Err(KernelError::invalid_argument(format!(
            "segment ids are not increasing: segment_ids[{}] is {}, after {}",
            at + 1,
            ids[at + 1],
            ids[at]
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(plan: Result<SegmentPlan, KernelError>) -> String {
        plan.expect_err("it is refused").message
    }

    #[test]
    fn the_last_id_says_how_many_segments_there_are() {
        let plan = SegmentPlan::sorted(&[3, 2, 5], &[3], &[0, 0, 4]).unwrap();
        assert_eq!((&plan.output[..], plan.inner), (&[5, 2, 5][..], 10));
        let plan = SegmentPlan::picked(&[3, 2], (&[2], &[2, 2]), (&[2], &[0, 1])).unwrap();
        assert_eq!((&plan.output[..], plan.inner), (&[2, 2][..], 2));
        let plan = SegmentPlan::unsorted(&[3, 2, 5], &[3, 2], 7).unwrap();
        assert_eq!((&plan.output[..], plan.inner), (&[7, 5][..], 5));
        assert_eq!(&SegmentPlan::sorted(&[0, 2], &[0], &[]).unwrap().output[..], [0, 2]);
    }

    #[test]
    fn a_given_number_of_segments_exceeds_all_ids() {
        let plan = SegmentPlan::picked(&[3, 2], (&[2], &[2, 2]), (&[2], &[0, 4])).unwrap();
        assert_eq!(plan.with_segments(5).unwrap(), plan);
        assert_eq!(&plan.with_segments(7).unwrap().output[..], [7, 2]);
        assert_eq!(
            words(plan.with_segments(4)),
            "segment ids must be below 4, the number of segments: the last is 4"
        );
        assert_eq!(words(plan.with_segments(-1)), "num_segments must be at least 0, got -1");
    }

    #[test]
    fn what_is_wrong_is_said() {
        let of = |ids: &[i64]| words(SegmentPlan::sorted(&[2], &[2], ids));
        assert_eq!(of(&[-1, 0]), "segment ids must be at least 0: segment_ids[0] is -1");
        assert!(of(&[3, 1]).starts_with("segment ids are not increasing: segment_ids[1] is 1"));
        assert_eq!(of(&[0, i64::MAX]), format!("segment id {} is too large", i64::MAX));
        let picked = SegmentPlan::picked(&[3], (&[1], &[3]), (&[1], &[0]));
        assert_eq!(words(picked), "indices[0] = 3 is not in [0, 3)");
        assert!(words(SegmentPlan::unsorted(&[3], &[2], 1)).contains("must begin with"));
        assert!(words(SegmentPlan::unsorted(&[3], &[3], -1)).contains("at least 0, got -1"));
    }
}
