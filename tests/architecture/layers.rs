//! Imports point one way, in the manifests and in the code.

use super::tree;
use cargo_metadata::{Dependency, DependencyKind, MetadataCommand, Package};
use std::collections::HashSet;

/// A package, where it lies, and everything that it may import.
struct Layer {
    package: &'static str,
    folder: &'static str,
    imports: &'static [&'static str],
}

const fn layer(
    package: &'static str,
    folder: &'static str,
    imports: &'static [&'static str],
) -> Layer {
    Layer { package, folder, imports }
}

/// From the bottom to the top: a layer imports only from rows above its own, so there is no way round.
/// A layer reaches everything that what it imports may reach; the lists are written out so that a reader sees
/// the whole of it.
#[rustfmt::skip]
const LAYERS: [Layer; 42] = [
    layer("tenon-abi", "core/abi", &[]),
    layer("tenon-framework", "core/framework", &["tenon-abi"]),
    layer("tenon-author", "core/author", &["tenon-abi", "tenon-framework"]),
    layer("tenon-geometry", "core/geometry", &["tenon-abi", "tenon-framework", "tenon-author"]),
    layer("tenon-ops", "core/ops", &["tenon-abi", "tenon-framework", "tenon-author", "tenon-geometry"]),
    layer("tenon-host", "core/host", &["tenon-abi", "tenon-framework", "tenon-author", "tenon-geometry", "tenon-ops"]),
    layer("tenon-isolate", "core/isolate", &["tenon-abi", "tenon-framework", "tenon-author", "tenon-geometry", "tenon-ops", "tenon-host"]),
    layer("tenon-proto", "core/proto", &["tenon-abi", "tenon-framework"]),
    layer("tenon-graph", "core/graph", &["tenon-abi", "tenon-framework", "tenon-author", "tenon-geometry", "tenon-ops", "tenon-proto"]),
    layer("tenon-gradient", "core/gradient", &["tenon-abi", "tenon-framework", "tenon-author", "tenon-geometry", "tenon-ops", "tenon-proto", "tenon-graph"]),
    layer("tenon-optimize", "core/optimize", &["tenon-abi", "tenon-framework", "tenon-author", "tenon-geometry", "tenon-ops", "tenon-proto", "tenon-graph"]),
    layer("tenon-runtime", "core/runtime", &["tenon-abi", "tenon-framework", "tenon-author", "tenon-geometry", "tenon-ops", "tenon-proto", "tenon-host", "tenon-isolate", "tenon-graph", "tenon-gradient", "tenon-optimize"]),
    layer("tenon-training", "core/train", &["tenon-abi", "tenon-framework", "tenon-author", "tenon-geometry", "tenon-ops", "tenon-proto", "tenon-host", "tenon-isolate", "tenon-graph", "tenon-gradient", "tenon-optimize", "tenon-runtime"]),
    layer("tenon-monitor", "core/monitor", &["tenon-abi", "tenon-framework", "tenon-author", "tenon-geometry", "tenon-ops", "tenon-proto", "tenon-host", "tenon-isolate", "tenon-graph", "tenon-gradient", "tenon-optimize", "tenon-runtime"]),
    layer("tenon-cluster", "core/cluster", &["tenon-abi", "tenon-framework", "tenon-author", "tenon-geometry", "tenon-ops", "tenon-proto", "tenon-host", "tenon-isolate", "tenon-graph", "tenon-gradient", "tenon-optimize", "tenon-runtime"]),
    layer("tenon-quantize", "core/quantize", &["tenon-abi", "tenon-framework", "tenon-author", "tenon-geometry", "tenon-ops", "tenon-proto", "tenon-host", "tenon-isolate", "tenon-graph", "tenon-gradient", "tenon-optimize", "tenon-runtime"]),
    layer("tenon-sdk", "sdk/author", &["tenon-abi", "tenon-framework", "tenon-author", "tenon-geometry"]),
    layer("tenon-reference", "sdk/reference", &["tenon-abi", "tenon-framework", "tenon-author", "tenon-geometry"]),
    // A plugin sees the boundary through the SDK alone.
    // What several plugins share is like a plugin.
    layer("tenon-files", "plugins/files", &["tenon-sdk"]),
    layer("tenon-philox", "plugins/philox", &[]),
    layer("tenon-bundle", "plugins/bundle", &["tenon-sdk", "tenon-files", "tenon-proto"]),
    layer("tenon-vectors", "plugins/vectors", &["tenon-sdk"]),
    layer("tenon-cpu", "plugins/cpu", &["tenon-sdk", "tenon-reference", "tenon-philox", "tenon-vectors"]),
    layer("tenon-accel", "plugins/accel", &["tenon-sdk", "tenon-reference"]),
    layer("tenon-checkpoint", "plugins/checkpoint", &["tenon-sdk", "tenon-files", "tenon-proto", "tenon-bundle"]),
    layer("tenon-cuda", "plugins/cuda", &["tenon-sdk"]),
    layer("tenon-data", "plugins/data", &["tenon-sdk", "tenon-files", "tenon-philox", "tenon-bundle", "tenon-proto"]),
    layer("tenon-fft", "plugins/fft", &["tenon-sdk"]),
    layer("tenon-linalg", "plugins/linalg", &["tenon-sdk"]),
    layer("tenon-text", "plugins/text", &["tenon-sdk", "tenon-files"]),
    layer("tenon-image", "plugins/image", &["tenon-sdk"]),
    layer("tenon-int8", "plugins/int8", &["tenon-sdk"]),
    layer("tenon-train", "plugins/train", &["tenon-sdk", "tenon-files", "tenon-philox", "tenon-proto", "tenon-vectors"]),
    layer("tenon-test", "sdk/test", &["tenon-abi", "tenon-framework", "tenon-proto"]),
    layer("tenon-testkit", "sdk/testkit", &["tenon-abi", "tenon-framework", "tenon-author", "tenon-geometry", "tenon-ops", "tenon-proto", "tenon-host", "tenon-isolate", "tenon-graph", "tenon-gradient", "tenon-optimize", "tenon-runtime", "tenon-training", "tenon-reference", "tenon-test"]),
    layer("tenon-benchkit", "sdk/benchkit", &["tenon-abi", "tenon-framework", "tenon-author", "tenon-geometry", "tenon-ops", "tenon-proto", "tenon-host", "tenon-isolate", "tenon-graph", "tenon-gradient", "tenon-optimize", "tenon-runtime", "tenon-training", "tenon-reference", "tenon-test", "tenon-testkit"]),
    layer("tenon-ranges", "sdk/ranges", &["tenon-abi", "tenon-framework", "tenon-author", "tenon-geometry", "tenon-ops", "tenon-host"]),
    layer("tenon-import", "sdk/import", &["tenon-abi", "tenon-framework", "tenon-author", "tenon-geometry", "tenon-ops", "tenon-proto", "tenon-host", "tenon-isolate", "tenon-graph", "tenon-gradient", "tenon-optimize", "tenon-runtime", "tenon-sdk", "tenon-files", "tenon-bundle"]),
    layer("tenon-capi", "core/capi", &["tenon-abi", "tenon-framework", "tenon-author", "tenon-geometry", "tenon-ops", "tenon-proto", "tenon-host", "tenon-isolate", "tenon-graph", "tenon-gradient", "tenon-optimize", "tenon-runtime", "tenon-training", "tenon-cluster", "tenon-sdk", "tenon-files", "tenon-bundle", "tenon-import"]),
    layer("tenon-python", "sdk/python", &["tenon-abi", "tenon-framework", "tenon-author", "tenon-geometry", "tenon-ops", "tenon-proto", "tenon-host", "tenon-isolate", "tenon-graph", "tenon-gradient", "tenon-optimize", "tenon-runtime", "tenon-training", "tenon-cluster", "tenon-sdk", "tenon-files", "tenon-bundle", "tenon-import"]),
    layer("tenon-cli", "sdk/cli", &["tenon-abi", "tenon-framework", "tenon-author", "tenon-geometry", "tenon-ops", "tenon-proto", "tenon-host", "tenon-isolate", "tenon-graph", "tenon-gradient", "tenon-optimize", "tenon-runtime", "tenon-training", "tenon-cluster", "tenon-monitor", "tenon-quantize", "tenon-reference", "tenon-test", "tenon-testkit", "tenon-benchkit", "tenon-ranges", "tenon-sdk", "tenon-files", "tenon-bundle", "tenon-import"]),
    layer("tenon-examples", "sdk/examples", &["tenon-proto", "tenon-runtime", "tenon-training", "tenon-cluster"]),
];

