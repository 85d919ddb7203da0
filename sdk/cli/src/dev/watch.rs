//! What of a source changes.
//!
//! The system's notice of a change only wakes: changes are found by comparing the files, by content, with
//! the look before. So a file that is touched or written anew as it was is not a change, neither is what a build
//! writes into ignored places, and if the system gives no notices, the files are compared from time to time.
//!
//! # Invariants
//! - A change after a look is seen by the next one, also when it comes during a build.
//! - Several changes in a short time are one.

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError, channel},
    },
    time::{Duration, Instant, SystemTime},
};

/// What compilers, linkers and editors write.
const MADE: [&str; 16] = [
    "o", "so", "dylib", "dll", "a", "d", "obj", "lib", "exe", "pdb", "rlib", "rmeta", "gcda",
    "gcno", "swp", "tmp",
];
/// Folders without source.
const FOLDERS: [&str; 2] = ["target", "tenon-check"];
/// Larger files are compared by time and size.
const LARGEST_READ: u64 = 8 << 20;
/// A file changed so shortly before a look may change again within the same tick of the clock.
const TICK: Duration = Duration::from_secs(2);
/// Quiet for so long, a burst of changes is over; one that does not end is over after a second.
const QUIET: Duration = Duration::from_millis(60);
const LONGEST_BURST: Duration = Duration::from_secs(1);
/// How often it is looked whether to stop.
const STOP: Duration = Duration::from_millis(50);
/// Time between comparisons with and without notices of the system.
const SELDOM: Duration = Duration::from_secs(3);
const OFTEN: Duration = Duration::from_millis(300);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    modified: SystemTime,
    size: u64,
    content: u64,
    /// Whether time and size tell a later change.
    settled: bool,
}

/// The files of a source, as they were at one time.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    files: BTreeMap<PathBuf, Stamp>,
    folders: BTreeSet<PathBuf>,
}

/// Whether a name is not that of a source file.
fn ignored(name: &OsStr, is_folder: bool) -> bool {
    let text = name.to_string_lossy();
    if text.starts_with('.') || text.ends_with('~') {
        return true;
    }
    match is_folder {
        true => FOLDERS.contains(&&*text),
        false => Path::new(name).extension().is_some_and(|e| MADE.iter().any(|made| e == *made)),
    }
}

fn content(path: &Path, size: u64) -> u64 {
    let mut hash = DefaultHasher::new();
    if size <= LARGEST_READ {
        // A file that goes away while it is looked at is gone at the next look.
        fs::read(path).unwrap_or_default().hash(&mut hash);
    }
    hash.finish()
}

impl Tree {
    /// Looks at all files, but for the artifact. Of those that are as before, by time and size, the content is
    /// not read again.
    pub fn look(roots: &[PathBuf], artifact: Option<&Path>, before: &Tree) -> Tree {
        let mut tree = Tree::default();
        let mut open: Vec<PathBuf> = roots.to_vec();
        while let Some(folder) = open.pop() {
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            if !tree.folders.insert(folder) {
                continue;
            }
            for entry in entries.filter_map(Result::ok) {
                let path = entry.path();
                // A link to a file is followed; one to a folder could lead in a circle.
                let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
                let Ok(meta) = fs::metadata(&path) else { continue };
                let passed_over = ignored(&entry.file_name(), meta.is_dir());
                if passed_over || artifact == Some(&*path) || is_link && meta.is_dir() {
                    continue;
                }
                if meta.is_dir() {
                    open.push(path);
                } else if meta.is_file() {
                    let stamp = Stamp::of(&path, &meta, before.files.get(&path));
                    tree.files.insert(path, stamp);
                }
            }
        }
        tree
    }

    /// The files that differ from an earlier look.
    pub fn changed_since(&self, before: &Tree) -> Vec<PathBuf> {
        let differs = |path: &&PathBuf| match (self.files.get(*path), before.files.get(*path)) {
            (Some(now), Some(then)) => {
                now.content != then.content
                    || now.size != then.size
                    || now.size > LARGEST_READ && now.modified != then.modified
            }
            _ => true,
        };
        let all: BTreeSet<&PathBuf> = self.files.keys().chain(before.files.keys()).collect();
        all.into_iter().filter(differs).cloned().collect()
    }
}

impl Stamp {
    fn of(path: &Path, meta: &fs::Metadata, before: Option<&Stamp>) -> Stamp {
        let (modified, size) = (meta.modified().unwrap_or(SystemTime::UNIX_EPOCH), meta.len());
        let settled = modified.elapsed().is_ok_and(|age| age > TICK);
        let known = before
            .filter(|known| known.settled && (known.modified, known.size) == (modified, size));
        let content = known.map_or_else(|| content(path, size), |known| known.content);
        Stamp { modified, size, content, settled }
    }
}

