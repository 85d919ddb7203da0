//! Shape functions that are not in this process.

use crate::{
    KernelError,
    attr_view::AttrTable,
    symbolic::{Symbols, ValueInfo},
};

/// A shape function of another process.
pub trait RemoteShape: Send + Sync {
    /// What is known of the outputs, as [`infer`](crate::infer::infer) gives it.
    ///
    /// # Errors
    /// What the shape function refuses; what keeps its process from running it.
    fn infer(
        &self,
        attrs: &AttrTable,
        inputs: &[&ValueInfo],
        symbols: &mut Symbols,
    ) -> Result<Vec<ValueInfo>, KernelError>;
}
