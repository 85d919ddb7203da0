//! Values between the nodes of a graph and between steps: lists, arrays and stacks of tensors, queues and
//! what is like them.

mod accumulator;
mod barrier;
mod optional;
mod queue;
mod reference;
mod stack;
mod staging;
mod tensor_array;
mod tensor_list;
mod tensor_map;
