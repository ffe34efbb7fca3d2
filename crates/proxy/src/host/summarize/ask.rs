//! Sends a prompt to the endpoint, with one retry.

use super::dialect::{Dialect, Question};
use super::failure::Cause;
use super::off_worker::off_worker;
use super::passes::{Pass, Passes};
use super::spent::Spent;
use crate::host::heavy::Lane;
use crate::transport::body::SendBody;
use crate::transport::client::Clients;
use crate::transport::upstream::Prepared;
use bytes::Bytes;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, USER_AGENT,
};
use http::header::{HeaderMap, HeaderValue};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::LlmSummarizer;
use tidegate_summary::{Nonsense, Summary};
use tokio::time::{Instant, sleep};

/// The summarizer's endpoint.
#[derive(Debug)]
pub(super) struct Endpoint<'a> {
    pub(super) clients: &'a Clients,
    pub(super) lane: &'a Lane,
    pub(super) upstream: &'a Arc<Prepared>,
    pub(super) llm: &'a LlmSummarizer,
    pub(super) key: Option<HeaderValue>,
    pub(super) deadline: Instant,
}

/// A failed attempt, and how long to wait before the next one.
struct FailedAttempt {
    cause: Cause,
    pause: Duration,
}

/// A complete response.
struct Completed {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

/// The maximum size of a response body.
const MAX_RESPONSE: usize = 1024 * 1024;

/// The pause before a retry if the endpoint does not send `Retry-After`.
const DEFAULT_PAUSE: Duration = Duration::from_millis(250);

/// The first temperature: the same prompt should get the same summary.
const FIRST_TEMPERATURE: f64 = 0.0;

/// The temperature after an unusable response, so that it is not repeated.
const RETRY_TEMPERATURE: f64 = 0.4;

/// Sends the prompt, and retries once if the failure is retryable and the deadline allows it.
pub(super) async fn ask(
    endpoint: &Endpoint<'_>,
    passes: &Arc<Passes>,
    pass: Arc<Pass>,
    spent: &mut Spent,
) -> Result<Summary, Cause> {
    let FailedAttempt { cause, pause } =
        match attempt(endpoint, passes, &pass, FIRST_TEMPERATURE, spent).await {
            Ok(summary) => return Ok(summary),
            Err(failed) => failed,
        };
    let has_time = endpoint.deadline.duration_since(Instant::now()) > pause;
    if !cause.is_retryable() || !has_time {
        return Err(cause);
    }
    sleep(pause).await;
    let temperature = if matches!(cause, Cause::Nonsense(_)) { RETRY_TEMPERATURE } else { FIRST_TEMPERATURE };
    attempt(endpoint, passes, &pass, temperature, spent).await.map_err(|failed| failed.cause)
}

/// Makes one attempt, falling back to simpler dialects until the endpoint accepts one.
async fn attempt(
    endpoint: &Endpoint<'_>,
    passes: &Arc<Passes>,
    pass: &Arc<Pass>,
    temperature: f64,
    spent: &mut Spent,
) -> Result<Summary, FailedAttempt> {
    let llm = endpoint.llm;
    let known = Dialect::of(llm, passes.limits.style);
    let mut dialect = known;
    loop {
        let (model, passes_asked, asked) = (llm.model.clone(), passes.clone(), pass.clone());
        let body = off_worker(endpoint.lane, move || {
            let Passes { limits, answer: max_tokens, .. } = *passes_asked;
            dialect.request(Question {
                model: &model,
                prompt: &asked.prompt,
                limits,
                max_tokens,
                temperature,
            })
        })
        .await?;
        let Completed { status, headers, body } = call(endpoint, body.into(), spent).await?;
        if status.is_success() {
            if dialect != known {
                dialect.remember(llm);
            }
            let (passes, pass) = (passes.clone(), pass.clone());
            let bounds = dialect.bounds(passes.limits);
            let (summary, usage) =
                off_worker(endpoint.lane, move || passes.read(&pass, &body, bounds)).await?;
            spent.add(usage);
            return summary.map_err(|nonsense| Cause::from(nonsense).into());
        }
        match dialect.simpler(llm, status, &body) {
            Some(simpler) => dialect = simpler,
            None => return Err(FailedAttempt { cause: Cause::Status(status), pause: retry_pause(&headers) }),
        }
    }
}

async fn call(endpoint: &Endpoint<'_>, body: Bytes, spent: &mut Spent) -> Result<Completed, Cause> {
    spent.calls += 1;
    let response = endpoint.clients.send(endpoint.upstream, request(endpoint, body)).await?;
    let (head, body) = response.into_parts();
    let body = match Limited::new(body, MAX_RESPONSE).collect().await {
        Ok(body) => body.to_bytes(),
        // Of an error response only the status matters.
        Err(_) if !head.status.is_success() => Bytes::new(),
        Err(error) if error.is::<LengthLimitError>() => return Err(Nonsense::TooLong.into()),
        Err(error) => return Err(Cause::Broken(error)),
    };
    Ok(Completed { status: head.status, headers: head.headers, body })
}

/// Builds the HTTP request. It carries nothing of the client's own request except its key, if that is allowed.
fn request(endpoint: &Endpoint<'_>, body: Bytes) -> Request<SendBody> {
    let length = body.len() as u64;
    let mut request = Request::new(SendBody::pieces([body]));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = endpoint.upstream.target(&Uri::from_static("/v1/chat/completions"));
    let headers = request.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers.insert(USER_AGENT, HeaderValue::from_static("tidegate"));
    headers.insert(CONTENT_LENGTH, length.into());
    if let Some(key) = &endpoint.key {
        headers.insert(AUTHORIZATION, key.clone());
    }
    request
}

/// Returns the pause that `Retry-After` asks for. A date counts as too long to wait for.
fn retry_pause(headers: &HeaderMap) -> Duration {
    let asked =
        headers.get(RETRY_AFTER).map(|value| value.to_str().ok().and_then(|text| text.trim().parse().ok()));
    match asked {
        None => DEFAULT_PAUSE,
        Some(Some(seconds)) => Duration::from_secs(seconds).max(DEFAULT_PAUSE),
        Some(None) => Duration::MAX,
    }
}

impl From<Cause> for FailedAttempt {
    fn from(cause: Cause) -> FailedAttempt {
        let pause = match cause {
            Cause::Unreachable(_) => DEFAULT_PAUSE,
            Cause::Nonsense(_) | Cause::Broken(_) | Cause::Status(_) => Duration::ZERO,
            Cause::Timeout | Cause::WindowTooSmall | Cause::Key(_) | Cause::Crashed => Duration::ZERO,
        };
        FailedAttempt { cause, pause }
    }
}
