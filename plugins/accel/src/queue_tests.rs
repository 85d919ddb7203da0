use crate::{
    Settings,
    event::Event,
    faults::Faults,
    settings::Pace,
    stream::Stream,
    test_support::{Journal, PATIENCE, Stall, faulty, notification, queue},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};
use tenon_sdk::{Code, KernelError};

fn note(stream: &Stream, journal: &Journal, what: &str) {
    let (journal, what) = (journal.clone(), what.to_owned());
    stream
        .kernel("note", move || {
            journal.note(what);
            Ok(())
        })
        .unwrap();
}

fn fail(stream: &Stream) {
    stream.kernel("broken", || Err(KernelError::invalid_argument("no such thing"))).unwrap();
}

#[test]
fn commands_of_a_stream_run_in_order() {
    let (queue, journal) = (queue(&Settings::default()), Journal::default());
    let stream = Stream::new(&queue).unwrap();
    for number in 0..100 {
        note(&stream, &journal, &number.to_string());
    }
    stream.synchronize().unwrap();
    assert_eq!(journal.read(), (0..100).map(|n| n.to_string()).collect::<Vec<_>>());
    assert_eq!(queue.health().commands(), 100);
}

#[test]
fn a_stalled_queue_runs_nothing_and_goes_on_when_resumed() {
    let (stall, journal) = (Stall::default(), Journal::default());
    stall.set(true);
    let queue = queue(&stall.settings());
    let stream = Stream::new(&queue).unwrap();
    note(&stream, &journal, "late");
    let (done, arrived) = notification();
    stream.notify(done);
    let event = Event::new(Arc::clone(&queue));
    stream.record(&event).unwrap();
    assert!(arrived.recv_timeout(Duration::from_millis(20)).is_err());
    assert_eq!(event.query(), Ok(false));
    assert!(journal.read().is_empty());
    stall.set(false);
    assert_eq!(arrived.recv_timeout(PATIENCE), Ok(Code::OK));
    stream.synchronize().unwrap();
    assert_eq!(event.query(), Ok(true));
    assert_eq!(journal.read(), ["late"]);
}

/// Enqueues a, b, c on each of two streams while the queue is stalled; returns the order in which
/// they ran.
fn interleaving(seed: u64) -> Vec<String> {
    let (stall, journal) = (Stall::default(), Journal::default());
    stall.set(true);
    let queue = queue(&Settings { reorder_seed: seed, ..stall.settings() });
    let streams = [Stream::new(&queue).unwrap(), Stream::new(&queue).unwrap()];
    for step in ["a", "b", "c"] {
        for (number, stream) in streams.iter().enumerate() {
            note(stream, &journal, &format!("{step}{number}"));
        }
    }
    stall.set(false);
    queue.synchronize().unwrap();
    journal.read()
}

#[test]
fn without_a_seed_streams_run_in_the_order_of_enqueueing() {
    assert_eq!(interleaving(0), ["a0", "a1", "b0", "b1", "c0", "c1"]);
}

#[test]
fn seeds_reorder_streams_against_each_other_and_never_within() {
    let runs: Vec<Vec<String>> = (1..20).map(interleaving).collect();
    assert!(runs.iter().any(|run| *run != interleaving(0)), "no seed changed the order");
    for run in &runs {
        for number in ["0", "1"] {
            let own: Vec<&str> =
                run.iter().filter(|what| what.ends_with(number)).map(|what| &what[..1]).collect();
            assert_eq!(own, ["a", "b", "c"]);
        }
    }
    assert_eq!(interleaving(7), interleaving(7), "a seed is an order");
}

#[test]
fn an_event_orders_streams_whatever_the_seed() {
    for seed in 0..20 {
        let (stall, journal) = (Stall::default(), Journal::default());
        stall.set(true);
        let queue = queue(&Settings { reorder_seed: seed, ..stall.settings() });
        let (producer, consumer) = (Stream::new(&queue).unwrap(), Stream::new(&queue).unwrap());
        let event = Event::new(Arc::clone(&queue));
        note(&producer, &journal, "produce");
        producer.record(&event).unwrap();
        consumer.wait(&event).unwrap();
        note(&consumer, &journal, "consume");
        stall.set(false);
        queue.synchronize().unwrap();
        assert_eq!(journal.read(), ["produce", "consume"], "seed {seed}");
    }
}

