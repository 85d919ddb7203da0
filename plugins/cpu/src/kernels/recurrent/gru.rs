//! `GRUBlockCell` and its gradient.
//!
//! Source: K. Cho and others, "Learning phrase representations using RNN encoder-decoder" (2014).

use super::{
    lstm::FLOAT,
    memory::{expect, multiply},
};
use crate::kernels::{elementary::Elementary, linalg::product::Operand};
use tenon_sdk::{KernelError, author::ComputeContext, geometry::GeometryError, register_kernel};

/// Approximate nanoseconds of a cell.
const COST_NS: f64 = 4.0;

/// The sizes of a call.
struct Sizes {
    batch: usize,
    inputs: usize,
    cells: usize,
}

impl Sizes {
    fn new(c: &ComputeContext<'_>) -> Result<Sizes, KernelError> {
        let matrix = |input: usize, what| match *c.dims(input) {
            [rows, columns] => Ok([rows, columns]),
            ref dims => Err(GeometryError::Rank { what, expected: 2, found: dims.len() }),
        };
        let ([batch, inputs], [_, cells]) = (matrix(0, "x")?, matrix(1, "h_prev")?);
        let both = inputs.saturating_add(cells);
        let twice = cells.checked_mul(2).ok_or(GeometryError::TooLarge { dims: vec![cells, 2] })?;
        expect(c, 1, "h_prev", &[batch, cells])?;
        expect(c, 2, "w_ru", &[both, twice])?;
        expect(c, 3, "w_c", &[both, cells])?;
        expect(c, 4, "b_ru", &[twice])?;
        expect(c, 5, "b_c", &[cells])?;
        let [batch, inputs, cells] = [batch, inputs, cells].map(|size| size as usize);
        Ok(Sizes { batch, inputs, cells })
    }

    /// The rows of a matrix of weights that belong to `x`, and those that belong to the state.
    fn parts<'a>(&self, weights: &'a [f32], columns: usize) -> [Operand<'a, f32>; 2] {
        let (of_x, of_h) = weights.split_at(self.inputs * columns);
        [Operand::dense(of_x, self.inputs, columns), Operand::dense(of_h, self.cells, columns)]
    }
}

/// A row of a step: what it is computed from.
struct Row<'a> {
    /// What both gates take from `x` and from the state, with their biases.
    gates: [&'a [f32]; 3],
    state: &'a [f32],
}

crate::arch::vectorised! {
    /// The gates of a row, and the state as far as it is kept for the candidate.
    fn gates[](row: &Row<'_>, r: &mut [f32], u: &mut [f32], kept: &mut [f32]) {
        let cells = row.state.len();
        let (r, u, kept) = (&mut r[..cells], &mut u[..cells], &mut kept[..cells]);
        let [x, h, b] = row.gates.map(|gates| gates[..2 * cells].split_at(cells));
        for at in 0..cells {
            r[at] = (x.0[at] + h.0[at] + b.0[at]).sigmoid::<I>();
            u[at] = (x.1[at] + h.1[at] + b.1[at]).sigmoid::<I>();
            kept[at] = row.state[at] * r[at];
        }
    }
}

crate::arch::vectorised! {
    /// The candidate of a row, and the new state.
    fn states[](row: &Row<'_>, u: &[f32], candidate: &mut [f32], h: &mut [f32]) {
        let cells = row.state.len();
        let (u, candidate, h) = (&u[..cells], &mut candidate[..cells], &mut h[..cells]);
        let [by_x, by_h, b] = row.gates.map(|sums| &sums[..cells]);
        for at in 0..cells {
            candidate[at] = Elementary::tanh::<I>(by_x[at] + by_h[at] + b[at]);
            h[at] = u[at] * row.state[at] + (1.0 - u[at]) * candidate[at];
        }
    }
}

