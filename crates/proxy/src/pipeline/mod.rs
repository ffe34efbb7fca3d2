//! The life of a request: receive → route → identify → recall → restore → rewrite → forward → relay → remember.
//!
//! One file a step. This file lists them in order; reading it shows the whole product.

mod answer_reader;
mod forward;
mod identify;
mod model_list;
mod recall;
mod receive;
mod relay;
mod remember;
mod reply_body;
mod rescue;
mod restore;
mod rewrite;
mod route;
mod send;
mod state;
mod tunnel;
mod unmanaged;

use crate::host::fold::Folder;
use crate::host::identity::Identity;
use crate::host::shared::Gateway;
use crate::host::snapshot::Snapshot;
use crate::host::summarize::CallerKey;
use crate::host::turn_log::{self, AnswerRead, COST, model_label};
use crate::host::worker::Worker;
use crate::observe::request::{RequestFacts, RequestObserver};
use crate::observe::spans;
use crate::reply::headers::{put, turn_headers};
use crate::reply::refusal::{Refusal, refuse};
use crate::transport::body::{SendBody, Upload};
use crate::transport::framing::{REFUSED_METHOD, SharedState};
use crate::transport::origin;
use crate::transport::path::canonical;
use crate::transport::server::Handler;
use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderValue};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use identify::{Access, branch_points, identify, is_known};
use model_list::{is_model_list, learn_windows};
use recall::recall;
use receive::{Received, deployment, dialect, receive};
use relay::relay;
use remember::PendingTurn;
use reply_body::ReplyBody;
use rescue::{Attempt, rescue};
use restore::restore;
use rewrite::{Draft, Rewritten, rewrite};
use route::{may_match, promises, route, strategy};
use send::{Forwarded, in_step, send};
use std::sync::Arc;
use tidegate_config::{History, Limits, Route};
use tidegate_context::{Ending, dollars, needs_turn};
use tidegate_engine::Strategy;
use tidegate_store::{Degraded, Generation};
use tidegate_telemetry::Outcome;
use tidegate_telemetry::names::{self, span};
use tidegate_wire::Dialect;
use tokio::time::Instant;
use tunnel::{Switched, Upgrade};
use unmanaged::unmanaged_headers;

/// Why a request is forwarded untouched although its route has a strategy.
const UNREADABLE: &str = "unreadable";

impl Handler for Worker {
    type Body = ReplyBody;

    async fn handle(
        self: Arc<Worker>,
        connection: SharedState,
        request: Request<Incoming>,
    ) -> Response<ReplyBody> {
        handle(&self, &connection, request).await
    }
}

/// Handles one request. It cannot fail: errors become refusals.
async fn handle(
    worker: &Arc<Worker>,
    connection: &SharedState,
    request: Request<Incoming>,
) -> Response<ReplyBody> {
    let snapshot = worker.gateway.snapshot();
    let is_logged = snapshot.settings.log.access;
    let mut observer = RequestObserver::begin(&worker.gateway.sinks, is_logged, &request);
    let is_http2 = request.version() == Version::HTTP_2;
    // Requests that are no LLM request get their errors in OpenAI's shape.
    let dialect = Dialect::of_path(request.uri().path()).unwrap_or(Dialect::Chat);
    let refusal = match dispatch(worker, &snapshot, connection, request, &mut observer).await {
        Ok(Dispatched::Forwarded(Forwarded { response, headers, upstream, turn })) => {
            let response = if is_http2 {
                response.map(|body| body.paced(snapshot.settings.server.write_timeout))
            } else {
                response
            };
            let response = relay(response, dialect, headers, &upstream, &worker.shutdown.cut, turn, observer);
            return response.map(|relay| ReplyBody::Relay { relay });
        }
        Ok(Dispatched::Switched(switched)) => {
            return tunnel::pass_on(switched, connection, &worker.shutdown, observer);
        }
        Ok(Dispatched::Own(response)) => {
            observer.answering(response.status());
            observer.answered();
            return own(response, &observer);
        }
        Err(refusal) => refusal,
    };
    let mut response = refuse(dialect, &refusal);
    if let Some(route) = observer.route() {
        put(response.headers_mut(), names::header::ROUTE, route);
    }
    observer.refused(&refusal, response.status());
    own(response, &observer)
}

