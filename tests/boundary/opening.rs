//! Opening libraries: what runs of them as they are opened ends another process, never this one; damaged files are
//! refused; and what C++ shares between libraries by itself is a plugin's own.

#![cfg(target_os = "linux")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};
use tenon_framework::Code;
use tenon_graph::{GraphBuilder, GraphError};
use tenon_host::{LoadError, Plugins, Settings, Step, Unopened, digest::digest_of};
use tenon_runtime::Session;
use tenon_tests::{
    fixtures::{self, opening},
    process::alone,
    session::{floats, library, run, session, turn, values},
    zoo::{Language, plugin},
};

fn plugins(knobs: &[(&str, &str)]) -> Plugins {
    let set = knobs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Plugins::with_settings(Settings { set, ..Settings::default() }).unwrap()
}

/// Why a library is refused when it is opened. Another plugin that is loaded with it is there.
fn refused_with(name: &str, knobs: &[(&str, &str)]) -> String {
    let report = plugins(knobs).load([opening(name), plugin("zoo_second")]);
    assert_eq!(report.loaded.len(), 1, "{name}: one bad plugin hides no other");
    let [rejected] = &report.rejected[..] else { panic!("{name}: {:?}", report.rejected) };
    let error = &rejected.error;
    assert!(matches!(error, LoadError::Probe { .. }), "{name}: {error}");
    assert_eq!((error.step(), error.code()), (Step::Open, Code::FAILED_PRECONDITION), "{name}");
    error.to_string()
}

fn refused(name: &str, parts: &[&str]) {
    let text = refused_with(name, &[]);
    parts.iter().for_each(|part| assert!(text.contains(part), "{name}: {part:?} in {text}"));
}

#[test]
fn a_constructor_that_throws_ends_another_process() {
    let parts = ["plugin fixture-throws (", "was ended by signal 6 (SIGABRT)", "what():  bad luck"];
    refused("throws", &parts);
}

#[test]
fn a_constructor_that_crashes_ends_another_process() {
    let how =
        "was ended by signal 11 (SIGSEGV); it last wrote: the fixture crashes: mend what runs";
    refused("crashes", &[how, "'tenon inspect' tries the file anew"]);
}

#[test]
fn a_constructor_that_exits_as_if_all_were_well_is_refused() {
    refused("exits", &["exited with status 0; it last wrote: the fixture has done its work"]);
}

/// It also writes without end, and leaves a process behind.
#[test]
fn a_constructor_that_hangs_is_given_up_and_ended_with_what_it_started() {
    let began = Instant::now();
    let text = refused_with("hangs", &[("host.probe_timeout_ms", "400")]);
    assert!(began.elapsed() < Duration::from_secs(10));
    assert!(text.contains("was not back within 400ms (host.probe_timeout_ms)"), "{text}");
    assert!(text.len() < 1500, "{} bytes of message", text.len());
    let again = Instant::now();
    refused("hangs", &["was not back within 400ms"]);
    assert!(again.elapsed() < Duration::from_secs(5), "it is remembered");
    // Both processes are of one group, which is ended before the verdict is there.
    let left = running(&opening("hangs"));
    assert_eq!(left, Vec::<String>::new());
}

/// Processes that have a library mapped.
fn running(library: &Path) -> Vec<String> {
    let name = library.display().to_string();
    let processes = fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        let maps = fs::read_to_string(entry.path().join("maps")).unwrap_or_default();
        maps.contains(&name)
    });
    processes.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn a_constructor_that_leaves_a_process_behind_holds_nobody_up() {
    let began = Instant::now();
    plugins(&[]).load([opening("leaves_a_child")]).into_result().unwrap();
    assert!(began.elapsed() < Duration::from_millis(1900), "{:?}", began.elapsed());
}

/// What is missing may be there the next time.
#[test]
fn what_the_linker_refuses_is_told_and_not_remembered() {
    for _ in 0..2 {
        let report = plugins(&[]).load([fixtures::c("undefined_symbol")]);
        let error = report.into_result().unwrap_err();
        assert!(matches!(error, LoadError::Open { .. }), "{error}");
        assert!(error.to_string().contains("fixture_defined_nowhere"), "{error}");
    }
}

/// A place with a cache of its own and a plugin that counts how often it is opened.
struct Counted {
    folder: PathBuf,
}

impl Counted {
    fn opened(&self) -> usize {
        fs::read_to_string(self.folder.join("opened")).unwrap_or_default().lines().count()
    }

