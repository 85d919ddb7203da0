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
        let installed = &installed["installed"][0];
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
fn an_installed_plugin_can_be_taken_out_again() {
    let place = Place::new();
    let alone = place.alone();
    let tenon = |args: &[&str]| output(place.command(&alone).args(args));
    let none = tenon(&["uninstall", "tenon-accel"]);
    assert!(stderr(&none).contains("no plugin 'tenon-accel' is installed there, and no other"));
    let files = ["accel", "fft"].map(|name| plugin(name).display().to_string());
    let installed = tenon(&["install", &files[0], &files[1]]);
    assert!(installed.status.success(), "{}", stderr(&installed));
    assert_eq!(String::from_utf8(installed.stdout).unwrap().lines().count(), 2);
    let other = stderr(&tenon(&["uninstall", "accel"]));
    assert!(other.contains("there are: tenon-accel ") && other.contains("tenon-fft "), "{other}");
    let removed = tenon(&["uninstall", "tenon-accel"]);
    let told = String::from_utf8(removed.stdout).unwrap();
    assert!(told.starts_with("removed: tenon-accel "), "{told}");
    let left: Vec<_> = fs::read_dir(place.path("data/tenon/plugins"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(left, ["libtenon_fft.so"]);
    // What is no plugin any more goes by the name of its file.
    fs::write(place.path("data/tenon/plugins/libtenon_fft.so"), "broken").unwrap();
    let removed = tenon(&["uninstall", "libtenon_fft.so", "--json"]);
    assert!(removed.status.success(), "{}", stderr(&removed));
    assert_eq!(fs::read_dir(place.path("data/tenon/plugins")).unwrap().count(), 0);
}

#[test]
fn what_does_not_load_is_not_installed() {
    let place = Place::new();
    fs::write(place.path("libtenon_bad.so"), "not a library").unwrap();
    let good = plugin("accel").display().to_string();
    place.error(&["install", &good, &place.arg("libtenon_bad.so")]);
    assert!(!place.path("data").exists());
}
