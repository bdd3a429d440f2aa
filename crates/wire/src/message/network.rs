//! What may be asked of a supervisor about the sandbox's network.

/// What has been seen of it.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Net {
    /// Whether to go on with each line that changes.
    #[prost(bool, tag = "1")]
    pub follow: bool,
    /// Whether only the sum is wanted.
    #[prost(bool, tag = "2")]
    pub total: bool,
}

/// Lines of the table: all of them first, then those that have changed.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Flows {
    /// Each of them.
    #[prost(message, repeated, tag = "1")]
    pub flows: Vec<Flow>,
    /// Whether there is no network to be seen anything of.
    #[prost(bool, tag = "2")]
    pub no_network: bool,
    /// The sum of all, where that was wanted.
    #[prost(message, optional, tag = "3")]
    pub total: Option<Total>,
    /// With the sum: the ports that lead out, where not all do.
    #[prost(uint32, repeated, tag = "4")]
    pub ports: Vec<u32>,
}

/// What all lines are together.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Total {
    /// Connections that are open now.
    #[prost(uint64, tag = "1")]
    pub open: u64,
    /// Connections and questions that were refused.
    #[prost(uint64, tag = "2")]
    pub refused: u64,
    /// Bytes out of the sandbox.
    #[prost(uint64, tag = "3")]
    pub sent: u64,
    /// Bytes into it.
    #[prost(uint64, tag = "4")]
    pub received: u64,
}

/// What has been seen of one host, on one port, with one outcome.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Flow {
    /// A name or an address.
    #[prost(string, tag = "1")]
    pub host: String,
    /// The port; zero for questions where the host is.
    #[prost(uint32, tag = "2")]
    pub port: u32,
    /// The code of why not; empty where it was allowed.
    #[prost(string, tag = "3")]
    pub refusal: String,
    /// How often.
    #[prost(uint64, tag = "4")]
    pub times: u64,
    /// Connections that are open now.
    #[prost(uint64, tag = "5")]
    pub open: u64,
    /// Bytes out of the sandbox.
    #[prost(uint64, tag = "6")]
    pub sent: u64,
    /// Bytes into it.
    #[prost(uint64, tag = "7")]
    pub received: u64,
}

/// What may leave from now on.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Policy {
    /// As JSON.
    #[prost(string, tag = "1")]
    pub json: String,
}
