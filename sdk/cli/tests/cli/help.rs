//! The long help of every subcommand ends in an example, which is run as it stands.

use crate::support::Place;
use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};
use tenon_runtime::{Runtime, RuntimeOptions, framework::Tensor};

/// The subcommands that the help of the command lists.
pub fn subcommands(help: &str) -> Vec<String> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = listed.map_while(|line| line.strip_prefix("  ").filter(|line| !line.is_empty()));
    // The description of one may take more lines.
    let names = names.filter(|line| !line.starts_with(' '));
    names.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
}

/// The commands that a help ends in.
fn examples(help: &str) -> Vec<String> {
    let Some((_, end)) = help.rsplit_once("\nExample:\n") else { return Vec::new() };
    let lines: Vec<&str> = end.trim_end().lines().collect();
    let commands = lines.iter().map_while(|line| line.strip_prefix("  ").map(str::to_owned));
    let commands: Vec<String> = commands.collect();
    assert_eq!(commands.len(), lines.len(), "the example is the end: {help}");
    commands
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Puts what the examples name into the folder that they run in, and the repository beside it.
fn furnish(place: &Place) -> PathBuf {
    let folder = place.path("work");
    fs::create_dir(&folder).unwrap();
    symlink(root(), place.path("tenon")).unwrap();
    place.relu("work/model.pb");
    place.net("work/net.pb", "work/samples.npz");
    let model = root().join("tests/goldens/saved_models");
    symlink(model.join("tf2_module"), folder.join("classifier")).unwrap();
    fs::copy(model.join("rows.npy"), folder.join("rows.npy")).unwrap();
    place.array("work/x.npy", &Tensor::from_slice(&[2], &[1.0f32, -1.0]).unwrap());
    place.text(&["new", "my-ops", "--lang", "c"]);
    let made = Command::new("make").current_dir(place.path("my-ops")).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    fs::rename(place.path("my-ops/libmy_ops.so"), folder.join("libmy_ops.so")).unwrap();
    folder
}

/// A process that tells its figures, for the examples that look at one: its port takes the place of theirs.
fn told() -> (Runtime, String) {
    let options = RuntimeOptions { search: false, ..RuntimeOptions::default() };
    let (runtime, _) = Runtime::new(options).unwrap();
    let server = tenon_monitor::serve(&runtime, "0").unwrap();
    let port = server.address().port().to_string();
    runtime.attach(server);
    (runtime, port)
}

fn run(place: &Place, folder: &Path, example: &str) {
    let commands = Path::new(env!("CARGO_BIN_EXE_tenon")).parent().unwrap();
    let path = format!("{}:{}", commands.display(), env::var("PATH").unwrap());
    let mut bash = place.command(Path::new("bash"));
    bash.args(["-euc", example]).current_dir(folder).env("PATH", path);
    let output = bash.env("XDG_CACHE_HOME", place.path("cache")).output().unwrap();
    let (out, err) = (&output.stdout, &output.stderr);
    let (out, err) = (String::from_utf8_lossy(out), String::from_utf8_lossy(err));
    assert!(output.status.success(), "{example}: {out}{err}");
}

#[test]
fn every_subcommands_help_ends_in_an_example_that_works() {
    let place = Place::new();
    let folder = furnish(&place);
    let (_process, port) = told();
    let names = subcommands(&place.text(&["--help"]));
    assert!(names.len() > 8 && names.contains(&"check".to_owned()), "{names:?}");
    for name in names.iter().filter(|name| *name != "help") {
        let examples = examples(&place.text(&[name, "--help"]));
        assert!(!examples.is_empty(), "the help of {name} ends in no example");
        for example in &examples {
            assert!(example.starts_with(&format!("tenon {name}")), "{name}: {example}");
            let example = example.replace("9100", &port);
            // A server ends when it is told to.
            let goes_on = ["serve", "proxy", "cluster"].contains(&name.as_str());
            let ended = if goes_on { "timeout -s TERM --preserve-status 10 " } else { "" };
            run(&place, &folder, &format!("{ended}{example}"));
        }
    }
    // What the examples leave behind says that they did what they are there for.
    for made in ["results", "my-op/Cargo.toml", "check.xml"] {
        assert!(folder.join(made).exists(), "{made}");
    }
}
