//! `tenon trust`: the list of plugin files that may be loaded.
//!
//! No plugin is loaded, and nothing of one runs: files are digested, and their manifests read.

mod args;
mod error;
mod list;

use crate::{
    args::Global,
    error::CliError,
    output::{complain, print, print_json},
    table::Table,
};
pub use args::{ABOUT, EXAMPLE, TrustArgs};
use args::{AddArgs, RemoveArgs, TrustCommand};
pub use error::ListError;
use list::List;
use serde_json::{Value, json};
use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf, absolute},
};
use tenon_benchkit::machine::today;
use tenon_runtime::{
    RuntimeError,
    host::{
        LoadError, Plugins, Settings,
        digest::digest_of,
        loader::{self, PluginFile},
        permissions::exposed,
        search::SearchPath,
        trust::{self, TrustEntry, is_digest},
    },
};

/// Shows or changes the list.
///
/// # Errors
/// The list cannot be read or written; what is to be added is not a plugin, what is to be removed not there.
pub fn trust(global: &Global, args: &TrustArgs) -> Result<(), CliError> {
    let named = named_by_knob(global)?;
    let file = match args.file.clone().or_else(|| named.clone()).or_else(trust::usual_file) {
        Some(file) => absolute(&file).unwrap_or(file),
        None => return Err(ListError::NoHome.into()),
    };
    let in_force = named.as_ref() == Some(&file);
    match &args.command {
        TrustCommand::Add(args) => add(global, args, &file)?,
        TrustCommand::List => list(global, &file, in_force)?,
        TrustCommand::Remove(args) => remove(global, args, &file)?,
    }
    if let Ok(meta) = fs::metadata(&file)
        && let Ok(Some(exposed)) = exposed(&file, &meta)
    {
        complain(&format!("warning: no runtime takes this list: {exposed}"));
    }
    Ok(())
}

/// The list that is in force for this command line.
fn named_by_knob(global: &Global) -> Result<Option<PathBuf>, CliError> {
    let mut settings = Settings::of_process();
    settings.set.extend(global.settings()?);
    let plugins = Plugins::with_settings(settings).map_err(RuntimeError::from)?;
    Ok(trust::named_by(&plugins.knobs()))
}

/// A plugin's file, from its content and its manifest.
fn entry_of(path: &Path) -> Result<TrustEntry, LoadError> {
    let (file, image) = loader::examine(path)?;
    let plugin = image.manifest.plugin;
    Ok(TrustEntry {
        sha256: fresh_digest(&file)?,
        name: plugin.name,
        plugin_version: plugin.version,
        path: file.path.display().to_string(),
        ..TrustEntry::default()
    })
}

/// Never a remembered one: trust depends on it.
fn fresh_digest(file: &PluginFile) -> Result<String, LoadError> {
    digest_of(&file.file).map_err(|error| LoadError::File {
        path: file.path.clone(),
        kind: error.kind(),
        detail: error.to_string(),
        step: tenon_runtime::host::Step::Trust,
    })
}

fn digest_at(path: &Path) -> Option<String> {
    fresh_digest(&PluginFile::find(path).ok()?).ok()
}

fn add(global: &Global, args: &AddArgs, file: &Path) -> Result<(), CliError> {
    let entry = |what: &String| match is_digest(what) && !Path::new(what).exists() {
        true => Ok(TrustEntry { sha256: what.to_ascii_lowercase(), ..TrustEntry::default() }),
        false => entry_of(Path::new(what)),
    };
    let (added, comment) = (today(), args.comment.clone().unwrap_or_default());
    let mut entries: Vec<TrustEntry> = args.what.iter().map(entry).collect::<Result<_, _>>()?;
    if args.found {
        entries.extend(first_builds(global));
    }
    if entries.is_empty() {
        return Err(ListError::NothingFound.into());
    }
    let mut list = List::locked(file)?;
    let mut told = Vec::new();
    for entry in entries {
        let (added, comment) = (added.clone(), comment.clone());
        let entry = TrustEntry { added, comment, ..entry };
        let same_name = |known: &&TrustEntry| !known.name.is_empty() && known.name == entry.name;
        let others = list.entries().iter().filter(same_name).count();
        let new = list.add(entry.clone());
        told.push((entry, if new { "added" } else { "is there already" }, new && others > 0));
    }
    list.write()?;
    for (entry, _, _) in told.iter().filter(|(_, _, others)| *others) {
        let name = &entry.name;
        complain(&format!(
            "note: the list has other builds of {name} too: tenon trust remove takes off what is no longer used"
        ));
    }
    tell(global, file, told.into_iter().map(|(entry, done, _)| (entry, done)))
}

/// The plugins that search finds: of several builds of one, the first, which is the one that is loaded.
fn first_builds(global: &Global) -> Vec<TrustEntry> {
    let mut names = HashSet::new();
    let first = |entry: &TrustEntry| names.insert(entry.name.clone());
    search(global).filter(first).collect()
}

