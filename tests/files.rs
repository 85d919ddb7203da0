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
    let session = session(&runtime(&["tenon_cpu", "tenon_text"], &[]), make);
    let targets: &[&str] = if fetches.is_empty() { &["y"] } else { &[] };
    session.run(&[], fetches, targets, &RunOptions::default()).map(|(fetched, _)| fetched)
}

/// One node with constant strings as its inputs.
fn node(op: &str, inputs: &[Tensor], fetches: &[&str]) -> Result<Vec<Tensor>, RuntimeError> {
    run(fetches, |b| {
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
