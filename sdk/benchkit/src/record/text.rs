//! How parts of a record read.

use super::{Case, Input, Record, Sampled, Variant};
use std::fmt;

/// `64x32`; `[]` for a scalar.
pub fn dims_text(dims: &[i64]) -> String {
    if dims.is_empty() {
        return "[]".to_owned();
    }
    dims.iter().map(i64::to_string).collect::<Vec<_>>().join("x")
}

impl fmt::Display for Input {
    /// `x=64x32`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, dims_text(&self.dims))?;
        if self.constant { f.write_str("!") } else { Ok(()) }
    }
}

impl Case {
    /// The inputs' shapes, as `x=64x32 y=32x8`; `!` marks a constant.
    pub fn shapes(&self) -> String {
        self.inputs.iter().map(Input::to_string).collect::<Vec<_>>().join(" ")
    }

    /// Whether both are the same call, wherever it is in a sweep or a graph.
    pub fn same_call(&self, other: &Case) -> bool {
        self.op == other.op && self.attrs == other.attrs && self.inputs == other.inputs
    }
}

impl fmt::Display for Case {
    /// `MatMul[T=float] a=64x32 b=32x8`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.op)?;
        if !self.attrs.is_empty() {
            let attrs = self.attrs.iter().map(|(name, value)| format!("{name}={value}"));
            write!(f, "[{}]", attrs.collect::<Vec<_>>().join(","))?;
        }
        if self.inputs.is_empty() { Ok(()) } else { write!(f, " {}", self.shapes()) }
    }
}

impl fmt::Display for Sampled {
    /// `24 of 2048 rows`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} {}", self.judged, self.of, self.what)
    }
}

impl Record {
    /// What its results were compared with, for a reader.
    pub fn judged(&self) -> String {
        let by = self.checked.as_deref().unwrap_or("nothing");
        let part = self.sampled.as_ref().map(|sampled| format!(", {sampled}"));
        format!("{by}{}", part.unwrap_or_default())
    }
}

impl Variant {
    /// Whether both stand for the same kernel, of whatever build.
    pub fn same_kernel(&self, other: &Variant) -> bool {
        self.device == other.device && self.label == other.label && self.plugin == other.plugin
    }
}

impl fmt::Display for Variant {
    /// `avx512 of tenon-cpu on CPU`; the ordinary kernel is `ordinary`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label = if self.label.is_empty() { "ordinary" } else { &self.label };
        write!(f, "{label} of {} on {}", self.plugin, self.device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(name: &str, dims: &[i64], constant: bool) -> Input {
        Input { name: name.into(), dtype: "float".into(), dims: dims.to_vec(), constant }
    }

    fn case() -> Case {
        Case {
            op: "MatMul".into(),
            attrs: [("T".to_owned(), "float".to_owned())].into(),
            inputs: vec![input("a", &[64, 32], false), input("b", &[32, 8], true)],
            at: None,
            node: None,
            calls: 1,
        }
    }

    #[test]
    fn a_case_is_one_line() {
        assert_eq!(case().to_string(), "MatMul[T=float] a=64x32 b=32x8!");
        let none = Case { attrs: [].into(), inputs: Vec::new(), ..case() };
        assert_eq!(none.to_string(), "MatMul");
        assert_eq!(dims_text(&[]), "[]");
    }

    #[test]
    fn a_call_is_the_same_wherever_it_stands() {
        let elsewhere = Case { at: Some(64), node: Some("dense".into()), calls: 3, ..case() };
        assert!(case().same_call(&elsewhere));
        let mut other = case();
        other.inputs[0].dims[0] = 65;
        assert!(!case().same_call(&other));
    }

    #[test]
    fn the_ordinary_kernel_has_a_name() {
        let variant = Variant {
            device: "CPU".into(),
            label: String::new(),
            plugin: "tenon-cpu".into(),
            plugin_version: "0.1.0".into(),
            digest: "ab".into(),
            source: "tenon-cpu src/math.rs:3".into(),
            chosen: true,
        };
        assert_eq!(variant.to_string(), "ordinary of tenon-cpu on CPU");
        let rebuilt =
            Variant { digest: "cd".into(), plugin_version: "0.2.0".into(), ..variant.clone() };
        assert!(variant.same_kernel(&rebuilt));
    }
}