/// Waits for changes.
pub struct Watch {
    roots: Vec<PathBuf>,
    watcher: Option<RecommendedWatcher>,
    woken: Receiver<()>,
    covered: BTreeSet<PathBuf>,
}

impl Watch {
    /// Begins to listen; without notices of the system, files are only compared.
    pub fn new(roots: Vec<PathBuf>, poll: bool) -> Watch {
        let (wake, woken) = channel();
        let tell = move |event: notify::Result<notify::Event>| {
            // Looking at files is what this program does itself.
            if !event.is_ok_and(|event| matches!(event.kind, EventKind::Access(_))) {
                // Nobody listens any more when the program ends.
                let _ = wake.send(());
            }
        };
        let watcher = if poll { None } else { notify::recommended_watcher(tell).ok() };
        Watch { roots, watcher, woken, covered: BTreeSet::new() }
    }

    /// Looks, and listens to the folders that there are now. One that cannot be listened to is looked at often.
    pub fn look(&mut self, artifact: Option<&Path>, before: &Tree) -> Tree {
        let tree = Tree::look(&self.roots, artifact, before);
        if let Some(watcher) = &mut self.watcher {
            let new: Vec<PathBuf> = tree.folders.difference(&self.covered).cloned().collect();
            let all = new.iter().all(|f| watcher.watch(f, RecursiveMode::NonRecursive).is_ok());
            self.covered.clone_from(&tree.folders);
            if !all {
                self.watcher = None;
            }
        }
        tree
    }

    /// The next look that differs from `before`, and what does; `None` when it is to stop.
    pub fn wait(
        &mut self,
        artifact: Option<&Path>,
        before: &Tree,
        stop: &AtomicBool,
    ) -> Option<(Tree, Vec<PathBuf>)> {
        loop {
            let tree = self.look(artifact, before);
            let changed = tree.changed_since(before);
            if !changed.is_empty() {
                self.settle();
                let tree = self.look(artifact, &tree);
                let changed = tree.changed_since(before);
                if !changed.is_empty() {
                    return Some((tree, changed));
                }
            }
            let interval = if self.watcher.is_some() { SELDOM } else { OFTEN };
            let until = Instant::now() + interval;
            while Instant::now() < until {
                if stop.load(Ordering::Relaxed) {
                    return None;
                }
                match self.woken.recv_timeout(STOP) {
                    Ok(()) => break,
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => std::thread::sleep(STOP),
                }
            }
        }
    }

    /// Waits until a burst of changes is over.
    fn settle(&mut self) {
        let until = Instant::now() + LONGEST_BURST;
        match self.watcher {
            Some(_) => while Instant::now() < until && self.woken.recv_timeout(QUIET).is_ok() {},
            None => std::thread::sleep(QUIET),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(paths: &[PathBuf]) -> Vec<String> {
        paths.iter().map(|p| p.file_name().unwrap().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn only_the_content_of_sources_counts() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let roots = [folder.path().to_owned()];
        let (artifact, look) =
            (at("made"), |before: &Tree| Tree::look(&roots, Some(&at("made")), before));
        fs::create_dir_all(at("target/debug")).unwrap();
        fs::create_dir(at("src")).unwrap();
        fs::write(at("src/lib.rs"), "one").unwrap();
        let first = look(&Tree::default());
        assert_eq!(names(&first.changed_since(&Tree::default())), ["lib.rs"]);
        for made in ["target/debug/x.rs", ".hidden", "lib.so", "plugin.o", "notes~"] {
            fs::write(at(made), "x").unwrap();
        }
        fs::write(&artifact, "x").unwrap();
        fs::write(at("src/lib.rs"), "one").unwrap();
        let second = look(&first);
        assert!(second.changed_since(&first).is_empty(), "{second:?}");
        fs::write(at("src/lib.rs"), "two").unwrap();
        fs::write(at("src/new.rs"), "").unwrap();
        let third = look(&second);
        assert_eq!(names(&third.changed_since(&second)), ["lib.rs", "new.rs"]);
        fs::remove_file(at("src/new.rs")).unwrap();
        assert_eq!(names(&look(&third).changed_since(&third)), ["new.rs"]);
    }

    #[test]
    fn a_change_wakes_with_and_without_the_systems_notice() {
        for poll in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("plugin.c");
            fs::write(&file, "one").unwrap();
            let mut watch = Watch::new(vec![folder.path().to_owned()], poll);
            let before = watch.look(None, &Tree::default());
            let stop = AtomicBool::new(false);
            fs::write(&file, "two").unwrap();
            let (after, changed) = watch.wait(None, &before, &stop).unwrap();
            assert_eq!(names(&changed), ["plugin.c"]);
            stop.store(true, Ordering::Relaxed);
            assert!(watch.wait(None, &after, &stop).is_none());
        }
    }
}
