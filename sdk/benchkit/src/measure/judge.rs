//! Whether results are right.

use super::part::Part;
use crate::{
    calls::Call,
    record::Sampled,
    variants::{Choice, Host},
};
use std::{collections::HashMap, sync::Arc};
use tenon_framework::{Tensor, abi::ToleranceKind, registry::KernelDef};
use tenon_testkit::{
    check::{Expectation, Subject, oracle::IS_REFERENCE},
    compare::compare,
    node::Node,
};

/// What is found of a result.
pub enum Verdict {
    /// As this says; what was expected, where it is not the kernel's own.
    Right(String, Option<Arc<Expected>>),
    /// Nothing independent says.
    Unverified(String),
    /// The problem.
    Wrong(String),
}

/// What is expected of a call: of all its outputs, or of some parts of them.
pub struct Expected {
    expectation: Expectation,
    part: Option<Part>,
}

impl Expected {
    /// How outputs differ from what is expected.
    pub fn mismatch(&self, outputs: &[Tensor]) -> Option<String> {
        let Some(part) = &self.part else { return mismatch(&self.expectation, outputs) };
        let Some(outputs) = part.outputs(outputs) else {
            return Some("expected an output of the inferred shape".to_owned());
        };
        let message = mismatch(&self.expectation, &outputs)?;
        Some(format!("{message}, counted in {part}"))
    }

    /// Which part was judged, where it was not the whole.
    pub fn sampled(&self) -> Option<Sampled> {
        self.part.as_ref().map(Part::sampled)
    }
}

/// The oracle for one call. What it says depends on a kernel's contract; kernels of one contract share it, since
/// asking takes as long as the plainest kernel.
pub struct Judge<'a> {
    host: &'a Host,
    call: &'a Call,
    inputs: &'a [Tensor],
    tolerance: Option<f64>,
    known: HashMap<String, (String, Arc<Expected>)>,
}

impl<'a> Judge<'a> {
    /// The judge of a call on a host; `tolerance` replaces the kernels' contracts.
    pub fn new(
        host: &'a Host,
        call: &'a Call,
        inputs: &'a [Tensor],
        tolerance: Option<f64>,
    ) -> Judge<'a> {
        Judge { host, call, inputs, tolerance, known: HashMap::new() }
    }

    /// Whether these outputs of a kernel are right.
    pub fn judge(&mut self, choice: &Choice, node: &Node, outputs: &[Tensor]) -> Verdict {
        let subject = self.subject(choice, node);
        let by = match self.host.oracle.of(&subject) {
            Ok(by) => self.told(by),
            Err(reason) if reason == IS_REFERENCE => {
                return Verdict::Right(format!("it {reason}"), None);
            }
            Err(reason) => return Verdict::Unverified(reason),
        };
        let key = format!("{by} {:?}", subject.kernel.numerics.key());
        let (by, expected) = match self.known.get(&key) {
            Some(known) => known.clone(),
            None => {
                let found = (by, Arc::new(self.expected(&subject, outputs)));
                self.known.entry(key).or_insert(found).clone()
            }
        };
        if let Expectation::Unverified(reason) = &expected.expectation {
            return Verdict::Unverified(reason.clone());
        }
        match expected.mismatch(outputs) {
            Some(message) => Verdict::Wrong(format!("{message} (by {by})")),
            None => Verdict::Right(by, Some(expected)),
        }
    }

    /// Why the kernel that others are judged by is not called itself: a part of its result took long enough.
    pub fn spares(&self, choice: &Choice, node: &Node) -> Option<String> {
        let part = self.known.values().find_map(|(_, expected)| expected.sampled())?;
        let by = self.host.oracle.of(&self.subject(choice, node));
        (by.err()? == IS_REFERENCE).then(|| {
            format!(
                "the others are judged by its result in {part}, since all of it takes long: \
                 tenon bench with --label {} alone calls it",
                choice.def.label
            )
        })
    }

    /// The kernel with what is asked of it.
    fn subject(&self, choice: &Choice, node: &Node) -> Subject {
        let mut subject = choice.subject(node);
        if let Some(relative) = self.tolerance {
            let mut kernel = KernelDef::clone(&subject.kernel);
            kernel.numerics.tolerance = ToleranceKind::ABSOLUTE_RELATIVE;
            (kernel.numerics.absolute, kernel.numerics.relative) = (0.0, relative);
            subject.kernel = Arc::new(kernel);
        }
        subject
    }

    /// The reference for results, for a record.
    fn told(&self, by: String) -> String {
        match self.tolerance {
            Some(relative) => format!("{by}, within {relative} of what cancels"),
            None => by,
        }
    }

    /// What the oracle says of the whole call, or of as much of it as it can be asked.
    fn expected(&self, subject: &Subject, outputs: &[Tensor]) -> Expected {
        let (oracle, case) = (&self.host.oracle, &self.call.case);
        let part = Part::of(self.call, self.inputs, outputs);
        let cut = part.as_ref().and_then(|part| part.inputs(case, self.inputs));
        match cut {
            Some((case, inputs)) => {
                Expected { expectation: oracle.expect(subject, &case, &inputs), part }
            }
            None => Expected { expectation: oracle.expect(subject, case, self.inputs), part: None },
        }
    }
}

/// How outputs differ from what is expected.
fn mismatch(expected: &Expectation, outputs: &[Tensor]) -> Option<String> {
    match expected {
        Expectation::Unverified(_) => None,
        Expectation::Refused(code, message) => {
            Some(format!("accepted, where the oracle refuses with {}: {message}", code.name()))
        }
        Expectation::Outputs(expected) if expected.len() != outputs.len() => {
            Some(format!("expected {} outputs, found {}", expected.len(), outputs.len()))
        }
        Expectation::Outputs(expected) => {
            let pairs = outputs.iter().zip(expected).enumerate();
            pairs.into_iter().find_map(|(at, (got, (value, rule)))| {
                let mismatch = compare(got, value, rule).err()?;
                Some(format!("output {at}: {mismatch}"))
            })
        }
    }
}

/// A contract as a key.
trait Key {
    fn key(&self) -> ([u32; 3], [u64; 3]);
}

impl Key for tenon_framework::abi::Numerics {
    fn key(&self) -> ([u32; 3], [u64; 3]) {
        let figures = [self.ulps, self.absolute, self.relative].map(f64::to_bits);
        ([self.tolerance.0, self.determinism.0, self.accumulation.0], figures)
    }
}
