//! One turn of a conversation: its plan with its reasons, and what changed on the way.

use crate::branch;
use crate::page::{FoldEntry, Summary};
use crate::problem::Problem;
use crate::try_it::{Explained, Page};
use serde::Serialize;
use tidegate_config::{Settings, strategy_named};
use tidegate_engine::Cause;
use tidegate_explain::{Case, Failure, Past, Request, figures, grouped};
use tidegate_proxy::model_table;
use tidegate_store::{Recalled, Timeline, TurnRecord};
use tidegate_wire::{Dialect, Reader};

#[derive(Clone, Debug, Serialize)]
pub(crate) struct TurnDetail {
    conversation: Summary,
    /// From 1 on.
    number: usize,
    turns_total: usize,
    turn: TurnRecord,
    /// Why something new was decided, where it was.
    cause: Option<String>,
    /// The summary as it stood.
    summary: Option<FoldEntry>,
    /// Nothing where the messages are not there; `missing` says why.
    #[serde(flatten)]
    explained: Explained,
    missing: Option<String>,
}

/// Everything that a turn is told from.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) conversation: Summary,
    pub(crate) turns: Vec<TurnRecord>,
    pub(crate) recalled: Recalled,
    /// None where messages are not recorded.
    pub(crate) timeline: Option<Timeline>,
}

impl Found {
    /// Works it out. This can take a while: not for the thread that answers probes.
    pub(crate) fn detail(
        self,
        number: usize,
        page: Page,
        settings: &Settings,
        reader: &Reader,
    ) -> Result<TurnDetail, Problem> {
        let Found { conversation, turns, recalled, timeline } = self;
        let turns_total = turns.len();
        let place = number.checked_sub(1);
        let turn = place.and_then(|place| turns.into_iter().nth(place));
        let turn = turn.ok_or(Problem::NoTurn { turns: turns_total })?;
        let explained = explained(&turn, &recalled, timeline.as_ref(), page, settings, reader);
        let (explained, missing) = match explained {
            Ok(explained) => (explained, None),
            Err(missing) => (Explained::nothing(turn.messages, page), Some(missing)),
        };
        let cause = turn.trigger.as_deref().and_then(Cause::named);
        Ok(TurnDetail {
            conversation,
            number,
            turns_total,
            cause: cause.map(|cause| format!("{}: {}", cause.name(), figures::sentence(cause))),
            summary: recalled
                .folds
                .iter()
                .find(|fold| fold.covers.to_string() == turn.covers)
                .map(FoldEntry::of),
            turn,
            explained,
            missing,
        })
    }
}

/// The plan, put back together with its messages, or why it cannot be.
fn explained(
    turn: &TurnRecord,
    recalled: &Recalled,
    timeline: Option<&Timeline>,
    page: Page,
    settings: &Settings,
    reader: &Reader,
) -> Result<Explained, String> {
    let Some(timeline) = timeline else {
        return Err("`store.raw` is false: messages are not recorded".to_owned());
    };
    if turn.overflow_rejected {
        return Err("the messages of a request that is refused are not recorded".to_owned());
    }
    if turn.safe == 0 {
        return Err(
            "it was recorded by an earlier version, which did not tell which messages its plan named"
                .to_owned(),
        );
    }
    let messages = branch::of_turn(&timeline.messages, &turn.end, turn.at);
    if messages.len() > turn.messages {
        return Err(
            "its client has left out instructions since, and which ones it had is not recorded".to_owned()
        );
    }
    if messages.len() < turn.messages {
        let (there, all) = (grouped(messages.len() as u64), grouped(turn.messages as u64));
        return Err(format!(
            "{there} of its {all} messages are there: the others have expired or cannot be read"
        ));
    }
    let number = settings.routes.iter().position(|route| route.name == turn.route);
    let number = number.ok_or_else(|| format!("there is no longer a route `{}`", turn.route))?;
    // Whether it was edited at all is a matter of then, not of now.
    let then = (settings.routes[number].context.observe != turn.observed).then(|| {
        let mut then = settings.clone();
        then.routes[number].context.observe = turn.observed;
        then
    });
    let settings = then.as_ref().unwrap_or(settings);
    let route = &settings.routes[number];
    let strategy = strategy_named(&turn.strategy).unwrap_or(route.context.strategy);
    let body = branch::body(&turn.model, &messages);
    let unreadable = || "its messages cannot be read".to_owned();
    let outline = reader.outline(Dialect::Chat, &body).map_err(|_| unreadable())?;
    let model = model_table(&settings.models).lookup(&turn.model);
    let request = Request { body: &body, outline: &outline, settings, route, strategy, model: &model };
    let past = Past { turn, folds: &recalled.folds, pinned: recalled.pinned.as_deref() };
    match Case::recorded(reader, request, past) {
        Ok(case) => Ok(Explained::of(&case, page)),
        Err(Failure::Unreadable(_)) => Err(unreadable()),
        Err(Failure::Plan(_)) => Err("what was recorded of its plan does not fit its messages".to_owned()),
    }
}
