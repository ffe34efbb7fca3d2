//! Runs a summarizer: the built-in one, or a model behind an upstream.
//!
//! The caller passes the messages to fold and a deadline, and gets a summary or a [`Failure`]. Nothing here decides what to fold,
//! stores anything or logs. Requests go through the worker's own clients. Counting tokens and parsing text runs off the worker.
//!
//! `passes` splits the material into prompts that fit the model's window. `ask` sends one of them in a `dialect` that the
//! endpoint supports, with the `key` that it may have.

mod ask;
mod dialect;
mod failure;
pub(crate) mod key;
mod off_worker;
mod passes;
mod spent;

#[cfg(test)]
mod tests;

pub(crate) use self::failure::Failure;
pub(crate) use self::key::CallerKey;
pub(crate) use self::spent::Spent;

use self::ask::{Endpoint, ask};
use self::failure::Cause;
use self::off_worker::off_worker;
use self::passes::{Passes, Room};
use crate::host::heavy::Lane;
use crate::host::snapshot::Snapshot;
use crate::transport::client::Clients;
use std::sync::Arc;
use tidegate_config::{LlmSummarizer, Summarizer};
use tidegate_context::Material;
use tidegate_summary::{Summary, keep};
use tokio::time::{Instant, timeout_at};

/// A finished summary.
#[derive(Clone, Debug)]
pub(crate) struct Summarized {
    /// Empty if the built-in summarizer found nothing worth keeping. A model's summary is never empty.
    pub(crate) summary: Summary,
    pub(crate) spent: Spent,
    /// The model that wrote it, or `extractive`.
    pub(crate) model: String,
}

/// Summarizes the material before the deadline.
///
/// The summarizer must be one of the snapshot's. Must be called on the worker that owns the clients.
pub(crate) async fn summarize(
    (clients, lane): (&Clients, &Lane),
    snapshot: &Snapshot,
    summarizer: &Summarizer,
    material: Material,
    caller: &CallerKey,
    deadline: Instant,
) -> Result<Summarized, Failure> {
    let mut spent = Spent::default();
    let work = async {
        match summarizer {
            Summarizer::Extractive => extractive(lane, material).await,
            Summarizer::Llm(llm) => {
                let key = key::authorization(llm, snapshot.prepared(&llm.upstream), caller)?;
                let upstream = snapshot.prepared(&llm.upstream);
                let endpoint = Endpoint { clients, lane, upstream, llm, key, deadline };
                with_model(&endpoint, snapshot, material, &mut spent).await
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

async fn extractive(lane: &Lane, material: Material) -> Result<Summary, Cause> {
    off_worker(lane, move || material.extract()).await
}

/// Summarizes the material pass by pass. Each pass extends the summary of the previous one, and a failure in any pass fails the
/// whole.
async fn with_model(
    endpoint: &Endpoint<'_>,
    snapshot: &Snapshot,
    material: Material,
    spent: &mut Spent,
) -> Result<Summary, Cause> {
    let room = room(endpoint.llm, snapshot);
    let mut state = material.previous.clone();
    let passes = off_worker(endpoint.lane, move || Passes::new(material, room)).await?;
    let passes = Arc::new(passes);
    let mut from = 0;
    while from < passes.len() {
        let next = (passes.clone(), state.clone());
        let pass = off_worker(endpoint.lane, move || next.0.pass(next.1, from)).await??;
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
        window: llm.window.or(model.window.tokens()),
        max_output: model.max_output,
        encoding: model.encoding,
        fit: model.fit,
        tool_output_chars: usize::try_from(llm.max_tool_output.get()).unwrap_or(usize::MAX),
    }
}
