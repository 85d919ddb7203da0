//! A failure that can be run again: `tenon check --case FILE`.

use super::{
    CheckCase, Clause, Fill,
    json::{case_from_json, case_to_json},
    protocol::{Sampling, Setup, Unit},
};
use crate::{compare::shown_briefly, error::TestkitError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};
use tenon_framework::attr::AttrValue;
use tenon_runtime::host::files::write_bytes;

/// Version of the form.
const FORM: u32 = 1;

/// The case that is run again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum What {
    /// One case.
    Case(Value),
    /// What is judged once per kernel, device type or plugin, under this clause.
    Clause(Clause),
}

/// A failure with all that it takes to run it again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reproducer {
    /// Version of the form.
    tenon_check: u32,
    /// The plugin's file.
    pub plugin: PathBuf,
    /// SHA-256 of that file when it failed.
    pub digest: String,
    /// Plugins that were named along with it.
    #[serde(default)]
    pub others: Vec<PathBuf>,
    /// Settings of knobs.
    #[serde(default)]
    pub set: Vec<(String, String)>,
    /// Kernel, device type or plugin.
    pub unit: Unit,
    /// The clause that failed.
    pub clause: Clause,
    /// How it failed.
    pub message: String,
    /// How cases were generated.
    pub sampling: Sampling,
    /// Folder with the golden data.
    #[serde(default)]
    pub goldens: Option<PathBuf>,
    /// What is run.
    pub run: What,
}

impl Reproducer {
    /// The failure of a unit.
    pub fn new(setup: &Setup, digest: &str, unit: &Unit, clause: Clause, run: What) -> Reproducer {
        Reproducer {
            tenon_check: FORM,
            plugin: setup.plugin.clone(),
            digest: digest.to_owned(),
            others: setup.others.clone(),
            set: setup.set.clone(),
            unit: unit.clone(),
            clause,
            message: String::new(),
            sampling: setup.sampling,
            goldens: setup.goldens.clone(),
            run,
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read, or is not a reproducer.
    pub fn read(path: &Path) -> Result<Reproducer, TestkitError> {
        let failed = |detail: String| TestkitError::Reproducer { path: path.to_owned(), detail };
        let text = fs::read(path).map_err(|error| failed(error.to_string()))?;
        let read: Reproducer =
            serde_json::from_slice(&text).map_err(|error| failed(error.to_string()))?;
        if read.tenon_check != FORM {
            let found = read.tenon_check;
            return Err(failed(format!("expected version {FORM} of the form, found {found}")));
        }
        if let What::Case(case) = &read.run {
            case_from_json(case).map_err(|problem| failed(problem.to_string()))?;
        }
        Ok(read)
    }

    /// Writes it into a folder, which is made where it is missing, under a name of unit and clause.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, folder: &Path) -> Result<PathBuf, TestkitError> {
        let path = folder.join(format!("{}.json", self.name()));
        let failed = |detail: String| TestkitError::Reproducer { path: path.clone(), detail };
        fs::create_dir_all(folder).map_err(|error| failed(error.to_string()))?;
        let mut text =
            serde_json::to_string_pretty(self).map_err(|error| failed(error.to_string()))?;
        text.push('\n');
        write_bytes(&path, text).map_err(|error| failed(error.to_string()))?;
        Ok(path)
    }

    /// A name of unit and clause for files.
    pub fn name(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
        let name: String = self.unit.name.chars().map(plain).collect();
        let words: Vec<&str> = name.split('-').filter(|word| !word.is_empty()).collect();
        format!("{}.{}", words.join("-"), self.clause)
    }
}

/// A case in words, as a person wants to read it.
pub fn describe(case: &CheckCase) -> String {
    let mut text = String::new();
    for (name, value) in &case.attrs {
        let _ = write!(text, "{name} = {}, ", attr(value));
    }
    for (at, input) in case.inputs.iter().enumerate() {
        let constant = if input.constant { "constant " } else { "" };
        let (dtype, dims) = (input.dtype, &input.dims);
        let _ = write!(text, "input {at}: {constant}{dtype} {dims:?}{}, ", fill(&input.fill));
    }
    text.truncate(text.len().saturating_sub(2));
    text
}

fn attr(value: &AttrValue) -> String {
    match value {
        AttrValue::Type(dtype) => dtype.to_string(),
        AttrValue::String(text) => format!("\"{}\"", text.escape_ascii()),
        AttrValue::Int(value) => value.to_string(),
        AttrValue::Float(value) => value.to_string(),
        AttrValue::Bool(value) => value.to_string(),
        AttrValue::Shape(shape) => shape.to_string(),
        other => {
            let text = format!("{other:?}");
            let inner = text.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
            inner.unwrap_or(&text).to_owned()
        }
    }
}

/// How many elements are shown.
const SHOWN: usize = 16;

fn fill(fill: &Fill) -> String {
    let Fill::Explicit(value) = fill else { return format!(" {}", recipe(fill)) };
    let count = value.elements();
    let elements: Option<Vec<String>> =
        (0..count.min(SHOWN)).map(|at| shown_briefly(value, at)).collect();
    match elements {
        Some(elements) if count <= SHOWN => format!(" = [{}]", elements.join(", ")),
        Some(elements) => format!(" = [{}, …]", elements.join(", ")),
        None => " of given elements".to_owned(),
    }
}

fn recipe(fill: &Fill) -> String {
    match fill {
        Fill::Uniform { low, high, .. } if high - low <= f64::EPSILON => format!("all {low}"),
        Fill::Uniform { low, high, seed } => format!("of [{low}, {high}), seed {seed}"),
        Fill::Whole { low, high, seed } => format!("integers of [{low}, {high}), seed {seed}"),
        Fill::Stagnation => "with sums that stagnate".to_owned(),
        Fill::Special { seed } => format!("with special values, seed {seed}"),
        Fill::Huge { seed } => format!("with numbers of which the square overflows, seed {seed}"),
        Fill::Permutation { seed } => format!("in some order, seed {seed}"),
        Fill::Explicit(_) => "given".to_owned(),
    }
}

/// A case as it goes into a reproducer.
pub fn what(case: &CheckCase) -> What {
    What::Case(case_to_json(case))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Argument, protocol::UnitKind};
    use tenon_framework::{DType, Tensor, attr::AttrMap};

