//! `tenon new`: a plugin to begin with, complete: it builds, its tests pass, it is checked and timed.

mod templates;

use crate::{
    args::{Global, NewArgs, NewKind, NewLang, NewTemplate},
    error::CliError,
    output::{print, print_json},
    sdk::Sdk,
};
use serde_json::json;
use std::{
    fs, io,
    path::{Path, PathBuf},
};
use tempfile::TempDir;

/// The names that a template's placeholders stand for.
struct Names {
    /// As given: of the package and of the folder.
    package: String,
    /// In camel case: of the op.
    op: String,
    /// In upper case: of the device type.
    device: String,
    /// With underscores: of C identifiers and of the library.
    word: String,
}

impl Names {
    fn new(name: &str, op: Option<&str>) -> Result<Names, CliError> {
        let fine = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let parts: Vec<&str> = name.split('-').collect();
        let starts = name.starts_with(|first: char| first.is_ascii_lowercase());
        if !starts || !name.bytes().all(fine) || parts.iter().any(|part| part.is_empty()) {
            return Err(CliError::NewName { name: name.to_owned() });
        }
        let capital = |part: &&str| part[..1].to_ascii_uppercase() + &part[1..];
        let op = match op {
            None => parts.iter().map(capital).collect(),
            // It names a type, too.
            Some(op) if is_camel_case(op) => op.to_owned(),
            Some(op) => return Err(CliError::NewOp { op: op.to_owned() }),
        };
        Ok(Names {
            package: name.to_owned(),
            op,
            device: name.replace('-', "_").to_ascii_uppercase(),
            word: name.replace('-', "_"),
        })
    }

    /// A template's text with its placeholders filled in.
    fn fill(&self, text: &str, sdk: Option<&Sdk>, lang: NewLang, kind: NewKind) -> String {
        let dependency = |name: &str, folder: &str| {
            sdk.map_or(String::new(), |sdk| sdk.dependency(name, folder))
        };
        let (bench, about) = match kind {
            NewKind::Op => {
                let device = match lang {
                    NewLang::Cuda => "device type `CUDA`",
                    _ => "the host device",
                };
                (self.op.as_str(), format!("the op `{}` with kernels for {device}", self.op))
            }
            NewKind::Device => ("Relu", format!("the device type `{}`", self.device)),
            NewKind::Kernel => (
                "Relu",
                format!("a kernel of the standard op `Relu` under the label `{}`", self.package),
            ),
        };
        let library = format!(
            "{}{}{}",
            std::env::consts::DLL_PREFIX,
            self.word,
            std::env::consts::DLL_SUFFIX
        );
        [
            ("{{name}}", self.package.as_str()),
            ("{{Op}}", &self.op),
            ("{{label}}", &self.package),
            ("{{DEVICE}}", &self.device),
            ("{{word}}", &self.word),
            ("{{library}}", &library),
            ("{{bench}}", bench),
            ("{{about}}", &about),
            ("{{source}}", lang.source()),
            ("{{sdk}}", &dependency("tenon-sdk", "sdk/author")),
            ("{{test}}", &dependency("tenon-test", "sdk/test")),
        ]
        .into_iter()
        .fold(text.to_owned(), |text, (mark, value)| text.replace(mark, value))
    }
}

