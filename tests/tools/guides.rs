//! The guides in sdk/docs, followed line by line in an empty folder.

use std::{env, fs};
use tenon_tests::{build, docs, session};

/// Follows a guide. Cargo builds the crates that it makes, `crates`, into the folder that other tests build into too.
fn follow(file: &str, crates: &[&str]) {
    let guide = fs::read_to_string(build::repository().join("sdk/docs").join(file)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let tenon = build::deps().parent().unwrap().to_owned();
    assert!(tenon.join("tenon").is_file(), "build the command first: cargo build -p tenon-cli");
    let path = [&tenon, &tenon.join("examples")].map(|folder| folder.display().to_string());
    let path = format!("{}:{}", path.join(":"), env::var("PATH").unwrap());
    let target = build::target_of_others();
    // Files and not their folder: the plugins of tests lie there too.
    let plugins = env::join_paths(session::PLUGINS.map(session::library)).unwrap();
    let variables = [
        ("PATH", path),
        ("TENON_PLUGIN_PATH", plugins.into_string().unwrap()),
        ("TENON_SDK", build::repository().display().to_string()),
        ("TENON_LIB", build::deps().display().to_string()),
        ("XDG_CACHE_HOME", folder.path().join("cache").display().to_string()),
        ("XDG_DATA_HOME", folder.path().join("data").display().to_string()),
        ("TARGETS", target.display().to_string()),
    ];
    // `tenon new` makes the folder, and then its `target` leads to the one that stays.
    let lines = guide.lines().map(|line| {
        let made = line.strip_prefix("tenon new ").and_then(|rest| rest.split(' ').next());
        match made.filter(|name| crates.contains(name)) {
            Some(name) => format!("{line}\nln -s \"$TARGETS\" {name}/target\n"),
            None => format!("{line}\n"),
        }
    });
    let guide: String = lines.collect();
    build::locked("guide", || {
        docs::follow(&guide, folder.path(), &variables)
            .unwrap_or_else(|told| panic!("{file}: {told}"))
    });
}

#[test]
fn the_guide_for_ops_and_kernels_can_be_followed() {
    follow("guide.md", &["leaky"]);
}

#[test]
fn the_patterns_of_kernels_can_be_followed() {
    follow("patterns.md", &["patterns"]);
}

#[test]
fn the_guide_to_state_can_be_followed() {
    follow("state.md", &["means"]);
}

#[test]
fn the_guide_to_gradients_can_be_followed() {
    follow("gradients.md", &["cubes"]);
}

#[test]
fn the_guide_to_training_can_be_followed() {
    follow("train.md", &[]);
}

#[test]
fn the_page_for_authors_in_c_and_cpp_can_be_followed() {
    follow("cpp.md", &[]);
}

#[test]
fn the_guide_for_devices_can_be_followed() {
    follow("device.md", &["card", "plain"]);
}

#[test]
fn the_guide_for_gpus_can_be_followed() {
    follow("cuda.md", &[]);
}

#[test]
fn the_walk_through_a_model_can_be_followed() {
    follow("vgg19.md", &[]);
}

#[test]
fn the_guide_to_isolated_plugins_can_be_followed() {
    follow("isolate.md", &[]);
}

#[test]
fn the_page_on_serving_can_be_followed() {
    follow("serve.md", &[]);
}

#[test]
fn the_guide_to_clusters_can_be_followed() {
    follow("cluster.md", &[]);
}

#[test]
fn the_page_on_monitoring_can_be_followed() {
    follow("monitor.md", &[]);
}

#[test]
fn the_guide_to_checkpoints_can_be_followed() {
    follow("checkpoints.md", &[]);
}

#[test]
fn the_guide_to_quantisation_can_be_followed() {
    follow("quantize.md", &[]);
}

#[test]
fn the_page_of_saved_models_can_be_followed() {
    follow("saved-model.md", &[]);
}

#[test]
fn the_page_for_embedders_can_be_followed() {
    follow("embed.md", &[]);
}

#[test]
fn the_page_on_tensorflows_c_api_can_be_followed() {
    follow("c-api.md", &[]);
}

#[test]
fn the_guide_to_trust_can_be_followed() {
    follow("trust.md", &[]);
}

#[test]
fn the_guide_to_measured_kernels_can_be_followed() {
    follow("tune.md", &[]);
}

/// Rows of a table that stand apart from its head are shown as text, which nobody sees in the source.
#[test]
fn every_row_of_a_table_has_a_head() {
    let repository = build::repository();
    let folders =
        ["sdk/docs", "core/abi/docs", "core/docs/decisions"].map(|folder| repository.join(folder));
    let pages = folders.iter().flat_map(|folder| build::files(folder, &[".md"]));
    for file in pages.chain([repository.join("README.md")]) {
        let text = fs::read_to_string(&file).unwrap();
        let (mut fenced, mut before) = (false, "");
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            fenced ^= line.trim_start().starts_with("```");
            let begins = !fenced && line.starts_with('|') && !before.starts_with('|');
            let has_head = lines.get(at + 1).is_some_and(|next| next.starts_with("|--"));
            assert!(!begins || has_head, "{}:{}: {line}", file.display(), at + 1);
            before = line;
        }
    }
}

#[test]
fn every_block_of_every_page_says_what_it_is() {
    for file in build::files(&build::repository().join("sdk/docs"), &[".md"]) {
        let guide = fs::read_to_string(&file).unwrap();
        docs::blocks(&guide).unwrap_or_else(|told| panic!("{}: {told}", file.display()));
    }
}
