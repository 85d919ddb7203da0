use super::*;
use crate::dataset::task::{channel, spawn};
use std::{
    sync::mpsc::{self, Sender},
    time::Duration,
};

const PATIENCE: Duration = Duration::from_secs(20);

/// Elements without components; number `fails` is an error.
struct Several {
    count: usize,
    fails: usize,
}

impl Dataset for Several {
    fn elements(&self) -> Box<dyn Elements> {
        Box::new(SeveralOf { next: 0, count: self.count, fails: self.fails })
    }
}

struct SeveralOf {
    next: usize,
    count: usize,
    fails: usize,
}

impl Elements for SeveralOf {
    fn next<'a>(&'a mut self, _: &'a Context) -> Next<'a> {
        Box::pin(async move {
            self.next += 1;
            match self.next - 1 {
                at if at == self.fails => Err(KernelError::invalid_argument("this one")),
                at if at >= self.count => Ok(None),
                _ => Ok(Some(Vec::new())),
            }
        })
    }
}

fn walk(input: Shared, room: usize) -> Box<dyn Elements> {
    Prefetch { input, room }.elements()
}

#[test]
fn all_elements_come_and_errors_in_their_places() {
    for room in [1, 3, 100] {
        let context = Context::new(1);
        let mut elements = walk(Arc::new(Several { count: 10, fails: 4 }), room);
        let (sender, found) = mpsc::channel();
        spawn(async move {
            let mut seen = Vec::new();
            // After the end there is none, however often one asks.
            for _ in 0..13 {
                seen.push(elements.next(&context).await.map(|element| element.is_some()).ok());
            }
            sender.send(seen).unwrap();
        });
        let mut expected = vec![Some(true); 10];
        expected[4] = None;
        expected.extend([Some(false); 3]);
        assert_eq!(found.recv_timeout(PATIENCE).unwrap(), expected, "room {room}");
    }
}

/// Waits for elements that never come, and tells when nobody wants them any more.
struct Never(Sender<&'static str>);

impl Dataset for Never {
    fn elements(&self) -> Box<dyn Elements> {
        Box::new(NeverComes(self.0.clone()))
    }
}

struct NeverComes(Sender<&'static str>);

impl Elements for NeverComes {
    fn next<'a>(&'a mut self, context: &'a Context) -> Next<'a> {
        Box::pin(async move {
            self.0.send("asked").unwrap();
            let (sender, receiver) = channel();
            let _heard = context.on_end(move || sender.send(()));
            receiver.await;
            self.0.send("left").unwrap();
            context.check().map(|()| None)
        })
    }
}

impl Drop for NeverComes {
    fn drop(&mut self) {
        // The test may have gone meanwhile.
        let _ = self.0.send("dropped");
    }
}

#[test]
fn a_walk_that_is_left_ends_the_work_of_its_thread() {
    let (sender, told) = mpsc::channel();
    let context = Context::new(1);
    let elements = ahead(&(Arc::new(Never(sender)) as Shared), 2, &context).unwrap();
    assert_eq!(told.recv_timeout(PATIENCE), Ok("asked"));
    drop(elements);
    assert_eq!(told.recv_timeout(PATIENCE), Ok("left"));
    assert_eq!(told.recv_timeout(PATIENCE), Ok("dropped"));
    assert!(!context.is_over());
}

#[test]
fn a_walk_ends_with_the_iterator_that_has_it() {
    let (sender, told) = mpsc::channel();
    let context = Context::new(1);
    let mut elements = ahead(&(Arc::new(Never(sender)) as Shared), 2, &context).unwrap();
    assert_eq!(told.recv_timeout(PATIENCE), Ok("asked"));
    context.end();
    assert_eq!(told.recv_timeout(PATIENCE), Ok("left"));
    let error = block_on(elements.next(&context)).unwrap_err();
    assert_eq!(error.code, Code::CANCELLED);
}
