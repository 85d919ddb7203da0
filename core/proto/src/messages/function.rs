//! Functions: graphs with a signature, callable by name.

use std::collections::BTreeMap;

use super::graph::{AttrValue, NodeDef};
use super::op_def::OpDef;

/// The functions of a graph and their gradients.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FunctionDefLibrary {
    /// Functions; their names are unique.
    #[prost(message, repeated, tag = "1")]
    pub function: Vec<FunctionDef>,
    /// Which function is the gradient of which.
    #[prost(message, repeated, tag = "2")]
    pub gradient: Vec<GradientDef>,
    /// `RegisteredGradient` as encoded bytes: gradients registered under an op type name.
    #[prost(bytes = "vec", repeated, tag = "3")]
    pub registered_gradients: Vec<Vec<u8>>,
}

/// A function's signature and body.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FunctionDef {
    /// Name, arguments, results and attributes.
    #[prost(message, optional, tag = "1")]
    pub signature: Option<OpDef>,
    /// Body; an input is named `argument` or `node:output_name:index`.
    #[prost(message, repeated, tag = "3")]
    pub node_def: Vec<NodeDef>,
    /// For each result of the signature, the body tensor that gives it.
    #[prost(btree_map = "string, string", tag = "4")]
    pub ret: BTreeMap<String, String>,
    /// Attributes of the function itself, such as inlining hints.
    #[prost(btree_map = "string, message", tag = "5")]
    pub attr: BTreeMap<String, AttrValue>,
    /// For each control output, the body node that must have run.
    #[prost(btree_map = "string, string", tag = "6")]
    pub control_ret: BTreeMap<String, String>,
    /// Attributes of the arguments, by position.
    #[prost(btree_map = "uint32, message", tag = "7")]
    pub arg_attr: BTreeMap<u32, ArgAttrs>,
    /// Arguments, by position; those with the same number are the same resource.
    #[prost(btree_map = "uint32, uint32", tag = "8")]
    pub resource_arg_unique_id: BTreeMap<u32, u32>,
}

/// Attributes of one argument.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ArgAttrs {
    /// Attribute values by name.
    #[prost(btree_map = "string, message", tag = "1")]
    pub attr: BTreeMap<String, AttrValue>,
}

/// Pairs a function with the function that computes its gradient.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GradientDef {
    /// The function.
    #[prost(string, tag = "1")]
    pub function_name: String,
    /// Its gradient.
    #[prost(string, tag = "2")]
    pub gradient_func: String,
}
