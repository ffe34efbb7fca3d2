//! The response headers that say what was done to a request.

use crate::reply::policy_code;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use tidegate_config::strategy_name;
use tidegate_context::Figures;
use tidegate_engine::Strategy;
use tidegate_telemetry::names::header;

/// The headers of a request that a route manages. `figures` are absent if it was not measured.
pub(crate) fn turn_headers(
    route: &str,
    strategy: Strategy,
    conversation: Option<&str>,
    figures: Option<&Figures>,
    degraded: Option<&'static str>,
    overhead_us: u64,
) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(12);
    put(&mut headers, header::ROUTE, route);
    put(&mut headers, header::STRATEGY, strategy_name(strategy));
    if let Some(conversation) = conversation {
        put(&mut headers, header::CONVERSATION, conversation);
    }
    if let Some(figures) = figures {
        figure_headers(&mut headers, figures);
        observe_headers(&mut headers, figures);
        if let Some(turns) = figures.stop_hint {
            put(&mut headers, header::STOP_HINT, &format!("plateau={turns}"));
        }
    }
    if let Some(reason) = degraded {
        put(&mut headers, header::DEGRADED, reason);
    }
    put(&mut headers, header::OVERHEAD, &overhead_us.to_string());
    headers
}

pub(crate) fn figure_headers(headers: &mut HeaderMap, figures: &Figures) {
    let Figures {
        before,
        after,
        budget,
        masked,
        trimmed,
        folded,
        dropped,
        recalled,
        is_native,
        is_left_alone,
        bound,
        continues_upstream,
        ..
    } = figures;
    put(headers, header::TOKENS_BEFORE, &before.to_string());
    put(headers, header::TOKENS_AFTER, &after.to_string());
    put(headers, header::BUDGET, &budget.input.map_or_else(|| "none".to_owned(), |input| input.to_string()));
    if *is_native {
        put(headers, header::EDITS, "native");
    } else if *is_left_alone {
        put(headers, header::EDITS, "left_alone");
    } else {
        // Only where there are any, so that a client that knows the three others is not surprised.
        let recalled = if *recalled > 0 { format!(",recalled={recalled}") } else { String::new() };
        let bound = if *bound > 0 { format!(",bound={bound}") } else { String::new() };
        let trimmed = trimmed.map_or_else(String::new, |trimmed| format!("trimmed={trimmed},"));
        let edits = format!("masked={masked},{trimmed}folded={folded},dropped={dropped}{recalled}{bound}");
        put(headers, header::EDITS, &edits);
    }
    if *continues_upstream {
        put(headers, header::HISTORY, "upstream");
    }
    if let Some(cause) = figures.trigger {
        put(headers, header::TRIGGER, cause.name());
    }
}

/// Marks a plan that was not applied.
fn observe_headers(headers: &mut HeaderMap, figures: &Figures) {
    if figures.observed {
        put(headers, header::OBSERVE, "1");
    }
    if figures.would_refuse() {
        let code = figures.limit.as_ref().map_or(policy_code::OVER_BUDGET, policy_code::of_limit);
        put(headers, header::WOULD_REFUSE, code);
    }
}

pub(crate) fn put(headers: &mut HeaderMap, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(HeaderName::from_static(name), value);
    }
}
