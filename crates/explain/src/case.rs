use crate::fate::{self, Fate};
use crate::folding::{self, Due, Folding};
use std::sync::Arc;
use thiserror::Error;
use tidegate_config::{Route, Settings};
use tidegate_engine::{Memory, Strategy, Timestamp, Verdict};
use tidegate_proxy::{Assessment, PinnedMessage, Question, SummaryMessage};
use tidegate_tokens::Model;
use tidegate_wire::{BadEdit, Outline, Reader, Unreadable, assemble};

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
    pub due: Option<Due>,
    pub fates: Vec<Fate>,
    /// The request as it would be forwarded; none if that is what the client sent.
    pub rewritten: Option<Vec<u8>>,
    /// The messages of our own that it can have.
    pub(crate) summaries: Vec<SummaryMessage>,
    pub(crate) pinned: Option<PinnedMessage>,
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
}

impl<'a> Case<'a> {
    /// What would happen to a request of a conversation that nothing is known of, with the summary that it is due.
    pub fn unseen(reader: &Reader, request: Request<'a>) -> Result<Case<'a>, Failure> {
        let question = request.question(&[], None);
        let first = question.assess(reader, &Memory::default(), Timestamp(0))?;
        let Folding { assessment, summaries, due } = folding::fold(&question, reader, first)?;
        Case::of(request, assessment, summaries, None, due, Tense::Would)
    }

    /// Carries the plan out.
    pub(crate) fn of(
        request: Request<'a>,
        assessment: Assessment,
        summaries: Vec<SummaryMessage>,
        pinned: Option<PinnedMessage>,
        due: Option<Due>,
        tense: Tense,
    ) -> Result<Case<'a>, Failure> {
        let question = request.question(&summaries, pinned.as_ref());
        let fates = fate::fates(&question, &assessment);
        let rewritten = assessment.pieces(&question)?.map(|pieces| assemble(request.body, &pieces));
        Ok(Case { request, assessment, due, fates, rewritten, summaries, pinned, tense })
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

impl<'a> Request<'a> {
    pub(crate) fn question<'q>(
        &self,
        summaries: &'q [SummaryMessage],
        pinned: Option<&'q PinnedMessage>,
    ) -> Question<'q>
    where
        'a: 'q,
    {
        Question {
            body: self.body,
            outline: self.outline,
            context: &self.route.context,
            strategy: self.strategy,
            model: self.model,
            factor: 1.0,
            summaries,
            pinned,
        }
    }
}
