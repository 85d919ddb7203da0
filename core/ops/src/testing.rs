//! Runs shape functions with shapes written as text.
//!
//! A shape is written `[2,?,n]`: `?` is a separate unknown dimension, and a name is an unknown
//! dimension that is the same wherever it occurs; `?` alone is a shape of unknown rank. `= 3`,
//! `= [1,2]`, `= [[0,1],[2,3]]` are int32 constants. An error is shown as its message after `! `.

use std::collections::BTreeMap;
use tenon_author::testing::registered_ops;
use tenon_framework::{
    DType, KernelError, Tensor,
    abi::AttrKind,
    attr::{AttrList, AttrMap, AttrType, AttrValue},
    attr_view::AttrTable,
    infer::{self, Dimension, Symbol, SymbolicShape, Symbols, ValueInfo},
    op::{Allowed, ArgType, AttrDef, OpDef},
    testing::install_host,
};

/// The ops, and the named dimensions.
pub(crate) struct Bench {
    ops: BTreeMap<String, OpDef>,
    symbols: Symbols,
    names: BTreeMap<String, Symbol>,
}

impl Bench {
    pub(crate) fn new() -> Bench {
        install_host();
        Bench { ops: registered_ops(), symbols: Symbols::default(), names: BTreeMap::new() }
    }

    /// The value that a text describes.
    pub(crate) fn value(&mut self, text: &str) -> ValueInfo {
        if let Some(constant) = text.strip_prefix('=') {
            return ValueInfo::of_constant(constant_of(constant));
        }
        if text == "?" {
            return ValueInfo::default();
        }
        let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap();
        let dims = inner.split(',').filter(|dim| !dim.is_empty()).map(|dim| self.dim(dim));
        let dims: Vec<Dimension> = dims.collect();
        ValueInfo { shape: SymbolicShape::new(dims).unwrap(), ..ValueInfo::default() }
    }

    fn dim(&mut self, text: &str) -> Dimension {
        match text.parse() {
            Ok(size) => Dimension::Known(size),
            Err(_) if text == "?" => Dimension::Unknown(self.symbols.fresh()),
            Err(_) => {
                let symbol = self.names.entry(text.to_owned());
                Dimension::Unknown(*symbol.or_insert_with(|| self.symbols.fresh()))
            }
        }
    }

    /// A shape as text.
    pub(crate) fn show(&self, shape: &SymbolicShape) -> String {
        let Some(dims) = shape.dims() else { return "?".to_owned() };
        let name = |symbol: &Symbol| self.names.iter().find(|(_, named)| *named == symbol);
        let text = |dim: &Dimension| match dim {
            Dimension::Known(size) => size.to_string(),
            Dimension::Unknown(symbol) => name(symbol).map_or("?".into(), |(name, _)| name.clone()),
        };
        format!("[{}]", dims.iter().map(text).collect::<Vec<_>>().join(","))
    }

    /// Runs the shape function of an op.
    pub(crate) fn run(
        &mut self,
        op: &str,
        attrs: &[(&str, AttrValue)],
        inputs: &[&ValueInfo],
    ) -> Result<Vec<ValueInfo>, KernelError> {
        let op = &self.ops[op];
        let attrs = AttrTable::new(complete(op, attrs, inputs.len()));
        infer::infer(op, &attrs, inputs, &mut self.symbols)
    }
}

fn constant_of(text: &str) -> Tensor {
    fn flatten(value: &serde_json::Value, dims: &mut Vec<i64>, depth: usize, all: &mut Vec<i32>) {
        let Some(items) = value.as_array() else {
            all.push(value.as_i64().unwrap() as i32);
            return;
        };
        if dims.len() == depth {
            dims.push(items.len() as i64);
        }
        items.iter().for_each(|item| flatten(item, dims, depth + 1, all));
    }
    let (mut dims, mut all) = (Vec::new(), Vec::new());
    flatten(&serde_json::from_str(text).unwrap(), &mut dims, 0, &mut all);
    Tensor::from_slice(&dims, &all).unwrap()
}

/// The attributes that a test does not set: defaults, first allowed types, and as many values as
/// there are inputs.
fn complete(op: &OpDef, attrs: &[(&str, AttrValue)], inputs: usize) -> AttrMap {
    let mut map: AttrMap =
        attrs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let single = op.inputs.iter().filter(|arg| arg.number_attr.is_none()).count();
    let count = inputs.saturating_sub(single) as i64;
    for attr in &op.attrs {
        let lists = op.inputs.iter().any(|arg| arg.ty == ArgType::ListAttr(attr.name.clone()));
        let value = match &attr.default {
            Some(default) => default.clone(),
            None if attr.ty == AttrType::one(AttrKind::TYPE) => AttrValue::Type(first_type(attr)),
            None if lists => AttrValue::List(AttrList::Type(vec![DType::FLOAT; inputs])),
            None if attr.ty == AttrType::one(AttrKind::INT) => AttrValue::Int(count),
            None => continue,
        };
        map.entry(attr.name.clone()).or_insert(value);
    }
    map
}

fn first_type(attr: &AttrDef) -> DType {
    match &attr.allowed {
        Some(Allowed::Types(types)) if !types.contains(&DType::FLOAT) => types[0],
        _ => DType::FLOAT,
    }
}

/// The shapes of the outputs, joined by `; `, or the message of the error.
pub(crate) fn infer(op: &str, attrs: &[(&str, AttrValue)], inputs: &[&str]) -> String {
    let mut bench = Bench::new();
    let inputs: Vec<ValueInfo> = inputs.iter().map(|text| bench.value(text)).collect();
    match bench.run(op, attrs, &inputs.iter().collect::<Vec<_>>()) {
        Ok(outputs) => {
            let shapes = outputs.iter().map(|output| bench.show(&output.shape));
            shapes.collect::<Vec<_>>().join("; ")
        }
        Err(error) => format!("! {}", error.message),
    }
}

/// Checks one op with the same attributes over several inputs.
#[track_caller]
pub(crate) fn check(op: &str, attrs: &[(&str, AttrValue)], cases: &[(&[&str], &str)]) {
    for (inputs, expected) in cases {
        assert_eq!(infer(op, attrs, inputs), *expected, "{op} of {inputs:?}");
    }
}
