//! Attributes of nodes to be added, with one value.

use crate::{
    attr_set::value_of_message,
    client::{
        builder::Builder,
        handle::Handle,
        info::{TypeNumber, dtype, shape},
        status::Status,
        tensor::Tensor,
        versioned::Flag,
    },
    fail::Failure,
    raw::{Array, Text},
};
use std::ffi::c_int;
use tenon_framework::attr::AttrValue;

/// Sets an attribute.
///
/// # Errors
/// The builder or the name is wrong.
pub fn set(builder: Handle<Builder>, name: Text<'_>, value: AttrValue) -> Result<bool, Failure> {
    let name = name.required("the name of an attribute")?;
    builder.get()?.change(|it| {
        it.set(name, value);
        Ok(())
    })
}

api! {
    /// Sets an attribute to an integer.
    fn tn_builder_attr_int(
        builder: Handle<Builder>,
        name: Text<'_>,
        value: i64,
        status: Option<&mut Status>,
    ) -> bool [status] {
        set(builder, name, AttrValue::Int(value))
    }

    /// Sets an attribute to a number.
    fn tn_builder_attr_float(
        builder: Handle<Builder>,
        name: Text<'_>,
        value: f32,
        status: Option<&mut Status>,
    ) -> bool [status] {
        set(builder, name, AttrValue::Float(value))
    }

    /// Sets an attribute to a truth value.
    fn tn_builder_attr_bool(
        builder: Handle<Builder>,
        name: Text<'_>,
        value: Flag,
        status: Option<&mut Status>,
    ) -> bool [status] {
        set(builder, name, AttrValue::Bool(value != 0))
    }

    /// Sets an attribute to an element type.
    fn tn_builder_attr_type(
        builder: Handle<Builder>,
        name: Text<'_>,
        value: TypeNumber,
        status: Option<&mut Status>,
    ) -> bool [status] {
        set(builder, name, AttrValue::Type(dtype(value)?))
    }

    /// Sets an attribute to a copy of bytes.
    fn tn_builder_attr_string(
        builder: Handle<Builder>,
        name: Text<'_>,
        value: Array<'_, u8>,
        length: usize,
        status: Option<&mut Status>,
    ) -> bool [status] {
        let value = value.required(length, "the value of an attribute")?;
        set(builder, name, AttrValue::String(value.to_vec()))
    }

    /// Sets an attribute to a shape. -1 as a dimension is one that is not known, -1 as the rank a shape of which nothing is known.
    fn tn_builder_attr_shape(
        builder: Handle<Builder>,
        name: Text<'_>,
        dims: Array<'_, i64>,
        rank: c_int,
        status: Option<&mut Status>,
    ) -> bool [status] {
        set(builder, name, AttrValue::Shape(shape(dims, rank)?))
    }

    /// Sets an attribute to a tensor, whose memory must not change afterwards.
    fn tn_builder_attr_tensor(
        builder: Handle<Builder>,
        name: Text<'_>,
        value: Handle<Tensor>,
        status: Option<&mut Status>,
    ) -> bool [status] {
        set(builder, name, AttrValue::Tensor(value.get()?.value.clone()))
    }

    /// Sets an attribute to the function of this name.
    fn tn_builder_attr_function(
        builder: Handle<Builder>,
        name: Text<'_>,
        function: Text<'_>,
        status: Option<&mut Status>,
    ) -> bool [status] {
        set(builder, name, AttrValue::function(function.required("the name of a function")?))
    }

    /// Sets an attribute to the value of an AttrValue message.
    fn tn_builder_attr_message(
        builder: Handle<Builder>,
        name: Text<'_>,
        message: Array<'_, u8>,
        bytes: usize,
        status: Option<&mut Status>,
    ) -> bool [status] {
        let name = name.required("the name of an attribute")?;
        let message = message.required(bytes, "the message of an attribute")?;
        let builder = builder.get()?;
        let op = builder.op()?;
        let value = value_of_message(&op, name, message)?;
        builder.change(|it| {
            if let Some(value) = value {
                it.set(name, value);
            }
            Ok(())
        })
    }
}
