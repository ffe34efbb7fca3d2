//! What would happen to a request that somebody has at hand, under a policy that may be in force or not.

use crate::incoming::{self, Format};
use crate::problem::Problem;
use crate::target::Parameters;
use bytes::Bytes;
use http::HeaderMap;
use hyper::body::Body;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::ops::Range;
use tidegate_config::{Settings, Source, strategy_named};
use tidegate_explain::{Case, Failure, Request, json, located, place};
use tidegate_proxy::{chat_route, model_table};
use tidegate_wire::{Dialect, Reader, Unreadable};

/// What stands around the request.
const ENVELOPE_BYTES: u64 = 1024 * 1024;

/// What was asked: a request, verbatim, and what to do otherwise than the proxy would.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sent {
    request: Box<RawValue>,
    /// The route to take, whatever it matches.
    #[serde(default)]
    route: Option<String>,
    #[serde(default)]
    strategy: Option<String>,
    /// A policy in the place of the route's own, as TOML.
    #[serde(default)]
    policy: Option<String>,
}

/// What would happen, with the messages of one page.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Explained {
    /// As `tidegate explain --json` prints it.
    explanation: Value,
    changes: Value,
    messages_total: usize,
    messages_offset: usize,
    messages_limit: usize,
}

/// Which messages somebody wants to see.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    pub(crate) offset: usize,
    pub(crate) limit: usize,
}

impl Page {
    pub(crate) fn of(parameters: &Parameters) -> Result<Page, Problem> {
        Ok(Page { offset: parameters.offset("offset")?, limit: parameters.limit_or("limit", 200)? })
    }

    fn within(self, total: usize) -> Range<usize> {
        let start = self.offset.min(total);
        start..start.saturating_add(self.limit).min(total)
    }
}

/// Reads what was asked. Nothing of it is kept or logged.
pub(crate) async fn sent<B: Body<Data = Bytes>>(
    headers: &HeaderMap,
    body: B,
    settings: &Settings,
) -> Result<Sent, Problem> {
    if Format::of(headers) != Some(Format::Json) {
        return Err(Problem::NotJson);
    }
    let most = settings.server.max_body.saturating_add(ENVELOPE_BYTES);
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let broken = Problem::Try("the body did not arrive whole".to_owned());
    let body = incoming::read(body, most, Problem::TryTooLong, broken).await?;
    serde_json::from_slice(&body).map_err(|error| {
        // Where, and not what: the parser's own words may quote what was sent.
        let (line, column) = (error.line(), error.column());
        Problem::Try(format!(
            "send `{{\"request\": …}}`, where the request is the body of a chat completion, with `route`, `strategy` and `policy` as texts \
             if they are to be others; this is not so at line {line}, column {column}"
        ))
    })
}

/// Works it out. This can take a while: not for the thread that answers probes.
pub(crate) fn explained(
    sent: &Sent,
    settings: &Settings,
    reader: &Reader,
    page: Page,
) -> Result<Explained, Problem> {
    let body = sent.request.get().as_bytes();
    if body.len() as u64 > settings.server.max_body {
        return Err(Problem::TryTooLong);
    }
    let outline = reader.outline(Dialect::Chat, body).map_err(|error| unreadable(body, &error))?;
    let asked = outline.model.as_deref();
    let route = match &sent.route {
        None => chat_route(&settings.routes, asked),
        Some(name) => Some(settings.routes.iter().find(|route| route.name == *name).ok_or_else(|| {
            let names: Vec<&str> = settings.routes.iter().map(|route| route.name.as_str()).collect();
            Problem::NoRoute { routes: names.join(", ") }
        })?),
    };
    let Some(route) = route else {
        let sentence = "no route matches it: it would be forwarded to `default`, byte for byte as sent";
        let nothing = Explained::nothing(outline.messages.len(), page);
        return Ok(Explained { explanation: json::without_route(asked, sentence), ..nothing });
    };
    let edited = match &sent.policy {
        None => None,
        Some(text) => {
            let number = settings.routes.iter().position(|one| one.name == route.name).unwrap_or_default();
            let edited = settings.with_policy(number, &Source::new("policy", text.as_str()));
            Some(edited.map_err(|errors| Problem::Policy(errors.to_string()))?)
        }
    };
    let settings = edited.as_ref().unwrap_or(settings);
    // It is there: the same routes have the same names.
    let route = settings.routes.iter().find(|one| one.name == route.name).ok_or(Problem::Internal)?;
    let strategy = match &sent.strategy {
        None => route.context.strategy,
        Some(name) => strategy_named(name).ok_or_else(|| {
            let all = "passthrough, masking, summarization, hybrid, window";
            Problem::parameter("strategy", format!("is none of {all}"))
        })?,
    };
    let model = model_table(&settings.models).lookup(asked.unwrap_or_default());
    let request = Request { body, outline: &outline, settings, route, strategy, model: &model };
    let case = Case::unseen(reader, request).map_err(|failure| match failure {
        Failure::Unreadable(error) => unreadable(body, &located(body, &outline, error)),
        Failure::Plan(_) => Problem::Internal,
    })?;
    Ok(Explained::of(&case, page))
}

impl Explained {
    /// Of messages that nobody looks at.
    pub(crate) fn nothing(messages_total: usize, page: Page) -> Explained {
        Explained {
            explanation: Value::Null,
            changes: Value::Array(Vec::new()),
            messages_total,
            messages_offset: page.offset,
            messages_limit: page.limit,
        }
    }

    pub(crate) fn of(case: &Case<'_>, page: Page) -> Explained {
        let range = page.within(case.fates.len());
        Explained {
            explanation: json::page(case, &range),
            changes: json::changes(&case.changes_within(&range)),
            ..Explained::nothing(case.fates.len(), page)
        }
    }
}

fn unreadable(body: &[u8], error: &Unreadable) -> Problem {
    Problem::Try(format!("`request` is not the body of a chat completion: {error}{}", place(body, error)))
}
