//! Requests that name their host. Each is decided on by itself, also by who asks: what is for another host, or shown another
//! token, goes another way.

use std::sync::Arc;

use policy::network::Refusal;
use tokio::net::TcpStream;

use crate::call::Call;
use crate::conversation::Conversation;
use crate::http::{Ended, Form, Head, Host, Judge, Passage};
use crate::seen::Peer;

use super::Proxy;
use super::holders::Holder;

/// Forwards requests to one host for as long as they are for it: what the client has said that goes elsewhere.
pub(super) async fn forward(
    proxy: &Proxy,
    holder: &Holder,
    call: &Call<'_>,
    client: &TcpStream,
    held: Vec<u8>,
) -> Option<Vec<u8>> {
    let conversation = call.conversation(client);
    let forwarding = Forwarding { proxy, holder, conversation: &conversation };
    let relaying = conversation.relay(&forwarding, held);
    match call.hold(client, relaying, holder.expired()).await? {
        Ended::Elsewhere(rest) => Some(rest),
        Ended::Closed | Ended::Upgraded => None,
    }
}

struct Forwarding<'serving> {
    proxy: &'serving Proxy,
    holder: &'serving Holder,
    conversation: &'serving Conversation<'serving>,
}

impl Judge for Forwarding<'_> {
    fn judge(&self, request: &Head<'_>) -> Result<Passage, Refusal> {
        let authority = request.host();
        let wanted = self.conversation.wanted;
        let is_same = match (&wanted.peer, &authority.host) {
            (Peer::Name(name), Host::Name(said)) => **name == *said,
            (Peer::Address(address), Host::Address(said)) => address == said,
            (Peer::Name(_), Host::Address(_)) | (Peer::Address(_), Host::Name(_)) => false,
        };
        let is_same = is_same && wanted.port == authority.http_port() && request.form() == Form::Absolute;
        let is_his = |holder: Arc<Holder>| holder.is(self.holder);
        // Whoever cannot be admitted is told so where all are admitted.
        if is_same && self.proxy.admit(request.authorization()).is_ok_and(is_his) {
            self.conversation.judge(request)
        } else {
            Ok(Passage::Elsewhere)
        }
    }
}
