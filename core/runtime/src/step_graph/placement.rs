//! Placing a step's nodes as the session's options say, with errors that name what there is.

use super::{Context, choice::Devices};
use crate::error::RuntimeError;
use tenon_framework::device::DeviceName;
use tenon_graph::{DeviceView, GraphError, Placement, PlacerOptions, Subgraph, place};

/// Places the nodes of a step.
///
/// # Errors
/// No device is there, or not the one that is asked for, and soft placement is not allowed; as [`place`].
pub(super) fn placed(
    context: Context<'_>,
    sub: &Subgraph,
    view: &Devices<'_>,
) -> Result<Placement, RuntimeError> {
    let by_knob = || context.version.knobs.bool("runtime", "soft_placement").unwrap_or(false);
    let soft = context.options.soft_placement.unwrap_or_else(by_knob);
    let options = PlacerOptions {
        allow_soft_placement: soft,
        default_device: default_device(context, view, soft)?,
    };
    let placed = place(&context.version.graph, sub, view, &options);
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
    // Where there are none, the first node says so.
    if soft || devices.is_empty() || devices.iter().any(|there| device.matches(&there.name)) {
        return Ok(device);
    }
    let there = devices.iter().map(|device| device.name.to_string()).collect();
    Err(RuntimeError::NoSuchDevice { name: name.clone(), there, why: why(context, &device) })
}

/// Why a type of device has none; empty where no plugin says so.
fn why(context: Context<'_>, device: &DeviceName) -> String {
    let absent = context.runtime.devices().absent();
    let asked = device.device_type.as_deref();
    let same = |name: &str| asked.is_some_and(|asked| asked.eq_ignore_ascii_case(name));
    let found = absent.into_iter().find(|absent| same(&absent.device_type));
    found.map_or(String::new(), |absent| format!("{}: {}", absent.device_type, absent.reason))
}

/// An error of placement with what the runtime knows of devices that are not there.
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
