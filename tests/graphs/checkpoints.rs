//! Ops that save and restore tensors, in sessions with the plugin for checkpoints.

use std::{fs, path::Path};
use tempfile::TempDir;
use tenon_framework::{Code, DType, Tensor};
use tenon_runtime::{RunOptions, RuntimeError};
use tenon_tests::{
    build::repository,
    session::{runtime, session},
};

fn scalar(text: &str) -> Tensor {
    Tensor::from_strings(&[], &[text]).unwrap()
}

fn list(texts: &[&str]) -> Tensor {
    Tensor::from_strings(&[texts.len() as i64], texts).unwrap()
}

/// What an op gets beside its tensors.
struct Call<'c> {
    op: &'c str,
    knobs: &'c [(&'c str, &'c str)],
    /// The attribute that lists types, or `dt`.
    types: Option<(&'c str, &'c [DType])>,
}

impl Call<'_> {
    /// Runs the op in a session of its own, and fetches its outputs.
    fn run(&self, inputs: &[Tensor], outputs: usize) -> Result<Vec<Tensor>, RuntimeError> {
        let runtime = runtime(&["tenon_cpu", "tenon_checkpoint"], self.knobs);
        let session = session(&runtime, |b| {
            let constant =
                |(at, value): (usize, &Tensor)| b.constant(&format!("c{at}"), value.clone());
            let inputs = inputs.iter().enumerate().map(constant).collect::<Result<Vec<_>, _>>()?;
            let node = b.op(self.op).name("y").inputs(inputs);
            let node = match self.types {
                Some(("dt", types)) => node.attr("dt", types[0]),
                Some((name, types)) => node.attr(name, types.to_vec()),
                None => node,
            };
            node.build().map(|_| ())
        });
        let fetches: Vec<String> = (0..outputs).map(|at| format!("y:{at}")).collect();
        let fetches: Vec<&str> = fetches.iter().map(String::as_str).collect();
        let targets: &[&str] = if outputs == 0 { &["y"] } else { &[] };
        session.run(&[], &fetches, targets, &RunOptions::default()).map(|(fetched, _)| fetched)
    }
}

fn save(
    prefix: &str,
    names: &[&str],
    slices: &[&str],
    tensors: &[Tensor],
    knobs: &[(&str, &str)],
) -> Result<(), RuntimeError> {
    let types: Vec<DType> = tensors.iter().map(Tensor::dtype).collect();
    let call = Call { op: "SaveV2", knobs, types: Some(("dtypes", &types)) };
    let inputs = [&[scalar(prefix), list(names), list(slices)], tensors].concat();
    call.run(&inputs, 0).map(|_| ())
}

fn restore(
    prefix: &str,
    names: &[&str],
    slices: &[&str],
    types: &[DType],
) -> Result<Vec<Tensor>, RuntimeError> {
    let call = Call { op: "RestoreV2", knobs: &[], types: Some(("dtypes", types)) };
    call.run(&[scalar(prefix), list(names), list(slices)], types.len())
}

fn folder() -> (TempDir, impl Fn(&str) -> String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    (folder, move |name: &str| path.join(name).to_str().unwrap().to_owned())
}

