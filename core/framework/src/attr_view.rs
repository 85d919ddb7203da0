//! Attributes of one node in the form in which the boundary shows them.
//!
//! An [`AttrTable`] owns the values and, next to each, the C view of it. The pointer of
//! [`AttrTable::as_raw`] is the opaque [`abi::Attrs`](tenon_abi::Attrs) of a call on the host's side;
//! [`attr_entry`] is the entry `attr` of the host's table, which looks names up in it.
//!
//! Nothing that a view shows changes after construction: views stay valid for as long as the table lives, wherever
//! it is moved to, since they point to its allocations and never to the table itself. A table remembers which of its
//! attributes were read through the boundary ([`AttrTable::was_asked`]).

use crate::{
    Tensor, View,
    attr::{AttrList, AttrMap, AttrType, AttrValue, FromAttr, FuncValue},
    element::Element,
    shape::{PartialShape, Shape},
    sync::atomic::{AtomicBool, Ordering},
};
use std::{collections::BTreeMap, ffi::c_void, sync::Arc};
use tenon_abi::{AttrKind, AttrView, Attrs, Code, DType, Dims, FuncView, ShapeView, Slot, Str};

/// The items of one attribute in the form of the boundary.
enum Items {
    Int(Vec<i64>),
    Float(Vec<f32>),
    Bool(Vec<u8>),
    String(Vec<Str>),
    Type(Vec<DType>),
    Shape(Vec<ShapeView>),
    Tensor(Vec<Slot>),
    Func(Vec<FuncView>),
}

struct Entry {
    items: Items,
    is_list: bool,
    /// Whether a plugin has read it.
    asked: AtomicBool,
}

/// Attributes of one node with their C views.
pub struct AttrTable {
    // Reference-counted, so that the values that the views point to never move.
    attrs: Arc<AttrMap>,
    entries: BTreeMap<String, Entry>,
}

// SAFETY: the views point to values that the table itself keeps and that no code changes; `asked` is atomic.
unsafe impl Send for AttrTable {}
// SAFETY: as above.
unsafe impl Sync for AttrTable {}

impl AttrTable {
    /// The table of these attributes.
    pub fn new(attrs: AttrMap) -> AttrTable {
        let attrs = Arc::new(attrs);
        let entries = attrs.iter().map(|(name, value)| (name.clone(), Entry::new(value))).collect();
        AttrTable { attrs, entries }
    }

    /// The values.
    pub fn attrs(&self) -> &AttrMap {
        &self.attrs
    }

    /// The value of one attribute.
    pub fn get(&self, name: &str) -> Option<&AttrValue> {
        self.attrs.get(name)
    }

    /// The view of one attribute; valid for as long as the table lives.
    pub fn view(&self, name: &str) -> Option<AttrView> {
        self.entries.get(name).map(Entry::view)
    }

    /// Whether a kernel or a shape function has read an attribute through the boundary.
    pub fn was_asked(&self, name: &str) -> bool {
        self.entries.get(name).is_some_and(|entry| entry.asked.load(Ordering::Relaxed))
    }

    /// What calls lend to a plugin; valid for as long as the table stays where it is.
    pub fn as_raw(&self) -> *const Attrs {
        std::ptr::from_ref(self).cast()
    }
}

impl std::fmt::Debug for AttrTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.attrs.fmt(f)
    }
}

impl Entry {
    fn of(items: Items, is_list: bool) -> Entry {
        Entry { items, is_list, asked: AtomicBool::new(false) }
    }

    fn new(value: &AttrValue) -> Entry {
        let items = match value {
            AttrValue::Int(value) => Items::Int(vec![*value]),
            AttrValue::Float(value) => Items::Float(vec![*value]),
            AttrValue::Bool(value) => Items::Bool(vec![u8::from(*value)]),
            AttrValue::String(value) => Items::String(vec![Str::from_bytes(value)]),
            AttrValue::Type(value) => Items::Type(vec![*value]),
            AttrValue::Shape(value) => Items::Shape(vec![shape_view(value)]),
            AttrValue::Tensor(value) => Items::Tensor(vec![value.slot()]),
            AttrValue::Func(value) => Items::Func(vec![func_view(value)]),
            AttrValue::List(list) => return Entry::of(list_items(list), true),
        };
        Entry::of(items, false)
    }

    fn view(&self) -> AttrView {
        fn parts<T>(items: &[T]) -> (*const c_void, usize) {
            (items.as_ptr().cast(), items.len())
        }
        let (kind, (data, len)) = match &self.items {
            Items::Int(items) => (AttrKind::INT, parts(items)),
            Items::Float(items) => (AttrKind::FLOAT, parts(items)),
            Items::Bool(items) => (AttrKind::BOOL, parts(items)),
            Items::String(items) => (AttrKind::STRING, parts(items)),
            Items::Type(items) => (AttrKind::TYPE, parts(items)),
            Items::Shape(items) => (AttrKind::SHAPE, parts(items)),
            Items::Tensor(items) => (AttrKind::TENSOR, parts(items)),
            Items::Func(items) => (AttrKind::FUNC, parts(items)),
        };
        AttrView { kind, is_list: u32::from(self.is_list), data, len }
    }
}

