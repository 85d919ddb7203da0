//! What one client may use of a server.
//!
//! A client is who its token names, else who its certificate names, else the address that it comes from.

use crate::refusal::Refusal;
use std::collections::HashMap;
use tenon_framework::{
    Code,
    sync::{Mutex, rank},
};
use tenon_proto::GraphDef;

/// Limits on the use of a server by one client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientLimits {
    /// Sessions that are open at the same time.
    pub sessions: usize,
    /// Nodes of a session's graph, those of its functions included.
    pub graph_nodes: usize,
    /// Bytes of requests that are received or answered at the same time.
    pub request_bytes: usize,
    /// Steps that run at the same time.
    pub steps: usize,
}

impl Default for ClientLimits {
    fn default() -> ClientLimits {
        ClientLimits {
            sessions: 1000,
            graph_nodes: 10_000_000,
            request_bytes: 8 << 30,
            steps: 1000,
        }
    }
}

/// A limit, and what raises it.
#[derive(Debug, Clone, Copy)]
enum Limit {
    Sessions,
    Nodes,
    Bytes,
    Steps,
}

impl Limit {
    /// The error of a client that would use `wanted`.
    fn exceeded(self, who: &str, most: usize, wanted: usize) -> Refusal {
        let (what, knob, todo) = match self {
            Limit::Sessions => ("sessions", "--client-sessions", "close those that are not used"),
            Limit::Nodes => {
                ("nodes in a session's graph", "--client-graph-nodes", "send a smaller graph")
            }
            Limit::Bytes => {
                ("bytes of requests at a time", "--client-bytes", "feed less at a time")
            }
            Limit::Steps => ("steps at a time", "--client-steps", "wait for one of them"),
        };
        Refusal::new(
            Code::RESOURCE_EXHAUSTED,
            format!(
                "client {who} may have {most} {what}, and asks for {wanted}: {todo}, or start the server with a larger {knob}"
            ),
        )
    }
}

#[derive(Debug, Default)]
struct Used {
    opening: usize,
    bytes: usize,
    steps: usize,
}

struct SessionOf {
    who: String,
    nodes: usize,
}

#[derive(Default)]
struct Counts {
    clients: HashMap<String, Used>,
    sessions: HashMap<String, SessionOf>,
}

/// What each client uses.
pub(crate) struct Usage {
    limits: ClientLimits,
    counts: Mutex<Counts>,
}

/// Nodes of a graph and of its functions.
pub(crate) fn nodes(graph: Option<&GraphDef>) -> usize {
    let Some(graph) = graph else { return 0 };
    let functions = graph.library.iter().flat_map(|library| &library.function);
    functions.fold(graph.node.len(), |sum, function| sum.saturating_add(function.node_def.len()))
}

impl Usage {
    pub fn new(limits: ClientLimits) -> Usage {
        Usage { limits, counts: Mutex::ranked(rank::LEAF, Counts::default()) }
    }

    fn change(
        &self,
        who: &str,
        change: impl FnOnce(&mut Used) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let mut counts = self.counts.lock();
        let used = counts.clients.entry(who.to_owned()).or_default();
        let changed = change(used);
        if used.opening == 0 && used.bytes == 0 && used.steps == 0 {
            counts.clients.remove(who);
        }
        changed
    }

    /// Counts a session that is being opened with so many nodes. `is_open` says whether a session of a handle is still there.
    pub fn open_session(
        &self,
        who: &str,
        nodes: usize,
        is_open: impl Fn(&str) -> bool,
    ) -> Result<(), Refusal> {
        if nodes > self.limits.graph_nodes {
            return Err(Limit::Nodes.exceeded(who, self.limits.graph_nodes, nodes));
        }
        let own = |counts: &Counts| counts.sessions.values().filter(|it| it.who == who).count();
        if own(&self.counts.lock()) >= self.limits.sessions {
            self.forget_closed(is_open);
        }
        let mut counts = self.counts.lock();
        let open = own(&counts);
        let used = counts.clients.entry(who.to_owned()).or_default();
        let wanted = open.saturating_add(used.opening).saturating_add(1);
        if wanted > self.limits.sessions {
            return Err(Limit::Sessions.exceeded(who, self.limits.sessions, wanted));
        }
        used.opening += 1;
        Ok(())
    }

    /// The session was opened with this handle, or not.
    pub fn opened(&self, who: &str, nodes: usize, handle: Option<&str>) {
        if let Some(handle) = handle {
            let session = SessionOf { who: who.to_owned(), nodes };
            self.counts.lock().sessions.insert(handle.to_owned(), session);
        }
        let _ = self.change(who, |used| {
            used.opening = used.opening.saturating_sub(1);
            Ok(())
        });
    }

