//! A task of the simulated cluster: a server whose connections are those of the simulated network.

use super::{
    Making,
    network::Network,
    random::Random,
    unruly::{Habits, Unruly},
};
use crate::{
    dial::Dialer,
    grpc::Services,
    master::Limits,
    server::{ServerOptions, collect, serve, services},
    spec::ClusterSpec,
};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{runtime::Handle, sync::watch, task::JoinHandle};
use tokio_stream::wrappers::ReceiverStream;

/// How long a session stays without its clients: short, so that what is left over is collected soon.
pub(super) const AWAY: Duration = Duration::from_secs(20);
/// How long tasks may be absent when a session is opened.
const ABSENT: Duration = Duration::from_secs(4);

/// A task that is up.
pub(super) struct Task {
    pub address: String,
    pub services: Services,
    stop: watch::Sender<bool>,
    served: Vec<JoinHandle<()>>,
}

impl Task {
    /// Starts a task.
    pub fn start(
        network: &Arc<Network>,
        (job, number): (&str, u32),
        spec: &ClusterSpec,
        making: &Making,
        (habits, random): (Habits, Random),
    ) -> Result<Task, String> {
        let address = spec.address(job, number).map_err(|error| error.to_string())?.to_owned();
        let (place, accepted) = network.join(&address);
        let limits = Limits { away: AWAY, ..Limits::default() };
        let options = ServerOptions {
            limits,
            cluster: spec.clone(),
            absent: ABSENT,
            ..ServerOptions::default()
        };
        let dialer = Dialer { simulated: Some(Arc::new(place)), ..Dialer::plain() };
        let threads = Handle::current();
        let services = services((making.worker)(job, number), &threads, &options, dialer)
            .map_err(|error| error.to_string())?;
        let (stop, stopped) = watch::channel(false);
        let random = Arc::new(Mutex::new(random));
        let unruly = Unruly { services: services.clone(), habits, random };
        let connections = ReceiverStream::new(accepted);
        let serving = serve(connections, unruly, stopped.clone());
        let serving = tokio::spawn(async move { drop(serving.await) });
        let collecting = tokio::spawn(collect(services.clone(), AWAY, stopped));
        Ok(Task { address, services, stop, served: vec![serving, collecting] })
    }

    /// Ends the task: killed, or without a word to the others.
    pub fn end(self, network: &Arc<Network>, is_silent: bool) {
        network.leave(&self.address, is_silent);
        let _ = self.stop.send(true);
        self.served.iter().for_each(JoinHandle::abort);
        // What still runs in this process is not part of the cluster any more.
        let Services { master, worker, .. } = self.services;
        drop(tokio::task::spawn_blocking(move || {
            master.close_all();
            worker.close_all();
        }));
    }
}
