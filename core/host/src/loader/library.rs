//! The libraries that this process has opened.
//!
//! A library is opened once in a process, whoever asks: each one has its own statics, among them the host's
//! table, so `open` of the plugin runs once and its record is one.

use super::{
    Policy,
    door::{self, Who, check_abi},
    file::{Openable, PluginFile, Source, failed, trust},
    image::{self, Door, Image},
    probe,
};
use crate::{
    digest::FileId,
    entries::table as table_of_host,
    error::{AbiVersion, LoadError, Step},
    manifest::{Manifest, PluginLine},
    record::PluginRecord,
    registrar::Collector,
    sink::MessageSink,
};
use std::{
    env, fmt,
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::LazyLock,
};
use tenon_abi::PluginV1;
use tenon_framework::{
    registry::{FeatureSet, PluginInfo, Transaction},
    sync::{Mutex, Rank},
};

/// An opened plugin.
pub struct Library {
    /// Its file.
    pub path: PathBuf,
    /// Identity of the file that was opened first.
    pub id: FileId,
    /// SHA-256 of the file, in hexadecimal.
    pub digest: String,
    /// The door it came through.
    pub door: Door,
    /// Its manifest.
    pub manifest: Manifest,
    /// The host's record of it.
    pub record: &'static PluginRecord,
    /// Whether it was opened from a private copy, digested while that was written: nobody could change it
    /// between the one and the other.
    private: bool,
    table: &'static PluginV1,
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Library")
            .field("plugin", &self.manifest.plugin.name)
            .field("path", &self.path)
            .field("digest", &self.digest)
            .finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Opened {
    libraries: Vec<&'static Library>,
    /// The files that were opened themselves, whatever came of it. Their descriptors stay open, so that no
    /// other file gets their numbers; a file that was only copied is not among them.
    mapped: Vec<(FileId, String)>,
}

/// Held while a plugin's `open` or `register_all` runs: both may take the host's inner locks.
const LIBRARIES: Rank = Rank(18);

static OPENED: LazyLock<Mutex<Opened>> =
    LazyLock::new(|| Mutex::ranked(LIBRARIES, Opened::default()));

/// Steps 1 and 2: finds a file and reads its manifest, without running anything of it.
///
/// # Errors
/// As the steps say.
pub fn examine(path: &Path) -> Result<(PluginFile, Image), LoadError> {
    let file = PluginFile::find(path)?;
    let image = image::read(&file.file, &file.path)?;
    Ok((file, image))
}

/// Steps 3 to 7, for what [`examine`] gave, which is first held against this machine and this host. A
/// library that is open already, by its digest, is the same plugin; `source` says how another is opened.
///
/// # Errors
/// As the steps say.
pub fn open(
    file: PluginFile,
    image: Image,
    policy: &Policy,
    source: Source,
) -> Result<&'static Library, LoadError> {
    let plugin = image.manifest.plugin.clone();
    let (path, id) = (file.path.clone(), file.id);
    let who = Who { path: &path, plugin: &plugin.name, version: &plugin.version };
    check_image(&image, policy, who.path)?;
    let mut opened = OPENED.lock();
    // A library that is open is what its digest says only where it was opened from a private copy: another
    // one could be written to while it was digested, and its digest may be a remembered one.
    let strict = policy.allowed_digests.is_some();
    let known = |digest: &str| {
        let mut open = opened.libraries.iter();
        open.find(|library| library.digest == digest && (library.private || !strict))
    };
    if !strict
        && !policy.refuse_writable
        && let Some(library) = known(&file.digest()?)
    {
        return Ok(library);
    }
    let changed = |id: FileId, digest: &str| {
        opened.mapped.iter().any(|(other, before)| *other == id && before != digest)
    };
    let own_symbols = !image.unique.is_empty();
    let openable = trust(file, &plugin.name, policy, source, own_symbols, changed)?;
    let digest = openable.digest.clone();
    if let Some(library) = known(&digest) {
        return Ok(library);
    }
    // What was looked at so far is the file; what is opened is the copy of it that was digested.
    let private = openable.private;
    let image =
        if strict { image_of_copy(&openable.file, policy, (&path, &plugin))? } else { image };
    probe::check(&openable.file, &digest, who, &policy.probing)?;
    if !private {
        opened.mapped.push((id, digest));
    }
    let library = enter(openable, id, image, private, who)?;
    opened.libraries.push(library);
    Ok(library)
}

