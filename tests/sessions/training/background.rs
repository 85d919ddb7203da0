//! Saves in the background: what the files have, who waits for whom, and where errors go.

use super::model::{
    everywhere, files, fresh, local, plugins, scaffold, scaffold_with, train, w, w_after,
};
use std::{
    fs::File,
    path::Path,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};
use tenon_runtime::{
    Runtime,
    framework::{Code, DType, Tensor},
};
use tenon_tests::session::turn;
use tenon_training::{
    CheckpointSaver, Every, Hook, Initial, LoopOptions, ManagerOptions, MonitoredSession, Saver,
    SaverOptions, Scaffold, StopAtStep, VariableOptions, latest_checkpoint,
};

fn in_background(runtime: &Runtime, sharded: bool) -> Scaffold {
    let options =
        SaverOptions { background: true, sharded, max_to_keep: 0, ..SaverOptions::default() };
    scaffold_with(runtime, options, |b, variables| {
        let options =
            VariableOptions { device: "/device:CPU:0".to_owned(), ..VariableOptions::default() };
        let value = Initial::Value(Tensor::from_slice(&[1], &[7f32])?);
        variables.add_with(b, "placed", DType::FLOAT, &[1], &value, options)?;
        Ok(())
    })
}

fn saver(scaffold: &Scaffold) -> Arc<Saver> {
    scaffold.saver.clone().expect("a scaffold of variables has a saver")
}

/// Holds back whoever writes a checkpoint into this folder, before its files get their names.
fn held(folder: &Path) -> File {
    let held = File::open(folder).unwrap();
    held.lock().unwrap();
    held
}

#[test]
fn the_files_have_the_values_of_the_beginning() {
    let _turn = turn();
    everywhere(|runtime, target| {
        for sharded in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let scaffold = in_background(runtime, sharded);
            let session = fresh(&*target, &scaffold);
            train(&*session, 3);
            let held = held(folder.path());
            let begun = saver(&scaffold).save_in_background(
                Arc::clone(&session),
                folder.path().join("m"),
                Some(3),
            );
            let path = begun.unwrap();
            assert_eq!(path, folder.path().join("m-3"));
            train(&*session, 5);
            assert_eq!(w(&*session), w_after(8), "steps go on");
            assert_eq!(latest_checkpoint(folder.path()).unwrap(), None);
            assert!(saver(&scaffold).checkpoints().is_empty());
            drop(held);
            saver(&scaffold).wait().unwrap();
            assert_eq!(latest_checkpoint(folder.path()).unwrap(), Some(path.clone()));
            saver(&scaffold).restore(&*session, &path).unwrap();
            assert_eq!(w(&*session), w_after(3));
            // The session holds no copy any more.
            let copy = "save_background/w/Read/ReadVariableOp";
            let error = session.run_step(&[], &[copy], &[], None).unwrap_err();
            assert!(matches!(error.code, Code::FAILED_PRECONDITION | Code::NOT_FOUND), "{error}");
            session.close_session().unwrap();
        }
    });
}

#[test]
fn one_save_waits_for_the_other() {
    let _turn = turn();
    let (folder, runtime) = (tempfile::tempdir().unwrap(), plugins());
    let scaffold = in_background(&runtime, false);
    let session = fresh(&*local(&runtime), &scaffold);
    let (saver, prefix) = (saver(&scaffold), folder.path().join("m"));
    for at in [0, 10] {
        let held = held(folder.path());
        saver.save_in_background(Arc::clone(&session), &prefix, Some(at)).unwrap();
        train(&*session, 1);
        let (tell, told) = mpsc::channel();
        let (other, session, prefix) = (Arc::clone(&saver), Arc::clone(&session), prefix.clone());
        let second = thread::spawn(move || {
            let saved = match at {
                0 => other.save(&*session, prefix, Some(at + 1)),
                _ => other.save_in_background(session, prefix, Some(at + 1)),
            };
            tell.send(()).unwrap();
            saved
        });
        assert!(told.recv_timeout(Duration::from_millis(200)).is_err(), "it did not wait");
        drop(held);
        second.join().unwrap().unwrap();
        saver.wait().unwrap();
    }
    let expected = [0, 1, 10, 11].map(|step| folder.path().join(format!("m-{step}")));
    assert_eq!(saver.checkpoints(), expected);
    for (path, steps) in expected.iter().zip([0, 1, 1, 2]) {
        saver.restore(&*session, path).unwrap();
        assert_eq!(w(&*session), w_after(steps));
    }
}

