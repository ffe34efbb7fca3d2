//! The whole way of a request: receive → route → identify → recall → rewrite → forward → relay → remember.

use crate::body::{ReplyBody, SendBody, Upload};
use crate::forward::forward;
use crate::framing::{REFUSED_METHOD, Verdict};
use crate::gate::Snapshot;
use crate::identify::identify;
use crate::path::canonical;
use crate::receive::{is_chat_completion, receive};
use crate::relay::relay;
use crate::remember::Entry;
use crate::reply::{Refusal, refuse};
use crate::request_id::RequestId;
use crate::route::route;
use crate::server::Worker;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response};
use hyper::body::Incoming;
use tidegate_telemetry::names;

/// Answers one request, whatever it is. It cannot fail: what goes wrong becomes an answer.
pub(crate) async fn travel(worker: &Worker, verdict: &Verdict, request: Request<Incoming>) -> Response<ReplyBody> {
    let snapshot = worker.gate.snapshot();
    let id = RequestId::of(request.headers());
    let enabled = snapshot.settings.log.access;
    let mut entry = Entry::begin(&worker.gate, enabled, id, request.method(), request.uri());
    match attempt(worker, &snapshot, verdict, request, &mut entry).await {
        Ok(answer) => relay(answer.response, answer.own, &answer.upstream, &worker.cut, entry),
        Err(refusal) => {
            let mut response = refuse(&refusal);
            if let Some(id) = entry.request_id.to_header() {
                response.headers_mut().insert(names::header::REQUEST_ID, id);
            }
            entry.refused(&refusal, response.status());
            response
        }
    }
}

/// An upstream's answer and the headers that we put beside its own.
struct Answer {
    response: Response<Incoming>,
    own: HeaderMap,
    upstream: std::sync::Arc<tidegate_config::Upstream>,
}

async fn attempt(
    worker: &Worker,
    snapshot: &Snapshot,
    verdict: &Verdict,
    request: Request<Incoming>,
    entry: &mut Entry,
) -> Result<Answer, Refusal> {
    if let Some(violation) = verdict.get().filter(|_| request.method() == REFUSED_METHOD) {
        return Err(Refusal::Framing(*violation));
    }
    if request.method() == Method::CONNECT {
        return Err(Refusal::Tunnel);
    }
    let path = request.uri().path().to_owned();
    let path = canonical(&path).map_err(Refusal::Path)?;
    if is_chat_completion(request.method(), &path) {
        complete_chat(worker, snapshot, request, &path, entry).await
    } else {
        pass_through(worker, snapshot, request, &path, entry).await
    }
}

/// A chat completion: read whole, so that its messages can be edited.
async fn complete_chat(
    worker: &Worker,
    snapshot: &Snapshot,
    request: Request<Incoming>,
    path: &str,
    entry: &mut Entry,
) -> Result<Answer, Refusal> {
    let settings = &snapshot.settings;
    let received = receive(request, &settings.server, &entry.received).await?;
    let route = route(&settings.routes, path, &received.head.headers, received.model());
    let conversation = identify(&received.head.headers, &settings.conversation)?;
    let upstream = route.map_or(snapshot.default_upstream(), |route| snapshot.prepared(&route.upstream));
    let mut own = HeaderMap::new();
    if let Some(route) = route {
        entry.route = Some(route.name.clone());
        put(&mut own, names::header::ROUTE, &route.name);
    }
    if let Some(conversation) = conversation {
        put(&mut own, names::header::CONVERSATION, conversation.as_str());
    }
    entry.upstream = Some(upstream.settings.clone());
    let body = SendBody::pieces([received.sent]);
    let sending = forward(&worker.clients, upstream, received.head, body, &entry.received, &worker.cut);
    Ok(Answer { response: sending.await?, own, upstream: upstream.settings.clone() })
}

/// Anything else: passed on in both directions as it arrives.
async fn pass_through(
    worker: &Worker,
    snapshot: &Snapshot,
    request: Request<Incoming>,
    path: &str,
    entry: &mut Entry,
) -> Result<Answer, Refusal> {
    let settings = &snapshot.settings;
    let (head, body) = request.into_parts();
    let route = route(&settings.routes, path, &head.headers, None);
    entry.route = route.map(|route| route.name.clone());
    let upstream = route.map_or(snapshot.default_upstream(), |route| snapshot.prepared(&route.upstream));
    entry.upstream = Some(upstream.settings.clone());
    let body = SendBody::Stream(Upload::new(body, settings.server.body_timeout, entry.received.clone()));
    let sending = forward(&worker.clients, upstream, head, body, &entry.received, &worker.cut);
    Ok(Answer { response: sending.await?, own: HeaderMap::new(), upstream: upstream.settings.clone() })
}

fn put(headers: &mut HeaderMap, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(HeaderName::from_static(name), value);
    }
}
