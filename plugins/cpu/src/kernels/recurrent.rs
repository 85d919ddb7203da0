//! Recurrent cells in one op: LSTM of one step and of whole sequences, GRU of one step, and their gradients.
//!
//! What depends on no earlier step is computed for all steps by one product of matrices: what the gates take from `x`,
//! and the gradients by `x` and by the weights. A step multiplies only the state. `cell` has the formulas of one row of a
//! step; types of 16 bits compute in float, and round what they give.

mod cell;
mod gru;
mod lstm;
mod lstm_grad;
mod memory;
