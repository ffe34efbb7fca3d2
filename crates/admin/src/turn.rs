//! Explains one recorded turn: its plan, the reasons, and what changed in each message.

use crate::branch;
use crate::error::ApiError;
use crate::explain::{ExplanationPage, PageParams};
use crate::page::{ConversationSummary, FoldEntry};
use serde::Serialize;
use std::sync::Arc;
use tidegate_config::{Settings, strategy_from_name};
use tidegate_context::{ConversationState, FoldState, SavedFold, TurnRecord, model_table};
use tidegate_engine::{Cause, Memory};
use tidegate_explain::{Case, Failure, Past, Request, figures, grouped};
use tidegate_store::{Recalled, StoredFold, Timeline};
use tidegate_wire::{Dialect, Reader};

#[derive(Clone, Debug, Serialize)]
pub(crate) struct TurnDetail {
    conversation: ConversationSummary,
    /// Counted from 1.
    number: usize,
    turns_total: usize,
    turn: TurnRecord,
    /// Why this turn made a new decision, if it did.
    cause: Option<String>,
    /// The summary that this turn used.
    summary: Option<FoldEntry>,
    /// Empty if the messages are not available; `missing` says why.
    #[serde(flatten)]
    explanation: ExplanationPage,
    missing: Option<String>,
}

/// Everything needed to explain a turn.
#[derive(Debug)]
pub(crate) struct TurnInputs {
    pub(crate) conversation: ConversationSummary,
    pub(crate) turns: Vec<TurnRecord>,
    pub(crate) recalled: Recalled,
    /// `None` if messages are not recorded.
    pub(crate) timeline: Option<Timeline>,
}

impl TurnInputs {
    /// Explains turn `number`. CPU-bound: must not run on the admin thread.
    pub(crate) fn explain(
        self,
        number: usize,
        page: PageParams,
        settings: &Settings,
        reader: &Reader,
    ) -> Result<TurnDetail, ApiError> {
        let TurnInputs { conversation, turns, recalled, timeline } = self;
        let turns_total = turns.len();
        let index = number.checked_sub(1);
        let turn = index.and_then(|index| turns.into_iter().nth(index));
        let turn = turn.ok_or(ApiError::TurnNotFound { turns: turns_total })?;
        let explained = explain_recorded(&turn, &recalled, timeline.as_ref(), page, settings, reader);
        let (explanation, missing) = match explained {
            Ok(explanation) => (explanation, None),
            Err(missing) => (ExplanationPage::empty(turn.messages, page), Some(missing)),
        };
        let cause = turn.trigger.as_deref().and_then(Cause::from_name);
        Ok(TurnDetail {
            conversation,
            number,
            turns_total,
            cause: cause.map(|cause| format!("{}: {}", cause.name(), figures::sentence(cause))),
            summary: recalled
                .folds
                .iter()
                .find(|fold| fold.covers.to_string() == turn.covers)
                .map(FoldEntry::new),
            turn,
            explanation,
            missing,
        })
    }
}

/// Reunites the recorded plan with its messages, or says why that is not possible.
fn explain_recorded(
    turn: &TurnRecord,
    recalled: &Recalled,
    timeline: Option<&Timeline>,
    page: PageParams,
    settings: &Settings,
    reader: &Reader,
) -> Result<ExplanationPage, String> {
    let Some(timeline) = timeline else {
        return Err("`store.raw` is false: messages are not recorded".to_owned());
    };
    if turn.overflow_rejected {
        return Err("the messages of a refused request are not recorded".to_owned());
    }
    if turn.safe == 0 {
        return Err("an earlier version recorded this turn without the messages of its plan".to_owned());
    }
    let messages = branch::turn_messages(&timeline.messages, &turn.end, turn.at);
    if messages.len() > turn.messages {
        return Err(
            "the client has changed its instructions since, and the ones of this turn are not recorded"
                .to_owned(),
        );
    }
    if messages.len() < turn.messages {
        let (available, all) = (grouped(messages.len() as u64), grouped(turn.messages as u64));
        return Err(format!(
            "only {available} of its {all} messages are available; the others have expired or cannot be read"
        ));
    }
    let number = settings.routes.iter().position(|route| route.name == turn.route);
    let number = number.ok_or_else(|| format!("the route `{}` no longer exists", turn.route))?;
    // Whether the turn was only observed follows from its record, not from today's configuration.
    let at_the_time = (settings.routes[number].context.observe != turn.observed).then(|| {
        let mut settings = settings.clone();
        Arc::make_mut(&mut settings.routes[number].context).observe = turn.observed;
        settings
    });
    let settings = at_the_time.as_ref().unwrap_or(settings);
    let route = &settings.routes[number];
    let strategy = strategy_from_name(&turn.strategy).unwrap_or(route.context.strategy);
    let dialect = Dialect::from_name(&turn.dialect).unwrap_or(Dialect::Chat);
    let body = branch::request_body(dialect, &turn.model, &messages);
    let unreadable = || "its messages cannot be read".to_owned();
    let outline = reader.outline(dialect, &body).map_err(|_| unreadable())?;
    let model = model_table(&settings.models).lookup(&turn.model);
    let request = Request { body: &body, outline: &outline, settings, route, strategy, model: &model };
    let folds = recalled.folds.iter().filter_map(decoded).collect();
    let state = ConversationState::new(Memory::default(), folds, recalled.pinned.clone());
    let past = Past { turn, state };
    match Case::recorded(reader, request, past) {
        Ok(case) => Ok(ExplanationPage::new(&case, page)),
        Err(Failure::Unreadable(_)) => Err(unreadable()),
        Err(Failure::Plan(_) | Failure::Internal) => {
            Err("its recorded plan does not match its messages".to_owned())
        }
    }
}

/// A stored summary, unless it cannot be read.
fn decoded(stored: &StoredFold) -> Option<SavedFold> {
    Some(SavedFold {
        covers: stored.covers,
        covered: usize::try_from(stored.covered).unwrap_or(usize::MAX),
        state: FoldState::from_bytes(&stored.state)?,
    })
}
