//! Whether facts fit the op that states them.

use super::{OpFacts, OpRole, Passed, Refusal, Symmetry, ValueRule};
use crate::{
    attr::AttrType,
    op::{ArgDef, ArgType, AttrDef, OpDef, OpError},
};
use tenon_abi::{AttrKind, DType};

/// The masks of a strided slice.
const MASKS: [&str; 5] =
    ["begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"];

/// Checks facts against the signature and each other.
pub(super) fn check(op: &OpDef, facts: &OpFacts) -> Result<(), OpError> {
    let of = |fact| Checker { op, fact };
    if facts.elementwise {
        let fits = !op.inputs.is_empty() && !op.outputs.is_empty();
        of("elementwise").that(fits, "an input and an output", || of("").counts())?;
    }
    if facts.images {
        let checker = of("images");
        let fits = |args: &[ArgDef]| args.first().is_some_and(is_single);
        let both = fits(&op.inputs) && fits(&op.outputs);
        checker.that(both, "one tensor as first input and first output", || checker.counts())?;
        checker.attr("data_format", AttrKind::STRING)?;
    }
    if facts.placeholder {
        of("placeholder").arguments(0, 1)?;
    }
    if facts.declares_shape {
        of("declares_shape").attr("shape", AttrKind::SHAPE)?;
    }
    if let Some(passed) = facts.passed {
        check_passed(&of("passed"), passed)?;
    }
    check_role(&of("role"), facts.role)?;
    check_value(&of("value"), facts.value)?;
    check_refusal(&of("refusal"), facts)?;
    if facts.symmetry != Symmetry::None {
        let fits = matches!(&op.inputs[..], [a, b] if a.ty == b.ty && is_single(a) && is_single(b));
        of("symmetry").that(fits, "two inputs of one type", || of("").counts())?;
    }
    Ok(())
}

/// Whether an argument is one tensor, whatever the attributes.
fn is_single(arg: &ArgDef) -> bool {
    arg.number_attr.is_none() && !matches!(arg.ty, ArgType::ListAttr(_))
}

struct Checker<'a> {
    op: &'a OpDef,
    fact: &'static str,
}

impl Checker<'_> {
    fn that(
        &self,
        fits: bool,
        expected: &str,
        found: impl FnOnce() -> String,
    ) -> Result<(), OpError> {
        if fits {
            return Ok(());
        }
        Err(OpError::Fact {
            op: self.op.name.clone(),
            fact: self.fact,
            expected: expected.to_owned(),
            found: found(),
        })
    }

    fn counts(&self) -> String {
        let (inputs, outputs) = (self.op.inputs.len(), self.op.outputs.len());
        format!("{inputs} input and {outputs} output arguments")
    }

    fn arguments(&self, inputs: usize, outputs: usize) -> Result<(), OpError> {
        let fits = self.op.inputs.len() == inputs && self.op.outputs.len() == outputs;
        let expected = format!("{inputs} input and {outputs} output arguments");
        self.that(fits, &expected, || self.counts())
    }

    /// As many arguments, each of them one tensor.
    fn tensors(&self, inputs: usize, outputs: usize) -> Result<(), OpError> {
        self.arguments(inputs, outputs)?;
        let list = self.op.inputs.iter().chain(&self.op.outputs).find(|arg| !is_single(arg));
        self.that(list.is_none(), "arguments of one tensor each", || {
            format!("a list as argument '{}'", list.map_or("", |arg| &arg.name))
        })
    }

    /// Input `input` is a number, which selects one of the outputs of a list.
    fn selects(&self, input: usize) -> Result<(), OpError> {
        self.arguments(2, 1)?;
        let fits = self.op.inputs[input].ty == ArgType::Fixed(DType::INT32);
        self.that(fits, &format!("input {input} of type int32"), || "another type".to_owned())?;
        let fits = self.op.outputs[0].number_attr.is_some();
        self.that(fits, "a list as output", || "one tensor".to_owned())
    }

    fn is_bool(&self, input: usize) -> Result<(), OpError> {
        let fits = self.op.inputs[input].ty == ArgType::Fixed(DType::BOOL);
        self.that(fits, &format!("input {input} of type bool"), || "another type".to_owned())
    }

    fn attr(&self, name: &str, kind: AttrKind) -> Result<(), OpError> {
        let expected = AttrType::one(kind);
        let found = self.op.attr(name).map(|attr| attr.ty);
        self.that(
            found == Some(expected),
            &format!("an attribute '{name}' of type {expected}"),
            || found.map_or_else(|| "none of this name".to_owned(), |found| found.to_string()),
        )
    }
}