/// A response of our own.
fn own(mut response: Response<Bytes>, observer: &RequestObserver) -> Response<ReplyBody> {
    if let Some(id) = observer.request_id().to_header() {
        response.headers_mut().insert(names::header::REQUEST_ID, id);
    }
    response.map(ReplyBody::full)
}

/// A request that was not refused.
#[allow(clippy::large_enum_variant, reason = "it is taken apart at once, and never kept")]
enum Dispatched {
    Forwarded(Forwarded),
    Switched(Switched),
    /// An endpoint of our own, answered without an upstream.
    Own(Response<Bytes>),
}

async fn dispatch(
    worker: &Arc<Worker>,
    snapshot: &Arc<Snapshot>,
    connection: &SharedState,
    request: Request<Incoming>,
    observer: &mut RequestObserver,
) -> Result<Dispatched, Refusal> {
    if let Some(violation) = connection.violation().filter(|_| request.method() == REFUSED_METHOD) {
        return Err(Refusal::Framing(violation));
    }
    if request.method() == Method::CONNECT {
        return Err(Refusal::Tunnel);
    }
    if worker.is_loopback {
        let allowed = &snapshot.settings.server.allowed_hosts;
        origin::check(request.uri(), request.headers(), allowed).map_err(Refusal::Foreign)?;
    }
    let path = request.uri().path().to_owned();
    let path = canonical(&path).map_err(Refusal::Path)?;
    if state::is_own(&path) {
        let asked = (request.method(), &*path);
        let answered = state::answer(worker, &snapshot.settings, asked, request.headers()).await;
        return answered.map(Dispatched::Own);
    }
    match dialect(request.method(), &path) {
        Some(dialect) => {
            let forwarded = complete_chat(worker, snapshot, request, (dialect, &path), observer).await;
            forwarded.map(Dispatched::Forwarded)
        }
        None => pass_through(worker, snapshot, request, &path, observer).await,
    }
}

/// A chat completion: read whole, so that its messages can be edited.
async fn complete_chat(
    worker: &Arc<Worker>,
    snapshot: &Arc<Snapshot>,
    request: Request<Incoming>,
    (dialect, path): (Dialect, &str),
    observer: &mut RequestObserver,
) -> Result<Forwarded, Refusal> {
    let settings = &snapshot.settings;
    let reading = receive(request, dialect, &settings.server, &worker.gateway.reader, &observer.upload);
    let received = in_step(&observer.span, span::RECEIVE, reading).await?;
    let arrived = Instant::now();
    let Some(managed) = Managed::new(worker, snapshot, &received, path, observer)? else {
        let (head, body) = (received.head, SendBody::pieces([received.sent]));
        let headers = unmanaged_headers(&head.method, path);
        return send(worker, snapshot.default_upstream(), head, body, observer, headers, None).await;
    };
    let requested_model = model_label(received.model());
    let is_streamed = received.chat.as_ref().is_some_and(|(_, outline)| outline.stream);
    let Edited { head, sent, folder, rewritten } = managed.edit(received, observer).await?;
    let Managed { route, strategy, .. } = managed;
    match &rewritten {
        Some(rewritten) => {
            observer.degrade(rewritten.outcome.fold_failure.map(|failure| failure.reason()));
            spans::planned(&observer.span, &rewritten.outcome);
        }
        None if strategy == Strategy::Passthrough => {}
        None => observer.degrade(Some(UNREADABLE)),
    }
    let figures = rewritten.as_ref().map(|rewritten| rewritten.outcome.figures);
    let overhead_us = observer.planned(figures.as_ref(), arrived.elapsed());
    spans::overhead(&observer.span, overhead_us);
    let conversation = folder.identity.as_ref().map(|identity| identity.name.as_str());
    let degraded = observer.degraded();
    let headers = turn_headers(&route.name, strategy, conversation, figures.as_ref(), degraded, overhead_us);
    let (head, body) = match rewritten.as_ref().and_then(Rewritten::pieces) {
        None => (head, SendBody::pieces([sent])),
        Some(pieces) => (uncompressed(head), SendBody::pieces(pieces)),
    };
    let upstream = snapshot.prepared(&route.upstream);
    let call =
        observer.span.call(head.method.as_str(), Some(&requested_model), &upstream.settings.url.authority);
    if call.is_enabled() {
        let content = settings.telemetry.content.then_some(&body);
        spans::asked(&call, conversation.map(str::to_owned), is_streamed, content);
    }
    observer.call = Some(call);
    let attempt = rewritten.as_ref().map(|rewritten| Attempt::new(&folder, rewritten, &head));
    let turn = rewritten.map(|rewritten| PendingTurn::begin(&folder, rewritten, route, observer));
    let forwarded = send(worker, upstream, head, body, observer, headers, turn).await?;
    rescue(forwarded, attempt, upstream, observer).await
}

