//! Where the SDK of a new plugin comes from.

use crate::error::CliError;
use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// The variable that names the SDK's source.
const VARIABLE: &str = "TENON_SDK";

/// The SDK.
pub enum Sdk {
    /// The version of this command, from the registry of crates.
    Published,
    /// A clone of the repository, by its absolute path.
    Source(PathBuf),
}

impl Sdk {
    /// What `--sdk` names, else what `TENON_SDK` names, else the published one.
    ///
    /// # Errors
    /// There is no SDK at that place.
    pub fn find(given: Option<&Path>) -> Result<Sdk, CliError> {
        let of_variable = || env::var_os(VARIABLE).filter(|value| !value.is_empty());
        let Some(path) = given.map(Path::to_owned).or_else(|| of_variable().map(PathBuf::from))
        else {
            return Ok(Sdk::Published);
        };
        let said = if given.is_some() { "--sdk" } else { VARIABLE };
        let missing = |path: PathBuf| CliError::NoSdk { said, path };
        let root = path.canonicalize().map_err(|_| missing(path.clone()))?;
        if !root.join("sdk/author/Cargo.toml").is_file() {
            return Err(missing(path));
        }
        Ok(Sdk::Source(root))
    }

    /// The line of a manifest for one of its crates.
    pub fn dependency(&self, name: &str, folder: &str) -> String {
        match self {
            Sdk::Published => format!("{name} = \"{}\"", env!("CARGO_PKG_VERSION")),
            Sdk::Source(root) => {
                let path = root.join(folder).display().to_string();
                // A path may hold what a string of TOML may not.
                format!("{name} = {{ path = {} }}", serde_json::Value::from(path))
            }
        }
    }

    /// The versions that it was built with.
    pub fn lock(&self) -> Option<Vec<u8>> {
        match self {
            Sdk::Published => None,
            Sdk::Source(root) => fs::read(root.join("Cargo.lock")).ok(),
        }
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
        assert!(matches!(Sdk::find(Some(Path::new("nowhere"))), Err(CliError::NoSdk { .. })));
        assert_eq!(Sdk::Published.dependency("a", "b"), "a = \"0.1.0\"");
    }
}
