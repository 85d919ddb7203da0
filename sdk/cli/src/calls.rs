//! `tenon call-server`: computes the calls of a plugin's own tests, which `tenon_test` sends.

use crate::{args::Global, error::CliError};
use std::{
    io::{self, BufReader},
    process,
    sync::{Arc, mpsc},
    thread,
};
use tenon_runtime::{
    framework::{KernelError, Tensor, attr::AttrValue},
    host::devices::PluginDevice,
    proto::{NodeDef, convert::Decoder},
};
use tenon_test::wire::{self, Ready, Reply, Request};
use tenon_testkit::{check::worker::take_output, host::TestHost};

/// The attribute by which a node asks for a kernel's label.
const LABEL: &str = "_kernel";

/// Serves until the test closes the pipe, which ends the process, in the middle of a call too.
///
/// # Errors
/// A knob that is wrong; a pipe that fails.
pub fn serve(global: &Global) -> Result<(), CliError> {
    let settings = global.settings()?;
    let settings: Vec<_> =
        settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    exchange(global, &settings).map_err(CliError::Calls)
}

fn exchange(global: &Global, settings: &[(&str, &str)]) -> io::Result<()> {
    let to = take_output()?;
    let mut host = TestHost::with_settings(global.plugins.iter().cloned(), settings);
    wire::write(&to, &Ready { version: wire::VERSION })?;
    for request in requests() {
        let request = request?;
        let node = request.node.unwrap_or_default();
        host.device = device_of(&host, &node.device);
        let called = wire::tensors_from_proto(&request.inputs)
            .and_then(|inputs| call(&host, &node, &inputs));
        wire::write(&to, &Reply::of(called))?;
    }
    Ok(())
}

/// What the test asks for, read by its own thread: a call that does not end is not left behind by a test that is
/// gone.
fn requests() -> mpsc::Receiver<io::Result<Request>> {
    let (sender, requests) = mpsc::channel();
    thread::spawn(move || {
        let mut from = BufReader::new(io::stdin());
        loop {
            let request = match wire::read(&mut from) {
                Ok(Some(request)) => Ok(request),
                Ok(None) => process::exit(0),
                Err(error) => Err(error),
            };
            let is_over = request.is_err();
            // Where the calls have ended, so has the process.
            if sender.send(request).is_err() || is_over {
                return;
            }
        }
    });
    requests
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
