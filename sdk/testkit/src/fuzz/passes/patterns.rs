//! Patterns of fusions, exactly as declared, and nearly so.

use super::{
    make::broadcasting,
    pool::{Pool, Value, tensor_of},
};
use std::{collections::HashMap, sync::Arc};
use tenon_framework::{
    DType,
    attr::{AttrList, AttrMap, AttrValue},
    fusion::{Call, Expr, FusionDef, Term, Value as Literal},
};

/// Adds the nodes of some fusion's pattern.
pub(super) fn pattern(pool: &mut Pool<'_, '_>) -> Option<()> {
    let fusions: Vec<Arc<FusionDef>> = pool.registry.fusions().cloned().collect();
    if fusions.is_empty() {
        return None;
    }
    let fusion = Arc::clone(&fusions[pool.bytes.below(fusions.len())]);
    let dtypes =
        [DType::FLOAT, DType::FLOAT, DType::FLOAT, DType::DOUBLE, DType::HALF, DType::BFLOAT16];
    let dtype = pool.bytes.of(&dtypes);
    Writer { pool, fusions: &fusions, dtype, named: HashMap::new(), depth: 0 }
        .expr(&fusion.pattern, &Place::default())
        .map(drop)
}

/// Where a value of a pattern is read.
#[derive(Default)]
struct Place {
    op: String,
    at: usize,
    /// Dimensions of another input of the node, where they are known by now.
    beside: Option<Vec<i64>>,
}

struct Writer<'p, 'r, 'd> {
    pool: &'p mut Pool<'r, 'd>,
    fusions: &'p [Arc<FusionDef>],
    dtype: DType,
    named: HashMap<String, Value>,
    /// Patterns in patterns.
    depth: usize,
}

