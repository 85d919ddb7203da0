//! The archive that `.ci/dist` makes: unpacked anywhere, it works, with nothing set and nothing else at hand.

#![cfg(target_os = "linux")]

use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};
use tempfile::TempDir;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The folder of a profile, with the command that this test was built with.
fn made() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_tenon")).parent().unwrap().to_owned()
}

fn succeeded(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let (out, err) = (&output.stdout, &output.stderr);
    let told = format!("{}{}", String::from_utf8_lossy(out), String::from_utf8_lossy(err));
    assert!(output.status.success(), "{command:?}: {told}");
    output
}

fn text(command: &mut Command) -> String {
    String::from_utf8(succeeded(command).stdout).unwrap()
}

/// What the archive holds, in a folder of its own.
struct Unpacked {
    folder: TempDir,
    root: PathBuf,
}

impl Unpacked {
    /// Packs what is built, and unpacks it elsewhere.
    fn new() -> Unpacked {
        let folder = tempfile::tempdir().unwrap();
        let packed = folder.path().join("packed");
        let mut dist = Command::new(root().join(".ci/dist"));
        let made = made();
        dist.arg("--profile").arg(made.file_name().unwrap());
        dist.arg("--built").arg("--out").arg(&packed);
        succeeded(dist.env("CARGO_TARGET_DIR", made.parent().unwrap()));
        let find = |ending: &str| {
            let entries = fs::read_dir(&packed).unwrap().map(|entry| entry.unwrap().path());
            let found: Vec<PathBuf> =
                entries.filter(|file| file.to_str().unwrap().ends_with(ending)).collect();
            let [file] = &found[..] else { panic!("{found:?}") };
            file.clone()
        };
        let archive = find(".tar.gz");
        succeeded(Command::new("sha256sum").arg("-c").arg(find(".sha256")).current_dir(&packed));
        // A name with a space in it: what finds its way by where it lies has to bear that.
        let place = folder.path().join("some where");
        fs::create_dir(&place).unwrap();
        succeeded(Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(&place));
        let name = archive.file_name().unwrap().to_str().unwrap().trim_end_matches(".tar.gz");
        let root = place.join(name);
        fs::remove_dir_all(packed).unwrap();
        Unpacked { folder, root }
    }

    /// The command that was unpacked, in an empty environment.
    fn tenon(&self) -> Command {
        let mut command = Command::new(self.root.join("bin/tenon"));
        command.env_clear().current_dir(self.folder.path());
        command
    }
}

fn has_all_that_belongs_to_it(unpacked: &Unpacked) {
    for file in [
        "LICENSE-APACHE",
        "LICENSE-MIT",
        "README.md",
        "include/tenon.h",
        "include/tenon.hpp",
        "include/tenon_plugin.h",
        "include/tenon_tensorflow.h",
        "share/bash-completion/completions/tenon",
        "share/doc/tenon/README.md",
        "share/doc/tenon/sdk/docs/guide.md",
        "share/doc/tenon/third-party/crates.txt",
        "share/fish/vendor_completions.d/tenon.fish",
        "share/man/man1/tenon-check.1",
        "share/tenon/sdk/Cargo.lock",
        "share/zsh/site-functions/_tenon",
    ] {
        assert!(unpacked.root.join(file).is_file(), "{file} is not in the archive");
    }
    let third = unpacked.root.join("share/doc/tenon/third-party");
    let crates = fs::read_to_string(third.join("crates.txt")).unwrap();
    for line in crates.lines().filter(|line| line.starts_with("clap ")) {
        let folder = line.split(':').next().unwrap().replace(' ', "-");
        assert!(fs::read_dir(third.join(&folder)).unwrap().count() > 0, "{folder}");
    }
    assert!(crates.lines().any(|line| line.starts_with("clap ")), "{crates}");
}