    fn case() -> CheckCase {
        let value = Tensor::from_slice(&[2], &[1.0f32, f32::NAN]).unwrap();
        let fills = [Fill::Explicit(value), Fill::Uniform { low: -1.0, high: 1.0, seed: 7 }];
        let input = |fill| Argument { dtype: DType::FLOAT, dims: vec![2], fill, constant: false };
        CheckCase {
            name: "c".into(),
            tags: Vec::new(),
            attrs: AttrMap::from([
                ("T".into(), AttrValue::Type(DType::FLOAT)),
                ("axes".into(), AttrValue::from(vec![0i64, 1])),
            ]),
            inputs: fills.map(input).into(),
        }
    }

    fn reproducer() -> Reproducer {
        let unit = Unit {
            kind: UnitKind::Kernel,
            name: "Add[T=float] on CPU 'avx2'".into(),
            op: "Add".into(),
            device: "CPU".into(),
            label: "avx2".into(),
            source: String::new(),
        };
        let sampling = Sampling { seed: 1, cases: 12, full: false };
        let setup = Setup {
            plugin: "libadd.so".into(),
            others: Vec::new(),
            search: true,
            set: vec![("a.b".into(), "1".into())],
            ops: Vec::new(),
            devices: Vec::new(),
            sampling,
            goldens: None,
            scratch: PathBuf::new(),
            unsupported: Vec::new(),
        };
        Reproducer::new(&setup, "00ff", &unit, Clause::Values, what(&case()))
    }

    #[test]
    fn a_case_is_told_in_words() {
        assert_eq!(
            describe(&case()),
            "T = float, axes = Int([0, 1]), input 0: float [2] = [1.0, NaN], \
             input 1: float [2] of [-1, 1), seed 7"
        );
    }

    #[test]
    fn a_reproducer_goes_round() {
        let folder = tempfile::tempdir().unwrap();
        let path = reproducer().write(&folder.path().join("new")).unwrap();
        assert_eq!(path.file_name().unwrap(), "Add-T-float-on-CPU-avx2.values.json");
        assert_eq!(Reproducer::read(&path).unwrap(), reproducer());
    }

    #[test]
    fn what_is_no_reproducer_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = reproducer().write(folder.path()).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        for (from, to, expected) in [
            ("\"tenon_check\": 1", "\"tenon_check\": 2", "expected version 1"),
            ("\"clause\": \"values\"", "\"clause\": \"luck\"", "no clause is called 'luck'"),
            ("\"seed\": 7", "\"seed\": -7", "input 1, fill: expected a seed"),
        ] {
            fs::write(&path, text.replace(from, to)).unwrap();
            let error = Reproducer::read(&path).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            assert!(error.contains("Add-T-float"), "{error}");
        }
    }
}
