//! Reading attributes through the host's table.

use tenon_abi::{AttrKind, AttrView, Attrs, Code, Str};
use tenon_framework::{
    KernelError,
    attr::{AttrType, FromAttr},
    plugin::host,
};

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
    /// `NOT_FOUND` when the node has no attribute of that name, `INVALID_ARGUMENT` when it is of another type.
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
        unsafe { T::from_view(&view) }.ok_or_else(|| {
            let what = match T::TYPE.kind {
                AttrKind::TENSOR => "a tensor of another element type than the kernel reads",
                _ => "not UTF-8",
            };
            KernelError::invalid_argument(format!("attribute {name}: {what}"))
        })
    }

    /// Whether the node has the attribute.
    pub fn has(&self, name: &str) -> bool {
        let mut view = AttrView { kind: AttrKind::INT, is_list: 0, data: std::ptr::null(), len: 0 };
        let entry = host().attr.expect("the host fills every entry");
        // SAFETY: as in `get`.
        unsafe { entry(self.attrs, Str::new(name), &mut view) == Code::OK }
    }
}

#[cfg(test)]
#[path = "attrs_tests.rs"]
mod tests;
