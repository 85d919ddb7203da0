//! Attribute values of nodes.

mod from_attr;

pub use from_attr::FromAttr;

use crate::{shape::PartialShape, tensor::Tensor};
use std::{collections::BTreeMap, fmt};
use tenon_abi::{AttrKind, DType};

/// A function-valued attribute.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FuncValue {
    /// Name in the graph's function library.
    pub name: String,
    /// Serialised `tensorflow.NameAttrList`.
    pub call: Vec<u8>,
    /// Serialised `tensorflow.FunctionDef`; empty when the library has no function of that name.
    pub definition: Vec<u8>,
}

/// A list of attribute values of one kind.
#[derive(Debug, Clone)]
pub enum AttrList {
    /// `list(int)`
    Int(Vec<i64>),
    /// `list(float)`
    Float(Vec<f32>),
    /// `list(bool)`
    Bool(Vec<bool>),
    /// `list(string)`
    String(Vec<Vec<u8>>),
    /// `list(type)`
    Type(Vec<DType>),
    /// `list(shape)`
    Shape(Vec<PartialShape>),
    /// `list(tensor)`
    Tensor(Vec<Tensor>),
    /// `list(func)`
    Func(Vec<FuncValue>),
}

/// The value of an attribute.
#[derive(Debug, Clone)]
pub enum AttrValue {
    /// `int`
    Int(i64),
    /// `float`
    Float(f32),
    /// `bool`
    Bool(bool),
    /// `string`: any bytes.
    String(Vec<u8>),
    /// `type`
    Type(DType),
    /// `shape`
    Shape(PartialShape),
    /// `tensor`, in host memory
    Tensor(Tensor),
    /// `func`
    Func(FuncValue),
    /// A list.
    List(AttrList),
}

/// Attributes by name, in the order of names.
pub type AttrMap = BTreeMap<String, AttrValue>;

/// Type of an attribute: kind of the items, and whether it is a list.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AttrType {
    /// Kind of the value, or of the items.
    pub kind: AttrKind,
    /// Whether it is a list.
    pub is_list: bool,
}

impl AttrType {
    /// A single value of this kind.
    pub const fn one(kind: AttrKind) -> AttrType {
        AttrType { kind, is_list: false }
    }

    /// A list of this kind.
    pub const fn list(kind: AttrKind) -> AttrType {
        AttrType { kind, is_list: true }
    }

    /// The type of this name, such as `int` or `list(shape)`.
    pub fn parse(text: &str) -> Option<AttrType> {
        let item = text.strip_prefix("list(").and_then(|rest| rest.strip_suffix(')'));
        let kinds = (AttrKind::INT.0..=AttrKind::FUNC.0).map(AttrKind);
        let kind = kinds.into_iter().find(|&kind| kind_name(kind) == item.unwrap_or(text))?;
        Some(AttrType { kind, is_list: item.is_some() })
    }
}

/// Name of a kind, as op definitions write it.
pub fn kind_name(kind: AttrKind) -> &'static str {
    match kind {
        AttrKind::INT => "int",
        AttrKind::FLOAT => "float",
        AttrKind::BOOL => "bool",
        AttrKind::STRING => "string",
        AttrKind::TYPE => "type",
        AttrKind::SHAPE => "shape",
        AttrKind::TENSOR => "tensor",
        AttrKind::FUNC => "func",
        _ => "unknown",
    }
}

impl fmt::Display for AttrType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = kind_name(self.kind);
        if self.is_list { write!(f, "list({name})") } else { f.write_str(name) }
    }
}

impl fmt::Debug for AttrType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl AttrList {
    /// Kind of the items.
    pub fn kind(&self) -> AttrKind {
        match self {
            AttrList::Int(_) => AttrKind::INT,
            AttrList::Float(_) => AttrKind::FLOAT,
            AttrList::Bool(_) => AttrKind::BOOL,
            AttrList::String(_) => AttrKind::STRING,
            AttrList::Type(_) => AttrKind::TYPE,
            AttrList::Shape(_) => AttrKind::SHAPE,
            AttrList::Tensor(_) => AttrKind::TENSOR,
            AttrList::Func(_) => AttrKind::FUNC,
        }
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        match self {
            AttrList::Int(items) => items.len(),
            AttrList::Float(items) => items.len(),
            AttrList::Bool(items) => items.len(),
            AttrList::String(items) => items.len(),
            AttrList::Type(items) => items.len(),
            AttrList::Shape(items) => items.len(),
            AttrList::Tensor(items) => items.len(),
            AttrList::Func(items) => items.len(),
        }
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An empty list of this kind; `None` for an unknown kind.
    pub fn empty(kind: AttrKind) -> Option<AttrList> {
        Some(match kind {
            AttrKind::INT => AttrList::Int(Vec::new()),
            AttrKind::FLOAT => AttrList::Float(Vec::new()),
            AttrKind::BOOL => AttrList::Bool(Vec::new()),
            AttrKind::STRING => AttrList::String(Vec::new()),
            AttrKind::TYPE => AttrList::Type(Vec::new()),
            AttrKind::SHAPE => AttrList::Shape(Vec::new()),
            AttrKind::TENSOR => AttrList::Tensor(Vec::new()),
            AttrKind::FUNC => AttrList::Func(Vec::new()),
            _ => return None,
        })
    }
}

impl AttrValue {
    /// Type of the value.
    pub fn attr_type(&self) -> AttrType {
        match self {
            AttrValue::Int(_) => AttrType::one(AttrKind::INT),
            AttrValue::Float(_) => AttrType::one(AttrKind::FLOAT),
            AttrValue::Bool(_) => AttrType::one(AttrKind::BOOL),
            AttrValue::String(_) => AttrType::one(AttrKind::STRING),
            AttrValue::Type(_) => AttrType::one(AttrKind::TYPE),
            AttrValue::Shape(_) => AttrType::one(AttrKind::SHAPE),
            AttrValue::Tensor(_) => AttrType::one(AttrKind::TENSOR),
            AttrValue::Func(_) => AttrType::one(AttrKind::FUNC),
            AttrValue::List(list) => AttrType::list(list.kind()),
        }
    }

    /// The function of this name in the graph's library, without attributes of its own.
    pub fn function(name: &str) -> AttrValue {
        AttrValue::Func(FuncValue { name: name.to_owned(), ..FuncValue::default() })
    }

    /// The type, when it is one.
    pub fn as_type(&self) -> Option<DType> {
        if let AttrValue::Type(dtype) = self { Some(*dtype) } else { None }
    }

    /// The integer, when it is one.
    pub fn as_int(&self) -> Option<i64> {
        if let AttrValue::Int(value) = self { Some(*value) } else { None }
    }

    /// The text, when it is a string of UTF-8.
    pub fn as_text(&self) -> Option<&str> {
        if let AttrValue::String(bytes) = self { std::str::from_utf8(bytes).ok() } else { None }
    }
}

macro_rules! from_values {
    ($($ty:ty => $value:ident => $make:expr;)*) => {$(
        impl From<$ty> for AttrValue {
            fn from($value: $ty) -> AttrValue { $make }
        }
    )*};
}

from_values! {
    i64 => value => AttrValue::Int(value);
    f32 => value => AttrValue::Float(value);
    bool => value => AttrValue::Bool(value);
    &str => value => AttrValue::String(value.as_bytes().to_vec());
    DType => value => AttrValue::Type(value);
    PartialShape => value => AttrValue::Shape(value);
    Tensor => value => AttrValue::Tensor(value);
    Vec<i64> => value => AttrValue::List(AttrList::Int(value));
    Vec<DType> => value => AttrValue::List(AttrList::Type(value));
}
