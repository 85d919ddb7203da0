//! Cases whose indices are out of range: before the first element, and just beyond the last.
//!
//! What the range is, no signature says. What is tried is beyond every size that the case has: dimensions of its
//! data, integer attributes, and the indices themselves, so that no kernel has an element there, whatever the axis.

use super::{
    palette,
    search::{Role, index_tensor, index_values, roles},
};
use crate::check::{CheckCase, Fill, Subject, Tag};
use tenon_framework::attr::AttrValue;

/// Sizes from which on an integer attribute counts for something else: a seed, a limit.
const LARGE: i64 = 1 << 16;

/// The cases, made of the smallest one that has data and indices; none if the op has no index.
pub fn beyond(subject: &Subject, cases: &[CheckCase]) -> Vec<CheckCase> {
    let size = |case: &CheckCase| {
        case.inputs.iter().map(|input| palette::elements(&input.dims)).fold(0, i64::saturating_add)
    };
    let whole = |case: &&CheckCase| {
        !case.inputs.is_empty() && case.inputs.iter().all(|i| palette::elements(&i.dims) > 0)
    };
    let mut sorted: Vec<&CheckCase> = cases.iter().filter(whole).collect();
    sorted.sort_by_key(|case| size(case));
    sorted.into_iter().find_map(|case| of_case(subject, case)).unwrap_or_default()
}

fn of_case(subject: &Subject, case: &CheckCase) -> Option<Vec<CheckCase>> {
    let roles = roles(&subject.op, &case.attrs).ok()?;
    let is_index = |at: usize| roles[at].1 == Role::Index && !case.inputs[at].constant;
    let indices: Vec<usize> = (0..case.inputs.len()).filter(|&at| is_index(at)).collect();
    let has_data = roles.iter().any(|(_, role)| *role == Role::Data);
    if indices.is_empty() || !has_data || roles.len() != case.inputs.len() {
        return None;
    }
    let end = end(case, &indices)?;
    let made = |(word, value): (&str, i64)| {
        let mut beyond = case.clone();
        beyond.name = format!("{}:{word}", case.name);
        beyond.tags = vec![Tag::Beyond];
        for &at in &indices {
            let input = &mut beyond.inputs[at];
            let count = palette::elements(&input.dims) as usize;
            let tensor = index_tensor(input.dtype, &input.dims, &vec![value; count])?;
            input.fill = Fill::Explicit(tensor);
        }
        Some(beyond)
    };
    Some([("before", -end - 1), ("beyond", end)].into_iter().filter_map(made).collect())
}

/// The first index that is beyond all sizes of a case.
fn end(case: &CheckCase, indices: &[usize]) -> Option<i64> {
    let dims = case.inputs.iter().flat_map(|input| input.dims.iter().copied());
    let attrs = case.attrs.values().filter_map(AttrValue::as_int).filter(|&size| size < LARGE);
    let mut end = dims.chain(attrs).max().unwrap_or(0).max(1);
    for &at in indices {
        let values = index_values(&case.inputs[at].tensor().ok()?)?;
        end = end.max(values.into_iter().max().map_or(0, |value| value.saturating_add(1)));
    }
    (end < i64::from(i16::MAX)).then_some(end)
}
