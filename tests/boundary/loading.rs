//! Loading: one deliberately broken plugin for each way in which it can fail, each refused at its step with a
//! message that says what was expected, what was found and what to do; and what a good plugin brings.

use std::{collections::BTreeSet, fs, path::PathBuf};
use tenon_framework::{
    op::OpError,
    registry::{RegistryError, Warning},
};
use tenon_host::{AbiVersion, LoadError, ManifestError, Plugins, Settings, Step, search::Origin};
use tenon_tests::{
    build::output,
    fixtures,
    zoo::{Language, plugin},
};

fn plugins() -> Plugins {
    Plugins::with_settings(Settings::default()).unwrap()
}

/// Why a file is refused. Afterwards the same host still loads a good plugin.
fn refused(file: PathBuf) -> LoadError {
    let plugins = plugins();
    let report = plugins.load([file.clone(), plugin("zoo_second")]);
    let loaded: Vec<&str> = report.loaded.iter().map(|info| info.name.as_str()).collect();
    assert_eq!(loaded, ["zoo-second"], "one bad plugin hides no other");
    let [rejected] = &report.rejected[..] else {
        panic!("{}: expected one refusal, found {:?}", file.display(), report.rejected)
    };
    assert_eq!(rejected.candidate.origin, Origin::Explicit);
    let left: Vec<_> = plugins.registry().ops().map(|op| op.name.clone()).collect();
    let fixtures = left.iter().filter(|op| op.starts_with("Fixture"));
    assert_eq!(fixtures.count(), 0, "a refused plugin leaves nothing behind: {left:?}");
    rejected.error.clone()
}

/// A C fixture is refused at this step, with these parts in the message.
fn refused_at(name: &str, step: Step, parts: &[&str]) -> LoadError {
    says(refused(fixtures::c(name)), name, step, parts)
}

fn says(error: LoadError, name: &str, step: Step, parts: &[&str]) -> LoadError {
    let text = error.to_string();
    assert_eq!(error.step(), step, "{name}: {text}");
    for part in parts {
        assert!(text.contains(part), "{name}: expected {part:?} in {text:?}");
    }
    error
}

#[test]
fn a_missing_file() {
    let error = refused(output("c").join("libfixture_nowhere.so"));
    assert!(matches!(error, LoadError::File { .. }), "{error}");
    assert_eq!(error.step(), Step::Find);
}

#[test]
fn a_folder() {
    assert!(matches!(refused(output("c")), LoadError::NotAFile { found: "a folder", .. }));
}

#[test]
fn a_text() {
    let error = refused(fixtures::text());
    assert!(matches!(error, LoadError::NotALibrary { .. }), "{error}");
    says(error, "text", Step::Manifest, &["expected a shared library of this system"]);
}

