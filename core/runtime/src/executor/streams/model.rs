//! A model for loom of telling a stream to wait; see the one of [`super::super::shared`].

use super::Told;
use loom::thread;
use std::sync::Arc;
use tenon_framework::sync::Mutex;

/// Two nodes on one stream wait for the same event at once: for each, the wait comes before its own
/// work.
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