#[test]
fn an_error_is_that_of_the_next_save_or_of_the_wait() {
    let _turn = turn();
    let (folder, runtime) = (tempfile::tempdir().unwrap(), plugins());
    let scaffold = in_background(&runtime, false);
    let session = fresh(&*local(&runtime), &scaffold);
    let (saver, prefix) = (saver(&scaffold), folder.path().join("m"));
    let begin = |prefix: &Path| saver.save_in_background(Arc::clone(&session), prefix, Some(1));
    // Nobody may make files here, not even a superuser.
    let nowhere = Path::new("/proc/tenon/m");
    begin(nowhere).unwrap();
    let error = saver.wait().unwrap_err();
    assert!(error.to_string().contains("/proc/tenon"), "{error}");
    saver.wait().unwrap();
    begin(nowhere).unwrap();
    let error = begin(&prefix).unwrap_err();
    assert!(error.to_string().contains("/proc/tenon"), "{error}");
    begin(nowhere).unwrap();
    let error = saver.save(&*session, &prefix, Some(1)).unwrap_err();
    assert!(error.to_string().contains("/proc/tenon"), "{error}");
    assert!(files(folder.path()).is_empty(), "nothing else was done");
    begin(&prefix).unwrap();
    saver.wait().unwrap();
    assert_eq!(latest_checkpoint(folder.path()).unwrap(), Some(folder.path().join("m-1")));
}

#[test]
fn a_saver_without_the_nodes_says_so() {
    let _turn = turn();
    let (folder, runtime) = (tempfile::tempdir().unwrap(), plugins());
    let scaffold = scaffold(&runtime);
    let session = fresh(&*local(&runtime), &scaffold);
    let begun = saver(&scaffold).save_in_background(session, folder.path().join("m"), None);
    let error = begun.unwrap_err();
    assert_eq!(error.code(), Code::INVALID_ARGUMENT);
    assert!(error.to_string().contains("SaverOptions::background"), "{error}");
}

#[test]
fn a_training_saves_in_the_background() {
    let _turn = turn();
    everywhere(|runtime, target| {
        let folder = tempfile::tempdir().unwrap();
        for last in [7, 12] {
            let hook = CheckpointSaver::new(folder.path(), Every::Steps(2)).name("m");
            let hooks: Vec<Box<dyn Hook>> =
                vec![Box::new(hook.in_background()), Box::new(StopAtStep::last(last))];
            let manager = ManagerOptions {
                checkpoint_folder: Some(folder.path().to_owned()),
                ..ManagerOptions::default()
            };
            let options = LoopOptions { manager, ..LoopOptions::default() };
            let scaffold = in_background(runtime, false);
            let training =
                MonitoredSession::open(Arc::clone(&target), scaffold, hooks, options).unwrap();
            training.train(&["train"]).unwrap();
            let latest = latest_checkpoint(folder.path()).unwrap();
            assert_eq!(latest, Some(folder.path().join(format!("m-{last}"))));
        }
        // Every checkpoint has the values of its step, although steps went on meanwhile.
        let scaffold = in_background(runtime, false);
        let session = fresh(&*target, &scaffold);
        for step in [0, 2, 4, 6, 7, 9, 11, 12] {
            let path = folder.path().join(format!("m-{step}"));
            saver(&scaffold).restore(&*session, path).unwrap();
            assert_eq!(w(&*session), w_after(step), "step {step}");
        }
    });
}

#[test]
fn a_training_ends_with_the_error_of_a_save_in_the_background() {
    let _turn = turn();
    let (folder, runtime) = (tempfile::tempdir().unwrap(), plugins());
    let run = folder.path().join("run");
    let hook = CheckpointSaver::new(&run, Every::Steps(2)).name("m").in_background();
    let hooks: Vec<Box<dyn Hook>> = vec![Box::new(hook), Box::new(StopAtStep::last(4))];
    let scaffold = in_background(&runtime, false);
    let target = local(&runtime);
    let mut training =
        MonitoredSession::open(target, scaffold, hooks, LoopOptions::default()).unwrap();
    std::fs::remove_dir_all(&run).unwrap();
    std::fs::write(&run, b"a file in the place of the folder").unwrap();
    let ran = (0..4).try_for_each(|_| training.run(&[], &[], &["train"]).map(drop));
    let error = ran.and_then(|()| training.close()).unwrap_err();
    assert!(error.to_string().contains(&run.display().to_string()), "{error}");
}
