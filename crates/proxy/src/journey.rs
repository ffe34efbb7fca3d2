//! The whole way of a request: receive → route → identify → recall → rewrite → forward → relay → remember.

use crate::body::{ReplyBody, SendBody, Upload};
use crate::draft::{Draft, LONGEST_MODEL};
use crate::entry::Entry;
use crate::forward::forward;
use crate::framing::{REFUSED_METHOD, Verdict};
use crate::gate::{Gate, Snapshot};
use crate::identify::{Identity, identify};
use crate::limit;
use crate::path::canonical;
use crate::recall::recall;
use crate::receive::{Received, is_chat_completion, receive};
use crate::relay::relay;
use crate::remember::Keepsake;
use crate::reply::{Refusal, refuse};
use crate::report;
use crate::request_id::RequestId;
use crate::restore::restore;
use crate::rewrite::{Rewritten, rewrite};
use crate::route::{route, strategy};
use crate::server::Worker;
use crate::state::{is_state, state};
use crate::summarize::CallerKey;
use crate::trace;
use crate::turn::remember_refusal;
use crate::upstream::{AnswerBody, Prepared};
use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderMap, HeaderValue};
use http::request::Parts;
use http::{Method, Request, Response};
use hyper::body::Incoming;
use std::sync::Arc;
use tidegate_config::{History, Limits, Route, Upstream};
use tidegate_engine::Strategy;
use tidegate_store::Degraded;
use tidegate_telemetry::names::{self, span};
use tidegate_telemetry::{Labels, OTHER_MODEL, provider};
use tidegate_wire::Outline;
use tokio::time::Instant;

/// Answers one request, whatever it is. It cannot fail: what goes wrong becomes an answer.
pub(crate) async fn travel(
    worker: &Arc<Worker>,
    verdict: &Verdict,
    request: Request<Incoming>,
) -> Response<ReplyBody> {
    let snapshot = worker.gate.snapshot();
    let id = RequestId::of(request.headers());
    let enabled = snapshot.settings.log.access;
    let mut entry = Entry::begin(&worker.gate, enabled, id, &request);
    match attempt(worker, &snapshot, verdict, request, &mut entry).await {
        Ok(Ending::Upstream(Answer { response, own, upstream, keepsake })) => {
            relay(response, own, &upstream, &worker.cut, keepsake, entry)
        }
        Ok(Ending::Own(mut response)) => {
            if let Some(id) = entry.request_id.to_header() {
                response.headers_mut().insert(names::header::REQUEST_ID, id);
            }
            entry.answering(response.status());
            entry.answered();
            response
        }
        Err(refusal) => {
            let mut response = refuse(&refusal);
            if let Some(id) = entry.request_id.to_header() {
                response.headers_mut().insert(names::header::REQUEST_ID, id);
            }
            if let Some(route) = &entry.route {
                report::put(response.headers_mut(), names::header::ROUTE, route);
            }
            entry.refused(&refusal, response.status());
            response
        }
    }
}

/// How a journey ends that nothing stopped.
#[allow(clippy::large_enum_variant, reason = "it is made and taken apart at once, and never kept")]
enum Ending {
    Upstream(Answer),
    /// What we know ourselves, without asking anybody.
    Own(Response<ReplyBody>),
}

/// An upstream's answer, the headers that we put beside its own, and what to remember when it has come.
struct Answer {
    response: Response<AnswerBody>,
    own: HeaderMap,
    upstream: Arc<Upstream>,
    keepsake: Option<Keepsake>,
}

async fn attempt(
    worker: &Arc<Worker>,
    snapshot: &Arc<Snapshot>,
    verdict: &Verdict,
    request: Request<Incoming>,
    entry: &mut Entry,
) -> Result<Ending, Refusal> {
    if let Some(violation) = verdict.get().filter(|_| request.method() == REFUSED_METHOD) {
        return Err(Refusal::Framing(*violation));
    }
    if request.method() == Method::CONNECT {
        return Err(Refusal::Tunnel);
    }
    let path = request.uri().path().to_owned();
    let path = canonical(&path).map_err(Refusal::Path)?;
    if is_state(request.method(), &path) {
        return state(&worker.gate, &snapshot.settings, request.headers()).await.map(Ending::Own);
    }
    let answer = if is_chat_completion(request.method(), &path) {
        complete_chat(worker, snapshot, request, &path, entry).await
    } else {
        pass_through(worker, snapshot, request, &path, entry).await
    };
    answer.map(Ending::Upstream)
}

