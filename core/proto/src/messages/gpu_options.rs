//! Options of GPU and pluggable devices.

/// Options of GPU devices.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GPUOptions {
    /// Share of the device's memory to take; above 1 uses unified memory.
    #[prost(double, tag = "1")]
    pub per_process_gpu_memory_fraction: f64,
    /// Name of the allocator; empty for the default.
    #[prost(string, tag = "2")]
    pub allocator_type: String,
    /// Bytes freed in one batch; 0 for the default.
    #[prost(int64, tag = "3")]
    pub deferred_deletion_bytes: i64,
    /// Start small and take memory as needed.
    #[prost(bool, tag = "4")]
    pub allow_growth: bool,
    /// Comma-separated numbers of the devices to use, in the order to number them.
    #[prost(string, tag = "5")]
    pub visible_device_list: String,
    /// Microseconds between polls while events are pending.
    #[prost(int32, tag = "6")]
    pub polling_active_delay_usecs: i32,
    /// Milliseconds between polls otherwise; no longer used.
    #[prost(int32, tag = "7")]
    pub polling_inactive_delay_msecs: i32,
    /// Allocate all host tensors so that the device can read them directly.
    #[prost(bool, tag = "8")]
    pub force_gpu_compatible: bool,
    /// Options that may change.
    #[prost(message, optional, tag = "9")]
    pub experimental: Option<GPUOptionsExperimental>,
}

/// Options of GPU devices that may change.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GPUOptionsExperimental {
    /// How to split each visible device.
    #[prost(message, repeated, tag = "1")]
    pub virtual_devices: Vec<VirtualDevices>,
    /// Use unified memory, so that the limit may exceed the device's own.
    #[prost(bool, tag = "2")]
    pub use_unified_memory: bool,
    /// Streams per direction for copies between devices.
    #[prost(int32, tag = "3")]
    pub num_dev_to_dev_copy_streams: i32,
    /// Comma-separated device numbers giving the order of rings.
    #[prost(string, tag = "4")]
    pub collective_ring_order: String,
    /// Reuse memory across streams by timestamps.
    #[prost(bool, tag = "5")]
    pub timestamped_allocator: bool,
    /// Most kernels launched between tracking events; 0 for no limit.
    #[prost(int32, tag = "7")]
    pub kernel_tracker_max_interval: i32,
    /// Most bytes allocated between tracking events; 0 for no limit.
    #[prost(int32, tag = "8")]
    pub kernel_tracker_max_bytes: i32,
    /// Most tracking events pending; 0 for no limit.
    #[prost(int32, tag = "9")]
    pub kernel_tracker_max_pending: i32,
    /// Share of a chunk that may be wasted before it is split.
    #[prost(double, tag = "10")]
    pub internal_fragmentation_fraction: f64,
    /// Allocate with the driver's stream-ordered allocator.
    #[prost(bool, tag = "11")]
    pub use_cuda_malloc_async: bool,
    /// Fail at once when memory runs out instead of waiting for some.
    #[prost(bool, tag = "12")]
    pub disallow_retry_on_allocation_failure: bool,
    /// Limit of pinned host memory in MiB; 0 for the default.
    #[prost(float, tag = "13")]
    pub gpu_host_mem_limit_in_mb: f32,
    /// Take all pinned host memory at the start.
    #[prost(bool, tag = "14")]
    pub gpu_host_mem_disallow_growth: bool,
    /// Split each device into this many equal parts.
    #[prost(int32, tag = "15")]
    pub num_virtual_devices_per_gpu: i32,
    /// Memory left to the system in MiB; 0 for the default.
    #[prost(int32, tag = "16")]
    pub gpu_system_memory_size_in_mb: i32,
    /// Record the information for creating a PJRT client.
    #[prost(bool, tag = "17")]
    pub populate_pjrt_gpu_client_creation_info: bool,
    /// Number of this host among those of the PJRT client.
    #[prost(int32, tag = "18")]
    pub node_id: i32,
    /// The streams to merge into one.
    #[prost(message, optional, tag = "19")]
    pub stream_merge_options: Option<StreamMergeOptions>,
}

/// How to split one physical device.
#[derive(Clone, PartialEq, prost::Message)]
pub struct VirtualDevices {
    /// Memory of each virtual device in MiB.
    #[prost(float, repeated, tag = "1")]
    pub memory_limit_mb: Vec<f32>,
    /// Stream priority of each virtual device; empty for the default.
    #[prost(int32, repeated, tag = "2")]
    pub priority: Vec<i32>,
    /// Number of each virtual device; empty numbers them in order.
    #[prost(int32, repeated, tag = "3")]
    pub device_ordinal: Vec<i32>,
}

/// The streams that become the compute stream.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StreamMergeOptions {
    /// Copies from host to device.
    #[prost(bool, tag = "1")]
    pub merge_host_to_device_stream: bool,
    /// Copies from device to host.
    #[prost(bool, tag = "2")]
    pub merge_device_to_host_stream: bool,
    /// Copies between devices.
    #[prost(bool, tag = "3")]
    pub merge_device_to_device_stream: bool,
}
