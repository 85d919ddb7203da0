use super::*;
use proptest::prelude::*;

fn kind(a: &[i64], b: &[i64]) -> BroadcastKind {
    BroadcastPlan::new([a, b]).unwrap().kind()
}

#[test]
fn shapes_broadcast_by_numpy_s_rule() {
    assert_eq!(broadcast_shape(&[8, 1, 6, 1], &[7, 1, 5]).unwrap(), [8, 7, 6, 5]);
    assert_eq!(broadcast_shape(&[], &[3]).unwrap(), [3]);
    assert_eq!(broadcast_shape(&[1], &[0]).unwrap(), [0]);
    assert_eq!(broadcast_shapes(&[&[2, 1], &[1, 3], &[4, 1, 1]]).unwrap(), [4, 2, 3]);
    let error = broadcast_shape(&[2, 3], &[2, 4]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "shapes [2, 3] and [2, 4] do not broadcast: each pair of dimensions must be equal or hold a 1"
    );
    assert!(broadcast_shape(&[0], &[2]).is_err());
}

#[test]
fn unknown_dimensions_follow_tensorflow_s_inference() {
    assert_eq!(broadcast_shape(&[-1, 1, -1], &[4, -1, -1]).unwrap(), [4, -1, -1]);
    assert_eq!(broadcast_shape(&[-1], &[1]).unwrap(), [-1]);
    assert_eq!(broadcast_shape(&[-1], &[0]).unwrap(), [-1]);
}

#[test]
fn neighbours_merge() {
    let plan = BroadcastPlan::new([&[8, 3, 5], &[3, 5]]).unwrap();
    assert_eq!(plan.extents(), [8, 15]);
    assert_eq!(plan.strides(0), [15, 1]);
    assert_eq!(plan.strides(1), [0, 1]);
    assert_eq!(plan.output_dims(), [8, 3, 5]);
    let plan = BroadcastPlan::new([&[2, 1, 3], &[2, 4, 1], &[1]]).unwrap();
    assert_eq!(plan.extents(), [2, 4, 3]);
    assert_eq!(plan.strides(0), [3, 0, 1]);
    assert_eq!(plan.strides(1), [4, 1, 0]);
    assert_eq!(plan.strides(2), [0, 0, 0]);
}

#[test]
fn kinds() {
    use BroadcastKind::*;
    assert_eq!(kind(&[2, 3], &[2, 3]), Same);
    assert_eq!(kind(&[], &[1, 1]), Same);
    assert_eq!(kind(&[0], &[1]), Same);
    assert_eq!(kind(&[], &[2, 3]), ScalarLeft);
    assert_eq!(kind(&[2, 3], &[1, 1, 1]), ScalarRight);
    assert_eq!(kind(&[5], &[2, 3, 5]), RowLeft { rows: 6, cols: 5 });
    assert_eq!(kind(&[2, 3, 5], &[3, 5]), RowRight { rows: 2, cols: 15 });
    assert_eq!(kind(&[2, 1], &[2, 5]), ColLeft { rows: 2, cols: 5 });
    assert_eq!(kind(&[2, 3, 5], &[2, 3, 1]), ColRight { rows: 6, cols: 5 });
    assert_eq!(kind(&[2, 1], &[1, 5]), General);
    assert_eq!(kind(&[2, 3, 5], &[3, 1]), General);
}

#[test]
fn runs_of_an_outer_product() {
    let plan = BroadcastPlan::new([&[2, 1], &[1, 3]]).unwrap();
    let runs: Vec<_> = plan.runs().collect();
    let run = |output, a| Run { output, len: 3, offsets: [a, 0], strides: [0, 1] };
    assert_eq!(runs, [run(0, 0), run(3, 1)]);
    assert_eq!(plan.runs_in(1..9).collect::<Vec<_>>(), [run(3, 1)]);
    let empty = BroadcastPlan::new([&[0, 1], &[1, 3]]).unwrap();
    assert_eq!(empty.runs().count(), 0);
}

/// The offset of an output index in an operand, directly by the rule.
fn rule(dims: &[i64], output: &[i64], mut element: i64) -> usize {
    let (mut offset, mut stride) = (0, 1);
    for d in (0..output.len()).rev() {
        let i = element % output[d];
        element /= output[d];
        let own = aligned(dims, output.len(), d);
        if own != 1 {
            offset += i * stride;
            stride *= own;
        }
    }
    offset as usize
}

fn operands() -> impl Strategy<Value = (Vec<i64>, Vec<i64>)> {
    prop::collection::vec((0i64..4, 0..3), 0..6).prop_flat_map(|dims| {
        let rank = dims.len();
        let pick = move |keep: i32| -> Vec<i64> {
            dims.iter().map(|&(d, who)| if who == keep { 1 } else { d }).collect()
        };
        let (a, b) = (pick(0), pick(1));
        (0..=rank).prop_map(move |cut| (a.clone(), b[cut.min(ones(&b))..].to_vec()))
    })
}

/// Leading dimensions of size 1, which do not change the result.
fn ones(dims: &[i64]) -> usize {
    dims.iter().take_while(|&&d| d == 1).count()
}

proptest! {
    #[test]
    fn runs_visit_what_the_rule_says((a, b) in operands(), start in 0usize..8) {
        let plan = BroadcastPlan::new([&a[..], &b[..]]).unwrap();
        let mut element = start.min(plan.run_count()) * plan.run_len();
        for run in plan.runs_in(start..usize::MAX) {
            prop_assert_eq!(run.output, element);
            for i in 0..run.len {
                let expected = [&a, &b].map(|dims| rule(dims, plan.output_dims(), element as i64));
                let found: [usize; 2] =
                    std::array::from_fn(|n| run.offsets[n] + i * run.strides[n]);
                prop_assert_eq!(found, expected);
                element += 1;
            }
        }
        prop_assert_eq!(element, plan.len());
    }
}
