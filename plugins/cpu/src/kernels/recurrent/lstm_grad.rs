//! `LSTMBlockCellGrad`, `BlockLSTMGrad` and `BlockLSTMGradV2`.

use super::{
    cell::{GivenBack, Order, Peephole, With, Without, backward},
    lstm::{COST_NS, FLOAT, HALF, Sizes, diagonals},
    memory::{Output, expect, multiply, read},
};
use crate::{kernels::linalg::product::Operand, lane::Compute};
use half::f16;
use std::marker::PhantomData;
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    register_kernel,
};

/// What the steps gave, as floats.
struct Given<'a> {
    i: &'a [f32],
    cs: &'a [f32],
    f: &'a [f32],
    o: &'a [f32],
    ci: &'a [f32],
    co: &'a [f32],
    /// The state before the first step.
    first: &'a [f32],
    cs_grad: &'a [f32],
    h_grad: &'a [f32],
}

impl<'a> Given<'a> {
    /// Reads inputs from `first` on: the outputs of the op, without `h` where there is one step, and their gradients.
    fn new<T: Compute<Wide = f32>>(
        c: &ComputeContext<'a>,
        s: &Sizes,
        first: usize,
    ) -> Result<Given<'a>, KernelError> {
        let (dims, x) = (s.dims(), usize::from(s.has_time));
        let names = ["i", "cs", "f", "o", "ci", "co"];
        for (at, what) in names.into_iter().enumerate() {
            expect(c, first + at, what, s.of_steps(&dims))?;
        }
        let grads = first + 6 + x;
        for (at, what) in ["cs_grad", "h_grad"].into_iter().enumerate() {
            expect(c, grads + at, what, s.of_steps(&dims))?;
        }
        let of = |at| read::<T>(c, at);
        Ok(Given {
            i: of(first)?,
            cs: of(first + 1)?,
            f: of(first + 2)?,
            o: of(first + 3)?,
            ci: of(first + 4)?,
            co: of(first + 5)?,
            first: of(x + 1)?,
            cs_grad: of(grads)?,
            h_grad: of(grads + 1)?,
        })
    }

    /// The state before a step.
    fn before(&self, s: &Sizes, step: usize) -> &'a [f32] {
        match step {
            0 => self.first,
            _ => &self.cs[(step - 1) * s.step()..],
        }
    }

    /// Computes the gradients of a step by its gates and by the state before, from those of the state and the output
    /// after it.
    fn step<P: Peephole>(
        &self,
        c: &ComputeContext<'_>,
        s: &Sizes,
        (step, order, peepholes): (usize, Order, super::cell::Diagonals<'_>),
        [by_cs, by_h]: [&[f32]; 2],
        (by_gates, by_state): (&mut [f32], &mut [f32]),
    ) -> Result<(), KernelError> {
        let cells = s.cells.max(1);
        let rows = by_gates.chunks_exact_mut(4 * cells).zip(by_state.chunks_exact_mut(cells));
        let (start, before) = (step * s.step(), self.before(s, step));
        c.parallel_items(rows, COST_NS * s.cells as f64, |row, (by_gates, by_state)| {
            let own = |of: &'_ [f32]| -> std::ops::Range<usize> {
                let from = (start + row * s.cells).min(of.len());
                from..(from + s.cells).min(of.len())
            };
            let within = row * s.cells..(row + 1) * s.cells;
            let given = GivenBack {
                i: &self.i[own(self.i)],
                f: &self.f[own(self.f)],
                o: &self.o[own(self.o)],
                ci: &self.ci[own(self.ci)],
                co: &self.co[own(self.co)],
                state: &before[within.clone()],
                cs_grad: &by_cs[within.clone()],
                h_grad: &by_h[within],
                diagonals: peepholes,
                order,
            };
            backward::<P>(&given, by_gates, by_state);
            Ok(())
        })
    }

    /// The gradients by the weights of the peepholes, from those by the gates of all steps.
    fn by_diagonals(&self, s: &Sizes, order: Order, by_gates: &[f32], [i, f, o]: [&mut [f32]; 3]) {
        [&mut *i, &mut *f, &mut *o].into_iter().for_each(|sums| sums.fill(0.0));
        for row in 0..s.steps * s.batch {
            let gates = &by_gates[row * 4 * s.cells..][..4 * s.cells];
            let (step, within) = (row / s.batch, row % s.batch * s.cells);
            let before = &self.before(s, step)[within..][..s.cells];
            let after = &self.cs[row * s.cells..][..s.cells];
            let add = |sums: &mut [f32], gate: usize, states: &[f32]| {
                let gate = &gates[gate * s.cells..][..s.cells];
                sums.iter_mut()
                    .zip(gate)
                    .zip(states)
                    .for_each(|((sum, by), state)| *sum += by * state);
            };
            add(i, order.input, before);
            add(f, order.forget, before);
            add(o, order.output, after);
        }
    }
}

