//! A task of the simulated cluster: the steps and rendezvous of a worker, and its links to the other tasks.

use super::{World, network};
use crate::{
    keys,
    plane::{Hold, Link, Request, Serve},
    refusal::Refusal,
    transport::{Abandon, Asked, Done, Transport, Wanted, Withdraw},
    way::Way,
    wire::Answer,
    worker::{served::Once, steps::Steps, tests::Nobody, transfer},
};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicBool, Ordering},
    },
};
use tenon_framework::{Code, DType, Tensor};
use tenon_host::collective::Collectives;
use tenon_proto::{
    ClusterDef, CompleteGroupRequest, CompleteGroupResponse, CompleteInstanceRequest,
    CompleteInstanceResponse, RecvBufRequest, RecvTensorRequest,
};
use tenon_runtime::rendezvous::{Edges, Key, Parcel};
use tokio::runtime::Handle;

/// A task, from its start to its death.
pub(super) struct Node {
    pub number: usize,
    pub incarnation: u64,
    pub steps: Steps,
    pub edges: Edges,
    links: Mutex<BTreeMap<usize, Arc<Link>>>,
    /// All links, also those that were made while another one was open.
    all: Mutex<Vec<Weak<Link>>>,
    /// Held by whoever makes a link, by the number of the other task.
    turns: [tokio::sync::Mutex<()>; super::TASKS],
    alive: AtomicBool,
    world: Weak<World>,
    own: Weak<Node>,
}

/// The name of a task.
pub(super) fn name_of(number: usize) -> String {
    format!("/job:w/replica:0/task:{number}")
}

fn number_of(task: &str) -> Option<usize> {
    task.rsplit_once(':')?.1.parse().ok()
}

impl Node {
    pub fn start(number: usize, incarnation: u64, world: &Arc<World>) -> Arc<Node> {
        let steps = Steps::new(&Collectives::new(&Arc::default()));
        Arc::new_cyclic(|own| Node {
            number,
            incarnation,
            steps,
            edges: Edges::default(),
            links: Mutex::default(),
            all: Mutex::default(),
            turns: Default::default(),
            alive: AtomicBool::new(true),
            world: Arc::downgrade(world),
            own: own.clone(),
        })
    }

    pub fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Relaxed)
    }

    /// Ends it as SIGKILL does: its connections break, and nothing more is said.
    pub fn kill(&self) {
        self.alive.store(false, Ordering::Relaxed);
        self.close("the task was killed");
        self.steps.clean_up_all();
    }

    /// Ends its links.
    pub fn close(&self, why: &str) {
        let links = std::mem::take(&mut *self.links.lock().unwrap());
        let all = std::mem::take(&mut *self.all.lock().unwrap());
        all.iter().filter_map(Weak::upgrade).for_each(|link| link.close(why));
        drop(links);
    }

    fn link(&self, number: usize) -> Option<Arc<Link>> {
        self.links.lock().unwrap().get(&number).filter(|link| link.is_open()).cloned()
    }

    fn begin(&self, peer: usize, lane: crate::plane::Lane) -> Arc<Link> {
        let serve: Weak<dyn Serve> = self.own.clone();
        let link = Link::begin(&Handle::current(), &name_of(peer), lane, serve);
        self.all.lock().unwrap().push(Arc::downgrade(&link));
        let mut links = self.links.lock().unwrap();
        let is_open = links.get(&peer).is_some_and(|link| link.is_open());
        if !is_open {
            links.insert(peer, Arc::clone(&link));
        }
        drop(links);
        link
    }

    /// The key of a request; it is refused if it asks for a tensor of the task's predecessor.
    fn key(&self, text: &str) -> Result<Key, Refusal> {
        let key = keys::parse(&self.edges, text)?;
        let is_own = key.edge.name().incarnation == self.incarnation;
        is_own.then_some(key).ok_or_else(|| Refusal::new(Code::ABORTED, "the task was restarted"))
    }

    /// The link with a task, made now if need be.
    async fn reach(&self, number: usize) -> Result<Arc<Link>, Refusal> {
        let _turn = self.turns[number].lock().await;
        if let Some(link) = self.link(number) {
            return Ok(link);
        }
        let refused = || Refusal::unreachable(&name_of(number), "connection refused");
        let world = self.world.upgrade().ok_or_else(refused)?;
        let (there, back) = world.lines();
        tokio::time::sleep(there.latency + back.latency).await;
        let other = world.node(number);
        if !other.is_alive() || !self.is_alive() {
            return Err(refused());
        }
        let (near, far, connection) = network::connect(there, back);
        world.keep(connection);
        let far = other.begin(self.number, far);
        world.keep_link(&far);
        let near = self.begin(number, near);
        world.keep_link(&near);
        Ok(near)
    }
}

