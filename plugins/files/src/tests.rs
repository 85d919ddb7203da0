//! Tests which files may be opened, on Unix; tests/graphs/files.rs tests the ops.
#![cfg(unix)]

use super::*;
use rustix::{
    fd::{AsFd, OwnedFd},
    fs::OFlags,
    io::Errno,
};
use std::{fs, os::unix::fs::symlink};
use tempfile::TempDir;

/// `top` with a file, folders, and links that stay inside and lead outside; files outside are
/// beside it.
struct Place(TempDir);

impl Place {
    fn new() -> Place {
        let place = TempDir::new().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::create_dir_all(at("top/inner/deep")).unwrap();
        fs::write(at("secret"), "secret").unwrap();
        fs::create_dir(at("outside")).unwrap();
        fs::write(at("outside/file"), "secret").unwrap();
        fs::write(at("top/file"), "here").unwrap();
        fs::write(at("top/inner/file"), "there").unwrap();
        symlink("inner", at("top/to_inner")).unwrap();
        symlink("../secret", at("top/to_secret")).unwrap();
        symlink(at("secret"), at("top/to_secret_whole")).unwrap();
        symlink("../outside", at("top/to_outside")).unwrap();
        symlink("/proc/self/root", at("top/to_root")).unwrap();
        Place(place)
    }

    fn top(&self) -> PathBuf {
        self.0.path().join("top")
    }

    fn access(&self) -> Access {
        Access { reach: Reach::Under(self.top()), most: 100, plugin: "text" }
    }
}

const OUTSIDE: [&str; 9] = [
    "../secret",
    "inner/../../secret",
    "to_secret",
    "to_secret_whole",
    "to_outside/file",
    "to_outside/new",
    "to_outside/new/file",
    "to_root/etc/passwd",
    "to_inner/../../secret",
];

#[test]
fn neither_links_nor_dots_lead_out_of_the_folder() {
    let place = Place::new();
    let access = place.access();
    let refused = |name: &Path| {
        let errors = [
            access.contents("filename", name).map(|_| ()),
            access.write("filename", name, b"x"),
            access.append("output_stream", name, b"x"),
        ];
        for error in errors.into_iter().map(Result::unwrap_err) {
            assert_eq!(error.code, Code::PERMISSION_DENIED, "{name:?}: {}", error.message);
            let wanted = format!(
                "is not under '{}', the folder that knob text.files",
                place.top().display()
            );
            assert!(error.message.contains(&wanted), "{}", error.message);
        }
        assert!(!access.exists(name) && !access.is_folder(name), "{name:?}");
    };
    for name in OUTSIDE {
        refused(Path::new(name));
        refused(&place.top().join(name));
    }
    refused(&place.0.path().join("secret"));
    refused(Path::new("/proc/self/environ"));
    assert!(access.names(Path::new("to_outside")).is_empty());
    assert!(access.may_look("pattern", Path::new("/etc/")).is_err());
    assert_eq!(fs::read(place.0.path().join("secret")).unwrap(), b"secret");
    assert_eq!(fs::read_dir(place.0.path().join("outside")).unwrap().count(), 1);
}

#[test]
fn what_is_in_the_folder_is_read_and_written() {
    let place = Place::new();
    let access = place.access();
    let read = |name: &str| access.contents("filename", Path::new(name)).unwrap();
    assert_eq!(read("file"), b"here");
    assert_eq!(read("inner/../file"), b"here");
    assert_eq!(read("to_inner/file"), b"there");
    assert_eq!(read(place.top().join("inner/file").to_str().unwrap()), b"there");
    for name in ["new", "one/two/three/new", "to_inner/more/new"] {
        access.write("filename", Path::new(name), b"longer text").unwrap();
        access.write("filename", Path::new(name), b"text").unwrap();
        access.append("output_stream", Path::new(name), b" and more").unwrap();
        assert_eq!(read(name), b"text and more");
    }
    let mut names = access.names(Path::new("inner"));
    names.sort();
    assert_eq!(names, [&b"deep"[..], b"file", b"more"]);
    assert!(access.exists(Path::new("inner/file")) && access.is_folder(Path::new("to_inner")));
    assert!(!access.exists(Path::new("inner/none")) && !access.is_folder(Path::new("file")));
}

