//! The plugin's knobs.
//!
//! A host sets them as scope `tenon-accel`. `devices` is read when the host probes; `stall`, `hold`
//! and `copy_delay_us` whenever the queue is about to run a command, so that a test can change them
//! during a step; all others when a device is opened.

use crate::faults::Faults;
use std::{sync::Arc, time::Duration};
use tenon_sdk::{KernelError, author::Knobs, register_knob};

register_knob!("devices": INT = "2", "How many ACCEL devices there are.");
register_knob!("memory_limit": INT = "1073741824", "Bytes of memory of each device.");
register_knob!("streams": INT = "4", "Streams that a device says are worth using at once.");
register_knob!(
    "stall": BOOL = "false",
    "While true, the queues run nothing; what is enqueued stays enqueued."
);
register_knob!(
    "hold": STRING = "",
    "While not empty, no kernel of this name begins, nor a copy for `copy`: its stream stands still, others go on."
);
register_knob!("copy_delay_us": INT = "0", "Microseconds that every copy takes longer.");
register_knob!(
    "reorder_seed": INT = "0",
    "Not 0: commands of different streams run in a random order, where events do not say otherwise."
);
register_knob!(
    "fail_alloc_after_bytes": INT = "0",
    "Not 0: a device fails to allocate more than so many bytes in all its life."
);
register_knob!(
    "fail_command_after": INT = "0",
    "Not 0: on each device, the command after so many commands fails."
);
register_knob!(
    "lose_after_commands": INT = "0",
    "Not 0: each device is lost after so many commands."
);

/// Most devices: handles have four bits for the ordinal.
pub const MAX_DEVICES: u32 = 16;

/// How the queue is held up at present.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pace {
    /// Whether to run nothing.
    pub stall: bool,
    /// Name of commands that must not begin; empty for none.
    pub hold: String,
    /// Additional duration of every copy.
    pub copy_delay: Duration,
}

/// Function by which the queue asks for the current [`Pace`].
pub type PaceSource = Arc<dyn Fn() -> Pace + Send + Sync>;

/// Settings of one device.
#[derive(Clone)]
pub struct Settings {
    /// Bytes of memory.
    pub memory_limit: u64,
    /// Streams worth using at once.
    pub streams: u32,
    /// Seed of the order between streams; 0 for the order of enqueueing.
    pub reorder_seed: u64,
    /// Simulated faults.
    pub faults: Faults,
    /// Called before every command, and at intervals while it returns `stall`.
    pub pace: PaceSource,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            memory_limit: 1 << 30,
            streams: 4,
            reorder_seed: 0,
            faults: Faults::default(),
            pace: Arc::new(Pace::default),
        }
    }
}

impl Settings {
    /// Settings from the knobs.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a number out of range.
    pub fn from_knobs(knobs: Knobs<'_>) -> Result<Settings, KernelError> {
        let figure = |name, most| figure(knobs, name, most);
        let kept = knobs.keep();
        Ok(Settings {
            memory_limit: figure("memory_limit", i64::MAX)?,
            streams: figure("streams", 1024)?.max(1) as u32,
            reorder_seed: figure("reorder_seed", i64::MAX)?,
            faults: Faults {
                fail_alloc_after_bytes: figure("fail_alloc_after_bytes", i64::MAX)?,
                fail_command_after: figure("fail_command_after", i64::MAX)?,
                lose_after_commands: figure("lose_after_commands", i64::MAX)?,
            },
            pace: Arc::new(move || pace(kept.get())),
        })
    }
}

/// Number of devices, from the knob.
///
/// # Errors
/// `INVALID_ARGUMENT` for a number out of range.
pub fn device_count(knobs: Knobs<'_>) -> Result<u32, KernelError> {
    figure(knobs, "devices", MAX_DEVICES.into()).map(|count| count as u32)
}

fn figure(knobs: Knobs<'_>, name: &str, most: i64) -> Result<u64, KernelError> {
    let value = knobs.int(name)?;
    match value {
        0.. if value <= most => Ok(value.unsigned_abs()),
        _ => Err(KernelError::invalid_argument(format!(
            "knob {name}: expected a number from 0 to {most}, found {value}"
        ))),
    }
}

/// The pace from the knobs. An unreadable knob holds nothing up, since a queue cannot report
/// errors.
fn pace(knobs: Knobs<'_>) -> Pace {
    Pace {
        stall: knobs.bool("stall").unwrap_or(false),
        hold: knobs.text("hold").unwrap_or_default(),
        copy_delay: Duration::from_micros(figure(knobs, "copy_delay_us", 60_000_000).unwrap_or(0)),
    }
}
