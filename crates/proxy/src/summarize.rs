//! Runs a summarizer: the built-in one, or a model behind an upstream.
//!
//! Whoever folds hands over the messages that leave and a deadline, and gets a summary or the reason why there is none. Nothing here
//! decides what to fold, stores anything or logs: that is the caller's. The network is reached through the worker's own
//! clients; everything that counts or reads text runs off the worker.
//!
//! `passes` cuts the material into questions that fit the model's window, `ask` puts one of them to the endpoint in a
//! `dialect` that it understands and with a `key` that it may have.

mod ask;
mod dialect;
mod failure;
mod key;
mod passes;
mod source;

#[cfg(test)]
mod tests;

pub(crate) use self::failure::{Cause, Failure};
pub(crate) use self::key::{CallerKey, own_key};
pub(crate) use self::source::{OwnedSource, OwnedSpeaker};

use self::ask::{Endpoint, ask};
use self::passes::{Passes, Room};
use crate::gate::Snapshot;
use crate::upstream::Clients;
use std::sync::Arc;
use tidegate_config::{LlmSummarizer, Summarizer};
use tidegate_summary::{Source, Summary, extract, keep};
use tidegate_wire::Usage;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};

/// What a summary is made of.
#[derive(Clone, Debug)]
pub(crate) struct Material {
    /// The summary that the new one replaces.
    pub(crate) previous: Option<Summary>,
    /// The messages that leave the context, in their order.
    pub(crate) sources: Vec<OwnedSource>,
    /// About how long the summary may get. It can still come out longer: whoever renders it caps it.
    pub(crate) max_tokens: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Summarized {
    /// May be empty where the built-in summarizer found nothing worth keeping; a model's never is.
    pub(crate) summary: Summary,
    pub(crate) spent: Spent,
    /// Who wrote it: the model, or `extractive`.
    pub(crate) model: String,
}

/// What a summary cost, whether or not there is one in the end. Where the endpoint does not say, it is our own count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    pub(crate) usage: Usage,
    /// How many requests were sent.
    pub(crate) calls: u32,
}

impl Spent {
    fn add(&mut self, usage: Usage) {
        let sum = &mut self.usage;
        // What an endpoint reports is any number.
        sum.prompt_tokens = sum.prompt_tokens.saturating_add(usage.prompt_tokens);
        sum.completion_tokens = sum.completion_tokens.saturating_add(usage.completion_tokens);
        sum.cached_tokens = sum.cached_tokens.saturating_add(usage.cached_tokens);
        sum.reasoning_tokens = sum.reasoning_tokens.saturating_add(usage.reasoning_tokens);
    }
}

/// Summarizes the material, or says why not, by the deadline at the latest.
///
/// The summarizer must be one of the snapshot's. [`Summarizer::timeout`] says how long it may take. Must be called on the worker
/// that owns the clients.
pub(crate) async fn summarize(
    clients: &Clients,
    snapshot: &Snapshot,
    summarizer: &Summarizer,
    material: Material,
    caller: &CallerKey,
    deadline: Instant,
) -> Result<Summarized, Failure> {
    let mut spent = Spent::default();
    let work = async {
        match summarizer {
            Summarizer::Extractive => extractive(material).await,
            Summarizer::Llm(llm) => {
                let key = key::authorization(llm, snapshot.prepared(&llm.upstream), caller)?;
                let endpoint =
                    Endpoint { clients, upstream: snapshot.prepared(&llm.upstream), llm, key, deadline };
                fold(&endpoint, snapshot, material, &mut spent).await
            }
        }
    };
    let made = timeout_at(deadline, work).await.unwrap_or(Err(Cause::Timeout));
    match made {
        Ok(summary) => Ok(Summarized { summary, spent, model: author(summarizer).to_owned() }),
        Err(cause) => Err(Failure { cause, spent }),
    }
}

fn author(summarizer: &Summarizer) -> &str {
    match summarizer {
        Summarizer::Extractive => "extractive",
        Summarizer::Llm(llm) => &llm.model,
    }
}

async fn extractive(material: Material) -> Result<Summary, Cause> {
    off_worker(move || {
        let sources: Vec<Source<'_>> = material.sources.iter().map(OwnedSource::borrowed).collect();
        let max_tokens = u32::try_from(material.max_tokens).unwrap_or(u32::MAX);
        extract(material.previous.as_ref(), &sources, max_tokens)
    })
    .await
}

/// Folds the material pass by pass, each from the summary that the one before it made. There is no half of a summary: what
/// fails in any pass fails the whole.
async fn fold(
    endpoint: &Endpoint<'_>,
    snapshot: &Snapshot,
    material: Material,
    spent: &mut Spent,
) -> Result<Summary, Cause> {
    let room = room(endpoint.llm, snapshot);
    let mut state = material.previous.clone();
    let passes = off_worker(move || Passes::new(material, room)).await?;
    let passes = Arc::new(passes);
    let mut from = 0;
    while from < passes.len() {
        let next = (passes.clone(), state.clone());
        let pass = off_worker(move || next.0.pass(next.1, from)).await??;
        from = pass.end;
        let made = ask(endpoint, &passes, Arc::new(pass), spent).await?;
        state = Some(match &state {
            Some(before) => keep(before, made),
            None => made,
        });
    }
    Ok(state.unwrap_or_default())
}

fn room(llm: &LlmSummarizer, snapshot: &Snapshot) -> Room {
    let model = snapshot.models.lookup(&llm.model);
    Room {
        window: llm.window.or(model.window),
        max_output: model.max_output,
        encoding: model.encoding,
        fit: model.fit,
        tool_output_chars: usize::try_from(llm.max_tool_output.get()).unwrap_or(usize::MAX),
    }
}

/// Runs what counts or reads text where nobody waits for it. A panic there costs the summary and not the request.
async fn off_worker<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Cause> {
    spawn_blocking(work).await.map_err(|_| Cause::Crashed)
}
