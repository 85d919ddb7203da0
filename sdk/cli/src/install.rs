//! `tenon install` and `tenon uninstall`: the plugins for every `tenon` of this user.

use crate::{
    args::{Global, InstallArgs, UninstallArgs},
    error::CliError,
    output::{print, print_json},
    start::start_whole,
};
use serde_json::json;
use std::{
    fs, io,
    path::{Path, PathBuf},
};
use tenon_runtime::{
    Runtime,
    host::{
        Inspection, cache, loader,
        search::{Origin, SearchPath, Surroundings},
    },
};

/// Copies plugins to the user's folder, after a check that all of them load. Earlier builds of them are replaced.
///
/// # Errors
/// One of them does not load, and none is copied; the folder cannot be written.
pub fn install(global: &Global, args: &InstallArgs) -> Result<(), CliError> {
    let (runtime, _) = start_whole(global, None)?;
    let folder = Surroundings::of_process().user_plugins().ok_or(CliError::NoDataHome)?;
    let checked = args.files.iter().map(|file| checked(&runtime, file, &folder));
    let checked = checked.collect::<Result<Vec<Checked>, CliError>>()?;
    for Checked { inspection, target } in &checked {
        copy(&inspection.path, target)?;
    }
    if global.json {
        let installed = checked.iter().map(|Checked { inspection, target }| {
            let (name, file) = (&inspection.manifest.plugin.name, target.display().to_string());
            json!({ "plugin": name, "file": file, "digest": inspection.digest })
        });
        return print_json(&json!({ "installed": installed.collect::<Vec<_>>() }));
    }
    let lines = checked.iter().map(|Checked { inspection, target }| {
        let plugin = &inspection.manifest.plugin;
        format!("{} {}: {}\n", plugin.name, plugin.version, target.display())
    });
    print(&lines.collect::<String>())
}

/// A plugin that loads, and its place in the user's folder.
struct Checked {
    inspection: Inspection,
    target: PathBuf,
}

fn checked(runtime: &Runtime, file: &Path, folder: &Path) -> Result<Checked, CliError> {
    let mut inspection = runtime.plugins().inspect(file)?;
    if let Some(error) = inspection.refused.take() {
        return Err(error.into());
    }
    let name = &inspection.manifest.plugin.name;
    let target = folder.join(file_name(name).ok_or_else(|| CliError::Install {
        file: file.to_owned(),
        reason: format!("a plugin's name is of letters, digits, '-' and '_', found '{name}'"),
    })?);
    Ok(Checked { inspection, target })
}

/// A file in the user's folder.
struct Installed {
    file: PathBuf,
    /// By its manifest; `None` where it cannot be read, or is not a plugin any more.
    plugin: Option<(String, String)>,
}

impl Installed {
    fn has_name(&self, name: &str) -> bool {
        let plugin = self.plugin.as_ref().is_some_and(|(plugin, _)| plugin == name);
        plugin || self.file.file_name().is_some_and(|file| file == name)
    }

    fn title(&self) -> String {
        match &self.plugin {
            Some((name, version)) => format!("{name} {version}"),
            None => self.file.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        }
    }
}

/// Removes a plugin from the user's folder, every build of it that is there. Nothing of it runs.
///
/// # Errors
/// None of that name is there; the folder cannot be written.
pub fn uninstall(global: &Global, args: &UninstallArgs) -> Result<(), CliError> {
    let folder = Surroundings::of_process().user_plugins().ok_or(CliError::NoDataHome)?;
    let places = vec![(Origin::Data, folder.clone())];
    let found = SearchPath { places, ..SearchPath::default() }.candidates();
    let files = found.into_iter().map(|candidate| {
        let manifest = loader::examine(&candidate.path).ok().map(|(_, image)| image.manifest);
        let plugin = manifest.map(|manifest| (manifest.plugin.name, manifest.plugin.version));
        Installed { file: candidate.path, plugin }
    });
    let (named, others): (Vec<_>, Vec<_>) = files.partition(|file| file.has_name(&args.name));
    if named.is_empty() {
        let there = others.iter().map(Installed::title).collect();
        return Err(CliError::NotInstalled { folder, name: args.name.clone(), there });
    }
    for Installed { file, .. } in &named {
        let failed = |source| CliError::File { file: file.clone(), done: "removed", source };
        fs::remove_file(file).map_err(failed)?;
    }
    if global.json {
        let files = named.iter().map(|Installed { file, .. }| file.display().to_string());
        return print_json(&json!({ "removed": files.collect::<Vec<_>>() }));
    }
    let lines = named.iter().map(|it| format!("removed: {}: {}\n", it.title(), it.file.display()));
    print(&lines.collect::<String>())
}

/// The name under which search finds a plugin; `None` when its name is not a file name.
fn file_name(plugin: &str) -> Option<String> {
    let name = plugin.to_ascii_lowercase().replace('-', "_");
    let stem = name.strip_prefix("tenon_").unwrap_or(&name);
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let fine = !stem.is_empty() && stem.bytes().all(word);
    fine.then(|| format!("libtenon_{stem}{}", std::env::consts::DLL_SUFFIX))
}

/// A process that starts meanwhile sees the old file or the new one, and one that has the old one mapped keeps it.
/// A link in the target's place is replaced.
fn copy(file: &Path, target: &Path) -> Result<(), CliError> {
    let bytes = fs::read(file).map_err(|source| CliError::File {
        file: file.to_owned(),
        done: "read",
        source,
    })?;
    cache::write(target, &bytes).and_then(|()| protect(target)).map_err(|source| CliError::File {
        file: target.to_owned(),
        done: "written",
        source,
    })
}

/// Others may read the file and not write it: the loader can be told to refuse files that others can write.
#[cfg(unix)]
fn protect(file: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(file, fs::Permissions::from_mode(0o644))
}

/// Permissions of this kind exist on Unix only.
#[cfg(not(unix))]
fn protect(_file: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installed_file_has_a_name_that_search_looks_at() {
        let suffix = std::env::consts::DLL_SUFFIX;
        assert_eq!(file_name("tenon-cpu"), Some(format!("libtenon_cpu{suffix}")));
        assert_eq!(file_name("My-Ops"), Some(format!("libtenon_my_ops{suffix}")));
        assert_eq!(file_name("../evil"), None);
        assert_eq!(file_name("tenon-"), None);
    }

    #[cfg(unix)]
    #[test]
    fn the_folder_of_plugins_is_its_users_alone() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let (file, folder) = (root.path().join("file"), root.path().join("tenon/plugins"));
        fs::write(&file, "a library").unwrap();
        copy(&file, &folder.join("libtenon_x.so")).unwrap();
        for folder in [folder.as_path(), folder.parent().unwrap()] {
            assert_eq!(fs::metadata(folder).unwrap().permissions().mode() & 0o777, 0o700);
        }
        assert_eq!(fs::read(folder.join("libtenon_x.so")).unwrap(), b"a library");
    }
}