#[test]
fn step_by_step_no_link_is_followed() {
    let place = Place::new();
    let top = fs::File::open(place.top()).unwrap();
    let open = |name: &str| -> Result<OwnedFd, Errno> {
        system::step_by_step(top.as_fd(), Path::new(name), OFlags::RDONLY | OFlags::CLOEXEC)
    };
    for name in OUTSIDE.into_iter().chain(["to_inner/file", "/etc/passwd", ".."]) {
        assert_eq!(open(name).unwrap_err(), Errno::XDEV, "{name}");
    }
    for name in ["file", "inner/file", "./inner/./file", "inner", "."] {
        open(name).unwrap();
    }
    assert_eq!(open("file/inner").unwrap_err(), Errno::NOTDIR);
    assert_eq!(open("none/inner").unwrap_err(), Errno::NOENT);
}

#[cfg(target_os = "linux")]
#[test]
fn only_regular_files_are_opened() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let place = Place::new();
    let pipe = place.top().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let any = Access { reach: Reach::Any, most: 100, plugin: "text" };
    for access in [any.clone(), place.access()] {
        let error = access.contents("filename", &pipe).unwrap_err();
        assert!(
            error.message.contains("expected a regular file, found a pipe"),
            "{}",
            error.message
        );
        let error = access.write("filename", &pipe, b"x").unwrap_err();
        assert!(error.message.contains("found a pipe or a socket"), "{}", error.message);
        let error = access.contents("filename", &place.top()).unwrap_err();
        assert!(error.message.contains("found a folder"), "{}", error.message);
        assert_eq!(error.code, Code::FAILED_PRECONDITION);
    }
    for device in ["/dev/zero", "/dev/null"] {
        let error = any.contents("filename", Path::new(device)).unwrap_err();
        assert!(error.message.contains("found a device"), "{}", error.message);
        assert!(any.append("output_stream", Path::new(device), b"x").is_err());
    }
}

#[test]
fn the_size_is_looked_at_before_and_while_reading() {
    let place = Place::new();
    let (at, any) =
        (place.top().join("large"), Access { reach: Reach::Any, most: 100, plugin: "text" });
    for size in [100, 101] {
        fs::write(&at, vec![7; size]).unwrap();
        let read = any.contents("filename", &at).map(|bytes| bytes.len());
        assert_eq!(read.ok(), (size == 100).then_some(size));
    }
    let error = any.contents("filename", &at).unwrap_err();
    assert_eq!(error.code, Code::RESOURCE_EXHAUSTED);
    assert!(
        error.message.contains("has 101 bytes, while knob text.file_bytes lets 100"),
        "{}",
        error.message
    );
    let all = Access { reach: Reach::Any, most: u64::MAX, plugin: "text" };
    // A file that reports a size of 0 bytes.
    if cfg!(target_os = "linux") {
        let status = Path::new("/proc/self/status");
        assert!(all.contents("filename", status).unwrap().len() > 100);
        let error = any.contents("filename", status).unwrap_err();
        assert!(error.message.contains("has more bytes"), "{}", error.message);
    }
}

#[test]
fn values_of_the_knob() {
    assert_eq!(reach("text", "any").unwrap(), Reach::Any);
    assert_eq!(reach("text", "/srv/data").unwrap(), Reach::Under("/srv/data".into()));
    for wrong in ["", "on", "data", "./data", "Off"] {
        let error = reach("text", wrong).unwrap_err();
        assert_eq!(error.code, Code::INVALID_ARGUMENT);
        assert!(
            error.message.contains(&format!("or the absolute path of a folder, found '{wrong}'"))
        );
    }
    let place = Place::new();
    let file = place.top().join("file");
    let read_only = Access { reach: Reach::ReadOnly, most: 100, plugin: "text" };
    assert_eq!(read_only.contents("filename", &file).unwrap(), b"here");
    assert!(read_only.exists(&file) && read_only.may_look("pattern", &file).is_ok());
    let written = [
        read_only.write("filename", &place.top().join("a/b"), b"x"),
        read_only.append("output_stream", &file, b"x"),
    ];
    for error in written.into_iter().map(Result::unwrap_err) {
        assert_eq!(error.code, Code::PERMISSION_DENIED);
        assert!(error.message.contains("knob text.files is read-only"), "{}", error.message);
    }
    assert!(!place.top().join("a").exists(), "no folder is made either");
    let off = Access { reach: Reach::Off, most: 100, plugin: "text" };
    for error in
        [off.contents("filename", &file).unwrap_err(), off.may_look("pattern", &file).unwrap_err()]
    {
        assert_eq!(error.code, Code::PERMISSION_DENIED);
        assert!(error.message.contains("knob text.files is off"), "{}", error.message);
    }
}