fn is_camel_case(op: &str) -> bool {
    op.starts_with(|first: char| first.is_ascii_uppercase())
        && op.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Makes the folder. Everything is worked out before anything is written, and what is there is never touched.
///
/// # Errors
/// An invalid name; a folder that exists; an SDK that is not where it is said to be; a folder that cannot
/// be written.
pub fn new(global: &Global, args: &NewArgs) -> Result<(), CliError> {
    let names = Names::new(&args.name, args.op.as_deref())?;
    if args.op.is_some() && args.kind != NewKind::Op {
        return Err(CliError::NewTemplate { option: "--op" });
    }
    if (args.lang, args.kind) == (NewLang::Cuda, NewKind::Device) {
        return Err(CliError::NewDeviceInCuda);
    }
    if args.template != NewTemplate::Elementwise
        && (args.lang, args.kind) != (NewLang::Rust, NewKind::Op)
    {
        return Err(CliError::NewTemplate { option: "--template" });
    }
    // A plugin in another language has in its folder all that it needs.
    let wanted = args.lang.is_rust() || args.sdk.is_some();
    let sdk = wanted.then(|| Sdk::find(args.sdk.as_deref())).transpose()?;
    let sdk = sdk.filter(|_| args.lang.is_rust());
    let folder = args.path.clone().unwrap_or_else(|| PathBuf::from(&args.name));
    if folder.exists() {
        return Err(CliError::NewExists { folder });
    }
    let mut files: Vec<(PathBuf, Vec<u8>)> = templates::files(args.lang, args.kind, args.template)
        .map(|(path, text)| {
            let filled = names.fill(text, sdk.as_ref(), args.lang, args.kind);
            (PathBuf::from(path), filled.into_bytes())
        })
        .collect();
    if let Some(lock) = sdk.as_ref().and_then(Sdk::lock) {
        // The versions that the SDK was built with are the ones at hand without a network.
        files.push((PathBuf::from("Cargo.lock"), lock));
    }
    write(&folder, &files)?;
    told(global, args, &folder, &files, sdk.as_ref())
}

/// Writes the files into a folder beside and renames that, so that a full disk leaves no part of a plugin.
fn write(folder: &Path, files: &[(PathBuf, Vec<u8>)]) -> Result<(), CliError> {
    let written = |file: &Path| {
        let file = file.to_owned();
        move |source| CliError::File { file, done: "written", source }
    };
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(written(parent))?;
    let aside = aside(parent).map_err(written(folder))?;
    for (path, bytes) in files {
        let file = aside.path().join(path);
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).map_err(written(folder))?;
        }
        fs::write(&file, bytes).map_err(written(&folder.join(path)))?;
    }
    fs::rename(aside.path(), folder).map_err(written(folder))?;
    // What was renamed is no longer there to be removed.
    let _ = aside.keep();
    Ok(())
}

/// A folder as private as the umask makes any new one, which goes with what is in it unless it is kept.
fn aside(parent: &Path) -> io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".tenon-").suffix(".part");
    #[cfg(unix)]
    builder.permissions(<fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o777));
    builder.tempdir_in(parent)
}

fn told(
    global: &Global,
    args: &NewArgs,
    folder: &Path,
    files: &[(PathBuf, Vec<u8>)],
    sdk: Option<&Sdk>,
) -> Result<(), CliError> {
    let sdk = sdk.map(|sdk| sdk.root().display().to_string());
    if global.json {
        let files: Vec<String> =
            files.iter().map(|(path, _)| folder.join(path).display().to_string()).collect();
        let folder = folder.display().to_string();
        return print_json(&json!({ "folder": folder, "files": files, "sdk": sdk }));
    }
    let mut text = String::new();
    for (path, _) in files {
        text += &format!("  {}\n", folder.join(path).display());
    }
    if let Some(root) = sdk {
        text += &format!("\nIts SDK is {root}\n");
    }
    let (build, test) = args.lang.commands();
    text += &format!("\nNext:\n  cd {}\n  {build}\n  {test}\n", folder.display());
    text += "  and on as its README.md says\n";
    print(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_gives_all_others() {
        let names = Names::new("my-op2", None).unwrap();
        assert_eq!((names.op.as_str(), names.device.as_str()), ("MyOp2", "MY_OP2"));
        assert_eq!(names.word, "my_op2");
        for bad in ["", "2op", "My", "a_b", "a--b", "-a", "a-", "é", "a/b"] {
            assert!(Names::new(bad, None).is_err(), "{bad}");
        }
        assert_eq!(Names::new("norms", Some("RmsNorm")).unwrap().op, "RmsNorm");
        for bad in ["", "rmsNorm", "Rms-Norm", "Rms Norm", "2Norm", "Ä"] {
            assert!(Names::new("norms", Some(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn no_placeholder_is_left() {
        let names = Names::new("my-op", Some("RmsNorm")).unwrap();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let sdk = Sdk::find(Some(&root)).unwrap();
        for (lang, kind, template) in templates::ALL {
            for (path, text) in templates::files(lang, kind, template) {
                let filled = names.fill(text, Some(&sdk), lang, kind);
                assert!(!filled.contains("{{"), "{path} of {lang:?} {kind:?}");
                let without = names.fill(text, None, lang, kind);
                assert!(lang.is_rust() || without == filled, "{path} of {lang:?} names the SDK");
            }
        }
    }
}
