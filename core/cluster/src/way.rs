//! What carries tensors between tasks.

/// What carries the bytes of a tensor between tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    /// RecvTensor over gRPC.
    Grpc,
    /// TCP, or TLS over it.
    Tcp,
    /// Shared memory.
    Shm,
}

impl Way {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Way::Grpc => "grpc",
            Way::Tcp => "tcp",
            Way::Shm => "shm",
        }
    }
}

/// Which way tensors take between tasks of Tenon. Between a task of Tenon and one of TensorFlow it is always gRPC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DataPlane {
    /// Shared memory if both tasks are on one host, else TCP, else gRPC.
    #[default]
    Auto,
    /// RecvTensor over gRPC, as between TensorFlow's tasks.
    Grpc,
    /// TCP, at the port of the server; with TLS if the server has it.
    Tcp,
    /// Shared memory. Steps that need a tensor of a task on another host fail.
    Shm,
}

impl DataPlane {
    /// All of them, with the names that options have for them.
    pub const NAMES: [(&'static str, DataPlane); 4] = [
        ("auto", DataPlane::Auto),
        ("grpc", DataPlane::Grpc),
        ("tcp", DataPlane::Tcp),
        ("shm", DataPlane::Shm),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        DataPlane::NAMES.iter().find(|(_, it)| *it == self).map_or("auto", |(name, _)| name)
    }

    /// Whether it may be used.
    pub(crate) fn allows(self, way: Way) -> bool {
        match (self, way) {
            (DataPlane::Auto, _) => true,
            (DataPlane::Grpc, _) => false,
            (DataPlane::Tcp, way) => way == Way::Tcp,
            (DataPlane::Shm, way) => way == Way::Shm,
        }
    }
}
