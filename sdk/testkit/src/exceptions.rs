//! Cases that are known not to pass, each with the reason.

use std::fmt;

/// Cases of an op, and why they are excepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exception {
    /// Name of the op, or `*` for every op.
    pub op: &'static str,
    /// Name of the case, in which `*` stands for any text.
    pub case: &'static str,
    /// Why.
    pub reason: &'static str,
}

impl Exception {
    /// Whether it is about this case.
    pub fn covers(&self, op: &str, case: &str) -> bool {
        (self.op == "*" || self.op == op) && matches(self.case, case)
    }
}

impl fmt::Display for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({})", self.op, self.case, self.reason)
    }
}

/// Whether a text follows a pattern in which `*` stands for any text.
pub fn matches(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(head) else { return false };
    text.char_indices().map(|(at, _)| at).chain([text.len()]).any(|at| matches(rest, &text[at..]))
}

/// The exceptions of a plugin, device type or label.
#[derive(Debug, Clone, Copy, Default)]
pub struct Exceptions<'a> {
    /// Cases that are not run: the form is not supported, or what comes out depends on how the kernel is
    /// compiled.
    pub unsupported: &'a [Exception],
    /// Cases that are run and must fail: a known defect. One that passes is a failure.
    pub expected_failure: &'a [Exception],
    /// Cases that TensorFlow's kernel takes and its shape function refuses. They are run with unknown shapes,
    /// and must be refused by the shape function where shapes are known.
    pub refused_with_shapes: &'a [Exception],
}

impl<'a> Exceptions<'a> {
    /// No exceptions.
    pub const NONE: Exceptions<'static> =
        Exceptions { unsupported: &[], expected_failure: &[], refused_with_shapes: &[] };

    /// Why a case is not run.
    pub fn unsupported(&self, op: &str, case: &str) -> Option<&'a Exception> {
        self.unsupported.iter().find(|exception| exception.covers(op, case))
    }

    /// Why a case must fail.
    pub fn expected_failure(&self, op: &str, case: &str) -> Option<&'a Exception> {
        self.expected_failure.iter().find(|exception| exception.covers(op, case))
    }

    /// Why the shape function refuses a case.
    pub fn refused_with_shapes(&self, op: &str, case: &str) -> Option<&'a Exception> {
        self.refused_with_shapes.iter().find(|exception| exception.covers(op, case))
    }

    /// Exceptions about this op that cover none of its cases.
    pub fn stale<'c>(
        &self,
        op: &str,
        cases: impl Iterator<Item = &'c str> + Clone,
    ) -> Vec<&'a Exception> {
        let all =
            self.unsupported.iter().chain(self.expected_failure).chain(self.refused_with_shapes);
        all.filter(|exception| exception.op == op)
            .filter(|exception| !cases.clone().any(|case| exception.covers(op, case)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, text, right) in [
            ("float_same", "float_same", true),
            ("float_same", "float_same_2", false),
            ("half_*", "half_same", true),
            ("half_*", "bhalf_same", false),
            ("*_nchw*", "float_nchw_valid", true),
            ("*_nchw", "float_nchw_valid", false),
            ("*a*b", "aab", true),
            ("*", "", true),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern, text), right, "{pattern} {text}");
        }
    }

    #[test]
    fn exceptions_that_cover_nothing_are_found() {
        let of = |op, case| Exception { op, case, reason: "r" };
        let unsupported = [of("Add", "half_*"), of("Sub", "x"), of("*", "nothing")];
        let exceptions = Exceptions { unsupported: &unsupported, ..Exceptions::NONE };
        assert!(exceptions.unsupported("Add", "half_a").is_some());
        assert!(exceptions.unsupported("Mul", "half_a").is_none());
        assert!(exceptions.expected_failure("Add", "half_a").is_none());
        assert!(exceptions.stale("Add", ["half_a"].into_iter()).is_empty());
        assert_eq!(exceptions.stale("Add", ["float_a"].into_iter()), [&unsupported[0]]);
    }
}
