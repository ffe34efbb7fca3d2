//! One question to the endpoint, and one more if that may help.

use super::dialect::{Dialect, Question};
use super::failure::Cause;
use super::off_worker::off_worker;
use super::passes::{Pass, Passes};
use super::spent::Spent;
use crate::transport::body::SendBody;
use crate::transport::upstream::{Clients, Prepared};
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

/// Where and how to ask.
#[derive(Debug)]
pub(super) struct Endpoint<'a> {
    pub(super) clients: &'a Clients,
    pub(super) upstream: &'a Arc<Prepared>,
    pub(super) llm: &'a LlmSummarizer,
    pub(super) key: Option<HeaderValue>,
    pub(super) deadline: Instant,
}

/// An attempt that failed, and how long to wait before another.
struct Setback {
    cause: Cause,
    pause: Duration,
}

/// An endpoint's answer, read whole.
struct Answered {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

/// No summary is as long as this, whatever the endpoint wraps it in.
const MAX_ANSWER: usize = 1024 * 1024;

/// How long a server that is down or busy is left alone if it does not say.
const PAUSE: Duration = Duration::from_millis(250);

/// The same question should get the same summary.
const STEADY: f64 = 0.0;

/// After nonsense, the same answer again is what nobody wants.
const VARIED: f64 = 0.4;

/// Asks, and asks once more if the failure may pass and the deadline is not over by then.
pub(super) async fn ask(
    endpoint: &Endpoint<'_>,
    passes: &Arc<Passes>,
    pass: Arc<Pass>,
    spent: &mut Spent,
) -> Result<Summary, Cause> {
    let Setback { cause, pause } = match attempt(endpoint, passes, &pass, STEADY, spent).await {
        Ok(summary) => return Ok(summary),
        Err(setback) => setback,
    };
    let is_in_time = endpoint.deadline.duration_since(Instant::now()) > pause;
    if !cause.is_passing() || !is_in_time {
        return Err(cause);
    }
    sleep(pause).await;
    let temperature = if matches!(cause, Cause::Nonsense(_)) { VARIED } else { STEADY };
    attempt(endpoint, passes, &pass, temperature, spent).await.map_err(|setback| setback.cause)
}

/// One answer, in the first dialect that the endpoint does not refuse.
async fn attempt(
    endpoint: &Endpoint<'_>,
    passes: &Arc<Passes>,
    pass: &Arc<Pass>,
    temperature: f64,
    spent: &mut Spent,
) -> Result<Summary, Setback> {
    let llm = endpoint.llm;
    let known = Dialect::of(llm, passes.limits.style);
    let mut dialect = known;
    loop {
        let (model, passes_asked, asked) = (llm.model.clone(), passes.clone(), pass.clone());
        let body = off_worker(move || {
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
        let Answered { status, headers, body } = call(endpoint, body.into(), spent).await?;
        if status.is_success() {
            if dialect != known {
                dialect.learn(llm);
            }
            let (passes, pass) = (passes.clone(), pass.clone());
            let bounds = dialect.bounds(passes.limits);
            let (summary, usage) = off_worker(move || passes.read(&pass, &body, bounds)).await?;
            spent.add(usage);
            return summary.map_err(|nonsense| Cause::from(nonsense).into());
        }
        match dialect.simpler(llm, status, &body) {
            Some(simpler) => dialect = simpler,
            None => return Err(Setback { cause: Cause::Status(status), pause: pause(&headers) }),
        }
    }
}

async fn call(endpoint: &Endpoint<'_>, body: Bytes, spent: &mut Spent) -> Result<Answered, Cause> {
    spent.calls += 1;
    let response = endpoint.clients.send(endpoint.upstream, request(endpoint, body)).await?;
    let (head, body) = response.into_parts();
    let body = match Limited::new(body, MAX_ANSWER).collect().await {
        Ok(body) => body.to_bytes(),
        // Only the status of a refusal counts.
        Err(_) if !head.status.is_success() => Bytes::new(),
        Err(error) if error.is::<LengthLimitError>() => return Err(Nonsense::TooLong.into()),
        Err(error) => return Err(Cause::Broken(error)),
    };
    Ok(Answered { status: head.status, headers: head.headers, body })
}

/// Nothing of the client's request is in it but, where that is allowed, its key.
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

/// What the endpoint asks for, in seconds; it may also be a date, for which no summary waits.
fn pause(headers: &HeaderMap) -> Duration {
    let asked =
        headers.get(RETRY_AFTER).map(|value| value.to_str().ok().and_then(|text| text.trim().parse().ok()));
    match asked {
        None => PAUSE,
        Some(Some(seconds)) => Duration::from_secs(seconds).max(PAUSE),
        Some(None) => Duration::MAX,
    }
}

impl From<Cause> for Setback {
    fn from(cause: Cause) -> Setback {
        let pause = match cause {
            Cause::Unreachable(_) => PAUSE,
            Cause::Nonsense(_) | Cause::Broken(_) | Cause::Status(_) => Duration::ZERO,
            Cause::Timeout | Cause::WindowTooSmall | Cause::Key(_) | Cause::Crashed => Duration::ZERO,
        };
        Setback { cause, pause }
    }
}
