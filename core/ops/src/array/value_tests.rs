//! Partly known integers, through the ops that compute shapes.

use crate::testing::Bench;
use tenon_framework::{
    DType, Tensor,
    attr::AttrValue,
    infer::{Item, ValueInfo},
};
use tenon_geometry::{SliceMasks, StridedSlice, StridedSliceSpec};

const INT: (&str, AttrValue) = ("T", AttrValue::Type(DType::INT32));

/// The value of the only output, as text: `?` is unknown, `n` a dimension.
fn value(
    bench: &mut Bench,
    op: &str,
    attrs: &[(&str, AttrValue)],
    inputs: &[&ValueInfo],
) -> String {
    let outputs = bench.run(op, attrs, inputs).unwrap();
    let Some(value) = &outputs[0].value else { return "nothing".to_owned() };
    let item = |item: &Item| match item {
        Item::Known(value) => value.to_string(),
        Item::Dimension(_) => "n".to_owned(),
        Item::Unknown => "?".to_owned(),
    };
    let items: Vec<String> = value.items().iter().map(item).collect();
    if value.is_scalar() { items.concat() } else { format!("[{}]", items.join(",")) }
}

fn shape_of(bench: &mut Bench, shape: &str) -> ValueInfo {
    let x = bench.value(shape);
    bench.run("Shape", &[], &[&x]).unwrap().remove(0)
}

#[test]
fn scalars_are_packed() {
    let mut bench = Bench::new();
    let (three, any, vector) = (bench.value("= 3"), bench.value("[]"), bench.value("= [1,2]"));
    assert_eq!(value(&mut bench, "Pack", &[INT], &[&three, &any]), "[3,?]");
    assert_eq!(value(&mut bench, "Pack", &[INT], &[&any, &any]), "nothing");
    assert_eq!(value(&mut bench, "Pack", &[INT], &[&vector, &vector]), "nothing");
    let float = [("T", AttrValue::Type(DType::FLOAT))];
    assert_eq!(value(&mut bench, "Pack", &float, &[&three, &three]), "nothing");
}

#[test]
fn an_unknown_integer_is_no_dimension_with_identity() {
    let mut bench = Bench::new();
    let (three, any) = (bench.value("= 3"), bench.value("[]"));
    let packed = bench.run("Pack", &[INT], &[&three, &any]).unwrap().remove(0);
    let x = bench.value("?");
    let first = bench.run("Reshape", &[], &[&x, &packed]).unwrap().remove(0);
    let second = bench.run("Reshape", &[], &[&x, &packed]).unwrap().remove(0);
    assert_eq!(bench.show(&first.shape), "[3,?]");
    assert_ne!(first.shape, second.shape, "it may be -1, and then the sizes may differ");
}

