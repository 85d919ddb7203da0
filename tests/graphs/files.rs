//! Ops that read and write files, and messages, in sessions with the plugin for text.

use std::{fs, path::PathBuf};
use tenon_framework::{Code, Tensor};
use tenon_graph::{GraphBuilder, GraphError};
use tenon_runtime::{RunOptions, RuntimeError};
use tenon_tests::session::{runtime, session};

/// A folder for one test, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("tenon-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn scalar(text: &str) -> Tensor {
    Tensor::from_strings(&[], &[text]).unwrap()
}

/// Runs the node `y` of a graph as a fetch, or as a target where it has no output.
fn run(
    fetches: &[&str],
    make: impl FnOnce(&mut GraphBuilder<'_>) -> Result<(), GraphError>,
) -> Result<Vec<Tensor>, RuntimeError> {
    run_with(&[], fetches, make)
}

/// As [`run`], with knobs set.
fn run_with(
    knobs: &[(&str, &str)],
    fetches: &[&str],
    make: impl FnOnce(&mut GraphBuilder<'_>) -> Result<(), GraphError>,
) -> Result<Vec<Tensor>, RuntimeError> {
    let session = session(&runtime(&["tenon_cpu", "tenon_text"], knobs), make);
    let targets: &[&str] = if fetches.is_empty() { &["y"] } else { &[] };
    session.run(&[], fetches, targets, &RunOptions::default()).map(|(fetched, _)| fetched)
}

/// One node with constant strings as its inputs.
fn node(op: &str, inputs: &[Tensor], fetches: &[&str]) -> Result<Vec<Tensor>, RuntimeError> {
    node_with(&[], op, inputs, fetches)
}

/// As [`node`], with knobs set.
fn node_with(
    knobs: &[(&str, &str)],
    op: &str,
    inputs: &[Tensor],
    fetches: &[&str],
) -> Result<Vec<Tensor>, RuntimeError> {
    run_with(knobs, fetches, |b| {
        let constant = |(at, value): (usize, &Tensor)| b.constant(&format!("c{at}"), value.clone());
        let inputs = inputs.iter().enumerate().map(constant).collect::<Result<Vec<_>, _>>()?;
        b.op(op).name("y").inputs(inputs).build().map(|_| ())
    })
}

#[test]
fn what_is_written_is_read() {
    let folder = Folder::new("written");
    let name = folder.path("new/folder/file");
    node("WriteFile", &[scalar(&name), scalar("first")], &[]).unwrap();
    node("WriteFile", &[scalar(&name), scalar("a\0b")], &[]).unwrap();
    let read = node("ReadFile", &[scalar(&name)], &["y:0"]).unwrap();
    assert_eq!(read[0].as_strings().unwrap(), [b"a\0b"]);
    assert!(read[0].shape().dims().is_empty());
}

#[test]
fn what_is_not_there_is_not_found() {
    let folder = Folder::new("absent");
    let name = folder.path("none");
    let error = node("ReadFile", &[scalar(&name)], &["y:0"]).unwrap_err();
    assert_eq!(error.code(), Code::NOT_FOUND);
    assert!(error.to_string().contains(&name), "{error}");
    let folder = folder.path("");
    let error = node("ReadFile", &[scalar(&folder)], &["y:0"]).unwrap_err();
    assert_eq!(error.code(), Code::FAILED_PRECONDITION);
    let error = node("WriteFile", &[scalar(&folder), scalar("x")], &[]).unwrap_err();
    assert_eq!(error.code(), Code::FAILED_PRECONDITION);
}

#[test]
fn matching_names_come_sorted() {
    let folder = Folder::new("matching");
    for name in ["b.txt", "a.txt", "c.bin"] {
        fs::write(folder.path(name), b"").unwrap();
    }
    let patterns = [folder.path("b*"), folder.path("[ac].*")];
    let patterns = Tensor::from_strings(&[2], &patterns).unwrap();
    let found = node("MatchingFiles", &[patterns], &["y:0"]).unwrap();
    let expected = ["a.txt", "b.txt", "c.bin"].map(|name| folder.path(name).into_bytes());
    assert_eq!(found[0].as_strings().unwrap(), expected);
}

#[test]
fn messages_go_to_the_end_of_a_file() {
    let folder = Folder::new("messages");
    let name = folder.path("log");
    for text in ["one", "two"] {
        run(&[], |b| {
            let text = b.constant("text", scalar(text))?;
            let stream = format!("file://{name}");
            let print = b.op("PrintV2").name("y").input(text).attr("output_stream", &*stream);
            print.attr("end", "$\n").build().map(|_| ())
        })
        .unwrap();
    }
    assert_eq!(fs::read(&name).unwrap(), b"one$\ntwo$\n");
}

#[test]
fn an_assertion_tells_its_data() {
    let data = Tensor::from_slice(&[2, 2], &[1.5f32, 2.0, 3.0, 4.0]).unwrap();
    let error = run(&[], |b| {
        let holds = b.constant("holds", Tensor::from_slice(&[], &[false]).unwrap())?;
        let data = b.constant("data", data)?;
        let text = b.constant("text", scalar("why"))?;
        b.op("Assert").name("y").input(holds).inputs([data, text]).build().map(|_| ())
    })
    .unwrap_err();
    assert_eq!(error.code(), Code::INVALID_ARGUMENT);
    let text = error.to_string();
    assert!(text.contains("assertion failed: [[1.5 2][3...]...] [why]"), "{text}");
}

/// Every op that opens files, for one of this name.
fn each_op(
    knobs: &[(&str, &str)],
    name: &str,
) -> [(&'static str, Result<Vec<Tensor>, RuntimeError>); 4] {
    let written = node_with(knobs, "WriteFile", &[scalar(name), scalar("x")], &[]);
    let printed = run_with(knobs, &[], |b| {
        let text = b.constant("text", scalar("x"))?;
        let print = b.op("PrintV2").name("y").input(text);
        print.attr("output_stream", &*format!("file://{name}")).build().map(|_| ())
    });
    [
        ("WriteFile", written),
        ("PrintV2", printed),
        ("ReadFile", node_with(knobs, "ReadFile", &[scalar(name)], &["y:0"])),
        ("MatchingFiles", node_with(knobs, "MatchingFiles", &[scalar(name)], &["y:0"])),
    ]
}

#[track_caller]
fn assert_denied(op: &str, error: &RuntimeError, why: &str) {
    let text = error.to_string();
    assert_eq!(error.code(), Code::PERMISSION_DENIED, "{op}: {text}");
    for part in [op, "'y'", why] {
        assert!(text.contains(part), "{op}: {text}");
    }
}

#[test]
fn a_graph_reaches_no_file_where_files_are_off() {
    let folder = Folder::new("off");
    let name = folder.path("file");
    for (op, result) in each_op(&[("text.files", "off")], &name) {
        assert_denied(op, &result.unwrap_err(), "knob text.files is off");
    }
    assert!(!fs::exists(&name).unwrap());
    let patterns = Tensor::from_strings(&[2], &["/etc/*", "x"]).unwrap();
    let found = node_with(&[("text.files", "off")], "MatchingFiles", &[patterns], &["y:0"]);
    assert_denied("MatchingFiles", &found.unwrap_err(), "knob text.files is off");
}

#[test]
fn a_graph_writes_nothing_where_files_are_read_only() {
    let folder = Folder::new("read-only");
    let name = folder.path("file");
    fs::write(&name, "kept").unwrap();
    for (op, result) in each_op(&[("text.files", "read-only")], &name) {
        match op {
            "WriteFile" | "PrintV2" => {
                assert_denied(op, &result.unwrap_err(), "knob text.files is read-only");
            }
            _ => assert!(result.is_ok(), "{op}"),
        }
    }
    assert_eq!(fs::read(&name).unwrap(), b"kept");
}

#[test]
fn a_graph_does_not_leave_its_folder() {
    let folder = Folder::new("root");
    let root = folder.path("root");
    fs::create_dir(&root).unwrap();
    fs::write(folder.path("secret"), "kept").unwrap();
    std::os::unix::fs::symlink("../secret", folder.path("root/link")).unwrap();
    let knobs = [("text.files", &*root)];
    for outside in ["../secret", "/proc/self/environ", &folder.path("root/../secret"), "link"] {
        for (op, result) in each_op(&knobs, outside) {
            match result {
                // What leads out of the folder only on the way matches nothing.
                Ok(found) if op == "MatchingFiles" => {
                    assert_eq!(found[0].shape().dims(), [0], "{outside}");
                }
                result => assert_denied(op, &result.unwrap_err(), "leaves to graphs"),
            }
        }
    }
    assert_eq!(fs::read(folder.path("secret")).unwrap(), b"kept");
    for inside in ["new/file", &folder.path("root/new/file")] {
        let results = each_op(&knobs, inside);
        let [.., read, matching] = results.map(|(op, result)| (op, result.unwrap()));
        assert_eq!(read.1[0].as_strings().unwrap(), [b"xx\n"]);
        assert_eq!(matching.1[0].as_strings().unwrap(), [inside.as_bytes()]);
    }
    let found = node_with(&knobs, "MatchingFiles", &[scalar("n*/*")], &["y:0"]).unwrap();
    assert_eq!(found[0].as_strings().unwrap(), [b"./new/file"]);
    let found = node_with(&knobs, "MatchingFiles", &[scalar("/etc/*")], &["y:0"]);
    assert_denied("MatchingFiles", &found.unwrap_err(), "leaves to graphs");
}

/// Reading a device would never end, opening a pipe would wait for somebody at its other end.
#[test]
fn only_regular_files_are_opened() {
    let folder = Folder::new("pipe");
    let pipe = folder.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    for (name, found) in [("/dev/zero", "a device"), (&*pipe, "a pipe"), (&folder.path(""), "")] {
        for (op, result) in each_op(&[], name).into_iter().take(3) {
            let error = result.unwrap_err();
            let text = error.to_string();
            assert_eq!(error.code(), Code::FAILED_PRECONDITION, "{op}: {text}");
            assert!(text.contains(found) && text.contains(name), "{op}: {text}");
        }
    }
}

#[test]
fn a_file_that_is_too_large_is_not_read() {
    let folder = Folder::new("large");
    let name = folder.path("file");
    fs::write(&name, [0; 11]).unwrap();
    let read = |most: &str| {
        node_with(&[("text.file_bytes", most)], "ReadFile", &[scalar(&name)], &["y:0"])
    };
    assert_eq!(read("11").unwrap()[0].as_strings().unwrap(), [[0; 11]]);
    let error = read("10").unwrap_err();
    assert_eq!(error.code(), Code::RESOURCE_EXHAUSTED);
    let text = "has 11 bytes, while knob text.file_bytes lets 10 be read";
    assert!(error.to_string().contains(text), "{error}");
    // It says that it has 0 bytes.
    let status = [scalar("/proc/self/status")];
    let error = node_with(&[("text.file_bytes", "10")], "ReadFile", &status, &["y:0"]).unwrap_err();
    assert!(error.to_string().contains("has more bytes, while"), "{error}");
}

#[test]
fn a_wrong_value_of_the_knob_for_files_is_an_error() {
    for (knob, value) in [("text.files", "data"), ("text.file_bytes", "-1")] {
        let error = node_with(&[(knob, value)], "ReadFile", &[scalar("x")], &["y:0"]).unwrap_err();
        let text = error.to_string();
        assert_eq!(error.code(), Code::INVALID_ARGUMENT, "{text}");
        assert!(text.contains(&format!("knob {knob}: expected")) && text.contains(value), "{text}");
    }
}

#[test]
fn words_of_a_file_have_their_numbers_in_another() {
    let folder = Folder::new("words");
    fs::write(folder.path("new"), "a\nb\nc\nd\n").unwrap();
    fs::write(folder.path("old"), "c\nx\na\r\nz").unwrap();
    fs::write(folder.path("twice"), "a\nb\na\n").unwrap();
    let remap = |old: &str, [first, count, size]: [i64; 3]| {
        let session = session(&runtime(&["tenon_cpu", "tenon_data"], &[]), |b| {
            let new = b.constant("new", scalar(&folder.path("new")))?;
            let old = b.constant("old", scalar(&folder.path(old)))?;
            let node = b.op("GenerateVocabRemapping").name("y").input(new).input(old);
            let node = node.attr("new_vocab_offset", first).attr("num_new_vocab", count);
            node.attr("old_vocab_size", size).build().map(|_| ())
        });
        let (found, _) = session.run(&[], &["y:0", "y:1"], &[], &RunOptions::default())?;
        let numbers = found[0].as_slice::<i64>().unwrap().to_vec();
        Ok::<_, RuntimeError>((numbers, found[1].as_slice::<i32>().unwrap()[0]))
    };
    assert_eq!(remap("old", [0, 4, -1]).unwrap(), (vec![2, -1, 0, -1], 2));
    assert_eq!(remap("old", [1, 2, -1]).unwrap(), (vec![-1, 0], 1));
    assert_eq!(remap("old", [0, 4, 2]).unwrap(), (vec![-1, -1, 0, -1], 1));
    assert_eq!(remap("old", [4, 0, -1]).unwrap(), (vec![], 0));
    for (old, numbers) in [("old", [1, 4, -1]), ("old", [0, 1, 5]), ("twice", [0, 1, -1])] {
        let error = remap(old, numbers).unwrap_err();
        assert_eq!(error.code(), Code::INVALID_ARGUMENT, "{numbers:?}: {error}");
    }
    assert_eq!(remap("none", [0, 1, -1]).unwrap_err().code(), Code::NOT_FOUND);
}
