//! `tenon trust`.

use crate::support::{Place, output, plugin, stderr};
use serde_json::Value;
use std::{fs, path::PathBuf, process::Output};

/// A copy of the command that finds no plugins, and one plugin of its own.
struct Server {
    place: Place,
    alone: PathBuf,
}

impl Server {
    fn new() -> Server {
        let place = Place::new();
        let alone = place.alone();
        let server = Server { place, alone };
        server.install("accel");
        server
    }

    /// Puts a plugin into the place of the one that is there, as `install` does.
    fn install(&self, name: &str) {
        fs::copy(plugin(name), self.place.path("new")).unwrap();
        own(&self.place.path("new"));
        fs::rename(self.place.path("new"), self.place.path("libmine.so")).unwrap();
    }

    fn tenon(&self, args: &[&str]) -> Output {
        let config = self.place.path("config");
        output(self.place.command(&self.alone).env("XDG_CONFIG_HOME", config).args(args))
    }

    fn text(&self, args: &[&str]) -> String {
        let done = self.tenon(args);
        assert!(done.status.success(), "{args:?}: {}", stderr(&done));
        String::from_utf8(done.stdout).unwrap()
    }

    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.text(&[args, &["--json"]].concat())).unwrap()
    }

    fn error(&self, args: &[&str]) -> String {
        let done = self.tenon(args);
        assert_eq!(done.status.code(), Some(1), "{args:?}: {}", stderr(&done));
        stderr(&done)
    }

    /// The setting that puts the usual list in force.
    fn force(&self) -> String {
        format!("host.trust_file={}", self.place.arg("config/tenon/trust.toml"))
    }
}

#[cfg(unix)]
fn own(path: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
}

#[cfg(not(unix))]
fn own(_path: &std::path::Path) {}

#[test]
fn what_is_on_the_list_is_loaded_and_nothing_else() {
    let server = Server::new();
    let force = server.force();
    let inspect = ["inspect", "libmine.so", "--set", &force];
    let refused = server.error(&inspect);
    assert!(refused.contains("nothing is loaded: it cannot be read"), "{refused}");
    let added = server.text(&["trust", "add", "libmine.so", "--comment", "reviewed"]);
    assert!(added.starts_with("added: ") && added.contains("tenon-accel"), "{added}");
    server.text(&inspect);
    assert!(server.text(&["trust", "add", "libmine.so"]).starts_with("is there already: "));

    let listed = server.json(&["trust", "list", "--set", &force]);
    assert_eq!(listed["in_force"], true);
    let [entry] = &listed["entries"].as_array().unwrap()[..] else { panic!("{listed}") };
    assert_eq!((&entry["name"], &entry["state"]), (&"tenon-accel".into(), &"there".into()));
    assert_eq!(
        (&entry["comment"], entry["sha256"].as_str().unwrap().len()),
        (&"reviewed".into(), 64)
    );
    assert!(entry["path"].as_str().unwrap().ends_with("libmine.so"), "{entry}");

    server.install("text");
    let refused = server.error(&inspect);
    assert!(refused.contains("has digest") && refused.contains("tenon trust add"), "{refused}");
    let listed = server.text(&["trust", "list", "--plugin", "libmine.so"]);
    assert!(listed.contains("not in force") && listed.contains("changed since"), "{listed}");
    assert!(listed.contains("not on the list"), "{listed}");
    // The refusal's own command lets it in.
    let (_, command) = refused.split_once("if you trust the file, tenon ").unwrap();
    server.text(&command.split_whitespace().collect::<Vec<_>>());
    server.text(&inspect);
}

