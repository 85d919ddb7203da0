//! A worker without devices, called as a master calls it.

use super::WorkerService;
use crate::{
    call::Call,
    refusal::{Mark, Refusal},
    transport::{Abandon, Done, Transport, Wanted, Withdraw},
};
use std::sync::Arc;
use tenon_framework::Code;
use tenon_proto::{
    CleanupGraphRequest, ClusterDef, CreateWorkerSessionRequest, DeleteWorkerSessionRequest,
    DeregisterGraphRequest, GraphDef, NodeDef, RecvTensorRequest, RegisterGraphRequest,
    RunGraphRequest,
};
use tenon_runtime::{
    CancelToken, Runtime, RuntimeOptions, Worker,
    rendezvous::{Key, Parcel},
};

/// A cluster without other tasks.
pub(super) struct Nobody;

impl Transport for Nobody {
    fn recv_tensor(&self, wanted: Wanted, done: Done) -> Withdraw {
        done(Err(Refusal::unreachable(&wanted.task, "there is none")));
        Box::new(|_| ())
    }

    fn push(&self, _: &str, _: i64, _: &Key, _: &Parcel) -> bool {
        false
    }

    fn came(&self, _: &str, _: crate::way::Way, _: usize) {}

    fn complete_group(
        &self,
        leader: &str,
        _: tenon_proto::CompleteGroupRequest,
        done: crate::transport::Asked<tenon_proto::CompleteGroupResponse>,
    ) -> Abandon {
        done(Err(Refusal::unreachable(leader, "there is none")));
        Box::new(|| ())
    }

    fn complete_instance(
        &self,
        leader: &str,
        _: tenon_proto::CompleteInstanceRequest,
        done: crate::transport::Asked<tenon_proto::CompleteInstanceResponse>,
    ) -> Abandon {
        done(Err(Refusal::unreachable(leader, "there is none")));
        Box::new(|| ())
    }

    fn recv_buf(
        &self,
        task: &str,
        _: tenon_proto::RecvBufRequest,
        _: tenon_framework::DType,
        done: crate::transport::Asked<tenon_framework::Tensor>,
    ) -> Abandon {
        done(Err(Refusal::unreachable(task, "there is none")));
        Box::new(|| ())
    }

    fn leader(&self) -> Option<String> {
        None
    }

    fn of_cluster(&self, _: &ClusterDef) -> Arc<dyn Transport> {
        Arc::new(Nobody)
    }
}

fn service() -> WorkerService {
    let none: [&str; 0] = [];
    let (runtime, _) = Runtime::new(RuntimeOptions::with_plugins(none)).expect("it starts");
    WorkerService::new(Worker::new(&runtime), "/job:w/replica:0/task:0", Arc::new(Nobody), None)
}

fn call<Q>(request: Q) -> Call<Q> {
    Call { request, client: None, cancel: CancelToken::new() }
}

fn open(service: &WorkerService, handle: &str, incarnation: i64) -> Result<(), Refusal> {
    let request = CreateWorkerSessionRequest {
        session_handle: handle.to_owned(),
        master_task: "/job:w/replica:0/task:1".to_owned(),
        master_incarnation: incarnation,
        ..CreateWorkerSessionRequest::default()
    };
    service.create_worker_session(call(request)).map(drop)
}

fn register(service: &WorkerService, handle: &str, graph: GraphDef) -> Result<String, Refusal> {
    let request = RegisterGraphRequest {
        session_handle: handle.to_owned(),
        graph_def: Some(graph),
        create_worker_session_called: true,
        ..RegisterGraphRequest::default()
    };
    service.register_graph(call(request)).map(|answer| answer.graph_handle)
}

fn deregister(service: &WorkerService, session: &str) -> Result<(), Refusal> {
    let request = DeregisterGraphRequest {
        graph_handle: "g".to_owned(),
        session_handle: session.to_owned(),
        create_worker_session_called: true,
    };
    service.deregister_graph(call(request)).map(drop)
}

fn run_of(session: &str, graph: &str) -> RunGraphRequest {
    RunGraphRequest {
        session_handle: session.to_owned(),
        graph_handle: graph.to_owned(),
        create_worker_session_called: true,
        step_id: 3,
        ..RunGraphRequest::default()
    }
}

