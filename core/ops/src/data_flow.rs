//! Values that lie between the nodes of a graph: lists, maps, arrays and stacks of tensors.

mod stack;
mod tensor_array;
mod tensor_list;
mod tensor_map;
