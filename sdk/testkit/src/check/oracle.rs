//! What a call must give, from something that is not the kernel under test.
//!
//! In this order:
//! 1. a golden case has its own outputs and rule; of a device that keeps denormals, which TensorFlow flushes, also
//!    what a reference gives that keeps them;
//! 2. a kernel labelled `reference` for the same op and types, on the CPU or on the kernel's own device, of
//!    any loaded plugin: tenon-cpu registers tenon-reference's kernels so, and an author registers other ones;
//! 3. one for wider types, the inputs widened, the outputs rounded once;
//! 4. the host's own kernel of the op (`DEFAULT`), where a plugin registers another.
//!
//! Else the result is unverified, for a reason that the report prints. A kernel whose label is `reference` is
//! judged by golden data or by another plugin's reference alone. Two registrations of one function are one kernel.
//!
//! **Sums of terms.** What the contract of a sum is relative to is the sum of the absolute values of its terms
//! (`tolerance`). Which ops are such sums is not a list: an op is multilinear where turning the
//! sign of any one input turns the outputs', and doubling it doubles them, both of which are exact in floating
//! point (`MatMul`, `Conv2D`, `Sum`, `Mean`, `AvgPool`, an author's own dot product); it is linear where that
//! holds for all inputs at once (`AddN`, `BiasAdd`, `Sub`). Then the same op over the absolute values of the
//! inputs gives that sum; for a linear one, added over its inputs, with the others zero.
//!
//! `Softmax`, a batch normalisation or a fused convolution are neither, and cancel inside all the same. They are
//! judged relative to their sensitivity: how far the reference's result moves, per relative step, when its inputs
//! are moved up or down by the generator. That is what rounding the inputs alone would do to it; where nothing
//! cancels it is about the result itself.
//!
//! **What is left open.** Whether denormals among the inputs are flushed: the reference runs without them too, and
//! either result is right, also where it is a truth value, an index or a whole number; of a device's kernel, of one
//! that keeps them, and where special values are among the inputs, also the one with denormals kept throughout. A
//! kernel on the host whose result is wrong is called once more with denormals kept (`examine/flushing`). Where the
//! finite terms of a sum add up to more than the element type holds, in the end or before it is divided, their order
//! decides whether it overflows: any result is right. So it is where another function's result depends on numbers of
//! which the square overflows; and of a product of many terms (`Prod`), where it depends on whether such a number, or
//! one of which the square underflows, meets the others first. In a sum of products, an infinity may meet a zero that
//! an implementation pads with: NaN is right as well. Not left open is a function of single elements whose contract
//! names no type of sums, of one input or of several with which it grows: it is wrong where it is infinite and the
//! reference far from the end of the range (`elementwise`).

mod elementwise;
mod reference;
mod terms;
mod widen;

use super::{
    CheckCase, Expectation, Subject, Tag,
    generate::{Goldens, reindexed},
    tolerance::{self, Output},
};
use crate::{
    TestkitError,
    compare::{Rule, lanes},
    float::Format,
    golden::{self, Expected, ExpectedOutput},
    harness::compare_bytes,
    node::{Refusal, Stage},
};
use reference::{Call, Found};
use std::path::Path;
use tenon_framework::{Code, DType, Shape, Tensor, attr::AttrValue};
use tenon_runtime::Runtime;

/// Why a subject is its own specification.
pub const IS_REFERENCE: &str = "is itself a reference";

/// Says what calls must give.
pub struct Oracle {
    runtime: Runtime,
    goldens: Option<Goldens>,
    terms: terms::Known,
}

impl Oracle {
    /// An oracle over the plugins that a runtime has loaded, and golden data where there is some.
    ///
    /// # Errors
    /// Golden data that is not there.
    pub fn new(runtime: &Runtime, goldens: Option<&Path>) -> Result<Oracle, TestkitError> {
        let goldens = goldens.map(Goldens::open).transpose()?;
        Ok(Oracle { runtime: runtime.clone(), goldens, terms: terms::Known::default() })
    }

    /// The judge of a subject's generated cases, as a report names it; the error is why there is none.
    ///
    /// # Errors
    /// Why it is unverified.
    pub fn of(&self, subject: &Subject) -> Result<String, String> {
        let found = reference::find(&self.runtime.registry(), subject)?;
        Ok(found.to_string())
    }

    /// What a call of a subject with these inputs must give.
    pub fn expect(&self, subject: &Subject, case: &CheckCase, inputs: &[Tensor]) -> Expectation {
        if case.is(Tag::Golden) {
            return self.golden(subject, case, inputs);
        }
        match reference::find(&self.runtime.registry(), subject) {
            Ok(found) => self.judged_by(&found, subject, case, inputs),
            Err(reason) => Expectation::Unverified(reason),
        }
    }

