//! Formulas of the work of a call.
//!
//! ```text
//! formula = product { ( "+" | "-" ) product }
//! product = factor { ( "*" | "/" ) factor }
//! factor  = number | "(" formula ")" | "bytes" "(" argument ")" | argument [ "[" int "]" ] | attribute
//! ```

use crate::{
    attr::{AttrMap, AttrType, AttrValue},
    op::{ArgDef, OpDef, OpError, Signature, spec::Cursor},
};
use tenon_abi::{AttrKind, DType, Range};

/// A formula nests no deeper.
const MAX_DEPTH: usize = 32;
const FACTOR: &str =
    "a number, an input, an output, an attribute of type int or float, bytes(...) or '('";

/// Operations or bytes of a call, as a formula over its arguments and attributes.
#[derive(Debug, Clone, PartialEq)]
pub struct Formula {
    text: String,
    root: Node,
}

#[derive(Debug, Clone, PartialEq)]
enum Node {
    Number(f64),
    /// Elements of all tensors of an argument.
    Elements(Argument),
    /// Bytes of all tensors of an argument.
    Bytes(Argument),
    /// A size of the first tensor of an argument; negative from the back.
    Size(Argument, i64),
    Attr(String),
    Two(Op, Box<[Node; 2]>),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Op {
    Add,
    Subtract,
    Multiply,
    Divide,
}

/// An argument by its place.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Argument {
    Input(usize),
    Output(usize),
}

/// Types and shapes of a call.
#[derive(Debug, Clone, Copy)]
pub struct Tensors<'a> {
    /// Of the inputs.
    pub inputs: &'a [(DType, Vec<i64>)],
    /// Of the outputs.
    pub outputs: &'a [(DType, Vec<i64>)],
}

impl Formula {
    /// Reads a formula for an op.
    pub(super) fn parse(op: &OpDef, text: &str) -> Result<Formula, OpError> {
        let mut parser = Parser { op, cursor: Cursor::new(&op.name, text), depth: 0 };
        let root = parser.sum()?;
        parser.cursor.end("'+', '-', '*', '/' or the end of the formula")?;
        Ok(Formula { text: text.trim().to_owned(), root })
    }

    /// The formula as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its value for a call; `None` if a size or attribute in it does not exist, or the value is negative or not
    /// a number.
    pub fn value(&self, op: &OpDef, attrs: &AttrMap, tensors: Tensors<'_>) -> Option<f64> {
        let signature = Signature::resolve(op, attrs).ok()?;
        let call = Call { signature: &signature, attrs, tensors };
        call.value(&self.root).filter(|value| value.is_finite() && *value >= 0.0)
    }
}

struct Call<'a> {
    signature: &'a Signature,
    attrs: &'a AttrMap,
    tensors: Tensors<'a>,
}

impl Call<'_> {
    fn of(&self, argument: Argument) -> Option<&[(DType, Vec<i64>)]> {
        let (Range { start, len }, all) = match argument {
            Argument::Input(at) => (*self.signature.input_args.get(at)?, self.tensors.inputs),
            Argument::Output(at) => (*self.signature.output_args.get(at)?, self.tensors.outputs),
        };
        all.get(start as usize..)?.get(..len as usize)
    }

    fn value(&self, node: &Node) -> Option<f64> {
        let elements = |dims: &[i64]| dims.iter().map(|&dim| dim.max(0) as f64).product::<f64>();
        Some(match node {
            Node::Number(value) => *value,
            Node::Elements(argument) => {
                self.of(*argument)?.iter().map(|(_, dims)| elements(dims)).sum()
            }
            Node::Bytes(argument) => {
                let bytes = |(dtype, dims): &(DType, Vec<i64>)| {
                    elements(dims) * dtype.size().unwrap_or(0) as f64
                };
                self.of(*argument)?.iter().map(bytes).sum()
            }
            Node::Size(argument, place) => {
                let (_, dims) = self.of(*argument)?.first()?;
                let place = if *place < 0 { place + dims.len() as i64 } else { *place };
                *dims.get(usize::try_from(place).ok()?)? as f64
            }
            Node::Attr(name) => match self.attrs.get(name)? {
                AttrValue::Int(value) => *value as f64,
                AttrValue::Float(value) => f64::from(*value),
                _ => return None,
            },
            Node::Two(op, sides) => {
                let [a, b] = &**sides;
                let (a, b) = (self.value(a)?, self.value(b)?);
                match op {
                    Op::Add => a + b,
                    Op::Subtract => a - b,
                    Op::Multiply => a * b,
                    Op::Divide => a / b,
                }
            }
        })
    }
}

struct Parser<'a> {
    op: &'a OpDef,
    cursor: Cursor<'a>,
    depth: usize,
}

impl Parser<'_> {
    fn sum(&mut self) -> Result<Node, OpError> {
        let mut left = self.product()?;
        while let Some(op) = self.operator(&[("+", Op::Add), ("-", Op::Subtract)]) {
            left = Node::Two(op, Box::new([left, self.product()?]));
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Node, OpError> {
        let mut left = self.factor()?;
        while let Some(op) = self.operator(&[("*", Op::Multiply), ("/", Op::Divide)]) {
            left = Node::Two(op, Box::new([left, self.factor()?]));
        }
        Ok(left)
    }

    fn operator(&mut self, all: &[(&str, Op)]) -> Option<Op> {
        all.iter().find(|(token, _)| self.cursor.eat(token)).map(|(_, op)| *op)
    }

    fn factor(&mut self) -> Result<Node, OpError> {
        if self.cursor.eat("(") {
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                return Err(self.cursor.fail(&format!("at most {MAX_DEPTH} nested parentheses")));
            }
            let inner = self.sum()?;
            self.depth -= 1;
            self.cursor.expect(")", "')'")?;
            return Ok(inner);
        }
        if self.cursor.rest().starts_with(|c: char| c.is_ascii_digit()) {
            return self.number();
        }
        let place = self.cursor.position();
        let name = self.cursor.word(FACTOR)?.to_owned();
        if name == "bytes" && self.cursor.eat("(") {
            let place = self.cursor.position();
            let inner = self.cursor.word("the name of an input or output")?.to_owned();
            let found = self.argument(&inner);
            let argument = found
                .ok_or_else(|| self.cursor.fail_at(place, "the name of an input or output"))?;
            self.cursor.expect(")", "')' to close 'bytes('")?;
            return Ok(Node::Bytes(argument));
        }
        if let Some(argument) = self.argument(&name) {
            if !self.cursor.eat("[") {
                return Ok(Node::Elements(argument));
            }
            let at = self.cursor.int("the number of a size, such as 0 or -1")?;
            self.cursor.expect("]", "']'")?;
            return Ok(Node::Size(argument, at));
        }
        let number = [AttrKind::INT, AttrKind::FLOAT].map(AttrType::one);
        match self.op.attr(&name) {
            Some(attr) if number.contains(&attr.ty) => Ok(Node::Attr(name)),
            _ => Err(self.cursor.fail_at(place, FACTOR)),
        }
    }

    fn argument(&self, name: &str) -> Option<Argument> {
        let place = |all: &[ArgDef]| all.iter().position(|arg| arg.name == name);
        let input = place(&self.op.inputs).map(Argument::Input);
        input.or_else(|| place(&self.op.outputs).map(Argument::Output))
    }

    fn number(&mut self) -> Result<Node, OpError> {
        let rest = self.cursor.rest();
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let value: f64 = rest[..end].parse().map_err(|_| self.cursor.fail("a number"))?;
        self.cursor.advance(end);
        Ok(Node::Number(value))
    }
}
