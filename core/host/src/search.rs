//! The places in which plugins are looked for.
//!
//! In this order: files named by the caller; `TENON_PLUGIN_PATH` (folders and files); the running
//! executable's folder, its `deps` first, since the copy beside the executable can be stale;
//! `lib/tenon/plugins` beside the executable's folder, for plugins installed with `bin/tenon`;
//! `$XDG_DATA_HOME/tenon/plugins`.
//!
//! In folders of plugins (the second and the last two) every library is considered; files that are
//! not plugins are skipped. Beside the executable and in its `deps` only files named `libtenon_*`
//! are considered, since cargo also builds fixtures and plugins of tests there. The files of a
//! folder are tried in the order of their names; of several builds that cargo made of one package,
//! the newest first. Of several builds of one plugin, the first found is loaded.

use std::{
    collections::HashSet,
    env, fmt, fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

/// The reason why a file is a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// It was named by the caller.
    Explicit,
    /// It was named, or is in a folder named, by `TENON_PLUGIN_PATH`.
    PluginPath,
    /// It is in `deps` of the running executable's folder.
    Deps,
    /// It is in the running executable's folder.
    Executable,
    /// It is in `lib/tenon/plugins` beside the running executable's folder.
    Installed,
    /// It is in the user's folder of plugins.
    Data,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Origin::Explicit => "explicit path",
            Origin::PluginPath => "TENON_PLUGIN_PATH",
            Origin::Deps => "deps of the executable's folder",
            Origin::Executable => "the executable's folder",
            Origin::Installed => "installed with the executable",
            Origin::Data => "the user's plugins",
        })
    }
}

impl Origin {
    /// Which files of a folder are considered.
    fn names(self) -> fn(&str) -> bool {
        match self {
            Origin::Explicit | Origin::PluginPath | Origin::Installed | Origin::Data => {
                is_library_name
            }
            Origin::Deps | Origin::Executable => is_plugin_name,
        }
    }
}

/// A file that may be a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The file.
    pub path: PathBuf,
    /// The reason why it is a candidate.
    pub origin: Origin,
    /// Whether the file itself was named: then it is an error if it is not a plugin.
    pub named: bool,
    /// Whether it is to run in a separate process.
    pub isolated: bool,
}

/// The result of a search.
#[derive(Debug, Default)]
pub struct Found {
    /// The files to try, in order, each once.
    pub candidates: Vec<Candidate>,
    /// Folders that exist and cannot be read.
    pub unreadable: Vec<(Candidate, io::Error)>,
    /// Every place of the search, with what was found there.
    pub looked: Vec<Looked>,
}

/// A place that was searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looked {
    /// The reason why it was searched.
    pub origin: Origin,
    /// The folder or file.
    pub path: PathBuf,
    /// Number of files there that may be plugins; `None` if the place does not exist or cannot be
    /// read.
    pub files: Option<usize>,
}

impl fmt::Display for Looked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): ", self.path.display(), self.origin)?;
        match self.files {
            None => f.write_str("not there"),
            Some(0) => f.write_str("no library"),
            Some(1) => f.write_str("1 library"),
            Some(files) => write!(f, "{files} libraries"),
        }
    }
}

/// A text that lists where plugins were looked for.
pub fn looked_at(places: &[Looked]) -> String {
    match places {
        [] => "plugins were not looked for".to_owned(),
        places => {
            let lines: Vec<String> = places.iter().map(|place| format!("\n  {place}")).collect();
            format!("plugins were looked for in{}", lines.concat())
        }
    }
}

/// The places to search, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchPath {
    /// Files that are loaded first, each into a separate process.
    pub isolated: Vec<PathBuf>,
    /// Files that are loaded next.
    pub files: Vec<PathBuf>,
    /// Files and folders to search, with their origins.
    pub places: Vec<(Origin, PathBuf)>,
}

/// The environment from which [`SearchPath`] is made: the process's, or a test's.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// `TENON_PLUGIN_PATH`.
    pub plugin_path: Option<std::ffi::OsString>,
    /// The running executable.
    pub executable: Option<PathBuf>,
    /// `XDG_DATA_HOME`.
    pub data_home: Option<PathBuf>,
    /// `HOME`.
    pub home: Option<PathBuf>,
}

impl Surroundings {
    /// The environment of this process.
    pub fn of_process() -> Surroundings {
        Surroundings {
            plugin_path: env::var_os("TENON_PLUGIN_PATH"),
            // If the executable was started through a link, its plugins are beside the target.
            executable: env::current_exe().ok().map(|file| fs::canonicalize(&file).unwrap_or(file)),
            data_home: env::var_os("XDG_DATA_HOME").map(PathBuf::from),
            home: env::var_os("HOME").map(PathBuf::from),
        }
    }

    /// The folder of the user's plugins, which `tenon install` fills; `None` without a home
    /// directory. A relative `XDG_DATA_HOME` is ignored, as its specification says.
    pub fn user_plugins(&self) -> Option<PathBuf> {
        let base = match &self.data_home {
            Some(path) if path.is_absolute() => path.clone(),
            _ => self.home.as_ref().filter(|path| path.is_absolute())?.join(".local/share"),
        };
        Some(base.join("tenon/plugins"))
    }
}