fn check_passed(checker: &Checker<'_>, passed: Passed) -> Result<(), OpError> {
    let Passed { input, output, reshaped } = passed;
    let (inputs, outputs) = (&checker.op.inputs, &checker.op.outputs);
    let fits = input < inputs.len() && output < outputs.len();
    let expected = format!("positions within {}", checker.counts());
    checker.that(fits, &expected, || format!("input {input}, output {output}"))?;
    let (from, to) = (&inputs[input], &outputs[output]);
    let alike = from.ty == to.ty && from.number_attr == to.number_attr && from.is_ref == to.is_ref;
    let fits = alike && (!reshaped || is_single(from));
    let expected = if reshaped { "two tensors of one type" } else { "arguments of one type" };
    checker.that(fits, expected, || format!("input '{}' and output '{}'", from.name, to.name))
}

fn check_role(checker: &Checker<'_>, role: OpRole) -> Result<(), OpError> {
    match role {
        OpRole::Kernel => Ok(()),
        OpRole::Order | OpRole::Trigger => checker.arguments(0, 0),
        OpRole::Switch if checker.op.outputs.len() == 1 => checker.selects(1),
        OpRole::Switch => {
            checker.tensors(2, 2)?;
            checker.is_bool(1)
        }
        OpRole::Merge => {
            checker.arguments(1, 2)?;
            let fits = checker.op.inputs[0].number_attr.is_some();
            checker.that(fits, "a list as input", || "one tensor".to_owned())
        }
        OpRole::Enter => {
            checker.tensors(1, 1)?;
            checker.attr("frame_name", AttrKind::STRING)?;
            checker.attr("is_constant", AttrKind::BOOL)?;
            checker.attr("parallel_iterations", AttrKind::INT)
        }
        OpRole::Exit | OpRole::NextIteration => checker.tensors(1, 1),
        OpRole::LoopCond => {
            checker.tensors(1, 1)?;
            checker.is_bool(0)
        }
        OpRole::Arg => {
            checker.tensors(0, 1)?;
            checker.attr("index", AttrKind::INT)
        }
        OpRole::Retval => {
            checker.tensors(1, 0)?;
            checker.attr("index", AttrKind::INT)
        }
        OpRole::Sender => {
            checker.tensors(1, 0)?;
            checker.attr("tensor_name", AttrKind::STRING)
        }
        OpRole::Receiver => {
            checker.tensors(0, 1)?;
            checker.attr("tensor_name", AttrKind::STRING)
        }
        OpRole::Call => {
            let calls = |attr: &AttrDef| attr.ty.kind == AttrKind::FUNC;
            let fits = checker.op.attrs.iter().any(calls);
            checker.that(fits, "an attribute of type func", || "none".to_owned())
        }
    }
}

fn check_value(checker: &Checker<'_>, rule: ValueRule) -> Result<(), OpError> {
    match rule {
        ValueRule::None => Ok(()),
        ValueRule::Constant => {
            checker.tensors(0, 1)?;
            checker.attr("value", AttrKind::TENSOR)
        }
        ValueRule::Shape | ValueRule::Pack => checker.arguments(1, 1),
        ValueRule::Size | ValueRule::Rank | ValueRule::Cast => checker.tensors(1, 1),
        ValueRule::Concat => checker.arguments(2, 1),
        ValueRule::StridedSlice => {
            checker.tensors(4, 1)?;
            MASKS.iter().try_for_each(|mask| checker.attr(mask, AttrKind::INT))
        }
    }
}

fn check_refusal(checker: &Checker<'_>, facts: &OpFacts) -> Result<(), OpError> {
    let inputs = checker.op.inputs.len();
    let elementwise = |found: &str| found.to_owned();
    match facts.refusal {
        Refusal::Divisors => {
            checker.that(facts.elementwise, "an elementwise op", || elementwise("another"))?;
            checker.tensors(2, 1)?;
        }
        Refusal::Integers => {
            checker.that(facts.elementwise, "an elementwise op", || elementwise("another"))?;
        }
        Refusal::Axes | Refusal::UnequalShapes => {
            checker.that(inputs > 0, "an input", || "none".to_owned())?;
        }
        Refusal::Anything | Refusal::Nothing | Refusal::Shapes => {}
    }
    let counts = matches!(facts.refusal, Refusal::Shapes | Refusal::Axes);
    let fits = facts.deciding == 0
        || (counts && facts.deciding.checked_shr(inputs as u32).unwrap_or(0) == 0);
    let expected = "deciding inputs among the op's own, beside Shapes or Axes";
    checker.that(fits, expected, || {
        format!("{:#x} beside {:?} of {inputs} inputs", facts.deciding, facts.refusal)
    })
}
