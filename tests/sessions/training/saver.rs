//! Checkpoints of variables: written, restored, kept, deleted, and as TensorFlow has them.

use super::model::{
    everywhere, files, fresh, local, plugins, scaffold, scaffold_with, train, w, w_after,
};
use serde_json::Value;
use std::{collections::BTreeMap, fs, path::Path};
use tenon_graph::GraphBuilder;
use tenon_proto::{CollectionDefKind, MetaGraphDef, SaveSliceInfoDef, VariableDef, decode};
use tenon_runtime::{
    AnySession, Runtime,
    framework::{Code, DType, Tensor},
};
use tenon_tests::{
    build,
    session::{turn, values},
};
use tenon_training::{
    CheckpointState, Initial, Saver, SaverOptions, Scaffold, TrainError, VariableOptions,
    Variables, latest_checkpoint,
};

fn saver(scaffold: &Scaffold) -> &Saver {
    scaffold.saver.as_ref().expect("a scaffold of variables has a saver")
}

#[test]
fn a_checkpoint_is_restored_and_older_ones_are_deleted() {
    let _turn = turn();
    everywhere(|runtime, target| {
        let folder = tempfile::tempdir().unwrap();
        let options = SaverOptions { max_to_keep: 2, ..SaverOptions::default() };
        let scaffold = scaffold_with(runtime, options, |_, _| Ok(()));
        let session = fresh(&*target, &scaffold);
        assert_eq!(latest_checkpoint(folder.path()).unwrap(), None);
        for step in 1..=4 {
            train(&*session, 1);
            let path = saver(&scaffold).save(&*session, folder.path().join("model"), Some(step));
            assert_eq!(path.unwrap(), folder.path().join(format!("model-{step}")));
        }
        let kept: Vec<String> = [3, 4]
            .iter()
            .flat_map(|step| {
                ["data-00000-of-00001", "index", "meta"].map(|end| format!("model-{step}.{end}"))
            })
            .collect();
        assert_eq!(files(folder.path()), [vec!["checkpoint".to_owned()], kept].concat());
        let state = CheckpointState::read(folder.path(), "checkpoint").unwrap().unwrap();
        assert_eq!(state.model_checkpoint_path, "model-4");
        assert_eq!(state.all_model_checkpoint_paths, ["model-3", "model-4"]);
        assert_eq!(state.all_model_checkpoint_timestamps.len(), 2);
        let latest = latest_checkpoint(folder.path()).unwrap().unwrap();
        train(&*session, 3);
        saver(&scaffold).restore(&*session, &latest).unwrap();
        assert_eq!(w(&*session), w_after(4));
        session.close_session().unwrap();
    });
}

#[test]
fn a_checkpoint_over_itself_is_one_checkpoint() {
    let _turn = turn();
    let (folder, runtime) = (tempfile::tempdir().unwrap(), plugins());
    let options = SaverOptions { max_to_keep: 1, ..SaverOptions::default() };
    let scaffold = scaffold_with(&runtime, options, |_, _| Ok(()));
    let session = fresh(&*local(&runtime), &scaffold);
    let path = folder.path().join("model");
    for _ in 0..3 {
        train(&*session, 1);
        saver(&scaffold).save(&*session, &path, None).unwrap();
    }
    assert_eq!(saver(&scaffold).checkpoints(), std::slice::from_ref(&path));
    saver(&scaffold).restore(&*session, &path).unwrap();
    assert_eq!(w(&*session), w_after(3));
}

#[test]
fn a_checkpoint_is_kept_for_good_after_its_hours() {
    let _turn = turn();
    let runtime = plugins();
    for (hours, kept) in [(0.0, vec![1, 2, 3]), (1000.0, vec![3])] {
        let folder = tempfile::tempdir().unwrap();
        let options = SaverOptions {
            max_to_keep: 1,
            keep_checkpoint_every_n_hours: Some(hours),
            ..SaverOptions::default()
        };
        let scaffold = scaffold_with(&runtime, options, |_, _| Ok(()));
        let session = fresh(&*local(&runtime), &scaffold);
        for step in 1..=3 {
            saver(&scaffold).save(&*session, folder.path().join("m"), Some(step)).unwrap();
        }
        let there = |step: &i64| folder.path().join(format!("m-{step}.index")).exists();
        let found: Vec<i64> = (1..=3).filter(there).collect();
        assert_eq!(found, kept, "{hours} hours");
        let state = CheckpointState::read(folder.path(), "checkpoint").unwrap().unwrap();
        assert!(state.last_preserved_timestamp.is_some());
    }
}

