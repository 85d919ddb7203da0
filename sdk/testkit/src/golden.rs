//! Cases of one op, as TensorFlow computed them (tests/goldens/README.md).

use crate::{
    archive::Archive,
    attrs::{self, AttrProblem},
    compare::Rule,
    error::TestkitError,
};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::{
    fs,
    path::{Path, PathBuf},
};
use tenon_framework::{Code, DType, Tensor, attr::AttrMap, tensor::TensorError};

/// The expected value of an output.
#[derive(Debug, Clone)]
pub struct ExpectedOutput {
    /// Element type; the index has quantised types under the type that stores them.
    pub dtype: DType,
    /// Shape.
    pub dims: Vec<i64>,
    /// The value, and how near to it a result must be; `None` where TensorFlow leaves it undefined.
    pub value: Option<(Tensor, Rule)>,
}

/// The expected result of a case.
#[derive(Debug, Clone)]
pub enum Expected {
    /// These outputs.
    Outputs(Vec<ExpectedOutput>),
    /// A refusal with this code.
    Error(Code),
}

/// One case of an op.
#[derive(Debug, Clone)]
pub struct GoldenCase {
    /// Name of the op.
    pub op: String,
    /// Name of the case, unique for the op.
    pub name: String,
    /// Every attribute of the op's definition.
    pub attrs: AttrMap,
    /// Inputs, in host memory.
    pub inputs: Vec<Tensor>,
    /// Which inputs are constants in real graphs.
    pub const_inputs: Vec<usize>,
    /// What it gives.
    pub expected: Expected,
}

#[derive(Deserialize)]
struct IndexFile {
    op: String,
    cases: Vec<IndexCase>,
}

#[derive(Deserialize)]
struct IndexCase {
    name: String,
    attrs: Map<String, Value>,
    inputs: Vec<IndexTensor>,
    outputs: Vec<IndexTensor>,
    const_inputs: Vec<usize>,
    tolerance: Option<Value>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct IndexTensor {
    dtype: Value,
    shape: Value,
    compare: Option<String>,
    tolerance: Option<Value>,
}

/// A problem with its place, until the file is known.
struct Placed {
    place: String,
    problem: AttrProblem,
}

/// Reads all cases of an op from its index; the archive is beside it.
///
/// # Errors
/// A file that is missing, an index or array that is not what the format says.
pub fn read_op(index: &Path) -> Result<Vec<GoldenCase>, TestkitError> {
    let file: IndexFile = read_json(index)?;
    let mut archive = Archive::open(&index.with_extension("npz"))?;
    file.cases.iter().map(|case| read_case(index, &file.op, case, &mut archive)).collect()
}

/// The indexes of all ops in a folder, in the order of names.
///
/// # Errors
/// The folder cannot be read, or has none.
pub fn indexes(folder: &Path) -> Result<Vec<PathBuf>, TestkitError> {
    let failed = |detail: String| TestkitError::File { path: folder.to_owned(), detail };
    let entries = fs::read_dir(folder).map_err(|error| failed(error.to_string()))?;
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| failed(error.to_string()))?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            found.push(path);
        }
    }
    found.sort();
    if found.is_empty() {
        return Err(failed("the folder has no index".to_owned()));
    }
    Ok(found)
}

/// Reads a JSON file.
pub(crate) fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, TestkitError> {
    let failed = |detail: String| TestkitError::File { path: path.to_owned(), detail };
    let text = fs::read(path).map_err(|error| failed(error.to_string()))?;
    serde_json::from_slice(&text).map_err(|error| failed(error.to_string()))
}

fn read_case(
    path: &Path,
    op: &str,
    case: &IndexCase,
    archive: &mut Archive,
) -> Result<GoldenCase, TestkitError> {
    let index_error = |Placed { place, problem }| TestkitError::Index {
        path: path.to_owned(),
        place: format!("case '{}', {place}", case.name),
        expected: problem.expected,
        found: problem.found,
    };
    let attrs = read_attrs(case, archive)?.map_err(index_error)?;
    let mut inputs = Vec::with_capacity(case.inputs.len());
    for (at, input) in case.inputs.iter().enumerate() {
        let (dtype, dims) = header(&format!("input {at}"), input).map_err(index_error)?;
        inputs.push(archive.tensor(&format!("{}.in{at}", case.name), dtype, &dims)?);
    }
    let expected = match &case.error {
        Some(code) => Expected::Error(error_code(code).map_err(index_error)?),
        None => {
            let mut outputs = Vec::with_capacity(case.outputs.len());
            for (at, output) in case.outputs.iter().enumerate() {
                let head = header(&format!("output {at}"), output).map_err(index_error)?;
                let tolerance = output.tolerance.as_ref().or(case.tolerance.as_ref());
                let rule = OutputRule { tolerance, shape_only: output.compare.is_some() };
                outputs.push(rule.read(case, at, head, archive)?.map_err(index_error)?);
            }
            Expected::Outputs(outputs)
        }
    };
    if let Some(&at) = case.const_inputs.iter().find(|&&at| at >= inputs.len()) {
        let problem = AttrProblem {
            expected: format!("numbers below {}", inputs.len()),
            found: at.to_string(),
        };
        return Err(index_error(Placed { place: "const_inputs".to_owned(), problem }));
    }
    Ok(GoldenCase {
        op: op.to_owned(),
        name: case.name.clone(),
        attrs,
        inputs,
        const_inputs: case.const_inputs.clone(),
        expected,
    })
}

