//! Shapes, and values of inputs that are shapes, axes and the like.

/// First shapes that a sampled check tries: sizes at which vectors, tiles and threads end.
pub(super) const SAMPLED: &[&[i64]] = &[
    &[],
    &[0],
    &[1],
    &[1, 1],
    &[7, 13],
    &[2, 3],
    &[2, 3, 4],
    &[2, 5, 6, 3],
    &[1, 7, 7, 3],
    &[1, 5],
    &[5, 1],
    &[3],
    &[7],
    &[13],
    &[16],
    &[17],
    &[31],
    &[65],
    &[129],
    &[64],
    &[257],
    &[1025],
    &[4, 16],
    &[17, 31],
    &[0, 3],
    &[3, 0],
    &[2, 0, 3],
    &[3, 5, 7],
    &[1, 7, 1],
    &[3, 1, 2],
    &[2, 3, 4, 5],
    &[3, 2, 1, 2],
    &[1, 1, 1, 1],
    &[1, 4, 4, 4],
    &[0, 4, 4, 2],
    &[5, 7, 11, 13],
    &[2, 3, 1, 2, 3],
    &[1, 1, 2, 1, 1],
    &[2, 3, 5, 4, 3],
    &[1, 5, 5, 259],
    &[3, 4099],
    &[4099, 3],
    &[131_075],
    &[1031, 131],
    &[4, 173, 193],
    &[1, 129, 131, 8],
];

/// What `--full` tries besides.
pub(super) const MORE: &[&[i64]] = &[
    &[2],
    &[4],
    &[5],
    &[8],
    &[9],
    &[15],
    &[32],
    &[33],
    &[63],
    &[127],
    &[128],
    &[255],
    &[256],
    &[812],
    &[4096],
    &[4099],
    &[0, 0],
    &[1, 100_003],
    &[100_003, 1],
    &[64, 64],
    &[33, 65],
    &[1, 0, 3],
    &[13, 1, 7],
    &[32, 33, 3],
    &[3, 9, 9, 16],
    &[2, 11, 13, 17],
    &[0, 7, 7, 3],
    &[1, 8, 8, 32],
    &[10, 5, 4, 3],
    &[2, 2, 2, 2, 2, 2],
    &[1, 2, 1, 2, 1, 2, 1, 2],
    &[1_048_579],
    &[1029, 917],
];

/// First shapes where an attribute is not at its base.
pub(super) const FEW: &[&[i64]] = &[
    &[7, 13],
    &[2, 3, 4],
    &[2, 5, 6, 3],
    &[1, 7, 7, 3],
    &[],
    &[0, 3],
    &[5],
    &[2, 3],
    &[7],
    &[0],
    &[1, 1],
    &[1, 1, 1, 1],
    &[5, 7, 11, 13],
    &[2, 3, 5, 4, 3],
    &[1031, 131],
    &[1, 129, 131, 8],
];

/// Elements from which on a tensor is large: beyond a level-one cache, and worth several threads.
pub(super) const LARGE: i64 = 1 << 16;

pub(super) fn elements(dims: &[i64]) -> i64 {
    dims.iter().copied().fold(1, i64::saturating_mul)
}

fn with(dims: &[i64], at: usize, size: i64) -> Vec<i64> {
    let mut dims = dims.to_vec();
    dims[at] = size;
    dims
}

/// Shapes of a further input beside a first one: equal, broadcast, a vector along a dimension, a matrix or a
/// filter that it multiplies, a part to be joined.
pub(super) fn companions(first: &[i64]) -> Vec<Vec<i64>> {
    let rank = first.len();
    let mut all: Vec<Vec<i64>> = vec![first.to_vec()];
    all.extend(products(first));
    all.extend(first.last().map(|&last| vec![last]));
    all.push(Vec::new());
    all.extend(broadcasts(first));
    all.extend(first.iter().rev().skip(1).map(|&size| vec![size]));
    all.extend((0..rank).map(|at| with(first, at, first[at] + 2)));
    all.extend([vec![0], vec![1], vec![2], vec![3], vec![5, 7], vec![0, 3], vec![2, 2, 3]]);
    let mut seen = std::collections::BTreeSet::new();
    all.retain(|dims| seen.insert(dims.clone()));
    all
}

fn broadcasts(first: &[i64]) -> Vec<Vec<i64>> {
    let rank = first.len();
    let mut all = Vec::new();
    if rank > 0 {
        all.push(with(first, 0, 1));
        all.push(with(first, rank - 1, 1));
        all.push(first[1..].to_vec());
        all.push(vec![1; rank]);
    }
    // What is 1 in the first is more in the second.
    all.push(first.iter().map(|&size| if size == 1 { 3 } else { size }).collect());
    all.push(first.iter().map(|&size| if size == 1 { 3 } else { 1 }).collect());
    if elements(first) <= LARGE {
        all.push([&[2], first].concat());
        all.push([&[3, 1], first].concat());
    }
    all
}

