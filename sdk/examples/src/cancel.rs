//! A step that waits for a queue, until another thread cancels it.

use std::{error::Error, thread, time::Duration};
use tenon_runtime::{
    CancelToken, RunOptions, Runtime, RuntimeOptions, Session, SessionOptions, framework::DType,
    graph::GraphBuilder,
};

/// Cancels a step that has nothing to take from its queue.
pub fn main() -> Result<(), Box<dyn Error>> {
    let (runtime, _) = Runtime::new(RuntimeOptions::default())?;
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let types = vec![DType::FLOAT];
    let queue = b.op("FIFOQueueV2").attr("component_types", types.clone()).build()?;
    b.op("QueueDequeueV2").name("next").input(queue).attr("component_types", types).build()?;
    let session = Session::new(&runtime, SessionOptions::default())?;
    session.extend_graph(&b.finish())?;

    let cancel = CancelToken::new();
    let options = RunOptions { cancel: Some(cancel.clone()), ..RunOptions::default() };
    let ended = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(50));
            cancel.cancel();
        });
        session.run(&[], &["next"], &[], &options)
    });
    match ended {
        Ok(_) => println!("the queue had an element"),
        Err(error) => println!("{}", error.code()),
    }
    Ok(())
}