#[test]
fn vectors_are_joined_and_cut() {
    let mut bench = Bench::new();
    let shape = shape_of(&mut bench, "[n,3]");
    let (tail, unknown, axis) = (bench.value("= [7]"), bench.value("[2]"), bench.value("= 0"));
    let join = |bench: &mut Bench, last: &ValueInfo| {
        value(bench, "ConcatV2", &[INT], &[&shape, last, &axis])
    };
    assert_eq!(join(&mut bench, &tail), "[n,3,7]");
    assert_eq!(join(&mut bench, &unknown), "[n,3,?,?]");
    let open = bench.value("[?]");
    assert_eq!(join(&mut bench, &open), "nothing");
    let long = bench.value("[65]");
    assert_eq!(join(&mut bench, &long), "nothing");
    let cut = |bench: &mut Bench, bounds: [&str; 3], masks: &[(&str, i64)]| {
        let [begin, end, strides] = bounds.map(|bound| bench.value(bound));
        let mut attrs = vec![INT];
        attrs.extend(masks.iter().map(|&(name, mask)| (name, AttrValue::Int(mask))));
        value(bench, "StridedSlice", &attrs, &[&shape, &begin, &end, &strides])
    };
    assert_eq!(cut(&mut bench, ["= [1]", "= [2]", "= [1]"], &[]), "[3]");
    assert_eq!(cut(&mut bench, ["= [0]", "= [0]", "= [-1]"], &[("begin_mask", 1)]), "[3]");
    assert_eq!(
        cut(&mut bench, ["= [0]", "= [0]", "= [-1]"], &[("begin_mask", 1), ("end_mask", 1)]),
        "[3,n]"
    );
    assert_eq!(cut(&mut bench, ["= [-1]", "= [0]", "= [1]"], &[("shrink_axis_mask", 1)]), "3");
    assert_eq!(cut(&mut bench, ["= [0]", "= [0]", "= [1]"], &[("new_axis_mask", 1)]), "nothing");
    assert_eq!(cut(&mut bench, ["[1]", "= [2]", "= [1]"], &[]), "nothing");
    assert_eq!(cut(&mut bench, ["[1]", "= [2]", "= [1]"], &[("begin_mask", 1)]), "nothing");
    assert_eq!(cut(&mut bench, ["= [0]", "[1]", "= [1]"], &[("end_mask", 1)]), "nothing");
    let all = [("begin_mask", 1), ("end_mask", 1)];
    assert_eq!(cut(&mut bench, ["[1]", "[1]", "= [-1]"], &all), "[3,n]");
    let shrunk = [("shrink_axis_mask", 1)];
    assert_eq!(cut(&mut bench, ["= [1]", "[1]", "= [1]"], &shrunk), "3");
    assert_eq!(cut(&mut bench, ["[1]", "[1]", "= [1]"], &shrunk), "nothing");
}

/// A slice of the vector 10, 11, ... takes the integers at the offsets of its canonical form.
fn takes_what_the_canonical_form_says(bench: &mut Bench, length: i64, spec: &StridedSliceSpec<'_>) {
    let Ok(slice) = StridedSlice::new(&[length], spec) else { return };
    let vector = |values: &[i64]| {
        let values: Vec<i32> = values.iter().map(|&value| value as i32).collect();
        ValueInfo::of_constant(Tensor::from_slice(&[values.len() as i64], &values).unwrap())
    };
    let mut inputs = vec![vector(&(10..10 + length).collect::<Vec<_>>())];
    inputs.extend([spec.begin.unwrap(), spec.end.unwrap(), spec.strides].map(vector));
    let SliceMasks { begin, end, ellipsis, new_axis, shrink_axis } = spec.masks;
    let attrs = [
        INT,
        ("begin_mask", AttrValue::Int(begin.into())),
        ("end_mask", AttrValue::Int(end.into())),
        ("ellipsis_mask", AttrValue::Int(ellipsis.into())),
        ("new_axis_mask", AttrValue::Int(new_axis.into())),
        ("shrink_axis_mask", AttrValue::Int(shrink_axis.into())),
    ];
    let found = value(bench, "StridedSlice", &attrs, &inputs.iter().collect::<Vec<_>>());
    let taken: Vec<String> = slice.offsets(&[length]).map(|at| (at + 10).to_string()).collect();
    let expected = match slice.output.len() {
        0 => taken.concat(),
        1 => format!("[{}]", taken.join(",")),
        _ => "nothing".to_owned(),
    };
    assert_eq!(found, expected, "of {length}: {spec:?}");
}

#[test]
fn a_vector_is_cut_as_the_canonical_form_says() {
    let mut bench = Bench::new();
    let bounds = (-5..=5).flat_map(|begin| (-5..=5).map(move |end| (begin, end)));
    for (begin, end) in bounds {
        for (length, stride, bits) in (0..4)
            .flat_map(|n| [-2, -1, 1, 2].map(|s| (n, s)))
            .flat_map(|(n, s)| (0..8).map(move |b| (n, s, b)))
        {
            let masks = SliceMasks {
                begin: bits & 1,
                end: bits >> 1 & 1,
                shrink_axis: bits >> 2,
                ..SliceMasks::default()
            };
            let (begin, end) = ([begin], [end]);
            let spec = StridedSliceSpec {
                begin: Some(&begin),
                end: Some(&end),
                strides: &[stride],
                masks,
            };
            takes_what_the_canonical_form_says(&mut bench, length, &spec);
        }
    }
}

