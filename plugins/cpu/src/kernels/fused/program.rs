//! Prepares a program of elementwise ops: dead instructions are removed, each op becomes a loop,
//! and results share as few registers as their lifetimes permit.

use super::functions::{Abs, Ceil, Elu, Erf, Floor, Magnitude, Softplus, Special};
use crate::{
    arch::level,
    kernels::{
        elementary::Elementary,
        elementwise::{BinaryOp, UnaryOp, map, zip},
        math_binary::{Add, Maximum, Minimum, Mul, RealDiv, SquaredDifference, Sub},
        math_unary::{Exp, Log, Neg, Rsqrt, Sigmoid, Sqrt, Square, Tanh},
        nn::activation::{Relu, Relu6},
    },
    lane::Compute,
};
use half::{bf16, f16};
use tenon_sdk::fused::{Operand, Program, ProgramOp};

/// The loop of an op on a block.
#[derive(Debug, Clone, Copy)]
pub enum Loop<T> {
    /// A loop with one operand.
    One(fn(&[T], &mut [T])),
    /// A loop with two operands.
    Two(fn(&[T], &[T], &mut [T])),
}

/// A loop, and approximate nanoseconds per element.
type Timed<T> = (Loop<T>, f64);

fn one<T: Compute, O: UnaryOp<T::Wide>>() -> Timed<T> {
    (Loop::One(|x, y| map::<T, O>(level(), x, y)), O::COST_NS)
}

fn two<T: Compute, O: BinaryOp<T::Wide>>() -> Timed<T> {
    (Loop::Two(zip::<T, O>), O::COST_NS)
}

/// The ops of all numbers.
fn of_numbers<T: Compute<Wide: Magnitude>>(op: ProgramOp) -> Option<Timed<T>> {
    Some(match op {
        ProgramOp::Abs => one::<T, Abs>(),
        ProgramOp::AddV2 => two::<T, Add>(),
        ProgramOp::Maximum => two::<T, Maximum>(),
        ProgramOp::Minimum => two::<T, Minimum>(),
        ProgramOp::Mul => two::<T, Mul>(),
        ProgramOp::Neg => one::<T, Neg>(),
        ProgramOp::Relu => one::<T, Relu>(),
        ProgramOp::Relu6 => one::<T, Relu6>(),
        ProgramOp::Square => one::<T, Square>(),
        ProgramOp::SquaredDifference => two::<T, SquaredDifference>(),
        ProgramOp::Sub => two::<T, Sub>(),
        _ => return None,
    })
}

/// The ops of floating-point numbers.
fn of_floats<T: Compute<Wide: Special + Elementary + Magnitude>>(
    op: ProgramOp,
) -> Option<Timed<T>> {
    Some(match op {
        ProgramOp::Ceil => one::<T, Ceil>(),
        ProgramOp::Div | ProgramOp::RealDiv => two::<T, RealDiv>(),
        ProgramOp::Elu => one::<T, Elu>(),
        ProgramOp::Erf => one::<T, Erf>(),
        ProgramOp::Exp => one::<T, Exp>(),
        ProgramOp::Floor => one::<T, Floor>(),
        ProgramOp::Log => one::<T, Log>(),
        ProgramOp::Rsqrt => one::<T, Rsqrt>(),
        ProgramOp::Sigmoid => one::<T, Sigmoid>(),
        ProgramOp::Softplus => one::<T, Softplus>(),
        ProgramOp::Sqrt => one::<T, Sqrt>(),
        ProgramOp::Tanh => one::<T, Tanh>(),
        _ => return of_numbers::<T>(op),
    })
}

/// An element type of programs.
pub trait Programmed: Compute {
    /// The loop of an op, if this type supports it.
    fn timed(op: ProgramOp) -> Option<Timed<Self>>;
}

macro_rules! programmed {
    ($($function:ident: $($ty:ty),*;)*) => {$($(
        impl Programmed for $ty {
            fn timed(op: ProgramOp) -> Option<Timed<$ty>> {
                $function(op)
            }
        }
    )*)*};
}

programmed! {
    of_floats: f16, bf16, f32, f64;
    of_numbers: i32, i64;
}

/// The place of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// An input.
    Input(usize),
    /// A register.
    Register(usize),
}