impl SearchPath {
    /// Only these files.
    pub fn explicit(files: impl IntoIterator<Item = PathBuf>) -> SearchPath {
        SearchPath { files: files.into_iter().collect(), ..SearchPath::default() }
    }

    /// Returns a path of `files`, followed by the places of this process's environment.
    pub fn of_process(files: impl IntoIterator<Item = PathBuf>) -> SearchPath {
        SearchPath::new(files, &Surroundings::of_process())
    }

    /// Returns a path of `files`, followed by the places of `surroundings`.
    pub fn new(
        files: impl IntoIterator<Item = PathBuf>,
        surroundings: &Surroundings,
    ) -> SearchPath {
        let mut places = Vec::new();
        if let Some(list) = &surroundings.plugin_path {
            let named = env::split_paths(list).filter(|path| !path.as_os_str().is_empty());
            places.extend(named.map(|path| (Origin::PluginPath, path)));
        }
        if let Some(folder) = surroundings.executable.as_deref().and_then(Path::parent) {
            places.push((Origin::Deps, folder.join("deps")));
            places.push((Origin::Executable, folder.to_owned()));
            let above = folder.parent().unwrap_or(folder);
            places.push((Origin::Installed, above.join("lib/tenon/plugins")));
        }
        places.extend(surroundings.user_plugins().map(|folder| (Origin::Data, folder)));
        SearchPath { files: files.into_iter().collect(), places, ..SearchPath::default() }
    }

    /// Puts `files` before the path, each to be loaded in a separate process.
    pub fn isolating(self, files: impl IntoIterator<Item = PathBuf>) -> SearchPath {
        SearchPath { isolated: files.into_iter().collect(), ..self }
    }

    /// The files to try, as [`SearchPath::look`] finds them.
    pub fn candidates(&self) -> Vec<Candidate> {
        self.look().candidates
    }

    /// Performs the search. Folders that do not exist are skipped; a named file that does not exist
    /// is a candidate, so that loading reports it.
    pub fn look(&self) -> Found {
        let named = |origin, path: &PathBuf| Candidate {
            path: path.clone(),
            origin,
            named: true,
            isolated: false,
        };
        let apart = self.isolated.iter();
        let apart = apart.map(|path| Candidate { isolated: true, ..named(Origin::Explicit, path) });
        let mut all: Vec<Candidate> =
            apart.chain(self.files.iter().map(|path| named(Origin::Explicit, path))).collect();
        let (mut unreadable, mut looked) = (Vec::new(), Vec::new());
        for (origin, place) in &self.places {
            let mut files = None;
            if place.is_dir() {
                match files_in(place, origin.names()) {
                    Ok(found) => {
                        files = Some(found.len());
                        all.extend(
                            found
                                .iter()
                                .map(|path| Candidate { named: false, ..named(*origin, path) }),
                        );
                    }
                    Err(error) => unreadable.push((named(*origin, place), error)),
                }
            } else if *origin == Origin::PluginPath {
                files = place.exists().then_some(1);
                all.push(named(*origin, place));
            }
            looked.push(Looked { origin: *origin, path: place.clone(), files });
        }
        let mut seen = HashSet::new();
        all.retain(|candidate| seen.insert(candidate.path.clone()));
        Found { candidates: all, unreadable, looked }
    }
}

/// Whether a file with this name is a library.
fn is_library_name(name: &str) -> bool {
    name.strip_suffix(env::consts::DLL_SUFFIX).is_some_and(|stem| !stem.is_empty())
}

/// Whether search considers a file with this name beside the executable.
pub fn is_plugin_name(name: &str) -> bool {
    let stem = name.strip_prefix("libtenon_").or_else(|| {
        // Windows gives libraries no prefix.
        if cfg!(windows) { name.strip_prefix("tenon_") } else { None }
    });
    stem.and_then(|stem| stem.strip_suffix(env::consts::DLL_SUFFIX)).is_some_and(|s| !s.is_empty())
}

/// The files of a folder that may be plugins: by name without cargo's hash, then newest first.
fn files_in(folder: &Path, may_be: fn(&str) -> bool) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?;
    let mut files: Vec<(String, std::cmp::Reverse<SystemTime>, PathBuf)> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name().into_string().ok().filter(|name| may_be(name))?;
            let meta = fs::metadata(entry.path()).ok().filter(|meta| meta.is_file())?;
            let modified = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            Some((without_hash(&name).to_owned(), std::cmp::Reverse(modified), entry.path()))
        })
        .collect();
    files.sort();
    Ok(files.into_iter().map(|(_, _, path)| path).collect())
}