/// Matrices and filters that fit.
fn products(first: &[i64]) -> Vec<Vec<i64>> {
    let rank = first.len();
    let mut all = Vec::new();
    if rank < 2 {
        return all;
    }
    let (batch, rows, columns) = (&first[..rank - 2], first[rank - 2], first[rank - 1]);
    if rank == 4 {
        let small = if elements(first) >= LARGE { 2 } else { 3 };
        for channels in [first[3], first[1]] {
            all.push(vec![small, small, channels, 4]);
            all.push(vec![1, 1, channels, 5]);
            all.push(vec![2, 3, channels, 1]);
            all.push(vec![1, 2, channels, 2]);
        }
    }
    for pair in [[columns, 31], [31, columns], [rows, 5], [5, rows], [columns, 1]] {
        all.push([batch, &pair[..]].concat());
    }
    if rank > 2 {
        all.push(vec![columns, 7]);
        all.push([&vec![1; rank - 2][..], &[columns, 7]].concat());
        all.push([&[2], batch, &[columns, 3]].concat());
    }
    all
}

/// Shapes of an input of indices, axes or sizes beside a first input.
pub(super) fn index_shapes(first: Option<&[i64]>) -> Vec<Vec<i64>> {
    let mut all = vec![vec![], vec![1], vec![2], vec![3], vec![0], vec![5]];
    if let Some(first) = first {
        let rank = first.len() as i64;
        all.splice(1..1, [vec![rank], vec![rank, 2]]);
        all.push(vec![2, 3]);
    }
    let mut seen = std::collections::BTreeSet::new();
    all.retain(|dims| seen.insert(dims.clone()));
    all
}

/// Integers that such an input may hold, given its shape and that of the first input.
pub(super) fn index_values(dims: &[i64], first: &[i64]) -> Vec<Vec<i64>> {
    let rank = first.len() as i64;
    let mut all: Vec<Vec<i64>> = match *dims {
        [] => [0, rank - 1, -1, 1, rank, -rank, 2, 5].map(|value| vec![value]).to_vec(),
        [length] => vectors(length, first),
        [rows, columns] => matrices(rows, columns),
        _ => vec![vec![0; elements(dims) as usize]],
    };
    let mut seen = std::collections::BTreeSet::new();
    all.retain(|values| seen.insert(values.clone()));
    all
}

fn vectors(length: i64, first: &[i64]) -> Vec<Vec<i64>> {
    let rank = first.len() as i64;
    let mut all = Vec::new();
    if length == rank {
        let order: Vec<i64> = (0..rank).collect();
        all.push(order.iter().rev().copied().collect());
        all.push(order.iter().map(|at| (at + 1) % rank).collect());
        all.push(order.iter().map(|at| (at + rank - 1) % rank).collect());
        if rank > 2 {
            let (head, tail) = order.split_at(order.len() - 2);
            all.push([head, &[tail[1], tail[0]]].concat());
        }
        all.push(order);
        all.push(first.to_vec());
        all.push(first.iter().rev().copied().collect());
    }
    // The last axes, the first ones, the last from behind.
    all.push((rank - length..rank).collect());
    all.push((0..length).collect());
    all.push((1..=length).map(|at| -at).collect());
    // Shapes: all elements, the first size and the rest.
    let total = elements(first);
    match length {
        1 => all.extend([vec![total], vec![-1], vec![1031]]),
        2 => {
            let head = first.first().copied().unwrap_or(1);
            all.extend([vec![head, -1], vec![-1, 1], vec![1, total], vec![7, 13]]);
        }
        3 => all.extend([vec![1, -1, 1], vec![1, total, 1], vec![3, 5, 7]]),
        _ => {}
    }
    all.extend([1, 0, 2, -1].map(|value| vec![value; length as usize]));
    all
}

/// Amounts before and after each dimension.
fn matrices(rows: i64, columns: i64) -> Vec<Vec<i64>> {
    let by = |f: &dyn Fn(i64, i64) -> i64| {
        (0..rows)
            .flat_map(|row| (0..columns).map(move |column| (row, column)))
            .map(|(row, column)| f(row, column))
            .collect::<Vec<i64>>()
    };
    vec![
        by(&|row, column| (row + 2 * column) % 3),
        by(&|_, _| 1),
        by(&|_, _| 0),
        by(&|row, column| if row == rows - 1 { 3 - column } else { 0 }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn companions_hold_what_ops_of_two_inputs_need() {
        let beside = companions(&[7, 13]);
        for wanted in [&[7, 13][..], &[1, 13], &[7, 1], &[13], &[], &[13, 31], &[31, 13], &[7, 5]] {
            assert!(beside.contains(&wanted.to_vec()), "{wanted:?}");
        }
        let beside = companions(&[2, 5, 6, 3]);
        assert!(beside.contains(&vec![3, 3, 3, 4]) && beside.contains(&vec![3]));
        assert!(companions(&[5, 1]).contains(&vec![1, 3]), "both sides repeat");
    }

    #[test]
    fn values_hold_permutations_axes_shapes_and_paddings() {
        let values = index_values(&[3], &[2, 3, 4]);
        for wanted in [[2, 1, 0], [1, 2, 0], [0, 1, 2], [2, 3, 4], [0, 2, 1], [1, 1, 1]] {
            assert!(values.contains(&wanted.to_vec()), "{wanted:?}");
        }
        assert!(index_values(&[1], &[2, 3]).contains(&vec![6]));
        assert!(index_values(&[], &[2, 3]).contains(&vec![-1]));
        assert_eq!(index_values(&[2, 2], &[2, 3])[0], [0, 2, 1, 0]);
        assert_eq!(index_values(&[0], &[2, 3]), [Vec::<i64>::new()]);
    }
}
