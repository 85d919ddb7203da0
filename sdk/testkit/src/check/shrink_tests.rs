use super::*;
use tenon_framework::attr::AttrMap;

/// Fails as `fails` says, for this many candidates.
struct Tries<F> {
    fails: F,
    left: usize,
}

impl<F: FnMut(&CheckCase) -> bool> Judge for Tries<F> {
    fn fails(&mut self, case: &CheckCase) -> bool {
        self.left -= 1;
        (self.fails)(case)
    }

    fn goes_on(&self) -> bool {
        self.left > 0
    }
}

fn input(dims: &[i64], fill: Fill) -> Argument {
    Argument { dtype: DType::FLOAT, dims: dims.to_vec(), fill, constant: false }
}

fn case(inputs: Vec<Argument>) -> CheckCase {
    CheckCase { name: "c".into(), tags: Vec::new(), attrs: AttrMap::new(), inputs }
}

fn shrunk(case: CheckCase, tries: usize, fails: impl FnMut(&CheckCase) -> bool) -> CheckCase {
    shrink(case, &mut Tries { fails, left: tries })
}

fn random(seed: u64) -> Fill {
    Fill::Uniform { low: -1.0, high: 1.0, seed }
}

fn floats(case: &CheckCase, at: usize) -> Vec<f32> {
    case.tensors().unwrap()[at].as_slice::<f32>().unwrap().to_vec()
}

#[test]
fn sizes_that_agree_shrink_together() {
    let matmul = case(vec![input(&[31, 127], random(1)), input(&[127, 64], random(2))]);
    let small = shrunk(matmul, 1000, |case| {
        let (a, b) = (&case.inputs[0].dims, &case.inputs[1].dims);
        // An inner size below five is right; sizes that do not agree are refused.
        a.len() == 2 && b.len() == 2 && a[1] == b[0] && a[1] >= 5
    });
    let dims: Vec<_> = small.inputs.iter().map(|input| input.dims.clone()).collect();
    assert_eq!(dims, [[1, 5], [5, 1]]);
    assert_eq!(floats(&small, 0), [1.0; 5]);
}

#[test]
fn axes_that_do_not_matter_go() {
    let add = case(vec![input(&[4, 5, 6], random(1)), input(&[4, 5, 6], random(2))]);
    let small = shrunk(add, 1000, |case| {
        let elements = |at: usize| case.inputs[at].dims.iter().product::<i64>();
        case.inputs[0].dims == case.inputs[1].dims && elements(0) >= 1
    });
    assert_eq!(small.inputs[0].dims, [0i64; 0]);
    assert_eq!(small.inputs[1].dims, [0i64; 0]);
}

#[test]
fn only_the_element_that_matters_stays() {
    let values = [2.0f32, 3.0, f32::NAN, 4.0, 5.0, 6.0];
    let value = Tensor::from_slice(&[2, 3], &values).unwrap();
    let small = shrunk(case(vec![input(&[2, 3], Fill::Explicit(value))]), 1000, |case| {
        floats(case, 0).iter().any(|value| value.is_nan())
    });
    assert_eq!(small.inputs[0].dims, [0i64; 0]);
    assert!(floats(&small, 0)[0].is_nan());
}

/// The first rows do not have the element, and another size of the recipe has other elements.
#[test]
fn one_row_of_many_stays_where_its_element_is_what_fails() {
    let x = input(&[8, 7, 1], Fill::Special { seed: 3 });
    let wanted = floats(&case(vec![x.clone()]), 0)[7 * 7 + 6];
    let scale = input(&[7, 1], random(4));
    let small = shrunk(case(vec![x, scale]), 2000, |case| {
        let (x, scale) = (&case.inputs[0].dims, &case.inputs[1].dims);
        x.ends_with(scale) && floats(case, 0).iter().any(|x| x.to_bits() == wanted.to_bits())
    });
    assert_eq!(floats(&small, 0).len(), 1, "{small:?}");
    assert_eq!(floats(&small, 1).len(), 1, "{small:?}");
}

/// Where all of them matter, a recipe stays one.
#[test]
fn a_recipe_of_which_nothing_can_go_stays_a_recipe() {
    let small = shrunk(case(vec![input(&[40, 40], random(1))]), 1000, |case| {
        case.inputs[0].dims == [40, 40]
    });
    assert!(matches!(small.inputs[0].fill, Fill::Uniform { .. }), "{small:?}");
}

#[test]
fn constants_stay_as_they_are() {
    let axes = Tensor::from_slice(&[2], &[0i32, 1]).unwrap();
    let axes =
        Argument { dtype: DType::INT32, dims: vec![2], fill: Fill::Explicit(axes), constant: true };
    let small = shrunk(case(vec![input(&[8, 9], random(1)), axes]), 1000, |case| {
        case.inputs[0].dims.len() == 2
    });
    assert_eq!(small.inputs[0].dims, [1, 1]);
    assert_eq!(small.inputs[1].dims, [2]);
}

#[test]
fn time_that_runs_out_leaves_what_was_found() {
    let tries = 3;
    let large = case(vec![input(&[1024, 1024], random(1))]);
    let small = shrunk(large.clone(), tries, |case| case.inputs[0].dims[0] > 2);
    assert!(small.inputs[0].dims[0] > 2);
    let same = shrunk(large.clone(), 1000, |_| false);
    assert_eq!(format!("{same:?}"), format!("{large:?}"));
}