/// One instruction.
#[derive(Debug, Clone, Copy)]
pub struct Step<T> {
    /// The loop.
    pub run: Loop<T>,
    /// The operands.
    pub operands: [Place; 2],
    /// The register of the result, which is not one of the operands; the last step writes to the
    /// output.
    pub result: usize,
}

/// A prepared program.
#[derive(Debug)]
pub struct Ready<T> {
    /// Its steps, at least one.
    pub steps: Vec<Step<T>>,
    /// Number of registers that they use.
    pub registers: usize,
    /// For each input, whether the result depends on it.
    pub reads: Vec<bool>,
    /// Approximate nanoseconds per element.
    pub cost_ns: f64,
}

impl<T: Programmed> Ready<T> {
    /// Prepares a program over `inputs` inputs; the error is the first op that this type does not
    /// support.
    pub fn new(program: &Program, inputs: usize) -> Result<Ready<T>, ProgramOp> {
        let instructions = program.instructions();
        let last = instructions.len() - 1;
        let uses = last_uses(program);
        let mut ready =
            Ready { steps: Vec::new(), registers: 0, reads: vec![false; inputs], cost_ns: 0.0 };
        let mut free: Vec<usize> = Vec::new();
        let mut at = vec![0; instructions.len()];
        for (number, instruction) in instructions.iter().enumerate() {
            let (run, cost) = T::timed(instruction.op).ok_or(instruction.op)?;
            if uses[number].is_none() && number != last {
                continue;
            }
            let operands = instruction.operands.map(|operand| match operand {
                Operand::Input(input) => {
                    ready.reads[input] = true;
                    Place::Input(input)
                }
                Operand::Result(result) => Place::Register(at[result]),
            });
            // Chosen before the registers of its operands are free, so that the result never
            // overwrites an operand.
            if number != last {
                at[number] = free.pop().unwrap_or(ready.registers);
                ready.registers = ready.registers.max(at[number] + 1);
            }
            ready.cost_ns += cost;
            ready.steps.push(Step { run, operands, result: at[number] });
            let [first, second] = instruction.operands;
            let mut release = |operand| match operand {
                Operand::Result(result) if uses[result] == Some(number) => free.push(at[result]),
                _ => {}
            };
            release(first);
            if second != first {
                release(second);
            }
        }
        Ok(ready)
    }
}

/// The last instruction that uses each result, among those on which the last one depends.
fn last_uses(program: &Program) -> Vec<Option<usize>> {
    let instructions = program.instructions();
    let last = instructions.len() - 1;
    let mut uses = vec![None; instructions.len()];
    for (number, instruction) in instructions.iter().enumerate().rev() {
        if number != last && uses[number].is_none() {
            continue;
        }
        for operand in instruction.operands {
            if let Operand::Result(result) = operand
                && uses[result].is_none()
            {
                uses[result] = Some(number);
            }
        }
    }
    uses
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(text: &str, inputs: usize) -> Ready<f32> {
        Ready::new(&Program::parse(text, inputs).unwrap(), inputs).unwrap()
    }

    #[test]
    fn results_share_registers_and_dead_ones_are_gone() {
        let chain = ready("Exp i0; Neg %0; Exp %1; Neg %2; Exp %3", 1);
        assert_eq!((chain.steps.len(), chain.registers), (5, 2));
        for step in &chain.steps[..4] {
            assert!(!step.operands.contains(&Place::Register(step.result)));
        }
        let dead = ready("Exp i0; Neg %0; Square i1; Mul %2 %2", 2);
        assert_eq!((dead.steps.len(), dead.registers), (2, 1));
        assert_eq!(dead.reads, [false, true]);
        let tree = ready("Exp i0; Exp i1; Mul %0 %1; Mul %2 %0", 2);
        assert_eq!(tree.registers, 3);
        assert_eq!(ready("Relu i0", 1).registers, 0);
    }

    #[test]
    fn integers_have_no_functions_of_floats() {
        let program = Program::parse("AddV2 i0 i0; Exp %0", 1).unwrap();
        assert_eq!(Ready::<i32>::new(&program, 1).unwrap_err(), ProgramOp::Exp);
    }
}
