//! Reading attributes through the host's table.

use super::host::host;
use crate::{
    KernelError,
    attr::{AttrType, FuncValue},
    shape::PartialShape,
};
use tenon_abi::{AttrKind, AttrView, Attrs, Code, DType, FuncView, ShapeView, Slot, Str};

/// The attributes of one node, for as long as the call that lent them.
#[derive(Clone, Copy)]
pub struct AttrReader<'a> {
    attrs: *const Attrs,
    lent: std::marker::PhantomData<&'a Attrs>,
}

impl<'a> AttrReader<'a> {
    /// Wraps what a call lends.
    ///
    /// # Safety
    /// `attrs` is valid for `'a`.
    pub unsafe fn new(attrs: *const Attrs) -> AttrReader<'a> {
        AttrReader { attrs, lent: std::marker::PhantomData }
    }

    /// The value of an attribute.
    ///
    /// # Errors
    /// `NOT_FOUND` when the node has none of that name, `INVALID_ARGUMENT` when it is of another type.
    pub fn get<T: FromAttr<'a>>(&self, name: &str) -> Result<T, KernelError> {
        let mut view = AttrView { kind: AttrKind::INT, is_list: 0, data: std::ptr::null(), len: 0 };
        let entry = host().attr.expect("the host fills every entry");
        // SAFETY: `attrs` is valid for `'a`; `view` lives through the call.
        let code = unsafe { entry(self.attrs, Str::new(name), &mut view) };
        if !code.is_ok() {
            return Err(KernelError::new(code, format!("attribute {name}: the node has none")));
        }
        let found = AttrType { kind: view.kind, is_list: view.is_list != 0 };
        if found != T::TYPE {
            let expected = T::TYPE;
            return Err(KernelError::invalid_argument(format!(
                "attribute {name}: expected {expected}, found {found}"
            )));
        }
        // SAFETY: the host fills the view with `len` items of this kind, valid for `'a`.
        unsafe { T::from_view(&view) }
            .ok_or_else(|| KernelError::invalid_argument(format!("attribute {name}: not UTF-8")))
    }

    /// Whether the node has the attribute.
    pub fn has(&self, name: &str) -> bool {
        let mut view = AttrView { kind: AttrKind::INT, is_list: 0, data: std::ptr::null(), len: 0 };
        let entry = host().attr.expect("the host fills every entry");
        // SAFETY: as in `get`.
        unsafe { entry(self.attrs, Str::new(name), &mut view) == Code::OK }
    }
}

/// A Rust type that an attribute can be read as.
pub trait FromAttr<'a>: Sized {
    /// Type of the attribute.
    const TYPE: AttrType;

    /// Converts; `None` when text is not UTF-8.
    ///
    /// # Safety
    /// `view` holds `len` items of the kind of `TYPE`, one when `TYPE` is no list, valid for `'a`.
    unsafe fn from_view(view: &AttrView) -> Option<Self>;
}

unsafe fn items<'a, T>(view: &AttrView) -> &'a [T] {
    if view.data.is_null() || view.len == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(view.data.cast(), view.len) }
}

macro_rules! from_attr {
    ($($kind:ident, $raw:ty => $ty:ty, $convert:expr;)*) => {$(
        impl<'a> FromAttr<'a> for $ty {
            const TYPE: AttrType = AttrType::one(AttrKind::$kind);
            unsafe fn from_view(view: &AttrView) -> Option<Self> {
                // SAFETY: the caller's promise.
                let first: &$raw = unsafe { items::<$raw>(view) }.first()?;
                ($convert)(first)
            }
        }

        impl<'a> FromAttr<'a> for Vec<$ty> {
            const TYPE: AttrType = AttrType::list(AttrKind::$kind);
            unsafe fn from_view(view: &AttrView) -> Option<Self> {
                // SAFETY: the caller's promise.
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
