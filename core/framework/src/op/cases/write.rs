//! Writes cases as the texts that they are read from.

use super::{
    AttrChoice, Case, InputCase, Item, SizeChoice, Sizes, TensorCase, Term, TermRange, Values,
};
use crate::{
    attr::{AttrList, AttrValue},
    shape::PartialShape,
    tensor::Tensor,
};
use std::fmt::{self, Display, Formatter};
use tenon_abi::DType;

/// Items separated by commas.
struct Joined<'a, T>(&'a [T], &'static str);

impl<T: Display> Display for Joined<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (at, item) in self.0.iter().enumerate() {
            f.write_str(if at > 0 { self.1 } else { "" })?;
            item.fmt(f)?;
        }
        Ok(())
    }
}

impl Display for Case {
    /// The attributes, then the sizes, then the inputs, whatever the order in which they were read.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.attrs.iter().try_for_each(|attr| write!(f, "; {attr}"))?;
        self.symbols.iter().try_for_each(|size| write!(f, "; {size}"))?;
        self.inputs.iter().try_for_each(|input| write!(f, "; {input}"))
    }
}

impl Display for AttrChoice {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let values: Vec<Value<'_>> = self.values.iter().map(Value).collect();
        match &values[..] {
            [value] => write!(f, "{} = {value}", self.name),
            values => write!(f, "{} in {{{}}}", self.name, Joined(values, ", ")),
        }
    }
}

impl Display for SizeChoice {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.sizes {
            Sizes::Range(first, end) => write!(f, "{} in {first}..{end}", self.symbol),
            Sizes::List(sizes) => write!(f, "{} in {{{}}}", self.symbol, Joined(sizes, ", ")),
        }
    }
}

impl Display for InputCase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, Joined(&self.tensors, ", "))
    }
}

impl Display for TensorCase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "[{}]", Joined(&self.dims, ","))?;
        match &self.values {
            Values::Any => Ok(()),
            Values::Uniform(low, high) => write!(f, " uniform({low:?}, {high:?})"),
            Values::Integers(range) => write!(f, " integers({range})"),
            Values::Distinct(range) => write!(f, " distinct({range})"),
            Values::Permutation => f.write_str(" permutation"),
            Values::List(items) => write!(f, " values({})", Joined(items, ", ")),
            Values::Strings(texts) => {
                let texts: Vec<Quoted<'_>> = texts.iter().map(|text| Quoted(text)).collect();
                write!(f, " strings({})", Joined(&texts, ", "))
            }
        }
    }
}

impl Display for Term {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.symbol {
            None => return write!(f, "{}", self.offset),
            Some((1, symbol)) => f.write_str(symbol)?,
            Some((-1, symbol)) => write!(f, "-{symbol}")?,
            Some((factor, symbol)) => write!(f, "{factor}*{symbol}")?,
        }
        if self.offset == 0 { Ok(()) } else { write!(f, "{:+}", self.offset) }
    }
}

impl Display for TermRange {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}

impl Display for Item {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Item::Term(term) => term.fmt(f),
            // With a fraction or an exponent, so that it is not read as an integer.
            Item::Float(value) => write!(f, "{value:?}"),
            Item::Bool(value) => value.fmt(f),
        }
    }
}

/// A text in quotes.
struct Quoted<'a>(&'a [u8]);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("'")?;
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                match c {
                    '\'' | '\\' => write!(f, "\\{c}")?,
                    c if c.is_ascii_control() => write!(f, "\\x{:02x}", u32::from(c))?,
                    c => write!(f, "{c}")?,
                }
            }
            chunk.invalid().iter().try_for_each(|byte| write!(f, "\\x{byte:02x}"))?;
        }
        f.write_str("'")
    }
}

/// The value of an attribute, as a default is written.
struct Value<'a>(&'a AttrValue);

impl Display for Value<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            AttrValue::Int(value) => value.fmt(f),
            AttrValue::Float(value) => write!(f, "{value:?}"),
            AttrValue::Bool(value) => value.fmt(f),
            AttrValue::String(bytes) => Quoted(bytes).fmt(f),
            AttrValue::Type(dtype) => f.write_str(dtype.name()),
            AttrValue::Shape(shape) => ShapeText(shape).fmt(f),
            AttrValue::Tensor(tensor) => TensorText(tensor).fmt(f),
            // Functions have no text: no case has one.
            AttrValue::Func(function) => f.write_str(&function.name),
            AttrValue::List(list) => write!(f, "[{}]", List(list)),
        }
    }
}

struct List<'a>(&'a AttrList);

impl Display for List<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        fn all<'a, T, D: Display>(
            f: &mut Formatter<'_>,
            items: &'a [T],
            show: impl Fn(&'a T) -> D,
        ) -> fmt::Result {
            let shown: Vec<D> = items.iter().map(show).collect();
            Joined(&shown, ", ").fmt(f)
        }
        match self.0 {
            AttrList::Int(items) => Joined(items, ", ").fmt(f),
            AttrList::Float(items) => all(f, items, |item| format!("{item:?}")),
            AttrList::Bool(items) => Joined(items, ", ").fmt(f),
            AttrList::String(items) => all(f, items, |item| Quoted(item)),
            AttrList::Type(items) => all(f, items, |item| item.name()),
            AttrList::Shape(items) => all(f, items, ShapeText),
            AttrList::Tensor(items) => all(f, items, TensorText),
            AttrList::Func(items) => all(f, items, |item| &*item.name),
        }
    }
}

struct ShapeText<'a>(&'a PartialShape);

impl Display for ShapeText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0.dims().is_some() { self.0.fmt(f) } else { f.write_str("?") }
    }
}

/// A tensor in the text form of its message.
struct TensorText<'a>(&'a Tensor);

impl Display for TensorText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let tensor = self.0;
        write!(f, "{{ dtype: DT_{} tensor_shape {{ ", tensor.dtype().name().to_uppercase())?;
        let dims = tensor.shape().dims().iter();
        dims.copied().try_for_each(|dim| write!(f, "dim {{ size: {dim} }} "))?;
        f.write_str("} ")?;
        let (field, texts) = numbers(tensor);
        texts.iter().try_for_each(|text| write!(f, "{field}: {text} "))?;
        f.write_str("}")
    }
}

/// The field and the texts of a tensor's elements; none for types that no text is read to.
fn numbers(tensor: &Tensor) -> (&'static str, Vec<String>) {
    macro_rules! texts {
        ($ty:ty) => {
            tensor.as_slice::<$ty>().unwrap_or_default().iter().map(|x| format!("{x:?}")).collect()
        };
    }
    match tensor.dtype() {
        DType::FLOAT => ("float_val", texts!(f32)),
        DType::DOUBLE => ("double_val", texts!(f64)),
        DType::INT32 => ("int_val", texts!(i32)),
        DType::INT64 => ("int64_val", texts!(i64)),
        DType::INT8 => ("int_val", texts!(i8)),
        DType::UINT8 => ("int_val", texts!(u8)),
        DType::BOOL => ("bool_val", texts!(bool)),
        _ => ("int_val", Vec::new()),
    }
}
