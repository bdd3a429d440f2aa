//! What one process of ours hands to the next: the engine its order to the keeper, the keeper its descriptors
//! to the supervisor, and what either may say back. Each list is closed and fits on one screen.
//!
//! Orders travel from the trusted side to the less trusted one. The only way back from the exposed side is a
//! [`Plea`]: a byte or two, so that the keeper parses nothing that hostile bytes could have shaped. An
//! [`Answer`] is as short.

mod answer;
mod message;
mod order;
mod plea;
mod port;
mod status;

pub use answer::{Answer, Reached};
pub use message::{HandoverError, receive, send};
pub use order::{Bequest, Inward, KeeperEvent, KeeperOrder, Loss, Problem, Sockets, Stay, TreeOrder, Way};
pub use plea::Plea;
pub use port::{OfferedPort, PORTS_SOCKET, PortAnswer, offer_port, receive_port};
pub use status::{
    Filed, LAYER, Reason, SPEC_FILE, STATE_VERSION, STATUS_FILE, State, Status, UNCLAIMED_FILE, UPPER, now_ms,
};