    /// A copy of the plugin that no other process has seen.
    fn copy(&self, name: &str) -> PathBuf {
        let mut bytes = fs::read(opening("counts")).unwrap();
        bytes.extend(name.as_bytes());
        let path = self.folder.join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    fn verdict(&self, library: &Path) -> PathBuf {
        let digest = digest_of(&fs::File::open(library).unwrap()).unwrap();
        self.folder.join("cache/tenon/verdicts").join(digest)
    }
}

/// Runs the body in a process with a cache and a count of its own.
fn counted(test: &str, body: impl FnOnce(&Counted)) {
    const PLACE: &str = "TENON_TESTS_COUNTED";
    let folder =
        std::env::var_os(PLACE).map_or_else(|| tempfile::tempdir().unwrap().keep(), PathBuf::from);
    let variables = [
        (PLACE, folder.clone()),
        ("XDG_CACHE_HOME", folder.join("cache")),
        ("FIXTURE_OPENED", folder.join("opened")),
        ("FIXTURE_HELD_UP", folder.join("held-up")),
    ];
    if alone(&format!("opening::{test}"), &variables) {
        body(&Counted { folder });
    } else {
        fs::remove_dir_all(&folder).unwrap();
    }
}

#[test]
fn a_library_is_tried_once_and_a_damaged_verdict_is_not_believed() {
    counted("a_library_is_tried_once_and_a_damaged_verdict_is_not_believed", |place| {
        let library = place.copy("libonce.so");
        plugins(&[]).load([library.clone()]).into_result().unwrap();
        assert_eq!(place.opened(), 2, "once in another process, once here");
        let kept = fs::read_to_string(place.verdict(&library)).unwrap();
        // What other processes find: a verdict that says something else is what the next one goes by.
        let other = place.copy("libother.so");
        fs::write(place.verdict(&other), kept.replace("null", "\"forged\"")).unwrap();
        plugins(&[]).load([other]).into_result().expect("its checksum does not fit");
        assert_eq!(place.opened(), 4);
        let never = place.copy("libnever.so");
        plugins(&[("host.probe_libraries", "never")]).load([never.clone()]).into_result().unwrap();
        assert_eq!(place.opened(), 5);
        assert!(!place.verdict(&never).exists());
    });
}

/// A pipe, a link and a folder in the place of a verdict.
#[test]
fn what_is_no_file_in_the_place_of_a_verdict_holds_nobody_up() {
    counted("what_is_no_file_in_the_place_of_a_verdict_holds_nobody_up", |place| {
        let files = ["libpipe.so", "liblink.so", "libfolder.so"].map(|name| place.copy(name));
        let [pipe, link, folder] =
            [&files[0], &files[1], &files[2]].map(|file| place.verdict(file));
        fs::create_dir_all(pipe.parent().unwrap()).unwrap();
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let target = place.folder.join("target");
        fs::write(&target, "kept").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        fs::create_dir(folder).unwrap();
        for (at, file) in files.iter().enumerate() {
            plugins(&[]).load([file.clone()]).into_result().unwrap();
            assert_eq!(place.opened(), 2 * (at + 1));
        }
        assert_eq!(fs::read_to_string(&target).unwrap(), "kept");
    });
}

/// As a person does who has mended what a library needs.
#[test]
fn an_inspection_tries_a_refused_library_anew() {
    counted("an_inspection_tries_a_refused_library_anew", |place| {
        let library = place.copy("libanew.so");
        let held_up = place.folder.join("held-up");
        fs::write(&held_up, "").unwrap();
        let load = || plugins(&[("host.probe_timeout_ms", "1500")]).load([library.clone()]);
        let late = load().into_result().unwrap_err().to_string();
        assert!(late.contains("was not back within 1.5s"), "{late}");
        fs::remove_file(&held_up).unwrap();
        let remembered = load().into_result().unwrap_err().to_string();
        assert_eq!(remembered, late);
        let inspected = plugins(&[]).inspect(&library).unwrap();
        assert!(inspected.refused.is_none(), "{:?}", inspected.refused);
        load().into_result().expect("the verdict is the later one");
    });
}

#[test]
fn reading_a_file_runs_nothing_of_it() {
    counted("reading_a_file_runs_nothing_of_it", |place| {
        let library = place.copy("libread.so");
        let unopened = Unopened::read(&library).unwrap();
        assert_eq!(unopened.inspection().manifest.plugin.name, "fixture-counts");
        assert_eq!(place.opened(), 0);
    });
}

/// The program headers of a file, as places in it.
fn program_headers(bytes: &[u8]) -> std::ops::Range<usize> {
    let number = |at: usize, width: usize| {
        bytes[at..at + width].iter().rev().fold(0usize, |sum, byte| sum << 8 | usize::from(*byte))
    };
    let (begin, size, count) = (number(32, 8), number(54, 2), number(56, 2));
    begin..begin + size * count
}

/// A small generator: the damages are the same each time.
fn next(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize
}

/// Was the end of the process in the dynamic linker, for one file in ten.
#[test]
fn damaged_program_headers_are_refused_or_do_no_harm() {
    let whole = fs::read(Language::C.zoo()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut state = 1;
    let (mut refused, mut loaded) = (0, 0);
    for number in 0..200 {
        let mut bytes = whole.clone();
        let headers = program_headers(&bytes);
        let place = headers.start + next(&mut state) % headers.len();
        bytes[place] ^= 1 + (next(&mut state) % 255) as u8;
        let path = folder.path().join(format!("libdamaged_{number}.so"));
        fs::write(&path, bytes).unwrap();
        match plugins(&[]).load([path]).into_result() {
            Ok(_) => loaded += 1,
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains(&format!("libdamaged_{number}.so")), "{text}");
                assert!(error.step() <= Step::Open, "byte {place}: {text}");
                refused += 1;
            }
        }
    }
    // A seventh of a program header is an address that no system uses.
    assert!(refused > 100 && loaded > 28, "{refused} refused, {loaded} loaded");
}

