//! Step 2, manifest: reads a library's file without running its code (root symbols, processor,
//! manifest), and checks it against this machine and this host.
//!
//! Only the necessary ranges are read: a debug build has tens of megabytes.

use super::{
    elf,
    find::failed,
    handshake::{Door, Who, check_abi},
    trust::Policy,
};
use crate::{
    error::{AbiVersion, LoadError, ManifestError, Step},
    manifest::{MAX_BYTES, Manifest, PluginLine, SECTION},
};
use object::{
    Architecture, BinaryFormat, Object, ObjectKind, ObjectSection,
    read::{NameOrOrdinal, ReadCache},
};
use std::{
    env,
    fs::File,
    io::{self, BufReader, Seek, SeekFrom},
    path::Path,
};
use tenon_abi::door::{C_SYMBOL, ROOT_PREFIX};
use tenon_framework::registry::FeatureSet;

/// Contents of a library's file.
#[derive(Debug, Clone)]
pub struct Image {
    /// Its root symbol.
    pub door: Door,
    /// Processor, by Rust's name for it.
    pub arch: String,
    /// Its manifest.
    pub manifest: Manifest,
    /// Symbols that are unique in a process, unless they are made ordinary when the library is
    /// opened.
    pub unique: Vec<String>,
}

/// Reads an open file.
///
/// # Errors
/// Not a library of this system; no root symbol, or two; no manifest, or a malformed one; program
/// headers that the dynamic linker must not follow.
pub fn read(file: &File, path: &Path) -> Result<Image, LoadError> {
    let mut start = file;
    start.seek(SeekFrom::Start(0)).map_err(|error| failed(path, &error, Step::Manifest))?;
    let cache = ReadCache::new(BufReader::new(file));
    let not_a_library = |detail: String| LoadError::NotALibrary { path: path.to_owned(), detail };
    let object = object::File::parse(&cache).map_err(|error| not_a_library(error.to_string()))?;
    if object.format() != native_format() || object.kind() != ObjectKind::Dynamic {
        return Err(not_a_library(format!("{:?}, {:?}", object.format(), object.kind())));
    }
    let names = exported_names(&object).map_err(|error| not_a_library(error.to_string()))?;
    let door = door(&names, path)?;
    let manifest = manifest(&object, path)?;
    let damaged = |detail| LoadError::Damaged { path: path.to_owned(), detail };
    let unique = match &object {
        object::File::Elf64(file) => {
            elf::check(file).map_err(damaged)?;
            elf::unique_symbols(file)
        }
        _ => Vec::new(),
    };
    Ok(Image { door, arch: arch_name(object.architecture()), manifest, unique })
}

const fn native_format() -> BinaryFormat {
    if cfg!(windows) {
        BinaryFormat::Pe
    } else if cfg!(target_vendor = "apple") {
        BinaryFormat::MachO
    } else {
        BinaryFormat::Elf
    }
}

fn arch_name(architecture: Architecture) -> String {
    match architecture {
        Architecture::X86_64 => "x86_64".to_owned(),
        Architecture::Aarch64 => "aarch64".to_owned(),
        other => format!("{other:?}").to_ascii_lowercase(),
    }
}

