//! What a call must not do, however wrong it is.

use super::Call;
use crate::node::{Node, Refusal, Stage};
use std::{fmt, sync::Arc};
use tenon_framework::{Code, PartialShape, Tensor, infer::ValueInfo, knob::Knobs, op::OpDef};
use tenon_runtime::host::{call::StepEnv, devices::PluginDevice};

/// The codes of a caller's mistakes. An internal error is not among them, so panics are found.
const REFUSALS: [Code; 6] = [
    Code::INVALID_ARGUMENT,
    Code::OUT_OF_RANGE,
    Code::FAILED_PRECONDITION,
    Code::UNIMPLEMENTED,
    Code::RESOURCE_EXHAUSTED,
    Code::NOT_FOUND,
];

/// What is known of the inputs when shapes are inferred and when the kernel is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    Nothing,
    Ranks,
    SomeDims,
    Shapes,
    Values,
}

/// Shape functions see each, kernels the last and the first two.
const KNOWN: [Known; 5] =
    [Known::Nothing, Known::Ranks, Known::SomeDims, Known::Shapes, Known::Values];
const KERNELS: [Known; 3] = [Known::Nothing, Known::Shapes, Known::Values];

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The kernel computed.
    Computed,
    /// It was refused as it should be.
    Refused(Refusal),
}

/// The problem with how a call was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault(String);