#[test]
fn after_a_restart_old_checkpoints_are_deleted_in_their_turn() {
    let _turn = turn();
    let (folder, runtime) = (tempfile::tempdir().unwrap(), plugins());
    let options = || SaverOptions { max_to_keep: 2, ..SaverOptions::default() };
    for steps in [1..=2, 3..=4] {
        let scaffold = scaffold_with(&runtime, options(), |_, _| Ok(()));
        let session = fresh(&*local(&runtime), &scaffold);
        saver(&scaffold).recover(folder.path()).unwrap();
        for step in steps {
            saver(&scaffold).save(&*session, folder.path().join("m"), Some(step)).unwrap();
        }
    }
    let indexes: Vec<String> =
        files(folder.path()).into_iter().filter(|name| name.ends_with(".index")).collect();
    assert_eq!(indexes, ["m-3.index", "m-4.index"]);
}

#[test]
fn a_state_file_that_names_a_missing_checkpoint_leads_to_the_newest_complete_one() {
    let _turn = turn();
    let (folder, runtime) = (tempfile::tempdir().unwrap(), plugins());
    let scaffold = scaffold(&runtime);
    let session = fresh(&*local(&runtime), &scaffold);
    for step in 1..=3 {
        saver(&scaffold).save(&*session, folder.path().join("m"), Some(step)).unwrap();
    }
    let at = |name: &str| folder.path().join(name);
    let latest = || latest_checkpoint(folder.path()).unwrap();
    fs::remove_file(at("m-3.data-00000-of-00001")).unwrap();
    assert_eq!(latest(), Some(at("m-2")));
    // An index that is cut off.
    let index = fs::read(at("m-2.index")).unwrap();
    fs::write(at("m-2.index"), &index[..index.len() - 3]).unwrap();
    assert_eq!(latest(), Some(at("m-1")));
    fs::remove_file(at("m-1.index")).unwrap();
    assert_eq!(latest(), None);
}

#[test]
fn a_wrong_state_file_is_an_error_that_names_its_line() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint");
    fs::write(&path, "model_checkpoint_path: \"m-1\"\nall_paths: \"m-1\"\n").unwrap();
    let error = latest_checkpoint(folder.path()).unwrap_err();
    assert_eq!(error.code(), Code::DATA_LOSS);
    let text = error.to_string();
    let expected = format!("{}, line 2: expected a field of CheckpointState", path.display());
    assert!(text.starts_with(&expected) && text.contains("found 'all_paths'"), "{text}");
    fs::write(&path, [0xff, 0xfe]).unwrap();
    let error = latest_checkpoint(folder.path()).unwrap_err();
    assert!(error.to_string().contains("expected text in UTF-8"), "{error}");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let error = latest_checkpoint(folder.path()).unwrap_err();
    assert!(error.to_string().starts_with("a state file, "), "{error}");
}

#[test]
fn all_missing_keys_are_named_at_once() {
    let _turn = turn();
    everywhere(|runtime, target| {
        let folder = tempfile::tempdir().unwrap();
        let small = scaffold(runtime);
        let session = fresh(&*target, &small);
        let path = saver(&small).save(&*session, folder.path().join("m"), None).unwrap();
        let larger = scaffold_with(runtime, SaverOptions::default(), |b, variables| {
            for name in ["u", "v"] {
                variables.add(b, name, DType::FLOAT, &[], &Initial::Zeros)?;
            }
            Ok(())
        });
        let session = fresh(&*target, &larger);
        let error = saver(&larger).restore(&*session, &path).unwrap_err();
        assert_eq!(error.code(), Code::NOT_FOUND);
        let text = error.to_string();
        assert!(["u", "v"].iter().all(|name| text.contains(name)), "{text}");
        let nowhere = saver(&small).restore(&*session, folder.path().join("none")).unwrap_err();
        assert_eq!(nowhere.code(), Code::NOT_FOUND, "{nowhere}");
    });
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error_that_names_it() {
    let _turn = turn();
    let runtime = plugins();
    let scaffold = scaffold(&runtime);
    let session = fresh(&*local(&runtime), &scaffold);
    // Nobody may make files here, not even a superuser.
    let error = saver(&scaffold).save(&*session, "/proc/tenon/model", None).unwrap_err();
    assert!(error.to_string().contains("/proc/tenon"), "{error}");
    assert!(matches!(error.code(), Code::NOT_FOUND | Code::PERMISSION_DENIED), "{error:?}");
    // The checkpoint can be written, and the state file cannot: the checkpoints before stay.
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("checkpoint")).unwrap();
    let error = saver(&scaffold).save(&*session, at("m"), Some(1)).unwrap_err();
    assert!(error.to_string().starts_with("a state file, "), "{error}");
    assert!(error.to_string().contains(&at("checkpoint").display().to_string()), "{error}");
    assert!(saver(&scaffold).checkpoints().is_empty());
    fs::remove_dir(at("checkpoint")).unwrap();
    saver(&scaffold).save(&*session, at("m"), Some(2)).unwrap();
    assert_eq!(latest_checkpoint(folder.path()).unwrap(), Some(at("m-2")));
}

