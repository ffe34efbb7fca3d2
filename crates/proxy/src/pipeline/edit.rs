//! A chat completion on a route that manages it: identify → recall → restore → rewrite.

use crate::host::drive::MAX_UNREAD;
use crate::host::fold::Folder;
use crate::host::heavy::Lane;
use crate::host::identity::Identity;
use crate::host::shared::Gateway;
use crate::host::snapshot::Snapshot;
use crate::host::summarize::CallerKey;
use crate::host::turn_log::{self, AnswerRead, COST, model_label};
use crate::host::worker::Worker;
use crate::observe::request::RequestObserver;
use crate::observe::spans;
use crate::pipeline::identify::{Access, branch_points, identify, is_known};
use crate::pipeline::put_back::{may_have_recalled, put_back};
use crate::pipeline::recall::recall;
use crate::pipeline::receive::{Received, deployment, names_deployment};
use crate::pipeline::restore::{begin_turn, restore};
use crate::pipeline::rewrite::{Draft, Rewritten, asks_long_window, log_mistake, rewrite};
use crate::pipeline::route::{limits_cost, may_match, route, strategy};
use crate::pipeline::send::in_step;
use crate::reply::refusal::Refusal;
use crate::transport::overload::Limit;
use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderMap, HeaderValue};
use http::request::Parts;
use std::sync::Arc;
use tidegate_config::{History, Limits, Route};
use tidegate_context::{Ending, MeasureError, dollars, needs_turn, promises};
use tidegate_engine::Strategy;
use tidegate_store::{Degraded, Generation, Recalled, TurnLease};
use tidegate_telemetry::SpanParent;
use tidegate_telemetry::names::span;
use tidegate_wire::{Dialect, Outline};

/// A chat completion on a route that manages it.
pub(crate) struct Managed<'a> {
    worker: &'a Arc<Worker>,
    snapshot: &'a Arc<Snapshot>,
    index: usize,
    pub(crate) route: &'a Route,
    pub(crate) strategy: Strategy,
}

/// A request that is ready to be forwarded.
pub(crate) struct Edited {
    pub(crate) head: Parts,
    /// The body to forward if nothing was rewritten.
    pub(crate) sent: Bytes,
    pub(crate) folder: Folder,
    pub(crate) rewritten: Option<Rewritten>,
}

