//! The formulas of one row of a step of an LSTM.
//!
//! Source: S. Hochreiter and J. Schmidhuber, "Long short-term memory" (1997), with the forget gate of F. Gers and others
//! (1999) and the peepholes of F. Gers and J. Schmidhuber (2000).

use crate::kernels::elementary::Elementary;

/// Where the gates are in a row of four times the cells, in units of the number of cells.
#[derive(Debug, Clone, Copy)]
pub struct Order {
    pub input: usize,
    pub cell: usize,
    pub forget: usize,
    pub output: usize,
}

impl Order {
    /// Of `LSTMBlockCell` and `BlockLSTM`.
    pub const ICFO: Order = Order { input: 0, cell: 1, forget: 2, output: 3 };
    /// Of `BlockLSTMV2`.
    pub const IFCO: Order = Order { input: 0, cell: 2, forget: 1, output: 3 };
}

/// Whether the gates see the state of the cells.
pub trait Peephole {
    const IS_THERE: bool;
}

/// The gates see the state.
pub enum With {}
/// They do not.
pub enum Without {}

impl Peephole for With {
    const IS_THERE: bool = true;
}

impl Peephole for Without {
    const IS_THERE: bool = false;
}

/// The diagonal weights of peepholes; empty where there are none.
#[derive(Debug, Clone, Copy)]
pub struct Diagonals<'a> {
    pub input: &'a [f32],
    pub forget: &'a [f32],
    pub output: &'a [f32],
}

/// What a row of a step is computed from.
pub struct Given<'a> {
    /// What the gates take from `x`, from the last output, and their biases.
    pub gates: [&'a [f32]; 3],
    /// The state of the cells before.
    pub state: &'a [f32],
    pub diagonals: Diagonals<'a>,
    pub order: Order,
    pub forget_bias: f32,
    /// Largest magnitude of a state.
    pub clip: f32,
}

/// A row of the outputs of a step, in their order.
pub struct Row<'a> {
    pub i: &'a mut [f32],
    pub cs: &'a mut [f32],
    pub f: &'a mut [f32],
    pub o: &'a mut [f32],
    pub ci: &'a mut [f32],
    pub co: &'a mut [f32],
    pub h: &'a mut [f32],
}

/// The part of a row that belongs to a gate.
#[inline(always)]
fn part(row: &[f32], gate: usize, cells: usize) -> &[f32] {
    &row[gate * cells..][..cells]
}

/// The same part of three rows, added.
#[inline(always)]
fn sums<'a>(rows: &[&'a [f32]; 3], gate: usize, cells: usize) -> impl Fn(usize) -> f32 + use<'a> {
    let [x, h, b] = rows.map(|row| part(row, gate, cells));
    move |at| x[at] + h[at] + b[at]
}

crate::arch::vectorised! {
    /// Computes a row of a step.
    pub fn forward[P: Peephole](given: Given<'_>, row: Row<'_>) {
        let cells = given.state.len();
        let gate = |gate| sums(&given.gates, gate, cells);
        let (of_i, of_c) = (gate(given.order.input), gate(given.order.cell));
        let (of_f, of_o) = (gate(given.order.forget), gate(given.order.output));
        let Row { i, cs, f, o, ci, co, h } = row;
        let (i, cs, f, o) = (&mut i[..cells], &mut cs[..cells], &mut f[..cells], &mut o[..cells]);
        let (ci, co, h) = (&mut ci[..cells], &mut co[..cells], &mut h[..cells]);
        for at in 0..cells {
            let before = given.state[at];
            let seen = |weights: &[f32], state: f32| {
                if P::IS_THERE { weights[at] * state } else { 0.0 }
            };
            i[at] = (of_i(at) + seen(given.diagonals.input, before)).sigmoid::<I>();
            f[at] = (of_f(at) + given.forget_bias + seen(given.diagonals.forget, before)).sigmoid::<I>();
            ci[at] = Elementary::tanh::<I>(of_c(at));
            let state = ci[at] * i[at] + before * f[at];
            let state = if state > given.clip { given.clip } else { state };
            let state = if state < -given.clip { -given.clip } else { state };
            cs[at] = state;
            co[at] = Elementary::tanh::<I>(state);
            o[at] = (of_o(at) + seen(given.diagonals.output, state)).sigmoid::<I>();
            h[at] = o[at] * co[at];
        }
    }
}

/// What the gradients of a row are computed from: what the step gave, and the gradients of its state and output.
pub struct GivenBack<'a> {
    pub i: &'a [f32],
    pub f: &'a [f32],
    pub o: &'a [f32],
    pub ci: &'a [f32],
    pub co: &'a [f32],
    /// The state of the cells before the step.
    pub state: &'a [f32],
    pub cs_grad: &'a [f32],
    pub h_grad: &'a [f32],
    pub diagonals: Diagonals<'a>,
    pub order: Order,
}

crate::arch::vectorised! {
    /// Computes the gradients of a row by the gates' sums, and by the state before. `by_state` may have had the gradient
    /// of the state after, which `given` then has no more.
    pub fn backward[P: Peephole](given: &GivenBack<'_>, by_gates: &mut [f32], by_state: &mut [f32]) {
        let cells = given.state.len();
        let by_state = &mut by_state[..cells];
        let (i, f, o) = (&given.i[..cells], &given.f[..cells], &given.o[..cells]);
        let (ci, co) = (&given.ci[..cells], &given.co[..cells]);
        let (cs_grad, h_grad) = (&given.cs_grad[..cells], &given.h_grad[..cells]);
        let Order { input, cell, forget, output } = given.order;
        for at in 0..cells {
            let seen = |weights: &[f32], by: f32| if P::IS_THERE { weights[at] * by } else { 0.0 };
            let by_o = o[at] * (1.0 - o[at]) * h_grad[at] * co[at];
            let by_cs = (1.0 - co[at] * co[at]) * h_grad[at] * o[at] + cs_grad[at]
                + seen(given.diagonals.output, by_o);
            let by_ci = (1.0 - ci[at] * ci[at]) * by_cs * i[at];
            let by_f = f[at] * (1.0 - f[at]) * by_cs * given.state[at];
            let by_i = i[at] * (1.0 - i[at]) * by_cs * ci[at];
            by_gates[input * cells + at] = by_i;
            by_gates[cell * cells + at] = by_ci;
            by_gates[forget * cells + at] = by_f;
            by_gates[output * cells + at] = by_o;
            by_state[at] = by_cs * f[at] + seen(given.diagonals.input, by_i)
                + seen(given.diagonals.forget, by_f);
        }
    }
}