/// A chat completion: read whole, so that its messages can be edited.
async fn complete_chat(
    worker: &Arc<Worker>,
    snapshot: &Arc<Snapshot>,
    request: Request<Incoming>,
    path: &str,
    entry: &mut Entry,
) -> Result<Answer, Refusal> {
    let settings = &snapshot.settings;
    let step = entry.journey.step(span::RECEIVE);
    let received = receive(request, &settings.server, &worker.gate.reader, &entry.received).await?;
    drop(step);
    let arrived = Instant::now();
    let Received { head, sent, chat } = received;
    let step = entry.journey.step(span::ROUTE);
    let model = chat.as_ref().and_then(|(_, outline)| outline.model.as_deref());
    let Some(index) = route(&settings.routes, path, &head.headers, model) else {
        drop(step);
        let upstream = snapshot.default_upstream();
        return send(worker, upstream, head, SendBody::pieces([sent]), entry, HeaderMap::new(), None).await;
    };
    let route = &settings.routes[index];
    entry.route = Some(route.name.clone());
    let upstream = snapshot.prepared(&route.upstream);
    let strategy = strategy(&route.context, &head.headers)?;
    drop(step);
    let asked: String = model.unwrap_or_default().chars().take(LONGEST_MODEL).collect();
    let is_streamed = chat.as_ref().is_some_and(|(_, outline)| outline.stream);
    entry.labels = Some(labels(&worker.gate, snapshot, route, &asked));
    let leg = Leg { worker, snapshot, index, route, strategy };
    let Edited { head, sent, identity, rewritten } = leg.edit(Received { head, sent, chat }, entry).await?;
    match &rewritten {
        Some(rewritten) => entry.degraded = rewritten.trouble.or(entry.degraded),
        None if strategy == Strategy::Passthrough => {}
        None => entry.degraded = Some(report::UNREADABLE),
    }
    let mut own =
        report::headers(&route.name, strategy, identity.as_ref(), rewritten.as_ref(), entry.degraded);
    let overhead = arrived.elapsed();
    entry.overhead_us = u64::try_from(overhead.as_micros()).unwrap_or(u64::MAX);
    if let Some(labels) = &entry.labels {
        worker.gate.metrics.overhead(labels, overhead);
    }
    report::put(&mut own, names::header::OVERHEAD, &entry.overhead_us.to_string());
    if let Some(rewritten) = &rewritten {
        entry.note_plan(&rewritten.plan, rewritten.stop_hint);
    }
    let pieces = rewritten.as_ref().and_then(|rewritten| rewritten.pieces.clone());
    trace::planned(&entry.journey, route, strategy, rewritten.as_ref(), entry.overhead_us);
    let conversation = identity.as_ref().map(|identity| identity.name.clone());
    let keepsake =
        rewritten.map(|rewritten| Keepsake::begin(worker, identity, rewritten, route, strategy, entry));
    let (head, body) = match pieces {
        None => (head, SendBody::pieces([sent])),
        Some(pieces) => (decoded(head), SendBody::pieces(pieces)),
    };
    entry.call =
        Some(entry.journey.call(head.method.as_str(), Some(&asked), &upstream.settings.url.authority));
    if let Some(call) = entry.call.as_ref().filter(|call| call.is_on()) {
        trace::asked(call, conversation, is_streamed, settings.telemetry.content.then_some(&body));
    }
    send(worker, upstream, head, body, entry, own, keepsake).await
}

/// What a chat completion is counted under.
pub(crate) fn labels(gate: &Gate, snapshot: &Snapshot, route: &Route, asked: &str) -> Labels {
    let model = snapshot.models.lookup(asked);
    let name = if model.is_known { model.name.as_str() } else { OTHER_MODEL };
    gate.metrics.labels(&route.name, name, provider(&route.upstream.url.authority))
}

/// The part of the way on which a route's policy counts.
struct Leg<'a> {
    worker: &'a Arc<Worker>,
    snapshot: &'a Arc<Snapshot>,
    index: usize,
    route: &'a Route,
    strategy: Strategy,
}

/// A request that is ready to be forwarded.
struct Edited {
    head: Parts,
    /// What goes out if nothing was rewritten.
    sent: Bytes,
    identity: Option<Identity>,
    rewritten: Option<Rewritten>,
}