#[test]
fn entries_that_speak_of_no_dimension_are_passed_by() {
    let mut bench = Bench::new();
    let (begin, end, strides) = ([1, -2, 0], [3, 3, 2], [1, 1, 1]);
    for entries in 0..=3 {
        for (ellipsis, new_axis) in (0..8).flat_map(|e| (0..8).map(move |n| (e, n))) {
            for shrink_axis in 0..8 {
                let masks = SliceMasks { ellipsis, new_axis, shrink_axis, ..SliceMasks::default() };
                let spec = StridedSliceSpec {
                    begin: Some(&begin[..entries]),
                    end: Some(&end[..entries]),
                    strides: &strides[..entries],
                    masks,
                };
                takes_what_the_canonical_form_says(&mut bench, 3, &spec);
            }
        }
    }
}

#[test]
fn a_conversion_keeps_what_fits() {
    let mut bench = Bench::new();
    let types = |from, to| [("SrcT", AttrValue::Type(from)), ("DstT", AttrValue::Type(to))];
    let narrow = types(DType::INT64, DType::INT32);
    let constant = |values: &[i64]| {
        ValueInfo::of_constant(Tensor::from_slice(&[values.len() as i64], values).unwrap())
    };
    assert_eq!(value(&mut bench, "Cast", &narrow, &[&constant(&[-1, 5])]), "[-1,5]");
    assert_eq!(value(&mut bench, "Cast", &narrow, &[&constant(&[1 << 31])]), "nothing");
    let least = i64::from(i32::MIN);
    assert_eq!(value(&mut bench, "Cast", &narrow, &[&constant(&[least])]), format!("[{least}]"));
    let float = types(DType::INT64, DType::FLOAT);
    assert_eq!(value(&mut bench, "Cast", &float, &[&constant(&[1])]), "nothing");
}

#[test]
fn ranks_of_values_change_with_their_shapes() {
    let mut bench = Bench::new();
    let (scalar, axis) = (bench.value("= 5"), bench.value("= 0"));
    let expanded = bench.run("ExpandDims", &[INT], &[&scalar, &axis]).unwrap().remove(0);
    assert_eq!(expanded.value.as_ref().unwrap().items(), [Item::Known(5)]);
    assert!(!expanded.value.as_ref().unwrap().is_scalar());
    assert_eq!(value(&mut bench, "Squeeze", &[INT], &[&expanded]), "5");
    let (vector, none) = (bench.value("= [5]"), bench.value("= []"));
    assert_eq!(value(&mut bench, "Reshape", &[INT], &[&vector, &none]), "5");
    let square = bench.value("= [1,1]");
    assert_eq!(value(&mut bench, "Reshape", &[INT], &[&vector, &square]), "nothing");
}

#[test]
fn a_known_value_serves_as_a_constant() {
    let mut bench = Bench::new();
    let (zero, one, x) = (bench.value("= 0"), bench.value("= 1"), bench.value("[n,3]"));
    let perm = bench.run("Pack", &[INT], &[&one, &zero]).unwrap().remove(0);
    assert!(perm.constant.is_none());
    let outputs = bench.run("Transpose", &[], &[&x, &perm]).unwrap();
    assert_eq!(bench.show(&outputs[0].shape), "[3,n]");
    let pred = bench.value("[]");
    let both = bench.run("Switch", &[INT], &[&zero, &pred]).unwrap();
    assert!(both.iter().all(|output| output.constant.is_some()));
}