/// Crates that run graphs and steps. Their code needs definitions, tensors and the registry, and nothing of what authors
/// write against; their tests may write ops and kernels.
const NOT_AUTHORS: [&str; 7] = [
    "tenon-isolate",
    "tenon-proto",
    "tenon-graph",
    "tenon-gradient",
    "tenon-optimize",
    "tenon-runtime",
    "tenon-training",
];

/// The zoo plugins are plugins like any other.
const ZOO: &str = "tests/zoo/";
const ZOO_IMPORTS: [&str; 1] = ["tenon-sdk"];

/// May import everything, and nobody imports them but each other.
const ABOVE_ALL: [&str; 2] = ["benches", "tests"];

/// Workspaces of their own, built with other flags or deliberately broken.
const OTHER_WORKSPACES: [&str; 4] =
    ["core/isolate/fuzz/", "core/proto/fuzz/", "tests/fixtures/", "tests/fuzz/"];

/// So that cargo builds five plugins along with the command, and all of them along with its tests; the code of the command
/// never names them.
const LISTED_BY_THE_COMMAND: [&str; 11] = [
    "tenon-cpu",
    "tenon-accel",
    "tenon-checkpoint",
    "tenon-cuda",
    "tenon-data",
    "tenon-fft",
    "tenon-image",
    "tenon-int8",
    "tenon-linalg",
    "tenon-text",
    "tenon-train",
];