#[test]
fn a_wait_is_for_the_recording_so_far() {
    let (queue, journal) = (queue(&Settings::default()), Journal::default());
    let (a, b) = (Stream::new(&queue).unwrap(), Stream::new(&queue).unwrap());
    let event = Event::new(Arc::clone(&queue));
    assert_eq!(event.query(), Ok(true), "never recorded counts as happened");
    // The wait comes before the recording, so that there is nothing to wait for.
    b.wait(&event).unwrap();
    note(&b, &journal, "free");
    b.synchronize().unwrap();
    a.record(&event).unwrap();
    a.synchronize().unwrap();
    assert_eq!((event.query(), journal.read()), (Ok(true), vec!["free".to_owned()]));
}

#[test]
fn events_of_another_device_are_refused() {
    let (here, there) = (queue(&Settings::default()), queue(&Settings::default()));
    let (stream, event) = (Stream::new(&here).unwrap(), Event::new(there));
    assert_eq!(stream.wait(&event).unwrap_err().code, Code::INVALID_ARGUMENT);
    assert_eq!(stream.record(&event).unwrap_err().code, Code::INVALID_ARGUMENT);
}

#[test]
fn the_first_error_of_a_stream_stays_and_nothing_computes_after_it() {
    let (queue, journal) = (queue(&Settings::default()), Journal::default());
    let (bad, good) = (Stream::new(&queue).unwrap(), Stream::new(&queue).unwrap());
    fail(&bad);
    bad.kernel("later", || Err(KernelError::internal("never said"))).unwrap();
    note(&bad, &journal, "skipped");
    let freed = journal.clone();
    bad.cleanup(move || freed.note("freed"));
    let (done, arrived) = notification();
    bad.notify(done);
    note(&good, &journal, "unharmed");
    good.synchronize().unwrap();
    let error = bad.synchronize().unwrap_err();
    assert_eq!(error, KernelError::invalid_argument("broken: no such thing"));
    assert_eq!(queue.synchronize().unwrap_err(), error);
    assert_eq!(arrived.recv_timeout(PATIENCE), Ok(Code::INVALID_ARGUMENT));
    assert_eq!(journal.read(), ["freed", "unharmed"]);
}

#[test]
fn who_waits_for_a_failed_stream_fails_too() {
    let (queue, journal) = (queue(&Settings::default()), Journal::default());
    let (producer, consumer) = (Stream::new(&queue).unwrap(), Stream::new(&queue).unwrap());
    let event = Event::new(Arc::clone(&queue));
    fail(&producer);
    producer.record(&event).unwrap();
    consumer.wait(&event).unwrap();
    note(&consumer, &journal, "skipped");
    assert_eq!(consumer.synchronize().unwrap_err().code, Code::INVALID_ARGUMENT);
    assert_eq!(event.query().unwrap_err().code, Code::INVALID_ARGUMENT);
    assert!(journal.read().is_empty());
}

#[test]
fn a_panic_in_a_command_is_an_error_of_its_stream() {
    let queue = queue(&Settings::default());
    let stream = Stream::new(&queue).unwrap();
    stream.kernel("wild", || panic!("index 7")).unwrap();
    let error = stream.synchronize().unwrap_err();
    assert_eq!(error.code, Code::INTERNAL);
    assert!(error.message.starts_with("wild: it panicked: index 7"), "{error}");
    Stream::new(&queue).unwrap().synchronize().unwrap();
}

#[test]
fn a_command_fails_when_ordered_to() {
    let faults = Faults { fail_command_after: 2, ..Faults::default() };
    let (queue, journal) = (queue(&faulty(faults)), Journal::default());
    let stream = Stream::new(&queue).unwrap();
    for what in ["a", "b", "c"] {
        note(&stream, &journal, what);
    }
    let error = stream.synchronize().unwrap_err();
    assert_eq!(error, KernelError::internal("note: the knob fail_command_after is 2"));
    assert_eq!(journal.read(), ["a", "b"]);
    let next = Stream::new(&queue).unwrap();
    note(&next, &journal, "d");
    next.synchronize().unwrap();
}

#[test]
fn a_lost_device_answers_unavailable_everywhere() {
    let faults = Faults { lose_after_commands: 1, ..Faults::default() };
    let (queue, journal) = (queue(&faulty(faults)), Journal::default());
    let (stream, other) = (Stream::new(&queue).unwrap(), Stream::new(&queue).unwrap());
    let event = Event::new(Arc::clone(&queue));
    note(&stream, &journal, "done");
    stream.synchronize().unwrap();
    note(&stream, &journal, "lost");
    let lost = stream.synchronize().unwrap_err();
    assert_eq!(lost.code, Code::UNAVAILABLE);
    assert!(lost.message.contains("lose_after_commands is 1"), "{lost}");
    let refused = [
        stream.kernel("late", || Ok(())).unwrap_err(),
        stream.record(&event).unwrap_err(),
        stream.wait(&event).unwrap_err(),
        other.synchronize().unwrap_err(),
        queue.synchronize().unwrap_err(),
        event.query().unwrap_err(),
        Stream::new(&queue).err().unwrap(),
    ];
    assert!(refused.iter().all(|error| *error == lost), "{refused:?}");
    let (done, arrived) = notification();
    stream.notify(done);
    assert_eq!(arrived.recv_timeout(PATIENCE), Ok(Code::UNAVAILABLE));
    let freed = journal.clone();
    stream.cleanup(move || freed.note("freed"));
    assert_eq!(journal.read(), ["done", "freed"]);
}

