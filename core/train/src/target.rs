//! Where a training loop opens sessions.

use std::sync::Arc;
use tenon_proto::GraphDef;
use tenon_runtime::{AnySession, Runtime, Session, SessionError, SessionOptions, Worker};

/// A place where sessions can be opened, again after one was lost.
///
/// A function that opens a session is a target, so that a session on a server needs nothing else:
///
/// ```no_run
/// # use std::sync::Arc;
/// # use tenon_proto::GraphDef;
/// # use tenon_runtime::{AnySession, SessionError, framework::Code};
/// # use tenon_training::Target;
/// # fn connect(address: &str, graph: GraphDef) -> Result<Arc<dyn AnySession>, SessionError> {
/// #     Err(SessionError::new(Code::UNAVAILABLE, address))
/// # }
/// let server = |graph: &GraphDef| connect("grpc://127.0.0.1:2222", graph.clone());
/// let session = server.open(&GraphDef::default())?;
/// # Ok::<(), SessionError>(())
/// ```
pub trait Target: Send + Sync {
    /// Opens a session with this graph.
    ///
    /// # Errors
    /// The place cannot be reached (`UNAVAILABLE`), or refuses the graph.
    fn open(&self, graph: &GraphDef) -> Result<Arc<dyn AnySession>, SessionError>;
}

impl<F> Target for F
where
    F: Fn(&GraphDef) -> Result<Arc<dyn AnySession>, SessionError> + Send + Sync,
{
    fn open(&self, graph: &GraphDef) -> Result<Arc<dyn AnySession>, SessionError> {
        self(graph)
    }
}

/// Sessions in this process, all on one worker: the variables of a session that was closed remain for the next one.
pub struct LocalTarget {
    worker: Worker,
    options: SessionOptions,
}

impl LocalTarget {
    /// Sessions over a new worker of this runtime.
    pub fn new(runtime: &Runtime, options: SessionOptions) -> LocalTarget {
        LocalTarget { worker: Worker::new(runtime), options }
    }
}

impl Target for LocalTarget {
    fn open(&self, graph: &GraphDef) -> Result<Arc<dyn AnySession>, SessionError> {
        let session = Session::on(&self.worker, self.options.clone())?;
        session.extend(graph)?;
        Ok(Arc::new(session))
    }
}
