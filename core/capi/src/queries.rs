//! Questions about operations: names, inputs, outputs, readers.

use crate::{
    buffer::{TF_Buffer, give},
    fail::{Failure, Length},
    operation::{OpRef, TF_Input, TF_Output},
    raw::{Out, Text, c_count},
    status::TF_Status,
};
use std::{
    ffi::{c_char, c_int},
    ptr,
};
use tenon_framework::{DType, op::ArgDef};
use tenon_graph::Output;

fn number(dtype: Option<&DType>) -> c_int {
    dtype.map_or(0, |dtype| dtype.0 as c_int)
}

fn at<T>(values: &[T], index: c_int) -> Option<&T> {
    values.get(usize::try_from(index).ok()?)
}

/// The number of tensors of the argument with this name.
fn length(
    oper: Option<OpRef>,
    name: Text<'_>,
    kind: &str,
    args: impl for<'a> Fn(&'a OpRef) -> (&'a [ArgDef], Vec<usize>),
) -> Result<Length, Failure> {
    let oper = oper.ok_or_else(|| Failure::null("the operation"))?;
    let name = name.required("the name of an argument")?;
    let (defs, lengths) = args(&oper);
    let found = defs.iter().position(|arg| arg.name == name);
    let found = found.ok_or_else(|| {
        let known: Vec<&str> = defs.iter().map(|arg| arg.name.as_str()).collect();
        Failure::invalid(format!(
            "node '{}': op {} has no {kind} '{name}'; it has {}",
            oper.node.name,
            oper.node.op.name,
            if known.is_empty() { "none".to_owned() } else { known.join(", ") }
        ))
    })?;
    Ok(Length(c_count(lengths.get(found).copied().unwrap_or(0))))
}

/// The sources of the data inputs, as they are now.
fn inputs(oper: OpRef) -> Vec<TF_Output> {
    let Ok(graph) = oper.graph() else { return Vec::new() };
    let state = graph.lock();
    state.graph.node(oper.id).inputs.iter().map(|&input| state.output(input)).collect()
}

/// The readers of an output.
fn consumers(output: TF_Output) -> Vec<TF_Input> {
    let Some((oper, index)) = output.oper.zip(u32::try_from(output.index).ok()) else {
        return Vec::new();
    };
    let Ok(graph) = oper.graph() else { return Vec::new() };
    let mut state = graph.lock();
    let readers = state.readers(Output::new(oper.id, index)).to_vec();
    let input =
        |(id, at): (_, usize)| TF_Input { oper: Some(state.operation(id)), index: c_count(at) };
    readers.into_iter().map(input).collect()
}

fn control_inputs(oper: OpRef) -> Vec<OpRef> {
    let Ok(graph) = oper.graph() else { return Vec::new() };
    let state = graph.lock();
    state.graph.node(oper.id).control_inputs.iter().map(|&id| state.operation(id)).collect()
}

fn control_outputs(oper: OpRef) -> Vec<OpRef> {
    let Ok(graph) = oper.graph() else { return Vec::new() };
    let mut state = graph.lock();
    let waiting = state.waiting(oper.id).to_vec();
    waiting.into_iter().map(|id| state.operation(id)).collect()
}

