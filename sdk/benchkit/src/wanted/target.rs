//! `MatMul`, `MatMul:avx512`, `my_ops.so`, `model.pb`

use std::path::{Path, PathBuf};
use tenon_framework::text::edit_distance;
use thiserror::Error;

/// The calls to measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// An op, or its kernels of one label.
    Op {
        /// Name of the op.
        op: String,
        /// The label; empty for the ordinary kernel.
        label: Option<String>,
    },
    /// All kernels of a plugin.
    Plugin(PathBuf),
    /// The calls of a graph.
    Graph(PathBuf),
}

/// Why a target is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TargetError {
    /// A file that is not there.
    #[error("{}: there is no such file", .0.display())]
    NoFile(PathBuf),
    /// Nothing that an op or a file can be called.
    #[error(
        "'{0}' is not a target: expected an op such as MatMul, OP:LABEL, a plugin's file, or a graph (.pb)"
    )]
    NoTarget(String),
}

impl Target {
    /// Reads a target. A text with a slash or the ending of a library or graph names a file.
    ///
    /// # Errors
    /// A file that is not there, an empty name.
    pub fn parse(text: &str) -> Result<Target, TargetError> {
        let path = Path::new(text);
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        let is_graph = ending == "pb";
        if is_graph || text.contains('/') || ["so", "dylib", "dll"].contains(&ending) {
            if !path.is_file() {
                return Err(TargetError::NoFile(path.to_owned()));
            }
            let make = if is_graph { Target::Graph } else { Target::Plugin };
            return Ok(make(path.to_owned()));
        }
        let (op, label) = match text.split_once(':') {
            Some((op, label)) => (op, Some(label.to_owned())),
            None => (text, None),
        };
        if !op.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            return Err(TargetError::NoTarget(text.to_owned()));
        }
        Ok(Target::Op { op: op.to_owned(), label })
    }
}

/// The known name that is nearest to one that is not known; `None` when none is near.
pub fn closest<'n>(wanted: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let lower = |name: &str| name.to_lowercase().chars().collect::<Vec<_>>();
    let asked = lower(wanted);
    let distance = |name: &&'n str| edit_distance(&asked, &lower(name));
    known.min_by_key(distance).filter(|name| distance(name) <= 1 + wanted.len() / 4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn ops_and_labels_are_told_from_files() {
        let op = |op: &str, label: Option<&str>| {
            Ok(Target::Op { op: op.into(), label: label.map(str::to_owned) })
        };
        assert_eq!(Target::parse("MatMul"), op("MatMul", None));
        assert_eq!(Target::parse("MatMul:avx512"), op("MatMul", Some("avx512")));
        assert_eq!(Target::parse("MatMul:"), op("MatMul", Some("")));
        assert_eq!(Target::parse("Examples>Cube"), op("Examples>Cube", None));
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| {
            let path = folder.path().join(name);
            fs::write(&path, "").unwrap();
            (path.clone(), Target::parse(path.to_str().unwrap()).unwrap())
        };
        let (path, target) = file("libmy.so");
        assert_eq!(target, Target::Plugin(path));
        let (path, target) = file("model.pb");
        assert_eq!(target, Target::Graph(path));
    }

    #[test]
    fn what_is_no_target_is_said() {
        let wrong = |text: &str| Target::parse(text).unwrap_err().to_string();
        assert_eq!(wrong("no/such.so"), "no/such.so: there is no such file");
        assert_eq!(wrong("model.pb"), "model.pb: there is no such file");
        assert!(wrong("").contains("is not a target") && wrong(":avx2").contains("OP:LABEL"));
    }

    #[test]
    fn a_name_nearby_is_found() {
        let known = || ["MatMul", "Mul", "Conv2D"].into_iter();
        assert_eq!(closest("Matmul", known()), Some("MatMul"));
        assert_eq!(closest("MatMull", known()), Some("MatMul"));
        assert_eq!(closest("Conv3D", known()), Some("Conv2D"));
        assert_eq!(closest("Softmax", known()), None);
        // Two letters that changed places are one slip.
        assert_eq!(closest("Rleu", ["Elu", "Relu", "Selu"].into_iter()), Some("Relu"));
    }
}
