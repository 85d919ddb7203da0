//! Trust: only plugin files on a list are loaded, by whatever way, and a list that is of no use lets nothing in.

#![cfg(unix)]

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};
use tempfile::TempDir;
use tenon_framework::Code;
use tenon_host::{LoadError, Plugins, Settings, Step, loader::PluginFile};
use tenon_tests::zoo::plugin;

/// A folder of one's own, with a plugin in it.
struct Server {
    folder: TempDir,
}

impl Server {
    fn new() -> Server {
        let folder = tempfile::tempdir().unwrap();
        let server = Server { folder };
        server.install("zoo_second");
        server
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn plugin(&self) -> PathBuf {
        self.at("libzoo.so")
    }

    fn install(&self, build: &str) {
        fs::copy(plugin(build), self.at("new")).unwrap();
        chmod(&self.at("new"), 0o644);
        fs::rename(self.at("new"), self.plugin()).unwrap();
    }

    /// Writes the trust file.
    fn list(&self, text: &str) {
        fs::write(self.at("trust.toml"), text).unwrap();
        chmod(&self.at("trust.toml"), 0o644);
    }

    fn trusting(&self, digests: &[&str]) {
        let entry = |digest: &&str| format!("[[plugin]]\nsha256 = '{digest}'\n");
        self.list(&format!("version = 1\n{}", digests.iter().map(entry).collect::<String>()));
    }

    fn plugins(&self) -> Plugins {
        with(&[("host.trust_file", self.at("trust.toml").to_str().unwrap())])
    }

    fn refused(&self, plugins: &Plugins) -> LoadError {
        let error = plugins.load([self.plugin()]).into_result().unwrap_err();
        assert_eq!((error.step(), error.code()), (Step::Trust, Code::PERMISSION_DENIED), "{error}");
        assert_eq!(plugins.list().iter().filter(|info| info.path.is_some()).count(), 0);
        error
    }
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn with(knobs: &[(&str, &str)]) -> Plugins {
    let set = knobs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Plugins::with_settings(Settings { set, ..Settings::default() }).unwrap()
}

/// Any other digest.
const OTHER: &str = "0000000000000000000000000000000000000000000000000000000000000000";

fn digest(build: &str) -> String {
    digest_at(&plugin(build))
}

/// Nothing of the file is opened for it.
fn digest_at(file: &Path) -> String {
    PluginFile::find(file).unwrap().digest().unwrap()
}

#[test]
fn a_plugin_that_is_not_on_the_list_is_refused_with_the_command_that_adds_it() {
    let server = Server::new();
    server.trusting(&[OTHER]);
    let error = server.refused(&server.plugins()).to_string();
    let real = server.plugin().canonicalize().unwrap();
    let list = server.at("trust.toml");
    let command = format!("tenon trust add {} --file {}", real.display(), list.display());
    assert!(error.contains(&digest("zoo_second")) && error.contains(&command), "{error}");
    assert!(error.contains("is not among the 1 allowed ones"), "{error}");
    server.trusting(&[]);
    assert!(server.refused(&server.plugins()).to_string().contains("the 0 allowed ones"));
}

/// The list is read anew each time, and joins what the other knob says.
#[test]
fn an_edit_of_the_list_counts_from_the_next_load_on() {
    let server = Server::new();
    server.trusting(&[OTHER]);
    let plugins = server.plugins();
    server.refused(&plugins);
    server.trusting(&[OTHER, &digest("zoo_second").to_ascii_uppercase()]);
    plugins.load([server.plugin()]).into_result().unwrap();
    server.trusting(&[]);
    assert_eq!(plugins.list().iter().filter(|info| info.path.is_some()).count(), 1, "it stays");
    let list = server.at("trust.toml");
    let both = with(&[
        ("host.trust_file", list.to_str().unwrap()),
        ("host.allowed_digests", &digest("zoo_second")),
    ]);
    both.load([server.plugin()]).into_result().unwrap();
}

#[test]
fn a_changed_file_is_refused_also_as_a_replacement_and_when_it_is_inspected() {
    let server = Server::new();
    server.trusting(&[&digest("zoo_second")]);
    let plugins = server.plugins();
    plugins.load([server.plugin()]).into_result().unwrap();
    server.install("zoo_second_next");
    let error = plugins.replace(server.plugin()).unwrap_err();
    assert!(
        matches!(&error, LoadError::Digest { digest: found, .. } if *found == digest("zoo_second_next"))
    );
    let inspected = plugins.inspect(&server.plugin()).unwrap();
    assert!(matches!(inspected.refused, Some(LoadError::Digest { .. })), "{inspected:?}");
    let version = plugins.list().into_iter().find(|info| info.path.is_some()).unwrap().version;
    assert_eq!(version, "0.1.0", "the old build stays");
    server.refused(&server.plugins());
    server.trusting(&[&digest("zoo_second"), &digest("zoo_second_next")]);
    assert_eq!(plugins.replace(server.plugin()).unwrap().0.version, "0.2.0");
}

/// The library that is open may have been changed after it was digested: only one that was opened from a
/// private copy is what the list says.
#[test]
fn a_library_that_was_opened_without_a_list_is_opened_again_under_one() {
    let server = Server::new();
    // A file of which only a copy was opened does not count as opened, also by its number.
    server.trusting(&[&digest("zoo_second")]);
    server.plugins().load([server.plugin()]).into_result().unwrap();
    // No other test opens this one: libraries are those of the process.
    fs::write(server.plugin(), fs::read(plugin("zoo_many")).unwrap()).unwrap();
    let listed = digest_at(&server.plugin());
    server.trusting(&[&listed]);
    let opened = |plugins: &Plugins| {
        let id = plugins.load([server.plugin()]).into_result().unwrap()[0].id;
        std::ptr::from_ref(plugins.library(id).unwrap())
    };
    let (first, again) = (with(&[]), with(&[]));
    let untrusted = opened(&first);
    assert_eq!(opened(&again), untrusted, "opened once, as long as nobody asks for more");
    let (trusting, as_well) = (server.plugins(), server.plugins());
    let trusted = opened(&trusting);
    assert_ne!(trusted, untrusted);
    assert_eq!(opened(&as_well), trusted, "a private copy is what its digest says");
}

#[test]
fn a_list_that_is_of_no_use_lets_nothing_in() {
    let server = Server::new();
    let list = server.at("trust.toml");
    let says = |parts: &[&str]| {
        let error = server.refused(&server.plugins()).to_string();
        let place = format!("host.trust_file is {}, and nothing is loaded", list.display());
        assert!(error.contains(&place), "{error}");
        parts.iter().for_each(|part| assert!(error.contains(part), "{part}: {error}"));
    };
    says(&["it cannot be read: No such file"]);
    server.list("version = 1\n[[plugin]]\nsha256 = 'abc'\n");
    says(&["entry 1: sha256 = 'abc', expected 64 hexadecimal digits"]);
    server.list(&digest("zoo_second"));
    says(&["line 1: "]);
    server.list("version = 9\n");
    says(&["version 9, expected 1"]);
    server.trusting(&[&digest("zoo_second")]);
    server.plugins().load([server.plugin()]).into_result().unwrap();
    chmod(&list, 0o664);
    says(&["has mode 664, expected one that group and others cannot write"]);
    chmod(&list, 0o644);
    chmod(server.folder.path(), 0o777);
    says(&["has mode 777"]);
}

#[test]
fn a_relative_list_is_refused() {
    let server = Server::new();
    let error = server.refused(&with(&[("host.trust_file", "trust.toml")]));
    assert!(error.to_string().ends_with("expected an absolute path"), "{error}");
}

#[test]
fn a_file_or_a_folder_that_others_can_write_is_refused_when_asked() {
    let server = Server::new();
    let asked = || with(&[("host.refuse_writable", "true")]);
    asked().load([server.plugin()]).into_result().unwrap();
    chmod(&server.plugin(), 0o664);
    let error = server.refused(&asked());
    assert!(error.to_string().contains("has mode 664"), "{error}");
    with(&[]).load([server.plugin()]).into_result().expect("it is off where nobody asks");
    chmod(&server.plugin(), 0o644);
    chmod(server.folder.path(), 0o775);
    let error = server.refused(&asked());
    assert!(matches!(error, LoadError::Writable { .. }), "{error}");
}

/// Was taken for no list at all, so that everything was let in.
#[test]
fn a_list_of_digests_that_is_set_to_nothing_lets_nothing_in() {
    let server = Server::new();
    for list in ["", " ", " , ", ",,"] {
        let error = server.refused(&with(&[("host.allowed_digests", list)]));
        assert!(matches!(error, LoadError::Digest { allowed: 0, .. }), "{list:?}: {error}");
    }
}

/// Who can write the folder of the link can have it lead to another file, or to an older list.
#[test]
fn a_link_in_a_folder_that_others_can_write_is_no_way_to_a_plugin_or_a_list() {
    let server = Server::new();
    let open = server.at("open");
    fs::create_dir(&open).unwrap();
    chmod(&open, 0o755);
    std::os::unix::fs::symlink(server.plugin(), open.join("libzoo.so")).unwrap();
    std::os::unix::fs::symlink(server.at("trust.toml"), open.join("trust.toml")).unwrap();
    server.trusting(&[&digest("zoo_second")]);
    let asked = || with(&[("host.refuse_writable", "true")]);
    let listed = || with(&[("host.trust_file", open.join("trust.toml").to_str().unwrap())]);
    asked().load([open.join("libzoo.so")]).into_result().unwrap();
    listed().load([server.plugin()]).into_result().unwrap();
    chmod(&open, 0o775);
    let error = asked().load([open.join("libzoo.so")]).into_result().unwrap_err().to_string();
    assert!(error.contains("open has mode 775"), "{error}");
    let error = server.refused(&listed()).to_string();
    assert!(error.contains("nothing is loaded") && error.contains("open has mode 775"), "{error}");
}