impl Serve for Node {
    fn tensor(&self, request: RecvTensorRequest, done: Done) -> Withdraw {
        let done = Once::new(done);
        let later = done.clone();
        let awaited = self.key(&request.rendezvous_key).and_then(|key| {
            self.steps.await_tensor(request.step_id, key, move |value| later.call(value))
        });
        done.awaits(awaited)
    }

    fn buffer(&self, _: RecvBufRequest, done: Done) -> Withdraw {
        done(Err(Refusal::new(Code::UNIMPLEMENTED, "there are no collectives")));
        Box::new(|_| ())
    }

    fn pushed(&self, step: i64, key: String, answer: Answer, hold: Hold) {
        self.steps.pushed(step, key, answer, hold);
    }

    fn lost(&self, steps: &[i64], why: &Refusal) {
        self.steps.lost(steps, why);
    }
}

/// The other tasks, as one of them reaches them.
pub(super) struct Others(pub Arc<Node>);

impl Transport for Others {
    fn recv_tensor(&self, wanted: Wanted, done: Done) -> Withdraw {
        let number = number_of(&wanted.task).filter(|number| *number < super::TASKS);
        let request = RecvTensorRequest {
            step_id: wanted.step,
            rendezvous_key: wanted.key,
            ..RecvTensorRequest::default()
        };
        let request = Request::Tensor(request);
        let Some(number) = number else {
            done(Err(Refusal::unreachable(&wanted.task, "there is none")));
            return Box::new(|_| ());
        };
        if let Some(link) = self.0.link(number) {
            return link.ask(&request, done);
        }
        let node = Arc::clone(&self.0);
        let (end, ended) = tokio::sync::oneshot::channel();
        tokio::spawn(async move {
            let withdraw = match node.reach(number).await {
                Ok(link) => link.ask(&request, done),
                Err(refusal) => return done(Err(refusal)),
            };
            if let Ok(end) = ended.await {
                withdraw(end);
            }
        });
        Box::new(move |why| {
            // It has ended already if nobody takes it.
            let _ = end.send(why);
        })
    }

    fn push(&self, task: &str, step: i64, key: &Key, parcel: &Parcel) -> bool {
        let link = number_of(task).and_then(|number| self.0.link(number));
        let answer = transfer::answer(parcel.clone());
        link.is_some_and(|link| link.push(step, &keys::text(key), &answer))
    }

    fn came(&self, _: &str, _: Way, _: usize) {}

    fn complete_group(
        &self,
        leader: &str,
        request: CompleteGroupRequest,
        done: Asked<CompleteGroupResponse>,
    ) -> Abandon {
        Nobody.complete_group(leader, request, done)
    }

    fn complete_instance(
        &self,
        leader: &str,
        request: CompleteInstanceRequest,
        done: Asked<CompleteInstanceResponse>,
    ) -> Abandon {
        Nobody.complete_instance(leader, request, done)
    }

    fn recv_buf(
        &self,
        task: &str,
        request: RecvBufRequest,
        dtype: DType,
        done: Asked<Tensor>,
    ) -> Abandon {
        Nobody.recv_buf(task, request, dtype, done)
    }

    fn leader(&self) -> Option<String> {
        None
    }

    fn of_cluster(&self, cluster: &ClusterDef) -> Arc<dyn Transport> {
        Nobody.of_cluster(cluster)
    }
}
