//! Chooses the API key for a summarizer.

use crate::transport::upstream::{BearerError, Prepared, bearer};
use http::HeaderMap;
use http::header::{AUTHORIZATION, HeaderValue};
use std::sync::Arc;
use thiserror::Error;
use tidegate_config::{LlmSummarizer, Upstream};

/// The client's key from a request, and the upstream that the request goes to.
#[derive(Clone, Debug)]
pub(crate) struct CallerKey {
    authorization: Option<HeaderValue>,
    upstream: Arc<Upstream>,
}

impl CallerKey {
    /// `upstream` is that of the request's route.
    pub(crate) fn of(headers: &HeaderMap, upstream: &Arc<Upstream>) -> CallerKey {
        let mut authorization = headers.get(AUTHORIZATION).cloned();
        if let Some(key) = &mut authorization {
            // Keeps the key out of debug output.
            key.set_sensitive(true);
        }
        CallerKey { authorization, upstream: upstream.clone() }
    }
}

/// Why a summarizer's own key cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum KeyError {
    #[error("`summarizers.{summarizer}.api_key_env` names `{variable}`, which is not set")]
    Missing { summarizer: String, variable: String },
    #[error(
        "the key in `{variable}` for `summarizers.{summarizer}` contains characters that are not allowed in a header"
    )]
    Unusable { summarizer: String, variable: String },
}

/// Returns the summarizer's own key, or `None` if it has no `api_key_env`.
pub(crate) fn own_key(llm: &LlmSummarizer) -> Result<Option<HeaderValue>, KeyError> {
    let Some(variable) = &llm.api_key_env else { return Ok(None) };
    let (summarizer, variable) = (llm.name.clone(), variable.clone());
    bearer(&variable).map(Some).map_err(|error| match error {
        BearerError::NotSet => KeyError::Missing { summarizer, variable },
        BearerError::Invalid => KeyError::Unusable { summarizer, variable },
    })
}

/// Returns the key to send: the summarizer's own, else its upstream's, else the caller's. A caller's key is sent to another
/// upstream than its request's only if the operator allows it, because whoever runs that host could use it.
pub(super) fn authorization(
    llm: &LlmSummarizer,
    upstream: &Prepared,
    caller: &CallerKey,
) -> Result<Option<HeaderValue>, KeyError> {
    if let Some(key) = own_key(llm)? {
        return Ok(Some(key));
    }
    if let Some(key) = &upstream.key {
        return Ok(Some(key.bearer.clone()));
    }
    // Compares all settings, not only the name: after a reload the same name may mean another host.
    let is_same_upstream = *upstream.settings == *caller.upstream;
    Ok(caller.authorization.clone().filter(|_| is_same_upstream || llm.forward_key))
}
