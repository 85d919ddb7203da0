//! Two links in one process, over each kind of lane, and over lanes that fail.

use super::*;
use crate::plane::{lane::fake_rdma, shm};
use std::{
    pin::Pin,
    sync::mpsc,
    task::{Context, Poll},
};
use tenon_framework::Tensor;
use tokio::{
    io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf},
    runtime::{Builder, Runtime},
};

const ONE: &str = "/job:w/replica:0/task:0";
const TWO: &str = "/job:w/replica:0/task:1";
const PATIENCE: Duration = Duration::from_secs(30);

/// Gives tensors by their keys, and keeps what is pushed.
#[derive(Default)]
struct Store {
    values: Mutex2<HashMap<String, Tensor>>,
    pushed: Mutex2<Vec<(i64, String, Hold)>>,
    lost: Mutex2<Vec<i64>>,
    waiting: Mutex2<Vec<Done>>,
}

type Mutex2<T> = std::sync::Mutex<T>;

impl Serve for Store {
    fn tensor(&self, request: RecvTensorRequest, done: Done) -> Withdraw {
        let found = self.values.lock().unwrap().get(&request.rendezvous_key).cloned();
        match found {
            Some(tensor) => done(Ok(answer(tensor))),
            None if request.rendezvous_key == "later" => self.waiting.lock().unwrap().push(done),
            None => done(Err(Refusal::new(Code::NOT_FOUND, "no such key"))),
        }
        Box::new(|_| ())
    }

    fn buffer(&self, request: RecvBufRequest, done: Done) -> Withdraw {
        let found = self.values.lock().unwrap().get(&request.buf_rendezvous_key).cloned();
        done(found.map(answer).ok_or_else(|| Refusal::new(Code::NOT_FOUND, "no such buffer")));
        Box::new(|_| ())
    }

    fn pushed(&self, step: i64, key: String, _: Answer, hold: Hold) {
        self.pushed.lock().unwrap().push((step, key, hold));
    }

    fn lost(&self, steps: &[i64], _: &Refusal) {
        self.lost.lock().unwrap().extend(steps);
    }
}

fn answer(tensor: Tensor) -> Answer {
    Answer { tensor: Some(tensor), is_dead: false, send_start_micros: 0, must_confirm: false }
}

struct Pair {
    one: Arc<Link>,
    two: Arc<Link>,
    stores: [Arc<Store>; 2],
    _threads: Runtime,
}

fn threads() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn pair(threads: Runtime, first: Lane, second: Lane) -> Pair {
    let stores = [Arc::<Store>::default(), Arc::<Store>::default()];
    let of = |at: usize| {
        let store: Arc<dyn Serve> = stores[at].clone();
        Arc::downgrade(&store)
    };
    let one = Link::begin(threads.handle(), TWO, first, of(0));
    let two = Link::begin(threads.handle(), ONE, second, of(1));
    Pair { one, two, stores, _threads: threads }
}

fn over(stream: impl FnOnce(DuplexStream, DuplexStream) -> (Lane, Lane)) -> Pair {
    let threads = threads();
    let (one, two) = tokio::io::duplex(64 << 10);
    let (first, second) = stream(one, two);
    pair(threads, first, second)
}

fn plain(one: DuplexStream, two: DuplexStream) -> (Lane, Lane) {
    (Lane::of_stream(Way::Tcp, one), Lane::of_stream(Way::Tcp, two))
}

fn shared(threads: &Runtime) -> (Lane, Lane) {
    threads.block_on(async {
        let (one, two) = tokio::net::UnixStream::pair().unwrap();
        let given = shm::give(one).await.unwrap();
        (given, shm::take(two).await.unwrap())
    })
}

fn request(key: &str) -> Request {
    let rendezvous_key = key.to_owned();
    Request::Tensor(RecvTensorRequest { step_id: 7, rendezvous_key, ..Default::default() })
}

type Got = mpsc::Receiver<Result<Answer, Refusal>>;

fn ask(link: &Link, request: &Request) -> (Got, Withdraw) {
    let (sender, got) = mpsc::channel();
    let withdraw = link.ask(request, Box::new(move |answer| drop(sender.send(answer))));
    (got, withdraw)
}

fn tensor(bytes: usize) -> Tensor {
    let elements: Vec<u8> = (0..bytes).map(|at| (at * 31 % 251) as u8).collect();
    Tensor::from_slice(&[bytes as i64], &elements).unwrap()
}

fn same(answer: Result<Answer, Refusal>, expected: &Tensor) {
    let found = answer.unwrap().tensor.unwrap();
    assert!(found.as_bytes().unwrap() == expected.as_bytes().unwrap());
}

