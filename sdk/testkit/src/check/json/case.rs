//! Cases.

use super::{JsonProblem, tensor_from_json, tensor_to_json};
use crate::{
    attrs,
    check::{Argument, CheckCase, Fill, Tag},
};
use serde_json::{Map, Value, json};
use tenon_framework::{Tensor, attr::AttrMap};

/// Writes a case. A tensor that cannot be written (its elements are resources or variants) is `null`,
/// which [`case_from_json`] refuses.
pub fn case_to_json(case: &CheckCase) -> Value {
    json!({
        "name": case.name,
        "tags": case.tags.iter().map(|tag| tag.name()).collect::<Vec<_>>(),
        "attrs": attrs::to_json(&case.attrs, &tensor),
        "inputs": case.inputs.iter().map(argument).collect::<Vec<_>>(),
    })
}

fn tensor(tensor: &Tensor) -> Value {
    tensor_to_json(tensor).unwrap_or(Value::Null)
}

fn argument(argument: &Argument) -> Value {
    let mut json = json!({
        "dtype": argument.dtype.name(),
        "dims": argument.dims,
        "fill": fill(&argument.fill),
    });
    if argument.constant {
        json["constant"] = json!(true);
    }
    json
}

fn fill(fill: &Fill) -> Value {
    match fill {
        Fill::Uniform { low, high, seed } => {
            let (low, high) = (attrs::number_json(*low), attrs::number_json(*high));
            json!({ "uniform": { "low": low, "high": high, "seed": seed } })
        }
        Fill::Whole { low, high, seed } => {
            json!({ "whole": { "low": low, "high": high, "seed": seed } })
        }
        Fill::Stagnation => json!({ "stagnation": {} }),
        Fill::Special { seed } => json!({ "special": { "seed": seed } }),
        Fill::Huge { seed } => json!({ "huge": { "seed": seed } }),
        Fill::Permutation { seed } => json!({ "permutation": { "seed": seed } }),
        Fill::Explicit(value) => json!({ "explicit": elements(tensor(value)) }),
    }
}

/// A tensor as JSON without type and shape, which are written with the input.
fn elements(mut tensor: Value) -> Value {
    if let Some(parts) = tensor.as_object_mut() {
        parts.retain(|part, _| part != "dtype" && part != "dims");
    }
    tensor
}

/// Reads a case.
///
/// # Errors
/// The malformed part, and its place.
pub fn case_from_json(json: &Value) -> Result<CheckCase, JsonProblem> {
    let name = json["name"].as_str();
    let name = name.ok_or_else(|| JsonProblem::new("name", "a string", &json["name"]))?.to_owned();
    let read_tag = |tag: &Value| {
        let known = tag.as_str().and_then(Tag::from_name);
        known.ok_or_else(|| JsonProblem::new("tags", "the name of a tag", tag))
    };
    let read_input = |(at, input)| read_argument(at, input);
    Ok(CheckCase {
        name,
        tags: list(json, "tags")?.iter().map(read_tag).collect::<Result<_, _>>()?,
        attrs: read_attrs(&json["attrs"])?,
        inputs: list(json, "inputs")?
            .iter()
            .enumerate()
            .map(read_input)
            .collect::<Result<_, _>>()?,
    })
}

fn list<'j>(json: &'j Value, key: &str) -> Result<&'j [Value], JsonProblem> {
    let list = json[key].as_array().map(Vec::as_slice);
    list.ok_or_else(|| JsonProblem::new(key, "a list", &json[key]))
}

fn read_attrs(json: &Value) -> Result<AttrMap, JsonProblem> {
    let empty = Map::new();
    let map = match json {
        Value::Null => &empty,
        _ => json.as_object().ok_or_else(|| JsonProblem::new("attrs", "an object", json))?,
    };
    attrs::attrs(map, &mut |value| tensor_from_json(value))
        .map_err(|(name, problem)| JsonProblem { place: format!("attrs, '{name}'"), problem })
}

fn read_argument(at: usize, json: &Value) -> Result<Argument, JsonProblem> {
    let place = |part: &str| JsonProblem::at(format!("input {at}, {part}"));
    let dims = attrs::dims(&json["dims"]).map_err(place("dims"))?;
    let dtype = attrs::dtype(&json["dtype"]).map_err(place("dtype"))?;
    let fill = read_fill(at, json)?;
    let constant = match &json["constant"] {
        Value::Null => false,
        json => attrs::boolean(json).map_err(place("constant"))?,
    };
    Ok(Argument { dtype, dims, fill, constant })
}