/// `LSTMBlockCellGrad`.
struct CellGrad<T> {
    use_peephole: bool,
    of: PhantomData<fn(T)>,
}

/// Computes the gradients of the three weights of peepholes.
type Diagonals<'a> = dyn Fn([&mut [f32]; 3]) + 'a;

/// Three outputs of the weights of peepholes, 0 where there are none.
fn diagonal_outputs<T: Compute<Wide = f32>>(
    c: &ComputeContext<'_>,
    (first, cells): (usize, usize),
    compute: Option<&Diagonals<'_>>,
) -> Result<(), KernelError> {
    let output = |at: usize| Output::<T>::new(c, first + at, &[cells as i64]);
    let mut outputs = [output(0)?, output(1)?, output(2)?];
    match compute {
        Some(compute) => compute(outputs.each_mut().map(|output| &mut *output.wide)),
        None => outputs.iter_mut().for_each(|output| output.wide.fill(0.0)),
    }
    outputs.into_iter().for_each(Output::finish);
    Ok(())
}

impl<T: Compute<Wide = f32>> CellGrad<T> {
    fn run<P: Peephole>(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let s = Sizes::new(c, false, P::IS_THERE)?;
        let given = Given::new::<T>(c, &s, 8)?;
        let peepholes = diagonals::<T>(c, 4, P::IS_THERE)?;
        let (batch, cells) = (s.batch as i64, s.cells as i64);
        let by_state = Output::<T>::new(c, 0, &[batch, cells])?;
        let by_gates = Output::<T>::new(c, 1, &[batch, 4 * cells])?;
        let grads = [given.cs_grad, given.h_grad];
        let written = (&mut *by_gates.wide, &mut *by_state.wide);
        given.step::<P>(c, &s, (0, Order::ICFO, peepholes), grads, written)?;
        let sums = |sums: [&mut [f32]; 3]| given.by_diagonals(&s, Order::ICFO, by_gates.wide, sums);
        diagonal_outputs::<T>(c, (2, s.cells), P::IS_THERE.then_some(&sums))?;
        by_gates.finish();
        by_state.finish();
        Ok(())
    }
}

impl<T: Compute<Wide = f32>> Kernel for CellGrad<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(CellGrad { use_peephole: c.attr("use_peephole")?, of: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        if self.use_peephole { self.run::<With>(c) } else { self.run::<Without>(c) }
    }
}

/// `BlockLSTMGrad` and `BlockLSTMGradV2`.
struct Grad<T, const V2: bool> {
    use_peephole: bool,
    of: PhantomData<fn(T)>,
}

impl<T: Compute<Wide = f32>, const V2: bool> Grad<T, V2> {
    const ORDER: Order = if V2 { Order::IFCO } else { Order::ICFO };

    fn run<P: Peephole>(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let s = Sizes::new(c, true, P::IS_THERE)?;
        let given = Given::new::<T>(c, &s, 9)?;
        let dims = s.dims();
        expect(c, 15, "h", s.of_steps(&dims))?;
        let gates = 4 * s.cells;
        let by_gates = c.scratch_slice::<f32>((s.steps * s.batch).saturating_mul(gates))?;
        self.steps::<P>(c, &s, &given, by_gates)?;
        self.by_x_and_weights(c, &s, by_gates)?;
        let sums = |sums: [&mut [f32]; 3]| given.by_diagonals(&s, Self::ORDER, by_gates, sums);
        diagonal_outputs::<T>(c, (4, s.cells), P::IS_THERE.then_some(&sums))?;
        let by_bias = Output::<T>::new(c, 7, &[gates as i64])?;
        by_bias.wide.fill(0.0);
        for row in by_gates.chunks_exact(gates.max(1)) {
            by_bias.wide.iter_mut().zip(row).for_each(|(sum, by)| *sum += by);
        }
        by_bias.finish();
        Ok(())
    }

