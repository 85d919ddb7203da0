//! `testdata/fields.txt` as values, so that tests can walk every message and field.

use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    Scalar(String),
    /// An enumeration, open: any number is legal.
    Enum,
    Message(String),
    /// A message kept as encoded bytes.
    Raw,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Label {
    Single,
    Repeated,
    /// A map with keys of this scalar type.
    Map(String),
    /// A member of the group of this name.
    Oneof(String),
}

#[derive(Clone, Debug)]
pub struct Field {
    pub number: u32,
    pub name: String,
    pub label: Label,
    pub ty: Type,
}

/// Fields by message name, in order of their numbers.
pub type Schema = BTreeMap<String, Vec<Field>>;

pub fn schema() -> Schema {
    let mut schema = Schema::new();
    let mut current = String::new();
    for line in include_str!("../../testdata/fields.txt").lines() {
        if line.starts_with('#') {
            continue;
        }
        if line.starts_with("  ") {
            let fields = schema.get_mut(&current).expect("a message precedes its fields");
            fields.push(field(line));
        } else {
            current = line.to_owned();
            schema.insert(current.clone(), Vec::new());
        }
    }
    schema
}

fn field(line: &str) -> Field {
    let mut words = line.split_whitespace();
    let mut word = || words.next().unwrap_or_else(|| panic!("incomplete line: {line}")).to_owned();
    let number = word().parse().expect("a field number");
    let name = word();
    let mut kind = word();
    let label = match kind.as_str() {
        "repeated" => Label::Repeated,
        "map" => Label::Map(word()),
        "oneof" => Label::Oneof(word()),
        _ => Label::Single,
    };
    if label != Label::Single {
        kind = word();
    }
    let ty = match kind.as_str() {
        "message" => Type::Message(word()),
        "enum" => Type::Enum,
        "raw" => Type::Raw,
        _ => Type::Scalar(kind),
    };
    Field { number, name, label, ty }
}
