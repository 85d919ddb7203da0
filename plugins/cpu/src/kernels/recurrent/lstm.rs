//! `LSTMBlockCell`, `BlockLSTM` and `BlockLSTMV2`.

use super::{
    cell::{Diagonals, Given, Order, Peephole, Row, With, Without, forward},
    memory::{Output, expect, multiply, read},
};
use crate::{kernels::linalg::product::Operand, lane::Compute};
use half::f16;
use std::marker::PhantomData;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::GeometryError,
    reg::Numerics,
    register_kernel,
};

/// Approximate nanoseconds of a cell in a step.
pub const COST_NS: f64 = 6.0;

/// The sizes of a call.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    /// Whether the first dimension of `x` is time; there is one step else.
    pub has_time: bool,
    /// Steps in the tensors, and steps that are computed.
    pub time: usize,
    pub steps: usize,
    pub batch: usize,
    pub inputs: usize,
    pub cells: usize,
}

impl Sizes {
    /// The sizes of inputs from `x` on, whose number is 1 after a number of steps and 0 else.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` where the inputs do not fit together.
    pub fn new(
        c: &ComputeContext<'_>,
        has_time: bool,
        use_peephole: bool,
    ) -> Result<Sizes, KernelError> {
        let x = usize::from(has_time);
        let (time, batch, inputs) = match *c.dims(x) {
            [batch, inputs] if !has_time => (1, batch, inputs),
            [time, batch, inputs] if has_time => (time, batch, inputs),
            _ => {
                let (what, expected, found) = ("x", 2 + x, c.dims(x).len());
                return Err(GeometryError::Rank { what, expected, found }.into());
            }
        };
        let steps = if has_time { c.integer(0, "seq_len_max")? } else { 1 };
        if !(0..=time).contains(&steps) {
            return Err(KernelError::invalid_argument(format!(
                "seq_len_max: expected at most {time}, the steps of x, and at least 0, found {steps}"
            )));
        }
        let &[_, cells] = c.dims(x + 1) else {
            let (what, expected, found) = ("cs_prev", 2, c.dims(x + 1).len());
            return Err(GeometryError::Rank { what, expected, found }.into());
        };
        expect(c, x + 1, "cs_prev", &[batch, cells])?;
        expect(c, x + 2, "h_prev", &[batch, cells])?;
        let gates = cells.checked_mul(4).ok_or(GeometryError::TooLarge { dims: vec![cells, 4] })?;
        expect(c, x + 3, "w", &[inputs.saturating_add(cells), gates])?;
        for (at, what) in [(4, "wci"), (5, "wcf"), (6, "wco")] {
            if use_peephole {
                expect(c, x + at, what, &[cells])?;
            }
        }
        expect(c, x + 7, "b", &[gates])?;
        let [time, steps, batch] = [time, steps, batch].map(|size| size as usize);
        Ok(Sizes { has_time, time, steps, batch, inputs: inputs as usize, cells: cells as usize })
    }

    /// The shape of the outputs.
    pub fn dims(&self) -> [i64; 3] {
        [self.time as i64, self.batch as i64, self.cells as i64]
    }

    /// The shape of what there is one of for each step, which is without a dimension for time where there is none.
    pub fn of_steps<'d>(&self, dims: &'d [i64; 3]) -> &'d [i64] {
        if self.has_time { dims } else { &dims[1..] }
    }

    /// The weights of `x`, and those of the last output.
    pub fn weights<'a>(&self, w: &'a [f32]) -> [Operand<'a, f32>; 2] {
        let (of_x, of_h) = w.split_at(self.inputs * 4 * self.cells);
        [(of_x, self.inputs), (of_h, self.cells)]
            .map(|(data, rows)| Operand::dense(data, rows, 4 * self.cells))
    }

    /// Elements of a step.
    pub fn step(&self) -> usize {
        self.batch * self.cells
    }
}

/// The weights of peepholes, in inputs from this one on.
pub fn diagonals<'a, T: Compute<Wide = f32>>(
    c: &ComputeContext<'a>,
    first: usize,
    use_peephole: bool,
) -> Result<Diagonals<'a>, KernelError> {
    if !use_peephole {
        return Ok(Diagonals { input: &[], forget: &[], output: &[] });
    }
    let of = |at| read::<T>(c, first + at);
    Ok(Diagonals { input: of(0)?, forget: of(1)?, output: of(2)? })
}

/// The seven outputs.
struct Outputs<'a, T>([Output<'a, T>; 7]);