fn exchange(pair: &Pair) {
    for (at, bytes) in [0, 1, 1000, 65_536, 65_537, 300_000, 5 << 20].into_iter().enumerate() {
        let (key, expected) = (format!("k{at}"), tensor(bytes));
        pair.stores[1].values.lock().unwrap().insert(key.clone(), expected.clone());
        let (got, _) = ask(&pair.one, &request(&key));
        same(got.recv_timeout(PATIENCE).unwrap(), &expected);
        let buffer = RecvBufRequest { buf_rendezvous_key: key, ..Default::default() };
        let (got, _) = ask(&pair.one, &Request::Buffer(buffer));
        same(got.recv_timeout(PATIENCE).unwrap(), &expected);
    }
    // Many at the same time, in both directions.
    pair.stores[0].values.lock().unwrap().insert("back".into(), tensor(1 << 20));
    let asked: Vec<_> = (0..40)
        .map(|at| {
            let there = ask(&pair.one, &request(&format!("k{}", at % 7))).0;
            (there, ask(&pair.two, &request("back")).0)
        })
        .collect();
    for (there, back) in asked {
        assert!(there.recv_timeout(PATIENCE).unwrap().is_ok());
        same(back.recv_timeout(PATIENCE).unwrap(), &tensor(1 << 20));
    }
    let refused = ask(&pair.one, &request("none")).0.recv_timeout(PATIENCE).unwrap().unwrap_err();
    assert_eq!((refused.code, refused.message.as_str()), (Code::NOT_FOUND, "no such key"));
}

#[test]
fn tensors_of_all_sizes_come_by_each_lane() {
    exchange(&over(plain));
    let threads_of_shm = threads();
    let (one, two) = shared(&threads_of_shm);
    exchange(&pair(threads_of_shm, one, two));
    let (one, two, _cable) = fake_rdma::lanes();
    exchange(&pair(threads(), one, two));
}

#[test]
fn a_cut_cable_ends_what_waits_on_both_sides() {
    let (one, two, cable) = fake_rdma::lanes();
    let pair = pair(threads(), one, two);
    let (got, _withdraw) = ask(&pair.one, &request("later"));
    while pair.stores[1].waiting.lock().unwrap().is_empty() {
        std::thread::yield_now();
    }
    cable.cut();
    let error = got.recv_timeout(PATIENCE).unwrap().unwrap_err();
    assert_eq!(error.code, Code::UNAVAILABLE);
    assert!(error.message.contains(TWO), "{}", error.message);
    let late = ask(&pair.one, &request("k")).0.recv_timeout(PATIENCE).unwrap().unwrap_err();
    assert!(late.message.contains("link with") && !pair.one.is_open(), "{}", late.message);
}

/// A stream that changes a byte, or ends, after some bytes.
struct Faulty {
    stream: DuplexStream,
    left: usize,
    cuts: bool,
}

impl AsyncRead for Faulty {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, into);
        let bytes = into.filled().len() - before;
        if self.left > 0 && bytes >= self.left {
            let at = before + self.left - 1;
            if self.cuts {
                into.set_filled(at);
            } else {
                into.filled_mut()[at] ^= 0x10;
            }
        }
        if self.cuts && self.left == 0 {
            into.set_filled(before);
            return Poll::Ready(Ok(()));
        }
        self.left = self.left.saturating_sub(bytes);
        polled
    }
}