/// The targets of a page's relative links, without anchors. Code is no link.
fn links(page: &str) -> Vec<String> {
    let mut fenced = false;
    let mut found = Vec::new();
    for line in page.lines() {
        fenced ^= line.trim_start().starts_with("```");
        // Every second part stands in backticks.
        let outside: String = line.split('`').step_by(2).collect();
        let targets = outside.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let targets = targets.filter(|_| !fenced).filter(|target| !target.contains("://"));
        let targets = targets.map(|target| target.split('#').next().unwrap_or_default().to_owned());
        found.extend(targets.filter(|target| !target.is_empty()));
    }
    found
}

fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() && entry.file_name() != "third-party" {
            pages(&path, found);
        } else if kind.is_file() && path.extension().is_some_and(|ending| ending == "md") {
            found.push(path);
        }
    }
}

/// A page's link from where it lies, without the parts that lead back: as a browser follows it, whatever links there are.
fn followed(page: &Path, link: &str) -> PathBuf {
    let mut target = page.parent().unwrap().to_owned();
    for part in link.split('/').filter(|part| !matches!(*part, "" | ".")) {
        match part {
            ".." => drop(target.pop()),
            part => target.push(part),
        }
    }
    target
}

/// Guides linked to pages, examples and folders that only a clone had.
fn has_what_its_pages_link_to(unpacked: &Unpacked) {
    let mut all = Vec::new();
    pages(&unpacked.root, &mut all);
    let (mut dead, mut looked) = (Vec::new(), 0);
    for page in &all {
        for link in links(&fs::read_to_string(page).unwrap()) {
            looked += 1;
            let target = followed(page, &link);
            let is_inside =
                fs::canonicalize(&target).is_ok_and(|file| file.starts_with(&unpacked.root));
            if !is_inside {
                dead.push(format!(
                    "{}: {link}",
                    page.strip_prefix(&unpacked.root).unwrap().display()
                ));
            }
        }
    }
    assert!(dead.is_empty(), "{} of {looked} links lead nowhere: {dead:#?}", dead.len());
    assert!(all.len() > 80 && looked > 100, "{} pages, {looked} links", all.len());
}

/// `$TENON_SDK` of the guides was set nowhere.
fn says_where_its_sdk_is(unpacked: &Unpacked) {
    let told = text(unpacked.tenon().arg("sdk"));
    let sdk = Path::new(told.trim_end());
    assert_eq!(sdk, unpacked.root.join("share/tenon/sdk"));
    assert!(sdk.join("sdk/c/examples/rmsnorm.cpp").is_file());
    let told = text(unpacked.tenon().args(["sdk", "--json"]));
    assert_eq!(serde_json::from_str::<Value>(&told).unwrap()["sdk"], sdk.to_str().unwrap());
}

/// It named `sdk/cli/assets/demo/digits.pb` and `README.md`, which an archive has elsewhere.
fn names_files_that_it_has(unpacked: &Unpacked) {
    let told = text(unpacked.tenon().arg("demo"));
    let (_, next) = told.split_once("\nnext, type\n").unwrap();
    let line = next.lines().find(|line| line.contains(" explain ")).unwrap();
    let typed = line.trim().split("   ").next().unwrap();
    let program = unpacked.root.join("bin/tenon");
    let typed = typed.replacen("tenon ", "\"$0\" ", 1);
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(&typed).arg(program).env_clear().current_dir(unpacked.folder.path());
    let node = typed.rsplit(' ').next().unwrap().to_owned();
    assert!(text(&mut shell).contains(&node), "{typed}");
    let page = next.lines().last().unwrap().strip_suffix(" has a plugin of your own in 30 lines");
    let page = unpacked.folder.path().join(page.unwrap_or_else(|| panic!("{next}")));
    assert!(fs::read_to_string(page).unwrap().contains("## A plugin of your own"), "{next}");
}