/// The nodes below `save/`: op and inputs by name.
fn nodes_of(b: &GraphBuilder<'_>) -> BTreeMap<String, Vec<String>> {
    let def = b.graph().to_graph_def().unwrap();
    let saved = def.node.into_iter().filter(|node| node.name.starts_with("save/"));
    saved
        .map(|node| {
            let mut told = vec![node.op];
            told.extend(node.input);
            (node.name, told)
        })
        .collect()
}

fn tensorflow_nodes(kind: &str) -> BTreeMap<String, Vec<String>> {
    let text = fs::read_to_string(goldens().join("nodes.json")).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    serde_json::from_value(value[kind].clone()).unwrap()
}

fn goldens() -> std::path::PathBuf {
    build::repository().join("tests/goldens/checkpoints/saver")
}

#[test]
fn the_nodes_are_those_of_tensorflow() {
    let _turn = turn();
    let runtime = plugins();
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let mut variables = Variables::new();
    for (name, dtype, dims) in [
        ("w", DType::FLOAT, &[2, 3][..]),
        ("b", DType::FLOAT, &[3]),
        ("global_step", DType::INT64, &[]),
    ] {
        variables.add(&mut b, name, dtype, dims, &Initial::Zeros).unwrap();
    }
    let saver = Saver::build(&mut b, variables.all(), SaverOptions::default()).unwrap();
    assert_eq!(nodes_of(&b), tensorflow_nodes("plain"));
    assert_eq!(saver.def().filename_tensor_name, "save/Const:0");
    assert_eq!(saver.def().save_tensor_name, "save/control_dependency:0");
    assert_eq!(saver.def().restore_op_name, "save/restore_all");
}

/// TensorFlow chooses the temporary name by a pattern that matches files in S3, which these files never are; and groups the
/// shards by two more nodes.
#[test]
fn the_nodes_of_shards_are_those_of_tensorflow() {
    let _turn = turn();
    let runtime = plugins();
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let mut variables = Variables::new();
    for (name, dims, device) in [
        ("a", [2], "/job:localhost/task:0/device:CPU:0"),
        ("b", [3], "/job:localhost/task:0/device:CPU:1"),
    ] {
        let options = VariableOptions { device: device.to_owned(), ..VariableOptions::default() };
        variables.add_with(&mut b, name, DType::FLOAT, &dims, &Initial::Zeros, options).unwrap();
    }
    let options = SaverOptions { sharded: true, ..SaverOptions::default() };
    Saver::build(&mut b, variables.all(), options).unwrap();
    let expected = tensorflow_nodes("sharded");
    for (name, node) in nodes_of(&b) {
        let mut wanted = expected[&name].clone();
        if name == "save/StringJoin" {
            wanted[2] = "save/Const_1".to_owned();
        } else if name == "save/restore_all" {
            wanted = ["NoOp", "^save/restore_shard", "^save/restore_shard_1"]
                .map(str::to_owned)
                .to_vec();
        } else if name == "save/Identity" {
            wanted.truncate(3);
        }
        assert_eq!(node, wanted, "{name}");
    }
}

/// The variables of the committed checkpoint; the table as a whole or in parts.
fn golden_variables(b: &mut GraphBuilder<'_>, parts: bool) -> Result<Variables, TrainError> {
    let mut variables = Variables::new();
    variables.add(b, "w", DType::FLOAT, &[2, 3], &Initial::Zeros)?;
    variables.add(b, "b", DType::FLOAT, &[3], &Initial::Zeros)?;
    variables.add(b, "global_step", DType::INT64, &[], &Initial::Zeros)?;
    if !parts {
        variables.add(b, "table", DType::FLOAT, &[4, 2], &Initial::Zeros)?;
        return Ok(variables);
    }
    for (part, rows) in [1, 3].into_iter().enumerate() {
        let slice = SaveSliceInfoDef {
            full_name: "table".to_owned(),
            full_shape: vec![4, 2],
            var_offset: vec![part as i64, 0],
            var_shape: vec![rows, 2],
        };
        let options = VariableOptions { slice: Some(slice), ..VariableOptions::default() };
        let name = format!("table/part_{part}");
        variables.add_with(b, &name, DType::FLOAT, &[rows, 2], &Initial::Zeros, options)?;
    }
    Ok(variables)
}

