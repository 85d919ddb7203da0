//! Training loops: hooks, ends, losses of the session, and who prepares variables.

use super::model::{
    PLUGINS, W, everywhere, files, fresh, local, plugins, remote, scaffold, scaffold_with, train,
    w, w_after,
};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use tenon_cluster::{Server, ServerOptions};
use tenon_runtime::{
    AnySession, SessionError, Worker,
    framework::{Code, DType, Tensor},
    proto::GraphDef,
};
use tenon_tests::session::{runtime, turn, values};
use tenon_training::{
    CheckpointSaver, Every, Feed, GlobalStepWaiter, Hook, LoggingTensor, LoopOptions,
    ManagerOptions, MonitoredSession, NanTensor, Progress, RunContext, SaverOptions, Scaffold,
    SessionManager, StepCounter, StopAtStep, Summary, Target, TrainError, latest_checkpoint,
    read_step,
};

const STEP: &str = "global_step/Read/ReadVariableOp";

fn options(folder: Option<&std::path::Path>) -> LoopOptions {
    LoopOptions {
        manager: ManagerOptions {
            checkpoint_folder: folder.map(ToOwned::to_owned),
            ..ManagerOptions::default()
        },
        pause: Duration::from_millis(10),
        recovery: Duration::from_secs(20),
        ..LoopOptions::default()
    }
}

