//! No argument makes a shape function or the constructor of a plan panic.

use super::*;
use proptest::prelude::*;

/// Mostly small numbers, some at the edges of `i64`.
fn number() -> impl Strategy<Value = i64> {
    prop_oneof![
        8 => -2i64..6,
        1 => any::<i64>(),
        1 => prop::sample::select(vec![i64::MIN, i64::MAX, 1 << 31, 1 << 32, 1 << 62]),
    ]
}

fn list(max: usize) -> impl Strategy<Value = Vec<i64>> {
    prop_oneof![
        20 => prop::collection::vec(number(), 0..max),
        1 => prop::collection::vec(number(), 15..20),
    ]
}

fn four() -> impl Strategy<Value = Vec<i64>> {
    prop::collection::vec(number(), 4)
}

fn padding() -> impl Strategy<Value = (Padding, Vec<i64>)> {
    prop_oneof![
        Just((Padding::Same, vec![])),
        Just((Padding::Valid, vec![])),
        prop::collection::vec(number(), 4)
            .prop_map(|p| { (Padding::Explicit, vec![0, 0, p[0], p[1], p[2], p[3], 0, 0]) }),
    ]
}

/// The properties of every resulting shape.
fn check(dims: Result<Dims, GeometryError>) -> Result<(), TestCaseError> {
    match dims {
        Ok(dims) => prop_assert_eq!(validate_partial_dims(&dims), Ok(())),
        Err(error) => prop_assert!(!error.to_string().is_empty()),
    }
    Ok(())
}

proptest! {
    #[test]
    fn shape_functions(a in list(6), b in list(6), axis in number(), flags in any::<[bool; 2]>()) {
        check(broadcast_shape(&a, &b))?;
        check(concat_dims(&[&a, &b], axis))?;
        check(pack_dims(&[&a, &b], axis))?;
        check(reduce_dims(&a, &b, flags[0]))?;
        check(transpose_dims(&a, &b))?;
        check(pad_dims(&a, &b))?;
        check(reshape_dims(&a, &b))?;
        check(squeeze_dims(&a, &b).map(Option::unwrap_or_default))?;
        check(expand_dims(&a, axis))?;
        check(matmul_dims(&a, &b, flags[0], flags[1]))?;
        check(batch_matmul_dims(&a, &b, flags[0], flags[1]))?;
    }

    #[test]
    fn cutting_and_picking(a in list(6), b in list(6), c in list(12), axis in number(), n in number()) {
        check(split_dims(&a, axis, n))?;
        check(unpack_dims(&a, axis, n))?;
        check(slice_dims(&a, &b, &c))?;
        check(gather_dims(&a, &b, axis, n))?;
        check(gather_nd_dims(&a, &b).map(Option::unwrap_or_default))?;
        check(tile_dims(&a, &b))?;
        check(mirror_pad_dims(&a, &c, 1))?;
        check(mirror_pad_grad_dims(&a, &c, 0))?;
        check(one_hot_dims(&a, n, axis))?;
        check(space_to_batch_dims(&a, &b, &c))?;
        check(batch_to_space_dims(&a, &b, &c))?;
        for format in [DepthFormat::Nhwc, DepthFormat::Nchw, DepthFormat::NchwVectC] {
            check(format.space_to_depth_dims(&a, n))?;
            check(format.depth_to_space_dims(&a, n))?;
        }
        let _ = (split_sizes(n, &mut c.clone()), check_broadcast_to(&a, &b), roll_shifts(&a, &b, &b));
        let _ = (broadcast_gradient_axes(&a, &b), range_len(axis, n, axis.wrapping_sub(n)));
        let _ = GatherPlan::new(&a, &b, axis, n);
        let _ = SlicePlan::new(&a, &b).map(|plan| plan.slice(&c));
        if let Ok(batch) = space_to_batch_dims(&a, &b, &c) {
            let _ = SpaceBatchPlan::new(&a, &batch, &b, &c).map(|plan| plan.runs().next());
        }
        for padding in [Padding::Same, Padding::Valid] {
            let _ = PatchGeometry::new(&a, [&b, &b, &c], padding);
        }
    }

    #[test]
    fn plans(a in list(6), b in list(6), axis in number(), flags in any::<[bool; 2]>()) {
        let _ = BroadcastPlan::new([&a[..], &b[..]]).map(|plan| (plan.kind(), plan.runs().next()));
        let _ = ConcatPlan::concat(&[&a, &b], axis).map(|plan| plan.piece(&a));
        let _ = ConcatPlan::pack(&[&a, &a], axis).map(|plan| plan.piece(&a));
        let _ = ReducePlan::new(&a, &b, flags[0]).map(|plan| (plan.kind(), plan.outputs().next()));
        let _ = ArgGeometry::new(&a, axis);
        let _ = TransposePlan::new(&a, &b).map(|plan| (plan.kind(), plan.offsets().next()));
        let _ = PadPlan::new(&a, &b).map(|plan| plan.rows().next());
        let _ = MatMulGeometry::new(&a, &b, flags[0], flags[1]);
        let _ = BatchMatMulGeometry::new(&a, &b, flags[0], flags[1]);
        let _ = ChannelSplit::with_vector(&a, DataFormat::Nchw, "bias", &b);
        let _ = byte_size(&a, usize::MAX);
    }

    #[test]
    fn windows(
        input in four(), filter in four(), spatial in four(), (padding, pads) in padding(),
        first: bool,
    ) {
        let format = if first { DataFormat::Nchw } else { DataFormat::Nhwc };
        let strides = format.order(1, spatial[0], spatial[1], 1);
        let dilations = format.order(1, spatial[2], spatial[3], 1);
        let params = Conv2dParams {
            input: &input, filter: &filter, strides: &strides, dilations: &dilations, padding,
            explicit_paddings: &pads, format,
        };
        for geometry in [Conv2dGeometry::new(&params), Conv2dGeometry::depthwise(&params)] {
            check(geometry.clone().and_then(|g| Dims::from_slice(&g.output_dims())))?;
            if let Ok(g) = geometry && g.is_known() && g.height.output > 0 {
                let _ = g.height.taps(0).next().map(|tap| g.height.input_at(0, tap));
            }
        }
        let ksize = format.order(1, filter[0], filter[1], filter[2]);
        let params = Pool2dParams {
            input: &input, ksize: &ksize, strides: &strides, padding, explicit_paddings: &pads,
            format,
        };
        for geometry in [Pool2dGeometry::max(&params), Pool2dGeometry::average(&params)] {
            check(geometry.and_then(|g| Dims::from_slice(&g.output_dims())))?;
        }
    }
}