#[test]
fn a_library_that_is_cut_short() {
    let whole = fs::read(Language::C.zoo()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for bytes in [0, 40, 64, 1000, whole.len() / 2, whole.len() - 1000] {
        let path = folder.path().join(format!("libfixture_cut_{bytes}.so"));
        fs::write(&path, &whole[..bytes]).unwrap();
        let error = refused(path);
        assert_eq!(error.step(), Step::Manifest, "{bytes} bytes: {error}");
    }
}

#[test]
fn a_library_that_is_no_plugin() {
    let error = refused_at("no_door", Step::Manifest, &["is not a plugin", "export_plugin!()"]);
    assert!(matches!(error, LoadError::NotAPlugin { .. }));
}

#[test]
fn two_root_symbols() {
    let parts = ["tenon_root_first", "tenon_root_second", "a library is one plugin"];
    let error = refused_at("two_roots", Step::Manifest, &parts);
    assert!(matches!(error, LoadError::TwoRoots { .. }));
}

#[test]
fn no_manifest() {
    let error = refused_at("no_manifest", Step::Manifest, &["no section 'tenon_manifest'"]);
    assert!(matches!(error, LoadError::NoManifest { .. }));
}

#[test]
fn malformed_manifests() {
    let problem = |name| match refused_at(name, Step::Manifest, &["manifest: "]) {
        LoadError::Manifest { problem, .. } => problem,
        other => panic!("{name}: {other}"),
    };
    assert!(matches!(problem("truncated_manifest"), ManifestError::Line { line: 1, .. }));
    assert_eq!(problem("no_plugin_record"), ManifestError::NoPlugin);
    assert!(matches!(problem("two_plugins"), ManifestError::TwoPlugins { .. }));
    assert_eq!(problem("not_utf8"), ManifestError::Utf8 { line: 1 });
}

#[test]
fn another_processor() {
    let error = refused_at("other_arch", Step::Manifest, &["is built for pdp11"]);
    assert!(matches!(error, LoadError::Architecture { .. }));
}

#[test]
fn a_cpu_feature_that_is_missing() {
    let error = refused_at("cpu_feature", Step::Manifest, &["lacks: fixture-impossible"]);
    assert!(matches!(error, LoadError::CpuFeatures { .. }));
}

#[test]
fn built_to_abort_on_panics() {
    let file = fixtures::panic_abort();
    let parts = ["panic = \"abort\"", "host.allow_panic_abort=true"];
    let error = says(refused(file.clone()), "panic_abort", Step::Manifest, &parts);
    assert!(matches!(error, LoadError::PanicStrategy { .. }));
    let allowed = with_knob("host.allow_panic_abort", "true");
    allowed.load([file]).into_result().unwrap();
}

fn with_knob(name: &str, value: &str) -> Plugins {
    let set = vec![(name.to_owned(), value.to_owned())];
    Plugins::with_settings(Settings { set, ..Settings::default() }).unwrap()
}

#[test]
fn a_digest_that_is_not_allowed() {
    let plugins = with_knob("host.allowed_digests", "00");
    let error = plugins.load([plugin("zoo_second")]).into_result().unwrap_err();
    assert!(matches!(error, LoadError::Digest { allowed: 1, .. }), "{error}");
    assert_eq!(error.step(), Step::Trust);
}

#[cfg(unix)]
#[test]
fn a_file_that_others_can_write() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("libzoo_writable.so");
    fs::copy(plugin("zoo_second"), &path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
    let plugins = with_knob("host.refuse_writable", "true");
    let error = plugins.load([path]).into_result().unwrap_err();
    assert!(matches!(error, LoadError::Writable { .. }), "{error}");
}

#[test]
fn a_symbol_that_nobody_defines() {
    let parts = ["the system cannot open the library", "fixture_defined_nowhere"];
    let error = refused_at("undefined_symbol", Step::Open, &parts);
    assert!(matches!(error, LoadError::Open { .. }));
}

#[test]
fn another_version_of_the_boundary() {
    for (name, place) in [("abi_in_manifest", "manifest"), ("abi_in_table", "table")] {
        let host = AbiVersion::HOST.to_string();
        let text = format!("its {place} says ABI 0.999, this host has {host}");
        let error = refused(fixtures::c(name));
        let step = error.step();
        let LoadError::Abi { place: found, .. } = says(error, name, step, &[&text]) else {
            panic!("{name}: expected LoadError::Abi")
        };
        assert_eq!(found, place);
        assert_eq!(step, Step::Handshake, "{name}");
    }
}

#[test]
fn a_plugin_that_declines() {
    let error = refused_at("declines", Step::Handshake, &["declines a host of ABI"]);
    assert!(matches!(error, LoadError::Declined { .. }));
}

#[test]
fn a_table_of_another_size() {
    let error = refused_at("table_size", Step::Handshake, &["struct_size of its table is 80"]);
    assert!(matches!(error, LoadError::TableSize { expected: 72, found: 80, .. }));
}

#[test]
fn a_table_without_a_required_entry() {
    let error = refused_at("no_register", Step::Handshake, &["'register_all'"]);
    assert!(matches!(error, LoadError::Table { .. }));
}

#[test]
fn a_root_that_is_none() {
    let error = refused_at("bad_root", Step::Handshake, &["its root module was refused"]);
    assert!(matches!(error, LoadError::Root { .. }));
}

#[test]
fn a_refusal_at_door_1_is_final() {
    let error = refused_at("both_doors", Step::Handshake, &["its root module was refused"]);
    assert!(matches!(error, LoadError::Root { .. }));
}

#[test]
fn a_changed_layout() {
    let error = refused(fixtures::changed_layout());
    let parts =
        ["flags", "expected u32", "found i32", "build the plugin with this host's tenon-sdk"];
    let error = says(error, "changed_layout", Step::Layout, &parts);
    let LoadError::Layout { difference, .. } = error else { panic!("{error}") };
    assert!(difference.starts_with("Root / v1 / PluginV1 / "), "{difference}");
    assert!(difference.len() < 400 && !difference.contains('\n'), "one line: {difference}");
}

#[test]
fn a_plugin_that_fails_to_open() {
    let parts = ["failed to open", "the fixture's library is not installed"];
    let error = refused_at("open_fails", Step::Start, &parts);
    let LoadError::Start { error, .. } = error else { panic!("{error}") };
    assert_eq!(error.code, tenon_abi::Code::FAILED_PRECONDITION);
}

#[test]
fn a_plugin_that_fails_to_register() {
    let parts = ["failed to register", "the fixture changed its mind"];
    let error = refused_at("register_fails", Step::Register, &parts);
    let LoadError::Register { error, .. } = error else { panic!("{error}") };
    assert_eq!(error.code, tenon_abi::Code::ABORTED);
}

#[test]
fn a_panic_while_registering() {
    let parts = ["a registration panicked: fixture panic", "panics_registering/src/lib.rs:"];
    let error = refused(fixtures::panics_registering());
    says(error, "panics_registering", Step::Register, &parts);
}

#[test]
fn a_manifest_that_differs() {
    let parts = [
        "op 'FixturePromised' () -> () with () is in the manifest, not registered",
        "op 'FixtureSurplus' () -> () with () is registered, not in the manifest",
    ];
    let error = refused_at("manifest_differs", Step::Compare, &parts);
    assert!(matches!(error, LoadError::Differs { .. }));
    let parts = [
        "case \"one; x: [1]\" is in the manifest, not registered",
        "case \"one; x: [2]\" is registered, not in the manifest",
    ];
    refused_at("cases_differ", Step::Compare, &parts);
}

/// What the registry says of a fixture.
fn registry_errors(name: &str, parts: &[&str]) -> Vec<RegistryError> {
    match refused_at(name, Step::Commit, parts) {
        LoadError::Commit { errors, .. } => errors,
        other => panic!("{name}: {other}"),
    }
}

#[test]
fn registrations_that_are_wrong() {
    let same = ["have the same key and priority 0", "change a priority or a label"];
    let errors = registry_errors("duplicate_kernel", &same);
    assert!(matches!(&errors[..], [RegistryError::SameKey { .. }]), "{errors:?}");

    let errors = registry_errors("null_compute", &["compute"]);
    assert!(matches!(&errors[..], [RegistryError::KernelEntry { entry: "compute", .. }]));

    let unknown = ["no op 'FixtureNobodyDefines' is registered", "load the plugin that defines it"];
    let errors = registry_errors("unknown_op", &unknown);
    assert!(matches!(&errors[..], [RegistryError::UnknownOp { .. }]), "{errors:?}");

    let errors = registry_errors("kernel_table_size", &["struct_size"]);
    assert!(matches!(&errors[..], [RegistryError::Raw(_)]), "{errors:?}");

    let errors = registry_errors("bad_spec", &["FixtureBadSpec", "x; flaot"]);
    assert!(matches!(&errors[..], [RegistryError::Op(_)]), "{errors:?}");

    let parts = [
        "fixture_bad_case",
        "op 'FixtureBadCase': case 2 \"bad; n in 1..9; z: [n]\" at byte 16: expected the name of an \
         input of the op before ':', found 'z: [n]'",
    ];
    let errors = registry_errors("bad_case", &parts);
    let [RegistryError::Op(OpError::Case { number: 2, position: 16, .. })] = &errors[..] else {
        panic!("{errors:?}")
    };
}

/// `avx-2` was taken for a feature that this machine lacks, and a kernel that never ran for a right one.
#[test]
fn a_feature_that_no_processor_has() {
    let parts = [
        "no processor has a feature 'avx-2': is 'avx2' meant?",
        "the names are ",
        "FixtureFeature",
    ];
    let plugins = [
        ("C", fixtures::c("unknown_feature")),
        ("C++", fixtures::opening("unknown_feature")),
        ("Rust", fixtures::unknown_feature()),
    ];
    for (language, file) in plugins {
        let error = says(refused(file), language, Step::Commit, &parts);
        assert!(matches!(error, LoadError::Commit { .. }), "{language}: {error}");
        let name = if cfg!(target_arch = "aarch64") { "sve2" } else { "avx512vl" };
        assert!(error.to_string().contains(name), "{language}: {error}");
    }
}

#[test]
fn an_op_that_is_defined_otherwise() {
    let plugins = plugins();
    let report = plugins.load([Language::Rust.zoo(), fixtures::c("clashing_op")]);
    assert_eq!(report.loaded.len(), 1, "the first one stays");
    let error = report.into_result().unwrap_err();
    let parts = ["op 'ZooScratch' is defined by", "clashing_op.c", "compute.rs"];
    let error = says(error, "clashing_op", Step::Commit, &parts);
    let LoadError::Commit { errors, .. } = error else { panic!("{error}") };
    assert!(matches!(&errors[..], [RegistryError::OpConflict { .. }]), "{errors:?}");
}

#[test]
fn a_name_that_is_taken() {
    let plugins = plugins();
    plugins.load([Language::Rust.zoo()]).into_result().unwrap();
    let error = plugins.load([fixtures::c("name_taken")]).into_result().unwrap_err();
    assert!(matches!(error, LoadError::NameTaken { .. }), "{error}");
    says(
        error,
        "name_taken",
        Step::Commit,
        &["a plugin of this name is loaded from", "replace it"],
    );
}

#[test]
fn every_c_fixture_is_refused() {
    let alone: BTreeSet<&str> = BTreeSet::from(["clashing_op", "name_taken"]);
    let names = fixtures::c_names();
    assert!(names.len() > 25, "{names:?}");
    for name in names.iter().filter(|name| !alone.contains(name.as_str())) {
        let error = refused(fixtures::c(name));
        let text = error.to_string();
        assert!(!text.contains('\n') && text.len() < 1000, "{name}: {text}");
    }
}

#[test]
fn both_doors_bring_what_their_manifests_say() {
    for language in Language::ALL {
        let plugins = plugins();
        let report = plugins.load([language.zoo(), language.device_zoo()]);
        let warnings: &[Warning] = &report.warnings;
        assert_eq!(warnings, [], "{language:?}");
        let loaded = report.into_result().unwrap();
        let names: Vec<&str> = loaded.iter().map(|info| info.name.as_str()).collect();
        assert_eq!(names, [language.plugin(), language.device_plugin()]);
        let registry = plugins.registry();
        assert!(registry.op(&language.op("Variadic")).is_some());
        assert!(registry.device_type(language.device_type()).is_some());
    }
}

#[test]
fn the_same_file_twice_is_a_no_op_also_by_a_link() {
    let plugins = plugins();
    let first = plugins.load([Language::C.zoo()]).into_result().unwrap();
    let before = plugins.registry();
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("libzoo_link.so");
    #[cfg(unix)]
    std::os::unix::fs::symlink(Language::C.zoo(), &link).unwrap();
    #[cfg(not(unix))]
    fs::copy(Language::C.zoo(), &link).unwrap();
    let report = plugins.load([Language::C.zoo(), link]);
    assert_eq!((report.loaded.len(), report.rejected.len()), (0, 0));
    assert_eq!(report.present[0].id, first[0].id);
    assert_eq!(before.kernels().count(), plugins.registry().kernels().count());
}

#[test]
fn five_hundred_kernels() {
    let plugins = plugins();
    plugins.load([plugin("zoo_many")]).into_result().unwrap();
    assert_eq!(plugins.registry().kernels_of("ZooMany").len(), 500);
}
