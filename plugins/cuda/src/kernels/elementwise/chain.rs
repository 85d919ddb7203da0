//! `_FusedElementwise`: a program of elementwise ops as one generated kernel.
//!
//! The functors are those of the single ops, and every result is rounded as between single ops, so
//! that a program gives the same results as its ops. The variant depends on the program and on the
//! kinds of its inputs.

use super::{
    access::{Access, widened},
    types::FLOATS,
};
use crate::{
    compile::{Entry, Source, Variant},
    kernels::{
        divisor::{Divide, Divisor},
        dtype::name_of,
    },
    launch::{Launch, Operand},
    source,
};
use std::{
    fmt::Write,
    sync::{Arc, Mutex, PoisonError},
};
use tenon_sdk::{
    DType, KernelError,
    author::Supported,
    fused::{Instruction, Operand as From, Program, ProgramOp},
    geometry::GeometryError,
    prelude::*,
    reg::{Numerics, join_types},
};

static SOURCE: Source = source!("chain.cu", overlaps);

/// Most inputs that are read.
const MOST: usize = 8;

/// How an input repeats over the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Full,
    /// Its shape is a suffix of the output's, and its rows are whole accesses.
    Row,
    /// Its shape is a suffix of the output's, and its rows end within accesses.
    Ragged,
    Scalar,
}

impl Kind {
    fn of(elements: u64, whole: u64, lanes: u64) -> Kind {
        match elements {
            1 => Kind::Scalar,
            _ if elements == whole => Kind::Full,
            _ if elements.is_multiple_of(lanes) => Kind::Row,
            _ => Kind::Ragged,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Full => "FULL",
            Kind::Row => "ROW",
            Kind::Ragged => "RAGGED",
            Kind::Scalar => "SCALAR",
        }
    }
}

/// A program in the notation of `chain.cu`, over the inputs that its result depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Text {
    body: String,
    /// Indices of the node's inputs that are read.
    reads: Vec<usize>,
}

impl Text {
    fn new(program: &Program) -> Text {
        let all = program.instructions();
        let live = live(all);
        let is_live = |at: &usize| live[*at];
        let used = (0..all.len()).filter(is_live).flat_map(|at| all[at].operands);
        let mut reads: Vec<usize> = used
            .filter_map(|operand| match operand {
                From::Input(input) => Some(input),
                From::Result(_) => None,
            })
            .collect();
        reads.sort_unstable();
        reads.dedup();
        let word = |operand: From| match operand {
            From::Input(input) => {
                format!("v[{}]", reads.iter().position(|own| *own == input).unwrap_or(0))
            }
            From::Result(result) => format!("r{result}"),
        };
        let mut body = String::new();
        for at in (0..all.len()).filter(is_live) {
            let (name, [x, y]) = (all[at].op.name(), all[at].operands.map(word));
            // Writing to a string does not fail.
            let _ = match all[at].op.operands() {
                1 => write!(body, "const Value r{at} = one<op::{name}>({x}); "),
                _ => write!(body, "const Value r{at} = two<op::{name}>({x}, {y}); "),
            };
        }
        let _ = write!(body, "return r{};", all.len() - 1);
        Text { body, reads }
    }

    fn variant(&self, dtype: DType, kinds: &[Kind]) -> Result<Variant, KernelError> {
        let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
        let text = format!(
            "#define INPUTS {}\n#define KINDS {}\n#define PROGRAM {}\n",
            kinds.len(),
            names.join(", "),
            self.body
        );
        Ok(Variant::new(&SOURCE).define("T", name_of(dtype)?).generated(text))
    }
}

/// Whether the last result depends on each instruction.
fn live(all: &[Instruction]) -> Vec<bool> {
    let mut live = vec![false; all.len()];
    if let Some(last) = live.last_mut() {
        *last = true;
    }
    for at in (0..all.len()).rev().filter(|at| *at < all.len()) {
        for operand in all[at].operands {
            if let (true, From::Result(result)) = (live[at], operand) {
                live[result] = true;
            }
        }
    }
    live
}

