//! Whether init is there to answer. It stands on the hostile side: that it says something proves nothing but that its
//! kernel runs, and where it says nothing nobody may wait for it for ever.

use std::future::pending;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use wire::{Ask, Connection, Dial, Dialled, Exec, Request, VERSION};

/// How long init may take to answer, or to do what is due.
const ANSWERING: Duration = Duration::from_secs(5);

/// Whether init answers at all. It is asked to connect to no port, and whatever it says, it is there to say it.
pub(crate) async fn answers(init: &Connection) -> bool {
    let Ok(mut channel) = init.open() else { return false };
    let request = Request { version: VERSION, ask: Some(Ask::Dial(Dial { port: 0 })) };
    channel.messages.sender.send_message(&request).await.is_ok()
        && matches!(channel.messages.receiver.next_message::<Dialled>().await, Ok(Some(_)))
}

/// When the end of a process should have been heard of. Init ends it in time; one that hangs does not.
pub(crate) struct Overdue {
    /// From now; none is never.
    after: Option<Duration>,
    init: Connection,
    paused: watch::Receiver<bool>,
}

impl Overdue {
    pub(crate) fn of(exec: &Exec, init: &Connection, paused: watch::Receiver<bool>) -> Self {
        let given = Duration::from_millis(exec.timeout_ms.saturating_add(exec.grace_ms));
        let after = (exec.timeout_ms > 0).then(|| given.saturating_add(ANSWERING));
        Self { after, init: init.clone(), paused }
    }

    /// Comes back once its time is up and init does not answer. One that does may still have a slow reader of the
    /// outputs; what is paused cannot answer and is not late.
    pub(crate) async fn comes(mut self) {
        let Some(after) = self.after else { return pending().await };
        sleep(after).await;
        loop {
            let _ = self.paused.wait_for(|paused| !paused).await;
            if timeout(ANSWERING, answers(&self.init)).await != Ok(true) && !*self.paused.borrow() {
                return;
            }
            sleep(ANSWERING).await;
        }
    }
}
