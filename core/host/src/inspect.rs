//! What there is to know of one library: what its file says, and what loading it says.

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

/// What a device type's probe found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// The device type.
    pub device_type: String,
    /// How many devices there are.
    pub count: u32,
    /// Why there is none.
    pub reason: Option<String>,
}

/// What there is to know of a library.
#[derive(Debug, Clone)]
pub struct Inspection {
    /// Its file, absolute and without symbolic links.
    pub path: PathBuf,
    /// Identity of the file.
    pub id: FileId,
    /// SHA-256 of the file, in hexadecimal.
    pub digest: String,
    /// Its door.
    pub door: Door,
    /// Processor that it is built for.
    pub arch: String,
    /// Its manifest.
    pub manifest: Manifest,
    /// Symbols of which a process has one (`STB_GNU_UNIQUE`): it is opened from a copy in which they are its own.
    pub unique_symbols: Vec<String>,
    /// Why it would not be loaded, if so.
    pub refused: Option<LoadError>,
    /// Its device types; empty when it would not be loaded.
    pub probes: Vec<Probe>,
}

/// A library whose file was read, and of which nothing has run.
pub struct Unopened {
    inspection: Inspection,
    file: PluginFile,
    image: Image,
}

impl Unopened {
    /// Reads a library's file.
    ///
    /// # Errors
    /// The file is not there, or is no plugin with a manifest.
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

    /// What the file says.
    pub fn inspection(&self) -> &Inspection {
        &self.inspection
    }
}

/// Counts the devices of a type, without opening one, as the plugin is told to by `context`.
pub fn probe(def: &DeviceTypeDef, context: &Arc<PluginContext>) -> Probe {
    let sink = MessageSink::new();
    // SAFETY: the plugin's own entry; the table lives as long as the process, context and sink through the call.
    let count = unsafe { (def.probe)(&raw const HOST, context.as_raw(), sink.as_sink()) };
    let reason = (count == 0).then(|| sink.take().unwrap_or_else(|| "no reason given".to_owned()));
    Probe { device_type: def.name.clone(), count, reason }
}

impl Plugins {
    /// Reads a library's file, then tries it as [`Plugins::try_loading`] does.
    ///
    /// # Errors
    /// The file is not there, or is no plugin with a manifest. What goes wrong later is in the answer.
    pub fn inspect(&self, path: &Path) -> Result<Inspection, LoadError> {
        Ok(self.try_loading(Unopened::read(path)?))
    }

    /// Opens a library, in another process first whatever is known of it, and tries it against the current snapshot,
    /// which stays as it is.
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
