//! The explicit proxy, for those who cannot be led to a gateway: other containers, pods, machines. Its clients ask for a
//! tunnel or name the host in a request, and show a token that says what they may reach; from there on everything is as for
//! a sandbox. It stands on the exposed side, and tells nobody what another may reach.

pub(crate) mod authorization;
mod client;
mod forward;
mod holders;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use policy::SandboxName;
use policy::network::{Refusal, UpstreamProxy};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::accept;
use crate::call::reset;
use crate::limits::Limits;
use crate::seen::Witness;
use crate::token::{Grant, SigningKey, now};

use holders::{Holder, Holders};

/// Whoever keeps the record of a proxy.
pub trait Book: fmt::Debug + Send + Sync {
    /// Somebody was turned away before it was known who that is. It is refused, on record or not.
    fn turned_away(&self, from: SocketAddr, refusal: Refusal);

    /// Whoever keeps the record of one who has a token.
    fn witness(&self, holder: &SandboxName) -> Arc<dyn Witness>;
}

/// The proxy.
#[derive(Debug)]
pub struct Proxy {
    key: SigningKey,
    limits: Limits,
    book: Arc<dyn Book>,
    holders: Mutex<Holders>,
    places: Arc<Semaphore>,
}

impl Proxy {
    /// A proxy for those who have tokens signed with this key. What is allowed goes through the owner's own proxy, where
    /// there is one.
    #[must_use]
    pub fn new(
        key: SigningKey,
        upstream: Option<UpstreamProxy>,
        limits: Limits,
        book: Arc<dyn Book>,
    ) -> Self {
        let places = Arc::new(Semaphore::new(limits.connections));
        Self { key, limits, book, holders: Mutex::new(Holders::new(limits, upstream)), places }
    }

    /// Serves whoever comes, until it is dropped; so are the connections then.
    pub async fn serve(self: &Arc<Self>, listener: std::net::TcpListener) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        accept::each(listener, |stream, from| {
            let proxy = Arc::clone(self);
            let place = Arc::clone(&self.places).try_acquire_owned().ok();
            async move {
                match place {
                    Some(_) => client::serve(&proxy, &stream, from).await,
                    None => reset(&stream),
                }
            }
        })
        .await;
        Ok(())
    }

    /// Who shows this, and may be served now.
    fn admit(&self, authorization: Option<&[u8]>) -> Result<Arc<Holder>, Refusal> {
        let token = authorization::token(authorization.ok_or(Refusal::TokenMissing)?)?;
        let grant = Grant::verify(&token, &self.key, now())?;
        // A holder is there whole or not at all, so poison is ignored.
        let mut holders = self.holders.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(holders.of(&token, &grant, &*self.book))
    }
}

#[cfg(test)]
mod tests;
