use super::*;

fn params<'a>(input: &'a [i64], filter: &'a [i64], padding: Padding) -> Conv2dParams<'a> {
    Conv2dParams {
        input,
        filter,
        strides: &[1, 1, 1, 1],
        dilations: &[1, 1, 1, 1],
        padding,
        explicit_paddings: &[],
        format: DataFormat::Nhwc,
    }
}

#[test]
fn a_resnet_stem() {
    let p = Conv2dParams {
        strides: &[1, 2, 2, 1],
        padding: Padding::Explicit,
        explicit_paddings: &[0, 0, 3, 3, 3, 3, 0, 0],
        ..params(&[8, 224, 224, 3], &[7, 7, 3, 64], Padding::Same)
    };
    let g = Conv2dGeometry::new(&p).unwrap();
    assert_eq!(g.output_dims(), [8, 112, 112, 64]);
    assert_eq!((g.groups, g.filter_channels, g.group_outputs()), (1, 3, 64));
    assert!(g.is_known());
}

#[test]
fn groups_and_channels_first() {
    let p = Conv2dParams {
        format: DataFormat::Nchw,
        dilations: &[1, 1, 2, 1],
        ..params(&[2, 6, 9, 5], &[3, 3, 2, 12], Padding::Valid)
    };
    let g = Conv2dGeometry::new(&p).unwrap();
    assert_eq!(g.output_dims(), [2, 12, 5, 3]);
    assert_eq!((g.groups, g.group_outputs()), (3, 4));
}

#[test]
fn depthwise_is_as_many_groups_as_channels() {
    let g = Conv2dGeometry::depthwise(&params(&[1, 8, 8, 5], &[3, 3, 5, 2], Padding::Same));
    let g = g.unwrap();
    assert_eq!(g.output_dims(), [1, 8, 8, 10]);
    assert_eq!((g.groups, g.filter_channels, g.group_outputs()), (5, 1, 2));
    let bad = params(&[1, 8, 8, 4], &[3, 3, 5, 2], Padding::Same);
    assert!(Conv2dGeometry::depthwise(&bad).is_err());
}

#[test]
fn depthwise_without_channels_or_multiplier_gives_nothing() {
    for (input, filter) in [([1, 8, 8, 5], [3, 3, 5, 0]), ([1, 8, 8, 0], [3, 3, 0, 2])] {
        let g = Conv2dGeometry::depthwise(&params(&input, &filter, Padding::Same)).unwrap();
        assert_eq!((g.output_dims(), g.group_outputs()), ([1, 8, 8, 0], 0));
    }
}

#[test]
fn unknown_dimensions_stay_unknown() {
    let g = Conv2dGeometry::new(&params(&[-1, -1, 28, -1], &[5, 5, 1, 32], Padding::Same));
    let g = g.unwrap();
    assert_eq!(g.output_dims(), [-1, -1, 28, 32]);
    assert!(!g.is_known());
    let g = Conv2dGeometry::depthwise(&params(&[-1, 4, 4, -1], &[3, 3, 5, 2], Padding::Same));
    assert_eq!(g.unwrap().output_dims(), [-1, 4, 4, 10]);
}

#[test]
fn bad_convolutions_are_refused() {
    let message = |p: &Conv2dParams<'_>| Conv2dGeometry::new(p).unwrap_err().to_string();
    let ok = params(&[1, 8, 8, 4], &[3, 3, 4, 6], Padding::Same);
    assert_eq!(
        message(&Conv2dParams { input: &[8, 8, 4], ..ok }),
        "the input of a convolution must have 4 dimensions, got 3"
    );
    assert_eq!(
        message(&Conv2dParams { strides: &[1, 1, 1, 2], ..ok }),
        "strides must be 1 in the depth dimension, got 2"
    );
    assert_eq!(
        message(&Conv2dParams { filter: &[3, 3, 3, 6], ..ok }),
        "the depth of the input (4) must be a multiple of the input depth of the filter (3)"
    );
    assert_eq!(
        message(&Conv2dParams { filter: &[3, 3, 1, 6], ..ok }),
        "the output depth of the filter (6) must be a multiple of the number of groups (4)"
    );
    assert_eq!(
        message(&Conv2dParams { filter: &[3, 3, 0, 6], ..ok }),
        "the input depth of the filter must be at least 1, got 0"
    );
    assert_eq!(
        message(&Conv2dParams { strides: &[1, 0, 1, 1], ..ok }),
        "strides in space must be at least 1, got 0"
    );
}
