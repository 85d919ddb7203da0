//! Saves that the system refuses, each in a process of its own: full disks, folders that may not be written. The last
//! complete checkpoint stays, and nothing else is left.

#![cfg(unix)]

use super::{
    any,
    interrupted::{save, saved},
    read_bundle,
};
use crate::{BundleError, BundleWriter, Content, Files, index_file, merge};
use std::{
    env, fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Output},
};
use tenon_sdk::DType;

/// What a child process does, and in which folder.
const ACTION: &str = "TENON_TEST_REFUSED_ACTION";
const FOLDER: &str = "TENON_TEST_REFUSED_FOLDER";

/// Names whose index has several KiB, although their tensors have some bytes.
fn many_names(files: Files<'_>, prefix: &Path, first: u8) -> Result<(), BundleError> {
    let mut writer = BundleWriter::create(files, prefix)?;
    for at in 0..32u8 {
        let name: Vec<u8> =
            (0..200u32).map(|byte| b'a' + (u32::from(first + at) * byte % 23) as u8).collect();
        let name = [&[b'A' + at], &name[..]].concat();
        writer.add(&name, DType::UINT8, &[], Content::Bytes(&[first]))?;
    }
    writer.finish()
}

#[test]
fn acts_as_a_child() {
    let (Ok(action), Some(folder)) = (env::var(ACTION), env::var_os(FOLDER)) else { return };
    let (folder, access) = (PathBuf::from(folder), any());
    let files = Files::new(&access, "prefix");
    let done = match action.as_str() {
        "save" => save(files, &folder.join("model"), 2),
        "names" => many_names(files, &folder.join("model"), 2),
        "merge" => merge(
            files,
            &["a", "b"].map(|part| folder.join(part)),
            &folder.join("model"),
            true,
            false,
        ),
        "twice" => {
            save(files, &folder.join("model"), 1).unwrap();
            let refused = save(files, &folder.join("model"), 2);
            assert_eq!(saved(&folder.join("model")), 1);
            assert_eq!(names(&folder), ["model.data-00000-of-00001", "model.index"]);
            refused
        }
        other => panic!("no action '{other}'"),
    };
    if let Err(error) = done {
        println!("code {} of {error}", error.code().name());
        std::process::exit(3);
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn child(action: &str, folder: &Path) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "tests::refused::acts_as_a_child", "--nocapture"]);
    command.env(ACTION, action).env(FOLDER, folder);
    command
}

/// Runs a child below a shell that first does something.
fn below(tool: &[&str], before: &str, child: &Command) -> Output {
    let mut shell = Command::new(tool[0]);
    shell.args(&tool[1..]).args(["-c", &format!("{before} && exec \"$0\" \"$@\"")]);
    shell.arg(child.get_program()).args(child.get_args());
    shell.envs(child.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.output().unwrap()
}

fn assert_refused(output: &Output, expected: &str) {
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{text}{errors}");
    assert!(text.contains(expected), "expected {expected}, found {text}");
}

/// A file system of 1.5 MiB, in name spaces of its own: without them, `ulimit` stands for a full disk in the tests below.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_leaves_the_last_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let mount = "mount -t tmpfs -o size=1536k none \"$TENON_TEST_REFUSED_FOLDER\"";
    let space = ["unshare", "-rm", "sh"];
    let mut probe = Command::new(space[0]);
    probe.args(&space[1..]).arg("-c").arg(mount).env(FOLDER, folder.path());
    let probe = probe.output();
    if !probe.is_ok_and(|probe| probe.status.success()) {
        println!("skipped: this user cannot mount a file system in name spaces of its own");
        return;
    }
    let output = below(&space, mount, &child("twice", folder.path()));
    assert_refused(&output, "code RESOURCE_EXHAUSTED of prefix: file '");
    assert_refused(&output, "No space left on device");
}

#[test]
fn a_disk_that_is_full_for_the_index_leaves_the_last_checkpoint() {
    let (folder, access) = (tempfile::tempdir().unwrap(), any());
    let prefix = folder.path().join("model");
    many_names(Files::new(&access, "prefix"), &prefix, 1).unwrap();
    assert!(fs::metadata(index_file(&prefix)).unwrap().len() > 4096);
    let before = (names(folder.path()), read_bundle(&prefix).unwrap());
    // Blocks of 512 bytes.
    let output = below(&["sh"], "trap '' XFSZ && ulimit -f 4", &child("names", folder.path()));
    assert_refused(&output, "code OUT_OF_RANGE of prefix: file '");
    assert_eq!((names(folder.path()), read_bundle(&prefix).unwrap()), before);
}

#[test]
fn a_merge_on_a_full_disk_leaves_what_it_was_to_merge() {
    let (folder, access) = (tempfile::tempdir().unwrap(), any());
    let files = Files::new(&access, "prefix");
    many_names(files, &folder.path().join("a"), 1).unwrap();
    let mut writer = BundleWriter::create(files, &folder.path().join("b")).unwrap();
    writer.add(b"b", DType::UINT8, &[1], Content::Bytes(&[7])).unwrap();
    writer.finish().unwrap();
    let before = names(folder.path());
    let output = below(&["sh"], "trap '' XFSZ && ulimit -f 4", &child("merge", folder.path()));
    assert_refused(&output, "code OUT_OF_RANGE of prefix: file '");
    assert_eq!(names(folder.path()), before);
    assert_eq!(read_bundle(&folder.path().join("a")).unwrap().len(), 32);
    assert_eq!(read_bundle(&folder.path().join("b")).unwrap().len(), 1);
}

/// A superuser may write everywhere, so that the child is another user then.
#[test]
fn a_folder_that_may_only_be_read_leaves_the_last_checkpoint() {
    /// The user `nobody`, as most systems number it.
    const NOBODY: u32 = 65_534;
    let (folder, access) = (tempfile::tempdir().unwrap(), any());
    let prefix = folder.path().join("model");
    save(Files::new(&access, "prefix"), &prefix, 1).unwrap();
    let allow = |mode| fs::set_permissions(folder.path(), PermissionsExt::from_mode(mode)).unwrap();
    allow(0o555);
    let mut command = child("save", folder.path());
    if fs::write(folder.path().join("probe"), b"").is_ok() {
        command.uid(NOBODY);
        fs::remove_file(folder.path().join("probe")).unwrap();
    }
    let output = command.output();
    allow(0o755);
    match output {
        Ok(output) => assert_refused(&output, "code PERMISSION_DENIED of prefix: file '"),
        Err(error) => println!("skipped: another user cannot run this program: {error}"),
    }
    assert_eq!(saved(&prefix), 1);
    assert_eq!(names(folder.path()), ["model.data-00000-of-00001", "model.index"]);
}

#[test]
fn processes_that_save_to_one_prefix_do_not_mix() {
    let (folder, access) = (tempfile::tempdir().unwrap(), any());
    let prefix = folder.path().join("model");
    let children: Vec<_> = (0..3)
        .map(|_| child("save", folder.path()).stdout(std::process::Stdio::null()).spawn())
        .collect();
    for _ in 0..5 {
        save(Files::new(&access, "prefix"), &prefix, 1).unwrap();
    }
    for child in children {
        assert!(child.unwrap().wait().unwrap().success());
    }
    assert!([1, 2].contains(&saved(&prefix)));
    assert_eq!(names(folder.path()).len(), 2);
}
