//! A plugin as used by one runtime or session: the type behind the opaque `PluginContext` of the
//! boundary.
//!
//! A process has a library once, and its [record](crate::PluginRecord) once. Knobs are separate:
//! each runtime gives a plugin a context with the runtime's values, for its devices, and each
//! kernel gets one with the values of its session.

use arc_swap::ArcSwap;
use std::sync::Arc;
use tenon_abi as abi;
use tenon_framework::{
    knob::{KnobSetting, Knobs},
    registry::knob_scope,
};

/// The values of a plugin's knobs.
///
/// # Ownership
/// The boundary receives a pointer into the `Arc` and may change the reference count by
/// `Host::retain_context` and `Host::release_context`.
#[derive(Debug)]
pub struct PluginContext {
    scope: String,
    knobs: ArcSwap<Knobs>,
}

impl PluginContext {
    /// The plugin of this name with these values.
    pub fn new(plugin: &str, knobs: Arc<Knobs>) -> Arc<PluginContext> {
        Arc::new(PluginContext { scope: knob_scope(plugin), knobs: ArcSwap::new(knobs) })
    }

    /// The pointer for the plugin. It is valid as long as the `Arc`, or a count that the plugin
    /// retains.
    pub fn as_raw(self: &Arc<Self>) -> *const abi::PluginContext {
        Arc::as_ptr(self).cast()
    }

    /// The context behind a pointer of the boundary.
    ///
    /// # Safety
    /// - `raw` is null or came from [`PluginContext::as_raw`].
    /// - The context is alive for `'a`.
    pub unsafe fn of<'a>(raw: *const abi::PluginContext) -> Option<&'a PluginContext> {
        // SAFETY: the caller guarantees null or a pointer into an `Arc` that lives for `'a`.
        unsafe { raw.cast::<PluginContext>().as_ref() }
    }

    /// Replaces the knob values for later reads.
    pub(crate) fn set_knobs(&self, knobs: Arc<Knobs>) {
        self.knobs.store(knobs);
    }

    /// The values of all knobs.
    pub fn knobs(&self) -> Arc<Knobs> {
        self.knobs.load_full()
    }

    /// The value of one of the plugin's own knobs.
    pub(crate) fn knob(&self, name: &str) -> Option<KnobSetting> {
        self.knobs.load().get(&self.scope, name).cloned()
    }
}

/// `Host::retain_context`.
///
/// # Safety
/// - `raw` is null, or a context that is alive.
pub(crate) unsafe extern "C" fn retain_entry(raw: *const abi::PluginContext) {
    if !raw.is_null() {
        // SAFETY: the pointer came from `Arc::as_ptr`, and the caller guarantees that the context
        // is alive.
        unsafe { Arc::increment_strong_count(raw.cast::<PluginContext>()) }
    }
}

/// `Host::release_context`.
///
/// # Safety
/// - `raw` is null, or a context of which the caller owns a count, which this releases.
pub(crate) unsafe extern "C" fn release_entry(raw: *const abi::PluginContext) {
    if !raw.is_null() {
        // SAFETY: the pointer came from `Arc::as_ptr`, and the caller owns a count of the context,
        // which is alive.
        unsafe { Arc::decrement_strong_count(raw.cast::<PluginContext>()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_boundary_keeps_outlives_the_owner() {
        let context = PluginContext::new("tenon-p", Arc::default());
        let (raw, gone) = (context.as_raw(), Arc::downgrade(&context));
        // SAFETY: the context is alive at each call, and its count is released once.
        unsafe {
            retain_entry(raw);
            drop(context);
            assert!(gone.upgrade().is_some());
            assert_eq!(PluginContext::of(raw).unwrap().scope, "p");
            release_entry(raw);
            retain_entry(std::ptr::null());
            release_entry(std::ptr::null());
        }
        assert!(gone.upgrade().is_none());
    }
}
