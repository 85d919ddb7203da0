//! Devices for variables.

use crate::TrainError;
use tenon_framework::{DType, Shape};

/// Chooses a device for each variable among those that hold parameters (`tf.compat.v1.train.replica_device_setter`).
///
/// ```
/// use tenon_framework::{DType, Shape};
/// use tenon_training::VariableDevices;
///
/// let mut devices = VariableDevices::parameter_servers(2, "/job:ps")?;
/// let shape = Shape::new(&[2])?;
/// assert_eq!(devices.choose(DType::FLOAT, &shape)?, "/job:ps/task:0");
/// assert_eq!(devices.choose(DType::FLOAT, &shape)?, "/job:ps/task:1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct VariableDevices {
    devices: Vec<String>,
    strategy: Strategy,
}

#[derive(Debug, Clone)]
enum Strategy {
    /// The number of the next device.
    RoundRobin(usize),
    /// The bytes on each device.
    Greedy(Vec<u64>),
}

impl VariableDevices {
    /// One of these devices after the other.
    ///
    /// # Errors
    /// There is no device.
    pub fn round_robin(devices: &[&str]) -> Result<VariableDevices, TrainError> {
        VariableDevices::new(devices, Strategy::RoundRobin(0))
    }

    /// The device with the fewest bytes so far; the first of them, if there are several.
    ///
    /// # Errors
    /// There is no device.
    pub fn greedy(devices: &[&str]) -> Result<VariableDevices, TrainError> {
        VariableDevices::new(devices, Strategy::Greedy(vec![0; devices.len()]))
    }

    /// The tasks of a job, such as `/job:ps`, one after the other.
    ///
    /// # Errors
    /// There is no task.
    pub fn parameter_servers(tasks: u32, job: &str) -> Result<VariableDevices, TrainError> {
        let names: Vec<String> = (0..tasks).map(|task| format!("{job}/task:{task}")).collect();
        VariableDevices::round_robin(&names.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn new(devices: &[&str], strategy: Strategy) -> Result<VariableDevices, TrainError> {
        if devices.is_empty() {
            return Err(TrainError::argument("devices for variables", "at least one", "none"));
        }
        let devices = devices.iter().map(|&device| device.to_owned()).collect();
        Ok(VariableDevices { devices, strategy })
    }

    /// The device for the next variable.
    ///
    /// # Errors
    /// The variable has more bytes than a number of 64 bits counts.
    pub fn choose(&mut self, dtype: DType, shape: &Shape) -> Result<String, TrainError> {
        let at = match &mut self.strategy {
            Strategy::RoundRobin(next) => {
                let at = *next;
                *next = (at + 1) % self.devices.len();
                at
            }
            Strategy::Greedy(loads) => {
                let bytes = bytes(dtype, shape)?;
                let least = loads.iter().enumerate().min_by_key(|(at, load)| (**load, *at));
                let at = least.map_or(0, |(at, _)| at);
                loads[at] = loads[at].saturating_add(bytes);
                at
            }
        };
        Ok(self.devices[at].clone())
    }
}

/// The bytes of a tensor. A string counts as 16, as in TensorFlow.
pub(crate) fn bytes(dtype: DType, shape: &Shape) -> Result<u64, TrainError> {
    let size = match dtype {
        DType::STRING => 16,
        dtype => dtype.size().unwrap_or(16) as u64,
    };
    let mut dims = shape.dims().iter();
    let elements = dims.try_fold(size, |all, &dim| all.checked_mul(u64::try_from(dim).ok()?));
    elements.ok_or_else(|| {
        let what = format!("a variable of {dtype} and shape {shape}");
        TrainError::argument(what, "less than 2^64 bytes", "more")
    })
}
