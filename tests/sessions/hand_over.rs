//! Costly nodes on the threads of the pool: a step's own thread is handed one when it has nothing to do, so that every
//! thread is there for the loops of what follows.

use std::{
    sync::{Arc, Mutex, PoisonError},
    thread::{self, ThreadId},
    time::Duration,
};
use tenon_author::{
    ComputeContext, CreateContext, Kernel, ShapeContext, register_kernel, register_op,
};
use tenon_framework::KernelError;
use tenon_runtime::{
    RunOptions, Session, framework::Tensor, host::call::TraceSink, trace::ChromeTrace,
};

use tenon_tests::session::{floats, runtime, session, turn};

register_op!(
    "Rest",
    inputs = &["x: N * float"],
    outputs = &["y: float"],
    attrs = &["N: int >= 1", "ms: int", "number: int"],
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.input(0)),
    summary = "The first input, after so many milliseconds.",
);

/// Which node ran on which thread, in this order.
static RAN: Mutex<Vec<(i64, ThreadId)>> = Mutex::new(Vec::new());

struct Rest {
    time: Duration,
    number: i64,
}

impl Kernel for Rest {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let time = Duration::from_millis(c.attr::<i64>("ms")?.unsigned_abs());
        Ok(Rest { time, number: c.attr("number")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        thread::sleep(self.time);
        let ran = (self.number, thread::current().id());
        RAN.lock().unwrap_or_else(PoisonError::into_inner).push(ran);
        let x = c.input::<f32>(0)?;
        c.output::<f32>(0, x.dims)?.data.copy_from_slice(x.data);
        Ok(())
    }
}

register_kernel!("Rest" on "CPU": Rest);

const SHORT: i64 = 0;
const LONG: i64 = 1;
const BEHIND: i64 = 2;

/// Two nodes beside each other, and one behind the long one.
fn two_ways(order: [i64; 2]) -> Session {
    let runtime = runtime(&["tenon_cpu"], &[("graph.optimize", "false")]);
    session(&runtime, |b| {
        let x = b.constant("x", floats(&[1.0]))?;
        let x = b.op("Rest").input(x).attr("ms", 0_i64).attr("number", 9_i64).build()?;
        let mut ends = Vec::new();
        for number in order {
            let ms = if number == LONG { 40_i64 } else { 5 };
            let node = b.op("Rest").input(x).attr("ms", ms).attr("number", number).build()?;
            ends.push(if number == LONG {
                b.op("Rest").input(node).attr("ms", 2_i64).attr("number", BEHIND).build()?.into()
            } else {
                node.into()
            });
        }
        let last = b.op("Rest").name("last").inputs(ends);
        last.attr("ms", 0_i64).attr("number", 9_i64).build().map(|_| ())
    })
}

/// The threads of a step's nodes. Under a trace every node's time is taken.
fn step(session: &Session) -> Vec<(i64, ThreadId)> {
    RAN.lock().unwrap_or_else(PoisonError::into_inner).clear();
    let trace: Arc<dyn TraceSink> = Arc::new(ChromeTrace::new());
    let options = RunOptions { trace: Some(trace), ..RunOptions::default() };
    let (fetched, _): (Vec<Tensor>, _) =
        session.run(&[], &["last"], &[], &options).expect("the step goes well");
    assert_eq!(fetched[0].as_slice::<f32>().expect("floats"), [1.0]);
    RAN.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

#[test]
fn what_follows_a_node_on_the_pool_goes_back_to_a_driver_that_waits() {
    let _turn = turn();
    let own = thread::current().id();
    let mut elsewhere = 0;
    for order in [[SHORT, LONG], [LONG, SHORT]] {
        let session = two_ways(order);
        // The first step knows no costs. A machine that is busy may hold the driver up in one step, not in all.
        let returned = (0..20).any(|_| {
            let ran = step(&session);
            let on = |number: i64| ran.iter().find(|(node, _)| *node == number).map(|(_, on)| *on);
            let handed_over = on(LONG) != on(SHORT);
            elsewhere += usize::from(on(LONG) != Some(own));
            handed_over && on(BEHIND) == Some(own)
        });
        assert!(returned, "{order:?}: the driver slept while another thread ran the rest");
    }
    assert!(elsewhere > 0, "the long way was never on the pool");
}