/// Reads the fill of an input.
fn read_fill(at: usize, input: &Value) -> Result<Fill, JsonProblem> {
    let json = &input["fill"];
    let place = || format!("input {at}, fill");
    let only = json.as_object().filter(|object| object.len() == 1);
    let Some((kind, value)) = only.and_then(|object| object.iter().next()) else {
        return Err(JsonProblem::new(place(), "one recipe", json));
    };
    let seed = || {
        let seed = value["seed"].as_u64();
        seed.ok_or_else(|| JsonProblem::new(place(), "a seed", value))
    };
    let number = |key: &str| attrs::number(&value[key]).map_err(JsonProblem::at(place()));
    let integer = |key: &str| attrs::int(&value[key]).map_err(JsonProblem::at(place()));
    Ok(match kind.as_str() {
        "uniform" => Fill::Uniform { low: number("low")?, high: number("high")?, seed: seed()? },
        "whole" => Fill::Whole { low: integer("low")?, high: integer("high")?, seed: seed()? },
        "stagnation" => Fill::Stagnation,
        "special" => Fill::Special { seed: seed()? },
        "huge" => Fill::Huge { seed: seed()? },
        "permutation" => Fill::Permutation { seed: seed()? },
        "explicit" => {
            let mut tensor = value.as_object().cloned().unwrap_or_default();
            for part in ["dtype", "dims"] {
                tensor.insert(part.to_owned(), input[part].clone());
            }
            let tensor = tensor_from_json(&Value::Object(tensor));
            Fill::Explicit(tensor.map_err(JsonProblem::at(place()))?)
        }
        _ => {
            let expected = "uniform, whole, stagnation, special, huge, permutation or explicit";
            return Err(JsonProblem::new(place(), expected, json));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_framework::{DType, attr::AttrValue};

    fn case() -> CheckCase {
        let explicit = Tensor::from_slice(&[2], &[1i32, -7]).unwrap();
        let argument = |dtype, dims: &[i64], fill| Argument {
            dtype,
            dims: dims.to_vec(),
            fill,
            constant: dtype == DType::INT32,
        };
        CheckCase {
            name: "prime_1".into(),
            tags: vec![Tag::Prime, Tag::Broadcast],
            attrs: AttrMap::from([("T".into(), AttrValue::Type(DType::FLOAT))]),
            inputs: vec![
                argument(
                    DType::FLOAT,
                    &[7, 3],
                    Fill::Uniform { low: -1.0, high: 1.0, seed: u64::MAX },
                ),
                argument(DType::FLOAT, &[], Fill::Special { seed: 1 }),
                argument(DType::INT64, &[3], Fill::Whole { low: -3, high: i64::MAX, seed: 0 }),
                argument(DType::FLOAT, &[65], Fill::Stagnation),
                argument(DType::FLOAT, &[3], Fill::Huge { seed: 3 }),
                argument(DType::INT64, &[5], Fill::Permutation { seed: 2 }),
                argument(DType::INT32, &[2], Fill::Explicit(explicit)),
            ],
        }
    }

    #[test]
    fn a_case_goes_round() {
        let text = case_to_json(&case()).to_string();
        let back = case_from_json(&serde_json::from_str(&text).unwrap()).unwrap();
        assert_eq!(format!("{back:?}"), format!("{:?}", case()));
        assert_eq!(case_to_json(&back).to_string(), text);
    }

    #[test]
    fn what_is_malformed_is_named_with_its_place() {
        let broken = |key: &str, value: Value| {
            let mut json = case_to_json(&case());
            json[key] = value;
            case_from_json(&json).unwrap_err().to_string()
        };
        assert_eq!(broken("name", json!(1)), "name: expected a string, found 1");
        assert_eq!(
            broken("tags", json!(["big"])),
            "tags: expected the name of a tag, found \"big\""
        );
        let input = json!([{"dtype": "float", "dims": [1], "fill": {"uniform": {"low": 0}}}]);
        assert!(broken("inputs", input).starts_with("input 0, fill: expected a number"));
        let input = json!([{"dtype": "float", "dims": [1], "fill": {"explicit": null}}]);
        assert!(broken("inputs", input).starts_with("input 0, fill: expected a list"));
        let value = json!({"values": [1, 2]});
        let input = json!([{"dtype": "float", "dims": [1], "fill": {"explicit": value}}]);
        let message = broken("inputs", input);
        assert!(
            message.starts_with("input 0, fill: expected the elements of a float of shape [1]"),
            "{message}"
        );
    }
}