/// What a package may import; `None` for everything.
fn imports(folder: &str) -> Result<Option<&'static [&'static str]>, String> {
    if format!("{folder}/").starts_with(ZOO) {
        return Ok(Some(&ZOO_IMPORTS));
    }
    if ABOVE_ALL.iter().any(|above| folder == *above || folder.starts_with(&format!("{above}/"))) {
        return Ok(None);
    }
    let row = LAYERS.iter().find(|layer| layer.folder == folder);
    row.map(|layer| Some(layer.imports)).ok_or_else(|| "has no row in the table of layers".into())
}

fn workspace() -> Vec<(String, Package)> {
    let root = tree::root();
    let metadata = MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .no_deps()
        .exec()
        .expect("cargo metadata answers");
    let folder = |package: &Package| {
        let folder = package.manifest_path.parent().expect("a manifest lies in a folder");
        let inside = folder.strip_prefix(&metadata.workspace_root);
        inside.expect("a member lies in the workspace").as_str().replace('\\', "/")
    };
    metadata.packages.iter().map(|package| (folder(package), package.clone())).collect()
}

#[test]
fn the_table_of_layers_has_no_way_round_and_matches_the_workspace() {
    let mut seen = HashSet::new();
    for layer in &LAYERS {
        for import in layer.imports {
            assert!(seen.contains(import), "{} imports {import} from above", layer.package);
        }
        seen.insert(layer.package);
    }
    let members = workspace();
    for layer in &LAYERS {
        let member = members.iter().find(|(_, package)| *package.name == *layer.package);
        let folder = member.map(|(folder, _)| folder.as_str());
        assert_eq!(folder, Some(layer.folder), "the folder of {}", layer.package);
    }
}

