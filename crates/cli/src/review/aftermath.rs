//! What is said when a sandbox has ended that worked on a directory of the owner's itself: what runs by its name, loudly,
//! and where its commits are. Names are an enemy's.

use std::io::{self, Write as _};

use engine::{Aftermath, Engine};
use policy::SandboxId;
use workspace::Review;

use super::{pager, show};
use crate::failure::Failure;
use crate::stay::in_runtime;

/// Takes the commits of a command that has ended, and tells what it left.
pub(crate) fn conclude(engine: &Engine, id: &SandboxId) -> Result<(), Failure> {
    let Aftermath { review, branch, stays } =
        in_runtime(async { Ok::<_, Failure>(engine.conclude(id).await?) })?;
    match review {
        Ok(review) => tell(&review),
        Err(error) => warn_blind(error.into()),
    }
    match branch {
        Ok(Some(made)) => {
            let commits = if made.count == 1 { "commit" } else { "commits" };
            let (count, branch) = (made.count, made.branch);
            say(&format!(
                "{count} {commits} on the new branch {branch}: take it with `git merge {branch}`\n"
            ));
        }
        Ok(None) => {}
        Err(error) => {
            Failure::from(error).print();
            say(&format!("commits wait: `agentbox apply --branch NAME {id}` takes them\n"));
        }
    }
    if stays {
        say(&format!("`agentbox diff {id}` shows what was changed, `agentbox rm {id}` forgets it\n"));
    }
    Ok(())
}

/// Tells the same of one that was ended otherwise, unless it has been told; its commits wait.
pub(crate) fn tell_of_the_end(engine: &Engine, id: &SandboxId) {
    if !engine.is_direct(id) {
        return;
    }
    match engine.review(id, &[]) {
        Ok((review, _)) if review.was_shown => {}
        Ok((review, _)) => tell(&review),
        Err(error) => warn_blind(error.into()),
    }
    if engine.seems_to_wait(id) {
        say(&format!("commits wait: `agentbox apply {id}` takes them\n"));
    }
}

fn tell(review: &Review) {
    let changed = super::count(review.files.len());
    if !review.files.is_empty() {
        say(&format!(
            "your directory was worked on directly: {changed} changed since the start, by you or inside\n"
        ));
    }
    let colour = pager::colour_of(&io::stderr());
    let risks = show::only_risks(&review.files, colour) + &show::named(review, colour);
    if !risks.is_empty() {
        say(&risks);
        say(
            "look at these before you open, enter, build or commit anything there: they run by their names\n",
        );
    }
}

/// What cannot be looked through may hold anything.
fn warn_blind(failure: Failure) {
    failure.print();
    say("warning: what was changed in your directory is not known; look before you run anything there\n");
}

fn say(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}