    fn golden(&self, subject: &Subject, case: &CheckCase, inputs: &[Tensor]) -> Expectation {
        let Some(goldens) = &self.goldens else {
            return Expectation::Unverified("golden data is not given".to_owned());
        };
        let golden = match goldens.find(&subject.op.name, case) {
            Ok(Some(golden)) => golden,
            Ok(None) => return Expectation::Unverified(format!("no golden case '{}'", case.name)),
            Err(error) => return Expectation::Unverified(error.to_string()),
        };
        let outputs = match golden.expected {
            Expected::Error(code) => {
                return Expectation::Refused(code, "TensorFlow refuses it".to_owned());
            }
            Expected::Outputs(outputs) => outputs,
        };
        let types = widen::output_types(&subject.op, &case.attrs).unwrap_or_default();
        let outputs = outputs.iter().zip(types).map(|(output, dtype)| golden_output(output, dtype));
        let outputs: Vec<(Tensor, Rule)> = match outputs.collect() {
            Ok(outputs) => outputs,
            Err(reason) => return Expectation::Unverified(reason),
        };
        // TensorFlow flushes denormals; a device's own arithmetic may keep them.
        if !is_elsewhere(subject) {
            return Expectation::Outputs(outputs);
        }
        let kept = self.kept(subject, case, inputs).unwrap_or_default();
        let judged = outputs.into_iter().enumerate().map(|(at, (expected, rule))| {
            let others = Vec::from_iter(kept.get(at).filter(|_| rule != Rule::Undefined));
            let rule = match widened(rule, &expected, &others, false) {
                // Also where no reference says that a denormal comes out: for a zero of its sign.
                rule @ (Rule::Either { .. } | Rule::Undefined) => rule,
                rule if !is_float(expected.dtype()) => rule,
                rule => Rule::Either { rule: Box::new(rule), others: Vec::new() },
            };
            (expected, rule)
        });
        Expectation::Outputs(judged.collect())
    }

    /// What a reference gives that keeps denormals, for a device that does not compute on the host's threads: where
    /// there are any, or where they occur on the way, as the quotient does that `FloorDiv` rounds.
    fn kept(&self, subject: &Subject, case: &CheckCase, inputs: &[Tensor]) -> Option<Vec<Tensor>> {
        let found = reference::find(&self.runtime.registry(), subject).ok()?;
        let runtime = &self.runtime;
        let call = Call { runtime, found: &found, case, keep_denormals: true };
        let outputs = call.outputs(inputs).ok()?;
        if inputs.iter().chain(&outputs).any(widen::has_denormals) {
            return Some(outputs);
        }
        let flushed = Call { keep_denormals: false, ..call }.outputs(inputs).ok()?;
        let is_same = outputs.iter().zip(&flushed).all(|(a, b)| compare_bytes(a, b));
        (!is_same).then_some(outputs)
    }

    fn judged_by(
        &self,
        found: &Found,
        subject: &Subject,
        case: &CheckCase,
        inputs: &[Tensor],
    ) -> Expectation {
        let call = Call { runtime: &self.runtime, found, case, keep_denormals: false };
        let outputs = match call.outputs(inputs) {
            Ok(outputs) => outputs,
            Err(refusal) => return refused(found, refusal),
        };
        let flushed = widen::without_denormals(inputs);
        let flushed = flushed.and_then(|inputs| call.outputs(&inputs).ok());
        let keeping = Call { keep_denormals: true, ..call };
        let keeps = is_elsewhere(subject) || subject.kernel.keeps_denormals;
        // The reference's own numbers on the way may be the ones that are flushed.
        let kept = (keeps || case.is(Tag::Special)).then(|| keeping.outputs(inputs).ok()).flatten();
        let others: Vec<Vec<Tensor>> = [flushed, kept].into_iter().flatten().collect();
        let bases = self.terms.of(&call, subject, inputs, &outputs);
        let count = inputs.iter().map(Tensor::elements).max().unwrap_or(1);
        let judged = outputs.into_iter().enumerate().map(|(at, expected)| {
            if is_undefined(subject, case, at) {
                return (expected, Rule::Undefined);
            }
            let bases = bases.as_ref();
            let output = Output {
                expected: &expected,
                bases: bases.map(|bases| bases.numbers[at].as_slice()),
                open: bases.map(|bases| bases.open[at].as_slice()),
                terms: bases.filter(|bases| bases.are_sums).map(|_| count),
                selects: SELECTIONS.contains(&subject.op.name.as_str()),
            };
            let rule = tolerance::rule(&subject.kernel.numerics, &found.def.numerics, output);
            let others: Vec<&Tensor> = others.iter().filter_map(|other| other.get(at)).collect();
            let nan = bases.is_some_and(|bases| bases.may_be_nan);
            let rule = widened(rule, &expected, &others, nan);
            (expected, rule)
        });
        Expectation::Outputs(judged.collect())
    }
}

