use crate::{Assessment, Figures, FoldFailure, FoldRequest, LimitReached, Unedited};
use tidegate_engine::{Digest, FoldJob, Message, Tokens};
use tidegate_wire::Piece;

/// How a turn ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Forward,
    /// The request does not fit, whatever the policy allows to do to it.
    OverBudget,
    Limit(LimitReached),
}

/// The result of a turn.
#[derive(Debug)]
pub struct Outcome {
    pub ending: Ending,
    pub assessment: Assessment,
    /// The request to forward, in pieces; `None` if it is the client's own.
    pub pieces: Option<Vec<Piece>>,
    pub figures: Figures,
    /// For estimating what the request would have cost unedited.
    pub unedited: Unedited,
    /// Why a summary that the request waited for is missing.
    pub fold_failure: Option<FoldFailure>,
    /// A summary to make for the next request.
    pub deferred: Option<FoldRequest>,
    /// The first summary that was due.
    pub due: Option<DueFold>,
}

/// A summary that is due.
#[derive(Clone, Debug)]
pub struct DueFold {
    pub job: FoldJob,
    /// Tokens of the request without it.
    pub without: Tokens,
}

impl Outcome {
    /// The digest of the conversation up to the last message of the request.
    #[must_use]
    pub fn end(&self) -> Option<Digest> {
        let is_talk = |message: &&Message| !message.role.is_instruction();
        self.assessment.chat.messages.iter().rev().find(is_talk).map(|message| message.digest)
    }
}
