//! The gradient of `Einsum`: in the equation of an operand's gradient, the operand and the output change places.

use super::{Made, Outcome};
use std::collections::BTreeSet;
use tenon_author::{GradientContext, register_gradient};
use tenon_framework::{KernelError, abi::GraphValue};

const ELLIPSIS: &str = "...";

register_gradient!("Einsum", |c| {
    let equation: &str = c.attr("equation")?;
    let equation: String = equation.split_whitespace().collect();
    let Some((inputs, output)) = equation.split_once("->") else {
        return Err(KernelError::invalid_argument(format!(
            "the equation of an Einsum must have the form 'inputs->output', found '{equation}'"
        )));
    };
    match (inputs.split_once(','), c.input_count()) {
        (None, 1) => c.set(0, by_only(c, inputs, output)?),
        (Some((x, y)), 2) => by_both(c, [x, y], output),
        _ => Err(KernelError::unimplemented(format!(
            "the gradient of Einsum is defined for one and two operands, found {}",
            c.input_count()
        ))),
    }
});

/// The labels of some subscripts, without the dots of an ellipsis.
fn labels(subscripts: &str) -> BTreeSet<char> {
    subscripts.chars().filter(|&label| label != '.').collect()
}

fn einsum(c: &GradientContext<'_>, values: &[GraphValue], equation: &str) -> Made {
    c.op("Einsum").inputs(values.iter().copied()).attr("equation", equation).done()
}

fn by_only(c: &GradientContext<'_>, input: &str, output: &str) -> Made {
    let g = c.gradient(0)?;
    let reduced = &labels(input) - &labels(output);
    if reduced.is_empty() {
        return einsum(c, &[g], &format!("{output}->{input}"));
    }
    unreduced(c, g, (output, input), c.input(0), &reduced)
}

/// The gradient of a sum over the `reduced` labels of an operand with subscripts `input`: it is
/// repeated along them.
fn unreduced(
    c: &GradientContext<'_>,
    g: GraphValue,
    (output, input): (&str, &str),
    operand: GraphValue,
    reduced: &BTreeSet<char>,
) -> Made {
    let shape = c.shape_of(operand)?;
    let (names, axes): (String, Vec<i64>) =
        reduced.iter().filter_map(|&label| Some((label, axis_of(input, label)?))).unzip();
    let rank = c.rank_of(operand)?;
    let axes = c.binary("FloorMod", c.ints(&axes)?, rank)?;
    let dims = c.op("GatherV2").input(shape).input(axes).input(c.int(0)?).done()?;
    let joined = |first: GraphValue, second: GraphValue| {
        c.op("ConcatV2").input(first).input(second).input(c.int(0)?).done()
    };
    let own = c.shape_of(g)?;
    let whole = joined(dims, own)?;
    let ones = c.ints(&vec![1; names.len()])?;
    let spread = c.binary("BroadcastTo", c.reshape(g, joined(ones, own)?)?, whole)?;
    einsum(c, &[spread], &format!("{names}{output}->{input}"))
}

/// The axis of a label: counted from the end if it is after an ellipsis.
fn axis_of(subscripts: &str, label: char) -> Option<i64> {
    match subscripts.split_once(ELLIPSIS) {
        None => subscripts.find(label).map(|at| at as i64),
        Some((before, after)) => match before.find(label) {
            Some(at) => Some(at as i64),
            None => after.find(label).map(|at| at as i64 - after.len() as i64),
        },
    }
}

fn by_both(c: &GradientContext<'_>, operands: [&str; 2], output: &str) -> Outcome {
    let is_batched = output.contains(ELLIPSIS);
    let subscripts = operands.map(|operand| match is_batched && !operand.contains(ELLIPSIS) {
        true => format!("{operand}{ELLIPSIS}"),
        false => operand.to_owned(),
    });
    let g = c.gradient(0)?;
    for index in 0..2 {
        if !c.wants(index) {
            continue;
        }
        let (own, other) = (&subscripts[index], &subscripts[1 - index]);
        let operand = c.conj(c.input(1 - index))?;
        let reduced = &labels(own) - &(&labels(output) | &labels(other));
        let left: String = own.chars().filter(|label| !reduced.contains(label)).collect();
        let mut gradient = einsum(c, &[g, operand], &format!("{output},{other}->{left}"))?;
        if !reduced.is_empty() {
            gradient = unreduced(c, gradient, (&left, own), c.input(index), &reduced)?;
        }
        c.set(
            index,
            if is_batched { to_operand(c, gradient, index, &subscripts)? } else { gradient },
        )?;
    }
    Ok(())
}

/// The number of labels before and after the ellipsis.
fn around(subscripts: &str) -> [i64; 2] {
    let (before, after) = subscripts.split_once(ELLIPSIS).unwrap_or((subscripts, ""));
    [before.len() as i64, after.len() as i64]
}

/// The dimensions of an operand that its ellipsis is for.
fn batch_shape(c: &GradientContext<'_>, x: GraphValue, subscripts: &str) -> Made {
    let [before, after] = around(subscripts);
    let end = if after == 0 { None } else { Some(-after) };
    super::part_of_shape(c, c.shape_of(x)?, Some(before), end)
}

/// Sums a gradient over the dimensions of the ellipsis along which its operand was repeated.
fn to_operand(
    c: &GradientContext<'_>,
    gradient: GraphValue,
    index: usize,
    subscripts: &[String; 2],
) -> Made {
    let (x, other) = (c.input(index), c.input(1 - index));
    let own = batch_shape(c, x, &subscripts[index])?;
    let others = batch_shape(c, other, &subscripts[1 - index])?;
    let axes = c.op("BroadcastGradientArgs").input(own).input(others).done()?;
    let [before, _] = around(&subscripts[index]);
    let axes = c.add(axes, c.number(c.dtype(axes), before as f64)?)?;
    c.reshape(c.sum(gradient, axes, false)?, c.shape_of(x)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_after_an_ellipsis_are_counted_from_the_end() {
        assert_eq!(axis_of("abc", 'c'), Some(2));
        assert_eq!(axis_of("ab...cd", 'b'), Some(1));
        assert_eq!(axis_of("ab...cd", 'c'), Some(-2));
        assert_eq!(axis_of("ab...cd", 'x'), None);
        assert_eq!(around("ab...c"), [2, 1]);
    }
}