fn numbers() -> Tensor {
    Tensor::from_slice(&[2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap()
}

#[test]
fn what_is_saved_is_restored() {
    let (_folder, path) = folder();
    let prefix = path("new/folder/model");
    let texts = Tensor::from_strings(&[2], &["", "größe"]).unwrap();
    let flag = Tensor::from_slice(&[], &[true]).unwrap();
    let tensors = [numbers(), texts, flag];
    let names = ["w", "texts", "flag"];
    save(&prefix, &names, &["", "", ""], &tensors, &[]).unwrap();
    let types = [DType::BOOL, DType::FLOAT, DType::STRING];
    let read = restore(&prefix, &["flag", "w", "texts"], &["", "2 3 0,2:1,2", ""], &types).unwrap();
    assert_eq!(read[0].as_slice::<bool>().unwrap(), [true]);
    assert_eq!(read[1].as_slice::<f32>().unwrap(), [2.0, 3.0, 5.0, 6.0]);
    assert_eq!(read[1].shape().dims(), [2, 2]);
    assert_eq!(read[2].as_strings().unwrap(), [&b""[..], "größe".as_bytes()]);
    assert_eq!(fs::read_dir(Path::new(&prefix).parent().unwrap()).unwrap().count(), 2);
}

#[test]
fn checkpoints_of_tensorflow_are_restored() {
    let golden = |name| {
        let path = repository().join("tests/goldens/checkpoints").join(name);
        path.to_str().unwrap().to_owned()
    };
    let ids = |tensor: &Tensor| tensor.as_slice::<i64>().unwrap().to_vec();
    let types = [DType::INT64, DType::INT64];
    // A bundle, and V1 files of a pattern, which RestoreV2 reads too.
    for name in ["sharded", "old_sharded-?????-of-?????"] {
        let read = restore(&golden(name), &["b", "a"], &["", "3 1,2"], &types).unwrap();
        assert_eq!((ids(&read[0]), ids(&read[1])), (vec![0, 1, 2, 3], vec![1, 2]), "{name}");
    }
    for (op, slice) in [("Restore", None), ("RestoreSlice", Some("4 3 1,2:0,2"))] {
        let call = Call { op, knobs: &[], types: Some(("dt", &[DType::FLOAT])) };
        let inputs = [Some("old_sliced").map(|name| scalar(&golden(name))), Some(scalar("boxes"))];
        let inputs: Vec<Tensor> = inputs.into_iter().chain([slice.map(scalar)]).flatten().collect();
        let read = call.run(&inputs, 1).unwrap();
        let expected: Vec<f32> = match slice {
            None => (0..12).map(|at| at as f32).collect(),
            Some(_) => vec![3.0, 4.0, 6.0, 7.0],
        };
        assert_eq!(read[0].as_slice::<f32>().unwrap(), expected, "{op}");
    }
}

#[test]
fn old_files_are_saved_and_restored() {
    let (_folder, path) = folder();
    let file = path("old");
    let tensors = [numbers(), Tensor::from_strings(&[], &["text"]).unwrap()];
    let types = [DType::FLOAT, DType::STRING];
    let call = Call { op: "Save", knobs: &[], types: Some(("T", &types)) };
    let inputs = [&[scalar(&file), list(&["w", "t"])], &tensors[..]].concat();
    call.run(&inputs, 0).unwrap();
    let read = restore(&file, &["w", "t"], &["", ""], &types).unwrap();
    assert_eq!(read[0].as_slice::<f32>().unwrap(), numbers().as_slice::<f32>().unwrap());
    assert_eq!(read[1].as_strings().unwrap(), [b"text"]);
    let types = [DType::FLOAT, DType::FLOAT];
    let call = Call { op: "SaveSlices", knobs: &[], types: Some(("T", &types)) };
    let slices = list(&["4 3 0,2:-", "4 3 2,2:-"]);
    let inputs = [scalar(&file), list(&["w", "w"]), slices, numbers(), numbers()];
    call.run(&inputs, 0).unwrap();
    let read = restore(&file, &["w"], &["4 3 1,2:0,1"], &types[..1]).unwrap();
    assert_eq!(read[0].as_slice::<f32>().unwrap(), [4.0, 1.0]);
}

#[test]
fn parts_of_several_saves_are_merged() {
    let (folder, path) = folder();
    let parts = [path("temp/part0"), path("temp/part1")];
    for (at, slice) in ["4 3 0,2:-", "4 3 2,2:-"].iter().enumerate() {
        let other = Tensor::from_slice(&[], &[at as i32]).unwrap();
        let names = ["w", &format!("only{at}")];
        save(&parts[at], &names, &[slice, ""], &[numbers(), other], &[]).unwrap();
    }
    let merge = Call { op: "MergeV2Checkpoints", knobs: &[], types: None };
    let prefixes = list(&[&parts[0], &parts[1]]);
    merge.run(&[prefixes.clone(), scalar(&path("model"))], 0).unwrap();
    let types = [DType::FLOAT, DType::INT32, DType::INT32];
    let read = restore(&path("model"), &["w", "only0", "only1"], &["", "", ""], &types).unwrap();
    assert_eq!(read[0].shape().dims(), [4, 3]);
    let halves: Vec<f32> = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0].repeat(2);
    assert_eq!(read[0].as_slice::<f32>().unwrap(), halves);
    assert_eq!(read[2].as_slice::<i32>().unwrap(), [1]);
    let mut left: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["model.data-00000-of-00002", "model.data-00001-of-00002", "model.index"]);
    let error = merge.run(&[prefixes, scalar(&path("model"))], 0).unwrap_err();
    assert_eq!(error.code(), Code::INVALID_ARGUMENT);
    assert!(error.to_string().contains("allow_missing_files was set to false"), "{error}");
}