    /// Computes the gradients by the gates of all steps, from the last one on, and by the first state and output.
    fn steps<P: Peephole>(
        &self,
        c: &ComputeContext<'_>,
        s: &Sizes,
        given: &Given<'_>,
        by_gates: &mut [f32],
    ) -> Result<(), KernelError> {
        let dims = [s.batch as i64, s.cells as i64];
        let (by_cs, by_h) = (Output::<T>::new(c, 1, &dims)?, Output::<T>::new(c, 2, &dims)?);
        by_cs.wide.fill(0.0);
        by_h.wide.fill(0.0);
        let [_, of_h] = s.weights(read::<T>(c, 4)?);
        let peepholes = diagonals::<T>(c, 5, P::IS_THERE)?;
        let size = s.step();
        let (cs_sum, h_sum) = (c.scratch_slice::<f32>(size)?, c.scratch_slice::<f32>(size)?);
        for step in (0..s.steps).rev() {
            // What a step gives is used by the caller and by the next step.
            for (sum, own, later) in [
                (&mut *cs_sum, given.cs_grad, &*by_cs.wide),
                (&mut *h_sum, given.h_grad, &*by_h.wide),
            ] {
                let own = &own[step * size..][..size];
                sum.iter_mut()
                    .zip(own)
                    .zip(later)
                    .for_each(|((sum, own), later)| *sum = own + later);
            }
            let of_step = &mut by_gates[step * s.batch * 4 * s.cells..][..4 * size];
            let written = (&mut *of_step, &mut *by_cs.wide);
            given.step::<P>(c, s, (step, Self::ORDER, peepholes), [cs_sum, h_sum], written)?;
            let of_step = Operand::dense(of_step, s.batch, 4 * s.cells);
            multiply(c, of_step, of_h.transposed(), by_h.wide)?;
        }
        by_cs.finish();
        by_h.finish();
        Ok(())
    }

    /// Computes the gradients by `x` and by the weights from those by the gates of all steps.
    fn by_x_and_weights(
        &self,
        c: &ComputeContext<'_>,
        s: &Sizes,
        by_gates: &[f32],
    ) -> Result<(), KernelError> {
        let (rows, gates) = (s.steps * s.batch, 4 * s.cells);
        let [of_x, _] = s.weights(read::<T>(c, 4)?);
        let by_gates = Operand::dense(by_gates, rows, gates);
        let by_x = Output::<T>::new(c, 0, c.dims(1))?;
        let (now, later) = by_x.wide.split_at_mut(rows * s.inputs);
        later.fill(0.0);
        multiply(c, by_gates, of_x.transposed(), now)?;
        by_x.finish();

        let by_w = Output::<T>::new(c, 3, c.dims(4))?;
        by_w.wide.fill(0.0);
        let (by_wx, by_wh) = by_w.wide.split_at_mut(s.inputs * gates);
        let x = &read::<T>(c, 1)?[..rows * s.inputs];
        multiply(c, Operand::dense(x, rows, s.inputs).transposed(), by_gates, by_wx)?;
        if s.steps > 0 {
            let first = Operand::dense(read::<T>(c, 3)?, s.batch, s.cells).transposed();
            let of_first = Operand::dense(by_gates.data, s.batch, gates);
            multiply(c, first, of_first, by_wh)?;
        }
        if s.steps > 1 {
            let before = rows - s.batch;
            let h = &read::<T>(c, 15)?[..before * s.cells];
            let others = Operand::dense(&by_gates.data[s.batch * gates..], before, gates);
            let sum = c.scratch_slice::<f32>(by_wh.len())?;
            multiply(c, Operand::dense(h, before, s.cells).transposed(), others, sum)?;
            by_wh.iter_mut().zip(sum).for_each(|(by, sum)| *by += *sum);
        }
        by_w.finish();
        Ok(())
    }
}

impl<T: Compute<Wide = f32>, const V2: bool> Kernel for Grad<T, V2> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Grad { use_peephole: c.attr("use_peephole")?, of: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        if self.use_peephole { self.run::<With>(c) } else { self.run::<Without>(c) }
    }
}

type BlockGrad<T> = Grad<T, false>;
type BlockGradV2<T> = Grad<T, true>;

macro_rules! grads {
    ($($op:literal $kernel:ident [$($memory:literal),*];)*) => {$(
        register_kernel!($op on "CPU": $kernel<T> for "T" in [f32],
            host_memory = &[$($memory),*], numerics = FLOAT);
        register_kernel!($op on "CPU": $kernel<T> for "T" in [f16],
            host_memory = &[$($memory),*], numerics = HALF);
    )*};
}

grads! {
    "LSTMBlockCellGrad" CellGrad [];
    "BlockLSTMGrad" BlockGrad ["seq_len_max"];
    "BlockLSTMGradV2" BlockGradV2 ["seq_len_max"];
}
