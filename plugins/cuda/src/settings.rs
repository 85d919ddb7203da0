//! The plugin's knobs.
//!
//! A host sets them as scope `tenon-cuda`. `library_path` is read when a host probes for the first
//! time in the process, since the process loads each of NVIDIA's libraries once; `devices` on each
//! probe; the knobs of kernels when a kernel is created; the others when a device is opened.

use tenon_sdk::{KernelError, author::Knobs, register_knob};

register_knob!(
    "library_path": STRING = "",
    "Folders, separated by ':', in which NVIDIA's libraries are looked for before the system's."
);
register_knob!("devices": INT = "64", "How many GPUs are devices, at most.");
register_knob!("streams": INT = "4", "Streams that a device says are worth using at once.");
register_knob!(
    "memory_limit": INT = "0",
    "Bytes of a GPU's memory that a device uses at most; 0 is all of it."
);
register_knob!(
    "pinned_limit": INT = "1073741824",
    "Bytes of pinned host memory that a device gives to tensors; as many again it keeps for copies and for reuse."
);
register_knob!(
    "kernel_cache": STRING = "",
    "Folder in which compiled kernels are kept; empty is Tenon's cache folder, 'none' keeps nothing."
);

register_knob!(
    "allow_tf32": BOOL = "false",
    "Whether cuBLASLt may round factors of type float to TF32 (10 bits behind the point), which tensor cores multiply."
);

register_knob!(
    "convolution_tf32": BOOL = "false",
    "Whether float convolutions through cuDNN and cuBLASLt may round their factors to TF32 (10 bits behind the point)."
);

register_knob!(
    "overlap_launches": BOOL = "true",
    "Whether an elementwise kernel may begin while the one before it ends (compute capability 9.0, CUDA 12.3 and later)."
);

register_knob!(
    "fuse_relu": BOOL = "false",
    "Whether cuBLASLt does the ReLU behind its products: a pass over the result less, but NaN may become 0."
);
register_knob!(
    "search_products": BOOL = "false",
    "Whether the first large product of some shapes waits to time cuBLASLt's algorithms: results may differ between \
     processes by rounding."
);
register_knob!(
    "search_convolutions": BOOL = "false",
    "Whether the first convolution of some shapes waits to time cuDNN's algorithms: results may differ between \
     processes by rounding."
);

/// How one device behaves.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Streams worth using at once.
    pub streams: u32,
    /// Most bytes of device memory in use; 0: limited by the GPU only.
    pub memory_limit: u64,
    /// Most bytes of pinned memory held.
    pub pinned_limit: u64,
    /// The folder of compiled kernels.
    pub kernel_cache: String,
    /// Whether launches of kernels that wait for their predecessor themselves overlap.
    pub overlap_launches: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            streams: 4,
            memory_limit: 0,
            pinned_limit: 1 << 30,
            kernel_cache: String::new(),
            overlap_launches: true,
        }
    }
}

impl Settings {
    /// Settings from the knobs.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a number out of range.
    pub fn from_knobs(knobs: Knobs<'_>) -> Result<Settings, KernelError> {
        let figure = |name, least, most| figure(knobs, name, least, most);
        Ok(Settings {
            // A step has at most as many streams as a word has bits.
            streams: figure("streams", 1, 32)? as u32,
            memory_limit: figure("memory_limit", 0, i64::MAX)?,
            pinned_limit: figure("pinned_limit", 0, i64::MAX)?,
            kernel_cache: knobs.text("kernel_cache")?,
            overlap_launches: knobs.bool("overlap_launches")?,
        })
    }
}

/// Most devices.
///
/// # Errors
/// `INVALID_ARGUMENT` for a number out of range.
pub fn device_limit(knobs: Knobs<'_>) -> Result<u32, KernelError> {
    figure(knobs, "devices", 0, i64::from(i32::MAX)).map(|count| count as u32)
}

/// Whether float products may use TF32.
///
/// # Errors
/// The host's error.
pub fn allow_tf32(knobs: Knobs<'_>) -> Result<bool, KernelError> {
    knobs.bool("allow_tf32")
}

/// Whether float convolutions by a library may use TF32.
///
/// # Errors
/// The host's error.
pub fn convolution_tf32(knobs: Knobs<'_>) -> Result<bool, KernelError> {
    knobs.bool("convolution_tf32")
}

/// Whether the library applies a ReLU that follows a product.
///
/// # Errors
/// The host's error.
pub fn fuse_relu(knobs: Knobs<'_>) -> Result<bool, KernelError> {
    knobs.bool("fuse_relu")
}

/// Whether algorithms for products are timed.
///
/// # Errors
/// The host's error.
pub fn search_products(knobs: Knobs<'_>) -> Result<bool, KernelError> {
    knobs.bool("search_products")
}

/// Whether algorithms for convolutions are timed.
///
/// # Errors
/// The host's error.
pub fn search_convolutions(knobs: Knobs<'_>) -> Result<bool, KernelError> {
    knobs.bool("search_convolutions")
}

fn figure(knobs: Knobs<'_>, name: &str, least: i64, most: i64) -> Result<u64, KernelError> {
    let value = knobs.int(name)?;
    match (least..=most).contains(&value) {
        true => Ok(value.unsigned_abs()),
        false => Err(KernelError::invalid_argument(format!(
            "knob {name}: expected a number from {least} to {most}, found {value}"
        ))),
    }
}
