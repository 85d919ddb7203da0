//! Attributes as Rust types, read from the views of the boundary.

use super::{AttrType, FuncValue};
use crate::shape::PartialShape;
use tenon_abi::{AttrKind, AttrView, DType, FuncView, ShapeView, Slot, Str};

/// A Rust type that an attribute can be read as.
pub trait FromAttr<'a>: Sized {
    /// Type of the attribute.
    const TYPE: AttrType;

    /// Converts; `None` when text is not UTF-8, or a tensor has elements of another type.
    ///
    /// # Safety
    /// `view` holds `len` items of the kind of `TYPE`, one when `TYPE` is not a list, valid for `'a`.
    unsafe fn from_view(view: &AttrView) -> Option<Self>;
}

unsafe fn items<'a, T>(view: &AttrView) -> &'a [T] {
    if view.data.is_null() || view.len == 0 {
        return &[];
    }
    // SAFETY: the caller names the type of the view's items, of which `len` are readable at `data` for `'a`.
    unsafe { std::slice::from_raw_parts(view.data.cast(), view.len) }
}

macro_rules! from_attr {
    ($($kind:ident, $raw:ty => $ty:ty, $convert:expr;)*) => {$(
        impl<'a> FromAttr<'a> for $ty {
            const TYPE: AttrType = AttrType::one(AttrKind::$kind);
            unsafe fn from_view(view: &AttrView) -> Option<Self> {
                // SAFETY: the caller gives a view of the kind of `TYPE`, whose items are `$raw`s, valid for `'a`.
                let first: &$raw = unsafe { items::<$raw>(view) }.first()?;
                ($convert)(first)
            }
        }

        impl<'a> FromAttr<'a> for Vec<$ty> {
            const TYPE: AttrType = AttrType::list(AttrKind::$kind);
            unsafe fn from_view(view: &AttrView) -> Option<Self> {
                // SAFETY: the caller gives a view of the kind of `TYPE`, whose items are `$raw`s, valid for `'a`.
                unsafe { items::<$raw>(view) }.iter().map($convert).collect()
            }
        }
    )*};
}

from_attr! {
    INT, i64 => i64, |x: &i64| Some(*x);
    FLOAT, f32 => f32, |x: &f32| Some(*x);
    BOOL, u8 => bool, |x: &u8| Some(*x != 0);
    TYPE, DType => DType, |x: &DType| Some(*x);
    SHAPE, ShapeView => PartialShape, shape_of;
    TENSOR, Slot => Slot, |x: &Slot| Some(*x);
    FUNC, FuncView => FuncValue, func_of;
    STRING, Str => &'a str, |x: &Str| {
        // SAFETY: the host's text is valid for `'a`.
        unsafe { x.text() }
    };
    STRING, Str => &'a [u8], |x: &Str| {
        // SAFETY: the host's bytes are valid for `'a`.
        Some(unsafe { x.bytes() })
    };
}

fn shape_of(view: &ShapeView) -> Option<PartialShape> {
    if view.unknown_rank != 0 {
        return Some(PartialShape::UNKNOWN);
    }
    // SAFETY: dimensions of a view that the host lent.
    PartialShape::new(unsafe { view.dims.slice() }).ok()
}

fn func_of(view: &FuncView) -> Option<FuncValue> {
    // SAFETY: bytes of a view that the host lent.
    unsafe {
        Some(FuncValue {
            name: view.name.text()?.to_owned(),
            call: view.call.bytes().to_vec(),
            definition: view.definition.bytes().to_vec(),
        })
    }
}