/// A chat completion on a route that manages it.
struct Managed<'a> {
    worker: &'a Arc<Worker>,
    snapshot: &'a Arc<Snapshot>,
    index: usize,
    route: &'a Route,
    strategy: Strategy,
}

/// A request that is ready to be forwarded.
struct Edited {
    head: Parts,
    /// The body to forward if nothing was rewritten.
    sent: Bytes,
    folder: Folder,
    rewritten: Option<Rewritten>,
}

impl<'a> Managed<'a> {
    /// Finds the route; `None` if no route matches.
    fn new(
        worker: &'a Arc<Worker>,
        snapshot: &'a Arc<Snapshot>,
        received: &Received,
        path: &str,
        observer: &mut RequestObserver,
    ) -> Result<Option<Managed<'a>>, Refusal> {
        let _step = observer.span.step(span::ROUTE);
        let (routes, headers) = (&snapshot.settings.routes, &received.head.headers);
        let model = received.chat.as_ref().and_then(|(_, outline)| outline.model.as_deref());
        if received.chat.is_none() && routes.iter().any(|route| promises(route) && may_match(route, path)) {
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
        observer.count_under(worker.gateway.labels(snapshot, route, &label));
        spans::routed(&observer.span, &route.name, strategy);
        Ok(Some(Managed { worker, snapshot, index, route, strategy }))
    }

    /// Identify, recall, restore, rewrite.
    async fn edit(&self, received: Received, observer: &mut RequestObserver) -> Result<Edited, Refusal> {
        let Managed { worker, snapshot, index, route, strategy } = *self;
        let (settings, gateway, spans) = (&snapshot.settings, &worker.gateway, observer.span.clone());
        let Received { mut head, mut sent, chat } = received;
        let holds_history = route.context.history == History::Proxy;
        let step = spans.step(span::IDENTIFY);
        // A key for the provider's cache may stand for many conversations, so it does not name one whose history is ours.
        let session = chat.as_ref().filter(|_| !holds_history);
        let session = session.and_then(|(_, outline)| outline.session.as_deref());
        let (headers, access) = (&head.headers, Access::of(worker));
        let conversation = &settings.conversation;
        let mut identity = identify(headers, conversation, &gateway.secret, access, session, None)?;
        // If the proxy keeps the history, the content of a request does not identify the conversation.
        if let Some((body, outline)) = chat.as_ref().filter(|_| identity.is_none() && !holds_history) {
            let points = branch_points(gateway, body, outline).await;
            identity = identify(headers, conversation, &gateway.secret, access, session, points.as_ref())?;
        }
        drop(step);
        if chat.is_none() && promises(route) {
            return Err(Refusal::Unreadable);
        }
        if holds_history && !is_known(headers, &settings.conversation, access) {
            return Err(Refusal::NoCredentials);
        }
        let mut folder = Folder {
            worker: worker.clone(),
            snapshot: snapshot.clone(),
            route: index,
            identity,
            generation: Generation::default(),
            caller: CallerKey::of(&head.headers, &route.upstream),
            parent_span: spans.parent(),
        };
        let identity = folder.identity.clone();
        let identity = identity.as_ref();
        if let Some(identity) = identity {
            observer.belongs_to(&identity.name);
        }
        let is_edited = |body: &[u8]| holds_history || needs_turn(strategy, body);
        let Some((mut body, mut outline)) = chat.filter(|(body, _)| is_edited(body)) else {
            return Ok(Edited { head, sent, folder, rewritten: None });
        };
        let named = identity.filter(|identity| identity.branch.is_none()).cloned();
        let window = snapshot.models.lookup(outline.model.as_deref().unwrap_or_default()).window;
        let recalling = async {
            tokio::join!(
                recall(gateway, folder.identity.as_mut(), settings.store.on_failure),
                spent(gateway, named.as_ref(), &route.context.limits),
                gateway.windows.refresh(&gateway.conversations, window),
            )
        };
        let (recalled, spent, ()) = in_step(&spans, span::RECALL, recalling).await;
        let recalled = recalled?;
        // What a branch has cost rides on its state.
        let branch = folder.identity.as_ref().and_then(|identity| identity.branch.as_ref());
        let branch = branch.filter(|_| route.context.limits.max_cost_usd.is_some());
        let spent = branch.map(|branch| dollars(branch.note.spent)).or(spent);
        folder.generation = recalled.generation;
        let mut turn = None;
        if holds_history {
            let Some(identity) = identity else {
                return Err(Refusal::NoConversation { header: settings.conversation.header.clone() });
            };
            let wait = settings.conversation.turn_timeout;
            let restoring = restore(gateway, identity, &head.headers, (body, outline), wait);
            let restored = in_step(&spans, span::RESTORE, restoring).await?;
            (body, outline, turn) = (restored.body, restored.outline, Some(restored.turn));
            (head, sent) = (with_readable_answer(uncompressed(head)), body.clone());
        }
        observer.degrade(recalled.degraded.map(Degraded::reason));
        let deployment = deployment(head.uri.path()).map(str::to_owned);
        let outline = Arc::new(outline);
        let draft = Draft { body, outline, strategy, deployment, ceiling: None, recalled, spent, turn };
        let rewritten = in_step(&spans, span::REWRITE, rewrite(&folder, draft, Gateway::now())).await;
        // What an unreadable request calls its model may be anything, so it is not logged.
        if let Some(Rewritten { input, .. }) = &rewritten {
            observer.asks_for(&model_label(input.requested_model()));
        }
        if let Some((rewritten, refusal)) =
            rewritten.as_ref().and_then(|rewritten| Some((rewritten, rewritten.refusal()?)))
        {
            self.audit(&folder, rewritten, observer);
            return Err(refusal);
        }
        if rewritten.is_none() && promises(route) {
            return Err(Refusal::Unreadable);
        }
        Ok(Edited { head, sent, folder, rewritten })
    }

