//! A client at a process: it sees what the process wrote and writes, hears of its end, types and tells.

use std::sync::Arc;

use wire::{Attach, Channel, Event, ExecEvent, ExecInput, LaneError, LaneSender, Started};

use crate::job::{Job, Progress};
use crate::stream::Follow;

/// Serves a client until it has seen all, or is gone.
pub(crate) async fn view(client: Channel, job: &Arc<Job>, from: Attach) -> Result<(), LaneError> {
    let _seat = job.seat();
    let Channel { messages, input, output, error, handle } = client;
    let follow = if from.no_follow { Follow::ToNow } else { Follow::ToTheEnd };
    let (seen, seen_error) = (job.output.view(from.output), job.error.view(from.error));
    let offsets = (seen.offset(), seen_error.offset());

    let feeding = tokio::spawn(feed(input.receiver, messages.receiver, Arc::clone(job)));
    let showing = tokio::spawn(seen.send(output.sender, follow));
    let showing_error = tokio::spawn(seen_error.send(error.sender, follow));
    let telling = async {
        let mut telling = messages.sender;
        let end = tell(&mut telling, job, offsets, follow).await?;
        // All output first.
        let _ = (showing.await, showing_error.await);
        match end {
            Progress::Exited(exited) => send(&mut telling, Event::Exited(exited)).await,
            Progress::Failed(failed) => send(&mut telling, Event::Failed(failed)).await,
            Progress::Asked | Progress::Runs(_) | Progress::Lost => Ok(()),
        }
    };
    let told = tokio::select! {
        told = telling => told,
        () = handle.closed() => Ok(()),
    };
    feeding.abort();
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
async fn feed(mut input: wire::LaneReceiver, mut tells: wire::LaneReceiver, job: Arc<Job>) {
    let typing = async {
        while let Ok(Some(bytes)) = input.next().await {
            job.write(bytes).await;
        }
        job.end_input().await;
    };
    let telling = async {
        while let Ok(Some(message)) = tells.next_message::<ExecInput>().await {
            job.tell(&message).await;
        }
    };
    tokio::join!(typing, telling);
}

pub(crate) async fn send(telling: &mut LaneSender, event: Event) -> Result<(), LaneError> {
    telling.send_message(&ExecEvent { event: Some(event) }).await
}
