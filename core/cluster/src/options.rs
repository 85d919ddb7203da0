//! A client's `ConfigProto`, as far as it has a meaning here.

use crate::refusal::Refusal;
use prost::Message;
use std::{
    collections::HashSet,
    sync::{LazyLock, Mutex},
    time::Duration,
};
use tenon_proto::ConfigProto;
use tenon_runtime::{SessionError, SessionOptions};

/// Options of a session, as its client gave them.
pub(crate) struct Options {
    pub session: SessionOptions,
    /// The longest time of a request of the session that has no deadline of its own.
    pub timeout: Option<Duration>,
    /// Whether the place of each node is logged.
    pub log_placement: bool,
    /// Whether steps may give their graphs back.
    pub gives_graphs: bool,
    /// Whether workers keep their answers to requests for tensors until they are confirmed.
    pub keeps_answers: bool,
}

/// The part of `OptimizerOptions` that has a meaning here.
#[derive(Clone, PartialEq, Message)]
struct OptimizerOptions {
    /// -1 means no optimisation.
    #[prost(int32, tag = "3")]
    opt_level: i32,
}

/// The part of `RewriterConfig` that has a meaning here.
#[derive(Clone, PartialEq, Message)]
struct RewriterConfig {
    #[prost(bool, tag = "19")]
    disable_meta_optimizer: bool,
}

/// The part of `RPCOptions` that has a meaning here.
#[derive(Clone, PartialEq, Message)]
struct RpcOptions {
    #[prost(bool, tag = "4")]
    cache_rpc_response: bool,
}

/// A duration in milliseconds; `None` for 0 and less.
pub(crate) fn milliseconds(number: i64) -> Option<Duration> {
    u64::try_from(number).ok().filter(|&number| number > 0).map(Duration::from_millis)
}

fn part<M: Message + Default>(name: &str, bytes: Option<&Vec<u8>>) -> Result<M, Refusal> {
    let bytes = bytes.map(Vec::as_slice).unwrap_or_default();
    M::decode(bytes)
        .map_err(|error| Refusal::invalid(format!("config: {name} is not its message: {error}")))
}

impl Options {
    /// # Errors
    /// `INVALID_ARGUMENT` for options that a server refuses.
    pub fn of(config: &ConfigProto) -> Result<Options, Refusal> {
        if !config.session_inter_op_thread_pool.is_empty() {
            return Err(Refusal::invalid(
                "config: session_inter_op_thread_pool is for sessions in one process: a server has its own threads",
            ));
        }
        note_ignored(config);
        Options::in_process(config)
    }

    /// As [`Options::of`], for a session in this process.
    fn in_process(config: &ConfigProto) -> Result<Options, Refusal> {
        let graph = config.graph_options.clone().unwrap_or_default();
        let level: OptimizerOptions = part("optimizer_options", graph.optimizer_options.as_ref())?;
        let rewriter: RewriterConfig = part("rewrite_options", graph.rewrite_options.as_ref())?;
        let rpc: RpcOptions = part("rpc_options", config.rpc_options.as_ref())?;
        let mut session = SessionOptions {
            soft_placement: Some(config.allow_soft_placement),
            isolate_state: config.isolate_session_state,
            ..SessionOptions::default()
        };
        if level.opt_level < 0 || rewriter.disable_meta_optimizer {
            session.knobs.insert("graph.optimize".to_owned(), "false".to_owned());
        }
        let experimental = config.experimental.clone().unwrap_or_default();
        Ok(Options {
            session,
            timeout: milliseconds(config.operation_timeout_in_ms),
            log_placement: config.log_device_placement,
            gives_graphs: !experimental.disable_output_partition_graphs,
            keeps_answers: rpc.cache_rpc_response,
        })
    }
}

/// The options that a client's `ConfigProto` requests for a session in this process, and the time limit of its steps that
/// have none of their own. Fields without a meaning here are ignored.
///
/// # Errors
/// `INVALID_ARGUMENT` if a part of the message is malformed.
pub fn session_options(
    config: &ConfigProto,
) -> Result<(SessionOptions, Option<Duration>), SessionError> {
    let options = Options::in_process(config);
    let options = options.map_err(|refusal| SessionError::new(refusal.code, refusal.message))?;
    Ok((options.session, options.timeout))
}

/// Logs once for each option that it has no meaning for sessions of a server.
fn note_ignored(config: &ConfigProto) {
    static SAID: LazyLock<Mutex<HashSet<&'static str>>> = LazyLock::new(Mutex::default);
    let graph = config.graph_options.clone().unwrap_or_default();
    let given = [
        ("device_count", !config.device_count.is_empty()),
        ("intra_op_parallelism_threads", config.intra_op_parallelism_threads != 0),
        ("inter_op_parallelism_threads", config.inter_op_parallelism_threads != 0),
        ("use_per_session_threads", config.use_per_session_threads),
        ("placement_period", config.placement_period != 0),
        ("gpu_options", config.gpu_options.as_ref().is_some_and(|it| it != &Default::default())),
        ("graph_options.build_cost_model", graph.build_cost_model != 0),
        ("graph_options.enable_bfloat16_sendrecv", graph.enable_bfloat16_sendrecv),
    ];
    let mut said = SAID.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    for (name, given) in given {
        if given && said.insert(name) {
            tracing::info!(
                "config: {name} is ignored: the server's own options say so for all sessions"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_proto::GraphOptions;

    #[test]
    fn what_has_a_meaning_is_taken() {
        let off = OptimizerOptions { opt_level: -1 }.encode_to_vec();
        let graph = GraphOptions { optimizer_options: Some(off), ..GraphOptions::default() };
        let config = ConfigProto {
            allow_soft_placement: true,
            isolate_session_state: true,
            operation_timeout_in_ms: 250,
            graph_options: Some(graph),
            ..ConfigProto::default()
        };
        let options = Options::of(&config).unwrap();
        assert_eq!(options.session.soft_placement, Some(true));
        assert!(options.session.isolate_state);
        assert_eq!(options.timeout, Some(Duration::from_millis(250)));
        assert_eq!(options.session.knobs["graph.optimize"], "false");
        assert!(Options::of(&ConfigProto::default()).unwrap().session.knobs.is_empty());
    }

    #[test]
    fn pools_of_a_session_are_refused() {
        let config = ConfigProto {
            session_inter_op_thread_pool: vec![Vec::new()],
            ..ConfigProto::default()
        };
        let Err(refusal) = Options::of(&config) else { panic!("pools are for one process") };
        assert!(refusal.message.contains("session_inter_op_thread_pool"));
    }
}