#[test]
fn entries_are_removed_by_digest_name_and_file() {
    let server = Server::new();
    let add = |what: &str| server.json(&["trust", "add", what]);
    let digest = add("libmine.so")["entries"][0]["sha256"].as_str().unwrap().to_owned();
    let (first, second) = ("ab".repeat(32), format!("{}cd", "ab".repeat(31)));
    add(&first);
    add(&second.to_uppercase());
    let ambiguous = server.error(&["trust", "remove", "abab"]);
    assert!(ambiguous.contains("'abab' fits 2 entries, expected one"), "{ambiguous}");
    assert!(server.error(&["trust", "remove", "zzzz"]).contains("no entry fits 'zzzz'"));
    let states = || {
        let listed = server.json(&["trust", "list"]);
        listed["entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|e| e["sha256"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(states(), [&*digest, &*first, &*second], "what fails removes nothing");
    server.text(&["trust", "remove", &second]);
    server.text(&["trust", "remove", "tenon-accel"]);
    assert_eq!(states(), [&*first]);
    add("libmine.so");
    server.text(&["trust", "remove", "libmine.so", &first]);
    assert!(states().is_empty());
    add(&first);
    add(&second);
    assert!(server.text(&["trust", "remove", "abab", "--all"]).matches("removed: ").count() == 2);
}

#[test]
fn what_is_no_plugin_or_no_list_is_an_error() {
    let server = Server::new();
    fs::write(server.place.path("text"), "no plugin").unwrap();
    assert!(server.error(&["trust", "add", "text"]).contains("expected a shared library"));
    assert!(server.error(&["trust", "add", "nowhere.so"]).contains("nowhere.so"));
    assert!(!server.place.path("config").exists(), "nothing was added");
    let list = server.place.path("list.toml");
    fs::write(&list, "version = 1\n[[plugin]]\nsha256 = 'abc'\n").unwrap();
    for command in [&["trust", "list"][..], &["trust", "add", "libmine.so"]] {
        let error = server.error(&[command, &["--file", "list.toml"]].concat());
        assert!(error.contains("list.toml: entry 1: sha256 = 'abc'"), "{error}");
    }
    assert!(fs::read_to_string(&list).unwrap().ends_with("'abc'\n"), "it is left as it was");
}

/// Nine lines of 250 characters for every command, and a list that said that no plugin had been found.
#[test]
fn plugins_that_are_not_on_the_list_are_told_in_one_line() {
    let server = Server::new();
    let folder = server.place.path("plugins");
    fs::create_dir(&folder).unwrap();
    for name in ["accel", "fft", "text"] {
        fs::copy(plugin(name), folder.join(format!("lib{name}.so"))).unwrap();
        own(&folder.join(format!("lib{name}.so")));
    }
    fs::copy(plugin("fft"), folder.join("libfft_again.so")).unwrap();
    fs::write(server.place.path("none.toml"), "version = 1\n").unwrap();
    own(&server.place.path("none.toml"));
    let tenon = |args: &[&str]| {
        let mut command = server.place.command(&server.alone);
        command.env("TENON_HOST_TRUST_FILE", server.place.path("none.toml"));
        output(command.env("TENON_PLUGIN_PATH", &folder).args(args))
    };
    let listed = tenon(&["list"]);
    let said = stderr(&listed);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("plugins that were found are not on the list"), "{said}");
    assert!(said.contains("tenon trust add --found --file"), "{said}");
    let text = String::from_utf8(listed.stdout).unwrap();
    assert!(text.contains("plugins were refused") && !text.contains("was found"), "{text}");
    let added = tenon(&["trust", "add", "--found"]);
    let told = String::from_utf8(added.stdout).unwrap();
    assert_eq!(told.matches("added: ").count(), 3, "one build of each: {told}");
    let listed = tenon(&["list"]);
    let text = String::from_utf8(listed.stdout.clone()).unwrap();
    assert!(text.contains("tenon-fft") && text.contains("tenon-text"), "{text}");
    assert_eq!(stderr(&listed), "");
}

#[cfg(unix)]
#[test]
fn a_list_that_others_can_write_is_told_of() {
    use std::os::unix::fs::PermissionsExt;
    let server = Server::new();
    server.text(&["trust", "add", "libmine.so"]);
    let list = server.place.path("config/tenon/trust.toml");
    assert_eq!(fs::metadata(&list).unwrap().permissions().mode() & 0o777, 0o644);
    fs::set_permissions(&list, fs::Permissions::from_mode(0o666)).unwrap();
    let told = stderr(&server.tenon(&["trust", "list"]));
    assert!(told.contains("no runtime takes this list") && told.contains("mode 666"), "{told}");
    let refused = server.error(&["inspect", "libmine.so", "--set", &server.force()]);
    assert!(refused.contains("nothing is loaded") && refused.contains("mode 666"), "{refused}");
}

/// The commands that a user types load what that user names; a server has the usual list in force unasked.
#[test]
fn a_server_loads_what_is_on_the_usual_list_and_nothing_else() {
    let server = Server::new();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--while-stdin", "--plugin", "libmine.so"];
    server.text(&["trust", "add", "libmine.so"]);
    let served = server.text(&serve);
    assert!(served.starts_with("grpc://127.0.0.1:"), "{served}");
    server.install("fft");
    let refused = server.error(&serve);
    for said in ["refused at step trust: plugin tenon-fft", "not among the 1 allowed ones"] {
        assert!(refused.contains(said), "{said}: {refused}");
    }
    server.text(&["inspect", "libmine.so"]);
}