fn golden_session(runtime: &Runtime, parts: bool) -> (std::sync::Arc<dyn AnySession>, Scaffold) {
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let variables = golden_variables(&mut b, parts).unwrap();
    let scaffold = Scaffold::build(&mut b, &variables, SaverOptions::default()).unwrap();
    (fresh(&*local(runtime), &scaffold), scaffold)
}

fn read(session: &dyn AnySession, name: &str) -> Vec<f32> {
    let name = format!("{name}/Read/ReadVariableOp");
    values(&session.run_step(&[], &[&name], &[], None).unwrap()[0])
}

#[test]
fn checkpoints_of_tensorflow_are_restored_also_in_other_parts() {
    let _turn = turn();
    let runtime = plugins();
    let latest = latest_checkpoint(goldens()).unwrap().unwrap();
    assert_eq!(latest, goldens().join("model-2"));
    let table: Vec<f32> = (0..8).map(|at| 1.5 * at as f32).collect();
    for parts in [false, true] {
        let (session, scaffold) = golden_session(&runtime, parts);
        saver(&scaffold).restore(&*session, &latest).unwrap();
        let expected: Vec<f32> = (0..6).map(|at| at as f32 / 4.0 + 2.0).collect();
        assert_eq!(read(&*session, "w"), expected);
        assert_eq!(read(&*session, "b"), [10.0, 10.25, 10.5]);
        let found = match parts {
            false => read(&*session, "table"),
            true => [read(&*session, "table/part_0"), read(&*session, "table/part_1")].concat(),
        };
        assert_eq!(found, table);
        // What is written has the same tensors, whichever parts they are of.
        let folder = tempfile::tempdir().unwrap();
        let path = saver(&scaffold).save(&*session, folder.path().join("m"), None).unwrap();
        let (other, scaffold) = golden_session(&runtime, !parts);
        saver(&scaffold).restore(&*other, &path).unwrap();
        assert_eq!(read(&*other, "w"), expected);
    }
}

#[test]
fn the_graph_of_tensorflow_runs_with_its_saver() {
    let _turn = turn();
    let runtime = plugins();
    let meta: MetaGraphDef = decode(&fs::read(goldens().join("model-2.meta")).unwrap()).unwrap();
    let saver = Saver::from_def(meta.saver_def.clone().unwrap()).unwrap();
    let session = local(&runtime).open(&meta.graph_def.unwrap()).unwrap();
    saver.restore(&*session, goldens().join("model-1")).unwrap();
    let expected: Vec<f32> = (0..6).map(|at| at as f32 / 4.0 + 1.0).collect();
    assert_eq!(read(&*session, "w"), expected);
    let wrong = Saver::from_def(tenon_proto::SaverDef::default()).unwrap_err();
    assert_eq!(wrong.code(), Code::INVALID_ARGUMENT);
}

#[test]
fn variables_are_restored_from_tensors_of_other_names() {
    let _turn = turn();
    let (folder, runtime) = (tempfile::tempdir().unwrap(), plugins());
    let scaffold = scaffold(&runtime);
    let session = fresh(&*local(&runtime), &scaffold);
    train(&*session, 5);
    let path = saver(&scaffold).save(&*session, folder.path().join("m"), None).unwrap();
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let mut variables = Variables::new();
    let other = variables.add(&mut b, "other", DType::FLOAT, &[2], &Initial::Zeros).unwrap();
    let named = [("w".to_owned(), other.clone())];
    let saver = Saver::build_named(&mut b, &named, SaverOptions::default()).unwrap();
    let twice = [("w".to_owned(), other.clone()), ("w".to_owned(), other)];
    let error = Saver::build_named(&mut b, &twice, SaverOptions::default()).unwrap_err();
    assert!(error.to_string().contains("found 'w' twice"), "{error}");
    let session = local(&runtime).open(&b.finish().to_graph_def().unwrap()).unwrap();
    saver.restore(&*session, &path).unwrap();
    assert_eq!(read(&*session, "other"), w_after(5));
}

