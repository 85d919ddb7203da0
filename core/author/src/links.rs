//! Links of the host's table: what a host may offer beyond its tables.

use tenon_abi::{
    ExtHeader, find_ext,
    layout::{StructLayout, ext_hash},
};
use tenon_framework::{KernelError, plugin::host};

/// The link with this tag; `what` names the service in messages.
///
/// # Errors
/// `UNIMPLEMENTED` in a host without the link; `INTERNAL` where it has another layout.
pub(crate) fn host_link<T>(
    tag: u32,
    layout: &StructLayout,
    what: &str,
) -> Result<&'static T, KernelError> {
    // SAFETY: the host's chain lives as long as the plugin is loaded.
    let found = unsafe { find_ext(host().ext, tag, size_of::<T>()) };
    // SAFETY: a link of this tag is live, and begins with its header.
    let header: Option<&ExtHeader> = unsafe { found.as_ref() };
    let header = header.ok_or_else(|| {
        KernelError::unimplemented(format!(
            "the host offers no {what}: expected a newer host, or a plugin that is not isolated"
        ))
    })?;
    if header.version == 1 && header.layout_hash != ext_hash(layout) {
        return Err(KernelError::internal(format!("the host's link to {what} has another layout")));
    }
    // SAFETY: the tag and the layout say that the link is a `T`, which lives as long as the plugin.
    Ok(unsafe { &*found.cast::<T>() })
}