/// Missing documentation is an error in every package, and none takes itself out.
#[test]
fn every_package_takes_the_lints_of_the_workspace() {
    let manifest = |folder: &str| {
        let file = tree::root().join(folder).join("Cargo.toml");
        std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    };
    assert!(manifest("").contains("\nmissing_docs = \"deny\"\n"));
    for (folder, _) in workspace() {
        assert!(manifest(&folder).contains("\n[lints]\nworkspace = true\n"), "{folder}");
    }
    for source in tree::sources(|name| name.ends_with(".rs")) {
        let allows = source.text.lines().find(|line| {
            let line = line.trim_start();
            line.starts_with("#") && line.contains("allow(") && line.contains("missing_docs")
        });
        assert_eq!(allows, None, "{}", source.path);
    }
}

#[test]
fn manifests_import_one_way() {
    let members = workspace();
    let names: HashSet<&str> = members.iter().map(|(_, package)| package.name.as_str()).collect();
    let mut found = Vec::new();
    for (folder, package) in &members {
        let place = format!("{folder}/Cargo.toml");
        match imports(folder) {
            Err(wrong) => found.push((place, format!("{} {wrong}", package.name))),
            Ok(None) => {}
            Ok(Some(allowed)) => {
                let inside = |dependency: &&Dependency| names.contains(dependency.name.as_str());
                for dependency in package.dependencies.iter().filter(inside) {
                    let name = dependency.name.as_str();
                    let listed =
                        *package.name == "tenon-cli" && LISTED_BY_THE_COMMAND.contains(&name);
                    if !allowed.contains(&name) && !listed {
                        let kind = dependency.kind;
                        found.push((place.clone(), format!("imports {name} ({kind:?})")));
                    }
                }
            }
        }
    }
    tree::expect_none("imports point one way (design, \"Layers\")", &[], found);
}

#[test]
fn what_runs_steps_is_not_written_against_the_crate_of_authors() {
    let members = workspace();
    let mut found = Vec::new();
    for (folder, package) in &members {
        let dependencies = package.dependencies.iter().filter(|dependency| {
            dependency.name == "tenon-author" && dependency.kind == DependencyKind::Normal
        });
        if NOT_AUTHORS.contains(&package.name.as_str()) && dependencies.count() > 0 {
            found.push((format!("{folder}/Cargo.toml"), "imports tenon-author".to_owned()));
        }
    }
    tree::expect_none("graphs and steps need tenon-framework alone", &[], found);
}

#[test]
fn code_imports_one_way() {
    let members = workspace();
    let crates: HashSet<String> =
        members.iter().map(|(_, package)| package.name.replace('-', "_")).collect();
    let mut found = Vec::new();
    for source in tree::rust_sources() {
        if OTHER_WORKSPACES.iter().any(|other| source.path.starts_with(other)) {
            continue;
        }
        let (folder, own) = owner(&members, &source.path);
        let Ok(Some(allowed)) = imports(folder) else { continue };
        tree::identifiers(&source.tokens, &mut |ident, _| {
            let name = ident.to_string();
            let package = name.replace('_', "-");
            if crates.contains(&name) && package != own && !allowed.contains(&package.as_str()) {
                let line = ident.span().start().line;
                found.push((source.path.clone(), format!("line {line} names {name}")));
            }
        });
    }
    tree::expect_none("code imports one way (design, \"Layers\")", &[], found);
}

/// The member that a file belongs to: the one with the longest folder around it.
fn owner<'a>(members: &'a [(String, Package)], path: &str) -> (&'a str, &'a str) {
    let around = members.iter().filter(|(folder, _)| path.starts_with(&format!("{folder}/")));
    let (folder, package) = around
        .max_by_key(|(folder, _)| folder.len())
        .unwrap_or_else(|| panic!("{path} belongs to no member of the workspace"));
    (folder, package.name.as_str())
}
