//! Places a step's nodes according to the session's options, with errors that list the devices.

use super::{Context, choice::Devices};
use crate::error::RuntimeError;
use tenon_framework::device::DeviceName;
use tenon_graph::{
    DeviceView, Graph, GraphError, Placement, PlacerOptions, Subgraph, place, place_by_cost,
};

/// Places the nodes of a step.
///
/// # Errors
/// There is no device, or the requested one does not exist and soft placement is not allowed; or an
/// error of [`place`].
pub(super) fn placed(
    context: Context<'_>,
    graph: &Graph,
    sub: &Subgraph,
    view: &Devices<'_>,
) -> Result<Placement, RuntimeError> {
    let by_knob = || context.version.knobs.bool("runtime", "soft_placement").unwrap_or(false);
    let soft = context.options.soft_placement.unwrap_or_else(by_knob);
    let options = PlacerOptions {
        allow_soft_placement: soft,
        default_device: default_device(context, view, soft)?,
    };
    let placed = match &context.options.costs {
        Some(costs) => place_by_cost(graph, sub, view, &options, &**costs),
        None => place(graph, sub, view, &options),
    };
    placed.map_err(|error| explained(context, error))
}

/// The session's device for nodes that name none.
fn default_device(
    context: Context<'_>,
    view: &Devices<'_>,
    soft: bool,
) -> Result<DeviceName, RuntimeError> {
    let Some(name) = &context.options.device else { return Ok(DeviceName::default()) };
    let device =
        DeviceName::parse(name).map_err(|error| RuntimeError::Device(error.to_string()))?;
    let devices = view.devices();
    // If there are no devices at all, the first node reports it.
    if soft || devices.is_empty() || devices.iter().any(|there| device.matches(&there.name)) {
        return Ok(device);
    }
    let there = devices.iter().map(|device| device.name.to_string()).collect();
    Err(RuntimeError::NoSuchDevice { name: name.clone(), there, why: why(context, &device) })
}

/// The reason why a device type has no devices; empty if no plugin gives one.
fn why(context: Context<'_>, device: &DeviceName) -> String {
    let absent = context.runtime.devices().absent();
    let asked = device.device_type.as_deref();
    let same = |name: &str| asked.is_some_and(|asked| asked.eq_ignore_ascii_case(name));
    let found = absent.into_iter().find(|absent| same(&absent.device_type));
    found.map_or(String::new(), |absent| format!("{}: {}", absent.device_type, absent.reason))
}

/// Adds the runtime's knowledge about missing devices to a placement error.
fn explained(context: Context<'_>, error: GraphError) -> RuntimeError {
    match error {
        GraphError::NoDevice { node, op, candidates, .. } if candidates.is_empty() => {
            let searched = context.runtime.searched().to_vec();
            RuntimeError::NoDevices { node, op, searched }
        }
        GraphError::NoDevice { node, op, requested, is_there, mut candidates, soft } => {
            let why = why(context, &requested);
            if !is_there && !why.is_empty() {
                candidates.push(why);
            }
            GraphError::NoDevice { node, op, requested, is_there, candidates, soft }.into()
        }
        error => error.into(),
    }
}