/// Examples: a bias with an activation, a longer chain, and rows that end within accesses.
pub(super) fn variants() -> Vec<Variant> {
    use Kind::{Full, Ragged, Row, Scalar};
    let examples: [(&str, &[Kind]); 3] = [
        ("AddV2 i0 i1; Relu %0", &[Full, Row]),
        ("Mul i0 i1; Erf %0; AddV2 %1 i1; Mul %2 i0; Tanh %3", &[Full, Scalar]),
        ("SquaredDifference i0 i1; Rsqrt i2; Mul %0 %1", &[Full, Ragged, Full]),
    ];
    let mut all = Vec::new();
    for (program, kinds) in examples {
        if let Ok(program) = Program::parse(program, kinds.len()) {
            all.extend(FLOATS.iter().flat_map(|dtype| Text::new(&program).variant(*dtype, kinds)));
        }
    }
    all
}

/// `ChainInputs` in `chain.cu`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct ChainInputs<I> {
    at: [u64; MOST],
    rows: [Divisor<I>; MOST],
}

impl<I: Divide> ChainInputs<I> {
    fn new(inputs: &[Operand]) -> ChainInputs<I> {
        let mut all = ChainInputs { at: [0; MOST], rows: [I::divisor(1); MOST] };
        for (n, input) in inputs.iter().enumerate() {
            all.at[n] = input.address;
            all.rows[n] = I::divisor(input.elements);
        }
        all
    }
}

/// Parameters: inputs, address of the result, number of elements.
type Call<I> = (ChainInputs<I>, u64, u64);

/// A compiled entry, by the width of its indices.
#[derive(Clone)]
enum Loaded {
    Short(Arc<Entry<Call<u32>>>),
    Long(Arc<Entry<Call<u64>>>),
}

/// What an entry was compiled for.
type Key = (Vec<Kind>, Access);

struct Chain {
    dtype: DType,
    text: Text,
    /// The entry of the last call, which the next call probably needs.
    last: Mutex<Option<(Key, Loaded)>>,
}

/// Types that every op of integers supports.
const INTEGERS: &[DType] = &[DType::INT32, DType::INT64];

/// Whether an op supports integers.
fn has_integers(op: ProgramOp) -> bool {
    use ProgramOp::{
        Abs, AddV2, Maximum, Minimum, Mul, Neg, Relu, Relu6, Square, SquaredDifference, Sub,
    };
    matches!(
        op,
        Abs | AddV2
            | Maximum
            | Minimum
            | Mul
            | Neg
            | Relu
            | Relu6
            | Square
            | SquaredDifference
            | Sub
    )
}

fn text(c: &CreateContext<'_>) -> Result<(DType, Text), KernelError> {
    let (inputs, dtype): (i64, DType) = (c.attr("N")?, c.attr("T")?);
    let inputs = usize::try_from(inputs.max(0)).unwrap_or_default();
    let program = Program::parse(c.attr("program")?, inputs)?;
    let missing = program.instructions().iter().find(|one| !has_integers(one.op));
    if let Some(missing) = missing.filter(|_| INTEGERS.contains(&dtype)) {
        return Err(KernelError::unimplemented(format!(
            "program: {} has no elements of type {dtype}",
            missing.op.name()
        )));
    }
    let text = Text::new(&program);
    match text.reads.len() {
        1..=MOST => Ok((dtype, text)),
        found => Err(KernelError::unimplemented(format!(
            "program: expected 1 to {MOST} inputs that are read, found {found}"
        ))),
    }
}

impl Kernel for Chain {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let (dtype, text) = text(c)?;
        Ok(Chain { dtype, text, last: Mutex::new(None) })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let dims = self.output_dims(c)?;
        let launch = Launch::new(c)?;
        let inputs = self.text.reads.iter().map(|&at| launch.input(at));
        let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
        let output = launch.output(0, dims)?;
        if output.elements == 0 {
            return Ok(());
        }
        self.run(&launch, &inputs, output)
    }
}

