use super::*;
use crate::{check::Tag, float::Format};
use tenon_framework::attr::AttrMap;

fn argument(dtype: DType, dims: &[i64], fill: Fill) -> Argument {
    Argument { dtype, dims: dims.to_vec(), fill, constant: false }
}

fn tensor(dtype: DType, dims: &[i64], fill: Fill) -> Tensor {
    argument(dtype, dims, fill).tensor().unwrap()
}

const UNIFORM: Fill = Fill::Uniform { low: -2.0, high: 2.0, seed: 7 };

#[test]
fn every_type_with_elements_of_its_own_is_made_alike_each_time() {
    let fills = [
        UNIFORM,
        Fill::Whole { low: 0, high: 5, seed: 1 },
        Fill::Special { seed: 3 },
        Fill::Huge { seed: 4 },
        Fill::Stagnation,
    ];
    let makeable =
        |dtype: &&DType| !dtype.is_reserved() && ![DType::RESOURCE, DType::VARIANT].contains(dtype);
    let types: Vec<DType> = DType::ALL.iter().filter(makeable).copied().collect();
    assert_eq!(types.len(), 21);
    for dtype in types {
        for fill in &fills {
            let make = || tensor(dtype, &[3, 5], fill.clone());
            let (a, b) = (make(), make());
            assert_eq!((a.dtype(), a.shape().dims()), (dtype, &[3i64, 5][..]));
            a.validate().unwrap();
            match dtype {
                DType::STRING => assert_eq!(a.as_strings().unwrap(), b.as_strings().unwrap()),
                _ => assert_eq!(a.as_bytes().unwrap(), b.as_bytes().unwrap(), "{dtype} {fill:?}"),
            }
        }
    }
}

#[test]
fn tensors_lie_in_the_host_s_shared_memory() {
    let explicit = Fill::Explicit(Tensor::from_slice(&[2], &[1i32, 2]).unwrap());
    for fill in [explicit, Fill::Whole { low: 0, high: 3, seed: 0 }] {
        let tensor = tensor(DType::INT32, &[2], fill);
        let memory: Arc<dyn Memory> = HostMemory::shared().clone();
        assert!(Arc::ptr_eq(tensor.buffer().memory(), &memory));
    }
}

#[test]
fn uniform_elements_fill_their_range() {
    let values = tensor(DType::FLOAT, &[1000], UNIFORM);
    let values = values.as_slice::<f32>().unwrap();
    assert!(values.iter().all(|x| (-2.0..2.0).contains(x)));
    let above = values.iter().filter(|&&x| x > 1.0).count();
    assert!((150..350).contains(&above), "{above}");
    let fill = Fill::Uniform { low: -3.0, high: 3.0, seed: 0 };
    let values = tensor(DType::INT8, &[1000], fill);
    let values = values.as_slice::<i8>().unwrap();
    assert!((-3..3).all(|x| values.contains(&x)) && values.iter().all(|x| (-3..3).contains(x)));
}

#[test]
fn special_elements_meet_ordinary_ones_and_each_other() {
    let values = |seed| {
        let tensor = tensor(DType::FLOAT, &[131], Fill::Special { seed });
        tensor.as_slice::<f32>().unwrap().to_vec()
    };
    let (a, b) = (values(1), values(2));
    assert!(a.iter().any(|x| x.is_nan()) && a.iter().any(|x| x.is_infinite()));
    assert!(a.iter().any(|x| x.is_subnormal()) && a.contains(&f32::MAX));
    let ordinary = |x: &f32| x.is_normal() && x.abs() < 2.0;
    assert!(a.iter().filter(|x| ordinary(x)).count() >= 80);
    let shifted = a.iter().zip(&b).any(|(a, b)| a.is_nan() && ordinary(b));
    assert!(shifted, "the seed moves the special ones");
}

#[test]
fn of_huge_elements_the_square_overflows_and_the_sum_does_not() {
    for dtype in [DType::HALF, DType::BFLOAT16, DType::FLOAT, DType::DOUBLE] {
        let greatest = Format::of(dtype).unwrap().greatest();
        let values = tensor(dtype, &[131], Fill::Huge { seed: 1 });
        let format = Format::of(dtype).unwrap();
        let bytes = values.as_bytes().unwrap();
        let numbers: Vec<f64> = (0..131).map(|at| format.read(bytes, at).value()).collect();
        let is_huge = |x: &&f64| x.abs() > greatest.sqrt();
        let huge: Vec<f64> = numbers.iter().filter(is_huge).copied().collect();
        assert!((43..=44).contains(&huge.len()), "{dtype}: {huge:?}");
        assert!(huge.iter().any(|x| *x < 0.0) && huge.iter().any(|x| *x > 0.0), "{dtype}");
        assert!(huge.iter().all(|x| x.abs() * 8.0 < greatest), "{dtype}: {huge:?}");
        assert!(numbers.iter().all(|x| x.abs() > greatest.sqrt() || x.abs() <= 2.0), "{dtype}");
    }
    let whole = tensor(DType::INT32, &[64], Fill::Huge { seed: 1 });
    assert!(whole.as_slice::<i32>().unwrap().iter().all(|x| (-8..8).contains(x)));
}

#[test]
fn a_permutation_has_every_number_once() {
    let values = tensor(DType::INT64, &[31], Fill::Permutation { seed: 5 });
    let mut values = values.as_slice::<i64>().unwrap().to_vec();
    assert!(!values.is_sorted());
    values.sort_unstable();
    assert_eq!(values, (0..31).collect::<Vec<i64>>());
}

#[test]
fn what_cannot_be_made_is_said() {
    let case = CheckCase {
        name: "handle".to_owned(),
        tags: vec![Tag::Scalar],
        attrs: AttrMap::new(),
        inputs: vec![argument(DType::RESOURCE, &[], UNIFORM)],
    };
    assert_eq!(
        case.tensors().unwrap_err().to_string(),
        "case 'handle': input 0 of resource cannot be made: elements of resource are made by kernels alone"
    );
}
