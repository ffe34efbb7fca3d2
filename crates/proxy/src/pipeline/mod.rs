//! The life of a request: receive → route → identify → recall → restore → rewrite → forward → relay → remember.
//!
//! One file a step. This file lists them in order; reading it shows the whole product.

mod answer_reader;
mod edit;
mod forward;
mod identify;
mod journal;
mod mcp;
mod model_list;
mod put_back;
mod recall;
mod recall_tool;
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

use crate::host::identity::Identity;
use crate::host::snapshot::Snapshot;
use crate::host::turn_log::model_label;
use crate::host::worker::Worker;
use crate::observe::request::RequestObserver;
use crate::observe::spans::{self, Asked};
use crate::reply::headers::{put, turn_headers};
use crate::reply::refusal::{Refusal, refuse};
use crate::transport::body::{SendBody, Upload};
use crate::transport::framing::{REFUSED_METHOD, SharedState};
use crate::transport::origin;
use crate::transport::overload::{Charge, Limit};
use crate::transport::paced::{Pace, PacedBody};
use crate::transport::path::canonical;
use crate::transport::server::Handler;
use bytes::Bytes;
use edit::{Edited, Managed, uncompressed};
use http::{Method, Request, Response, Version};
use http_body::Body;
use hyper::body::Incoming;
use identify::{Access, credentials, is_under_way};
use model_list::{is_model_list, learn_windows};
use recall_tool::Recaller;
use receive::{Admission, dialect, receive};
use relay::{Incomplete, relay};
use remember::PendingTurn;
use reply_body::ReplyBody;
use rescue::{Attempt, rescue};
use rewrite::Rewritten;
use route::{purpose, route};
use send::{Forwarded, in_step, send};
use std::sync::Arc;
use tidegate_engine::Strategy;
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
    let overload = &worker.gateway.overload;
    let charge = Charge::new(&overload.memory);
    let mut observer = RequestObserver::begin(&worker.gateway.sinks, is_logged, &request, charge);
    let is_http2 = request.version() == Version::HTTP_2;
    // Requests that are no LLM request get their errors in OpenAI's shape.
    let dialect = canonical(request.uri().path()).ok().and_then(|path| Dialect::of_path(&path));
    let dialect = dialect.unwrap_or(Dialect::Chat);
    let refusal = match dispatch(worker, &snapshot, connection, request, &mut observer).await {
        Ok(Dispatched::Forwarded(Forwarded { response, headers, upstream, turn })) => {
            let response = relay(response, dialect, headers, &upstream, &worker.shutdown.cut, turn, observer);
            if !is_http2 || response.body().is_end_stream() {
                return response.map(|relay| ReplyBody::Relay { relay });
            }
            let write_timeout = snapshot.settings.server.write_timeout;
            let pace = Pace { write_timeout, connection: connection.clone(), stalled: Incomplete };
            return response.map(|relay| ReplyBody::Paced {
                relay: PacedBody::new(relay, pace, &worker.shutdown.tasks),
            });
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
    if let Refusal::Overloaded(limit) = refusal {
        overload.refused(limit);
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
        return Err(match connection.lacks_memory() {
            true => Refusal::Overloaded(Limit::Memory),
            false => Refusal::Framing(violation),
        });
    }
    let permit = worker.gateway.overload.enter().map_err(Refusal::Overloaded)?;
    let (head, unread) = (head_bytes(&request), unread_bytes(&request));
    observer.permit = Some((permit, connection.enter(unread).map_err(Refusal::Overloaded)?));
    if head > LARGE_HEAD && !observer.charge.take(head) {
        return Err(Refusal::Overloaded(Limit::Memory));
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
    if mcp::is_mcp(&path) {
        let answered = mcp::answer(worker, &snapshot.settings, request, &observer.charge).await;
        return answered.map(Dispatched::Own);
    }
    if state::is_own(&path) {
        let asked = (request.method(), &*path);
        let answered =
            state::answer(worker, &snapshot.settings, asked, request.headers(), &observer.charge).await;
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

/// A head of this size is part of the memory of its request.
const LARGE_HEAD: u64 = 4 * 1024;

/// About what the head of a request takes.
fn head_bytes(request: &Request<Incoming>) -> u64 {
    let headers = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len());
    headers.sum::<usize>() as u64
}

/// How much of a body may arrive before anybody reads it. That of HTTP/1 waits in the buffers of its connection.
fn unread_bytes(request: &Request<Incoming>) -> u64 {
    let size = request.body().size_hint();
    if request.version() == Version::HTTP_2 { size.upper().unwrap_or(u64::MAX) } else { 0 }
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
    let wanted = (dialect, purpose(&settings.routes, path, request.headers()));
    let tenant = credentials(request.headers(), &settings.conversation).unwrap_or_default();
    let lane = worker.gateway.heavy.lane(tenant, observer.charge.clone());
    let access = Access::of(worker);
    let admission = Admission {
        limits: &settings.server,
        charge: &observer.charge,
        progress: &observer.upload,
        lane: &lane,
        is_under_way: &|headers| is_under_way(&worker.gateway, headers, &settings.conversation, access),
    };
    let reading = receive(request, wanted, &worker.gateway, &admission);
    let received = in_step(&observer.span, span::RECEIVE, reading).await?;
    let arrived = Instant::now();
    let Some(managed) = Managed::new(worker, snapshot, &received, path, observer)? else {
        let (head, body) = (received.head, SendBody::pieces([received.sent]));
        let headers = unmanaged_headers(&head.method, path, None);
        return send(worker, snapshot.default_upstream(), head, body, observer, headers, None).await;
    };
    let requested_model = model_label(received.model());
    let asked = received.chat.as_ref().map(|(_, outline)| Asked::new(outline)).unwrap_or_default();
    let Edited { head, sent, folder, rewritten } = managed.edit(received, lane, observer).await?;
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
        let own_id = folder.identity.as_ref().and_then(Identity::client_id).map(str::to_owned);
        let semconv = worker.gateway.metrics().semconv();
        spans::asked(&call, own_id, asked, figures.as_ref(), semconv, content);
        spans::spoken(&call, dialect, &upstream.settings.url.authority);
    }
    observer.call = Some(call);
    let recalls = Arc::default();
    let recaller = rewritten
        .as_ref()
        .and_then(|rewritten| Recaller::new(&folder, rewritten, (upstream, &head), &recalls, observer));
    let attempt = rewritten.as_ref().map(|rewritten| Attempt::new(&folder, rewritten, &head));
    let mut turn = rewritten.map(|rewritten| PendingTurn::begin(&folder, rewritten, route, observer));
    if let (Some(turn), Some(_)) = (&mut turn, &recaller) {
        turn.may_recall(&recalls);
    }
    let forwarded = send(worker, upstream, head, body, observer, headers, turn).await?;
    let forwarded = rescue(forwarded, attempt, upstream, observer).await?;
    // A request that was made shorter does not have the tool any more.
    match recaller.filter(|_| !forwarded.headers.contains_key(names::header::RESCUED)) {
        Some(recaller) => recaller.answer(forwarded, observer).await,
        None => Ok(forwarded),
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
    let headers = unmanaged_headers(&head.method, path, route.map(|route| &*route.name));
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
