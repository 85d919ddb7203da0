//! The values of knobs in one runtime, and the contexts that see them.

use super::Plugins;
use crate::{context::PluginContext, settings::Settings};
use std::{collections::BTreeMap, sync::Arc};
use tenon_framework::{
    knob::{KnobError, Knobs},
    registry::{PluginId, Registry},
};

impl Plugins {
    /// The context of a plugin in the current snapshot, with the values of its knobs, for its
    /// device types. The values change with the runtime's.
    pub fn context(&self, id: PluginId) -> Arc<PluginContext> {
        let mut contexts = self.contexts.lock();
        let context = contexts.entry(id).or_insert_with(|| {
            let registry = self.registry.load();
            let name = registry.plugins().find(|info| info.id == id).map(|info| &*info.name);
            PluginContext::new(name.unwrap_or_default(), self.knobs())
        });
        Arc::clone(context)
    }

    /// The values of all declared knobs.
    pub fn knobs(&self) -> Arc<Knobs> {
        self.knobs.load_full()
    }

    /// Sets a knob, `scope.name`, above all other layers of settings. Later readers see the value:
    /// devices that look again, plugins that are loaded, sessions that are opened or refreshed.
    ///
    /// # Errors
    /// An undeclared knob, a value of the wrong type.
    pub fn set_knob(&self, knob: &str, value: &str) -> Result<(), KnobError> {
        let _turn = self.changes.lock();
        let pair = (knob.to_owned(), value.to_owned());
        let alone = self.registry.load().knobs().snapshot([], &[], std::slice::from_ref(&pair));
        if let Some(error) = alone.err().unwrap_or_default().into_iter().next() {
            return Err(error);
        }
        let mut settings = Settings::clone(&self.settings());
        settings.set.retain(|(other, _)| other != knob);
        settings.set.push(pair);
        self.settings.store(Arc::new(settings));
        self.refresh_knobs();
        Ok(())
    }

    /// The values of all knobs declared in this registry, for a session with these options.
    ///
    /// # Errors
    /// A knob that is undeclared or cannot be set by a session, a value of the wrong type.
    pub fn session_knobs(
        &self,
        registry: &Registry,
        options: &BTreeMap<String, String>,
    ) -> Result<Arc<Knobs>, KnobError> {
        self.settings().for_session(registry.knobs(), options).map(Arc::new)
    }

    /// The settings.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        self.settings.load_full()
    }

    /// Errors in the settings, given the knobs declared now.
    pub fn settings_errors(&self) -> Vec<KnobError> {
        self.settings().apply(self.registry.load().knobs()).1
    }

    /// Computes all knobs again and updates every context; returns the errors in the settings.
    pub(super) fn refresh_knobs(&self) -> Vec<KnobError> {
        let (knobs, errors) = self.settings().apply(self.registry.load().knobs());
        let knobs = Arc::new(knobs);
        self.knobs.store(knobs.clone());
        self.contexts.lock().values().for_each(|context| context.set_knobs(knobs.clone()));
        errors
    }
}
