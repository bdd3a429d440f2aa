//! Those who have shown a token: each has a gateway of its own, with the policy that the token says. It is kept for the next
//! connection, as what it has found out of names is.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use policy::network::{NetworkPolicy, Refusal, UpstreamProxy};
use sha2::{Digest as _, Sha256};

use crate::carry::Pipes;
use crate::gateway::Gateway;
use crate::limits::Limits;
use crate::token::{Grant, now};

use super::Book;

/// The most that are kept.
const MOST: usize = 256;

/// Of all places, one holder has one in so many: the others are to find some.
const SHARE: usize = 4;

/// One who has shown a token.
#[derive(Debug)]
pub(super) struct Holder {
    pub(super) gateway: Gateway,
    token: Fingerprint,
    expires: u64,
}

/// The digest of a token, which says nothing of it.
type Fingerprint = [u8; 32];

impl Holder {
    /// Whether both have shown the same token.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.token == other.token
    }

    /// Resolves when the token is valid no more: what was opened with it ends with it.
    pub(super) async fn expired(&self) -> Refusal {
        loop {
            // The clock may have been set meanwhile, so it is asked again and again.
            match self.expires.saturating_sub(now()) {
                0 => return Refusal::TokenExpired,
                left => tokio::time::sleep(Duration::from_secs(left.min(60))).await,
            }
        }
    }
}

/// All who are known.
#[derive(Debug)]
pub(super) struct Holders {
    known: HashMap<Fingerprint, Arc<Holder>>,
    /// What each of them may use.
    limits: Limits,
    /// The way that all of them go.
    upstream: Option<UpstreamProxy>,
    pipes: Arc<Pipes>,
}

impl Holders {
    pub(super) fn new(limits: Limits, upstream: Option<UpstreamProxy>) -> Self {
        let limits = Limits { connections: (limits.connections / SHARE).max(1), ..limits };
        Self { known: HashMap::new(), limits, upstream, pipes: Arc::default() }
    }

    /// The holder of a token that has been verified.
    pub(super) fn of(&mut self, token: &str, grant: &Grant, book: &dyn Book) -> Arc<Holder> {
        let token: Fingerprint = Sha256::digest(token.as_bytes()).into();
        if let Some(holder) = self.known.get(&token) {
            return Arc::clone(holder);
        }
        if self.known.len() >= MOST {
            self.make_room();
        }
        let policy = NetworkPolicy { upstream: self.upstream.clone(), ..grant.policy() };
        let gateway = Gateway::new(policy, self.limits, book.witness(&grant.holder));
        let gateway = gateway.sharing(Arc::clone(&self.pipes));
        let holder = Arc::new(Holder { gateway, token, expires: grant.expires });
        self.known.insert(token, Arc::clone(&holder));
        holder
    }

    /// Forgets those who are done, and where there are none anyone: whoever comes back is made anew.
    fn make_room(&mut self) {
        let now = now();
        self.known.retain(|_, holder| holder.expires > now && Arc::strong_count(holder) > 1);
        if self.known.len() >= MOST
            && let Some(digest) = self.known.keys().next().copied()
        {
            self.known.remove(&digest);
        }
    }
}
