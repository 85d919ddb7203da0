//! A plugin whose library is open: in this process, or isolated.

use crate::{
    error::{LoadError, Step},
    isolation::{IsolatedCode, Isolation},
    loader::{self, Door, Library, PluginFile, Policy, Source, image::Image},
    manifest::Manifest,
};
use std::{path::PathBuf, sync::Arc};
use tenon_abi::Code;
use tenon_framework::{
    knob::Knobs,
    registry::{PluginId, PluginInfo, RegistryError, Transaction},
};

/// Where a plugin's code is.
#[derive(Clone)]
pub(super) enum PluginCode {
    InProcess(&'static Library),
    Isolated(Arc<dyn IsolatedCode>),
}

/// An open plugin, and the file through which it was requested: a library may have been opened from
/// another file with the same content.
#[derive(Clone)]
pub(super) struct Opened {
    pub code: PluginCode,
    pub path: PathBuf,
}

impl Opened {
    /// Opens a file in this process.
    pub fn in_process(
        file: PluginFile,
        image: Image,
        policy: &Policy,
        source: Source,
    ) -> Result<Opened, LoadError> {
        let path = file.path.clone();
        let library = loader::open(file, image, policy, source)?;
        Ok(Opened { code: PluginCode::InProcess(library), path })
    }

    /// Opens a file in a separate process, in which kernels compute on `threads` threads.
    pub fn isolated(
        isolation: Option<&dyn Isolation>,
        file: PluginFile,
        image: Image,
        policy: &Policy,
        knobs: &Knobs,
        threads: usize,
    ) -> Result<Opened, LoadError> {
        let path = file.path.clone();
        let Some(isolation) = isolation else {
            return Err(LoadError::Isolated {
                path,
                plugin: image.manifest.plugin.name,
                step: Step::Open,
                code: Code::UNIMPLEMENTED,
                message: "this program cannot isolate plugins, which a runtime on Linux can: load it without \
                          isolation"
                    .to_owned(),
            });
        };
        let code = isolation.open(file, image, policy, knobs, threads)?;
        Ok(Opened { code: PluginCode::Isolated(code), path })
    }

    pub fn manifest(&self) -> &Manifest {
        match &self.code {
            PluginCode::InProcess(library) => &library.manifest,
            PluginCode::Isolated(code) => code.manifest(),
        }
    }

    pub fn digest(&self) -> &str {
        match &self.code {
            PluginCode::InProcess(library) => &library.digest,
            PluginCode::Isolated(code) => code.digest(),
        }
    }

    /// Its entry in the registry, with this id and order.
    pub fn info(&self, id: PluginId, order: u32) -> PluginInfo {
        let plugin = &self.manifest().plugin;
        PluginInfo {
            path: Some(self.path.clone()),
            digest: self.digest().to_owned(),
            isolated: matches!(self.code, PluginCode::Isolated(_)),
            foreign: self.code.library().is_some_and(|library| library.door == Door::C),
            ..PluginInfo::linked(id, &plugin.name, &plugin.version, order)
        }
    }

    /// Collects what it registers, under `info`.
    pub fn collect(&self, info: PluginInfo) -> Result<Transaction, LoadError> {
        match &self.code {
            PluginCode::InProcess(library) => loader::collect(library, info),
            PluginCode::Isolated(code) => code.collect(info),
        }
    }

    /// The error when the registry refuses its registrations.
    pub fn refused(&self, errors: Vec<RegistryError>) -> LoadError {
        let (path, plugin) = (self.path.clone(), self.manifest().plugin.name.clone());
        LoadError::Commit { path, plugin, errors }
    }
}

impl PluginCode {
    /// Its library, if that is open in this process.
    pub fn library(&self) -> Option<&'static Library> {
        match self {
            PluginCode::InProcess(library) => Some(library),
            PluginCode::Isolated(_) => None,
        }
    }
}