/// The exported names that are root symbols.
fn exported_names<'data>(object: &impl Object<'data>) -> Result<Vec<String>, object::read::Error> {
    let mut names = Vec::new();
    for export in object.exports()? {
        let export = export?;
        let NameOrOrdinal::Name(name) = export.name() else { continue };
        // Mach-O puts an underscore before every C name.
        let name = if cfg!(target_vendor = "apple") {
            name.strip_prefix(b"_").unwrap_or(name)
        } else {
            name
        };
        if name == C_SYMBOL.as_bytes() || name.starts_with(ROOT_PREFIX.as_bytes()) {
            names.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    names.sort();
    names.dedup();
    Ok(names)
}

/// Determines the door from the exported names. A library with both uses door 1.
fn door(names: &[String], path: &Path) -> Result<Door, LoadError> {
    let path = path.to_owned();
    let roots: Vec<&String> = names.iter().filter(|name| name.starts_with(ROOT_PREFIX)).collect();
    match roots[..] {
        [root] => Ok(Door::Root(root.clone())),
        [first, second, ..] => {
            Err(LoadError::TwoRoots { path, first: first.clone(), second: second.clone() })
        }
        [] if names.iter().any(|name| name == C_SYMBOL) => Ok(Door::C),
        [] => Err(LoadError::NotAPlugin { path }),
    }
}

fn manifest<'data>(object: &impl Object<'data>, path: &Path) -> Result<Manifest, LoadError> {
    let bad = |problem| LoadError::Manifest { path: path.to_owned(), problem };
    let section = object
        .section_by_name(SECTION)
        .ok_or_else(|| LoadError::NoManifest { path: path.to_owned(), section: SECTION })?;
    let bytes = section.size();
    if bytes > MAX_BYTES {
        return Err(bad(ManifestError::TooLarge { bytes, limit: MAX_BYTES }));
    }
    let data = section
        .data()
        .map_err(|error| bad(ManifestError::Unreadable { detail: error.to_string() }))?;
    Manifest::parse(data).map_err(bad)
}

/// The contents of a private copy, which must be those of the file.
///
/// # Errors
/// As [`read`] and [`check_image`]; the copy is of another plugin or version.
pub fn image_of_copy(
    copy: &File,
    policy: &Policy,
    (path, plugin): (&Path, &PluginLine),
) -> Result<Image, LoadError> {
    let image = read(copy, path)?;
    let found = &image.manifest.plugin;
    if (&found.name, &found.version) != (&plugin.name, &plugin.version) {
        let error = io::Error::other("it changed while it was read: try again");
        return Err(failed(path, &error, Step::Trust));
    }
    check_image(&image, policy, path)?;
    Ok(image)
}

/// Checks that manifest and file header are suitable for this machine and this host.
///
/// # Errors
/// A different processor, missing CPU features, panics that abort, an incompatible ABI.
pub fn check_image(image: &Image, policy: &Policy, path: &Path) -> Result<(), LoadError> {
    let plugin = &image.manifest.plugin;
    let who = Who { path, plugin: &plugin.name, version: &plugin.version };
    let (path, name) = (who.path.to_owned(), plugin.name.clone());
    let said = if plugin.arch.is_empty() { &image.arch } else { &plugin.arch };
    if let Some(found) = [&image.arch, said].into_iter().find(|arch| *arch != env::consts::ARCH) {
        let (expected, found) = (env::consts::ARCH, found.clone());
        return Err(LoadError::Architecture { path, plugin: name, expected, found });
    }
    let cpu = FeatureSet::of_this_cpu();
    let missing: Vec<String> =
        plugin.features.iter().filter(|feature| !cpu.contains(feature)).cloned().collect();
    if !missing.is_empty() {
        return Err(LoadError::CpuFeatures { path, plugin: name, missing });
    }
    if !matches!(plugin.panic.as_str(), "" | "unwind") && !policy.allow_panic_abort {
        let found = plugin.panic.clone();
        return Err(LoadError::PanicStrategy { path, plugin: name, found });
    }
    let [major, minor] = plugin.abi;
    check_abi(AbiVersion { major, minor }, "manifest", who)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn decide(names: &[&str]) -> Result<Door, LoadError> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        door(&names, Path::new("/lib/x.so"))
    }

    #[test]
    fn the_door_is_decided_from_the_exports() {
        let root = || Door::Root("tenon_root_a_1.0".to_owned());
        assert_eq!(decide(&["tenon_root_a_1.0"]).unwrap(), root());
        assert_eq!(decide(&["tenon_plugin_v1"]).unwrap(), Door::C);
        assert_eq!(decide(&["tenon_plugin_v1", "tenon_root_a_1.0"]).unwrap(), root());
        assert!(matches!(decide(&[]), Err(LoadError::NotAPlugin { .. })));
        let error = decide(&["tenon_root_a_1.0", "tenon_root_b_1.0"]).unwrap_err();
        let message = error.to_string();
        assert!(message.starts_with("/lib/x.so exports two root symbols, tenon_root_a_1.0 and"));
        assert_eq!(error.step(), Step::Manifest);
    }

    fn read_bytes(bytes: &[u8]) -> Result<Image, LoadError> {
        let folder = tempfile::tempdir().unwrap();
        let path: PathBuf = folder.path().join("libtenon_x.so");
        std::fs::write(&path, bytes).unwrap();
        read(&File::open(&path).unwrap(), &path)
    }

    #[test]
    fn what_is_no_library_is_refused() {
        for bytes in [&b""[..], b"\x7fELF", b"#!/bin/sh\n", &[0; 4096]] {
            assert!(matches!(read_bytes(bytes), Err(LoadError::NotALibrary { .. })));
        }
        // An executable that is not a plugin: this test itself, whole, and truncated at every
        // place.
        let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(matches!(read_bytes(&bytes), Err(LoadError::NotAPlugin { .. })));
        for part in 1..20 {
            let error = read_bytes(&bytes[..bytes.len() * part / 20]).unwrap_err();
            assert!(
                matches!(error, LoadError::NotALibrary { .. } | LoadError::NotAPlugin { .. }),
                "{error}"
            );
        }
    }

    fn image(change: impl FnOnce(&mut PluginLine)) -> Image {
        let text = format!(
            r#"{{"kind":"plugin","name":"p","version":"1","abi":[{},{}],"panic":"unwind"}}"#,
            tenon_abi::ABI_MAJOR,
            tenon_abi::ABI_MINOR
        );
        let mut manifest = Manifest::parse(text.as_bytes()).unwrap();
        change(&mut manifest.plugin);
        let (arch, unique) = (env::consts::ARCH.to_owned(), Vec::new());
        Image { door: Door::C, arch, manifest, unique }
    }

    fn check(image: &Image, policy: &Policy) -> Result<(), LoadError> {
        check_image(image, policy, Path::new("/lib/p.so"))
    }

    #[test]
    fn a_library_that_does_not_suit_this_machine_is_refused_before_it_is_opened() {
        let policy = Policy::default();
        check(&image(|_| {}), &policy).unwrap();
        let arch = image(|plugin| plugin.arch = "vax".to_owned());
        assert!(matches!(check(&arch, &policy), Err(LoadError::Architecture { .. })));
        let file = Image { arch: "vax".to_owned(), ..image(|_| {}) };
        assert!(matches!(check(&file, &policy), Err(LoadError::Architecture { .. })));
        let features = image(|plugin| plugin.features = vec!["avx9000".to_owned()]);
        let error = check(&features, &policy).unwrap_err();
        assert_eq!(error.step(), Step::Manifest);
        assert!(error.to_string().contains("that this machine lacks: avx9000;"), "{error}");
        let abi = image(|plugin| plugin.abi[1] += 1);
        assert!(matches!(check(&abi, &policy), Err(LoadError::Abi { place: "manifest", .. })));
    }

    #[test]
    fn a_library_that_aborts_is_refused_unless_it_is_allowed() {
        let abort = image(|plugin| plugin.panic = "abort".to_owned());
        let error = check(&abort, &Policy::default()).unwrap_err();
        assert!(error.to_string().contains("host.allow_panic_abort=true"), "{error}");
        let policy = Policy { allow_panic_abort: true, ..Policy::default() };
        check(&abort, &policy).unwrap();
        check(&image(|plugin| plugin.panic = String::new()), &Policy::default()).unwrap();
    }
}
