//! Attributes of operations that are lists.

use crate::{
    attr_get::{other_kind, with},
    buffer::TF_Buffer,
    fail::Failure,
    operation::OpRef,
    raw::{Out, Text},
    status::TF_Status,
    tensor::TF_Tensor,
};
use std::{
    ffi::{c_int, c_void},
    ptr,
};
use tenon_framework::attr::{AttrList, AttrValue};
use tenon_proto::convert::shape_to_proto;

macro_rules! read_list {
    ($oper:expr, $name:expr, $kind:literal, $variant:ident) => {
        with($oper, $name, |value| match value {
            AttrValue::List(AttrList::$variant(values)) => Ok(values.clone()),
            AttrValue::List(list) if list.is_empty() => Ok(Vec::new()),
            other => Err(other_kind(concat!("list(", $kind, ")"), other)),
        })
    };
}

/// Puts values of several sizes one behind the other into storage of the caller's.
struct Storage<'a, T> {
    storage: Out<'a, T>,
    room: usize,
    used: usize,
}

impl<T: Copy> Storage<'_, T> {
    /// The place of a copy of these values.
    fn put(&mut self, values: &[T]) -> Result<*mut T, Failure> {
        if self.room - self.used < values.len() {
            return Err(Failure::invalid(format!(
                "storage for {} values: too little for the first {}",
                self.room,
                self.used + values.len()
            )));
        }
        let place = self.storage.address().wrapping_add(self.used);
        for value in values {
            self.storage.set_at(self.used, *value);
            self.used += 1;
        }
        Ok(place)
    }
}

fn room(count: c_int) -> usize {
    usize::try_from(count).unwrap_or(0)
}

fn tensors(values: &[tenon_framework::Tensor], room: usize) -> Result<Vec<TF_Tensor>, Failure> {
    values.iter().take(room).map(TF_Tensor::of).collect()
}

api! {
    /// Writes the texts of a list into `storage`, one behind the other, with the address and the size of each.
    fn TF_OperationGetAttrStringList(
        oper: Option<OpRef>,
        name: Text<'_>,
        values: Out<'_, *mut c_void>,
        lengths: Out<'_, usize>,
        count: c_int,
        storage: Out<'_, u8>,
        storage_size: usize,
        status: Option<&mut TF_Status>,
    ) [status] {
        let texts = read_list!(oper, name, "string", String)?;
        let mut storage = Storage { storage, room: storage_size, used: 0 };
        for (at, text) in texts.iter().take(room(count)).enumerate() {
            values.set_at(at, storage.put(text)?.cast());
            lengths.set_at(at, text.len());
        }
        Ok(())
    }

    /// Writes the integers of a list, `count` of them at most.
    fn TF_OperationGetAttrIntList(
        oper: Option<OpRef>,
        name: Text<'_>,
        values: Out<'_, i64>,
        count: c_int,
        status: Option<&mut TF_Status>,
    ) [status] {
        values.fill(count, read_list!(oper, name, "int", Int)?);
        Ok(())
    }

    /// Writes the numbers of a list, `count` of them at most.
    fn TF_OperationGetAttrFloatList(
        oper: Option<OpRef>,
        name: Text<'_>,
        values: Out<'_, f32>,
        count: c_int,
        status: Option<&mut TF_Status>,
    ) [status] {
        values.fill(count, read_list!(oper, name, "float", Float)?);
        Ok(())
    }

    /// Writes the truth values of a list, `count` of them at most.
    fn TF_OperationGetAttrBoolList(
        oper: Option<OpRef>,
        name: Text<'_>,
        values: Out<'_, u8>,
        count: c_int,
        status: Option<&mut TF_Status>,
    ) [status] {
        values.fill(count, read_list!(oper, name, "bool", Bool)?.into_iter().map(u8::from));
        Ok(())
    }

    /// Writes the element types of a list, `count` of them at most.
    fn TF_OperationGetAttrTypeList(
        oper: Option<OpRef>,
        name: Text<'_>,
        values: Out<'_, c_int>,
        count: c_int,
        status: Option<&mut TF_Status>,
    ) [status] {
        let types = read_list!(oper, name, "type", Type)?;
        values.fill(count, types.into_iter().map(|dtype| dtype.0 as c_int));
        Ok(())
    }

    /// Writes the shapes of a list into `storage`, one behind the other, with the address and the rank of each; -1 for an
    /// unknown rank.
    fn TF_OperationGetAttrShapeList(
        oper: Option<OpRef>,
        name: Text<'_>,
        dims: Out<'_, *mut i64>,
        ranks: Out<'_, c_int>,
        count: c_int,
        storage: Out<'_, i64>,
        storage_size: c_int,
        status: Option<&mut TF_Status>,
    ) [status] {
        let shapes = read_list!(oper, name, "shape", Shape)?;
        let mut storage = Storage { storage, room: room(storage_size), used: 0 };
        for (at, shape) in shapes.iter().take(room(count)).enumerate() {
            let known = shape.dims();
            ranks.set_at(at, known.map_or(-1, |dims| dims.len() as c_int));
            dims.set_at(at, match known {
                Some(known) => storage.put(known)?,
                None => ptr::null_mut(),
            });
        }
        Ok(())
    }

    /// Writes the shapes of a list as new buffers with a `TensorShapeProto` each, which the caller deletes.
    fn TF_OperationGetAttrTensorShapeProtoList(
        oper: Option<OpRef>,
        name: Text<'_>,
        messages: Out<'_, Option<Box<TF_Buffer>>>,
        count: c_int,
        status: Option<&mut TF_Status>,
    ) [status] {
        let shapes = read_list!(oper, name, "shape", Shape)?;
        let write = |shape| Ok(Some(Box::new(TF_Buffer::of_message(&shape_to_proto(shape))?)));
        let written = shapes.iter().take(room(count)).map(write);
        messages.fill(count, written.collect::<Result<Vec<_>, Failure>>()?);
        Ok(())
    }

    /// Writes the tensors of a list as new tensors, which the caller deletes.
    fn TF_OperationGetAttrTensorList(
        oper: Option<OpRef>,
        name: Text<'_>,
        values: Out<'_, Option<Box<TF_Tensor>>>,
        count: c_int,
        status: Option<&mut TF_Status>,
    ) [status] {
        let found = tensors(&read_list!(oper, name, "tensor", Tensor)?, room(count))?;
        values.fill(count, found.into_iter().map(|value| Some(Box::new(value))));
        Ok(())
    }
}