fn finds_its_plugins(unpacked: &Unpacked) {
    let list: Value =
        serde_json::from_str(&text(unpacked.tenon().args(["list", "--json"]))).unwrap();
    let plugins = list["plugins"].as_array().unwrap();
    let file = |name: &str| {
        let plugin = plugins.iter().find(|plugin| plugin["name"] == name);
        plugin.unwrap_or_else(|| panic!("{name} was not found"))["file"].as_str().unwrap()
    };
    let folder = unpacked.root.join("lib/tenon/plugins");
    // What has no manifest is a crate that plugins share.
    let sources = fs::read_dir(root().join("plugins")).unwrap().map(Result::unwrap);
    for source in sources.filter(|source| source.path().join("manifest.txt").is_file()) {
        let name = source.file_name().into_string().unwrap();
        assert!(Path::new(file(&format!("tenon-{name}"))).starts_with(&folder), "{name}");
    }
    // By a link too, as a folder of the PATH has one.
    let link = unpacked.folder.path().join("tenon");
    std::os::unix::fs::symlink(unpacked.root.join("bin/tenon"), &link).unwrap();
    let by_link = text(Command::new(&link).env_clear().args(["list", "--json"]));
    assert!(by_link.contains("tenon-cpu"), "{by_link}");
}

fn checks_a_plugin(unpacked: &Unpacked) {
    let plugin = unpacked.root.join("lib/tenon/plugins/libtenon_cpu.so");
    let mut check = unpacked.tenon();
    check.arg("check").arg(plugin).args(["--op", "Relu", "--jobs", "1"]);
    let told = text(&mut check);
    assert!(told.contains("right"), "{told}");
}

/// A plugin in Rust is resolved with the versions that came with the SDK, without a network; building it is not tried
/// here, for it takes minutes.
fn makes_plugins(unpacked: &Unpacked) {
    let told = text(unpacked.tenon().args(["new", "packed-rust"]));
    let sdk = unpacked.root.join("share/tenon/sdk");
    assert!(told.contains(sdk.to_str().unwrap()), "{told}");
    let mut cargo = Command::new(env!("CARGO"));
    // What other systems would need besides is not there.
    cargo.args(["metadata", "--offline", "--format-version", "1"]);
    cargo.args(["--filter-platform", env!("TENON_TARGET")]);
    cargo.current_dir(unpacked.folder.path().join("packed-rust")).env_remove("RUSTFLAGS");
    let graph: Value = serde_json::from_str(&text(&mut cargo)).unwrap();
    let packages = graph["packages"].as_array().unwrap();
    let found = |name: &str| packages.iter().find(|package| package["name"] == name).unwrap();
    for name in ["tenon-sdk", "tenon-test", "tenon-framework"] {
        let manifest = found(name)["manifest_path"].as_str().unwrap();
        assert!(Path::new(manifest).starts_with(&sdk), "{manifest}");
    }
    // The SDK is a workspace of its own, whole.
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--offline", "--format-version", "1", "--no-deps"]);
    let members: Value =
        serde_json::from_str(&text(cargo.current_dir(&sdk).env_remove("RUSTFLAGS"))).unwrap();
    assert!(members["packages"].as_array().unwrap().len() >= 10, "{members}");

    text(unpacked.tenon().args(["new", "packed-c", "--lang", "c"]));
    let folder = unpacked.folder.path().join("packed-c");
    let mut make = Command::new("make");
    make.current_dir(&folder).env("CFLAGS", "-O1");
    text(make.arg(format!("TENON={}", unpacked.root.join("bin/tenon").display())));
    let told = text(unpacked.tenon().arg("check").arg(folder.join("libpacked_c.so")));
    assert!(told.contains("PackedC") && told.contains("right"), "{told}");
}

/// There was nothing to install: the binary alone found no kernels and no SDK.
#[test]
fn an_archive_works_wherever_it_is_unpacked() {
    let unpacked = Unpacked::new();
    has_all_that_belongs_to_it(&unpacked);
    has_what_its_pages_link_to(&unpacked);
    says_where_its_sdk_is(&unpacked);
    names_files_that_it_has(&unpacked);
    finds_its_plugins(&unpacked);
    checks_a_plugin(&unpacked);
    makes_plugins(&unpacked);
}