fn list_items(list: &AttrList) -> Items {
    match list {
        AttrList::Int(items) => Items::Int(items.clone()),
        AttrList::Float(items) => Items::Float(items.clone()),
        AttrList::Bool(items) => Items::Bool(items.iter().map(|&item| u8::from(item)).collect()),
        AttrList::String(items) => {
            Items::String(items.iter().map(|item| Str::from_bytes(item)).collect())
        }
        AttrList::Type(items) => Items::Type(items.clone()),
        AttrList::Shape(items) => Items::Shape(items.iter().map(shape_view).collect()),
        AttrList::Tensor(items) => Items::Tensor(items.iter().map(Tensor::slot).collect()),
        AttrList::Func(items) => Items::Func(items.iter().map(func_view).collect()),
    }
}

fn shape_view(shape: &PartialShape) -> ShapeView {
    ShapeView {
        dims: Dims::new(shape.dims().unwrap_or_default()),
        unknown_rank: u32::from(shape.rank().is_none()),
    }
}

fn func_view(func: &FuncValue) -> FuncView {
    FuncView {
        name: Str::new(&func.name),
        call: Str::from_bytes(&func.call),
        definition: Str::from_bytes(&func.definition),
    }
}

/// Element type and shape of a tensor attribute, for readers that do not need its elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TensorType {
    /// Element type.
    pub dtype: DType,
    /// Shape.
    pub shape: Shape,
}

impl FromAttr<'_> for TensorType {
    const TYPE: AttrType = AttrType::one(AttrKind::TENSOR);

    unsafe fn from_view(view: &AttrView) -> Option<TensorType> {
        // SAFETY: the caller gives a view of one tensor, which shows a slot with readable dimensions.
        unsafe {
            let slot = view.data.cast::<Slot>().as_ref()?;
            let dims = Dims { ptr: slot.dims, len: slot.rank as usize }.slice();
            Some(TensorType { dtype: slot.dtype, shape: Shape::new(dims).ok()? })
        }
    }
}

impl<'a, T: Element> FromAttr<'a> for View<'a, T> {
    const TYPE: AttrType = AttrType::one(AttrKind::TENSOR);

    unsafe fn from_view(view: &AttrView) -> Option<View<'a, T>> {
        // SAFETY: the caller gives a view of one tensor, which shows a slot with readable dimensions.
        let slot = unsafe { view.data.cast::<Slot>().as_ref()? };
        if slot.dtype != T::DTYPE || !slot.memory.is_host_address() {
            return None;
        }
        // SAFETY: as above; `elements` elements of this type in host memory, which live as long as the attribute.
        unsafe {
            let dims = Dims { ptr: slot.dims, len: slot.rank as usize }.slice();
            let data = match slot.elements {
                0 => &[],
                count => std::slice::from_raw_parts(slot.data.cast(), count as usize),
            };
            Some(View::new(dims, data))
        }
    }
}

/// The entry `attr` of the host's table.
///
/// Gives `NOT_FOUND` when there is no attribute of that name, `INVALID_ARGUMENT` for null pointers.
///
/// # Safety
/// `attrs` is null or came from [`AttrTable::as_raw`] of a table that lives and has not moved; `name` is
/// readable; `result` is null or may be written.
pub unsafe extern "C" fn attr_entry(attrs: *const Attrs, name: Str, result: *mut AttrView) -> Code {
    if attrs.is_null() || result.is_null() {
        return Code::INVALID_ARGUMENT;
    }
    // SAFETY: the caller gives a table that lives and has not moved, and a readable name.
    let (table, name) = unsafe { (&*attrs.cast::<AttrTable>(), name.text()) };
    match name.and_then(|name| table.entries.get(name)) {
        Some(entry) => {
            entry.asked.store(true, Ordering::Relaxed);
            // SAFETY: `result` is not null, and the caller lets it be written.
            unsafe { result.write(entry.view()) };
            Code::OK
        }
        None => Code::NOT_FOUND,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::OpDef;

    #[test]
    fn defaults_complete_a_node() {
        let op = OpDef::from_spec("Op", &[], &[], &["a: int", "b: bool = true"]).unwrap();
        let attrs = AttrMap::from([("a".to_owned(), AttrValue::Int(1))]);
        let table = AttrTable::with_defaults(&op, attrs).unwrap();
        assert!(matches!(table.get("b"), Some(AttrValue::Bool(true))));
        assert!(AttrTable::with_defaults(&op, AttrMap::new()).is_err());
    }
}
