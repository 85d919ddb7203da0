//! A model as its folder describes it.

use crate::{
    Asset, ImportError, LoadOptions, LoadedModel, OpUse, SignatureInfo, Stage, Variable, folder,
    loaded, ops,
    start::{INIT_SIGNATURE, Start, TRAIN_SIGNATURE},
    variables,
};
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};
use tenon_framework::registry::Registry;
use tenon_proto::{GraphDef, MetaGraphDef, SavedModel as SavedModelProto};
use tenon_runtime::{AnySession, Runtime};

/// The tag of graphs that serve.
pub const SERVE: &str = "serve";

/// The version of the layout that this crate reads, and the newest.
const SCHEMA: i64 = 1;

/// A SavedModel: one or more graphs, distinguished by their tags, with the values of their variables.
#[derive(Debug, Clone)]
pub struct SavedModel {
    folder: PathBuf,
    proto: SavedModelProto,
}

/// One graph of a [`SavedModel`].
#[derive(Debug, Clone, Copy)]
pub struct MetaGraph<'m> {
    pub(crate) folder: &'m Path,
    pub(crate) def: &'m MetaGraphDef,
}

impl SavedModel {
    /// Reads the description of a model; its variables stay in their files.
    ///
    /// # Errors
    /// The folder has no `saved_model.pb` (`NOT_FOUND`), has the model in another form (`UNIMPLEMENTED`), or has a file that is
    /// damaged.
    pub fn open(folder: impl AsRef<Path>) -> Result<SavedModel, ImportError> {
        let folder = folder.as_ref().to_owned();
        let proto = folder::read(&folder)?;
        let malformed = |what: String| Err(ImportError::Malformed { folder: folder.clone(), what });
        if proto.saved_model_schema_version > SCHEMA {
            return malformed(format!(
                "expected version {SCHEMA} of the layout at most, found {}",
                proto.saved_model_schema_version
            ));
        }
        if proto.meta_graphs.is_empty() {
            return malformed("expected a graph at least, found none".to_owned());
        }
        Ok(SavedModel { folder, proto })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The graphs, in the order of the file.
    pub fn meta_graphs(&self) -> impl ExactSizeIterator<Item = MetaGraph<'_>> {
        self.proto.meta_graphs.iter().map(|def| MetaGraph { folder: &self.folder, def })
    }

    /// The tags of each graph, sorted.
    pub fn tag_sets(&self) -> Vec<Vec<&str>> {
        self.meta_graphs().map(|graph| graph.tags()).collect()
    }

    /// The graph with exactly these tags, in any order; the first one, where several have them.
    ///
    /// # Errors
    /// No graph has them; the message lists the tags that there are.
    pub fn meta_graph(&self, tags: &[&str]) -> Result<MetaGraph<'_>, ImportError> {
        Ok(MetaGraph { folder: &self.folder, def: &self.proto.meta_graphs[self.position(tags)?] })
    }

    fn position(&self, tags: &[&str]) -> Result<usize, ImportError> {
        let asked: BTreeSet<&str> = tags.iter().copied().collect();
        let asked: Vec<&str> = asked.into_iter().collect();
        let found = self.meta_graphs().position(|graph| graph.tags() == asked);
        found.ok_or_else(|| {
            let have: Vec<String> = self.tag_sets().iter().map(|tags| shown(tags)).collect();
            let (folder, have) = (self.folder.clone(), have.join(", "));
            ImportError::Tags { folder, asked: shown(&asked), have }
        })
    }

    /// The values in the checkpoint of the model, which its graphs share.
    ///
    /// # Errors
    /// The checkpoint is damaged.
    pub fn variables(&self) -> Result<Vec<Variable>, ImportError> {
        variables::list(&self.folder)
    }

    /// Loads the graph with these tags into a session of its own: restores the variables, and runs the initial op. The
    /// constants of the graph move into the session; clone the model first to load it again.
    ///
    /// # Errors
    /// No graph has the tags; a file is missing or damaged; the initial steps need ops that are not registered, of which all are
    /// named; a step fails.
    pub fn load(
        mut self,
        runtime: &Runtime,
        tags: &[&str],
        options: &LoadOptions,
    ) -> Result<LoadedModel, ImportError> {
        let at = self.position(tags)?;
        let def = self.proto.meta_graphs.swap_remove(at);
        drop(self.proto);
        loaded::load(&self.folder, def, runtime, options)
    }
}

fn shown(tags: &[&str]) -> String {
    format!("{{{}}}", tags.join(", "))
}

impl<'m> MetaGraph<'m> {
    /// The tags, sorted, each once.
    pub fn tags(&self) -> Vec<&'m str> {
        let tags = self.def.meta_info_def.iter().flat_map(|info| &info.tags);
        let tags: BTreeSet<&str> = tags.map(String::as_str).collect();
        tags.into_iter().collect()
    }

    /// The version of TensorFlow that wrote the graph; empty where it is not said.
    pub fn tensorflow_version(&self) -> &'m str {
        self.def.meta_info_def.as_ref().map_or("", |info| &info.tensorflow_version)
    }

    /// The message.
    pub fn message(&self) -> &'m MetaGraphDef {
        self.def
    }

    /// The signatures, in the order of their keys, without those that only name an op of the loader.
    ///
    /// # Errors
    /// A type, a shape or a default makes no sense.
    pub fn signatures(&self) -> Result<Vec<SignatureInfo>, ImportError> {
        let internal = [INIT_SIGNATURE, TRAIN_SIGNATURE];
        let signatures = self.def.signature_def.iter();
        let own = signatures.filter(|(key, _)| !internal.contains(&key.as_str()));
        own.map(|(key, def)| SignatureInfo::read(key, def)).collect()
    }

    /// The assets. Their files need not be there.
    ///
    /// # Errors
    /// A name leads out of the folder, or a definition is damaged.
    pub fn assets(&self) -> Result<Vec<Asset>, ImportError> {
        folder::assets(self.folder, self.def)
    }

    /// The ops that the graph and its functions use, in the order of their names.
    pub fn ops(&self) -> Vec<OpUse> {
        self.def.graph_def.as_ref().map_or_else(Vec::new, ops::used)
    }

    /// All ops that the graph or one of its functions uses and the registry lacks.
    pub fn missing_ops(&self, registry: &Registry) -> Vec<String> {
        let missing = self.ops().into_iter().filter(|used| registry.op(&used.name).is_none());
        missing.map(|used| used.name).collect()
    }

    /// The graph.
    ///
    /// # Errors
    /// There is none.
    pub fn graph(&self) -> Result<&'m GraphDef, ImportError> {
        self.def.graph_def.as_ref().ok_or_else(|| ImportError::Malformed {
            folder: self.folder.to_owned(),
            what: format!(
                "the graph with the tags {}: expected nodes, found none",
                shown(&self.tags())
            ),
        })
    }

    /// Starts the model in a session, in this process or on a server, that has its graph already: restores the variables, and
    /// runs the initial op. Files are named as they are here; a server has to have them under the same names. Each of the steps
    /// may take as long as the deadline says.
    ///
    /// # Errors
    /// A file is missing or damaged, or a step fails.
    pub fn start(
        &self,
        session: &dyn AnySession,
        deadline: Option<Duration>,
    ) -> Result<(), ImportError> {
        Start::new(*self)?.run(session, deadline, &|_: Stage| ())
    }
}