impl Writer<'_, '_, '_> {
    fn expr(&mut self, expr: &Expr, place: &Place) -> Option<Value> {
        if let Some(value) = expr.name.as_ref().and_then(|name| self.named.get(name)) {
            return Some(value.clone());
        }
        let value = match &expr.term {
            Term::Tensor => self.leaf(expr.name.as_deref().unwrap_or_default(), place)?,
            Term::Number(number) => self.number(*number, place)?,
            Term::Call(call) => self.call(call)?,
            Term::Rest => return None,
        };
        if let Some(name) = &expr.name {
            self.named.insert(name.clone(), value.clone());
        }
        Some(value)
    }

    fn call(&mut self, call: &Call) -> Option<Value> {
        let op = self.pool.bytes.of(&call.ops.iter().map(String::as_str).collect::<Vec<_>>());
        if op.starts_with('_') {
            return self.fused(op, call);
        }
        // Calls first, so that the shapes of leaves can follow from theirs.
        let mut values: Vec<Option<Value>> = vec![None; call.args.len()];
        for calls in [true, false] {
            for (at, arg) in call.args.iter().enumerate() {
                if matches!(arg.term, Term::Call(_)) == calls {
                    let beside = values.iter().flatten().next().map(|value| value.dims.clone());
                    let place = Place { op: op.to_owned(), at, beside };
                    values[at] = Some(self.expr(arg, &place)?);
                }
            }
        }
        let inputs: Vec<_> = values.iter().flatten().map(|value| value.output).collect();
        let attrs = self.attrs(op, call);
        self.pool.node(op, &inputs, attrs)?.into_iter().next()
    }

    /// The nodes of which the fused op is made.
    fn fused(&mut self, op: &str, call: &Call) -> Option<Value> {
        let makes =
            |fusion: &&Arc<FusionDef>| fusion.result.op == op && !reads(&fusion.pattern, op);
        let fitting: Vec<Arc<FusionDef>> = self.fusions.iter().filter(makes).cloned().collect();
        if fitting.is_empty() || self.depth == 3 {
            return None;
        }
        let fusion = &fitting[self.pool.bytes.below(fitting.len())];
        let mut named = HashMap::new();
        // What `_FusedGelu` reads is a part of the pattern.
        if let [Expr { term: Term::Call(inner), .. }] = &call.args[..] {
            named.insert("x".to_owned(), self.call(inner)?);
        }
        let mut inner = Writer {
            pool: &mut *self.pool,
            fusions: self.fusions,
            dtype: self.dtype,
            named,
            depth: self.depth + 1,
        };
        inner.expr(&fusion.pattern, &Place::default())
    }

    fn attrs(&mut self, op: &str, call: &Call) -> AttrMap {
        let mut attrs = AttrMap::new();
        if op.contains("Conv") {
            attrs.insert("strides".to_owned(), vec![1i64, 1, 1, 1].into());
            let padding = self.pool.bytes.of(&["VALID", "SAME"]);
            attrs.insert("padding".to_owned(), padding.into());
        }
        for (name, value) in &call.attrs {
            if let Some(value) = literal(name, value) {
                attrs.insert(name.clone(), value);
            }
        }
        // Seldom another one than the pattern says.
        if self.pool.bytes.one_in(12) {
            for value in attrs.values_mut() {
                if let AttrValue::Bool(value) = value {
                    *value = !*value;
                }
            }
        }
        attrs
    }

    /// A constant that a pattern takes for a number, of a shape that may broadcast, and nearly of its value.
    fn number(&mut self, number: f64, place: &Place) -> Option<Value> {
        let beside = place.beside.clone().unwrap_or_else(|| vec![4]);
        let dims = match self.pool.bytes.below(2) {
            0 => Vec::new(),
            _ => broadcasting(self.pool, &beside),
        };
        let near = if self.pool.bytes.one_in(8) { 1.0 + 2e-8 } else { 1.0 };
        let count = usize::try_from(dims.iter().product::<i64>()).ok()?;
        let tensor = tensor_of(self.dtype, &dims, &vec![number * near; count])?;
        self.pool.constant(tensor)
    }

    fn leaf(&mut self, name: &str, place: &Place) -> Option<Value> {
        match name {
            "axes" | "axes2" => {
                let axis = self.pool.bytes.of(&[-1, -1, -1, 0]);
                return self.pool.ints(&[axis]);
            }
            "c" | "low" | "eps" => {
                let number = if name == "low" { -9.0 } else { 0.125 };
                return self.number(number, place);
            }
            _ => {}
        }
        let dims = self.dims(name, place);
        let dims = self.changed(dims);
        let dtype = if name == "keep" { DType::BOOL } else { self.dtype };
        let known = self.pool.pick_alive(|value| value.dtype == dtype && value.dims == dims);
        match known {
            Some(value) if self.pool.bytes.one_in(4) => Some(value),
            _ => self.pool.leaf(dtype, &dims),
        }
    }

    /// The dimensions of what a node of a pattern reads.
    fn dims(&mut self, name: &str, place: &Place) -> Vec<i64> {
        let of = self.pool.bytes.below(4);
        match (place.op.as_str(), place.at, name) {
            (_, _, "keep") => match of {
                0 => vec![1, 1, 1, 5],
                1 => vec![4, 1, 1, 5],
                2 => vec![3, 5],
                _ => vec![1],
            },
            (_, _, "mask") => match of {
                0 => vec![1, 1, 1, 5],
                1 => vec![4, 1, 1, 5],
                2 => vec![3, 5],
                _ => place.beside.clone().unwrap_or_default(),
            },
            ("MatMul", 0, _) => vec![3, 4],
            ("MatMul", ..) => vec![4, 4],
            ("Conv2D" | "DepthwiseConv2dNative", 0, _) => vec![1, 4, 4, 4],
            ("Conv2D", ..) => vec![2, 2, 4, 4],
            ("DepthwiseConv2dNative", ..) => vec![2, 2, 4, 1],
            ("BatchMatMulV2", _, "q") => vec![1, 2, 3, 4],
            ("BatchMatMulV2", ..) => vec![1, 2, 5, 4],
            ("Einsum", _, "q") => vec![1, 3, 2, 4],
            ("Einsum", ..) => vec![1, 5, 2, 4],
            (_, _, "bias" | "scale" | "offset" | "mean" | "variance") => vec![4],
            (_, _, "r") => place.beside.clone().unwrap_or_default(),
            _ => [&[3, 4][..], &[2, 3, 4], &[4], &[1, 4]][of].to_vec(),
        }
    }

    /// Seldom other dimensions: one that is 1, one more, or one less.
    fn changed(&mut self, mut dims: Vec<i64>) -> Vec<i64> {
        match self.pool.bytes.below(16) {
            13 if !dims.is_empty() => {
                let at = self.pool.bytes.below(dims.len());
                dims[at] = 1;
            }
            14 => dims.insert(0, 1),
            15 if !dims.is_empty() => {
                dims.remove(0);
            }
            _ => {}
        }
        dims
    }
}

/// Whether a pattern has an op.
fn reads(expr: &Expr, op: &str) -> bool {
    match &expr.term {
        Term::Call(call) => {
            call.ops.iter().any(|own| own == op) || call.args.iter().any(|arg| reads(arg, op))
        }
        _ => false,
    }
}

/// The attribute that a pattern asks for.
fn literal(name: &str, value: &Literal) -> Option<AttrValue> {
    Some(match value {
        Literal::Bool(value) => (*value).into(),
        Literal::Int(value) => AttrValue::Int(*value),
        Literal::Float(value) => AttrValue::Float(*value as f32),
        Literal::Text(text) => text.as_str().into(),
        Literal::List(items) if items.is_empty() && name != "fused_ops" => {
            AttrValue::List(AttrList::Int(Vec::new()))
        }
        _ => return None,
    })
}