    /// Records a request that is refused for its length, and describes its plan in its span.
    fn audit(&self, folder: &Folder, rewritten: &Rewritten, observer: &RequestObserver) {
        let Rewritten { input, outcome, .. } = rewritten;
        if outcome.ending == Ending::OverBudget {
            spans::planned(&observer.span, outcome);
        }
        let Some(identity) = folder.identity.clone() else { return };
        let facts = RequestFacts {
            status: StatusCode::UNPROCESSABLE_ENTITY,
            outcome: Outcome::Refused,
            ..observer.facts()
        };
        if let Some(log) =
            turn_log::refused((identity, rewritten.generation), &self.route.name, input, outcome, facts)
        {
            let gateway = self.worker.gateway.clone();
            let write = async move { log.write(&gateway, AnswerRead::Nothing, true).await };
            drop(self.worker.shutdown.tasks.spawn(write));
        }
    }
}

/// Any other request: passed on in both directions as it arrives.
async fn pass_through(
    worker: &Arc<Worker>,
    snapshot: &Arc<Snapshot>,
    mut request: Request<Incoming>,
    path: &str,
    observer: &mut RequestObserver,
) -> Result<Dispatched, Refusal> {
    let settings = &snapshot.settings;
    let upgrade = Upgrade::requested(&mut request);
    let (head, body) = request.into_parts();
    let route = route(&settings.routes, path, &head.headers, None).map(|index| &settings.routes[index]);
    if let Some(route) = route {
        observer.routed(&route.name);
    }
    let upstream = route.map_or(snapshot.default_upstream(), |route| snapshot.prepared(&route.upstream));
    let body = SendBody::Stream(Upload::new(body, settings.server.body_timeout, observer.upload.clone()));
    let headers = unmanaged_headers(&head.method, path);
    let is_model_list = is_model_list(&head.method, path);
    let mut sent = send(worker, upstream, head, body, observer, headers, None).await?;
    if is_model_list {
        sent = learn_windows(worker, sent).await;
    }
    Ok(match upgrade.filter(|_| tunnel::is_switched(&sent.response)) {
        Some(client) => {
            let Forwarded { response, upstream, .. } = sent;
            Dispatched::Switched(Switched { response, client, upstream })
        }
        None => Dispatched::Forwarded(sent),
    })
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
fn uncompressed(mut head: Parts) -> Parts {
    head.headers.remove(CONTENT_ENCODING);
    head
}
