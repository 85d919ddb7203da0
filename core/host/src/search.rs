//! Where plugins are looked for.
//!
//! In this order: files named by the caller; `TENON_PLUGIN_PATH` (folders and files); the running
//! executable's folder, its `deps` first, since the copy beside the executable can be stale;
//! `$XDG_DATA_HOME/tenon/plugins`. In folders only files named `libtenon_*` (with the platform's
//! extension) are looked at, so that fixtures and test plugins are loaded by explicit path only. Of several
//! builds of one plugin, the first found is loaded; within a folder, the newest.

use std::{
    collections::HashSet,
    env, fmt, fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

/// What led to a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// Named by the caller.
    Explicit,
    /// Named, or in a folder named, by `TENON_PLUGIN_PATH`.
    PluginPath,
    /// In `deps` of the running executable's folder.
    Deps,
    /// In the running executable's folder.
    Executable,
    /// In the user's plugins.
    Data,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Origin::Explicit => "explicit path",
            Origin::PluginPath => "TENON_PLUGIN_PATH",
            Origin::Deps => "deps of the executable's folder",
            Origin::Executable => "the executable's folder",
            Origin::Data => "the user's plugins",
        })
    }
}

/// A file that may be a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The file.
    pub path: PathBuf,
    /// What led to it.
    pub origin: Origin,
    /// Whether the file itself was named: then it is an error when it is no plugin.
    pub named: bool,
    /// Whether it is to run in a process of its own.
    pub isolated: bool,
}

/// The places to look in, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchPath {
    /// Files that are loaded first, each into a process of its own.
    pub isolated: Vec<PathBuf>,
    /// Files that are loaded next.
    pub files: Vec<PathBuf>,
    /// Files and folders, with what led to them.
    pub places: Vec<(Origin, PathBuf)>,
}

/// What [`SearchPath`] is made from: the process's surroundings, or a test's.
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
    /// This process's.
    pub fn of_process() -> Surroundings {
        Surroundings {
            plugin_path: env::var_os("TENON_PLUGIN_PATH"),
            executable: env::current_exe().ok(),
            data_home: env::var_os("XDG_DATA_HOME").map(PathBuf::from),
            home: env::var_os("HOME").map(PathBuf::from),
        }
    }

    /// The folder of the user's plugins, which `tenon install` fills; `None` without a home. A relative
    /// `XDG_DATA_HOME` is passed over, as its specification says.
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

    /// These files, then what this process's surroundings say.
    pub fn of_process(files: impl IntoIterator<Item = PathBuf>) -> SearchPath {
        SearchPath::new(files, &Surroundings::of_process())
    }

    /// These files, then what `surroundings` say.
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
        }
        places.extend(surroundings.user_plugins().map(|folder| (Origin::Data, folder)));
        SearchPath { files: files.into_iter().collect(), places, ..SearchPath::default() }
    }

    /// The same, after these files, each in a process of its own.
    pub fn isolating(self, files: impl IntoIterator<Item = PathBuf>) -> SearchPath {
        SearchPath { isolated: files.into_iter().collect(), ..self }
    }

    /// The files to try, in order, each once. Folders that are not there are passed over; a file that is
    /// named and not there is a candidate, so that loading reports it.
    pub fn candidates(&self) -> Vec<Candidate> {
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
        for (origin, place) in &self.places {
            if place.is_dir() {
                let found = plugin_files(place).into_iter();
                let origin = *origin;
                all.extend(found.map(|path| Candidate {
                    path,
                    origin,
                    named: false,
                    isolated: false,
                }));
            } else if *origin == Origin::PluginPath {
                all.push(named(*origin, place));
            }
        }
        let mut seen = HashSet::new();
        all.retain(|candidate| seen.insert(candidate.path.clone()));
        all
    }
}

/// Whether automatic search looks at a file of this name.
pub fn is_plugin_name(name: &str) -> bool {
    let stem = name.strip_prefix("libtenon_").or_else(|| {
        // Windows gives libraries no prefix.
        if cfg!(windows) { name.strip_prefix("tenon_") } else { None }
    });
    stem.and_then(|stem| stem.strip_suffix(env::consts::DLL_SUFFIX)).is_some_and(|s| !s.is_empty())
}

/// The files of a folder that may be plugins: by name without cargo's hash, the newest first.
fn plugin_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<(String, std::cmp::Reverse<SystemTime>, PathBuf)> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name().into_string().ok().filter(|name| is_plugin_name(name))?;
            let meta = fs::metadata(entry.path()).ok().filter(|meta| meta.is_file())?;
            let modified = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            Some((without_hash(&name).to_owned(), std::cmp::Reverse(modified), entry.path()))
        })
        .collect();
    files.sort();
    files.into_iter().map(|(_, _, path)| path).collect()
}

/// `libtenon_cpu` of `libtenon_cpu-0123456789abcdef.so`: cargo puts a hash behind the name of a package
/// that does not lie in the workspace.
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
    fn the_order_is_files_plugin_path_deps_executable_data() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        let cpu = library("libtenon_cpu");
        for folder in ["path", "bin/deps", "bin", "home/.local/share/tenon/plugins"] {
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
        assert_eq!(plugin_files(root.path()), [other, new, plain, old]);
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
