//! The end of a command that worked on the owner's directory itself: its commits become a branch, and what it left that
//! runs by its name is found.

use policy::SandboxId;
use workspace::{Branched, Order, Review};

use crate::changes::{Applied, Destination};
use crate::error::EngineError;
use crate::start::Engine;

/// What was found and done at the end.
#[derive(Debug)]
pub struct Aftermath {
    /// What was changed; why that cannot be told, where it cannot.
    pub review: Result<Review, EngineError>,
    /// The branch of the commits, if there are any; why there is none, where they wait.
    pub branch: Result<Option<Branched>, EngineError>,
    /// Whether the sandbox stays, because there is something to look at or to take.
    pub stays: bool,
}

impl Engine {
    /// Looks at what a command left, and takes its commits. One that left nothing does not stay.
    pub async fn conclude(&self, id: &SandboxId) -> Result<Aftermath, EngineError> {
        let review = self.review(id, &[]);
        let (review, unfetched) = match review {
            Ok((review, unfetched)) => (Ok(review), unfetched),
            Err(error) => (Err(error), None),
        };
        let branch = match unfetched {
            Some(error) => Err(error),
            None => self.branch_of_commits(id).await,
        };
        let stays = branch.is_err() || !matches!(&review, Ok(review) if review.is_empty());
        if !stays {
            self.remove(id)?;
        }
        Ok(Aftermath { review, branch, stays })
    }

    /// Makes a branch of commits that wait, if any do.
    async fn branch_of_commits(&self, id: &SandboxId) -> Result<Option<Branched>, EngineError> {
        if !self.seems_to_wait(id) {
            return Ok(None);
        }
        let order = Order { id: id.to_string(), ..Order::default() };
        match self.apply(id, &order, &Destination::Branch(None)).await? {
            Applied::Branch(branched) => Ok(Some(branched)),
            Applied::Worktree(_) => Ok(None),
        }
    }
}
