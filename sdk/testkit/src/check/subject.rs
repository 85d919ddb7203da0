//! What is checked.

use std::{fmt, sync::Arc};
use tenon_framework::{attr::AttrMap, op::OpDef, registry::KernelDef};

/// A kernel with one choice of element types.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The op.
    pub op: Arc<OpDef>,
    /// The kernel.
    pub kernel: Arc<KernelDef>,
    /// The type attributes that the kernel constrains, and those that the op leaves open, each with the type
    /// of this subject.
    pub types: AttrMap,
}

/// `Add[T=float32] on CPU 'avx512'`: unique within a plugin, the same in every run.
impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.op.name)?;
        let types = self.types.iter().filter_map(|(name, value)| Some((name, value.as_type()?)));
        for (at, (name, dtype)) in types.enumerate() {
            let open = if at == 0 { "[" } else { ", " };
            write!(f, "{open}{name}={dtype}")?;
        }
        if self.types.values().any(|value| value.as_type().is_some()) {
            f.write_str("]")?;
        }
        write!(f, " on {}", self.kernel.device_type)?;
        match self.kernel.label.as_str() {
            "" => Ok(()),
            label => write!(f, " '{label}'"),
        }
    }
}
