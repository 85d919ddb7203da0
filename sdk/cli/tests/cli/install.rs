//! `tenon install`.

use crate::support::{Place, output, plugin, stderr};
use std::fs;

#[test]
fn an_installed_plugin_is_found_from_then_on() {
    let place = Place::new();
    let alone = place.alone();
    let tenon = |args: &[&str]| output(place.command(&alone).args(args));
    let file = plugin("accel").display().to_string();
    for _ in 0..2 {
        let installed = tenon(&["install", &file, "--json"]);
        assert!(installed.status.success(), "{}", stderr(&installed));
        let installed: serde_json::Value = serde_json::from_slice(&installed.stdout).unwrap();
        assert_eq!(installed["plugin"], "tenon-accel");
        let target = installed["file"].as_str().unwrap().to_owned();
        assert!(target.starts_with(&place.arg("data/tenon/plugins")), "{target}");
        assert_eq!(fs::read(target).unwrap(), fs::read(&file).unwrap());
    }
    let entries = fs::read_dir(place.path("data/tenon/plugins")).unwrap().count();
    assert_eq!(entries, 1, "the second build replaces the first, and nothing is left beside it");
    let list = String::from_utf8(tenon(&["list"]).stdout).unwrap();
    assert!(list.contains("tenon-accel") && !list.contains("tenon-cpu"), "{list}");
}

#[test]
fn what_does_not_load_is_not_installed() {
    let place = Place::new();
    fs::write(place.path("libtenon_bad.so"), "not a library").unwrap();
    place.error(&["install", &place.arg("libtenon_bad.so")]);
    assert!(!place.path("data").exists());
}
