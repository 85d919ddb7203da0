//! `_FusedElementwise`: a program of elementwise ops, block by block, with intermediate results in
//! the first-level cache. Its loops are those of the single ops, so that every result equals
//! theirs, bit for bit.

use super::program::{Loop, Place, Programmed, Ready, Step};
use crate::{split::for_parts, stream};
use half::{bf16, f16};
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel, Supported, Supports},
    fused::Program,
    geometry::GeometryError,
    reg::Numerics,
    register_kernel,
};

/// Bytes of a block: several registers of this size fit into the first-level cache.
const BLOCK_BYTES: usize = 4096;
/// Number of elements of all registers together, for outputs of a few elements.
const FEW: usize = 128;
/// Number of elements of all registers together, for other outputs; with a large program, blocks
/// are smaller.
const MANY: usize = 4096;
/// Most inputs; each has a register if it is repeated.
const MOST_INPUTS: usize = 1024;
/// Most inputs whose list is not allocated on the heap.
const FEW_INPUTS: usize = 16;

struct FusedElementwise<T> {
    program: Ready<T>,
}

fn ready<T: Programmed>(c: &CreateContext<'_>) -> Result<Ready<T>, KernelError> {
    let inputs: i64 = c.attr("N")?;
    let inputs = usize::try_from(inputs.max(0)).unwrap_or_default();
    let program = Program::parse(c.attr("program")?, inputs)?;
    if inputs > MOST_INPUTS {
        return Err(KernelError::unimplemented(format!(
            "inputs: at most {MOST_INPUTS} are taken, found {inputs}"
        )));
    }
    Ready::new(&program, inputs).map_err(|op| {
        KernelError::unimplemented(format!(
            "program: {} has no loop for elements of type {}",
            op.name(),
            T::DTYPE
        ))
    })
}

impl<T: Programmed> Kernel for FusedElementwise<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(FusedElementwise { program: ready(c)? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let count = c.input_count();
        let mut few: [&[T]; FEW_INPUTS] = [&[]; FEW_INPUTS];
        let mut many: Vec<&[T]> = Vec::new();
        let inputs = match few.get_mut(..count) {
            Some(few) => few,
            None => {
                many.resize(count, &[]);
                &mut many[..]
            }
        };
        for (at, input) in inputs.iter_mut().enumerate() {
            *input = c.input::<T>(at)?.data;
        }
        let dims = self.output_dims(c)?;
        let y = c.output::<T>(0, dims)?.data;
        if y.is_empty() { Ok(()) } else { self.run(c, inputs, y) }
    }
}

impl<T: Programmed> Supports for FusedElementwise<T> {
    fn supports(c: &CreateContext<'_>) -> Supported {
        ready::<T>(c).map_or_else(|error| Supported::No(error.message), |_| Supported::Yes)
    }
}

impl<T: Programmed> FusedElementwise<T> {
    /// The largest shape among the inputs that the result depends on; the other shapes are suffixes
    /// of it.
    fn output_dims<'a>(&self, c: &ComputeContext<'a>) -> Result<&'a [i64], KernelError> {
        let read = (0..c.input_count()).filter(|&at| self.program.reads[at]);
        let whole = read.map(|at| c.dims(at)).max_by_key(|dims| dims.len()).unwrap_or(&[]);
        match (0..c.input_count()).map(|at| c.dims(at)).find(|own| !whole.ends_with(own)) {
            None => Ok(whole),
            Some(own) => {
                Err(GeometryError::Incompatible { a: whole.to_vec(), b: own.to_vec() }.into())
            }
        }
    }

    fn run(&self, c: &ComputeContext<'_>, inputs: &[&[T]], y: &mut [T]) -> Result<(), KernelError> {
        let repeats = inputs.iter().any(|input| input.len() != y.len());
        let registers = self.program.registers + if repeats { inputs.len() } else { 0 };
        let block = block::<T>(registers).min(y.len());
        let blocks = Blocks { program: &self.program, inputs, block };
        let room = registers * block;
        if room <= FEW && y.len() == block {
            blocks.run(0, true, &mut [T::ZERO; FEW][..room], y);
            return Ok(());
        }
        let stores = stream::stores::<T>(y.len());
        for_parts(c, y, self.program.cost_ns, |start, y| {
            // On the stack of the thread, so that a step allocates nothing.
            let registers = &mut [T::ZERO; MANY][..room];
            stream::store_long(y, stores, |at, y| {
                let is_first = at == 0 || !stores.long_block::<T>().is_multiple_of(block);
                blocks.run(start + at, is_first, registers, y);
            });
        })
    }
}

