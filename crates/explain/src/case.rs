use crate::fate::{self, Fate};
use bytes::Bytes;
use std::sync::Arc;
use thiserror::Error;
use tidegate_config::{Limits, Route, Settings};
use tidegate_context::{
    Assessment, ConversationState, DueFold, FoldWait, MeasureError, Turn, TurnInput, drive_offline,
};
use tidegate_engine::{Strategy, Verdict};
use tidegate_tokens::Model;
use tidegate_wire::{BadEdit, Outline, Piece, Reader, Unreadable, assemble};

/// A request and the policy that it is under.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub body: &'a [u8],
    pub outline: &'a Outline,
    pub settings: &'a Settings,
    pub route: &'a Route,
    pub strategy: Strategy,
    pub model: &'a Arc<Model>,
}

/// One request, and everything that was found out about it.
#[derive(Debug)]
pub struct Case<'a> {
    pub request: Request<'a>,
    /// As it would be with the summary that is due.
    pub assessment: Assessment,
    pub due: Option<DueFold>,
    pub fates: Vec<Fate>,
    /// The request as it would be forwarded; none if that is what the client sent.
    pub rewritten: Option<Vec<u8>>,
    /// The summaries and notes that it can have.
    pub(crate) state: Arc<ConversationState>,
    pub(crate) tense: Tense,
}

/// Whether it is known what came before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tense {
    /// It would happen, if nothing had.
    Would,
    /// It has happened.
    Has,
}

/// How a request ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    AsSent,
    Edited,
    Refused,
}

/// Why there is nothing to say about a request.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Failure {
    #[error("{0}")]
    Unreadable(#[from] Unreadable),
    #[error("the plan does not fit the request: {0}")]
    Plan(#[from] BadEdit),
    /// Always a mistake of ours.
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
    /// What would happen to a request of a conversation that nothing is known of, with the summary that is due.
    pub fn unseen(reader: &Reader, request: Request<'a>) -> Result<Case<'a>, Failure> {
        let turn = Turn::new(request.input(), ConversationState::default());
        let mut turn = turn.waiting_for(FoldWait::Always);
        let outcome = drive_offline(&mut turn, reader)?;
        let state = turn.state().clone();
        Ok(Case::new(request, outcome.assessment, state, outcome.due, outcome.pieces, Tense::Would))
    }

    pub(crate) fn new(
        request: Request<'a>,
        assessment: Assessment,
        state: Arc<ConversationState>,
        due: Option<DueFold>,
        pieces: Option<Vec<Piece>>,
        tense: Tense,
    ) -> Case<'a> {
        let fates = fate::fates(&request, &assessment);
        let rewritten = pieces.map(|pieces| assemble(request.body, &pieces));
        Case { request, assessment, due, fates, rewritten, state, tense }
    }

    #[must_use]
    pub fn ending(&self) -> Ending {
        let plan = &self.assessment.decision.plan;
        match plan.verdict {
            Verdict::OverBudget if !self.request.route.context.observe => Ending::Refused,
            Verdict::OverBudget | Verdict::Fits if self.rewritten.is_some() => Ending::Edited,
            Verdict::OverBudget | Verdict::Fits => Ending::AsSent,
        }
    }

    /// A setting of the route's context, as it is written.
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
            // A saved request says nothing about how often or at what cost its conversation was continued.
            limits: Limits::default(),
            ..TurnInput::new(body, self.outline.clone(), context, self.model.clone())
        }
    }
}
