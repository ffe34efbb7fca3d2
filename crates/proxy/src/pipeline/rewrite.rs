//! Runs the turn of a request: measure, decide, fold, splice.

use crate::host::drive::{drive, is_light};
use crate::host::fold::Folder;
use crate::host::held_turn::{HeldTurn, OpenTurn, Sent};
use crate::host::identity::Identity;
use crate::host::saved_fold::conversation_state;
use crate::host::timeline::{new_in_turn, unrecorded};
use crate::host::turn_log::model_label;
use crate::observe::window_log::log_turn;
use crate::reply::refusal::Refusal;
use bytes::Bytes;
use http::HeaderMap;
use std::borrow::Cow;
use std::sync::Arc;
use tidegate_context::{Ending, MeasureError, Outcome, Turn, TurnInput, summaries_cost};
use tidegate_engine::{Strategy, Timestamp, Tokens, Waypoint};
use tidegate_store::{Entries, Generation, Recalled, StoredFold};
use tidegate_wire::{Outline, ParsedRequest, Piece};
use tracing::warn;

/// A chat completion to rewrite.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) body: Bytes,
    pub(crate) outline: Arc<Outline>,
    pub(crate) strategy: Strategy,
    /// The deployment that the request names, which may serve any model.
    pub(crate) deployment: Option<String>,
    /// Whether the request asks for the longer window that some models have.
    pub(crate) asks_long_window: bool,
    /// The most input tokens that the upstream takes, if it has refused the request already.
    pub(crate) ceiling: Option<Tokens>,
    /// Whether the conversation is left as it is from now on, because the upstream has refused its edits.
    pub(crate) leaves_alone: bool,
    pub(crate) recalled: Recalled,
    /// The cost of the conversation so far in USD, without its summaries; `None` if the cost is not limited.
    pub(crate) spent: Option<f64>,
    /// Where the history is ours to keep.
    pub(crate) turn: Option<OpenTurn>,
}

/// A chat completion with the result of its turn.
#[derive(Debug)]
pub(crate) struct Rewritten {
    pub(crate) input: Arc<TurnInput>,
    pub(crate) outcome: Box<Outcome>,
    pub(crate) deployment: Option<String>,
    /// The name under which the model's window is learnt.
    pub(crate) served: String,
    /// What has to be stored before the answer ends. Nothing if the turn is held.
    pub(crate) entries: Entries,
    pub(crate) generation: Generation,
    /// The summary in use, if the conversation is recognised by its content: it moves on with the branch.
    pub(crate) carried: Option<StoredFold>,
    /// So does what was last decided for other models.
    pub(crate) others: Vec<Waypoint>,
    /// Where the history is ours to keep.
    pub(crate) held: Option<HeldTurn>,
    /// Whether the store could not be asked for this conversation.
    pub(crate) is_store_unavailable: bool,
}

impl Rewritten {
    /// The edited request, in pieces; `None` if it is the client's own.
    pub(crate) fn pieces(&self) -> Option<Vec<Bytes>> {
        let pieces = self.outcome.pieces.as_ref()?;
        let bytes = |piece: &Piece| match piece {
            Piece::Client(range) => self.input.body.slice(range.clone()),
            Piece::New(bytes) => bytes.clone(),
        };
        Some(pieces.iter().map(bytes).collect())
    }

    /// Why the request must not go out.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        match self.outcome.ending {
            Ending::Forward => None,
            Ending::Limit(limit) => Some(Refusal::Limit(limit)),
            Ending::OverBudget => Some(Refusal::OverBudget(Box::new(self.outcome.figures))),
        }
    }
}

/// Whether a request asks for the longer window that some of Anthropic's models have.
pub(crate) fn asks_long_window(headers: &HeaderMap) -> bool {
    let betas = headers.get_all("anthropic-beta").iter().filter_map(|value| value.to_str().ok());
    betas.flat_map(|betas| betas.split(',')).any(|beta| beta.trim().starts_with("context-1m-"))
}

/// The name under which the window is learnt that an upstream serves a model with. A model with the longer one is another.
fn served_model(name: &str, has_long_window: bool) -> Cow<'_, str> {
    if has_long_window { format!("{name}[1m]").into() } else { name.into() }
}