/// Number of elements of a block, such that the registers fit.
fn block<T>(registers: usize) -> usize {
    let most = BLOCK_BYTES / size_of::<T>();
    (MANY / registers.max(1)).min(most).max(1)
}

/// A program with the inputs of a call. Registers of results come first, then one for each input:
/// it holds the part of the input for a block if that is not contiguous, as for a scalar or a short
/// vector, which is repeated.
struct Blocks<'a, T> {
    program: &'a Ready<T>,
    inputs: &'a [&'a [T]],
    block: usize,
}

impl<T: Programmed> Blocks<'_, T> {
    /// Computes some outputs from number `start` on; `is_first` if the preceding ones were not
    /// computed with these registers.
    fn run(&self, start: usize, is_first: bool, registers: &mut [T], y: &mut [T]) {
        for (number, y) in y.chunks_mut(self.block).enumerate() {
            let first = start + number * self.block;
            self.repeat_inputs(first, is_first && number == 0, y.len(), registers);
            self.steps(first, registers, y);
        }
    }

    /// The part of an input for a block, if it is contiguous.
    fn piece(&self, input: usize, first: usize, len: usize) -> Option<&[T]> {
        let data = self.inputs[input];
        let at = first % data.len();
        data.get(at..at + len)
    }

    fn repeat_inputs(&self, first: usize, is_first: bool, len: usize, registers: &mut [T]) {
        for (input, data) in self.inputs.iter().enumerate() {
            // A pattern that repeats within a block is the same in the next one.
            let stays = !is_first && self.block.is_multiple_of(data.len());
            if !stays && self.program.reads[input] && self.piece(input, first, len).is_none() {
                let at = (self.program.registers + input) * self.block;
                repeat(data, first % data.len(), &mut registers[at..at + len]);
            }
        }
    }

    fn steps(&self, first: usize, registers: &mut [T], y: &mut [T]) {
        let Some((last, steps)) = self.program.steps.split_last() else { return };
        let len = y.len();
        for step in steps {
            let (before, rest) = registers.split_at_mut(step.result * self.block);
            let (result, after) = rest.split_at_mut(self.block);
            let register = |at: usize| match at < step.result {
                true => &before[at * self.block..][..len],
                false => &after[(at - step.result - 1) * self.block..][..len],
            };
            self.step(step, first, register, &mut result[..len]);
        }
        self.step(last, first, |at| &registers[at * self.block..][..len], y);
    }

    fn step<'r>(
        &'r self,
        step: &Step<T>,
        first: usize,
        register: impl Fn(usize) -> &'r [T],
        result: &mut [T],
    ) {
        let operand = |place: Place| match place {
            Place::Register(at) => register(at),
            Place::Input(at) => self
                .piece(at, first, result.len())
                .unwrap_or_else(|| register(self.program.registers + at)),
        };
        let [x, y] = step.operands.map(operand);
        match step.run {
            Loop::One(run) => run(x, result),
            Loop::Two(run) => run(x, y, result),
        }
    }
}

/// Fills `y` with repetitions of `x`, beginning at `phase`.
fn repeat<T: Copy>(x: &[T], phase: usize, y: &mut [T]) {
    let once = x.len().min(y.len());
    let head = (x.len() - phase).min(once);
    y[..head].copy_from_slice(&x[phase..phase + head]);
    y[head..once].copy_from_slice(&x[..once - head]);
    let mut done = once;
    while done < y.len() {
        let count = done.min(y.len() - done);
        y.copy_within(..count, done);
        done += count;
    }
}

