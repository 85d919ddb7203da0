//! Attributes of nodes to be added, with lists of values.

use crate::{
    client::{
        builder::Builder,
        builder_attrs::set,
        handle::Handle,
        info::{TypeNumber, dtype, shape},
        status::Status,
        versioned::Flag,
    },
    raw::{Array, Text},
};
use std::ffi::c_int;
use tenon_framework::attr::{AttrList, AttrValue};

/// What the values are, in errors.
const VALUES: &str = "the values of an attribute";

api! {
    /// Sets an attribute to a list of integers.
    fn tn_builder_attr_int_list(
        builder: Handle<Builder>,
        name: Text<'_>,
        values: Array<'_, i64>,
        count: usize,
        status: Option<&mut Status>,
    ) -> bool [status] {
        let values = values.required(count, VALUES)?.to_vec();
        set(builder, name, AttrValue::List(AttrList::Int(values)))
    }

    /// Sets an attribute to a list of numbers.
    fn tn_builder_attr_float_list(
        builder: Handle<Builder>,
        name: Text<'_>,
        values: Array<'_, f32>,
        count: usize,
        status: Option<&mut Status>,
    ) -> bool [status] {
        let values = values.required(count, VALUES)?.to_vec();
        set(builder, name, AttrValue::List(AttrList::Float(values)))
    }

    /// Sets an attribute to a list of truth values.
    fn tn_builder_attr_bool_list(
        builder: Handle<Builder>,
        name: Text<'_>,
        values: Array<'_, Flag>,
        count: usize,
        status: Option<&mut Status>,
    ) -> bool [status] {
        let values = values.required(count, VALUES)?.iter().map(|&value| value != 0).collect();
        set(builder, name, AttrValue::List(AttrList::Bool(values)))
    }

    /// Sets an attribute to a list of element types.
    fn tn_builder_attr_type_list(
        builder: Handle<Builder>,
        name: Text<'_>,
        values: Array<'_, TypeNumber>,
        count: usize,
        status: Option<&mut Status>,
    ) -> bool [status] {
        let values = values.required(count, VALUES)?.iter().map(|&value| dtype(value));
        let values = values.collect::<Result<_, _>>()?;
        set(builder, name, AttrValue::List(AttrList::Type(values)))
    }

    /// Sets an attribute to a list of copies of bytes.
    fn tn_builder_attr_string_list(
        builder: Handle<Builder>,
        name: Text<'_>,
        values: Array<'_, Array<'_, u8>>,
        lengths: Array<'_, usize>,
        count: usize,
        status: Option<&mut Status>,
    ) -> bool [status] {
        let values = values.required(count, VALUES)?;
        let lengths = lengths.required(count, "the lengths of an attribute's values")?;
        let read = |(&value, &length): (&Array<'_, u8>, &usize)| {
            value.required(length, "a value of an attribute").map(<[u8]>::to_vec)
        };
        let values = values.iter().zip(lengths).map(read).collect::<Result<_, _>>()?;
        set(builder, name, AttrValue::List(AttrList::String(values)))
    }

    /// Sets an attribute to a list of shapes, each as in tn_builder_attr_shape.
    fn tn_builder_attr_shape_list(
        builder: Handle<Builder>,
        name: Text<'_>,
        dims: Array<'_, Array<'_, i64>>,
        ranks: Array<'_, c_int>,
        count: usize,
        status: Option<&mut Status>,
    ) -> bool [status] {
        let dims = dims.required(count, "the shapes of an attribute")?;
        let ranks = ranks.required(count, "the ranks of an attribute's shapes")?;
        let shapes = dims.iter().zip(ranks).map(|(&dims, &rank)| shape(dims, rank));
        set(builder, name, AttrValue::List(AttrList::Shape(shapes.collect::<Result<_, _>>()?)))
    }
}
