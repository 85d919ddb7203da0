//! Recurrent cells in one op: LSTM of one step and of whole sequences, GRU of one step. The kernels are
//! plugins/cpu/src/kernels/recurrent.

use crate::shape::{input_of_rank, same_size};
use tenon_author::{Dim, ShapeContext, ShapeResult, register_op};
use tenon_framework::KernelError;
use tenon_geometry::GeometryError;

register_op!(
    "LSTMBlockCell",
    inputs = &["x: T", "cs_prev: T", "h_prev: T", "w: T", "wci: T", "wcf: T", "wco: T", "b: T"],
    outputs = &["i: T", "cs: T", "f: T", "o: T", "ci: T", "co: T", "h: T"],
    attrs = &[
        "forget_bias: float = 1.0",
        "cell_clip: float = 3.0",
        "use_peephole: bool = false",
        "T: {half, float}"
    ],
    cases = &[
        "step; x: [n, 3]; cs_prev: [n, 2]; h_prev: [n, 2]; w: [5, 8]; wci: [2]; wcf: [2]; wco: [2]; b: [8]"
    ],
    shape = cell,
    summary = "One step of an LSTM: the gates, the state of the cells and the output.",
);

register_op!(
    "LSTMBlockCellGrad",
    inputs = &[
        "x: T",
        "cs_prev: T",
        "h_prev: T",
        "w: T",
        "wci: T",
        "wcf: T",
        "wco: T",
        "b: T",
        "i: T",
        "cs: T",
        "f: T",
        "o: T",
        "ci: T",
        "co: T",
        "cs_grad: T",
        "h_grad: T"
    ],
    outputs = &["cs_prev_grad: T", "dicfo: T", "wci_grad: T", "wcf_grad: T", "wco_grad: T"],
    attrs = &["use_peephole: bool", "T: {half, float}"],
    cases = &[
        "step; x: [2, 3]; cs_prev: [2, 2]; h_prev: [2, 2]; w: [5, 8]; wci: [2]; wcf: [2]; wco: [2]; b: [8]; i: [2, 2]; cs: [2, 2]; f: [2, 2]; o: [2, 2]; ci: [2, 2]; co: [2, 2]; cs_grad: [2, 2]; h_grad: [2, 2]; use_peephole = true"
    ],
    shape = cell_grad,
    summary = "The gradients of LSTMBlockCell by the state before, by the sums of the gates and by the weights of peepholes.",
);

register_op!(
    "BlockLSTM",
    inputs = &[
        "seq_len_max: int64",
        "x: T",
        "cs_prev: T",
        "h_prev: T",
        "w: T",
        "wci: T",
        "wcf: T",
        "wco: T",
        "b: T"
    ],
    outputs = &["i: T", "cs: T", "f: T", "o: T", "ci: T", "co: T", "h: T"],
    attrs = &[
        "forget_bias: float = 1.0",
        "cell_clip: float = 3.0",
        "use_peephole: bool = false",
        "T: {half, float}"
    ],
    cases = &[
        "steps; seq_len_max: [] values(3); x: [3, 2, 3]; cs_prev: [2, 2]; h_prev: [2, 2]; w: [5, 8]; wci: [2]; wcf: [2]; wco: [2]; b: [8]"
    ],
    shape = sequence,
    summary =
        "The steps of an LSTM over a sequence: the gates, the states of the cells and the outputs.",
);

register_op!(
    "BlockLSTMGrad",
    inputs = &[
        "seq_len_max: int64",
        "x: T",
        "cs_prev: T",
        "h_prev: T",
        "w: T",
        "wci: T",
        "wcf: T",
        "wco: T",
        "b: T",
        "i: T",
        "cs: T",
        "f: T",
        "o: T",
        "ci: T",
        "co: T",
        "h: T",
        "cs_grad: T",
        "h_grad: T"
    ],
    outputs = &[
        "x_grad: T",
        "cs_prev_grad: T",
        "h_prev_grad: T",
        "w_grad: T",
        "wci_grad: T",
        "wcf_grad: T",
        "wco_grad: T",
        "b_grad: T"
    ],
    attrs = &["use_peephole: bool", "T: {half, float}"],
    cases = &[
        "steps; seq_len_max: [] values(3); x: [3, 2, 3]; cs_prev: [2, 2]; h_prev: [2, 2]; w: [5, 8]; wci: [2]; wcf: [2]; wco: [2]; b: [8]; i: [3, 2, 2]; cs: [3, 2, 2]; f: [3, 2, 2]; o: [3, 2, 2]; ci: [3, 2, 2]; co: [3, 2, 2]; h: [3, 2, 2]; cs_grad: [3, 2, 2]; h_grad: [3, 2, 2]; use_peephole = true"
    ],
    shape = sequence_grad,
    summary = "The gradients of BlockLSTM by its inputs but the first.",
);

