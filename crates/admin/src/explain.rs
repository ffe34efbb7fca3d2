//! `POST /api/explain`: what the proxy would do with a given request, under the active policy or another.

use crate::body::{self, BodyFormat};
use crate::error::ApiError;
use crate::target::QueryParams;
use bytes::Bytes;
use http::HeaderMap;
use hyper::body::Body;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::ops::Range;
use tidegate_config::{Settings, Source, saved_route, strategy_from_name};
use tidegate_context::model_table;
use tidegate_explain::{Case, Failure, Request, json, located, place};
use tidegate_wire::{Dialect, Reader, Unreadable};

/// The maximum size of everything in the body besides the request.
const MAX_ENVELOPE_BYTES: u64 = 1024 * 1024;

/// The body: a request, verbatim, and what to override.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExplainBody {
    request: Box<RawValue>,
    /// The route to use, whether it matches or not.
    #[serde(default)]
    route: Option<String>,
    #[serde(default)]
    strategy: Option<String>,
    /// A policy in TOML that replaces the route's own.
    #[serde(default)]
    policy: Option<String>,
}

/// An explanation with one page of its messages.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ExplanationPage {
    /// The same object that `tidegate explain --json` prints.
    explanation: Value,
    changes: Value,
    messages_total: usize,
    messages_offset: usize,
    messages_limit: usize,
}

/// The page of messages to return.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageParams {
    pub(crate) offset: usize,
    pub(crate) limit: usize,
}

impl PageParams {
    pub(crate) fn parse(parameters: &QueryParams) -> Result<PageParams, ApiError> {
        Ok(PageParams { offset: parameters.offset("offset")?, limit: parameters.limit_or("limit", 200)? })
    }

    fn within(self, total: usize) -> Range<usize> {
        let start = self.offset.min(total);
        start..start.saturating_add(self.limit).min(total)
    }
}

/// Reads the body. Nothing of it is stored or logged.
pub(crate) async fn read_body<B: Body<Data = Bytes>>(
    headers: &HeaderMap,
    body: B,
    settings: &Settings,
) -> Result<ExplainBody, ApiError> {
    if BodyFormat::from_headers(headers) != Some(BodyFormat::Json) {
        return Err(ApiError::JsonRequired);
    }
    let max = settings.server.max_body.saturating_add(MAX_ENVELOPE_BYTES);
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    let broken = ApiError::InvalidRequest("the body is incomplete".to_owned());
    let body = body::read(body, max, ApiError::RequestTooLarge, broken).await?;
    serde_json::from_slice(&body).map_err(|error| {
        // Only the position: the parser's own message may quote the request.
        let (line, column) = (error.line(), error.column());
        ApiError::InvalidRequest(format!(
            "line {line}, column {column}: expected `{{\"request\": …}}`, where the request is the body of a chat completion, a message or a response, \
             with `route`, `strategy` and `policy` as optional strings"
        ))
    })
}

/// Explains a request. CPU-bound: must not run on the admin thread.
pub(crate) fn explain(
    sent: &ExplainBody,
    settings: &Settings,
    reader: &Reader,
    page: PageParams,
) -> Result<ExplanationPage, ApiError> {
    let body = sent.request.get().as_bytes();
    if body.len() as u64 > settings.server.max_body {
        return Err(ApiError::RequestTooLarge);
    }
    let outline =
        reader.outline(Dialect::of_body(body), body).map_err(|error| invalid_request(body, &error))?;
    let asked = outline.model.as_deref();
    let route = match &sent.route {
        None => saved_route(&settings.routes, outline.dialect.path(), asked),
        Some(name) => Some(settings.routes.iter().find(|route| route.name == *name).ok_or_else(|| {
            let names: Vec<&str> = settings.routes.iter().map(|route| route.name.as_str()).collect();
            ApiError::RouteNotFound { routes: names.join(", ") }
        })?),
    };
    let Some(route) = route else {
        let sentence = "no route matches: it would be forwarded to `default`, byte for byte as sent";
        let empty = ExplanationPage::empty(outline.messages.len(), page);
        return Ok(ExplanationPage { explanation: json::without_route(asked, sentence), ..empty });
    };
    let overridden = match &sent.policy {
        None => None,
        Some(text) => {
            let number =
                settings.routes.iter().position(|other| other.name == route.name).unwrap_or_default();
            let overridden = settings.with_policy(number, &Source::new("policy", text.as_str()));
            Some(overridden.map_err(|errors| ApiError::InvalidPolicy(errors.to_string()))?)
        }
    };
    let settings = overridden.as_ref().unwrap_or(settings);
    // Always found: an overridden policy does not change the routes.
    let route = settings.routes.iter().find(|other| other.name == route.name).ok_or(ApiError::Internal)?;
    let strategy = match &sent.strategy {
        None => route.context.strategy,
        Some(name) => strategy_from_name(name).ok_or_else(|| {
            let known = "passthrough, masking, summarization, hybrid, window";
            ApiError::invalid_parameter("strategy", format!("must be one of {known}"))
        })?,
    };
    let model = model_table(&settings.models).lookup(asked.unwrap_or_default());
    let request = Request { body, outline: &outline, settings, route, strategy, model: &model };
    let case = Case::unseen(reader, request).map_err(|failure| match failure {
        Failure::Unreadable(error) => invalid_request(body, &located(body, &outline, error)),
        Failure::Plan(_) | Failure::Internal => ApiError::Internal,
    })?;
    Ok(ExplanationPage::new(&case, page))
}

impl ExplanationPage {
    /// An explanation without content, for a request whose messages are not available.
    pub(crate) fn empty(messages_total: usize, page: PageParams) -> ExplanationPage {
        ExplanationPage {
            explanation: Value::Null,
            changes: Value::Array(Vec::new()),
            messages_total,
            messages_offset: page.offset,
            messages_limit: page.limit,
        }
    }

    pub(crate) fn new(case: &Case<'_>, page: PageParams) -> ExplanationPage {
        let range = page.within(case.fates.len());
        ExplanationPage {
            explanation: json::page(case, &range),
            changes: json::changes(&case.changes_within(&range)),
            ..ExplanationPage::empty(case.fates.len(), page)
        }
    }
}

fn invalid_request(body: &[u8], error: &Unreadable) -> ApiError {
    ApiError::InvalidRequest(format!(
        "`request` is not the body of {}: {error}{}",
        Dialect::of_body(body).noun(),
        place(body, error)
    ))
}
