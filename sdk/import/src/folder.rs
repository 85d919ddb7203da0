//! The files of a model's folder.

use crate::ImportError;
use prost::Message;
use std::{
    collections::HashMap,
    fs::File,
    io::{self, Read},
    path::{Component, Path, PathBuf},
};
use tenon_proto::{
    AssetFileDef, CollectionDefKind, MAX_MESSAGE_BYTES, MetaGraphDef,
    SavedModel as SavedModelProto, TensorInfoEncoding, decode,
};

/// The file with the graphs.
const GRAPHS: &str = "saved_model.pb";
/// The folder of assets.
const ASSETS: &str = "assets";
/// The prefix of the variables' checkpoint.
const VARIABLES: &str = "variables/variables";
/// The collection that has the assets of models before `asset_file_def`.
const OLD_ASSETS: &str = "saved_model_assets";

/// Files that are there in the place of [`GRAPHS`] in other forms of the model.
const OTHER_FORMS: [(&str, &str, &str); 2] = [
    (
        "saved_model.cpb",
        "a model above 2 GiB that is split into chunks",
        "save it with fewer constants in its graph, so that it is not split",
    ),
    (
        "saved_model.pbtxt",
        "a model as text",
        "load it with TensorFlow and save it again, which writes the binary form",
    ),
];

/// A file that a model needs when it starts, such as a vocabulary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asset {
    /// The tensor that gets the path of the file.
    pub tensor: String,
    /// The file.
    pub file: PathBuf,
}

/// A message of any type.
#[derive(Clone, PartialEq, Message)]
struct Any {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

/// Reads the graphs of a model.
pub(crate) fn read(folder: &Path) -> Result<SavedModelProto, ImportError> {
    let file = folder.join(GRAPHS);
    let bytes = match bytes(&file) {
        Ok(bytes) => bytes,
        Err(ImportError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            return Err(other_form(folder));
        }
        Err(error) => return Err(error),
    };
    decode(&bytes).map_err(|source| ImportError::Message { file, source })
}

fn other_form(folder: &Path) -> ImportError {
    for (name, form, instead) in OTHER_FORMS {
        let file = folder.join(name);
        if file.exists() {
            return ImportError::Form { file, form, instead };
        }
    }
    ImportError::NoModel(folder.to_owned())
}

/// The bytes of a regular file that is no larger than a message may be.
fn bytes(file: &Path) -> Result<Vec<u8>, ImportError> {
    let failed = |source| ImportError::File { file: file.to_owned(), source };
    // A pipe would block when it is opened.
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(failed(io::Error::other("expected a regular file")));
    }
    let limit = MAX_MESSAGE_BYTES as u64;
    let too_large = |found| ImportError::TooLarge { file: file.to_owned(), limit, found };
    if metadata.len() > limit {
        return Err(too_large(metadata.len()));
    }
    let mut bytes = Vec::new();
    let mut open = File::open(file).map_err(failed)?.take(limit + 1);
    let read = open.read_to_end(&mut bytes).map_err(failed)?;
    if read as u64 > limit { Err(too_large(read as u64)) } else { Ok(bytes) }
}

/// The prefix of the checkpoint with the values of the variables.
pub(crate) fn variables(folder: &Path) -> PathBuf {
    folder.join(VARIABLES)
}

/// The assets of a graph, each once. Their files need not be there.
///
/// # Errors
/// A name leads out of the folder; a definition is damaged, or names no tensor; two of them give a tensor different files.
pub(crate) fn assets(folder: &Path, graph: &MetaGraphDef) -> Result<Vec<Asset>, ImportError> {
    let old;
    let defs = match graph.asset_file_def.as_slice() {
        [] => {
            old = old_assets(folder, graph)?;
            &old
        }
        defs => defs,
    };
    let mut assets: Vec<Asset> = Vec::with_capacity(defs.len());
    let mut places: HashMap<String, usize> = HashMap::new();
    for def in defs {
        let asset = asset(folder, def)?;
        // TensorFlow 1 lists an asset again for each table that reads it.
        match places.get(&asset.tensor).map(|&at| &assets[at]) {
            Some(known) if *known == asset => {}
            Some(known) => {
                let what = format!(
                    "assets '{}' and '{}' are both for the tensor '{}': expected one",
                    known.file.display(),
                    asset.file.display(),
                    asset.tensor
                );
                return Err(ImportError::Malformed { folder: folder.to_owned(), what });
            }
            None => {
                places.insert(asset.tensor.clone(), assets.len());
                assets.push(asset);
            }
        }
    }
    Ok(assets)
}

fn asset(folder: &Path, def: &AssetFileDef) -> Result<Asset, ImportError> {
    let name = Path::new(&def.filename);
    let is_inside = name.components().all(|part| matches!(part, Component::Normal(_)));
    if def.filename.is_empty() || !is_inside {
        let (folder, name) = (folder.to_owned(), def.filename.clone());
        return Err(ImportError::AssetName { folder, name });
    }
    let encoding = def.tensor_info.as_ref().and_then(|info| info.encoding.as_ref());
    match encoding {
        Some(TensorInfoEncoding::Name(tensor)) if !tensor.is_empty() => {
            Ok(Asset { tensor: tensor.clone(), file: folder.join(ASSETS).join(name) })
        }
        _ => Err(ImportError::Malformed {
            folder: folder.to_owned(),
            what: format!("asset '{}': expected the name of a tensor, found none", def.filename),
        }),
    }
}

fn old_assets(folder: &Path, graph: &MetaGraphDef) -> Result<Vec<AssetFileDef>, ImportError> {
    let collection = graph.collection_def.get(OLD_ASSETS).and_then(|found| found.kind.as_ref());
    let Some(CollectionDefKind::AnyList(list)) = collection else { return Ok(Vec::new()) };
    let read = |bytes: &Vec<u8>| {
        let any = Any::decode(bytes.as_slice()).ok()?;
        decode::<AssetFileDef>(&any.value).ok()
    };
    list.value.iter().map(read).collect::<Option<_>>().ok_or_else(|| ImportError::Malformed {
        folder: folder.to_owned(),
        what: format!("collection {OLD_ASSETS}: expected AssetFileDef messages, found other bytes"),
    })
}