impl Leg<'_> {
    /// Identify, recall, restore, rewrite.
    async fn edit(&self, received: Received, entry: &mut Entry) -> Result<Edited, Refusal> {
        let Leg { worker, snapshot, index, route, strategy } = *self;
        let (settings, gate) = (&snapshot.settings, &worker.gate);
        let Received { mut head, mut sent, chat } = received;
        let holds_history = route.context.history == History::Proxy;
        // Where the history is ours to keep, what a request begins with says nothing about which conversation it continues.
        let opening = || {
            let chat = chat.as_ref().filter(|_| !holds_history);
            chat.and_then(|(body, outline)| gate.reader.opening(body, outline))
        };
        let step = entry.journey.step(span::IDENTIFY);
        let identity = identify(&head.headers, &settings.conversation, &gate.secret, opening)?;
        drop(step);
        let is_edited = |(body, _): &(Bytes, Outline)| holds_history || needs_rewrite(strategy, body);
        let Some((mut body, mut outline)) = chat.filter(is_edited) else {
            return Ok(Edited { head, sent, identity, rewritten: None });
        };
        let step = entry.journey.step(span::RECALL);
        let (recalled, spent) = tokio::join!(
            recall(gate, identity.as_ref(), settings.store.on_failure),
            spent(gate, identity.as_ref(), &route.context.limits),
        );
        let mut recalled = recalled?;
        drop(step);
        if holds_history {
            let _step = entry.journey.step(span::RESTORE);
            let Some(identity) = &identity else {
                return Err(Refusal::NoConversation { header: settings.conversation.header.clone() });
            };
            let restored = restore(gate, identity, &head.headers, body, outline).await?;
            recalled.degrade(restored.degraded);
            (body, outline) = (restored.body, restored.outline);
            (head, sent) = (readable(decoded(head)), body.clone());
        }
        entry.degraded = recalled.degraded.map(Degraded::reason);
        let draft = Draft {
            gate: gate.clone(),
            snapshot: snapshot.clone(),
            route: index,
            strategy,
            identity: identity.clone(),
            recalled,
            summaries: Vec::new(),
            pinned: None,
            body,
            outline,
            holds_history,
            spent,
        };
        let caller = CallerKey::of(&head.headers, &route.upstream);
        let _step = entry.journey.step(span::REWRITE);
        let trail = entry.journey.trail();
        let rewritten =
            rewrite(worker, draft.dressed(), caller, trail, Gate::now()).await.inspect_err(|refusal| {
                remember_refusal(worker, identity.as_ref(), route, strategy, refusal, entry);
                trace::refused(&entry.journey, route, strategy, refusal);
            })?;
        Ok(Edited { head, sent, identity, rewritten })
    }
}

/// Whether there can be anything to do. Without a strategy that edits, only our own tag has to be taken out.
pub(crate) fn needs_rewrite(strategy: Strategy, body: &[u8]) -> bool {
    strategy != Strategy::Passthrough || memchr::memmem::find(body, b"\"observation\"").is_some()
}

/// What a conversation has cost so far. Nothing where that is not limited, or cannot be known: a limit that cannot be checked stops
/// nobody.
async fn spent(gate: &Gate, identity: Option<&Identity>, limits: &Limits) -> Option<f64> {
    let identity = identity.filter(|_| limits.max_cost_usd.is_some())?;
    gate.conversations.counted(identity.key).await.ok().flatten().map(|head| limit::spent(&head))
}

/// We have to read the answer to remember it.
fn readable(mut head: Parts) -> Parts {
    head.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    head
}

/// An edited body goes out plain, however the client had compressed it.
fn decoded(mut head: Parts) -> Parts {
    head.headers.remove(CONTENT_ENCODING);
    head
}

async fn send(
    worker: &Arc<Worker>,
    upstream: &Arc<Prepared>,
    mut head: Parts,
    body: SendBody,
    entry: &mut Entry,
    own: HeaderMap,
    keepsake: Option<Keepsake>,
) -> Result<Answer, Refusal> {
    entry.upstream = Some(upstream.settings.clone());
    let step = entry.journey.step(span::FORWARD);
    let call = entry.call.get_or_insert_with(|| {
        entry.journey.call(head.method.as_str(), None, &upstream.settings.url.authority)
    });
    call.inject(&mut head.headers);
    let response = forward(&worker.clients, upstream, head, body, &entry.received, &worker.cut).await?;
    drop(step);
    Ok(Answer { response, own, upstream: upstream.settings.clone(), keepsake })
}

/// Anything else: passed on in both directions as it arrives.
async fn pass_through(
    worker: &Arc<Worker>,
    snapshot: &Arc<Snapshot>,
    request: Request<Incoming>,
    path: &str,
    entry: &mut Entry,
) -> Result<Answer, Refusal> {
    let settings = &snapshot.settings;
    let (head, body) = request.into_parts();
    let route = route(&settings.routes, path, &head.headers, None).map(|index| &settings.routes[index]);
    entry.route = route.map(|route| route.name.clone());
    let upstream = route.map_or(snapshot.default_upstream(), |route| snapshot.prepared(&route.upstream));
    let body = SendBody::Stream(Upload::new(body, settings.server.body_timeout, entry.received.clone()));
    send(worker, upstream, head, body, entry, HeaderMap::new(), None).await
}