impl<T: Compute<Wide = f32>> Outputs<'_, T> {
    /// The rows of a step, and the state and output of the step before.
    fn step<'s>(
        &'s mut self,
        s: &Sizes,
        step: usize,
        first: [&'s [f32]; 2],
    ) -> ([&'s [f32]; 2], impl Iterator<Item = Row<'s>> + use<'s, T>) {
        let (size, cells) = (s.step(), s.cells.max(1));
        let [i, cs, f, o, ci, co, h] =
            self.0.each_mut().map(|output| output.wide.split_at_mut(step * size));
        let before = |past: &'s mut [f32], first: &'s [f32]| match step {
            0 => first,
            _ => &past[(step - 1) * size..],
        };
        let past = [before(cs.0, first[0]), before(h.0, first[1])];
        let [i, cs, f, o, ci, co, h] = [i.1, cs.1, f.1, o.1, ci.1, co.1, h.1]
            .map(|now: &'s mut [f32]| now[..size].chunks_exact_mut(cells));
        let rows = i.zip(cs).zip(f).zip(o).zip(ci).zip(co).zip(h);
        let rows = rows.map(|((((((i, cs), f), o), ci), co), h)| Row { i, cs, f, o, ci, co, h });
        (past, rows)
    }
}

struct Lstm<T, const TIME: bool, const V2: bool> {
    forget_bias: f32,
    clip: f32,
    use_peephole: bool,
    of: PhantomData<fn(T)>,
}

impl<T: Compute<Wide = f32>, const TIME: bool, const V2: bool> Lstm<T, TIME, V2> {
    fn run<P: Peephole>(&self, c: &ComputeContext<'_>, s: &Sizes) -> Result<(), KernelError> {
        let x = usize::from(TIME);
        let dims = s.dims();
        let output = |at: usize| Output::<T>::new(c, at, s.of_steps(&dims));
        let mut outputs = Outputs([
            output(0)?,
            output(1)?,
            output(2)?,
            output(3)?,
            output(4)?,
            output(5)?,
            output(6)?,
        ]);
        for output in &mut outputs.0 {
            output.wide[s.steps * s.step()..].fill(0.0);
        }
        let first = [read::<T>(c, x + 1)?, read::<T>(c, x + 2)?];
        let [of_x, of_h] = s.weights(read::<T>(c, x + 3)?);
        let (bias, gates) = (read::<T>(c, x + 7)?, 4 * s.cells);
        let diagonals = diagonals::<T>(c, x + 4, self.use_peephole)?;
        let rows = s.steps * s.batch;
        let by_x = c.scratch_slice::<f32>(rows.saturating_mul(gates))?;
        let x = Operand::dense(&read::<T>(c, x)?[..rows * s.inputs], rows, s.inputs);
        multiply(c, x, of_x, by_x)?;
        let by_h = c.scratch_slice::<f32>(s.batch * gates)?;
        let order = if V2 { Order::IFCO } else { Order::ICFO };
        for step in 0..s.steps {
            let ([state, h], rows) = outputs.step(s, step, first);
            multiply(c, Operand::dense(&h[..s.step()], s.batch, s.cells), of_h, by_h)?;
            let by_x = &by_x[step * s.batch * gates..];
            c.parallel_items(rows, COST_NS * s.cells as f64, |row, outputs| {
                let gates = [&by_x[row * gates..], &by_h[row * gates..], bias];
                let state = &state[row * s.cells..][..s.cells];
                let (forget_bias, clip) = (self.forget_bias, self.clip);
                let given = Given { gates, state, diagonals, order, forget_bias, clip };
                forward::<P>(given, outputs);
                Ok(())
            })?;
        }
        outputs.0.into_iter().for_each(Output::finish);
        Ok(())
    }
}

impl<T: Compute<Wide = f32>, const TIME: bool, const V2: bool> Kernel for Lstm<T, TIME, V2> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let clip = c.attr::<f32>("cell_clip")?;
        Ok(Lstm {
            forget_bias: if V2 { 0.0 } else { c.attr("forget_bias")? },
            clip: if clip > 0.0 { clip } else { f32::INFINITY },
            use_peephole: c.attr("use_peephole")?,
            of: PhantomData,
        })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let s = Sizes::new(c, TIME, self.use_peephole)?;
        match self.use_peephole {
            true => self.run::<With>(c, &s),
            false => self.run::<Without>(c, &s),
        }
    }
}

type LstmBlockCell<T> = Lstm<T, false, false>;
type BlockLstm<T> = Lstm<T, true, false>;
type BlockLstmV2<T> = Lstm<T, true, true>;

/// What a chain of steps may deviate by: each rounds a little, and gates have slopes below 1.
pub const FLOAT: Numerics = Numerics::relative(1e-5, 1e-5).accumulation(DType::FLOAT);
/// As [`FLOAT`], rounded to half.
pub const HALF: Numerics = Numerics::relative(2e-3, 2e-3).accumulation(DType::FLOAT);

macro_rules! cells {
    ($($op:literal $kernel:ident [$($memory:literal),*];)*) => {$(
        register_kernel!($op on "CPU": $kernel<T> for "T" in [f32],
            host_memory = &[$($memory),*], numerics = FLOAT);
        register_kernel!($op on "CPU": $kernel<T> for "T" in [f16],
            host_memory = &[$($memory),*], numerics = HALF);
    )*};
}

cells! {
    "LSTMBlockCell" LstmBlockCell [];
    "BlockLSTM" BlockLstm ["seq_len_max"];
    "BlockLSTMV2" BlockLstmV2 ["seq_len_max"];
}
