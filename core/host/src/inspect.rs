//! Inspects one library: the contents of its file, and the result of loading it.

use crate::{
    context::PluginContext,
    digest::FileId,
    entries::HOST,
    error::LoadError,
    loader::{self, Door, PluginFile, image::Image},
    manifest::Manifest,
    plugins::Plugins,
    sink::MessageSink,
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use tenon_framework::registry::DeviceTypeDef;

/// The result of a device type's probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// The device type.
    pub device_type: String,
    /// Number of devices.
    pub count: u32,
    /// Why there are none.
    pub reason: Option<String>,
}

/// The result of inspecting a library.
#[derive(Debug, Clone)]
pub struct Inspection {
    /// Its file, absolute and without symbolic links.
    pub path: PathBuf,
    /// Identity of the file.
    pub id: FileId,
    /// SHA-256 of the file, in hexadecimal.
    pub digest: String,
    /// Its export table.
    pub door: Door,
    /// Processor for which it is built.
    pub arch: String,
    /// Its manifest.
    pub manifest: Manifest,
    /// Symbols that are unique in a process (`STB_GNU_UNIQUE`): the library is opened from a copy
    /// in which they are local.
    pub unique_symbols: Vec<String>,
    /// Why it would not be loaded; `None` if it would.
    pub refused: Option<LoadError>,
    /// Its device types; empty when it would not be loaded.
    pub probes: Vec<Probe>,
}

/// A library whose file was read, without running any of its code.
pub struct Unopened {
    inspection: Inspection,
    file: PluginFile,
    image: Image,
}

impl Unopened {
    /// Reads a library's file.
    ///
    /// # Errors
    /// The file does not exist, or is not a plugin with a manifest.
    pub fn read(path: &Path) -> Result<Unopened, LoadError> {
        let (file, image) = loader::examine(path)?;
        let inspection = Inspection {
            path: file.path.clone(),
            id: file.id,
            digest: file.digest()?,
            door: image.door.clone(),
            arch: image.arch.clone(),
            manifest: image.manifest.clone(),
            unique_symbols: image.unique.clone(),
            refused: None,
            probes: Vec::new(),
        };
        Ok(Unopened { inspection, file, image })
    }

    /// The results from the file.
    pub fn inspection(&self) -> &Inspection {
        &self.inspection
    }
}

/// Counts the devices of a type, without opening one; `context` provides the plugin's knobs.
pub fn probe(def: &DeviceTypeDef, context: &Arc<PluginContext>) -> Probe {
    let sink = MessageSink::new();
    // SAFETY: the plugin's own entry; the table lives as long as the process, context and sink
    // during the call.
    let count = unsafe { (def.probe)(&raw const HOST, context.as_raw(), sink.as_sink()) };
    let reason = (count == 0).then(|| sink.take().unwrap_or_else(|| "no reason given".to_owned()));
    Probe { device_type: def.name.clone(), count, reason }
}

impl Plugins {
    /// Reads a library's file, then tries it like [`Plugins::try_loading`].
    ///
    /// # Errors
    /// The file does not exist, or is not a plugin with a manifest. Later errors are part of the
    /// result.
    pub fn inspect(&self, path: &Path) -> Result<Inspection, LoadError> {
        Ok(self.try_loading(Unopened::read(path)?))
    }

    /// Opens a library, always in another process first, and tries it against the current snapshot,
    /// which stays unchanged.
    pub fn try_loading(&self, unopened: Unopened) -> Inspection {
        let Unopened { mut inspection, file, image } = unopened;
        match self.rehearse(file, image) {
            Ok((registry, id, library)) => {
                let own = registry.device_types().filter(|def| def.plugin == id);
                let plugin = &library.manifest.plugin.name;
                let knobs = self.settings().apply(registry.knobs()).0;
                let context = PluginContext::new(plugin, Arc::new(knobs));
                inspection.probes = own.map(|def| probe(def, &context)).collect();
            }
            Err(error) => inspection.refused = Some(error),
        }
        inspection
    }
}