/// Rewrites a request. Fails if it cannot be read or edited, and is to be forwarded untouched.
pub(crate) async fn rewrite(
    folder: &Folder,
    draft: Draft,
    now: Timestamp,
) -> Result<Rewritten, MeasureError> {
    let Draft {
        body,
        outline,
        strategy,
        deployment,
        asks_long_window,
        ceiling,
        leaves_alone,
        recalled,
        spent,
        turn: open,
    } = draft;
    let (gateway, snapshot, identity) = (&folder.worker.gateway, &folder.snapshot, folder.identity.as_ref());
    let route = &snapshot.settings.routes[folder.route];
    let context = route.context.clone();
    let name = outline.model.as_deref().unwrap_or_default();
    let model = snapshot.models.lookup(name);
    let long = model.with_long_window().filter(|_| asks_long_window).map(Arc::new);
    let served = served_model(deployment.as_deref().unwrap_or(name), long.is_some()).into_owned();
    let model = long.unwrap_or(model);
    let learnt_window = gateway.windows.get(&route.upstream, &served);
    // What summaries have cost counts toward the limit under any strategy.
    let state = conversation_state(&recalled, strategy.folds() || spent.is_some());
    let reported_factor = gateway.calibrations.factor(identity, &model);
    let default = TurnInput::new(body, outline, context, model.clone());
    let input = TurnInput {
        strategy,
        learnt_window,
        at_provider: deployment.is_none() && model.is_served_by(&route.upstream.url.authority),
        ceiling,
        leaves_alone,
        factor: reported_factor.unwrap_or(default.factor),
        spent: spent.map(|spent| spent + summaries_cost(state.folds(), &snapshot.models)),
        now,
        ..default
    };
    let turn = Turn::new(input, state);
    let input = turn.input().clone();
    let mut outcome = drive(turn, folder).await?;
    if !matches!(outcome.ending, Ending::Limit(_)) {
        // Requests over budget are logged too, because their figures matter most.
        log_turn(&model_label(input.requested_model()), &input, &outcome);
    }
    let (is_store_unavailable, generation) = (recalled.is_unavailable, recalled.generation);
    if let Some((open, identity)) = open.zip(folder.identity.clone()) {
        let (waypoint, generation) = (outcome.assessment.decision.waypoint.take(), open.generation);
        let held = hold(folder, &input, &outcome.assessment.chat, identity, open, waypoint).await?;
        let entries = Entries { generation, ..Entries::default() };
        let held = Some(held);
        return Ok(Rewritten {
            input,
            outcome,
            deployment,
            served,
            entries,
            generation,
            carried: None,
            others: Vec::new(),
            held,
            is_store_unavailable,
        });
    }
    let is_branch = identity.is_some_and(|identity| identity.branch.is_some());
    let waypoint = outcome.assessment.decision.waypoint.as_ref();
    let used = waypoint.and_then(|waypoint| waypoint.fold).filter(|_| is_branch);
    let carried = used.and_then(|covers| recalled.fold(covers).cloned());
    let others =
        waypoint.filter(|_| is_branch).map(|waypoint| recalled.memory.of_other_models(waypoint.cache));
    let others = others.unwrap_or_default();
    let entries = if outcome.ending == Ending::Forward {
        let waypoint = outcome.assessment.decision.waypoint.take();
        entries(folder, &input, recalled, &outcome.assessment.chat, waypoint).await?
    } else {
        Entries::default()
    };
    Ok(Rewritten {
        input,
        outcome,
        deployment,
        served,
        entries,
        generation,
        carried,
        others,
        held: None,
        is_store_unavailable,
    })
}

/// Logs an error that is a mistake of ours. What the upstream is to judge is none.
pub(crate) fn log_mistake(error: &MeasureError) {
    if !matches!(error, MeasureError::Unreadable(_)) {
        warn!(%error, "cannot rewrite a request");
    }
}

/// Collects what the turn adds to a history that is ours to keep. It is stored when the answer is complete.
async fn hold(
    folder: &Folder,
    input: &Arc<TurnInput>,
    chat: &Arc<ParsedRequest>,
    identity: Identity,
    open: OpenTurn,
    waypoint: Option<Waypoint>,
) -> Result<HeldTurn, MeasureError> {
    let restored = open.restored;
    let (request, chat) = (input.clone(), chat.clone());
    let collect = move || new_in_turn((&request.body, &*request.outline), &chat, restored);
    let sent = if is_light(input) {
        collect()
    } else {
        folder.lane.run(input.body.len(), collect).await.map_err(|_| MeasureError::Crashed)?
    };
    let (worker, sent) = (&folder.worker, Sent { waypoint, ..sent });
    let route = &folder.snapshot.settings.routes[folder.route].name;
    Ok(HeldTurn::new(&worker.gateway, &worker.shutdown.tasks, identity, route, open, sent))
}

/// Collects what has to be stored before the answer ends: a decision is never stored without its messages.
async fn entries(
    folder: &Folder,
    input: &Arc<TurnInput>,
    recalled: Recalled,
    chat: &Arc<ParsedRequest>,
    waypoint: Option<Waypoint>,
) -> Result<Entries, MeasureError> {
    let waypoint = waypoint.filter(|waypoint| !recalled.has_waypoint(waypoint));
    let Some(identity) = folder.identity.as_ref().filter(|_| input.is_recorded()) else {
        return Ok(Entries { waypoint, generation: recalled.generation, ..Entries::default() });
    };
    let (gateway, key) = (folder.worker.gateway.clone(), identity.key);
    let (request, chat) = (input.clone(), chat.clone());
    let collect = move || {
        let request = (&request.body, &*request.outline);
        unrecorded(&gateway.conversations, key, &recalled, request, &chat)
    };
    let entries = if is_light(input) {
        collect()
    } else {
        folder.lane.run(input.body.len(), collect).await.map_err(|_| MeasureError::Crashed)?
    };
    Ok(Entries { waypoint, ..entries })
}
