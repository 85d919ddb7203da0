//! The guides in sdk/docs, followed line by line in an empty folder.

use std::{env, fs};
use tenon_tests::{build, docs};

/// Folders of crates that a guide makes: cargo builds them all into one folder that stays.
const CRATES: [&str; 1] = ["leaky"];

#[test]
fn the_guide_for_ops_and_kernels_can_be_followed() {
    let guide = fs::read_to_string(build::repository().join("sdk/docs/guide.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let tenon = build::deps().parent().unwrap().to_owned();
    assert!(tenon.join("tenon").is_file(), "build the command first: cargo build -p tenon-cli");
    let path = format!("{}:{}", tenon.display(), env::var("PATH").unwrap());
    let target = build::output("guide");
    let variables = [
        ("PATH", path),
        ("TENON_SDK", build::repository().display().to_string()),
        ("XDG_CACHE_HOME", folder.path().join("cache").display().to_string()),
        ("XDG_DATA_HOME", folder.path().join("data").display().to_string()),
        ("TARGETS", target.display().to_string()),
    ];
    // `tenon new` makes the folder, and then its `target` leads to the one that stays.
    let guide = CRATES.iter().fold(guide, |guide, name| {
        let made = format!("tenon new {name}\n");
        guide.replacen(&made, &format!("{made}ln -s \"$TARGETS\" {name}/target\n"), 1)
    });
    build::locked("guide", || {
        docs::follow(&guide, folder.path(), &variables).unwrap_or_else(|told| panic!("{told}"))
    });
}

#[test]
fn every_block_of_every_guide_says_what_it_is() {
    let folder = build::repository().join("sdk/docs");
    for file in build::files(&folder, &["guide.md"]) {
        let guide = fs::read_to_string(&file).unwrap();
        docs::blocks(&guide).unwrap_or_else(|told| panic!("{}: {told}", file.display()));
    }
}
