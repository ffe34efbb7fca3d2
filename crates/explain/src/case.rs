use crate::fate::{self, Fate};
use bytes::Bytes;
use std::sync::Arc;
use thiserror::Error;
use tidegate_config::{Limits, Route, Settings};
use tidegate_context::{
    Assessment, ConversationState, DueFold, FoldWait, MeasureError, OwnKind, Place, Turn, TurnInput,
    drive_offline,
};
use tidegate_engine::{Strategy, Verdict};
use tidegate_tokens::Model;
use tidegate_wire::{BadEdit, Outline, Piece, Reader, Unreadable, assemble};

/// A request and its policy.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub body: &'a [u8],
    pub outline: &'a Outline,
    pub settings: &'a Settings,
    pub route: &'a Route,
    pub strategy: Strategy,
    pub model: &'a Arc<Model>,
}

/// One request with its assessment and the actions on its messages.
#[derive(Debug)]
pub struct Case<'a> {
    pub request: Request<'a>,
    /// The assessment with the summary that is due, if any.
    pub assessment: Assessment,
    pub due: Option<DueFold>,
    /// The action on each message, in order.
    pub fates: Vec<Fate>,
    /// The request to forward, or `None` if it is unchanged.
    pub rewritten: Option<Vec<u8>>,
    /// The summaries and pinned notes of the conversation.
    pub(crate) state: Arc<ConversationState>,
    /// Where the texts stand that are added.
    pub(crate) places: Vec<(OwnKind, Place)>,
    pub(crate) kind: CaseKind,
}

/// Whether a case is a preview or a past turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CaseKind {
    /// A request that was not sent, with no earlier turns known.
    Preview,
    /// A turn that was carried out.
    Recorded,
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    AsSent,
    Edited,
    Refused,
}

/// Why a request cannot be explained.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Failure {
    #[error("{0}")]
    Unreadable(#[from] Unreadable),
    #[error("the plan does not fit the request: {0}")]
    Plan(#[from] BadEdit),
    /// A bug in Tidegate.
    #[error("internal error")]
    Internal,
}

impl From<MeasureError> for Failure {
    fn from(error: MeasureError) -> Failure {
        match error {
            MeasureError::Unreadable(error) => Failure::Unreadable(error),
            MeasureError::Plan(error) => Failure::Plan(error),
            MeasureError::Crashed | MeasureError::UnexpectedEvent => Failure::Internal,
        }
    }
}

impl<'a> Case<'a> {
    /// Explains a request without an earlier conversation. A summary that is due is made first.
    pub fn unseen(reader: &Reader, request: Request<'a>) -> Result<Case<'a>, Failure> {
        let turn = Turn::new(request.input(), ConversationState::default());
        let mut turn = turn.waiting_for(FoldWait::Always);
        let outcome = drive_offline(&mut turn, reader)?;
        let state = turn.state().clone();
        let due = outcome.due;
        let case = Case::new(request, outcome.assessment, turn.input(), state, outcome.pieces);
        Ok(Case { due, ..case })
    }

    pub(crate) fn new(
        request: Request<'a>,
        assessment: Assessment,
        input: &TurnInput,
        state: Arc<ConversationState>,
        pieces: Option<Vec<Piece>>,
    ) -> Case<'a> {
        let fates = fate::fates(&request, &assessment);
        let rewritten = pieces.map(|pieces| assemble(request.body, &pieces));
        let places = assessment.places(input, &state);
        Case { request, assessment, due: None, fates, rewritten, state, places, kind: CaseKind::Preview }
    }

    #[must_use]
    pub fn ending(&self) -> Ending {
        let plan = &self.assessment.decision.plan;
        match plan.verdict {
            Verdict::Refused if !self.request.route.context.observe => Ending::Refused,
            _ if self.rewritten.is_some() => Ending::Edited,
            _ => Ending::AsSent,
        }
    }

    /// Whether messages that have left the request are brought back.
    #[must_use]
    pub fn recalls(&self) -> bool {
        self.request.route.context.recall.auto
            && (self.request.strategy.folds() || self.request.strategy == Strategy::Window)
    }

    /// Returns the resolved value of a setting of the route's context, as TOML.
    #[must_use]
    pub fn setting(&self, key: &str) -> &str {
        let Request { settings, route, .. } = self.request;
        let number = settings.routes.iter().position(|one| one.name == route.name);
        let path = format!("routes[{}].context.{key}", number.unwrap_or_default());
        let found = settings.resolved.iter().find(|value| value.path == path);
        found.map_or("", |value| &value.value)
    }
}

impl Request<'_> {
    pub(crate) fn input(&self) -> TurnInput {
        let body = Bytes::copy_from_slice(self.body);
        let context = self.route.context.clone();
        TurnInput {
            strategy: self.strategy,
            // The number of turns and the cost of the conversation are unknown here, so limits are not checked.
            limits: Limits::default(),
            at_provider: self.model.is_served_by(&self.route.upstream.url.authority),
            ..TurnInput::new(body, self.outline.clone(), context, self.model.clone())
        }
    }
}
