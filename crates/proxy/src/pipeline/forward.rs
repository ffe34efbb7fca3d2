//! Sends a request upstream and waits until its answer begins.

use crate::reply::refusal::Refusal;
use crate::reply::upstream_failure::{FailureKind, UpstreamFailure};
use crate::transport::body::{Progress, SendBody, UploadError, causes};
use crate::transport::client::{CallError, Clients};
use crate::transport::headers::{self, SwitchTo};
use crate::transport::response_body::ResponseBody;
use crate::transport::upstream::{KEY_HEADERS, Prepared};
use http::header::CONTENT_LENGTH;
use http::request::Parts;
use http::{Request, Response, Version};
use std::error::Error;
use std::pin::pin;
use std::sync::Arc;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::warn;

/// Returns the upstream's answer as soon as its head is there.
///
/// The wait for the first byte begins when the last byte of the request has left, so that a long upload is not mistaken for a slow
/// upstream; `sent` says when that was. `cut` ends the wait when the drain time is over.
pub(crate) async fn forward(
    clients: &Clients,
    upstream: &Arc<Prepared>,
    head: Parts,
    body: SendBody,
    sent: &Progress,
    cut: &CancellationToken,
) -> Result<Response<ResponseBody>, Refusal> {
    let request = prepare(upstream, head, body, sent);
    let fail = |kind| {
        let upstream = upstream.settings.name.clone();
        Refusal::Upstream(UpstreamFailure { upstream, kind })
    };
    let mut answer = pin!(clients.send(upstream, request));
    let timeout = upstream.settings.first_byte_timeout;
    let started = Instant::now();
    loop {
        let deadline = sent.last_activity().max(started) + timeout;
        let waited = tokio::select! {
            biased;
            waited = timeout_at(deadline, &mut answer) => waited,
            () = cut.cancelled() => return Err(fail(FailureKind::Draining)),
        };
        match waited {
            Ok(Ok(response)) => return Ok(response),
            Ok(Err(error)) => return Err(explain(&error).map_or_else(|refusal| refusal, fail)),
            Err(_) if sent.last_activity().max(started) + timeout > deadline => {}
            Err(_) => return Err(fail(FailureKind::NoFirstByte)),
        }
    }
}

fn prepare(
    upstream: &Prepared,
    mut head: Parts,
    mut body: SendBody,
    progress: &Progress,
) -> Request<SendBody> {
    let switch_to = head.extensions.remove::<SwitchTo>();
    headers::clean_request(&mut head.headers);
    if let Some(switch_to) = switch_to {
        switch_to.put(&mut head.headers);
    }
    if let SendBody::Pieces { length, sent, .. } = &mut body {
        *sent = Some(progress.clone());
        head.headers.insert(CONTENT_LENGTH, (*length).into());
    }
    if let Some((name, key)) = upstream.own_key(head.uri.path()) {
        KEY_HEADERS.iter().for_each(|theirs| drop(head.headers.remove(theirs)));
        head.headers.insert(name, key);
    }
    head.uri = upstream.target(&head.uri);
    // The client's HTTP version does not apply to the upstream connection.
    head.version = Version::HTTP_11;
    head.extensions.clear();
    Request::from_parts(head, body)
}

/// Returns how the upstream failed, or a refusal if the client's body failed.
fn explain(error: &CallError) -> Result<FailureKind, Refusal> {
    if let Some(upload) = causes(error).find_map(|cause| cause.downcast_ref::<UploadError>()) {
        return Err(upload.into());
    }
    // The cause may name addresses, so it is for the operator's log and not for the client.
    warn!(error = %Chain(error), "upstream call failed");
    Ok(if error.is_connect() { FailureKind::Unreachable } else { FailureKind::Closed })
}

/// An error with all its causes on one line.
struct Chain<'a>(&'a dyn Error);

impl std::fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)?;
        causes(self.0).try_for_each(|cause| write!(f, ": {cause}"))
    }
}
