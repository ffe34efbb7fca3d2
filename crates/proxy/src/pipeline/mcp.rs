//! An MCP server for agents: they ask for what was shortened in a conversation, and search what was said in it.
//!
//! It is stateless, so any replica can answer any request: each names its conversation in a header, as a chat completion does, and belongs
//! to the tenant of its credentials. Answers are JSON. There is nothing to subscribe to, so there are no streams and no sessions.

mod protocol;
mod tools;

use crate::host::worker::Worker;
use crate::pipeline::identify::{Access, credentials, identify, is_known};
use crate::reply::refusal::Refusal;
use crate::transport::body::UploadError;
use crate::transport::overload::{Charge, Limit, Share};
use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use protocol::{Asked, RpcError, read};
use serde_json::{Value, json};
use std::sync::Arc;
use tidegate_config::Settings;
use tokio::time::timeout;
use tools::{Caller, call, definitions};

/// `path` is canonical.
pub(crate) fn is_mcp(path: &str) -> bool {
    path == "/tidegate/mcp"
}

/// A request holds a name, a reference and a question, so it never needs more.
const MAX_BODY: usize = 64 * 1024;

/// Answers a request to the MCP endpoint.
pub(crate) async fn answer(
    worker: &Worker,
    settings: &Settings,
    request: Request<Incoming>,
    charge: &Arc<Charge>,
) -> Result<Response<Bytes>, Refusal> {
    let (head, body) = request.into_parts();
    let (headers, conversation, access) = (&head.headers, &settings.conversation, Access::of(worker));
    if !is_known(headers, conversation, access) {
        return Err(Refusal::NoCredentials);
    }
    if head.method != Method::POST {
        let mut response = Response::new(Bytes::new());
        *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
        return Ok(response);
    }
    let identity = identify(headers, conversation, &worker.gateway.secret, access, &[], None)?;
    if !charge.grow(MAX_BODY as u64, Share::Small) {
        return Err(Refusal::Overloaded(Limit::Memory));
    }
    let body = collect(body, settings).await?;
    let request = match read(&body, headers) {
        Ok(Asked::Answer(request)) => request,
        Ok(Asked::Nothing) => {
            let mut response = Response::new(Bytes::new());
            *response.status_mut() = StatusCode::ACCEPTED;
            return Ok(response);
        }
        Err((id, error)) => return Ok(reply(error.status(), &error.body(&id))),
    };
    let tenant = credentials(headers, conversation).unwrap_or_default();
    let caller = Caller {
        gateway: &worker.gateway,
        lane: worker.gateway.heavy.lane(tenant, charge.clone()),
        charge,
        most_queued: settings.server.max_queued_work,
        identity,
        header: &conversation.header,
    };
    let answered = match request.method.as_str() {
        "initialize" if !request.is_modern => Ok(protocol::initialized(&request)),
        "server/discover" if request.is_modern => Ok(protocol::discovered()),
        "ping" => Ok(json!({})),
        "tools/list" => Ok(json!({ "tools": definitions() })),
        "tools/call" => call(&caller, &request.params).await?,
        _ => Err(RpcError::NoMethod(request.method.clone())),
    };
    Ok(match answered {
        Ok(result) => reply(StatusCode::OK, &request.result(result)),
        Err(error) => {
            let status = if request.is_modern { error.status() } else { StatusCode::OK };
            reply(status, &error.body(&request.id))
        }
    })
}

async fn collect(body: Incoming, settings: &Settings) -> Result<Bytes, Refusal> {
    let reading = timeout(settings.server.body_timeout, Limited::new(body, MAX_BODY).collect());
    let collected = reading.await.map_err(|_| Refusal::BodyTooSlow)?;
    match collected {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Refusal::TooLarge { limit: MAX_BODY as u64 }),
        Err(error) => match error.downcast::<hyper::Error>() {
            Ok(error) => Err(Refusal::from(&UploadError::from(*error))),
            Err(_) => Err(Refusal::ClientLeft),
        },
    }
}

fn reply(status: StatusCode, body: &Value) -> Response<Bytes> {
    let mut response = Response::new(body.to_string().into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