register_op!(
    "BlockLSTMV2",
    inputs = &[
        "seq_len_max: int64",
        "x: T",
        "cs_prev: T",
        "h_prev: T",
        "w: T",
        "wci: T",
        "wcf: T",
        "wco: T",
        "b: T"
    ],
    outputs = &["i: T", "cs: T", "f: T", "o: T", "ci: T", "co: T", "h: T"],
    attrs = &["cell_clip: float = 0.0", "use_peephole: bool = false", "T: {half, float}"],
    cases = &[
        "steps; seq_len_max: [] values(3); x: [3, 2, 3]; cs_prev: [2, 2]; h_prev: [2, 2]; w: [5, 8]; wci: [2]; wcf: [2]; wco: [2]; b: [8]"
    ],
    shape = sequence,
    summary = "As BlockLSTM, with gates in the order input, forget, cell, output, and without a bias of the forget gate.",
);

register_op!(
    "BlockLSTMGradV2",
    inputs = &[
        "seq_len_max: int64",
        "x: T",
        "cs_prev: T",
        "h_prev: T",
        "w: T",
        "wci: T",
        "wcf: T",
        "wco: T",
        "b: T",
        "i: T",
        "cs: T",
        "f: T",
        "o: T",
        "ci: T",
        "co: T",
        "h: T",
        "cs_grad: T",
        "h_grad: T"
    ],
    outputs = &[
        "x_grad: T",
        "cs_prev_grad: T",
        "h_prev_grad: T",
        "w_grad: T",
        "wci_grad: T",
        "wcf_grad: T",
        "wco_grad: T",
        "b_grad: T"
    ],
    attrs = &["use_peephole: bool", "T: {half, float}"],
    cases = &[
        "steps; seq_len_max: [] values(3); x: [3, 2, 3]; cs_prev: [2, 2]; h_prev: [2, 2]; w: [5, 8]; wci: [2]; wcf: [2]; wco: [2]; b: [8]; i: [3, 2, 2]; cs: [3, 2, 2]; f: [3, 2, 2]; o: [3, 2, 2]; ci: [3, 2, 2]; co: [3, 2, 2]; h: [3, 2, 2]; cs_grad: [3, 2, 2]; h_grad: [3, 2, 2]; use_peephole = true"
    ],
    shape = sequence_grad,
    summary = "The gradients of BlockLSTMV2 by its inputs but the first.",
);

register_op!(
    "GRUBlockCell",
    inputs = &["x: T", "h_prev: T", "w_ru: T", "w_c: T", "b_ru: T", "b_c: T"],
    outputs = &["r: T", "u: T", "c: T", "h: T"],
    attrs = &["T: {float}"],
    cases = &["step; x: [n, 3]; h_prev: [n, 2]; w_ru: [5, 4]; w_c: [5, 2]; b_ru: [4]; b_c: [2]"],
    shape = gru,
    summary = "One step of a GRU: both gates, the candidate and the new state.",
);

register_op!(
    "GRUBlockCellGrad",
    inputs = &[
        "x: T",
        "h_prev: T",
        "w_ru: T",
        "w_c: T",
        "b_ru: T",
        "b_c: T",
        "r: T",
        "u: T",
        "c: T",
        "d_h: T"
    ],
    outputs = &["d_x: T", "d_h_prev: T", "d_c_bar: T", "d_r_bar_u_bar: T"],
    attrs = &["T: {float}"],
    cases = &[
        "step; x: [2, 3]; h_prev: [2, 2]; w_ru: [5, 4]; w_c: [5, 2]; b_ru: [4]; b_c: [2]; r: [2, 2]; u: [2, 2]; c: [2, 2]; d_h: [2, 2]"
    ],
    shape = gru_grad,
    summary = "The gradients of GRUBlockCell by x, by the state before, and by the sums of the candidate and of the gates.",
);

/// The number of rows of a step, and of cells, from `x` (whose first dimension may be time) and the state after it.
fn rows_and_cells(c: &ShapeContext<'_>, x: usize) -> Result<[Dim; 2], KernelError> {
    let of_x = input_of_rank(c, x, "x", 2 + x)?;
    let state = input_of_rank(c, x + 1, "the state", 2)?;
    let what = "the number of rows of the state";
    let rows = same_size(c, what, c.dim(of_x, x), c.dim(state, 0))?;
    Ok([rows, c.dim(state, 1)])
}