// Bounds: those of the single ops for each step.
register_kernel!("_FusedElementwise" on "CPU": FusedElementwise<T> for "T" in [f16, bf16, f32, f64],
    numerics = Numerics::ulps(6.0));
register_kernel!("_FusedElementwise" on "CPU": FusedElementwise<T> for "T" in [i32, i64],
    numerics = Numerics::EXACT);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_ulps, values};
    use tenon_sdk::fused::Operand;

    /// Computes instruction by instruction over whole tensors.
    fn plain<T: Programmed>(program: &Program, inputs: &[&[T]], len: usize) -> Vec<T> {
        let whole: Vec<Vec<T>> =
            inputs.iter().map(|x| x.iter().copied().cycle().take(len).collect()).collect();
        let mut results: Vec<Vec<T>> = Vec::new();
        for instruction in program.instructions() {
            let [x, y] = instruction.operands.map(|operand| match operand {
                Operand::Input(at) => &whole[at],
                Operand::Result(at) => &results[at],
            });
            let mut result = vec![T::ZERO; len];
            match T::timed(instruction.op).unwrap().0 {
                Loop::One(run) => run(x, &mut result),
                Loop::Two(run) => run(x, y, &mut result),
            }
            results.push(result);
        }
        results.pop().unwrap()
    }

    fn check<T: Programmed>(text: &str, lens: &[usize]) {
        let data: Vec<Vec<T>> = (1..).zip(lens).map(|(seed, &len)| values(len, seed)).collect();
        let inputs: Vec<&[T]> = data.iter().map(|x| &x[..]).collect();
        let program = Program::parse(text, lens.len()).unwrap();
        let ready = Ready::<T>::new(&program, lens.len()).unwrap();
        let len = lens.iter().copied().max().unwrap();
        let expected = plain(&program, &inputs, len);
        let count = ready.registers + lens.len();
        let blocks = Blocks { program: &ready, inputs: &inputs, block: block::<T>(count).min(len) };
        let mut registers = vec![T::ONE; count * blocks.block];
        // In two ranges, as on two threads.
        let mut found = vec![T::ZERO; len];
        let cut = len / blocks.block / 2 * blocks.block;
        let (first, second) = found.split_at_mut(cut);
        blocks.run(0, true, &mut registers, first);
        blocks.run(cut, true, &mut registers, second);
        assert_ulps(&found, &expected, 0.0);
    }

    #[test]
    fn blocks_compute_what_whole_tensors_do() {
        for len in [1, 3, 1024, 5000, 8192] {
            check::<f32>("AddV2 i0 i1; Relu %0", &[len, len]);
            check::<f32>("Mul i0 i1; AddV2 %0 i2", &[len, len, 1]);
            check::<bf16>("Exp i0; Sub %0 i1; Mul %1 %0; Tanh %2; Maximum %3 i0", &[len, 1]);
            check::<i32>("Square i0; SquaredDifference %0 i1; Neg %1; Abs %2", &[len, len]);
        }
        check::<f32>("Mul i0 i1; AddV2 %0 i2; Sigmoid %1", &[7 * 768, 768, 1]);
        check::<f64>("RealDiv i0 i1; Minimum i2 %0; Elu %1", &[3 * 7 * 401, 7, 7 * 401]);
        check::<f16>("Sub i1 i0; Softplus %0; Log %1", &[5000, 5000]);
        check::<i64>("Relu6 i0; Minimum %0 i1", &[1025, 1]);
    }

    #[test]
    fn short_vectors_are_repeated_from_any_phase() {
        let mut y = [0; 8];
        repeat(&[1, 2, 3], 2, &mut y);
        assert_eq!(y, [3, 1, 2, 3, 1, 2, 3, 1]);
        let mut y = [0; 2];
        repeat(&[1, 2, 3], 2, &mut y);
        assert_eq!(y, [3, 1]);
    }
}
