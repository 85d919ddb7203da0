//! The call by which a task finds out whether another one has a data plane, and gets what it needs to begin a link.
//!
//! It is a method of a service of Tenon's own, `tenon.DataPlane`, at the port of the server: a task of TensorFlow answers
//! UNIMPLEMENTED. It passes the server's gate as the worker's methods do.

use prost::Message;

/// The path of the method.
pub(crate) const PATH: &str = "/tenon.DataPlane/Greet";
/// The version of the frames and of the handshake.
pub(super) const VERSION: u32 = 2;

/// Asks for a link.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct GreetRequest {
    #[prost(uint32, tag = "1")]
    pub version: u32,
    /// The task that asks.
    #[prost(string, tag = "2")]
    pub task: String,
    /// The boot of its host; empty if it does not want shared memory.
    #[prost(string, tag = "3")]
    pub boot: String,
    /// Whether the task asks for a session with a cluster of its own: the names of that cluster, and this server's names for
    /// its own tasks, have nothing to do with each other.
    #[prost(bool, tag = "4")]
    pub guest: bool,
}

/// Says which ways there are. A ticket is for one connection within some seconds.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct GreetResponse {
    #[prost(uint32, tag = "1")]
    pub version: u32,
    /// The task that answers.
    #[prost(string, tag = "2")]
    pub task: String,
    /// The ticket for a connection by TCP; empty if there is none.
    #[prost(bytes = "vec", tag = "3")]
    pub tcp: Vec<u8>,
    /// The ticket for shared memory, and the name of the door.
    #[prost(bytes = "vec", tag = "4")]
    pub shm: Vec<u8>,
    #[prost(string, tag = "5")]
    pub door: String,
    /// Why there is no link; empty if there is one.
    #[prost(string, tag = "6")]
    pub refused: String,
}
