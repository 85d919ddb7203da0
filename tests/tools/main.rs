//! What is written for readers: the guides, followed to the letter, and the table of ops.

mod guides;
mod op_table;