/// A shared list that hooks add to.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl Told {
    fn add(&self, text: impl Into<String>) {
        self.0.lock().unwrap().push(text.into());
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

#[test]
fn a_training_stops_at_its_step_and_goes_on_from_its_checkpoint() {
    let _turn = turn();
    everywhere(|runtime, target| {
        let folder = tempfile::tempdir().unwrap();
        for (last, found) in [(5, 5), (12, 12), (12, 12)] {
            let hooks: Vec<Box<dyn Hook>> = vec![
                Box::new(CheckpointSaver::new(folder.path(), Every::Steps(2)).name("m")),
                Box::new(StopAtStep::last(last)),
            ];
            let scaffold = scaffold(runtime);
            let options = options(Some(folder.path()));
            let open = MonitoredSession::open(Arc::clone(&target), scaffold, hooks, options);
            open.unwrap().train(&["train"]).unwrap();
            let latest = latest_checkpoint(folder.path()).unwrap().unwrap();
            assert_eq!(latest, folder.path().join(format!("m-{found}")));
            let scaffold = super::model::scaffold(runtime);
            let session = fresh(&*target, &scaffold);
            scaffold.saver.unwrap().restore(&*session, latest).unwrap();
            assert_eq!(w(&*session), w_after(found));
        }
    });
}

#[test]
fn a_number_of_steps_counts_from_the_start() {
    let _turn = turn();
    let runtime = plugins();
    let hooks: Vec<Box<dyn Hook>> = vec![Box::new(StopAtStep::after(3))];
    let mut training =
        MonitoredSession::open(local(&runtime), scaffold(&runtime), hooks, options(None)).unwrap();
    let mut ran = 0;
    while !training.should_stop() {
        // The same tensor is fetched by the hook.
        let fetched = training.run(&[], &[&format!("{STEP}:0"), W], &["train"]).unwrap();
        assert_eq!(fetched.len(), 2);
        ran += 1;
    }
    assert_eq!(ran, 3);
    training.close().unwrap();
}

/// Tells of every call.
struct Calls {
    told: Told,
    stops_after: usize,
}

impl Hook for Calls {
    fn begin(&mut self, scaffold: &Scaffold) -> Result<(), TrainError> {
        assert!(!scaffold.graph.node.is_empty());
        self.told.add("begin");
        Ok(())
    }

    fn after_create_session(&mut self, run: &mut RunContext<'_>) -> Result<(), TrainError> {
        assert_eq!(read_step(run.session(), STEP)?, 0);
        self.told.add("created");
        Ok(())
    }

    fn after_run(&mut self, run: &mut RunContext<'_>, _: &[Tensor]) -> Result<(), TrainError> {
        self.told.add("ran");
        self.stops_after -= 1;
        if self.stops_after == 0 {
            run.request_stop();
        }
        Ok(())
    }

    fn end(&mut self, _: &dyn AnySession) -> Result<(), TrainError> {
        self.told.add("end");
        Ok(())
    }
}

#[test]
fn a_hook_stops_the_training() {
    let _turn = turn();
    let (runtime, told) = (plugins(), Told::default());
    let hook = Calls { told: told.clone(), stops_after: 2 };
    let training = MonitoredSession::open(
        local(&runtime),
        scaffold(&runtime),
        vec![Box::new(hook)],
        options(None),
    );
    training.unwrap().train(&["train"]).unwrap();
    assert_eq!(told.all(), ["begin", "created", "ran", "ran", "end"]);
}

#[test]
fn the_end_of_the_input_ends_the_training() {
    let _turn = turn();
    let (runtime, told) = (plugins(), Told::default());
    let scaffold = scaffold_with(&runtime, SaverOptions::default(), |b, _| {
        b.placeholder("x", DType::FLOAT, tenon_runtime::framework::PartialShape::new(&[])?)?;
        Ok(())
    });
    let mut batches = vec![1f32, 2.0, 3.0].into_iter();
    let feed = Feed::new(move || {
        let next =
            batches.next().ok_or_else(|| SessionError::new(Code::OUT_OF_RANGE, "no more"))?;
        Ok(vec![("x".to_owned(), Tensor::scalar(next)?)])
    });
    let lines = told.clone();
    let log = LoggingTensor::with(&["x"], Every::Steps(2), move |line| lines.add(line));
    let hooks: Vec<Box<dyn Hook>> = vec![Box::new(feed), Box::new(log)];
    let training = MonitoredSession::open(local(&runtime), scaffold, hooks, options(None)).unwrap();
    training.train(&["train"]).unwrap();
    assert_eq!(told.all(), ["x = 1", "x = 3"]);
}

#[test]
fn a_value_that_is_not_finite_is_named_and_not_saved() {
    let _turn = turn();
    let runtime = plugins();
    let folder = tempfile::tempdir().unwrap();
    // 1 / (3 - step) is infinite in the step that begins with 3.
    let model = |b: &mut tenon_graph::GraphBuilder<'_>, v: &mut tenon_training::Variables| {
        let step = v.find("global_step").expect("it is there").value;
        let three = b.constant("three", Tensor::scalar(3i64)?)?;
        let left = b.op("Sub").name("left").input(three).input(step).build()?;
        let left = b.op("Cast").name("left_f").input(left).attr("SrcT", DType::INT64);
        let left = left.attr("DstT", DType::FLOAT).build()?;
        b.op("Reciprocal").name("loss").input(left).build()?;
        Ok(())
    };
    for fails in [true, false] {
        let scaffold = scaffold_with(&runtime, SaverOptions::default(), model);
        let nan = NanTensor::new(&[W, "loss"]);
        let nan = if fails { nan } else { nan.stops() };
        let place = folder.path().join(if fails { "fails" } else { "stops" });
        let hooks: Vec<Box<dyn Hook>> = vec![
            Box::new(nan),
            Box::new(CheckpointSaver::new(&place, Every::Steps(100)).name("m")),
        ];
        let training = MonitoredSession::open(local(&runtime), scaffold, hooks, options(None));
        let mut training = training.unwrap();
        let mut ended = Ok(());
        while !training.should_stop() && ended.is_ok() {
            // The value that is looked at does not change while the step runs.
            ended = training.run(&[], &[], &[]).map(drop);
            if ended.is_ok() && !training.should_stop() {
                train(&**training.session().expect("it has one"), 1);
            }
        }
        training.close().unwrap();
        match (fails, ended) {
            (true, Err(error)) => {
                assert_eq!(error.code(), Code::INVALID_ARGUMENT);
                let text = error.to_string();
                let expected = "tensor 'loss': expected finite values, found inf as element 0";
                assert!(text.starts_with(expected), "{text}");
                assert!(!files(&place).contains(&"m-3.index".to_owned()));
            }
            (false, Ok(())) => assert!(files(&place).contains(&"m-3.index".to_owned())),
            (_, ended) => panic!("fails: {fails}, found {ended:?}"),
        }
    }
}

/// Sessions that are lost at given steps. `train` counts.
struct Flaky {
    inner: Arc<dyn AnySession>,
    trained: Arc<AtomicUsize>,
    lost_at: Arc<Vec<usize>>,
    code: Code,
}

impl AnySession for Flaky {
    fn run_step(
        &self,
        feeds: &[(&str, Tensor)],
        fetches: &[&str],
        targets: &[&str],
        deadline: Option<Duration>,
    ) -> Result<Vec<Tensor>, SessionError> {
        if targets == ["train"] {
            let number = self.trained.fetch_add(1, Ordering::SeqCst);
            if self.lost_at.contains(&number) {
                // What the session had is gone.
                self.inner.run_step(&[], &[], &["init"], None)?;
                return Err(SessionError::new(self.code, "the server is gone"));
            }
        }
        self.inner.run_step(feeds, fetches, targets, deadline)
    }