/// Checks that one size is `times` another, as far as they are known.
fn multiple(
    c: &ShapeContext<'_>,
    what: &'static str,
    times: i64,
    of: Dim,
    found: Dim,
) -> Result<Dim, KernelError> {
    let expected = c.value(of).map(|size| {
        size.checked_mul(times).ok_or(GeometryError::TooLarge { dims: vec![size, times] })
    });
    same_size(c, what, c.make_dim(expected.transpose()?), found)
}

fn lstm_outputs(c: &ShapeContext<'_>, x: usize, count: usize) -> ShapeResult {
    let [rows, cells] = rows_and_cells(c, x)?;
    let weights = input_of_rank(c, x + 3, "w", 2)?;
    multiple(c, "the number of columns of w", 4, cells, c.dim(weights, 1))?;
    let mut dims = vec![rows, cells];
    if x == 1 {
        dims.insert(0, c.dim(c.with_rank(c.input(1), 3)?, 0));
    }
    (0..count).try_for_each(|at| c.set_output(at, c.make_shape(&dims)))
}

fn cell(c: &ShapeContext<'_>) -> ShapeResult {
    lstm_outputs(c, 0, 7)
}

fn sequence(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 0, "seq_len_max", 0)?;
    lstm_outputs(c, 1, 7)
}

fn cell_grad(c: &ShapeContext<'_>) -> ShapeResult {
    let [rows, cells] = rows_and_cells(c, 0)?;
    let weights = input_of_rank(c, 3, "w", 2)?;
    let gates = multiple(c, "the number of columns of w", 4, cells, c.dim(weights, 1))?;
    c.set_output(0, c.make_shape(&[rows, cells]))?;
    c.set_output(1, c.make_shape(&[rows, gates]))?;
    (2..5).try_for_each(|at| c.set_output(at, c.make_shape(&[cells])))
}

fn sequence_grad(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 0, "seq_len_max", 0)?;
    let [rows, cells] = rows_and_cells(c, 1)?;
    let (x, weights) = (input_of_rank(c, 1, "x", 3)?, input_of_rank(c, 4, "w", 2)?);
    let gates = multiple(c, "the number of columns of w", 4, cells, c.dim(weights, 1))?;
    c.set_output(0, x)?;
    c.set_output(1, c.make_shape(&[rows, cells]))?;
    c.set_output(2, c.make_shape(&[rows, cells]))?;
    c.set_output(3, weights)?;
    (4..7).try_for_each(|at| c.set_output(at, c.make_shape(&[cells])))?;
    c.set_output(7, c.make_shape(&[gates]))
}

fn gru(c: &ShapeContext<'_>) -> ShapeResult {
    let [rows, cells] = rows_and_cells(c, 0)?;
    let weights = input_of_rank(c, 2, "w_ru", 2)?;
    multiple(c, "the number of columns of w_ru", 2, cells, c.dim(weights, 1))?;
    (0..4).try_for_each(|at| c.set_output(at, c.make_shape(&[rows, cells])))
}

fn gru_grad(c: &ShapeContext<'_>) -> ShapeResult {
    let [rows, cells] = rows_and_cells(c, 0)?;
    let weights = input_of_rank(c, 2, "w_ru", 2)?;
    let gates = multiple(c, "the number of columns of w_ru", 2, cells, c.dim(weights, 1))?;
    c.set_output(0, c.input(0))?;
    c.set_output(1, c.make_shape(&[rows, cells]))?;
    c.set_output(2, c.make_shape(&[rows, cells]))?;
    c.set_output(3, c.make_shape(&[rows, gates]))
}

#[cfg(test)]
mod tests {
    use crate::testing::{check, infer};

    #[test]
    fn outputs_have_rows_and_cells() {
        let weights = ["[5,8]", "[2]", "[2]", "[2]", "[8]"];
        let inputs = [&["[n,3]", "[n,2]", "[n,2]"][..], &weights].concat();
        let each = ["[n,2]"; 7].join("; ");
        check("LSTMBlockCell", &[], &[(&inputs, &each)]);
        let inputs = [&["[]", "[t,n,3]", "[n,2]", "[n,2]"][..], &weights].concat();
        let each = ["[t,n,2]"; 7].join("; ");
        check("BlockLSTM", &[], &[(&inputs, &each)]);
        check("BlockLSTMV2", &[], &[(&inputs, &each)]);
        let message = "! the number of columns of w_ru must be 4, got 5";
        let inputs = ["[n,3]", "[n,2]", "[5,5]", "[5,2]", "[4]", "[2]"];
        let found = infer("GRUBlockCell", &[], &inputs);
        assert!(found.starts_with(message), "{found}");
    }
}