/// Checks that a handle is refused as one of a worker that was started anew.
fn lost<T: std::fmt::Debug>(result: Result<T, Refusal>, what: &str) {
    let refusal = result.expect_err("the worker does not have it");
    assert_eq!((refusal.code, refusal.mark), (Code::ABORTED, Mark::Restarted), "{refusal:?}");
    assert!(refusal.message.contains(what), "{}", refusal.message);
}

#[test]
fn handles_that_the_worker_does_not_have_are_aborted() {
    let service = service();
    lost(register(&service, "s", GraphDef::default()), "Session handle is not found: s");
    open(&service, "s", 1).unwrap();
    // A request that comes again does not open another session.
    open(&service, "s", 1).unwrap();
    let twice = open(&service, "s", 2).unwrap_err();
    assert_eq!(twice.code, Code::ALREADY_EXISTS);
    lost(service.run_graph(call(run_of("s", "g"))), "Graph handle is not found: g");
    lost(deregister(&service, "s"), "Graph handle is not found: g");
    let request = || DeleteWorkerSessionRequest { session_handle: "s".to_owned() };
    service.delete_worker_session(call(request())).unwrap();
    service.delete_worker_session(call(request())).unwrap();
    lost(deregister(&service, "s"), "Session handle is not found: s");
    // A master that does not open sessions has the shared one.
    let shared = RunGraphRequest { create_worker_session_called: false, ..run_of("", "g") };
    lost(service.run_graph(call(shared)), "Graph handle is not found: g");
}

#[test]
fn a_master_that_was_started_anew_ends_its_earlier_sessions() {
    let service = service();
    open(&service, "first", 1).unwrap();
    open(&service, "second", 1).unwrap();
    lost(deregister(&service, "first"), "Graph handle");
    open(&service, "third", 2).unwrap();
    lost(deregister(&service, "first"), "Session handle is not found: first");
    lost(deregister(&service, "second"), "Session handle is not found: second");
    lost(deregister(&service, "third"), "Graph handle");
}

#[test]
fn a_worker_without_devices_takes_no_graph() {
    let service = service();
    open(&service, "s", 1).unwrap();
    let node = NodeDef { name: "n".to_owned(), op: "NoOp".to_owned(), ..NodeDef::default() };
    for nodes in [Vec::new(), vec![node]] {
        let graph = GraphDef { node: nodes, ..GraphDef::default() };
        let refusal = register(&service, "s", graph).unwrap_err();
        assert_eq!(refusal.code, Code::INVALID_ARGUMENT);
        assert!(refusal.message.contains("there are no devices"), "{}", refusal.message);
    }
}

#[test]
fn a_request_that_comes_again_is_not_run_twice() {
    let service = service();
    open(&service, "s", 1).unwrap();
    let request = |number| RunGraphRequest { request_id: number, ..run_of("s", "g") };
    lost(service.run_graph(call(request(5))), "Graph handle");
    let again = service.run_graph(call(request(5))).unwrap_err();
    assert_eq!((again.code, again.mark), (Code::ABORTED, Mark::None));
    let body = RunGraphRequest { store_errors_in_response_body: true, ..request(5) };
    let answer = service.run_graph(call(body)).unwrap();
    assert_eq!(Code(answer.status_code), Code::ABORTED);
    assert!(answer.status_error_message.contains("request 5 came before"));
    let partial = RunGraphRequest { is_partial: true, ..run_of("s", "g") };
    lost(service.run_graph(call(partial)), "Graph handle");
}

#[test]
fn cleaning_up_a_step_that_is_not_there_is_no_error() {
    let service = service();
    for _ in 0..2 {
        service.cleanup_graph(call(CleanupGraphRequest { step_id: 3 })).unwrap();
    }
    assert!(!service.is_busy());
}

#[tokio::test]
async fn a_tensor_of_a_device_that_is_not_there_is_refused() {
    let service = service();
    let ask = |key: &str| RecvTensorRequest {
        step_id: 1,
        rendezvous_key: key.to_owned(),
        ..RecvTensorRequest::default()
    };
    let key = "/job:w/replica:0/task:0/device:CPU:0;0000000000000001;/job:w/replica:0/task:1/device:CPU:0;x;0:0";
    let refusal = service.recv_tensor(ask(key)).await.unwrap_err();
    assert_eq!(refusal.code, Code::INVALID_ARGUMENT);
    assert!(refusal.message.contains("not a device of this worker"), "{}", refusal.message);
    assert!(service.recv_tensor(ask("x")).await.is_err());
}