/// Without the other process: what the check lets pass is then opened here.
#[test]
fn damaged_program_headers_are_found_before_anything_is_opened() {
    let whole = fs::read(Language::C.zoo()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("libdamaged.so");
    let headers = program_headers(&whole);
    let said = |place: usize, byte: u8| {
        let mut bytes = whole.clone();
        bytes[place] = byte;
        fs::write(&path, bytes).unwrap();
        Unopened::read(&path).err().map(|error| (error.step(), error.code(), error.to_string()))
    };
    assert_eq!(said(headers.start, whole[headers.start]), None);
    // Address, offset and size of the second one, each far away.
    for field in [8, 16, 32, 40] {
        let (step, code, text) = said(headers.start + 56 + field + 5, 0x7f).unwrap();
        assert_eq!((step, code), (Step::Manifest, Code::DATA_LOSS), "{text}");
        assert!(text.contains("it is damaged: program header "), "{text}");
        assert!(text.ends_with("build it again, or copy it again"), "{text}");
    }
}

/// The sections, the tables and the code of a library, anywhere in the file: it is read, and nothing is opened.
#[test]
fn reading_a_file_that_is_damaged_anywhere_ends_in_an_answer() {
    let whole = fs::read(opening("counts")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("libdamaged.so");
    let (mut state, mut refused) = (7, 0);
    for number in 0..2000 {
        let mut bytes = whole.clone();
        for _ in 0..1 + number % 8 {
            let place = next(&mut state) % bytes.len();
            bytes[place] = next(&mut state) as u8;
        }
        bytes.truncate(bytes.len() - (number % 5) * (next(&mut state) % bytes.len()) / 5);
        fs::write(&path, bytes).unwrap();
        refused += usize::from(Unopened::read(&path).is_err());
    }
    assert!((500..2000).contains(&refused), "{refused} refused");
}

fn scaled(b: &mut GraphBuilder<'_>, op: &str, name: &str) -> Result<(), GraphError> {
    let x = b.constant(&format!("{name}/x"), floats(&[1.0, 2.0]))?;
    b.op(op).name(name).input(x).build().map(drop)
}

fn value(session: &Session, name: &str) -> Vec<f32> {
    values(&run(session, &[], &[name]).expect("a step")[0])
}

fn runtime(libraries: &[PathBuf]) -> tenon_runtime::Runtime {
    use tenon_runtime::{Runtime, RuntimeOptions};
    let options = RuntimeOptions {
        settings: Settings::default(),
        ..RuntimeOptions::with_plugins(libraries.iter().cloned().chain([library("tenon_cpu")]))
    };
    let (runtime, report) = Runtime::new(options).expect("a runtime");
    report.into_result().expect("right plugins");
    runtime
}

/// Was the code and the variables of the first one for both.
#[test]
fn two_plugins_in_cpp_with_classes_of_one_name_have_their_own() {
    let _turn = turn();
    let runtime = runtime(&[opening("tens"), opening("thousands")]);
    let session = session(&runtime, |b| {
        scaled(b, "FixtureTens", "tens")?;
        scaled(b, "FixtureThousands", "thousands")
    });
    assert_eq!(value(&session, "tens"), [10.0, 20.0]);
    assert_eq!(value(&session, "thousands"), [1000.0, 2000.0]);
}

/// Was the old build's code after a replacement that was told as done.
#[test]
fn a_replacement_in_cpp_runs_its_own_code() {
    let _turn = turn();
    let runtime = runtime(&[opening("tens")]);
    let session = session(&runtime, |b| scaled(b, "FixtureTens", "tens"));
    assert_eq!(value(&session, "tens"), [10.0, 20.0]);
    runtime.replace(opening("tens_next")).expect("a build of the same plugin");
    session.refresh().expect("the op is as before");
    assert_eq!(value(&session, "tens"), [20.0, 40.0]);
}

#[test]
fn an_inspection_names_the_symbols_of_which_a_process_has_one() {
    let inspection = plugins(&[]).inspect(&opening("tens")).unwrap();
    let names = &inspection.unique_symbols;
    assert!(names.iter().any(|name| name == "_ZN5ScaleIfE6factorE"), "{names:?}");
    assert!(inspection.refused.is_none(), "{:?}", inspection.refused);
    assert!(plugins(&[]).inspect(&opening("counts")).unwrap().unique_symbols.is_empty());
}

/// Also from a sealed copy, whose digest is that of the file.
#[test]
fn a_trusted_plugin_in_cpp_has_its_own_too() {
    let digest = digest_of(&fs::File::open(opening("tens")).unwrap()).unwrap();
    let trusting = plugins(&[("host.allowed_digests", &digest)]);
    let loaded = trusting.load([opening("tens")]).into_result().unwrap();
    assert_eq!(loaded[0].digest, digest);
    let error = trusting.load([opening("thousands")]).into_result().unwrap_err();
    assert_eq!(error.step(), Step::Trust);
}