impl Fault {
    /// A fault, in words.
    pub(super) fn new(text: String) -> Fault {
        Fault(text)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Makes a call with the shape function and the kernel.
pub(super) fn judge(
    call: &Call,
    device: &Arc<PluginDevice>,
    knobs: &Arc<Knobs>,
    env: &StepEnv,
) -> Result<Ending, Fault> {
    let full = match node(call, Known::Values) {
        Ok(node) => node,
        Err(refusal) => return checked(&call.op, refusal, "the definition").map(Ending::Refused),
    };
    let mut inferred = Vec::new();
    for known in KNOWN {
        let who = format!("the shape function, of inputs with {known:?} known");
        match node(call, known).and_then(|node| node.infer()) {
            Ok(outputs) => inferred.push((who, Ok(outputs))),
            Err(refusal) => inferred.push((who.clone(), Err(checked(&call.op, refusal, &who)?))),
        }
    }
    let mut endings = Vec::new();
    for known in KERNELS {
        let who = format!("the kernel, of inputs with {known:?} known");
        let node = node(call, known);
        match node.and_then(|n| n.call(&call.kernel, Some(device), knobs, &call.inputs, env)) {
            Ok(outputs) => {
                check_outputs(&full, &outputs, &who)?;
                check_inferred((&call.op.name, &outputs), &inferred, &who)?;
                endings.push(Ending::Computed);
            }
            Err(refusal) => endings.push(Ending::Refused(checked(&call.op, refusal, &who)?)),
        }
    }
    agreed(endings)
}

fn agreed(endings: Vec<Ending>) -> Result<Ending, Fault> {
    let computes = |ending: &Ending| *ending == Ending::Computed;
    // Selection differs: a kernel may decline shapes that it is told of.
    let declined =
        |ending: &Ending| matches!(ending, Ending::Refused(r) if r.stage == Stage::Select);
    if endings.iter().any(computes) && !endings.iter().all(|e| computes(e) || declined(e)) {
        return Err(Fault(format!("what is known of the inputs decides: {endings:?}")));
    }
    let mut endings = endings;
    Ok(endings.swap_remove(0))
}

/// The node of a call, with so much known of its inputs.
fn node(call: &Call, known: Known) -> Result<Node, Refusal> {
    let constant = |_| known == Known::Values;
    let made = Node::new(&call.op, "fuzzed", call.attrs.clone(), &call.inputs, constant);
    let mut node = made.map_err(|error| Refusal::definition(&error))?;
    for (at, (shape, input)) in node.input_shapes.iter_mut().zip(&call.inputs).enumerate() {
        let sizes = input.shape().dims().iter().enumerate();
        let dims = sizes.map(|(axis, &size)| match known {
            Known::Ranks => -1,
            Known::SomeDims if (at + axis) % 2 == 0 => -1,
            _ => size,
        });
        *shape = match known {
            Known::Nothing => PartialShape::UNKNOWN,
            _ => PartialShape::new(&dims.collect::<Vec<_>>()).unwrap_or(PartialShape::UNKNOWN),
        };
    }
    Ok(node)
}

/// Words before what was found.
const FOUND: [&str; 14] = [
    "found ",
    "got ",
    " is ",
    " are ",
    " of shape ",
    " = ",
    " has ",
    " had ",
    " holds ",
    " not ",
    "no ",
    " (",
    "exceeds ",
    "equation \"",
];

/// Ops of which nothing is found: a placeholder that is not fed.
const NOTHING_TO_FIND: [&str; 2] = ["Placeholder", "PlaceholderV2"];

/// A refusal with a code and a message that a caller can act on: it names an argument or an attribute, and says
/// what was found.
fn checked(op: &OpDef, refusal: Refusal, who: &str) -> Result<Refusal, Fault> {
    let Refusal { code, message, .. } = &refusal;
    if !REFUSALS.contains(code) || message.contains("panicked") {
        return Err(Fault(format!("{who}: {code}: {message}")));
    }
    if message.trim().is_empty() || message.ends_with("without a message") {
        return Err(Fault(format!("{who}: {code}: refuses without a reason: {message}")));
    }
    // What memory there is, is no argument's fault.
    if *code == Code::RESOURCE_EXHAUSTED {
        return Ok(refusal);
    }
    if !op.is_named_in(message) {
        return Err(Fault(format!("{who}: {code}: names no argument: {message}")));
    }
    let says = FOUND.iter().any(|word| message.contains(word));
    if !says && !NOTHING_TO_FIND.contains(&&*op.name) {
        return Err(Fault(format!("{who}: {code}: does not say what was found: {message}")));
    }
    Ok(refusal)
}

fn check_outputs(node: &Node, outputs: &[Tensor], who: &str) -> Result<(), Fault> {
    let types: Vec<_> = outputs.iter().map(Tensor::dtype).collect();
    if types != node.signature.outputs {
        let expected = &node.signature.outputs;
        return Err(Fault(format!("{who}: expected outputs of {expected:?}, found {types:?}")));
    }
    for (at, output) in outputs.iter().enumerate() {
        output.validate().map_err(|error| Fault(format!("{who}: output {at}: {error}")))?;
    }
    Ok(())
}

type Inferred = (String, Result<Vec<ValueInfo>, Refusal>);

/// Ops whose kernels take what their shape functions refuse, as TensorFlow's do: the kernel of a placeholder
/// hands on what it is fed with, that of `Reshape` takes a scalar as shape.
const KERNEL_TAKES_MORE: [&str; 2] = ["PlaceholderWithDefault", "Reshape"];

/// What a shape function says of a window for which a kernel gives an image without pixels, as TensorFlow's do.
const WINDOW: &str = "the window is larger than the input over the ";

/// A shape function refuses nothing that is computed, and says nothing that is not so.
fn check_inferred(
    (op, outputs): (&str, &[Tensor]),
    inferred: &[Inferred],
    who: &str,
) -> Result<(), Fault> {
    for (shape_function, answer) in inferred {
        match answer {
            _ if KERNEL_TAKES_MORE.contains(&op) => {}
            Err(refusal)
                if refusal.message.contains(WINDOW)
                    && outputs.iter().all(|y| y.elements() == 0) => {}
            Err(refusal) => {
                let message = &refusal.message;
                return Err(Fault(format!("{who}: computes, but {shape_function}: {message}")));
            }
            Ok(infos) => accepted(outputs, infos)
                .map_err(|message| Fault(format!("{who}: {message}, {shape_function}")))?,
        }
    }
    Ok(())
}

fn accepted(outputs: &[Tensor], infos: &[ValueInfo]) -> Result<(), String> {
    for (at, (info, output)) in infos.iter().zip(outputs).enumerate() {
        let (shape, dims) = (info.shape.partial(), output.shape().dims());
        if !shape.accepts(dims) {
            return Err(format!("output {at} is {dims:?}, not {shape}"));
        }
    }
    Ok(())
}