/// The code and the message of a failure.
#[track_caller]
fn fails<T: std::fmt::Debug>(result: Result<T, RuntimeError>, code: Code, parts: &[&str]) {
    let error = result.unwrap_err();
    assert_eq!(error.code(), code, "{error}");
    for part in parts {
        assert!(error.to_string().contains(part), "{part}: {error}");
    }
}

#[test]
fn what_cannot_be_restored_is_named() {
    let (_folder, path) = folder();
    let prefix = path("model");
    save(&prefix, &["w"], &[""], &[numbers()], &[]).unwrap();
    let float = [DType::FLOAT; 3];
    let missing = restore(&prefix, &["w", "b", "a"], &["", "", ""], &float);
    let message = format!("Keys b, a not found in checkpoint '{prefix}'");
    fails(missing, Code::NOT_FOUND, &[&message]);
    let one = |slice, dtype| restore(&prefix, &["w"], &[slice], &[dtype]);
    let message = "tensor_name = w; expected dtype int32 does not equal original dtype float";
    fails(one("", DType::INT32), Code::INVALID_ARGUMENT, &[message]);
    let message = "[2, 4] does not match the shape stored in checkpoint: [2, 3]";
    fails(one("2 4 0,2:-", DType::FLOAT), Code::INVALID_ARGUMENT, &[message]);
    fails(one("2 x", DType::FLOAT), Code::INVALID_ARGUMENT, &["Expected a pair of numbers or '-'"]);
    let absent = restore(&path("none"), &["w"], &[""], &float[..1]);
    fails(absent, Code::NOT_FOUND, &["failed to find any matching files", "none"]);
    fs::remove_file(path("model.data-00000-of-00001")).unwrap();
    fails(one("", DType::FLOAT), Code::NOT_FOUND, &["model.data-00000-of-00001"]);
    fs::write(path("model.data-00000-of-00001"), [0; 24]).unwrap();
    fails(one("", DType::FLOAT), Code::DATA_LOSS, &["Checksum does not match"]);
    fs::write(path("model.index"), [0; 100]).unwrap();
    fails(one("", DType::FLOAT), Code::DATA_LOSS, &["model.index", "not a table"]);
}

#[test]
fn what_cannot_be_saved_is_named() {
    let (folder, path) = folder();
    let prefix = path("model");
    let one = |names: &[&str], slices: &[&str]| {
        save(&prefix, names, slices, &vec![numbers(); names.len()], &[])
    };
    fails(one(&["w", "w"], &["", ""]), Code::INVALID_ARGUMENT, &["Adding duplicate key: w"]);
    fails(one(&[""], &[""]), Code::INVALID_ARGUMENT, &["expected names that are not empty"]);
    let message = "does not match the shape of the tensor to save: 4 3 0,1:-";
    fails(one(&["w"], &["4 3 0,1:-"]), Code::INVALID_ARGUMENT, &[message]);
    let message = "tensor_names must hold a text for each of 1 tensors, got 2";
    fails(
        save(&prefix, &["w", "x"], &["", ""], &[numbers()], &[]),
        Code::INVALID_ARGUMENT,
        &[message],
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "a temporary file is left");
    fs::write(path("file"), b"x").unwrap();
    let inside = save(&path("file/model"), &["w"], &[""], &[numbers()], &[]);
    fails(inside, Code::FAILED_PRECONDITION, &["file"]);
}