    fn add_nodes(&self, graph: &GraphDef) -> Result<(), SessionError> {
        self.inner.add_nodes(graph)
    }

    fn close_session(&self) -> Result<(), SessionError> {
        self.inner.close_session()
    }
}

/// A target with sessions that are lost, and how many were opened.
fn flaky(
    target: Arc<dyn Target>,
    lost_at: &[usize],
    code: Code,
) -> (Arc<dyn Target>, Arc<AtomicUsize>) {
    let (opened, trained) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (count, lost_at) = (Arc::clone(&opened), Arc::new(lost_at.to_vec()));
    let open = move |graph: &GraphDef| -> Result<Arc<dyn AnySession>, SessionError> {
        // Every second attempt fails at once.
        if count.fetch_add(1, Ordering::SeqCst) % 2 == 1 {
            return Err(SessionError::new(Code::UNAVAILABLE, "the server is not there"));
        }
        let (trained, lost_at) = (Arc::clone(&trained), Arc::clone(&lost_at));
        Ok(Arc::new(Flaky { inner: target.open(graph)?, trained, lost_at, code }))
    };
    (Arc::new(open), opened)
}

#[test]
fn a_lost_session_is_replaced_and_restored() {
    let _turn = turn();
    for code in [Code::ABORTED, Code::UNAVAILABLE] {
        let (runtime, folder) = (plugins(), tempfile::tempdir().unwrap());
        let (target, opened) = flaky(local(&runtime), &[5, 6, 11], code);
        let hooks: Vec<Box<dyn Hook>> = vec![
            Box::new(CheckpointSaver::new(folder.path(), Every::Steps(2)).name("m")),
            Box::new(StopAtStep::last(10)),
        ];
        let options = options(Some(folder.path()));
        let training = MonitoredSession::open(target, scaffold(&runtime), hooks, options).unwrap();
        training.train(&["train"]).unwrap();
        assert_eq!(opened.load(Ordering::SeqCst), 7, "three losses, each with an attempt in vain");
        let scaffold = scaffold(&runtime);
        let session = fresh(&*local(&runtime), &scaffold);
        scaffold.saver.unwrap().restore(&*session, folder.path().join("m-10")).unwrap();
        assert_eq!(w(&*session), w_after(10));
    }
}

#[test]
fn other_errors_end_the_training_and_nothing_is_saved() {
    let _turn = turn();
    let (runtime, folder) = (plugins(), tempfile::tempdir().unwrap());
    let (target, opened) = flaky(local(&runtime), &[3], Code::INTERNAL);
    let saver = CheckpointSaver::new(folder.path(), Every::Steps(100)).name("m");
    let hooks: Vec<Box<dyn Hook>> = vec![Box::new(saver), Box::new(StopAtStep::last(10))];
    let training = MonitoredSession::open(target, scaffold(&runtime), hooks, options(None));
    let error = training.unwrap().train(&["train"]).unwrap_err();
    assert_eq!((error.code(), error.to_string().as_str()), (Code::INTERNAL, "the server is gone"));
    assert_eq!(opened.load(Ordering::SeqCst), 1);
    assert_eq!(latest_checkpoint(folder.path()).unwrap(), Some(folder.path().join("m-0")));
}

#[test]
fn a_place_that_stays_away_is_given_up() {
    let _turn = turn();
    let runtime = plugins();
    let options = LoopOptions { recovery: Duration::from_millis(300), ..options(None) };
    let begin = Instant::now();
    let target = remote("grpc://127.0.0.1:1".to_owned());
    let error = MonitoredSession::open(target, scaffold(&runtime), Vec::new(), options).err();
    assert_eq!(error.map(|error| error.code()), Some(Code::UNAVAILABLE));
    assert!(begin.elapsed() < Duration::from_secs(15));
}

#[test]
fn variables_without_values_are_named() {
    let _turn = turn();
    let runtime = plugins();
    let manager = SessionManager::new(local(&runtime), ManagerOptions::default());
    let unset = Scaffold { init: None, ..scaffold(&runtime) };
    let error = manager.open(&unset).err().unwrap();
    assert_eq!(error.code(), Code::FAILED_PRECONDITION);
    assert!(error.to_string().contains("found none for global_step, w"), "{error}");
}