fn cell(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let s = Sizes::new(c)?;
    let of = |input: usize| c.input::<f32>(input).map(|view| view.data);
    let (x, state) = (Operand::dense(of(0)?, s.batch, s.inputs), of(1)?);
    let (cells, dims) = (s.cells, c.dims(1));
    let output = |at: usize| c.output::<f32>(at, dims).map(|view| view.data);
    let (r, u, candidate, h) = (output(0)?, output(1)?, output(2)?, output(3)?);
    let [of_x, of_h] = s.parts(of(2)?, 2 * cells);
    let scratch = |columns: usize| c.scratch_slice::<f32>(s.batch * columns);
    let (by_x, by_h, kept) = (scratch(2 * cells)?, scratch(2 * cells)?, scratch(cells)?);
    multiply(c, x, of_x, by_x)?;
    multiply(c, Operand::dense(state, s.batch, cells), of_h, by_h)?;
    let each = cells.max(1);
    let rows = r.chunks_exact_mut(each).zip(u.chunks_exact_mut(each));
    let rows = rows.zip(kept.chunks_exact_mut(each));
    let bias = of(4)?;
    c.parallel_items(rows, COST_NS * cells as f64, |row, ((r, u), kept)| {
        let part = row * 2 * cells..(row + 1) * 2 * cells;
        let state = &state[row * cells..][..cells];
        gates(&Row { gates: [&by_x[part.clone()], &by_h[part], bias], state }, r, u, kept);
        Ok(())
    })?;
    let [of_x, of_h] = s.parts(of(3)?, cells);
    let (by_x, by_h) = (&mut by_x[..s.batch * cells], &mut by_h[..s.batch * cells]);
    multiply(c, x, of_x, by_x)?;
    multiply(c, Operand::dense(kept, s.batch, cells), of_h, by_h)?;
    let rows = candidate.chunks_exact_mut(each).zip(h.chunks_exact_mut(each));
    let bias = of(5)?;
    c.parallel_items(rows, COST_NS * cells as f64, |row, (candidate, h)| {
        let part = row * cells..(row + 1) * cells;
        let gates = [&by_x[part.clone()], &by_h[part.clone()], bias];
        states(&Row { gates, state: &state[part.clone()] }, &u[part], candidate, h);
        Ok(())
    })
}

fn grad(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let s = Sizes::new(c)?;
    let (cells, dims) = (s.cells, c.dims(1));
    for (input, what) in [(6, "r"), (7, "u"), (8, "c"), (9, "d_h")] {
        expect(c, input, what, dims)?;
    }
    let of = |input: usize| c.input::<f32>(input).map(|view| view.data);
    let (state, r, u, candidate, d_h) = (of(1)?, of(6)?, of(7)?, of(8)?, of(9)?);
    let d_x = c.output::<f32>(0, c.dims(0))?.data;
    let d_state = c.output::<f32>(1, dims)?.data;
    let d_candidate = c.output::<f32>(2, dims)?.data;
    let gates = [s.batch as i64, 2 * cells as i64];
    let d_gates = c.output::<f32>(3, &gates)?.data;
    for (at, d) in d_candidate.iter_mut().enumerate() {
        *d = d_h[at] * (1.0 - u[at]) * (1.0 - candidate[at] * candidate[at]);
    }
    let [of_x, of_h] = s.parts(of(3)?, cells);
    let by_candidate = Operand::dense(d_candidate, s.batch, cells);
    let d_kept = c.scratch_slice::<f32>(s.batch * cells)?;
    multiply(c, by_candidate, of_x.transposed(), d_x)?;
    multiply(c, by_candidate, of_h.transposed(), d_kept)?;
    for (row, d_gates) in d_gates.chunks_exact_mut(2 * cells.max(1)).enumerate() {
        let (d_r, d_u) = d_gates.split_at_mut(cells);
        for (column, (d_r, d_u)) in d_r.iter_mut().zip(d_u).enumerate() {
            let at = row * cells + column;
            *d_r = d_kept[at] * state[at] * r[at] * (1.0 - r[at]);
            *d_u = d_h[at] * (state[at] - candidate[at]) * u[at] * (1.0 - u[at]);
        }
    }
    let [of_x, of_h] = s.parts(of(2)?, 2 * cells);
    let by_gates = Operand::dense(d_gates, s.batch, 2 * cells);
    let by_x = c.scratch_slice::<f32>(d_x.len())?;
    multiply(c, by_gates, of_x.transposed(), by_x)?;
    d_x.iter_mut().zip(by_x).for_each(|(d, by)| *d += *by);
    multiply(c, by_gates, of_h.transposed(), d_state)?;
    for (at, d) in d_state.iter_mut().enumerate() {
        *d += d_kept[at] * r[at] + d_h[at] * u[at];
    }
    Ok(())
}

register_kernel!("GRUBlockCell" on "CPU": fn cell, numerics = FLOAT);
register_kernel!("GRUBlockCellGrad" on "CPU": fn grad, numerics = FLOAT);
