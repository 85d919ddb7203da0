//! A chain or tree of elementwise ops in one pass over memory.

use crate::shape::{broadcast_dims, dims_of};
use tenon_author::{Dim, ShapeContext, ShapeHandle, ShapeResult, register_op};
use tenon_framework::KernelError;
use tenon_geometry::{
    GeometryError,
    fused::{Operand, Program},
};

register_op!(
    "_FusedElementwise",
    inputs = &["inputs: N * T"],
    outputs = &["output: T"],
    attrs =
        &["N: int >= 1", "T: {half, bfloat16, float, double, int32, int64}", "program: string",],
    shape = fused_elementwise,
    summary = "The elementwise ops of program, in order, on the elements of the inputs: 'AddV2 i0 i1; Relu %0' adds \
               inputs 0 and 1 and takes Relu of the result of instruction 0. Each result is rounded to T. An input \
               has the output's shape, or that of its last dimensions, or is a scalar.",
    cases = &[
        "sum; program = 'AddV2 i0 i1; Relu %0'; inputs: [n, m], [n, m]",
        "affine; program = 'Mul i0 i1; AddV2 %0 i2'; inputs: [n, m], [m], []",
        "tree; program = 'AddV2 i0 i1; Sub i0 i1; Mul %0 %1; Neg %2'; inputs: [n], [n]",
        "alone; program = 'Abs i0; Square %0'; inputs: [n, m]",
    ],
);

fn fused_elementwise(c: &ShapeContext<'_>) -> ShapeResult {
    let text: &str = c.attr("program")?;
    let program = Program::parse(text, c.input_count())?;
    let mut results: Vec<ShapeHandle> = Vec::new();
    for instruction in program.instructions() {
        let shape = |operand: &Operand| match *operand {
            Operand::Input(at) => c.input(at),
            Operand::Result(at) => results[at],
        };
        let [first, second] = [shape(&instruction.operands[0]), shape(&instruction.operands[1])];
        let result = match instruction.op.operands() {
            1 => first,
            _ => joined(c, first, second)?,
        };
        results.push(result);
    }
    let output = results.last().copied().unwrap_or_else(|| c.unknown());
    if c.rank(output).is_some() {
        (0..c.input_count()).try_for_each(|at| check_input(c, at, &dims_of(c, output)))?;
    }
    c.set_output(0, output)
}

fn joined(
    c: &ShapeContext<'_>,
    first: ShapeHandle,
    second: ShapeHandle,
) -> Result<ShapeHandle, KernelError> {
    match (c.rank(first), c.rank(second)) {
        (Some(_), Some(_)) => broadcast_dims(c, &dims_of(c, first), &dims_of(c, second)),
        (Some(0), None) => Ok(second),
        (None, Some(0)) => Ok(first),
        _ => Ok(c.unknown()),
    }
}

/// Checks that an input has the shape of the output's last dimensions, as far as it is known.
fn check_input(c: &ShapeContext<'_>, input: usize, output: &[Dim]) -> ShapeResult {
    let shape = c.input(input);
    let Some(rank) = c.rank(shape) else { return Ok(()) };
    let own = dims_of(c, shape);
    let last = &output[output.len().saturating_sub(rank)..];
    let differs = |(own, out): (&Dim, &Dim)| matches!((c.value(*own), c.value(*out)), (Some(own), Some(out)) if own != out);
    if rank > output.len() || own.iter().zip(last).any(differs) {
        let sizes = |dims: &[Dim]| dims.iter().map(|&dim| c.value(dim).unwrap_or(-1)).collect();
        return Err(GeometryError::Incompatible { a: sizes(output), b: sizes(&own) }.into());
    }
    Ok(())
}
