//! `tenon inspect`.

use crate::support::{Place, plugin, stderr};
use std::{fs, path::Path, process::Command};

#[test]
fn a_plugin_is_shown_with_its_manifest_and_its_devices() {
    let place = Place::new();
    let file = plugin("accel").display().to_string();
    let shown = place.json(&["inspect", &file]);
    assert_eq!(shown["name"], "tenon-accel");
    assert_eq!(shown["door"], "1 (Rust)");
    assert_eq!(shown["digest"].as_str().unwrap().len(), 64);
    assert!(shown["refused"].is_null());
    let conv = |kernel: &&serde_json::Value| kernel["op"] == "Conv2D";
    assert!(shown["kernels"].as_array().unwrap().iter().any(|kernel| conv(&kernel)));
    assert_eq!(shown["probes"][0]["type"], "ACCEL");
    assert_eq!(shown["probes"][0]["count"], 2);
    let text = place.text(&["inspect", &file]);
    assert!(text.contains("loading    works") && text.contains("ACCEL: 2 devices"), "{text}");
}

#[test]
fn the_probe_says_why_a_device_is_not_there() {
    let file = plugin("accel").display().to_string();
    let shown = Place::new().json(&["inspect", &file, "--set", "accel.devices=0"]);
    assert_eq!(shown["probes"][0]["count"], 0);
    assert!(shown["probes"][0]["reason"].as_str().is_some_and(|reason| !reason.is_empty()));
}

#[test]
fn what_is_no_plugin_is_an_error_that_names_the_file() {
    let place = Place::new();
    let missing = place.error(&["inspect", &place.arg("none.so")]);
    assert!(missing.starts_with("error [NOT_FOUND]") && missing.contains("none.so"), "{missing}");
    fs::write(place.path("text.so"), "not a library").unwrap();
    let text = place.error(&["inspect", &place.arg("text.so")]);
    assert!(text.contains("text.so"), "{text}");
    let folder = place.error(&["inspect", &place.arg("")]);
    assert!(folder.contains("folder"), "{folder}");
    let executable = place.error(&["inspect", env!("CARGO_BIN_EXE_tenon")]);
    assert!(executable.contains("tenon"), "{executable}");
    let whole = fs::read(plugin("accel")).unwrap();
    fs::write(place.path("cut.so"), &whole[..whole.len() / 2]).unwrap();
    let cut = place.error(&["inspect", &place.arg("cut.so")]);
    assert!(cut.contains("cut.so"), "{cut}");
}

/// Makes a plugin in C whose library does this as it is opened.
fn opening(place: &Place, name: &str, body: &str) -> String {
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    place.text(&["new", name, "--lang", "c", "--sdk", &sdk.display().to_string()]);
    let folder = place.path(name);
    let mut source = fs::read_to_string(folder.join("plugin.c")).unwrap();
    // Headers of the system come first: what follows the plugin's header is hidden.
    source.insert_str(0, "#include <unistd.h>\n");
    source.push_str(&format!(
        "\n__attribute__((constructor)) static void opened(void) {{ {body} }}\n"
    ));
    fs::write(folder.join("plugin.c"), source).unwrap();
    let built = Command::new("make").current_dir(&folder).output().unwrap();
    assert!(built.status.success(), "{}", stderr(&built));
    place.arg(&format!("{name}/lib{name}.so"))
}

/// Was the end of the command, before anything was printed.
#[test]
fn what_the_file_says_is_printed_though_opening_it_ends_a_process() {
    let place = Place::new();
    let file = opening(&place, "crashing", r#"puts("about to crash"); *(volatile int *)16 = 1;"#);
    let shown = place.tenon(&["inspect", &file]);
    let (out, err) = (String::from_utf8(shown.stdout.clone()).unwrap(), stderr(&shown));
    assert_eq!(shown.status.code(), Some(1), "{err}");
    assert!(out.starts_with("plugin     crashing 0.1.0\n") && out.contains("Crashing"), "{out}");
    assert!(out.ends_with("\nloading    refused at step open\n"), "{out}");
    assert!(err.contains("plugin crashing (") && err.contains("signal 11 (SIGSEGV)"), "{err}");
}

/// Was the end of every command while such a file was on the search path.
#[test]
fn a_library_that_ends_the_process_that_opens_it_is_a_warning_where_search_finds_it() {
    let place = Place::new();
    for (name, body, how) in [
        ("crashing", "*(volatile int *)16 = 1;", "was ended by signal 11 (SIGSEGV)"),
        ("leaving", "exit(3);", "exited with status 3"),
        ("hanging", "for (;;) pause();", "was not back within 1.5s (host.probe_timeout_ms)"),
    ] {
        let file = opening(&place, name, body);
        let folder = place.path("data/tenon/plugins");
        fs::create_dir_all(&folder).unwrap();
        fs::copy(&file, folder.join(format!("lib{name}.so"))).unwrap();
        for _ in 0..2 {
            let list = place.tenon(&["list", "--set", "host.probe_timeout_ms=1500"]);
            assert!(list.status.success(), "{}", stderr(&list));
            let said = format!("plugin refused at step open: plugin {name} (");
            assert!(
                stderr(&list).contains(&said) && stderr(&list).contains(how),
                "{}",
                stderr(&list)
            );
            assert!(String::from_utf8_lossy(&list.stdout).contains("tenon-cpu"));
        }
        fs::remove_file(folder.join(format!("lib{name}.so"))).unwrap();
    }
}

#[test]
fn without_loading_nothing_of_a_plugin_runs() {
    let place = Place::new();
    let body = format!(r#"FILE *f = fopen("{}", "w"); if (f) fclose(f);"#, place.arg("ran"));
    let file = opening(&place, "telling", &body);
    let text = place.text(&["inspect", &file, "--no-load"]);
    assert!(text.contains("plugin     telling 0.1.0") && text.contains("Telling"), "{text}");
    assert!(text.ends_with("\nloading    not tried (--no-load)\n"), "{text}");
    let shown = place.json(&["inspect", &file, "--no-load"]);
    assert_eq!((&shown["name"], &shown["tried"]), (&"telling".into(), &false.into()));
    assert!(!place.path("ran").exists());
    place.text(&["inspect", &file]);
    assert!(place.path("ran").exists(), "loading it does run code of it");
}