impl std::fmt::Debug for Oracle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Oracle({:?})", self.runtime)
    }
}

/// Ops that give one of the values that they compare: which of two zeros, IEEE 754 leaves open.
const SELECTIONS: [&str; 9] =
    ["Max", "MaxPool", "Maximum", "Min", "Minimum", "Relu", "Relu6", "LeakyRelu", "ClipByValue"];

/// Outputs that TensorFlow leaves undefined: what a training step of a batch normalisation keeps for its
/// gradient depends on the device, and in inference there is none.
fn is_undefined(subject: &Subject, case: &CheckCase, output: usize) -> bool {
    let training = !matches!(case.attrs.get("is_training"), Some(AttrValue::Bool(false)));
    let empty = case.inputs.first().is_some_and(|input| input.dims.contains(&0));
    match (subject.op.name.as_str(), output) {
        ("FusedBatchNormV3", 5) => true,
        ("FusedBatchNormV3", 3 | 4) => !training || empty,
        _ => false,
    }
}

/// An output as golden data has it: quantised types under those that store them, indices in the type that the case has
/// for them, undefined values as none.
fn golden_output(output: &ExpectedOutput, dtype: DType) -> Result<(Tensor, Rule), String> {
    if let Some((value, rule)) = &output.value {
        let value = match reindexed(value, dtype) {
            Some(value) => value,
            None => golden::retyped(value, dtype).map_err(|error| error.to_string())?,
        };
        return Ok((value, rule.clone()));
    }
    let shape = Shape::new(&output.dims).map_err(|error| error.to_string())?;
    let memory = tenon_framework::tensor::host_memory();
    let any = Tensor::allocate(memory, dtype, shape).map_err(|error| error.to_string())?;
    let rule = match is_float(dtype) {
        true => Rule::Within { allowed: vec![f64::INFINITY; shape.elements() * lanes(dtype)] },
        false => Rule::Undefined,
    };
    Ok((any, rule))
}

/// A reference that fails is not an oracle; one that refuses its inputs is.
fn refused(found: &Found, refusal: Refusal) -> Expectation {
    let refuses = [
        Code::INVALID_ARGUMENT,
        Code::OUT_OF_RANGE,
        Code::FAILED_PRECONDITION,
        Code::NOT_FOUND,
        Code::UNIMPLEMENTED,
    ];
    if refusal.stage != Stage::Select && refuses.contains(&refusal.code) {
        return Expectation::Refused(refusal.code, refusal.message);
    }
    Expectation::Unverified(format!(
        "{} says {} at {:?}: {}",
        found.def, refusal.code, refusal.stage, refusal.message
    ))
}

/// Lets a result be what comes of denormals otherwise, and NaN where that is as good.
fn widened(rule: Rule, expected: &Tensor, others: &[&Tensor], nan: bool) -> Rule {
    let same_form =
        |other: &Tensor| other.dtype() == expected.dtype() && other.shape() == expected.shape();
    let others = others.iter().filter(|other| same_form(other));
    let others = others.filter_map(|other| Some(other.as_bytes().ok()?.to_vec()));
    let Some(format) = Format::of_parts(expected.dtype()) else {
        // What is compared, counted or cast: of another number, another answer.
        let own = expected.as_bytes().ok();
        let others: Vec<Vec<u8>> = others.filter(|other| Some(&other[..]) != own).collect();
        let is_same = others.is_empty() || rule == Rule::Undefined;
        return if is_same { rule } else { Rule::Either { rule: Box::new(rule), others } };
    };
    let nan = nan.then(|| format.quiet_nans(expected.byte_len() / format.size()));
    let others: Vec<Vec<u8>> = others.chain(nan).collect();
    if others.is_empty() && !widen::has_denormals(expected) {
        return rule;
    }
    Rule::Either { rule: Box::new(rule), others }
}

/// Whether a kernel does not compute on the host's threads: what the host sets for these, a device's own arithmetic
/// does not see.
fn is_elsewhere(subject: &Subject) -> bool {
    !matches!(subject.kernel.device_type.as_str(), reference::CPU | "DEFAULT")
}

/// Whether elements are floating, of one or two parts.
fn is_float(dtype: DType) -> bool {
    Format::of_parts(dtype).is_some()
}