api! {
    /// The name; null for no operation.
    fn TF_OperationName(oper: Option<OpRef>) -> *const c_char {
        oper.map_or(ptr::null(), |oper| oper.name.as_ptr())
    }

    /// The op.
    fn TF_OperationOpType(oper: Option<OpRef>) -> *const c_char {
        oper.map_or(ptr::null(), |oper| oper.op.as_ptr())
    }

    /// The device that the operation requests; empty for none.
    fn TF_OperationDevice(oper: Option<OpRef>) -> *const c_char {
        oper.map_or(ptr::null(), |oper| oper.device.as_ptr())
    }

    /// The number of outputs.
    fn TF_OperationNumOutputs(oper: Option<OpRef>) -> c_int {
        oper.map_or(0, |oper| c_count(oper.node.outputs().len()))
    }

    /// The element type of an output; 0 if there is no such output.
    fn TF_OperationOutputType(output: TF_Output) -> c_int {
        output.oper.map_or(0, |oper| number(at(oper.node.outputs(), output.index)))
    }

    /// The number of tensors of the output argument with this name; -1 after a failure.
    fn TF_OperationOutputListLength(
        oper: Option<OpRef>,
        name: Text<'_>,
        status: Option<&mut TF_Status>,
    ) -> Length [status] {
        length(oper, name, "output", |oper| {
            let lengths = oper.node.signature.output_args.iter().map(|range| range.len as usize);
            (&oper.node.op.outputs, lengths.collect())
        })
    }

    /// The number of data inputs.
    fn TF_OperationNumInputs(oper: Option<OpRef>) -> c_int {
        oper.map_or(0, |oper| c_count(oper.node.inputs.len()))
    }

    /// The element type of an input; 0 if there is no such input.
    fn TF_OperationInputType(input: TF_Input) -> c_int {
        input.oper.map_or(0, |oper| number(at(&oper.node.signature.inputs, input.index)))
    }

    /// The number of tensors of the input argument with this name; -1 after a failure.
    fn TF_OperationInputListLength(
        oper: Option<OpRef>,
        name: Text<'_>,
        status: Option<&mut TF_Status>,
    ) -> Length [status] {
        length(oper, name, "input", |oper| {
            let lengths = oper.node.signature.input_args.iter().map(|range| range.len as usize);
            (&oper.node.op.inputs, lengths.collect())
        })
    }

    /// The source of an input.
    fn TF_OperationInput(input: TF_Input) -> TF_Output {
        let Some(oper) = input.oper else { return TF_Output::NONE };
        at(&inputs(oper), input.index).copied().unwrap_or(TF_Output::NONE)
    }

    /// Writes the sources of all inputs, `room` of them at most.
    fn TF_OperationAllInputs(oper: Option<OpRef>, sources: Out<'_, TF_Output>, room: c_int) {
        if let Some(oper) = oper {
            sources.fill(room, inputs(oper));
        }
    }

    /// The number of inputs that read an output.
    fn TF_OperationOutputNumConsumers(output: TF_Output) -> c_int { c_count(consumers(output).len()) }

    /// Writes the inputs that read an output, `room` of them at most; returns their number.
    fn TF_OperationOutputConsumers(
        output: TF_Output,
        readers: Out<'_, TF_Input>,
        room: c_int,
    ) -> c_int {
        readers.fill(room, consumers(output))
    }

    /// The number of operations that this one waits for.
    fn TF_OperationNumControlInputs(oper: Option<OpRef>) -> c_int {
        oper.map_or(0, |oper| c_count(control_inputs(oper).len()))
    }

    /// Writes the operations that this one waits for, `room` of them at most; returns their number.
    fn TF_OperationGetControlInputs(
        oper: Option<OpRef>,
        found: Out<'_, OpRef>,
        room: c_int,
    ) -> c_int {
        oper.map_or(0, |oper| found.fill(room, control_inputs(oper)))
    }

    /// The number of operations that wait for this one.
    fn TF_OperationNumControlOutputs(oper: Option<OpRef>) -> c_int {
        oper.map_or(0, |oper| c_count(control_outputs(oper).len()))
    }

    /// Writes the operations that wait for this one, `room` of them at most; returns their number.
    fn TF_OperationGetControlOutputs(
        oper: Option<OpRef>,
        found: Out<'_, OpRef>,
        room: c_int,
    ) -> c_int {
        oper.map_or(0, |oper| found.fill(room, control_outputs(oper)))
    }

    /// Writes the operation as a `NodeDef`.
    fn TF_OperationToNodeDef(
        oper: Option<OpRef>,
        message: Option<&mut TF_Buffer>,
        status: Option<&mut TF_Status>,
    ) [status] {
        let oper = oper.ok_or_else(|| Failure::null("the operation"))?;
        let node = oper.graph()?.lock().graph.to_node_def(oper.id)?;
        give(message, &node)
    }
}