impl Supports for Chain {
    fn supports(c: &CreateContext<'_>) -> Supported {
        text(c).map_or_else(|error| Supported::No(error.message), |_| Supported::Yes)
    }
}

impl Chain {
    /// The largest shape among the inputs that the result depends on; the other shapes are suffixes
    /// of it.
    fn output_dims<'a>(&self, c: &ComputeContext<'a>) -> Result<&'a [i64], KernelError> {
        let read = self.text.reads.iter().map(|&at| c.dims(at));
        let whole = read.max_by_key(|dims| dims.len()).unwrap_or(&[]);
        match (0..c.input_count()).map(|at| c.dims(at)).find(|own| !whole.ends_with(own)) {
            None => Ok(whole),
            Some(own) => {
                Err(GeometryError::Incompatible { a: whole.to_vec(), b: own.to_vec() }.into())
            }
        }
    }

    fn run(
        &self,
        launch: &Launch<'_>,
        inputs: &[Operand],
        output: Operand,
    ) -> Result<(), KernelError> {
        let several = inputs.iter().copied().filter(|input| input.elements != 1);
        let operands: Vec<Operand> = several.chain([output]).collect();
        let access = Access::whole(output.elements, &operands);
        let kind = |input: &Operand| Kind::of(input.elements, output.elements, access.lanes);
        let key = (inputs.iter().map(kind).collect(), access);
        let grid = access.grid(output.elements, launch);
        let (to, count) = (output.address, output.elements);
        // SAFETY: the kinds say which inputs have as many elements as the output; the divisors
        // limit the indices into the others.
        unsafe {
            match self.loaded(launch, key)? {
                Loaded::Short(entry) => {
                    launch.run(&entry, grid, (ChainInputs::new(inputs), to, count))
                }
                Loaded::Long(entry) => {
                    launch.run(&entry, grid, (ChainInputs::new(inputs), to, count))
                }
            }
        }
    }

    fn loaded(&self, launch: &Launch<'_>, key: Key) -> Result<Loaded, KernelError> {
        let last = || self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, loaded)) = last().as_ref().filter(|(own, _)| *own == key) {
            return Ok(loaded.clone());
        }
        let variant = widened(self.text.variant(self.dtype, &key.0)?, key.1);
        let module = launch.device().modules().get(&variant)?;
        // SAFETY: `chain` takes the inputs, for its index type, an address and a count.
        let loaded = unsafe {
            match key.1.is_long {
                false => Loaded::Short(Arc::new(module.entry("chain")?)),
                true => Loaded::Long(Arc::new(module.entry("chain")?)),
            }
        };
        *last() = Some((key, loaded.clone()));
        Ok(loaded)
    }
}

const TYPES: &[DType] = &join_types::<{ FLOATS.len() + 2 }>(FLOATS, INTEGERS);

register_kernel!("_FusedElementwise" on "CUDA": Chain, types = ("T", TYPES),
    numerics = Numerics::ulps(8.0));

#[cfg(test)]
mod tests {
    use super::*;

    fn of(program: &str, inputs: usize) -> Text {
        Text::new(&Program::parse(program, inputs).unwrap())
    }

    #[test]
    fn a_program_is_written_over_what_it_reads() {
        let text = of("AddV2 i0 i2; Neg i1; Relu %0", 3);
        assert_eq!(text.reads, [0, 2]);
        assert_eq!(
            text.body,
            "const Value r0 = two<op::AddV2>(v[0], v[1]); const Value r2 = one<op::Relu>(r0); return r2;"
        );
    }

    #[test]
    fn kinds_follow_from_sizes() {
        let kinds = [64, 1, 8, 6].map(|elements| Kind::of(elements, 64, 4));
        assert_eq!(kinds, [Kind::Full, Kind::Scalar, Kind::Row, Kind::Ragged]);
        assert_eq!(Kind::of(6, 64, 1), Kind::Row);
        let text = of("AddV2 i0 i1", 2).variant(DType::HALF, &kinds[..2]).unwrap().text();
        assert!(text.contains("#define KINDS FULL, SCALAR\n"), "{text}");
    }
}