#[test]
fn workers_wait_for_the_chief() {
    let _turn = turn();
    let served = runtime(&PLUGINS, &[]);
    let server = Server::start(Worker::new(&served), &ServerOptions::default()).unwrap();
    let target = || remote(format!("grpc://{}", server.address()));
    let worker = |patience| {
        let poll = Duration::from_millis(20);
        let options =
            ManagerOptions { is_chief: false, poll, patience, ..ManagerOptions::default() };
        SessionManager::new(target(), options)
    };
    let scaffold = scaffold(&served);
    let error = worker(Duration::from_millis(100)).open(&scaffold).err().unwrap();
    assert_eq!(error.code(), Code::DEADLINE_EXCEEDED);
    assert!(error.to_string().contains("these have no value: global_step, w"), "{error}");
    thread::scope(|threads| {
        let waiting =
            threads.spawn(|| worker(Duration::from_secs(60)).open(&scaffold).map(|s| w(&*s)));
        thread::sleep(Duration::from_millis(100));
        let chief = SessionManager::new(target(), ManagerOptions::default());
        chief.open(&scaffold).unwrap();
        assert_eq!(waiting.join().unwrap().unwrap(), w_after(0));
    });
}

#[test]
fn a_worker_waits_for_a_step() {
    let _turn = turn();
    let served = runtime(&PLUGINS, &[]);
    let server = Server::start(Worker::new(&served), &ServerOptions::default()).unwrap();
    let target = remote(format!("grpc://{}", server.address()));
    let scaffold = scaffold(&served);
    let chief = fresh(&*target, &scaffold);
    let manager = ManagerOptions { is_chief: false, ..ManagerOptions::default() };
    let options = LoopOptions { manager, ..options(None) };
    let waiter = GlobalStepWaiter::new(3).poll(Duration::from_millis(5));
    let mut worker =
        MonitoredSession::open(target, scaffold, vec![Box::new(waiter)], options).unwrap();
    thread::scope(|threads| {
        let step =
            threads.spawn(move || worker.run(&[], &[W], &[]).map(|values| values[0].clone()));
        thread::sleep(Duration::from_millis(60));
        assert!(!step.is_finished());
        train(&*chief, 3);
        assert_eq!(values(&step.join().unwrap().unwrap()), w_after(3));
    });
}

/// A stream whose text tests read.
impl std::io::Write for Told {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.add(String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn steps_values_and_summaries_are_reported() {
    let _turn = turn();
    let runtime = plugins();
    let scaffold = scaffold_with(&runtime, SaverOptions::default(), |b, _| {
        // Any string will do as a summary.
        b.constant("summary", Tensor::from_strings(&[], &["bytes"])?)?;
        Ok(())
    });
    let [rates, summaries, line] = [0; 3].map(|_| Told::default());
    let (rate_told, summary_told) = (rates.clone(), summaries.clone());
    let counter = StepCounter::with(Every::Steps(2), move |rate, _| {
        rate_told.add(if rate > 0.0 { "a rate" } else { "none" });
    });
    let sink = move |summary: &[u8], _: i64| -> Result<(), TrainError> {
        summary_told.add(String::from_utf8_lossy(summary));
        Ok(())
    };
    let progress = Progress::to(line.clone(), true).loss(W).last_step(6);
    let hooks: Vec<Box<dyn Hook>> = vec![
        Box::new(StopAtStep::last(6)),
        Box::new(counter),
        Box::new(Summary::new("summary", Every::Steps(3), sink)),
        Box::new(progress),
    ];
    let training = MonitoredSession::open(local(&runtime), scaffold, hooks, options(None)).unwrap();
    training.train(&["train"]).unwrap();
    assert!(rates.all().len() >= 2 && rates.all().iter().all(|rate| rate == "a rate"));
    assert!((1..=3).contains(&summaries.all().len()), "{:?}", summaries.all());
    assert!(summaries.all().iter().all(|summary| summary == "bytes"));
    let text = line.all().concat();
    assert!(text.contains("\r\u{1b}[2Kstep ") && text.contains("/6  loss ["), "{text:?}");
    assert!(text.contains("step 6/6") && text.ends_with('\n'), "{text:?}");
}

#[test]
fn hooks_that_count_need_a_global_step() {
    let _turn = turn();
    let runtime = plugins();
    let scaffold = Scaffold { global_step: None, ..scaffold(&runtime) };
    let hooks: Vec<Box<dyn Hook>> = vec![Box::new(StopAtStep::last(1))];
    let error = MonitoredSession::open(local(&runtime), scaffold, hooks, options(None)).err();
    let text = error.unwrap().to_string();
    assert!(text.starts_with("StopAtStep: expected a variable 'global_step'"), "{text}");
}
