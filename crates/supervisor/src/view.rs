//! A client at a process: it sees what the process wrote and writes, hears of its end, types and tells.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::watch;
use wire::{Attach, Channel, Detach, Event, ExecEvent, ExecInput, LaneError, LaneSender, Started, Tell};

use crate::job::{Job, Progress};
use crate::stream::Follow;

/// Where a client begins to see.
pub(crate) enum Beginning {
    /// It asked for the process: at its beginning.
    Start,
    /// It comes later: with what a terminal shows, or at the offsets it has seen.
    Later(Attach),
}

/// Serves a client until it has seen all, has left, or is gone.
pub(crate) async fn view(client: Channel, job: &Arc<Job>, beginning: Beginning) -> Result<(), LaneError> {
    let _seat = job.seat();
    let Channel { messages, input, output, error, handle } = client;
    let (from, later) = match beginning {
        Beginning::Start => (Attach::default(), false),
        Beginning::Later(attach) => (attach, true),
    };
    let follow = if from.no_follow { Follow::ToNow } else { Follow::ToTheEnd };
    if let Some(size) = from.size {
        job.tell(&ExecInput { tell: Some(Tell::Resize(size)) }).await;
    }
    let shown = if later { job.output.show() } else { None };
    let (first, seen) = shown.unwrap_or_else(|| (Bytes::new(), job.output.view(from.output)));
    let seen_error = job.error.view(from.error);
    let offsets = (seen.offset(), seen_error.offset());

    let (leave, leaving) = watch::channel(false);
    let feeding = tokio::spawn(feed(input.receiver, messages.receiver, Arc::clone(job), leave));
    let showing = tokio::spawn(seen.send(first, output.sender, follow, leaving.clone()));
    let showing_error = tokio::spawn(seen_error.send(Bytes::new(), error.sender, follow, leaving.clone()));
    let telling = async {
        let mut telling = messages.sender;
        let mut left = leaving.clone();
        let end = tokio::select! {
            end = tell(&mut telling, job, offsets, follow) => Some(end?),
            Ok(_) = left.wait_for(|left| *left) => None,
        };
        // All output first.
        let _ = (showing.await, showing_error.await);
        match end {
            Some(Progress::Exited(exited)) => send(&mut telling, Event::Exited(exited)).await,
            Some(Progress::Failed(failed)) => send(&mut telling, Event::Failed(failed)).await,
            Some(Progress::Asked | Progress::Runs(_) | Progress::Lost) => Ok(()),
            None => send(&mut telling, Event::Detached(Detach {})).await,
        }
    };
    let told = tokio::select! {
        told = telling => told,
        () = handle.closed() => Ok(()),
    };
    feeding.abort();
    if !later {
        // Whoever could have typed more is gone; another who views it types on terminals only.
        job.end_input().await;
    }
    told
}

/// Tells the client when it runs; gives what has become of it in the end, or until now.
async fn tell(
    telling: &mut LaneSender,
    job: &Job,
    (output, error): (u64, u64),
    follow: Follow,
) -> Result<Progress, LaneError> {
    let mut progress = job.progress();
    let mut told = false;
    loop {
        let now = progress.borrow_and_update().clone();
        match now {
            Progress::Runs(pid) if !told => {
                told = true;
                let started = Started { pid, exec: job.number, output, error };
                send(telling, Event::Started(started)).await?;
            }
            // It was over before anybody looked.
            Progress::Exited(_) if !told => {
                told = true;
                let started = Started { pid: 0, exec: job.number, output, error };
                send(telling, Event::Started(started)).await?;
            }
            _ => {}
        }
        if now.is_over() || follow == Follow::ToNow {
            return Ok(now);
        }
        if progress.changed().await.is_err() {
            return Ok(Progress::Lost);
        }
    }
}

/// Passes on what a client types and tells.
async fn feed(
    mut input: wire::LaneReceiver,
    mut tells: wire::LaneReceiver,
    job: Arc<Job>,
    leave: watch::Sender<bool>,
) {
    let typing = async {
        while let Ok(Some(bytes)) = input.next().await {
            job.write(bytes).await;
        }
        job.end_input().await;
    };
    let telling = async {
        while let Ok(Some(message)) = tells.next_message::<ExecInput>().await {
            match message.tell {
                Some(Tell::Detach(_)) => drop(leave.send(true)),
                _ => job.tell(&message).await,
            }
        }
    };
    tokio::join!(typing, telling);
}

pub(crate) async fn send(telling: &mut LaneSender, event: Event) -> Result<(), LaneError> {
    telling.send_message(&ExecEvent { event: Some(event) }).await
}