/// Steps 4 to 7, for a copy that nobody can change and whose digest is trusted: what a process of its own opens.
///
/// # Errors
/// As the steps say.
#[cfg(target_os = "linux")]
pub fn open_sealed(
    file: File,
    path: &Path,
    digest: String,
    image: Image,
    policy: &Policy,
) -> Result<&'static Library, LoadError> {
    let plugin = image.manifest.plugin.clone();
    let who = Who { path, plugin: &plugin.name, version: &plugin.version };
    check_image(&image, policy, path)?;
    let at_open = |error: std::io::Error| failed(path, &error, Step::Open);
    let id = FileId::of(&file.metadata().map_err(at_open)?);
    let (asked, path) = (path.to_owned(), path.to_owned());
    let sealed = PluginFile { path, asked, file, id };
    enter(sealed.openable(digest, None)?, id, image, true, who)
}

/// Has a library register with a registrar of the caller's.
///
/// # Safety
/// A registrar and its table, which live through the call.
#[cfg(target_os = "linux")]
pub unsafe fn register_with(
    library: &'static Library,
    registrar: *mut tenon_abi::Registrar,
    table: *const tenon_abi::RegistrarTable,
) -> Result<(), LoadError> {
    let sink = MessageSink::new();
    let code = match library.table.register_all {
        // SAFETY: the plugin's own entry; the rest is the caller's promise.
        Some(register) => unsafe { register(table_of_host(), registrar, table, sink.as_sink()) },
        None => tenon_abi::Code::INTERNAL,
    };
    sink.check(code).map_err(|error| {
        let (path, plugin) = (library.path.clone(), library.manifest.plugin.name.clone());
        LoadError::Register { path, plugin, error }
    })
}

/// Steps 4 to 7.
fn enter(
    openable: Openable,
    id: FileId,
    image: Image,
    private: bool,
    who: Who<'_>,
) -> Result<&'static Library, LoadError> {
    let digest = openable.digest.clone();
    let mapped = map(openable, who)?;
    // SAFETY: the file's export table has the door's symbol, and the library stays mapped.
    let table = unsafe { door::table(mapped, &image.door, who)? };
    let record = PluginRecord::leak(who.plugin, who.path);
    start(table, record, who)?;
    let Image { door, manifest, .. } = image;
    let path = who.path.to_owned();
    let library = Library { path, id, digest, door, manifest, record, private, table };
    Ok(Box::leak(Box::new(library)))
}

/// What a private copy says, which must be what the file said.
pub fn image_of_copy(
    copy: &File,
    policy: &Policy,
    (path, plugin): (&Path, &PluginLine),
) -> Result<Image, LoadError> {
    let image = image::read(copy, path)?;
    let found = &image.manifest.plugin;
    if (&found.name, &found.version) != (&plugin.name, &plugin.version) {
        let error = io::Error::other("it changed while it was read: try again");
        return Err(failed(path, &error, Step::Trust));
    }
    check_image(&image, policy, path)?;
    Ok(image)
}

/// The rest of step 2: what the manifest and the file's head say must suit this machine and this host.
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