impl<'a> Managed<'a> {
    /// Finds the route; `None` if no route matches.
    pub(crate) fn new(
        worker: &'a Arc<Worker>,
        snapshot: &'a Arc<Snapshot>,
        received: &Received,
        path: &str,
        observer: &mut RequestObserver,
    ) -> Result<Option<Managed<'a>>, Refusal> {
        let _step = observer.span.step(span::ROUTE);
        let (routes, headers) = (&snapshot.settings.routes, &received.head.headers);
        let model = received.chat.as_ref().and_then(|(_, outline)| outline.model.as_deref());
        if received.chat.is_none()
            && routes.iter().any(|route| promises(&route.context) && may_match(route, path))
        {
            return Err(Refusal::Unreadable);
        }
        let Some(index) = route(routes, path, headers, model) else { return Ok(None) };
        let route = &routes[index];
        observer.routed(&route.name);
        let strategy = strategy(&route.context, headers)?;
        let label = model_label(received.model());
        if strategy == Strategy::Passthrough {
            observer.asks_for(&label);
        }
        // What cannot be read says nothing of its dialect but by its path.
        let dialect = received.chat.as_ref().map(|(_, outline)| outline.dialect);
        let dialect = dialect.or_else(|| Dialect::of_path(path)).unwrap_or(Dialect::Chat);
        observer.count_under(worker.gateway.labels(snapshot, route, &label, dialect));
        spans::routed(&observer.span, &route.name, strategy);
        Ok(Some(Managed { worker, snapshot, index, route, strategy }))
    }

    pub(crate) async fn edit(
        &self,
        mut received: Received,
        lane: Lane,
        observer: &mut RequestObserver,
    ) -> Result<Edited, Refusal> {
        let Managed { worker, route, strategy, .. } = *self;
        let is_edited =
            received.chat.as_ref().is_some_and(|(body, _)| needs_turn(&route.context, strategy, body));
        if is_edited {
            received.chat = fingerprint(&worker.gateway, received.chat, &lane).await;
            if received.chat.is_none() && promises(&route.context) {
                return Err(Refusal::Internal);
            }
        }
        let spans = observer.span.clone();
        let mut folder =
            in_step(&spans, span::IDENTIFY, self.identify(&received, is_edited, lane, spans.parent()))
                .await?;
        if let Some(identity) = &folder.identity {
            observer.belongs_to(&identity.name);
        }
        let Received { mut head, mut sent, chat } = received;
        let Some((mut body, mut outline)) = chat.filter(|_| is_edited) else {
            return Ok(Edited { head, sent, folder, rewritten: None });
        };
        // First: the turn before decides what there is to recall, and what it has cost.
        let lease = match self.holds_history() {
            true => Some(in_step(&spans, span::RESTORE, self.begin_turn(&folder, &outline)).await?),
            false => None,
        };
        let (mut recalled, mut spent) =
            in_step(&spans, span::RECALL, self.recall(&mut folder, &outline)).await?;
        self.admit(&mut folder, &recalled, &outline)?;
        let mut turn = None;
        if let Some((lease, identity)) = lease.zip(folder.identity.clone()) {
            let (gateway, lane) = (&worker.gateway, folder.lane.clone());
            let restoring = restore(gateway, &identity, &head.headers, (body, outline), lease, &lane);
            let restored = in_step(&spans, span::RESTORE, restoring).await?;
            (body, outline) = (restored.body, restored.outline);
            (head, sent) = (with_readable_answer(uncompressed(head)), body.clone());
            let generation = restored.turn.generation;
            if recalled.generation != generation {
                // The conversation was deleted in between: nothing of it may come back.
                (recalled, spent) = self.recall(&mut folder, &outline).await?;
                recalled = recalled.in_generation(generation);
                folder.generation = generation;
            }
            turn = Some(restored.turn);
        }
        if !self.holds_history()
            && may_have_recalled(&self.route.context, &outline)
            && let Some(identity) = &folder.identity
            && let Some(whole) = put_back(&worker.gateway, identity, (&body, &outline), &folder.lane).await
        {
            observer.charge.grow_regardless(whole.0.len() as u64);
            (body, outline) = whole;
            (head, sent) = (uncompressed(head), body.clone());
        }
        observer.degrade(recalled.degraded.map(Degraded::reason));
        let path = head.uri.path();
        let named = || outline.model.clone().filter(|_| names_deployment(path));
        let deployment = deployment(path).map(str::to_owned).or_else(named);
        let outline = Arc::new(outline);
        let asks_long_window = asks_long_window(&head.headers);
        let draft = Draft {
            body,
            outline,
            strategy,
            deployment,
            asks_long_window,
            ceiling: None,
            leaves_alone: false,
            recalled,
            spent,
            turn,
        };
        let rewritten = in_step(&spans, span::REWRITE, rewrite(&folder, draft, Gateway::now())).await;
        let rewritten = match rewritten.inspect_err(log_mistake) {
            Ok(rewritten) => rewritten,
            Err(_) if !promises(&route.context) => return Ok(Edited { head, sent, folder, rewritten: None }),
            Err(MeasureError::Unreadable(_)) => return Err(Refusal::Unreadable),
            Err(_) => return Err(Refusal::Internal),
        };
        // What an unreadable request calls its model may be anything, so only this one's is logged.
        observer.asks_for(&model_label(rewritten.input.requested_model()));
        if rewritten.outcome.assessment.offers_recall(&rewritten.input) {
            head = with_readable_answer(head);
        }
        if let Some(refusal) = rewritten.refusal() {
            self.audit(&folder, &rewritten, &refusal, observer);
            return Err(refusal);
        }
        Ok(Edited { head, sent, folder, rewritten: Some(rewritten) })
    }

    /// Waits until no other turn runs of a conversation whose history is ours to keep.
    async fn begin_turn(&self, folder: &Folder, outline: &Outline) -> Result<TurnLease, Refusal> {
        if outline.is_elsewhere() {
            return Err(Refusal::TwoHistories);
        }
        let settings = &self.snapshot.settings.conversation;
        let Some(identity) = &folder.identity else {
            return Err(Refusal::NoConversation { header: settings.header.clone() });
        };
        begin_turn(&self.worker.gateway, identity, settings.turn_timeout).await
    }

    /// What is left of the process's limits is kept for conversations that are under way.
    fn admit(&self, folder: &mut Folder, recalled: &Recalled, outline: &Outline) -> Result<(), Refusal> {
        let is_under_way = recalled.is_under_way();
        folder.lane = folder.lane.with_progress(is_under_way);
        let gateway = &self.worker.gateway;
        // A small request of a new conversation has its reserve of memory, but no place of its own.
        let overload = &gateway.overload;
        let is_crowded = overload.is_crowded() || (overload.memory.is_crowded() && folder.lane.is_large());
        if is_crowded && !is_under_way && !recalled.is_unavailable {
            return Err(Refusal::Overloaded(Limit::NewConversations));
        }
        let needs_work = || gateway.reader.unread_bytes(outline) > MAX_UNREAD;
        let full = gateway.heavy.admit(self.snapshot.settings.server.max_queued_work, is_under_way);
        full.or_else(|limit| if needs_work() { Err(Refusal::Overloaded(limit)) } else { Ok(()) })
    }

    fn holds_history(&self) -> bool {
        self.route.context.history == History::Proxy
    }

    /// Finds out which conversation the request belongs to.
    async fn identify(
        &self,
        received: &Received,
        is_edited: bool,
        lane: Lane,
        parent_span: SpanParent,
    ) -> Result<Folder, Refusal> {
        let Managed { worker, snapshot, index, route, .. } = *self;
        let Received { head, chat, .. } = received;
        let access = Access::of(worker);
        let identity = self.identity(&head.headers, chat.as_ref(), is_edited, access, &lane).await?;
        if chat.is_none() && promises(&route.context) {
            return Err(Refusal::Unreadable);
        }
        // Nor could the cost of a conversation be limited if nobody knows whose it is.
        let needs_owner = self.holds_history() || limits_cost(route);
        if needs_owner && !is_known(&head.headers, &snapshot.settings.conversation, access) {
            return Err(Refusal::NoCredentials);
        }
        Ok(Folder {
            worker: worker.clone(),
            snapshot: snapshot.clone(),
            route: index,
            identity,
            generation: Generation::default(),
            caller: CallerKey::of(&head.headers, &route.upstream),
            parent_span,
            lane,
        })
    }

    async fn identity(
        &self,
        headers: &HeaderMap,
        chat: Option<&(Bytes, Outline)>,
        is_edited: bool,
        access: Access,
        lane: &Lane,
    ) -> Result<Option<Identity>, Refusal> {
        let (gateway, settings) = (&self.worker.gateway, &self.snapshot.settings.conversation);
        // Where the history is ours, the request names its conversation: its content does not, and what its body notes may
        // stand for many.
        let Some((body, outline)) = chat.filter(|_| !self.holds_history()) else {
            return identify(headers, settings, &gateway.secret, access, &[], None);
        };
        let named = identify(headers, settings, &gateway.secret, access, &outline.sessions, None)?;
        // What is forwarded as it came has no state that would have to be found by its content.
        if named.is_some() || !is_edited {
            return Ok(named);
        }
        let most_queued = self.snapshot.settings.server.max_queued_work;
        let points = branch_points(gateway, body, outline, lane, most_queued).await?;
        identify(headers, settings, &gateway.secret, access, &outline.sessions, points.as_ref())
    }

    /// Brings what earlier requests have decided, and what the conversation has cost.
    async fn recall(
        &self,
        folder: &mut Folder,
        outline: &Outline,
    ) -> Result<(Recalled, Option<f64>), Refusal> {
        let (gateway, settings) = (&self.worker.gateway, &self.snapshot.settings);
        let limits = &self.route.context.limits;
        let named = folder.identity.clone().filter(|identity| identity.branch.is_none());
        let model = self.snapshot.models.lookup(outline.model.as_deref().unwrap_or_default());
        let is_certain = model.window_at(&self.route.upstream.url.authority).certain().is_some();
        let tenant = folder.identity.as_ref().map(|identity| identity.tenant.clone());
        let (recalled, spent, (), ()) = tokio::join!(
            recall(gateway, folder.identity.as_mut(), settings.store.on_failure),
            spent(gateway, named.as_ref(), limits),
            gateway.windows.refresh(&gateway.conversations, is_certain),
            gateway.calibrations.refresh(&gateway.conversations, tenant.as_deref(), model.fit),
        );
        let recalled = recalled?;
        folder.generation = recalled.generation;
        // What a branch has cost rides on its state.
        let branch = folder.identity.as_ref().and_then(|identity| identity.branch.as_ref());
        let branch = branch.filter(|_| limits.max_cost_usd.is_some());
        let spent = branch.map(|branch| dollars(branch.note.spent)).or(spent);
        Ok((recalled, spent))
    }

    /// Records a request that is refused for its length or at a limit, and describes the plan of the former in its span.
    fn audit(&self, folder: &Folder, rewritten: &Rewritten, refusal: &Refusal, observer: &RequestObserver) {
        let Rewritten { input, outcome, .. } = rewritten;
        if outcome.ending == Ending::OverBudget {
            spans::planned(&observer.span, outcome);
        }
        let Some(identity) = folder.identity.clone() else { return };
        let facts = observer.facts().with(refusal);
        if let Some(log) =
            turn_log::refused((identity, rewritten.generation), &self.route.name, input, outcome, facts)
        {
            let gateway = self.worker.gateway.clone();
            let write = async move { log.write(&gateway, AnswerRead::Nothing, true).await };
            drop(self.worker.shutdown.tasks.spawn(write));
        }
    }
}

