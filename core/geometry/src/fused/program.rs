//! Programs of elementwise ops.
//!
//! A program is a list of instructions, separated by `;`. An instruction is the name of an op and
//! its operands: `i2` is input 2, `%0` the result of the earlier instruction 0. The result of the
//! last instruction is the output. Every result is rounded to the element type of the node, as in
//! the op itself.

use super::FusedError;
use std::fmt;

/// The maximum length of a program.
pub const MAX_INSTRUCTIONS: usize = 64;

/// An op of a program: the standard op of the same name, for one element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProgramOp {
    /// Absolute value.
    Abs,
    /// Sum.
    AddV2,
    /// Smallest integer not below.
    Ceil,
    /// Quotient, as `RealDiv`; of floating-point numbers.
    Div,
    /// `x` if it is above 0, otherwise `exp(x) - 1`.
    Elu,
    /// Error function.
    Erf,
    /// Exponential.
    Exp,
    /// Largest integer not above.
    Floor,
    /// Natural logarithm.
    Log,
    /// The greater one; NaN if either is NaN.
    Maximum,
    /// The lesser one; NaN if either is NaN.
    Minimum,
    /// Product.
    Mul,
    /// Negation.
    Neg,
    /// Quotient.
    RealDiv,
    /// `max(x, 0)`.
    Relu,
    /// `min(max(x, 0), 6)`.
    Relu6,
    /// `1 / sqrt(x)`.
    Rsqrt,
    /// `1 / (1 + exp(-x))`.
    Sigmoid,
    /// `log(1 + exp(x))`.
    Softplus,
    /// Square root.
    Sqrt,
    /// Square.
    Square,
    /// `(x - y)^2`.
    SquaredDifference,
    /// Difference.
    Sub,
    /// Hyperbolic tangent.
    Tanh,
}

/// Every op, with its name and number of operands.
const OPS: &[(ProgramOp, &str, usize)] = &[
    (ProgramOp::Abs, "Abs", 1),
    (ProgramOp::AddV2, "AddV2", 2),
    (ProgramOp::Ceil, "Ceil", 1),
    (ProgramOp::Div, "Div", 2),
    (ProgramOp::Elu, "Elu", 1),
    (ProgramOp::Erf, "Erf", 1),
    (ProgramOp::Exp, "Exp", 1),
    (ProgramOp::Floor, "Floor", 1),
    (ProgramOp::Log, "Log", 1),
    (ProgramOp::Maximum, "Maximum", 2),
    (ProgramOp::Minimum, "Minimum", 2),
    (ProgramOp::Mul, "Mul", 2),
    (ProgramOp::Neg, "Neg", 1),
    (ProgramOp::RealDiv, "RealDiv", 2),
    (ProgramOp::Relu, "Relu", 1),
    (ProgramOp::Relu6, "Relu6", 1),
    (ProgramOp::Rsqrt, "Rsqrt", 1),
    (ProgramOp::Sigmoid, "Sigmoid", 1),
    (ProgramOp::Softplus, "Softplus", 1),
    (ProgramOp::Sqrt, "Sqrt", 1),
    (ProgramOp::Square, "Square", 1),
    (ProgramOp::SquaredDifference, "SquaredDifference", 2),
    (ProgramOp::Sub, "Sub", 2),
    (ProgramOp::Tanh, "Tanh", 1),
];

impl ProgramOp {
    /// The op with this name.
    pub fn named(name: &str) -> Option<ProgramOp> {
        OPS.iter().find(|(_, own, _)| *own == name).map(|(op, ..)| *op)
    }

    /// Every op.
    pub fn all() -> impl Iterator<Item = ProgramOp> {
        OPS.iter().map(|(op, ..)| *op)
    }

    fn entry(self) -> &'static (ProgramOp, &'static str, usize) {
        OPS.iter().find(|(op, ..)| *op == self).unwrap_or(&OPS[0])
    }

    /// The name, which is that of the standard op.
    pub fn name(self) -> &'static str {
        self.entry().1
    }

    /// The number of operands, 1 or 2.
    pub fn operands(self) -> usize {
        self.entry().2
    }
}

/// The source of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operand {
    /// An input of the node.
    Input(usize),
    /// The result of an earlier instruction.
    Result(usize),
}

