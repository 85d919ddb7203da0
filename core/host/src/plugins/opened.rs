//! A plugin whose library is open: in this process, or in one of its own.

use crate::{
    error::LoadError,
    loader::{
        self, Library, PluginFile, Policy, Source,
        image::{Door, Image},
    },
    manifest::Manifest,
};
use std::path::PathBuf;
use tenon_framework::{
    knob::Knobs,
    registry::{PluginId, PluginInfo, RegistryError, Transaction},
};

/// Where a plugin's code is.
#[derive(Clone)]
pub(super) enum Code {
    /// In this process.
    Here(&'static Library),
    /// In a process of its own.
    #[cfg(target_os = "linux")]
    Apart(std::sync::Arc<crate::isolate::Isolated>, std::sync::Arc<Image>),
}

/// A plugin that is open, and the file that asked for it: a library may have been opened from another file of the
/// same content.
#[derive(Clone)]
pub(super) struct Opened {
    pub code: Code,
    pub path: PathBuf,
}

impl Opened {
    /// Opens a file in this process.
    pub fn here(
        file: PluginFile,
        image: Image,
        policy: &Policy,
        source: Source,
    ) -> Result<Opened, LoadError> {
        let path = file.path.clone();
        let library = loader::open(file, image, policy, source)?;
        Ok(Opened { code: Code::Here(library), path })
    }

    /// Opens a file in a process of its own, where kernels compute on so many threads.
    #[cfg(target_os = "linux")]
    pub fn apart(
        file: PluginFile,
        image: Image,
        policy: &Policy,
        knobs: &Knobs,
        threads: usize,
    ) -> Result<Opened, LoadError> {
        use crate::isolate::{Limits, load};
        let path = file.path.clone();
        let (plugin, image) = load(file, &image, policy, Limits::from_knobs(knobs), threads)?;
        Ok(Opened { code: Code::Apart(plugin, std::sync::Arc::new(image)), path })
    }

    /// Elsewhere no plugin can be isolated.
    #[cfg(not(target_os = "linux"))]
    pub fn apart(
        file: PluginFile,
        image: Image,
        _policy: &Policy,
        _knobs: &Knobs,
        _threads: usize,
    ) -> Result<Opened, LoadError> {
        Err(LoadError::Isolated {
            path: file.path,
            plugin: image.manifest.plugin.name,
            step: crate::error::Step::Open,
            code: tenon_abi::Code::UNIMPLEMENTED,
            message: "plugins are isolated on Linux only: load it without isolation".to_owned(),
        })
    }

    pub fn manifest(&self) -> &Manifest {
        match &self.code {
            Code::Here(library) => &library.manifest,
            #[cfg(target_os = "linux")]
            Code::Apart(_, image) => &image.manifest,
        }
    }

    pub fn digest(&self) -> &str {
        match &self.code {
            Code::Here(library) => &library.digest,
            #[cfg(target_os = "linux")]
            Code::Apart(plugin, _) => plugin.digest(),
        }
    }

    /// What the registry says of it, as the plugin of this number and place.
    pub fn info(&self, id: PluginId, order: u32) -> PluginInfo {
        let plugin = &self.manifest().plugin;
        PluginInfo {
            path: Some(self.path.clone()),
            digest: self.digest().to_owned(),
            isolated: !matches!(self.code, Code::Here(_)),
            foreign: self.code.library().is_some_and(|library| library.door == Door::C),
            ..PluginInfo::linked(id, &plugin.name, &plugin.version, order)
        }
    }

    /// Collects what it registers, as `info`.
    pub fn collect(&self, info: PluginInfo) -> Result<Transaction, LoadError> {
        match &self.code {
            Code::Here(library) => loader::collect(library, info),
            #[cfg(target_os = "linux")]
            Code::Apart(plugin, image) => crate::isolate::collect(plugin, image, info),
        }
    }

    /// The error of registrations that the registry refuses.
    pub fn refused(&self, errors: Vec<RegistryError>) -> LoadError {
        let (path, plugin) = (self.path.clone(), self.manifest().plugin.name.clone());
        LoadError::Commit { path, plugin, errors }
    }
}

impl Code {
    /// Its library, if that is open in this process.
    pub fn library(&self) -> Option<&'static Library> {
        match self {
            Code::Here(library) => Some(library),
            #[cfg(target_os = "linux")]
            Code::Apart(..) => None,
        }
    }
}
