//! A model of who tells a stream to wait, run by loom: see [`super::super::shared`]'s.

use super::Told;
use loom::thread;
use std::sync::Arc;
use tenon_framework::sync::Mutex;

/// Two nodes on one stream that wait for the same event come at once: each finds the wait before what it
/// enqueues itself.
#[test]
fn whatever_is_enqueued_is_behind_the_wait() {
    loom::model(|| {
        let (told, queue) = (Arc::new(Told::default()), Arc::new(Mutex::new(Vec::new())));
        let node = |command: &'static str| {
            let (told, queue) = (Arc::clone(&told), Arc::clone(&queue));
            thread::spawn(move || {
                let wait = || {
                    queue.lock().push("wait");
                    Ok::<(), ()>(())
                };
                assert!(told.tell_once(3, wait).is_ok());
                queue.lock().push(command);
            })
        };
        let nodes = [node("a"), node("b")];
        nodes.into_iter().for_each(|node| node.join().unwrap());
        let queue = queue.lock();
        let at = |command: &str| queue.iter().position(|it| *it == command).unwrap();
        assert!(at("wait") < at("a") && at("wait") < at("b"), "{queue:?}", queue = *queue);
    });
}
