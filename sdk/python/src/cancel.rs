//! Tokens that cancel steps.

use pyo3::prelude::*;
use tenon_runtime::CancelToken;

/// Cancels the steps that it was given to.
#[pyclass(frozen, name = "CancelToken", module = "tenon")]
pub(crate) struct PyCancelToken {
    pub(crate) token: CancelToken,
}

#[pymethods]
impl PyCancelToken {
    #[new]
    fn new() -> PyCancelToken {
        PyCancelToken { token: CancelToken::new() }
    }

    /// Cancels all current and future steps with this token.
    fn cancel(&self, py: Python<'_>) {
        py.detach(|| self.token.cancel());
    }

    /// Whether the token was cancelled.
    #[getter]
    fn cancelled(&self) -> bool {
        self.token.is_cancelled()
    }
}