fn search(global: &Global) -> impl Iterator<Item = TrustEntry> {
    let search = SearchPath::of_process(global.plugins.iter().cloned());
    search.candidates().into_iter().filter_map(|at| entry_of(&at.path).ok())
}

fn remove(global: &Global, args: &RemoveArgs, file: &Path) -> Result<(), CliError> {
    let mut list = List::locked(file)?;
    let mut places = Vec::new();
    for what in &args.what {
        let digest = digest_at(Path::new(what));
        let fitting = list.fitting(what, digest.as_deref());
        if fitting.is_empty() {
            let (file, what) = (file.to_owned(), what.clone());
            return Err(ListError::NoEntry { file, what }.into());
        }
        if fitting.len() > 1 && !args.all {
            let named = |&at: &usize| title(&list.entries()[at]);
            let (what, fitting) = (what.clone(), fitting.iter().map(named).collect());
            return Err(ListError::Ambiguous { what, fitting }.into());
        }
        places.extend(fitting);
    }
    places.sort_unstable();
    places.dedup();
    let mut removed: Vec<TrustEntry> = places.into_iter().rev().map(|at| list.remove(at)).collect();
    removed.reverse();
    list.write()?;
    tell(global, file, removed.into_iter().map(|entry| (entry, "removed")))
}

fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}

fn title(entry: &TrustEntry) -> String {
    let TrustEntry { sha256, name, plugin_version, .. } = entry;
    format!("{} {name} {plugin_version}", short(sha256)).trim_end().to_owned()
}

fn tell(
    global: &Global,
    file: &Path,
    done: impl Iterator<Item = (TrustEntry, &'static str)>,
) -> Result<(), CliError> {
    if global.json {
        let entries: Vec<Value> = done.map(|(entry, done)| to_json(&entry, done)).collect();
        return print_json(&json!({ "file": file.display().to_string(), "entries": entries }));
    }
    let line = |(entry, done): (TrustEntry, &str)| format!("{done}: {}\n", title(&entry));
    print(&format!("{}{}\n", done.map(line).collect::<String>(), file.display()))
}

fn to_json(entry: &TrustEntry, state: &str) -> Value {
    json!({
        "sha256": entry.sha256, "name": entry.name, "plugin_version": entry.plugin_version,
        "path": entry.path, "added": entry.added, "comment": entry.comment, "state": state,
    })
}

/// What is at an entry's path now.
fn state(entry: &TrustEntry) -> &'static str {
    if entry.path.is_empty() {
        return "";
    }
    match digest_at(Path::new(&entry.path)) {
        Some(digest) if digest == entry.sha256 => "there",
        Some(_) => "changed since",
        None => "not there",
    }
}

/// A plugin that search finds, and whether it is on the list.
struct Found {
    entry: TrustEntry,
    state: &'static str,
}

fn found(global: &Global, list: &List) -> Vec<Found> {
    let state = |entry: &TrustEntry| {
        let mut entries = list.entries().iter();
        if entries.any(|known| known.sha256 == entry.sha256) {
            "on the list"
        } else if list.entries().iter().any(|known| known.name == entry.name) {
            "another build is on the list"
        } else {
            "not on the list"
        }
    };
    search(global).map(|entry| Found { state: state(&entry), entry }).collect()
}

fn list(global: &Global, file: &Path, in_force: bool) -> Result<(), CliError> {
    let list = List::read(file)?;
    let found = found(global, &list);
    let states: Vec<&str> = list.entries().iter().map(state).collect();
    if global.json {
        let entries =
            list.entries().iter().zip(&states).map(|(entry, state)| to_json(entry, state));
        let found = found.iter().map(|Found { entry, state }| {
            json!({
                "sha256": entry.sha256, "name": entry.name, "plugin_version": entry.plugin_version,
                "path": entry.path, "state": state,
            })
        });
        return print_json(&json!({
            "file": file.display().to_string(), "in_force": in_force,
            "entries": entries.collect::<Vec<_>>(), "found": found.collect::<Vec<_>>(),
        }));
    }
    let force =
        if in_force { "in force" } else { "not in force: host.trust_file does not name it" };
    let mut text = format!("{}, {force}\n", file.display());
    let mut table = Table::new(["digest", "plugin", "version", "added", "now", "path", "comment"]);
    for (entry, state) in list.entries().iter().zip(states) {
        let TrustEntry { sha256, name, plugin_version, path, added, comment } = entry.clone();
        table.row([
            short(&sha256).to_owned(),
            name,
            plugin_version,
            added,
            state.to_owned(),
            path,
            comment,
        ]);
    }
    text.push_str(&if table.is_empty() { "no entry\n".to_owned() } else { table.render(0) });
    let mut table = Table::new(["found by search", "plugin", "version", "digest", "state"]);
    for Found { entry, state } in found {
        let digest = short(&entry.sha256).to_owned();
        table.row([entry.path, entry.name, entry.plugin_version, digest, state.to_owned()]);
    }
    if !table.is_empty() {
        text.push_str(&format!("\n{}", table.render(0)));
    }
    print(&text)
}