/// One instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Instruction {
    /// The op.
    pub op: ProgramOp,
    /// The operands; for an op with one, the second equals the first.
    pub operands: [Operand; 2],
}

/// A program: at least one instruction, each of which reads existing inputs and earlier results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    instructions: Vec<Instruction>,
}

impl Program {
    /// Parses a program with this number of inputs.
    ///
    /// # Errors
    /// An instruction is invalid, or there are none or more than [`MAX_INSTRUCTIONS`].
    pub fn parse(text: &str, inputs: usize) -> Result<Program, FusedError> {
        let parts: Vec<&str> = text.split(';').map(str::trim).collect();
        let instruction = |(at, part): (usize, &&str)| instruction(at, part, inputs);
        if parts.len() > MAX_INSTRUCTIONS || text.trim().is_empty() {
            let found = if text.trim().is_empty() { 0 } else { parts.len() };
            return Err(FusedError::Length { found });
        }
        let instructions = parts.iter().enumerate().map(instruction).collect::<Result<_, _>>()?;
        Ok(Program { instructions })
    }

    /// Creates a program from these instructions.
    ///
    /// # Errors
    /// As [`Program::parse`].
    pub fn new(instructions: Vec<Instruction>, inputs: usize) -> Result<Program, FusedError> {
        Program::parse(&Program { instructions }.to_string(), inputs)
    }

    /// The instructions, in order.
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }
}

fn instruction(at: usize, text: &str, inputs: usize) -> Result<Instruction, FusedError> {
    let wrong = |expected: String| FusedError::Instruction { at, found: text.to_owned(), expected };
    let mut words = text.split_whitespace();
    let name = words.next().unwrap_or_default();
    let op = ProgramOp::named(name)
        .ok_or_else(|| wrong("expected the name of an op that programs have".to_owned()))?;
    let operands: Vec<Operand> =
        words.map(|word| operand(word, at, inputs)).collect::<Option<_>>().ok_or_else(|| {
            wrong(format!("expected i0 to i{} or results before %{at}", inputs.saturating_sub(1)))
        })?;
    match operands[..] {
        [one] if op.operands() == 1 => Ok(Instruction { op, operands: [one, one] }),
        [one, two] if op.operands() == 2 => Ok(Instruction { op, operands: [one, two] }),
        _ => Err(wrong(format!("expected {} operands, found {}", op.operands(), operands.len()))),
    }
}

fn operand(word: &str, at: usize, inputs: usize) -> Option<Operand> {
    let number = |text: &str| {
        let plain = text.bytes().all(|b| b.is_ascii_digit());
        text.parse::<usize>().ok().filter(|_| plain)
    };
    if let Some(text) = word.strip_prefix('i') {
        return number(text).filter(|input| *input < inputs).map(Operand::Input);
    }
    number(word.strip_prefix('%')?).filter(|result| *result < at).map(Operand::Result)
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operand::Input(at) => write!(f, "i{at}"),
            Operand::Result(at) => write!(f, "%{at}"),
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, instruction) in self.instructions.iter().enumerate() {
            let separator = if at == 0 { "" } else { "; " };
            write!(f, "{separator}{}", instruction.op.name())?;
            for operand in &instruction.operands[..instruction.op.operands()] {
                write!(f, " {operand}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_written_as_it_is_read() {
        for text in ["Relu i0", "AddV2 i0 i1; Relu %0; Mul %1 i1", "Sub i0 i0"] {
            assert_eq!(Program::parse(text, 2).unwrap().to_string(), text);
        }
        for op in ProgramOp::all() {
            assert_eq!(ProgramOp::named(op.name()), Some(op));
        }
    }

    #[test]
    fn what_is_no_program_is_told() {
        let cases = [
            ("", "found 0"),
            ("Sin i0", "'Sin i0': expected the name of an op"),
            ("Relu", "expected 1 operands, found 0"),
            ("AddV2 i0", "expected 2 operands, found 1"),
            ("Relu i2", "expected i0 to i1 or results before %0"),
            ("Relu %0", "results before %0"),
            ("Relu i+1", "expected i0"),
            ("Relu i0;", "instruction 1 is ''"),
            (&["Relu i0"; 65].join(";"), "found 65"),
        ];
        for (text, expected) in cases {
            let error = Program::parse(text, 2).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
