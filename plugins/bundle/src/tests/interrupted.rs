//! Saves that end early, or meet each other: the last complete checkpoint can be read at every moment.

use super::{Elements, Named, any, read_bundle};
use crate::{BundleWriter, Content, Files, Operation, Saved, index_file, write_slices};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
    sync::atomic::{AtomicUsize, Ordering},
};
use tenon_sdk::{Code, DType};

/// Says what a child process saves: the prefix, the value, and the change of the file system before which it ends.
const PREFIX: &str = "TENON_TEST_SAVE_PREFIX";
const VALUE: &str = "TENON_TEST_SAVE_VALUE";
const LAST: &str = "TENON_TEST_SAVE_LAST";

/// Elements of a tensor: enough for several writes.
const COUNT: usize = 1 << 20;

pub(super) fn save(files: Files<'_>, prefix: &Path, value: u8) -> Result<(), crate::BundleError> {
    let mut writer = BundleWriter::create(files, prefix)?;
    writer.add(b"large", DType::UINT8, &[COUNT as i64], Content::Bytes(&vec![value; COUNT]))?;
    writer.add(b"small", DType::UINT8, &[], Content::Bytes(&[value]))?;
    writer.finish()
}

/// The value that a checkpoint has in all elements.
pub(super) fn saved(prefix: &Path) -> u8 {
    let tensors = read_bundle(prefix).unwrap_or_else(|error| panic!("{error}"));
    let bytes = |one: &Named| match &one.elements {
        Elements::Bytes(bytes) => bytes.clone(),
        Elements::Strings(_) => panic!("expected numbers"),
    };
    let all: Vec<u8> = tensors.iter().flat_map(bytes).collect();
    assert_eq!(all.len(), COUNT + 1);
    assert!(all.iter().all(|&byte| byte == all[0]), "two saves are mixed");
    all[0]
}

/// What a child process does; nothing in the process of the tests.
#[test]
fn saves_as_a_child() {
    let Some(prefix) = env::var_os(PREFIX).map(PathBuf::from) else { return };
    let number = |name| env::var(name).unwrap().parse::<usize>().unwrap();
    let (value, last) = (number(VALUE) as u8, number(LAST));
    let count = AtomicUsize::new(0);
    let observer = |_: Operation| {
        if count.fetch_add(1, Ordering::Relaxed) == last {
            std::process::abort();
        }
    };
    let access = any();
    let result = save(Files::new(&access, "prefix").observed(&observer), &prefix, value);
    if let Err(error) = result {
        println!("code {} of {error}", error.code().name());
        std::process::exit(3);
    }
}

fn child(prefix: &Path, value: u8, last: usize) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "tests::interrupted::saves_as_a_child", "--nocapture"]);
    command.env(PREFIX, prefix).env(VALUE, value.to_string()).env(LAST, last.to_string());
    command
}

fn run(command: &mut Command) -> ExitStatus {
    command.output().unwrap().status
}

/// Ends a save before each of its changes of the file system. `next` gives the prefix of a save.
fn ends_everywhere(next: fn(&Path, usize) -> PathBuf) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let access = any();
    let first = next(folder.path(), 0);
    save(Files::new(&access, "prefix"), &first, 1).unwrap();
    let mut complete = (first, 1);
    for last in 0.. {
        let prefix = next(folder.path(), last + 1);
        let value = 2 + last as u8;
        let ended = run(&mut child(&prefix, value, last));
        let found = saved(&complete.0);
        if prefix == complete.0 && found == value {
            complete.1 = value;
        }
        assert_eq!(found, complete.1, "ended before change {last}");
        if index_file(&prefix).exists() {
            // An index is there when all is.
            complete = (prefix.clone(), saved(&prefix));
        }
        if ended.success() {
            assert_eq!(saved(&prefix), value);
            return last;
        }
    }
    0
}

#[test]
fn a_save_that_is_killed_leaves_the_last_checkpoint() {
    let changes = ends_everywhere(|folder, number| folder.join(format!("model-{number}")));
    assert!(changes >= 9, "{changes}");
}

#[test]
fn a_save_that_is_killed_leaves_the_checkpoint_that_it_replaces() {
    let changes = ends_everywhere(|folder, _| folder.join("model"));
    assert!(changes >= 10, "{changes}");
}

#[test]
fn a_prefix_keeps_one_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let (access, prefix) = (any(), folder.path().join("model"));
    for value in 1..5 {
        save(Files::new(&access, "prefix"), &prefix, value).unwrap();
        assert_eq!(saved(&prefix), value);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}

#[test]
fn writers_of_one_prefix_do_not_mix() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("model");
    std::thread::scope(|scope| {
        for value in [1, 2, 3] {
            let prefix = &prefix;
            scope.spawn(move || {
                let access = any();
                for _ in 0..10 {
                    save(Files::new(&access, "prefix"), prefix, value).unwrap();
                }
            });
        }
    });
    assert!((1..=3).contains(&saved(&prefix)));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

/// The limit on the size of a file stands for a disk that is full.
#[cfg(unix)]
#[test]
fn a_file_that_cannot_grow_leaves_the_last_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let (access, prefix) = (any(), folder.path().join("model"));
    save(Files::new(&access, "prefix"), &prefix, 1).unwrap();
    let saving = child(&prefix, 2, usize::MAX);
    let mut shell = Command::new("sh");
    // Blocks of 512 bytes: half of the tensor fits.
    shell.args(["-c", "trap '' XFSZ; ulimit -f 1024; exec \"$0\" \"$@\""]);
    shell.arg(saving.get_program()).args(saving.get_args());
    shell.envs(saving.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = shell.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("code OUT_OF_RANGE of prefix: file"), "{text}");
    assert_eq!(saved(&prefix), 1);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "a temporary file is left");
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), b"x").unwrap();
    let (access, prefix) = (any(), folder.path().join("file/model"));
    let files = Files::new(&access, "prefix");
    let error = save(files, &prefix, 1).unwrap_err();
    assert!(matches!(error.code(), Code::FAILED_PRECONDITION | Code::ALREADY_EXISTS), "{error}");
    assert!(error.to_string().contains("file"), "{error}");
    let one = Saved {
        name: b"x",
        part: None,
        dtype: DType::UINT8,
        dims: &[],
        content: Content::Bytes(&[1]),
    };
    assert!(write_slices(files, &prefix, &[one]).is_err());
}

/// The user of the tests may write everywhere if it is root; then the file system itself is asked, which `proc` refuses.
#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let access = any();
    let error = save(Files::new(&access, "prefix"), Path::new("/proc/model"), 1).unwrap_err();
    assert!(matches!(error.code(), Code::NOT_FOUND | Code::PERMISSION_DENIED), "{error}");
    assert!(error.to_string().contains("/proc/model"), "{error}");
}
