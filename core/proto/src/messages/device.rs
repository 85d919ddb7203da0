//! Descriptions of devices that tasks exchange.

/// The public properties of a device.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DeviceAttributes {
    /// Full device name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Type, such as `CPU`.
    #[prost(string, tag = "2")]
    pub device_type: String,
    /// Memory it may use, in bytes.
    #[prost(int64, tag = "4")]
    pub memory_limit: i64,
    /// Its place in the machine.
    #[prost(message, optional, tag = "5")]
    pub locality: Option<DeviceLocality>,
    /// Random number of its current incarnation.
    #[prost(fixed64, tag = "6")]
    pub incarnation: u64,
    /// Readable description of the hardware.
    #[prost(string, tag = "7")]
    pub physical_device_desc: String,
    /// Its number among all devices of the cluster, -1 without one.
    #[prost(int64, tag = "8")]
    pub xla_global_id: i64,
}

/// A device's place in a machine.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DeviceLocality {
    /// Bus; 0 when unknown.
    #[prost(int32, tag = "1")]
    pub bus_id: i32,
    /// NUMA node.
    #[prost(int32, tag = "2")]
    pub numa_node: i32,
    /// `LocalLinks` as encoded bytes: connections to devices of the same task.
    #[prost(bytes = "vec", optional, tag = "3")]
    pub links: Option<Vec<u8>>,
}