impl AsyncWrite for Faulty {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

fn faulty(left: usize, cuts: bool) -> Refusal {
    let pair = over(|one, two| {
        let one = Faulty { stream: one, left, cuts };
        (Lane::of_stream(Way::Tcp, one), Lane::of_stream(Way::Tcp, two))
    });
    pair.stores[1].values.lock().unwrap().insert("k".into(), tensor(1 << 20));
    ask(&pair.one, &request("k")).0.recv_timeout(PATIENCE).unwrap().unwrap_err()
}

#[test]
fn a_chunk_that_came_damaged_is_not_a_value() {
    let error = faulty(600_000, false);
    assert_eq!(error.code, Code::UNAVAILABLE);
    let named = error.message.contains(TWO) && error.message.contains("came damaged");
    assert!(named && error.message.contains("Chunk"), "{}", error.message);
    let header = faulty(20, false);
    assert!(header.message.contains("the header of a frame came damaged"), "{}", header.message);
}

#[test]
fn a_link_that_ends_in_the_middle_of_a_tensor_fails_the_request() {
    let error = faulty(600_000, true);
    assert_eq!(error.code, Code::UNAVAILABLE);
    assert!(error.message.contains("in the middle of a frame"), "{}", error.message);
}

fn key_of(task: &str) -> String {
    format!("{task}/device:CPU:0;0000000000000001;x;t;0:0")
}

#[test]
fn pushes_stop_without_credit_and_go_on_when_some_were_taken() {
    let pair = over(plain);
    let value = answer(tensor(60_000));
    let key = key_of(TWO);
    let sent = (0..1000).take_while(|step| pair.two.push(*step, &key, &value)).count();
    assert!((60..=EAGER / 60_000).contains(&sent), "{sent}");
    assert!(!pair.two.push(1, &key, &answer(tensor(SMALL + 1))), "too large");
    let end = Instant::now() + PATIENCE;
    while pair.stores[0].pushed.lock().unwrap().len() < sent && Instant::now() < end {
        std::thread::yield_now();
    }
    let taken = std::mem::take(&mut *pair.stores[0].pushed.lock().unwrap());
    assert_eq!((taken.len(), taken[3].0, taken[3].1.as_str()), (sent, 3, key.as_str()));
    drop(taken);
    while !pair.two.push(5, &key, &value) {
        assert!(Instant::now() < end, "the credit did not come back");
        std::thread::yield_now();
    }
}

#[test]
fn a_push_settles_the_request_that_it_crosses_and_lost_ones_are_named() {
    let pair = over(plain);
    let key = key_of(TWO);
    let waiting =
        RecvTensorRequest { step_id: 9, rendezvous_key: key.clone(), ..Default::default() };
    // The other side does not answer the request itself: it refuses keys that it does not have after the push has gone.
    let (sender, got) = mpsc::channel();
    let value = tensor(10);
    assert!(pair.two.push(9, &key, &answer(value.clone())));
    let done: Done = Box::new(move |answer| drop(sender.send(answer)));
    let _withdraw = pair.one.ask(&Request::Tensor(waiting), done);
    let first = got.recv_timeout(PATIENCE).unwrap();
    let pushed = pair.stores[0].pushed.lock().unwrap().len();
    assert!(first.is_ok() || pushed == 1, "by the push, or kept by its receiver");
    pair.two.close("a test ends it");
    assert_eq!(*pair.stores[1].lost.lock().unwrap(), [9], "the push was not confirmed");
}

#[test]
fn a_push_of_another_task_ends_the_link() {
    let pair = over(plain);
    let (got, _withdraw) = ask(&pair.one, &request("later"));
    assert!(pair.two.push(1, &key_of("/job:w/replica:0/task:5"), &answer(tensor(4))));
    let error = got.recv_timeout(PATIENCE).unwrap().unwrap_err();
    assert!(
        error.message.contains("it pushed a tensor of '/job:w/replica:0/task:5'"),
        "{}",
        error.message
    );
}

#[test]
fn who_does_not_read_makes_its_peer_keep_no_copies() {
    let (threads, store) = (threads(), Arc::<Store>::default());
    // Nothing is read from the other end.
    let (_other, own) = tokio::io::duplex(64 << 10);
    let serve: Arc<dyn Serve> = store.clone();
    let lane = Lane::of_stream(Way::Tcp, own);
    let link = Link::begin(threads.handle(), ONE, lane, Arc::downgrade(&serve));
    let value = answer(tensor(60_000));
    let sent = (0..1000).take_while(|step| link.push(*step, &key_of(TWO), &value)).count();
    assert!(sent <= EAGER / 60_000, "{sent}");
    // What it asked for waits as the tensor itself, which all requests share.
    let large = tensor(1 << 20);
    store.values.lock().unwrap().insert("k".into(), large);
    for id in 0..1000 {
        let request = RecvTensorRequest { rendezvous_key: "k".into(), ..Default::default() };
        link.serve(id, Request::Tensor(request)).unwrap();
    }
    assert!(link.is_open());
}

#[test]
fn a_withdrawn_request_ends_at_the_other_side() {
    let pair = over(plain);
    let (got, withdraw) = ask(&pair.one, &request("later"));
    while pair.stores[1].waiting.lock().unwrap().is_empty() {
        std::thread::yield_now();
    }
    withdraw(End::GivenUp);
    let end = Instant::now() + PATIENCE;
    while !pair.one.asking.lock().open.is_empty() {
        assert!(Instant::now() < end, "the request is open");
        std::thread::yield_now();
    }
    assert!(got.try_recv().is_err());
    // Its value comes too late.
    let done = pair.stores[1].waiting.lock().unwrap().pop().unwrap();
    done(Ok(answer(tensor(4))));
    pair.stores[1].values.lock().unwrap().insert("k".into(), tensor(5));
    same(ask(&pair.one, &request("k")).0.recv_timeout(PATIENCE).unwrap(), &tensor(5));
}
