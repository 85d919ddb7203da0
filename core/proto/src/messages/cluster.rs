//! Clusters, jobs and servers.

use std::collections::BTreeMap;

use super::config::ConfigProto;

/// The tasks of a cluster.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ClusterDef {
    /// Jobs; their names are unique.
    #[prost(message, repeated, tag = "1")]
    pub job: Vec<JobDef>,
}

/// One job and its tasks.
#[derive(Clone, PartialEq, prost::Message)]
pub struct JobDef {
    /// Name of the job.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Address (`host:port`) per task number.
    #[prost(btree_map = "int32, string", tag = "2")]
    pub tasks: BTreeMap<i32, String>,
}

/// The parameters with which one server of a cluster starts.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ServerDef {
    /// The cluster it belongs to.
    #[prost(message, optional, tag = "1")]
    pub cluster: Option<ClusterDef>,
    /// Its job.
    #[prost(string, tag = "2")]
    pub job_name: String,
    /// Its task number.
    #[prost(int32, tag = "3")]
    pub task_index: i32,
    /// Session options used when a client gives none.
    #[prost(message, optional, tag = "4")]
    pub default_session_config: Option<ConfigProto>,
    /// Transport, such as `grpc`.
    #[prost(string, tag = "5")]
    pub protocol: String,
    /// Port to listen on; 0 takes it from the cluster.
    #[prost(int32, tag = "6")]
    pub port: i32,
    /// `ClusterDeviceFilters` as encoded bytes: which devices each task sees.
    #[prost(bytes = "vec", optional, tag = "7")]
    pub cluster_device_filters: Option<Vec<u8>>,
    /// Its replica number.
    #[prost(int32, tag = "8")]
    pub replica: i32,
}