    /// Counts nodes that are added to a session's graph; [`Usage::shrink`] takes them back.
    pub fn extend(&self, who: &str, handle: &str, nodes: usize) -> Result<(), Refusal> {
        let mut counts = self.counts.lock();
        // An unknown session is refused by the master.
        let Some(session) = counts.sessions.get_mut(handle) else { return Ok(()) };
        let wanted = session.nodes.saturating_add(nodes);
        if wanted > self.limits.graph_nodes {
            return Err(Limit::Nodes.exceeded(who, self.limits.graph_nodes, wanted));
        }
        session.nodes = wanted;
        Ok(())
    }

    /// The nodes were not added.
    pub fn shrink(&self, handle: &str, nodes: usize) {
        if let Some(session) = self.counts.lock().sessions.get_mut(handle) {
            session.nodes = session.nodes.saturating_sub(nodes);
        }
    }

    /// The session is closed.
    pub fn closed(&self, handle: &str) {
        self.counts.lock().sessions.remove(handle);
    }

    /// Forgets the sessions that the master no longer has.
    pub fn forget_closed(&self, is_open: impl Fn(&str) -> bool) {
        let handles: Vec<String> = self.counts.lock().sessions.keys().cloned().collect();
        let gone: Vec<String> = handles.into_iter().filter(|handle| !is_open(handle)).collect();
        let mut counts = self.counts.lock();
        gone.iter().for_each(|handle| drop(counts.sessions.remove(handle)));
    }

    /// Counts a step.
    pub fn begin_step(&self, who: &str) -> Result<(), Refusal> {
        let most = self.limits.steps;
        self.change(who, |used| {
            if used.steps >= most {
                return Err(Limit::Steps.exceeded(who, most, used.steps.saturating_add(1)));
            }
            used.steps += 1;
            Ok(())
        })
    }

    /// The step has ended.
    pub fn end_step(&self, who: &str) {
        let _ = self.change(who, |used| {
            used.steps = used.steps.saturating_sub(1);
            Ok(())
        });
    }

    /// Counts bytes of a request.
    pub fn take_bytes(&self, who: &str, bytes: usize) -> Result<(), Refusal> {
        let most = self.limits.request_bytes;
        self.change(who, |used| {
            let wanted = used.bytes.saturating_add(bytes);
            if wanted > most {
                return Err(Limit::Bytes.exceeded(who, most, wanted));
            }
            used.bytes = wanted;
            Ok(())
        })
    }

    /// The request has been answered.
    pub fn give_bytes(&self, who: &str, bytes: usize) {
        let _ = self.change(who, |used| {
            used.bytes = used.bytes.saturating_sub(bytes);
            Ok(())
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage() -> Usage {
        Usage::new(ClientLimits { sessions: 2, graph_nodes: 10, request_bytes: 100, steps: 1 })
    }

    fn refused(result: Result<(), Refusal>, knob: &str) {
        let refusal = result.unwrap_err();
        assert_eq!(refusal.code, Code::RESOURCE_EXHAUSTED);
        assert!(
            refusal.message.contains(knob) && refusal.message.contains("ada"),
            "{}",
            refusal.message
        );
    }

    #[test]
    fn each_client_has_its_own_sessions_and_closed_ones_do_not_count() {
        let usage = usage();
        usage.open_session("ada", 3, |_| true).unwrap();
        usage.opened("ada", 3, Some("a"));
        usage.open_session("ada", 3, |_| true).unwrap();
        refused(usage.open_session("ada", 3, |_| true), "--client-sessions");
        usage.open_session("bob", 3, |_| true).unwrap();
        usage.opened("ada", 3, None);
        usage.open_session("ada", 3, |_| true).unwrap();
        usage.opened("ada", 3, Some("b"));
        refused(usage.open_session("ada", 3, |_| true), "--client-sessions");
        usage.open_session("ada", 3, |handle| handle == "b").unwrap();
    }

    #[test]
    fn a_graph_that_grows_keeps_to_its_nodes() {
        let usage = usage();
        refused(usage.open_session("ada", 11, |_| true), "--client-graph-nodes");
        usage.open_session("ada", 6, |_| true).unwrap();
        usage.opened("ada", 6, Some("a"));
        usage.extend("ada", "a", 4).unwrap();
        refused(usage.extend("ada", "a", 1), "--client-graph-nodes");
        usage.shrink("a", 4);
        usage.extend("ada", "a", 1).unwrap();
    }

    #[test]
    fn steps_and_bytes_come_back() {
        let usage = usage();
        usage.begin_step("ada").unwrap();
        refused(usage.begin_step("ada"), "--client-steps");
        usage.end_step("ada");
        usage.begin_step("ada").unwrap();
        usage.take_bytes("ada", 60).unwrap();
        refused(usage.take_bytes("ada", 60), "--client-bytes");
        usage.give_bytes("ada", 60);
        usage.take_bytes("ada", 100).unwrap();
        usage.take_bytes("bob", 100).unwrap();
        usage.give_bytes("ada", 100);
        usage.end_step("ada");
        usage.give_bytes("bob", 100);
        assert!(usage.counts.lock().clients.is_empty(), "an idle client takes no memory");
    }
}
