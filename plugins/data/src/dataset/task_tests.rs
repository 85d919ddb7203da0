use super::*;
use std::sync::{
    atomic::AtomicUsize,
    mpsc::{self, RecvTimeoutError},
};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);

/// Waits a number of times; each time it has woken itself before.
struct Yields(usize);

impl Future for Yields {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.0 == 0 {
            return Poll::Ready(());
        }
        self.0 -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

#[test]
fn a_task_that_does_not_wait_is_done_when_it_is_started() {
    let done = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&done);
    spawn(async move {
        seen.fetch_add(1, Ordering::SeqCst);
    });
    assert_eq!(done.load(Ordering::SeqCst), 1);
}

#[test]
fn a_task_that_wakes_itself_is_polled_again() {
    let (done, seen) = mpsc::channel();
    spawn(async move {
        Yields(1000).await;
        done.send(()).unwrap();
    });
    assert_eq!(seen.try_recv(), Ok(()));
}

#[test]
fn the_thread_that_sends_runs_what_waits() {
    let (sender, receiver) = channel::<thread::ThreadId>();
    let (done, seen) = mpsc::channel();
    spawn(async move {
        let sent_by = receiver.await;
        done.send((sent_by, thread::current().id())).unwrap();
    });
    assert_eq!(seen.try_recv(), Err(mpsc::TryRecvError::Empty));
    thread::spawn(move || sender.send(thread::current().id())).join().unwrap();
    let (sent_by, ran_on) = seen.try_recv().unwrap();
    assert_eq!(sent_by, Some(ran_on));
    assert_ne!(ran_on, thread::current().id());
}

#[test]
fn a_sender_that_is_dropped_leaves_nothing() {
    let (sender, receiver) = channel::<u8>();
    drop(sender);
    assert_eq!(block_on(receiver), None);
}

/// Each task wakes the next one: polls that nested would take all of the stack.
#[test]
fn wakes_do_not_nest() {
    const TASKS: usize = 100_000;
    let (first, mut last) = channel::<usize>();
    for _ in 0..TASKS {
        let (sender, receiver) = channel();
        spawn(async move {
            if let Some(number) = last.await {
                sender.send(number + 1);
            }
        });
        last = receiver;
    }
    first.send(0);
    assert_eq!(block_on(last), Some(TASKS));
}

#[test]
fn a_task_started_in_a_poll_runs_after_it() {
    let order = Arc::new(Mutex::new(Vec::new()));
    let (outer, inner) = (Arc::clone(&order), Arc::clone(&order));
    spawn(async move {
        spawn(async move { lock(&inner).push("inner") });
        lock(&outer).push("outer");
    });
    assert_eq!(*lock(&order), ["outer", "inner"]);
}

#[test]
fn a_panic_ends_its_task_alone() {
    struct Told(mpsc::Sender<()>);
    impl Drop for Told {
        fn drop(&mut self) {
            self.0.send(()).unwrap();
        }
    }
    let (dropped, seen) = mpsc::channel();
    let told = Told(dropped);
    let (sender, receiver) = channel::<()>();
    spawn(async move {
        let _told = told;
        receiver.await;
        panic!("on purpose");
    });
    sender.send(());
    assert_eq!(seen.try_recv(), Ok(()));
    let result = block_on(caught("the work", async { panic!("on purpose") }));
    let error: KernelError = Result::<(), _>::unwrap_err(result);
    assert_eq!(error.code, Code::INTERNAL);
    assert!(error.message.starts_with("the work panicked: on purpose"), "{error}");
}

/// Many threads wake one task at any moment of its polls: it sees everything that they sent.
#[test]
fn no_wake_is_lost() {
    const THREADS: usize = 4;
    const ROUNDS: usize = 500;
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..THREADS * ROUNDS).map(|_| channel()).unzip();
    let (done, seen) = mpsc::channel();
    spawn(async move {
        let mut sum = 0;
        for receiver in receivers {
            sum += receiver.await.unwrap_or(0);
        }
        done.send(sum).unwrap();
    });
    let mut shares: Vec<Vec<_>> = (0..THREADS).map(|_| Vec::new()).collect();
    for (at, sender) in senders.into_iter().enumerate() {
        shares[at % THREADS].push(sender);
    }
    for share in shares {
        thread::spawn(move || share.into_iter().for_each(|sender| sender.send(1)));
    }
    assert_eq!(seen.recv_timeout(PATIENCE), Ok::<_, RecvTimeoutError>(THREADS * ROUNDS));
}

#[test]
fn a_task_leaves_a_thread_that_has_made_enough_elements() {
    let (ends, (sender, receiver)) = (Arc::new(AtomicBool::new(false)), std::sync::mpsc::channel());
    let told = Arc::clone(&ends);
    spawn(async move {
        while !told.load(Ordering::Acquire) {
            pace().await;
        }
        sender.send(helper::is_helper()).expect("the test listens");
    });
    // The task goes on; this thread has come back from it.
    ends.store(true, Ordering::Release);
    assert!(receiver.recv().expect("the task ends"), "it has left this thread");
}