/// `libtenon_cpu` for `libtenon_cpu-0123456789abcdef.so`: cargo appends a hash to the name of a
/// package outside the workspace.
fn without_hash(name: &str) -> &str {
    let stem = name.strip_suffix(env::consts::DLL_SUFFIX).unwrap_or(name);
    match stem.rsplit_once('-') {
        Some((plain, hash)) if hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()) => {
            plain
        }
        _ => stem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs::File, time::Duration};

    fn touch(path: &Path, age: u64) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let file = File::create(path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
    }

    fn library(name: &str) -> String {
        format!("{name}{}", env::consts::DLL_SUFFIX)
    }

    #[test]
    fn the_order_is_files_plugin_path_deps_executable_installed_data() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        let cpu = library("libtenon_cpu");
        let folders =
            ["path", "bin/deps", "bin", "lib/tenon/plugins", "home/.local/share/tenon/plugins"];
        for folder in folders {
            touch(&at(folder).join(&cpu), 0);
        }
        let single = at("single/odd-name");
        let list = env::join_paths([at("path"), single.clone(), at("missing-folder")]).unwrap();
        let surroundings = Surroundings {
            plugin_path: Some(list),
            executable: Some(at("bin/tenon")),
            data_home: None,
            home: Some(at("home")),
        };
        let search = SearchPath::new([PathBuf::from("given")], &surroundings);
        let found: Vec<(Origin, PathBuf, bool)> =
            search.candidates().into_iter().map(|c| (c.origin, c.path, c.named)).collect();
        let expected = [
            (Origin::Explicit, PathBuf::from("given"), true),
            (Origin::PluginPath, at("path").join(&cpu), false),
            (Origin::PluginPath, single, true),
            (Origin::PluginPath, at("missing-folder"), true),
            (Origin::Deps, at("bin/deps").join(&cpu), false),
            (Origin::Executable, at("bin").join(&cpu), false),
            (Origin::Installed, at("lib/tenon/plugins").join(&cpu), false),
            (Origin::Data, at("home/.local/share/tenon/plugins").join(&cpu), false),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn only_names_of_plugins_are_looked_at() {
        for name in ["libtenon_cpu", "libtenon_cpu-0123456789abcdef", "libtenon_my_ops"] {
            assert!(is_plugin_name(&library(name)), "{name}");
        }
        for name in ["libzoo_rust", "libfixture_abi", "libtenon_", "tenon", "xlibtenon_cpu"] {
            assert!(!is_plugin_name(&library(name)), "{name}");
        }
        assert!(!is_plugin_name("libtenon_cpu.rlib") && !is_plugin_name("libtenon_cpu.so.1"));
    }

    #[test]
    fn within_a_folder_the_newest_build_comes_first() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(library(name));
        let (plain, old) = (at("libtenon_cpu"), at("libtenon_cpu-0123456789abcdef"));
        let (new, other) = (at("libtenon_cpu-fedcba9876543210"), at("libtenon_accel"));
        touch(&plain, 50);
        touch(&old, 90);
        touch(&new, 10);
        touch(&other, 99);
        fs::create_dir(at("libtenon_folder")).unwrap();
        assert_eq!(files_in(root.path(), is_plugin_name).unwrap(), [other, new, plain, old]);
    }

    #[test]
    fn in_folders_of_plugins_every_library_is_looked_at_by_name() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        let names = ["path/libmy_op", "path/b", "path/libtenon_x", "bin/libmy_op", "data/libmine"];
        names.iter().for_each(|name| touch(&at(&library(name)), 0));
        for name in ["path/README.md", "path/libmy_op.so.1", "path/.so"] {
            touch(&at(name), 0);
        }
        let places = vec![
            (Origin::PluginPath, at("path")),
            (Origin::Executable, at("bin")),
            (Origin::Data, at("data")),
        ];
        let search = SearchPath { places, ..SearchPath::default() };
        let found: Vec<PathBuf> = search.candidates().into_iter().map(|c| c.path).collect();
        let expected = ["path/b", "path/libmy_op", "path/libtenon_x", "data/libmine"];
        assert_eq!(found, expected.map(|name| at(&library(name))));
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_cannot_be_read_is_told() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("closed");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o000)).unwrap();
        let places = vec![(Origin::PluginPath, folder.clone())];
        let found = SearchPath { places, ..SearchPath::default() }.look();
        assert_eq!(found.candidates, []);
        // Root can read the folder anyway.
        if let [(candidate, error)] = &found.unreadable[..] {
            assert_eq!((&candidate.path, candidate.origin), (&folder, Origin::PluginPath));
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        } else {
            assert!(fs::read_dir(&folder).is_ok(), "{found:?}");
        }
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    }

    #[test]
    fn a_file_named_twice_is_tried_once() {
        let search = SearchPath::explicit(["a".into(), "b".into(), "a".into()]);
        let paths: Vec<PathBuf> = search.candidates().into_iter().map(|c| c.path).collect();
        assert_eq!(paths, [PathBuf::from("a"), PathBuf::from("b")]);
    }

    #[test]
    fn a_relative_data_home_is_passed_over() {
        let mut surroundings =
            Surroundings { data_home: Some("data".into()), ..Surroundings::default() };
        assert_eq!(surroundings.user_plugins(), None);
        surroundings.data_home = Some("/data".into());
        assert_eq!(surroundings.user_plugins(), Some("/data/tenon/plugins".into()));
    }
}