#[test]
fn what_is_enqueued_when_the_device_is_lost_is_settled() {
    let (stall, journal) = (Stall::default(), Journal::default());
    stall.set(true);
    let queue = queue(&stall.settings());
    let stream = Stream::new(&queue).unwrap();
    let event = Event::new(Arc::clone(&queue));
    note(&stream, &journal, "never");
    let freed = journal.clone();
    stream.cleanup(move || freed.note("freed"));
    stream.record(&event).unwrap();
    let (done, arrived) = notification();
    stream.notify(done);
    queue.lose("pulled out");
    assert_eq!(arrived.recv_timeout(PATIENCE), Ok(Code::UNAVAILABLE));
    assert_eq!(event.query().unwrap_err().code, Code::UNAVAILABLE);
    assert_eq!(journal.read(), ["freed"]);
}

/// After a stream is synchronised the resources of its commands may be freed, even if the device
/// was lost meanwhile.
#[test]
fn a_wait_for_a_lost_device_waits_for_the_running_command() {
    let (queue, journal) = (queue(&Settings::default()), Journal::default());
    let (stream, other) = (Stream::new(&queue).unwrap(), Stream::new(&queue).unwrap());
    let (begin, begun) = mpsc::channel();
    let (open, gate) = mpsc::channel::<()>();
    let end = journal.clone();
    let command = move || {
        begin.send(()).unwrap();
        let opened = gate.recv_timeout(PATIENCE);
        end.note("ended");
        opened.map_err(|error| KernelError::internal(error.to_string()))
    };
    stream.kernel("slow", command).unwrap();
    note(&stream, &journal, "never");
    begun.recv_timeout(PATIENCE).unwrap();
    queue.lose("pulled out");
    assert_eq!(other.synchronize().unwrap_err().code, Code::UNAVAILABLE, "nothing of it runs");
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let result = stream.synchronize();
            journal.note("synchronised");
            result
        });
        // Long enough to reveal a waiter that does not wait.
        std::thread::sleep(Duration::from_millis(30));
        open.send(()).unwrap();
        assert_eq!(waiter.join().unwrap().unwrap_err().code, Code::UNAVAILABLE);
    });
    assert_eq!(journal.read(), ["ended", "synchronised"]);
}

#[test]
fn a_command_that_is_held_holds_its_stream_and_no_other() {
    let (held, journal) = (Arc::new(AtomicBool::new(true)), Journal::default());
    let hold = Arc::clone(&held);
    let pace = move || Pace {
        hold: if hold.load(Ordering::SeqCst) { "note" } else { "" }.to_owned(),
        ..Pace::default()
    };
    let queue = queue(&Settings { pace: Arc::new(pace), ..Settings::default() });
    let (stopped, free) = (Stream::new(&queue).unwrap(), Stream::new(&queue).unwrap());
    note(&stopped, &journal, "held");
    let other = journal.clone();
    free.kernel("other", move || {
        other.note("free");
        Ok(())
    })
    .unwrap();
    free.synchronize().unwrap();
    assert_eq!(journal.read(), ["free"]);
    held.store(false, Ordering::SeqCst);
    stopped.synchronize().unwrap();
    assert_eq!(journal.read(), ["free", "held"]);
}

#[test]
fn a_queue_that_closes_settles_what_is_enqueued() {
    let stall = Stall::default();
    stall.set(true);
    let queue = queue(&stall.settings());
    let stream = Stream::new(&queue).unwrap();
    let (done, arrived) = notification();
    stream.notify(done);
    drop((stream, queue));
    assert_eq!(arrived.recv_timeout(PATIENCE), Ok(Code::CANCELLED));
}

#[test]
fn many_threads_enqueue_at_once() {
    let (queue, journal) =
        (queue(&Settings { reorder_seed: 5, ..Settings::default() }), Journal::default());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let stream = Stream::new(&queue).unwrap();
                for _ in 0..50 {
                    note(&stream, &journal, "x");
                }
                stream.synchronize().unwrap();
            });
        }
    });
    assert_eq!(journal.read().len(), 200);
}
