//! `tenon call-server`: computes the calls of a plugin's own tests, which `tenon_test` sends.

use crate::{args::Global, error::CliError};
use rustix::{
    process::{Signal, set_parent_process_death_signal},
    stdio::dup2_stdout,
};
use std::{
    fs::File,
    io::{self, BufReader},
    os::fd::AsFd,
    sync::Arc,
};
use tenon_runtime::{
    framework::{KernelError, Tensor, attr::AttrValue, knob::parse_setting},
    host::devices::PluginDevice,
    proto::{NodeDef, convert::Decoder},
};
use tenon_test::wire::{self, Ready, Reply, Request};
use tenon_testkit::host::TestHost;

/// The attribute by which a node asks for a kernel's label.
const LABEL: &str = "_kernel";

/// Serves until the test closes the pipe.
///
/// # Errors
/// A knob that is wrong; a pipe that fails.
pub fn serve(global: &Global) -> Result<(), CliError> {
    let settings: Vec<_> = global
        .set
        .iter()
        .map(|text| parse_setting(text))
        .collect::<Result<_, _>>()
        .map_err(CliError::Set)?;
    let settings: Vec<_> =
        settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    exchange(global, &settings).map_err(CliError::Calls)
}

fn exchange(global: &Global, settings: &[(&str, &str)]) -> io::Result<()> {
    // A call that does not end is not left behind by a test that was killed.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let to = take_stdout()?;
    let mut from = BufReader::new(io::stdin());
    let host = TestHost::with_settings(global.plugins.iter().cloned(), settings);
    wire::write(&to, &Ready { version: wire::VERSION })?;
    let mut host = host;
    while let Some(request) = wire::read::<Request>(&mut from)? {
        let node = request.node.unwrap_or_default();
        let device = device_of(&host, &node.device);
        host.device = device;
        let called = wire::tensors_from_proto(&request.inputs)
            .and_then(|inputs| call(&host, &node, &inputs));
        wire::write(&to, &Reply::of(called))?;
    }
    Ok(())
}

/// Takes the process's standard output for messages; what a plugin prints goes to standard error.
fn take_stdout() -> io::Result<File> {
    let messages = io::stdout().as_fd().try_clone_to_owned()?;
    dup2_stdout(io::stderr())?;
    Ok(File::from(messages))
}

/// `None` is the host's own memory.
fn device_of(host: &TestHost, name: &str) -> Option<Arc<PluginDevice>> {
    (!name.is_empty()).then(|| host.find(name))
}

fn call(host: &TestHost, proto: &NodeDef, inputs: &[Tensor]) -> Result<Vec<Tensor>, KernelError> {
    let registry = host.plugins.registry();
    let declared = |name: &str| registry.op(&proto.op)?.attr(name).map(|attr| attr.ty);
    let mut node = host.node(&proto.op).named(&proto.name);
    let mut decoder = Decoder::new();
    for (name, value) in &proto.attr {
        let decoded = match declared(name) {
            Some(expected) => decoder.attr(value, expected),
            // The label, or what no op knows, which is told when the node is made.
            None => decoder.undeclared_attr(value),
        };
        let decoded =
            decoded.map_err(|error| KernelError::invalid_argument(format!("{name}: {error}")))?;
        node = match decoded {
            Some(AttrValue::String(label)) if name == LABEL => {
                node.label(&String::from_utf8_lossy(&label))
            }
            Some(value) => node.attr(name, value),
            None => node,
        };
    }
    node.call(inputs)
}