#[test]
fn the_knob_confines_checkpoints() {
    let (_folder, path) = folder();
    let (prefix, inner) = (path("model"), path("inner"));
    fs::create_dir(&inner).unwrap();
    save(&prefix, &["w"], &[""], &[numbers()], &[]).unwrap();
    let read = |knobs: &[(&str, &str)], prefix: &str| {
        let types = Some(("dtypes", &[DType::FLOAT][..]));
        let call = Call { op: "RestoreV2", knobs, types };
        call.run(&[scalar(prefix), list(&["w"]), list(&[""])], 1)
    };
    let denied = |result, knob: &str| fails(result, Code::PERMISSION_DENIED, &[knob, "'y'"]);
    let off = [("checkpoint.files", "off")];
    denied(read(&off, &prefix), "knob checkpoint.files is off");
    denied(save(&prefix, &["w"], &[""], &[numbers()], &off).map(|()| vec![]), "checkpoint.files");
    let read_only = [("checkpoint.files", "read-only")];
    read(&read_only, &prefix).unwrap();
    let saved = save(&prefix, &["w"], &[""], &[numbers()], &read_only).map(|()| vec![]);
    denied(saved, "knob checkpoint.files is read-only");
    let under = [("checkpoint.files", &*inner)];
    denied(read(&under, &prefix), "is not under");
    denied(save("../out", &["w"], &[""], &[numbers()], &under).map(|()| vec![]), "is not under");
    save("deep/model", &["w"], &[""], &[numbers()], &under).unwrap();
    save("deep/model", &["w"], &[""], &[numbers()], &under).unwrap();
    read(&under, "deep/model").unwrap();
    assert!(Path::new(&path("inner/deep/model.index")).is_file());
}

/// Runs LoadAndRemapMatrix for a matrix of 3 by 2, called `m`.
fn remap(
    prefix: &str,
    [rows, cols]: [&[i64]; 2],
    size: [i64; 2],
    initial: &[f32],
) -> Result<Vec<f32>, RuntimeError> {
    let runtime = runtime(&["tenon_cpu", "tenon_checkpoint"], &[]);
    let numbers = |values: &[i64]| Tensor::from_slice(&[values.len() as i64], values).unwrap();
    let session = session(&runtime, |b| {
        let initial = Tensor::from_slice(&[initial.len() as i64], initial).unwrap();
        let values = [scalar(prefix), scalar("m"), numbers(rows), numbers(cols), initial];
        let constant = |(at, value): (usize, Tensor)| b.constant(&format!("c{at}"), value);
        let inputs = values.into_iter().enumerate().map(constant).collect::<Result<Vec<_>, _>>()?;
        let node = b.op("LoadAndRemapMatrix").name("y").inputs(inputs);
        node.attr("num_rows", size[0]).attr("num_cols", size[1]).build().map(|_| ())
    });
    let (found, _) = session.run(&[], &["y:0"], &[], &RunOptions::default())?;
    assert_eq!(found[0].shape().dims(), size);
    Ok(found[0].as_slice::<f32>().unwrap().to_vec())
}

#[test]
fn rows_and_columns_of_a_matrix_go_to_other_places() {
    let folder = TempDir::new().unwrap();
    let prefix = folder.path().join("model").to_str().unwrap().to_owned();
    let matrix = Tensor::from_slice(&[3, 2], &[1f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    let vector = Tensor::from_slice(&[2], &[1f32, 2.0]).unwrap();
    save(&prefix, &["m", "v"], &["", ""], &[matrix, vector], &[]).unwrap();
    let found = remap(&prefix, [&[2, -1, 0], &[1, -1, 0]], [3, 3], &[9.0, 8.0, 7.0, 6.0, 5.0]);
    assert_eq!(found.unwrap(), [6.0, 9.0, 5.0, 8.0, 7.0, 6.0, 2.0, 5.0, 1.0]);
    assert_eq!(remap(&prefix, [&[1], &[]], [1, 2], &[]).unwrap(), [3.0, 4.0]);
    let refused = |rows: &[i64], size: [i64; 2], initial: &[f32], code: Code| {
        let error = remap(&prefix, [rows, &[]], size, initial).unwrap_err();
        assert_eq!(error.code(), code, "{rows:?}: {error}");
    };
    refused(&[0, 0], [2, 2], &[], Code::UNIMPLEMENTED);
    refused(&[3], [1, 2], &[], Code::INVALID_ARGUMENT);
    refused(&[0], [2, 2], &[], Code::INVALID_ARGUMENT);
    refused(&[0], [1, 3], &[], Code::INVALID_ARGUMENT);
    refused(&[-1], [1, 2], &[1.0], Code::INVALID_ARGUMENT);
    refused(&[0], [1, 2], &[1.0], Code::INVALID_ARGUMENT);
}
