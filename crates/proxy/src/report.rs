//! The headers in which an answer says what was done to its request.

use crate::identify::Identity;
use crate::rewrite::Rewritten;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use tidegate_config::strategy_name;
use tidegate_engine::{Plan, Strategy};
use tidegate_telemetry::names::header;

/// Why a request goes out as it came although its route has a strategy: its messages cannot be read.
pub(crate) const UNREADABLE: &str = "unreadable";

pub(crate) fn headers(
    route: &str,
    strategy: Strategy,
    identity: Option<&Identity>,
    rewritten: Option<&Rewritten>,
    degraded: Option<&'static str>,
) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(12);
    put(&mut headers, header::ROUTE, route);
    put(&mut headers, header::STRATEGY, strategy_name(strategy));
    if let Some(identity) = identity {
        put(&mut headers, header::CONVERSATION, &identity.name);
    }
    if let Some(rewritten) = rewritten {
        plan_headers(&mut headers, &rewritten.plan);
        if let Some(turns) = rewritten.stop_hint {
            put(&mut headers, header::STOP_HINT, &format!("plateau={turns}"));
        }
    }
    if let Some(reason) = degraded {
        put(&mut headers, header::DEGRADED, reason);
    }
    headers
}

pub(crate) fn plan_headers(headers: &mut HeaderMap, plan: &Plan) {
    put(headers, header::TOKENS_BEFORE, &plan.before.to_string());
    put(headers, header::TOKENS_AFTER, &plan.after.to_string());
    put(headers, header::BUDGET, &plan.budget.input.to_string());
    let folded = plan.folded.as_ref().map_or(0, |folded| folded.removed.len());
    let (masked, dropped) = (plan.masked.len(), plan.dropped.len());
    put(headers, header::EDITS, &format!("masked={masked},folded={folded},dropped={dropped}"));
    if let Some(cause) = plan.cause {
        put(headers, header::TRIGGER, cause.name());
    }
}

pub(crate) fn put(headers: &mut HeaderMap, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(HeaderName::from_static(name), value);
    }
}
