//! What clipping leaves of a tensor and of slices.

use super::model::{Trained, cases, constant, dtype, listed, near, of_training, tolerance};
use tenon_framework::{DType, Tensor};
use tenon_gradient::Gradient;
use tenon_graph::{GraphBuilder, Output};
use tenon_training::{Initial, TrainError, Variable, Variables, clip, optimizer::VariableGradient};

const TENSOR: [f64; 6] = [3.0, -4.0, 0.5, 0.0, 1.25, -2.0];
const SLICES: [f64; 4] = [1.0, -2.0, 0.25, 4.0];

fn named(
    b: &mut GraphBuilder<'_>,
    name: &str,
    gradient: Option<Gradient>,
) -> Result<(), TrainError> {
    let (Gradient::Dense(values) | Gradient::Slices { values, .. }) = gradient.unwrap();
    b.op("Identity").name(name).input(values).build()?;
    Ok(())
}

fn gradients(
    b: &mut GraphBuilder<'_>,
    variables: &mut Variables,
    dtype: DType,
    tensor: &[f64],
) -> Result<[VariableGradient; 2], TrainError> {
    let mut variable = |name: &str, dims: &[i64]| -> Result<(Variable, Output), TrainError> {
        let values = if name == "w" { tensor } else { &SLICES };
        let variable = variables.add(b, name, dtype, dims, &Initial::Zeros)?;
        let dims = if name == "w" { dims } else { &[2, 2] };
        Ok((variable, constant(b, &format!("{name}_gradient"), dtype, dims, values)?))
    };
    let (w, of_w) = variable("w", &[2, 3])?;
    let (e, values) = variable("e", &[3, 2])?;
    let indices = b.constant("indices", Tensor::from_slice(&[2], &[1i32, 1])?)?;
    let slices = Gradient::Slices { values, indices, dense_shape: None };
    Ok([(Some(Gradient::Dense(of_w)), w), (Some(slices), e)])
}

#[test]
fn gradients_are_clipped_as_by_tensorflow() {
    let (runtime, cases) = (of_training(), cases("clips"));
    assert_eq!(cases.len(), 11);
    for case in &cases {
        let (name, dtype) = (case["name"].as_str().unwrap(), dtype(case));
        let trained = Trained::new(&runtime, |b, variables| {
            let both = gradients(b, variables, dtype, &TENSOR)?;
            let clipped = match name {
                "by_global_norm" | "by_global_norm_above" => {
                    let limit = if name == "by_global_norm" { 2.0 } else { 64.0 };
                    let (clipped, norm) = clip::by_global_norm(b, &both, limit)?;
                    b.op("Identity").name("norm").input(norm).build()?;
                    [clipped[0].0, clipped[1].0]
                }
                name => {
                    let mut clipped = [None; 2];
                    for (clipped, (gradient, _)) in clipped.iter_mut().zip(&both) {
                        let gradient = gradient.as_ref().unwrap();
                        *clipped = Some(match name {
                            "by_value" => clip::by_value(b, gradient, -1.0, 2.0)?,
                            "by_norm" => clip::by_norm(b, gradient, 2.5)?,
                            "by_norm_above" => clip::by_norm(b, gradient, 100.0)?,
                            "by_average_norm" => clip::by_average_norm(b, gradient, 0.25)?,
                            other => panic!("a clip that is not known: {other}"),
                        });
                    }
                    clipped
                }
            };
            named(b, "tensor", clipped[0])?;
            named(b, "slices", clipped[1])
        });
        let found = trained.run(&[], &["tensor", "slices"], &[]);
        let what = format!("{name}, {dtype}");
        near(&what, &found[0], &listed(&case["tensor"]), tolerance(dtype));
        near(&what, &found[1], &listed(&case["slices"]), tolerance(dtype));
        if let Some(norm) = case["norm"].as_f64() {
            near(&what, &trained.run(&[], &["norm"], &[])[0], &[norm], tolerance(dtype));
        }
    }
}

/// An infinite gradient is not hidden: all become NaN.
#[test]
fn a_norm_that_is_not_finite_is_seen() {
    let trained = Trained::new(&of_training(), |b, variables| {
        let tensor = [1.0, f64::INFINITY, 0.0, 0.0, 0.0, 0.0];
        let both = gradients(b, variables, DType::FLOAT, &tensor)?;
        let (clipped, _) = clip::by_global_norm(b, &both, 1.0)?;
        named(b, "slices", clipped[1].0)
    });
    assert!(trained.run(&[], &["slices"], &[])[0].iter().all(|value| value.is_nan()));
}

#[test]
fn variables_without_a_gradient_are_passed_on() {
    let registry = of_training().registry();
    let (mut b, mut all) = (GraphBuilder::new(&registry), Variables::new());
    let [w, (_, e)] = gradients(&mut b, &mut all, DType::FLOAT, &TENSOR).unwrap();
    let (clipped, _) = clip::by_global_norm(&mut b, &[w, (None, e.clone())], 1.0).unwrap();
    assert!(clipped[0].0.is_some() && clipped[1].0.is_none() && clipped[1].1.name == "e");
    let error = clip::global_norm(&mut b, &[(None, e)]).unwrap_err();
    assert_eq!(error.to_string(), "the global norm: expected at least one gradient, found none");
}
