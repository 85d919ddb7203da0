//! Where the SDK of a new plugin comes from, and what is in it.

use crate::{
    args::Global,
    error::CliError,
    output::{print, print_json},
};
use serde_json::json;
use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// The variable that names the SDK's source.
const VARIABLE: &str = "TENON_SDK";

/// Where an installed command has it, from the folder above the one it is in.
const INSTALLED: &str = "share/tenon/sdk";

/// Where an installed command has its documents, from the SDK.
const DOCUMENTS: &str = "../../doc/tenon";

/// What makes a folder the SDK's source.
const MARK: &str = "sdk/author/Cargo.toml";

/// A command in `target/release` of a clone has the clone three folders above it; with a target's name between, four.
const CLONE: std::ops::RangeInclusive<usize> = 3..=4;

/// The SDK's source, a clone of the repository or what an archive of the command brings, by its absolute path.
#[derive(Debug)]
pub struct Sdk {
    root: PathBuf,
}

impl Sdk {
    /// What `--sdk` names, else what `TENON_SDK` names, else what came with the running command, or the clone that it was
    /// built in.
    ///
    /// # Errors
    /// There is no SDK at the place that is named, or none was found.
    pub fn find(given: Option<&Path>) -> Result<Sdk, CliError> {
        let of_variable = || env::var_os(VARIABLE).filter(|value| !value.is_empty());
        let Some(path) = given.map(Path::to_owned).or_else(|| of_variable().map(PathBuf::from))
        else {
            let executable = env::current_exe().and_then(fs::canonicalize);
            return executable.map_or(Err(CliError::NoSdkFound { looked: Vec::new() }), |file| {
                Sdk::of_command(&file)
            });
        };
        let said = if given.is_some() { "--sdk" } else { VARIABLE };
        let missing = |path: PathBuf| CliError::NoSdk { said, path };
        let root = path.canonicalize().map_err(|_| missing(path.clone()))?;
        if !root.join(MARK).is_file() {
            return Err(missing(path));
        }
        Ok(Sdk { root })
    }

    /// The one that belongs to this command.
    fn of_command(executable: &Path) -> Result<Sdk, CliError> {
        let installed = executable.ancestors().nth(2).map(|above| above.join(INSTALLED));
        let clones =
            CLONE.filter_map(|above| executable.ancestors().nth(above)).map(Path::to_owned);
        let looked: Vec<PathBuf> = installed.into_iter().chain(clones).collect();
        match looked.iter().find(|folder| folder.join(MARK).is_file()) {
            Some(root) => Ok(Sdk { root: root.clone() }),
            None => Err(CliError::NoSdkFound { looked }),
        }
    }

    /// Where it is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// One of its files, or of the documents that came with it; `None` where it is not there.
    pub fn file(&self, name: &str) -> Option<PathBuf> {
        let places = [self.root.join(name), self.root.join(DOCUMENTS).join(name)];
        places.into_iter().find(|file| file.is_file())?.canonicalize().ok()
    }

    /// The line of a manifest for one of its crates.
    pub fn dependency(&self, name: &str, folder: &str) -> String {
        let path = self.root.join(folder).display().to_string();
        // A path may hold what a string of TOML may not.
        format!("{name} = {{ path = {} }}", serde_json::Value::from(path))
    }

    /// The versions that it was built with.
    pub fn lock(&self) -> Option<Vec<u8>> {
        fs::read(self.root.join("Cargo.lock")).ok()
    }
}

/// Prints where the SDK is: the folder that has what guides name, such as `sdk/c/examples`.
///
/// # Errors
/// No SDK was found.
pub fn sdk(global: &Global) -> Result<(), CliError> {
    let sdk = Sdk::find(None)?;
    let folder = sdk.root().display().to_string();
    match global.json {
        true => print_json(&json!({ "sdk": folder })),
        false => print(&format!("{folder}\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_named_by_its_path() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let sdk = Sdk::find(Some(&root)).unwrap();
        let line = sdk.dependency("tenon-sdk", "sdk/author");
        assert!(line.starts_with("tenon-sdk = { path = \"/") && line.ends_with("sdk/author\" }"));
        assert!(sdk.lock().is_some());
        assert!(sdk.file("README.md").unwrap().is_absolute() && sdk.file("nowhere").is_none());
        assert!(matches!(Sdk::find(Some(Path::new("nowhere"))), Err(CliError::NoSdk { .. })));
    }

    #[test]
    fn a_command_finds_what_came_with_it_and_the_clone_it_was_built_in() {
        let folder = tempfile::tempdir().unwrap();
        let root = |at: &str| {
            let found = Sdk::of_command(&folder.path().join(at));
            found.map(|sdk| sdk.root.strip_prefix(folder.path()).unwrap().to_owned())
        };
        assert!(
            matches!(root("opt/bin/tenon"), Err(CliError::NoSdkFound { looked }) if looked.len() == 3)
        );
        for place in ["opt/share/tenon/sdk", "clone"] {
            fs::create_dir_all(folder.path().join(place).join("sdk/author")).unwrap();
            fs::write(folder.path().join(place).join(MARK), "").unwrap();
        }
        assert_eq!(root("opt/bin/tenon").unwrap(), Path::new("opt/share/tenon/sdk"));
        assert_eq!(root("clone/target/release/tenon").unwrap(), Path::new("clone"));
        assert_eq!(root("clone/target/aarch64/debug/tenon").unwrap(), Path::new("clone"));
        assert!(root("clone/other/bin/deep/down/tenon").is_err());
        // Of an archive, documents are beside the SDK.
        let doc = folder.path().join("opt/share/doc/tenon");
        fs::create_dir_all(&doc).unwrap();
        fs::write(doc.join("README.md"), "").unwrap();
        let sdk = Sdk::of_command(&folder.path().join("opt/bin/tenon")).unwrap();
        let found = sdk.file("README.md").unwrap();
        assert_eq!(found, doc.join("README.md").canonicalize().unwrap());
    }
}
