//! Whether results are right.

use crate::{
    calls::Call,
    variants::{Choice, Host},
};
use std::collections::HashMap;
use tenon_framework::Tensor;
use tenon_testkit::{
    check::{Expectation, oracle::IS_REFERENCE},
    compare::compare,
    node::Node,
};

/// What is found of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// As this says.
    Right(String),
    /// Nothing independent says.
    Unverified(String),
    /// What is wrong.
    Wrong(String),
}

/// The oracle for one call. What it says depends on a kernel's contract; kernels of one contract share it, since
/// asking takes as long as the plainest kernel.
pub struct Judge<'a> {
    host: &'a Host,
    call: &'a Call,
    inputs: &'a [Tensor],
    known: HashMap<String, (String, Expectation)>,
}

impl<'a> Judge<'a> {
    /// The judge of a call on a host.
    pub fn new(host: &'a Host, call: &'a Call, inputs: &'a [Tensor]) -> Judge<'a> {
        Judge { host, call, inputs, known: HashMap::new() }
    }

    /// Whether these outputs of a kernel are right.
    pub fn judge(&mut self, choice: &Choice, node: &Node, outputs: &[Tensor]) -> Verdict {
        let subject = choice.subject(node);
        let by = match self.host.oracle.of(&subject) {
            Ok(by) => by,
            Err(reason) if reason == IS_REFERENCE => return Verdict::Right(format!("it {reason}")),
            Err(reason) => return Verdict::Unverified(reason),
        };
        let key = format!("{by} {:?}", choice.def.numerics.key());
        let (by, expected) = self.known.entry(key).or_insert_with(|| {
            (by, self.host.oracle.expect(&subject, &self.call.case, self.inputs))
        });
        match expected {
            Expectation::Unverified(reason) => Verdict::Unverified(reason.clone()),
            Expectation::Refused(code, message) => Verdict::Wrong(format!(
                "accepted, where {by} refuses with {}: {message}",
                code.name()
            )),
            Expectation::Outputs(expected) => {
                if expected.len() != outputs.len() {
                    return Verdict::Wrong(format!(
                        "expected {} outputs, found {}",
                        expected.len(),
                        outputs.len()
                    ));
                }
                let wrong = outputs.iter().zip(expected.iter()).enumerate().find_map(
                    |(at, (got, (value, rule)))| {
                        let mismatch = compare(got, value, rule).err()?;
                        Some(format!("output {at}: {mismatch} (by {by})"))
                    },
                );
                wrong.map_or_else(|| Verdict::Right(by.clone()), Verdict::Wrong)
            }
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