/// The outer error is the archive's, the inner the index's.
type Nested<T> = Result<Result<T, Placed>, TestkitError>;

fn read_attrs(case: &IndexCase, archive: &mut Archive) -> Nested<AttrMap> {
    let mut archive_error = None;
    let mut tensor = |name: &Value| {
        let name = attrs::text(name)?;
        let preferred = case.attrs.get("dtype").and_then(|json| json.get("type"));
        let preferred = preferred.and_then(|json| attrs::dtype(json).ok());
        archive.tensor_of_any_shape(name, preferred).map_err(|error| {
            let found = error.to_string();
            archive_error = Some(error);
            AttrProblem { expected: "an array".to_owned(), found }
        })
    };
    let read = attrs::attrs(&case.attrs, &mut tensor);
    if let Some(error) = archive_error {
        return Err(error);
    }
    Ok(read.map_err(|(name, problem)| Placed { place: format!("attribute '{name}'"), problem }))
}

fn header(place: &str, json: &IndexTensor) -> Result<(DType, Vec<i64>), Placed> {
    let placed = |problem| Placed { place: place.to_owned(), problem };
    Ok((attrs::dtype(&json.dtype).map_err(placed)?, attrs::dims(&json.shape).map_err(placed)?))
}

fn error_code(name: &str) -> Result<Code, Placed> {
    Code::from_name(name).filter(|code| !code.is_ok()).ok_or_else(|| Placed {
        place: "error".to_owned(),
        problem: AttrProblem { expected: "a canonical code".to_owned(), found: name.to_owned() },
    })
}

/// How the value of an output is to be compared.
struct OutputRule<'a> {
    tolerance: Option<&'a Value>,
    shape_only: bool,
}

impl OutputRule<'_> {
    fn read(
        &self,
        case: &IndexCase,
        at: usize,
        (dtype, dims): (DType, Vec<i64>),
        archive: &mut Archive,
    ) -> Nested<ExpectedOutput> {
        if self.shape_only {
            return Ok(Ok(ExpectedOutput { dtype, dims, value: None }));
        }
        let json = self.tolerance.unwrap_or(&Value::Null);
        let rule = match json.get("abs_terms").and_then(Value::as_f64) {
            Some(factor) => {
                let terms = archive.doubles(&format!("{}.abs{at}", case.name))?;
                Rule::AbsTerms { factor, terms }
            }
            None => match plain_rule(json) {
                Some(rule) => rule,
                None => return Ok(Err(tolerance_problem(at, json))),
            },
        };
        let value = archive.tensor(&format!("{}.out{at}", case.name), dtype, &dims)?;
        Ok(Ok(ExpectedOutput { dtype, dims, value: Some((value, rule)) }))
    }
}

/// A tolerance that needs no array.
pub(crate) fn plain_rule(json: &Value) -> Option<Rule> {
    if json.as_str() == Some("exact") {
        return Some(Rule::Exact);
    }
    if let Some(limit) = json.get("ulp").and_then(Value::as_u64) {
        return Some(Rule::Ulp(limit));
    }
    let number = |name: &str| json.get(name).and_then(Value::as_f64);
    Some(Rule::Close { absolute: number("absolute")?, relative: number("relative")? })
}

/// The same bytes as elements of a type that is stored alike.
pub(crate) fn retyped(value: &Tensor, dtype: DType) -> Result<Tensor, TensorError> {
    if value.dtype() == dtype {
        return Ok(value.clone());
    }
    Tensor::from_bytes(dtype, value.shape().dims(), value.as_bytes()?)
}

fn tolerance_problem(at: usize, json: &Value) -> Placed {
    Placed {
        place: format!("tolerance of output {at}"),
        problem: AttrProblem {
            expected: "\"exact\", {\"ulp\": n} or {\"abs_terms\": c}".to_owned(),
            found: json.to_string(),
        },
    }
}
