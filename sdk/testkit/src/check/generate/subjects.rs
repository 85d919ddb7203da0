//! The subjects of a plugin: its kernels, each with choices of element types.

use crate::check::Subject;
use std::sync::Arc;
use tenon_framework::abi::AttrKind;
use tenon_framework::{
    DType,
    attr::{AttrMap, AttrType, AttrValue},
    op::{Allowed, AttrDef, OpDef},
    registry::{KernelDef, PluginId, Registry},
};

/// The kernels that a plugin registered, each with choices of element types, in an order that does not depend on
/// that of registration.
///
/// With one type attribute there is a subject per type. With several, types are paired so that each type of
/// each attribute comes up at least once; two long lists, as of `Cast`, are paired several times over.
pub fn subjects(registry: &Registry, plugin: PluginId) -> Vec<Subject> {
    let own = registry.kernels().filter(|kernel| kernel.plugin == plugin);
    let mut all: Vec<Subject> = own
        .filter_map(|kernel| Some((registry.op(&kernel.op)?, kernel)))
        .flat_map(|(op, kernel)| of_kernel(op, kernel))
        .collect();
    all.sort_by_cached_key(|subject| (subject.to_string(), subject.kernel.order));
    all
}

fn of_kernel(op: &Arc<OpDef>, kernel: &Arc<KernelDef>) -> Vec<Subject> {
    let is_type = |attr: &&AttrDef| attr.ty == AttrType::one(AttrKind::TYPE);
    let choices: Vec<(&str, Vec<DType>)> = op
        .attrs
        .iter()
        .filter(is_type)
        .map(|attr| (attr.name.as_str(), types_of(kernel, attr)))
        .collect();
    let subject = |row: usize| Subject {
        op: Arc::clone(op),
        kernel: Arc::clone(kernel),
        types: choices
            .iter()
            .enumerate()
            .map(|(place, (name, types))| {
                ((*name).to_owned(), AttrValue::Type(types[column(row, place, &choices)]))
            })
            .collect::<AttrMap>(),
    };
    (0..rows(&choices)).map(subject).collect()
}

/// From here on a list of types is long: paired once, most of its pairs would be missed.
const LONG: usize = 6;

/// How far a long list is shifted against another in each pass: next to one another in both directions, since
/// lists go from narrow types to wide ones, and further.
const SHIFTS: [isize; 4] = [1, -1, -2, 5];

/// How many subjects it takes.
fn rows(choices: &[(&str, Vec<DType>)]) -> usize {
    let most = choices.iter().map(|(_, types)| types.len()).max().unwrap_or(1);
    let long = choices.iter().filter(|(_, types)| types.len() >= LONG).count();
    if long > 1 { SHIFTS.len() * most } else { most }
}

/// Which type of an attribute a row has: all lists are gone through side by side.
fn column(row: usize, place: usize, choices: &[(&str, Vec<DType>)]) -> usize {
    let most = choices.iter().map(|(_, types)| types.len()).max().unwrap_or(1);
    let own = choices[place].1.len();
    let shift = if own >= LONG { place as isize * SHIFTS[row / most] } else { 0 };
    (row + shift.rem_euclid(own as isize) as usize) % own
}

/// The types of an attribute that are tried with a kernel, at least one.
pub(super) fn types_of(kernel: &KernelDef, attr: &AttrDef) -> Vec<DType> {
    if let Some(types) = kernel.types_of(&attr.name) {
        return types.to_vec();
    }
    let all = match &attr.allowed {
        Some(Allowed::Types(types)) => types.clone(),
        _ => DType::ALL.to_vec(),
    };
    let some: Vec<DType> = all.iter().copied().filter(|&dtype| is_made(dtype)).collect();
    if some.is_empty() { all } else { some }
}

/// Whether elements of the type can be made.
pub(super) fn is_made(dtype: DType) -> bool {
    !dtype.is_reserved() && !matches!(dtype, DType::RESOURCE | DType::VARIANT) && !dtype.is_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOATS: [DType; 4] = [DType::HALF, DType::BFLOAT16, DType::FLOAT, DType::DOUBLE];

    #[test]
    fn each_type_of_each_attribute_comes_up() {
        let many = DType::ALL[..13].to_vec();
        for choices in [
            vec![("T", FLOATS.to_vec()), ("Tidx", vec![DType::INT32, DType::INT64])],
            vec![("T", vec![DType::FLOAT]), ("Tidx", vec![DType::INT32, DType::INT64])],
            vec![("SrcT", many.clone()), ("DstT", many.clone())],
        ] {
            for (place, (_, types)) in choices.iter().enumerate() {
                let rows = 0..rows(&choices);
                let found: Vec<usize> = rows.map(|row| column(row, place, &choices)).collect();
                assert!((0..types.len()).all(|at| found.contains(&at)), "{choices:?} {found:?}");
            }
        }
        let choices = [("SrcT", many.clone()), ("DstT", many)];
        let pairs: std::collections::BTreeSet<_> = (0..rows(&choices))
            .map(|row| (column(row, 0, &choices), column(row, 1, &choices)))
            .collect();
        assert_eq!(pairs.len(), 52, "four different pairs of each type");
    }
}