#[test]
fn a_value_of_another_shape_is_found_when_it_is_read() {
    let _turn = turn();
    let (folder, runtime) = (tempfile::tempdir().unwrap(), plugins());
    let scaffold = scaffold(&runtime);
    let session = fresh(&*local(&runtime), &scaffold);
    let path = saver(&scaffold).save(&*session, folder.path().join("m"), None).unwrap();
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let mut variables = Variables::new();
    let other = variables.add(&mut b, "other", DType::FLOAT, &[3], &Initial::Zeros).unwrap();
    let named = [("w".to_owned(), other)];
    let saver = Saver::build_named(&mut b, &named, SaverOptions::default()).unwrap();
    let session = local(&runtime).open(&b.finish().to_graph_def().unwrap()).unwrap();
    saver.restore(&*session, &path).unwrap();
    let read = session.run_step(&[], &["other/Read/ReadVariableOp"], &[], None);
    let error = read.unwrap_err();
    assert_eq!(error.code, Code::INVALID_ARGUMENT, "{error}");
    let text = error.to_string();
    assert!(text.contains("expected shape [3]") && text.contains("found [2]"), "{text}");
}

#[test]
fn shards_become_one_checkpoint() {
    let _turn = turn();
    let (folder, runtime) = (tempfile::tempdir().unwrap(), plugins());
    let options = SaverOptions { sharded: true, ..SaverOptions::default() };
    let scaffold = scaffold_with(&runtime, options, |b, variables| {
        let options =
            VariableOptions { device: "/device:CPU:0".to_owned(), ..VariableOptions::default() };
        let value = Initial::Value(Tensor::from_slice(&[1], &[7f32])?);
        variables.add_with(b, "placed", DType::FLOAT, &[1], &value, options)?;
        Ok(())
    });
    let session = fresh(&*local(&runtime), &scaffold);
    train(&*session, 2);
    let path = saver(&scaffold).save(&*session, folder.path().join("m"), Some(2)).unwrap();
    let expected = [
        "checkpoint",
        "m-2.data-00000-of-00002",
        "m-2.data-00001-of-00002",
        "m-2.index",
        "m-2.meta",
    ];
    assert_eq!(files(folder.path()), expected);
    let session = fresh(&*local(&runtime), &scaffold);
    saver(&scaffold).restore(&*session, &path).unwrap();
    assert_eq!(w(&*session), w_after(2));
    assert_eq!(read(&*session, "placed"), [7.0]);
}

fn variables_of(meta: &MetaGraphDef, collection: &str) -> Vec<String> {
    let found = meta.collection_def.get(collection).and_then(|found| found.kind.as_ref());
    let Some(CollectionDefKind::BytesList(list)) = found else { return Vec::new() };
    let read = list.value.iter().map(|bytes| decode::<VariableDef>(bytes).unwrap());
    read.map(|variable| variable.variable_name).collect()
}

#[test]
fn the_graph_is_written_beside_the_checkpoint() {
    let _turn = turn();
    let (folder, runtime) = (tempfile::tempdir().unwrap(), plugins());
    let scaffold = scaffold(&runtime);
    let session = fresh(&*local(&runtime), &scaffold);
    saver(&scaffold).save(&*session, folder.path().join("m"), None).unwrap();
    let meta: MetaGraphDef = decode(&fs::read(folder.path().join("m.meta")).unwrap()).unwrap();
    assert_eq!(variables_of(&meta, "variables"), ["global_step:0", "w:0"]);
    assert_eq!(variables_of(&meta, "trainable_variables"), ["w:0"]);
    assert!(meta.collection_def.contains_key("savers"));
    assert_eq!(meta.saver_def.as_ref(), Some(saver(&scaffold).def()));
    let again = local(&runtime).open(&meta.graph_def.unwrap()).unwrap();
    saver(&scaffold).restore(&*again, folder.path().join("m")).unwrap();
    assert_eq!(w(&*again), w_after(0));
}

#[test]
fn names_that_cannot_be_prefixes_are_refused() {
    let _turn = turn();
    let runtime = plugins();
    let scaffold = scaffold(&runtime);
    let session = fresh(&*local(&runtime), &scaffold);
    for prefix in ["", "folder/"] {
        let error = saver(&scaffold).save(&*session, Path::new(prefix), None).unwrap_err();
        assert_eq!(error.code(), Code::INVALID_ARGUMENT, "{error}");
    }
}
