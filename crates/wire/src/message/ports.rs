//! What may be asked of published ports: of init to connect to one inside, of a supervisor which there are.

/// A port inside to connect to.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Dial {
    /// Which, from 1 to 65535.
    #[prost(uint32, tag = "1")]
    pub port: u32,
}

/// What came of it.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Dialled {
    /// The kernel's error number; zero when it is connected.
    #[prost(int32, tag = "1")]
    pub errno: i32,
}

/// Nothing more to say.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Ports {}

/// The ports that are published now, in the order of their addresses.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PortStates {
    /// Each of them.
    #[prost(message, repeated, tag = "1")]
    pub ports: Vec<PortState>,
}

/// A published port as its supervisor knows it.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct PortState {
    /// The host's address and port, as `127.0.0.1:80` or `[::1]:80`.
    #[prost(string, tag = "1")]
    pub host: String,
    /// The port inside.
    #[prost(uint32, tag = "2")]
    pub inside: u32,
    /// Connections that are open now.
    #[prost(uint64, tag = "3")]
    pub open: u64,
    /// Connections that there were in all.
    #[prost(uint64, tag = "4")]
    pub total: u64,
    /// Bytes into the sandbox.
    #[prost(uint64, tag = "5")]
    pub bytes_in: u64,
    /// Bytes out of it.
    #[prost(uint64, tag = "6")]
    pub bytes_out: u64,
}

/// A port to be closed, with the connections that it has.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Unpublish {
    /// The host's address and port, as [`PortState::host`].
    #[prost(string, tag = "1")]
    pub host: String,
}

/// What came of that.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Unpublished {
    /// Whether there was such a port.
    #[prost(bool, tag = "1")]
    pub found: bool,
}
