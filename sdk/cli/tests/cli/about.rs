//! `tenon --version`, `tenon man`, `tenon completions`.

use crate::{help::subcommands, support::Place};
use std::{fs, process::Command};

/// A report of a fault could not say which boundary, source and machine it was about.
#[test]
fn the_version_had_no_abi_commit_or_target() {
    let place = Place::new();
    let short = place.text(&["-V"]);
    assert_eq!(short, format!("tenon {}\n", env!("CARGO_PKG_VERSION")));
    let long = place.text(&["--version"]);
    let lines: Vec<&str> = long.lines().collect();
    let [first, abi, commit, target] = lines[..] else { panic!("{long}") };
    assert_eq!(first, short.trim_end());
    let numbers = abi.strip_prefix("ABI ").and_then(|abi| abi.split_once('.')).unwrap();
    assert!(numbers.0.parse::<u32>().is_ok() && numbers.1.parse::<u32>().is_ok(), "{abi}");
    let commit = commit.strip_prefix("commit ").unwrap();
    let is_hex = commit.len() == 12 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    assert!(is_hex || commit == "unknown", "{commit}");
    let target = target.strip_prefix("target ").unwrap();
    assert!(target.starts_with(std::env::consts::ARCH), "{target}");
}

#[test]
fn every_subcommand_has_a_page_of_the_manual() {
    let place = Place::new();
    place.text(&["man", "man1"]);
    let page = |name: &str| fs::read_to_string(place.path("man1").join(name)).unwrap();
    let first = page("tenon.1");
    for name in subcommands(&place.text(&["--help"])) {
        if name == "help" {
            continue;
        }
        let text = page(&format!("tenon-{name}.1"));
        assert!(text.contains(".TH") && text.contains("tenon"), "{name}: {text}");
        assert!(first.contains(&name.replace('-', "\\-")), "tenon.1 does not name {name}");
    }
    assert!(!place.path("man1/tenon-check-worker.1").exists(), "it is not a command for people");
}

#[test]
fn shells_are_told_how_to_complete_the_command() {
    let place = Place::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = place.text(&["completions", shell]);
        assert!(script.contains("uninstall") && script.contains("soft-placement"), "{shell}");
    }
    fs::write(place.path("tenon.bash"), place.text(&["completions", "bash"])).unwrap();
    let asked = "source ./tenon.bash; COMP_WORDS=(tenon unin); COMP_CWORD=1; _tenon tenon unin tenon; \
                 echo \"${COMPREPLY[*]}\"";
    let bash = Command::new("bash").args(["-c", asked]).current_dir(place.folder.path()).output();
    assert_eq!(String::from_utf8(bash.unwrap().stdout).unwrap().trim(), "uninstall");
}