/// Step 4. The library is leaked, with the descriptor that its name stands for.
fn map(openable: Openable, who: Who<'_>) -> Result<&'static libloading::Library, LoadError> {
    let Openable { name, file, copy, .. } = openable;
    let failed = |error: libloading::Error| LoadError::Open {
        path: who.path.to_owned(),
        plugin: who.plugin.to_owned(),
        detail: door::detail(&error).replace(&*name.to_string_lossy(), &who.path.to_string_lossy()),
    };
    // SAFETY: opening runs the library's initialisers; that it is a plugin, and trusted as far as was asked
    // for, is known by now.
    let library = unsafe { open_library(&name) }.map_err(failed)?;
    std::mem::forget(file);
    drop(copy);
    Ok(Box::leak(Box::new(library)))
}

/// Binds all symbols at once, so that a missing one is found here and not in a step.
///
/// # Safety
/// The library's initialisers may run.
#[cfg(unix)]
unsafe fn open_library(name: &Path) -> Result<libloading::Library, libloading::Error> {
    use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
    // SAFETY: the caller's promise.
    unsafe { Library::open(Some(name), RTLD_NOW | RTLD_LOCAL) }.map(Into::into)
}

/// # Safety
/// The library's initialisers may run.
#[cfg(not(unix))]
unsafe fn open_library(name: &Path) -> Result<libloading::Library, libloading::Error> {
    // SAFETY: the caller's promise.
    unsafe { libloading::Library::new(name) }
}

/// Step 7.
fn start(
    table: &'static PluginV1,
    record: &'static PluginRecord,
    who: Who<'_>,
) -> Result<(), LoadError> {
    let Some(open) = table.open else { return Ok(()) };
    let sink = MessageSink::new();
    // SAFETY: table and record live as long as the process, the sink through the call.
    let code = unsafe { open(table_of_host(), record.as_plugin(), sink.as_sink()) };
    sink.check(code).map_err(|error| {
        let (path, plugin) = (who.path.to_owned(), who.plugin.to_owned());
        LoadError::Start { path, plugin, error }
    })
}

/// Steps 8 and 9: collects what the plugin registers, as `info`, and compares it with its manifest. What is
/// wrong with single registrations is in the transaction.
///
/// # Errors
/// `register_all` fails, or manifest and registrations differ.
pub fn collect(library: &'static Library, info: PluginInfo) -> Result<Transaction, LoadError> {
    let (path, plugin) = (library.path.clone(), library.manifest.plugin.name.clone());
    let mut collector = Collector::new(info);
    let sink = MessageSink::new();
    let turn = OPENED.lock();
    // SAFETY: the plugin's own entry, with a registrar, its table and a sink that outlive the call.
    let code = unsafe { collector.call(library.table.register_all, sink.as_sink()) };
    drop(turn);
    if let Err(error) = sink.check(code) {
        return Err(LoadError::Register { path, plugin, error });
    }
    let (transaction, entries) = collector.finish();
    if transaction.errors().is_empty() {
        compare(&path, &plugin, library.manifest.entries(), entries)?;
    }
    Ok(transaction)
}

/// Step 9: what the manifest says and what was registered, both sorted, have to be the same.
///
/// # Errors
/// [`LoadError::Differs`].
pub fn compare(
    path: &Path,
    plugin: &str,
    manifest: Vec<String>,
    registered: Vec<String>,
) -> Result<(), LoadError> {
    let (missing, surplus) = differences(manifest, registered);
    if missing.is_empty() && surplus.is_empty() {
        return Ok(());
    }
    let (path, plugin) = (path.to_owned(), plugin.to_owned());
    Err(LoadError::Differs { path, plugin, missing, surplus })
}

/// What only one of two sorted lists has. Entries may occur more than once: they are counted.
fn differences(manifest: Vec<String>, registered: Vec<String>) -> (Vec<String>, Vec<String>) {
    let (mut missing, mut surplus) = (Vec::new(), Vec::new());
    let (mut left, mut right) =
        (manifest.into_iter().peekable(), registered.into_iter().peekable());
    loop {
        let order = match (left.peek(), right.peek()) {
            (None, None) => return (missing, surplus),
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(a), Some(b)) => a.cmp(b),
        };
        if order.is_le() {
            let entry = left.next();
            missing.extend(entry.filter(|_| order.is_lt()));
        }
        if order.is_ge() {
            let entry = right.next();
            surplus.extend(entry.filter(|_| order.is_gt()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::PluginLine;

    #[test]
    fn differences_are_counted_on_both_sides() {
        let list = |items: &[&str]| items.iter().map(|&i| i.to_owned()).collect::<Vec<_>>();
        let (missing, surplus) =
            differences(list(&["a", "b", "b", "d"]), list(&["b", "c", "d", "e"]));
        assert_eq!((missing, surplus), (list(&["a", "b"]), list(&["c", "e"])));
        assert_eq!(differences(list(&["a"]), list(&["a"])), (vec![], vec![]));
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