/// Adds the fingerprints that were left out when the body was read to be forwarded.
async fn fingerprint(
    gateway: &Arc<Gateway>,
    chat: Option<(Bytes, Outline)>,
    lane: &Lane,
) -> Option<(Bytes, Outline)> {
    let (body, mut outline) = chat?;
    if outline.fingerprints.len() == outline.messages.len() {
        return Some((body, outline));
    }
    let (gateway, bytes) = (gateway.clone(), body.len());
    let work = move || {
        gateway.reader.fingerprint(&body, &mut outline);
        (body, outline)
    };
    lane.scan(bytes, work).await.ok()
}

/// Returns the cost of a conversation so far. `None` if it is not limited or unknown: a limit that cannot be checked is not
/// enforced.
async fn spent(gateway: &Gateway, identity: Option<&Identity>, limits: &Limits) -> Option<f64> {
    let identity = identity.filter(|_| limits.max_cost_usd.is_some())?;
    let head = gateway.conversations.counted(identity.key).await.ok().flatten()?;
    Some(dollars(head.counts.get(COST).copied().unwrap_or(0)))
}

/// Asks for an uncompressed answer, because we have to read it.
fn with_readable_answer(mut head: Parts) -> Parts {
    head.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    head
}

/// An edited body goes out uncompressed, whatever the client's was.
pub(crate) fn uncompressed(mut head: Parts) -> Parts {
    head.headers.remove(CONTENT_ENCODING);
    head
}
