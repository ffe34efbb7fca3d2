//! The conversations, over HTTP and in the process alike.

use crate::find::{self, Filter};
use crate::page::{FoldEntry, MemoryPage, MessageEntry, MessagePage, Summary, TurnPage, Unreadable};
use crate::problem::Problem;
use crate::reply::Answer as Reply;
use crate::target::{Parameters, Target, Verb};
use crate::try_it::Page;
use crate::turn::Found;
use crate::{branch, memory, reply};
use bytes::Bytes;
use http::{Request, StatusCode, Uri};
use hyper::body::Body;
use std::sync::Arc;
use tidegate_config::Settings;
use tidegate_store::Conversations;
use tidegate_wire::Reader;
use tokio::sync::Semaphore;

type Answer = Result<Reply, Problem>;

/// What a turn is explained by: a process has it, and a store that a command has opened does not.
#[derive(Clone, Debug)]
pub(crate) struct Explainer {
    pub(crate) settings: Arc<Settings>,
    pub(crate) reader: Arc<Reader>,
    /// Who may have something worked out at once.
    pub(crate) thinkers: Arc<Semaphore>,
}

/// The answer to a request that may be asked. Who asks is no matter here.
pub(crate) async fn answer<B: Body<Data = Bytes>>(
    conversations: &Arc<Conversations>,
    explainer: Option<Explainer>,
    request: Request<B>,
) -> Answer {
    let uri = request.uri();
    let target = Target::of(uri.path())?;
    match (Verb::of(request.method(), target.allow())?, target) {
        (Verb::Read, Target::List) => list(conversations, uri).await,
        (Verb::Read, Target::Conversation(id)) => conversation(conversations, &id, uri).await,
        (Verb::Read, Target::Turn(id, number)) => {
            let explainer = explainer.ok_or(Problem::UnknownPath)?;
            turn(conversations, explainer, &id, number, uri).await
        }
        (Verb::Read, Target::Messages(id)) => messages(conversations, &id, uri).await,
        (Verb::Read, Target::Export(id)) => export(conversations, &id, uri).await,
        (Verb::Read, Target::Memory(id)) => pinned(conversations, &id, uri).await,
        (Verb::Replace, Target::Memory(id)) => pin(conversations, &id, request).await,
        (Verb::Delete, Target::Memory(id)) => unpin(conversations, &id, uri).await,
        (Verb::Delete, Target::Conversation(id)) => delete(conversations, &id, uri).await,
        // No other target allows it.
        (Verb::Replace | Verb::Delete, target) => Err(Problem::Method { allow: target.allow() }),
    }
}

async fn list(conversations: &Conversations, uri: &Uri) -> Answer {
    let known = ["offset", "limit", "tenant", "name", "route", "model", "strategy", "search", "hint"];
    let parameters = Parameters::of(uri, &known)?;
    let given = |name| Ok::<_, Problem>(parameters.text(name)?.map(str::to_owned));
    let filter = Filter {
        tenant: given("tenant")?,
        name: given("name")?,
        route: given("route")?,
        model: given("model")?,
        strategy: given("strategy")?,
        search: given("search")?,
        with_hint: parameters.choice("hint", &[("0", false), ("1", true)])?,
    };
    let (offset, limit) = (parameters.offset("offset")?, parameters.limit("limit")?);
    reply::json(&find::list(conversations, &filter, offset, limit).await?)
}

async fn conversation(conversations: &Arc<Conversations>, id: &str, uri: &Uri) -> Answer {
    let parameters = Parameters::of(uri, &["tenant", "turns_offset", "turns_limit"])?;
    let (offset, limit) = (parameters.offset("turns_offset")?, parameters.limit("turns_limit")?);
    let (key, head) = find::one(conversations, id, parameters.text("tenant")?).await?;
    let turns = conversations.turns(key).await?;
    let memory = MemoryPage::of(conversations.pinned(key).await?);
    let recalled = conversations.recall(key).await;
    reply::json(&TurnPage {
        conversation: Summary::of(key, &head),
        memory,
        turns_total: turns.len(),
        turns: turns.into_iter().skip(offset).take(limit).collect(),
        turns_offset: offset,
        turns_limit: limit,
        summaries: recalled.folds.iter().map(FoldEntry::of).collect(),
        summaries_degraded: recalled.degraded.map(|degraded| degraded.reason().to_owned()),
    })
}

async fn turn(
    conversations: &Arc<Conversations>,
    explainer: Explainer,
    id: &str,
    number: usize,
    uri: &Uri,
) -> Answer {
    let parameters = Parameters::of(uri, &["tenant", "offset", "limit"])?;
    let page = Page::of(&parameters)?;
    let (key, head) = find::one(conversations, id, parameters.text("tenant")?).await?;
    let Explainer { settings, reader, thinkers } = explainer;
    let place = thinkers.acquire_owned().await;
    let found = Found {
        conversation: Summary::of(key, &head),
        turns: conversations.turns(key).await?,
        recalled: conversations.recall(key).await,
        timeline: match conversations.records_messages() {
            true => Some(conversations.timeline(key).await?),
            false => None,
        },
    };
    aside(move || {
        // Who asked may be gone by now; the work is not, and keeps its place.
        let _place = place;
        reply::json(&found.detail(number, page, &settings, &reader)?)
    })
    .await
}

async fn messages(conversations: &Conversations, id: &str, uri: &Uri) -> Answer {
    let parameters = Parameters::of(uri, &["tenant", "offset", "limit"])?;
    let (offset, limit) = (parameters.offset("offset")?, parameters.limit("limit")?);
    let (key, _) = find::one(conversations, id, parameters.text("tenant")?).await?;
    let timeline = conversations.timeline(key).await?;
    let recorded = conversations.records_messages();
    aside(move || {
        let page = timeline.messages.iter().skip(offset).take(limit);
        reply::json(&MessagePage {
            messages: page.map(MessageEntry::of).collect(),
            total: timeline.messages.len(),
            offset,
            limit,
            recorded,
            unreadable: Unreadable::of(&timeline.unreadable),
        })
    })
    .await
}

async fn export(conversations: &Conversations, id: &str, uri: &Uri) -> Answer {
    let parameters = Parameters::of(uri, &["tenant"])?;
    let (key, head) = find::one(conversations, id, parameters.text("tenant")?).await?;
    let timeline = conversations.timeline(key).await?;
    let memory = conversations.pinned(key).await?.text;
    let summary = Summary::of(key, &head);
    aside(move || {
        let lines =
            branch::lines(&summary, memory.as_deref(), &timeline.messages).map_err(|_| Problem::Internal)?;
        Ok(reply::of(StatusCode::OK, reply::LINES, lines))
    })
    .await
}

async fn pinned(conversations: &Conversations, id: &str, uri: &Uri) -> Answer {
    let parameters = Parameters::of(uri, &["tenant"])?;
    let (key, _) = find::one(conversations, id, parameters.text("tenant")?).await?;
    reply::json(&MemoryPage::of(conversations.pinned(key).await?))
}

/// The body is read before the conversation is looked for, so that a slow sender does not pin to one that has gone since.
async fn pin<B: Body<Data = Bytes>>(conversations: &Conversations, id: &str, request: Request<B>) -> Answer {
    let (head, body) = request.into_parts();
    let parameters = Parameters::of(&head.uri, &["tenant"])?;
    let text = memory::sent(&head.headers, body).await?;
    let (key, _) = find::one(conversations, id, parameters.text("tenant")?).await?;
    conversations.pin(key, Some(&text)).await?;
    Ok(reply::no_content())
}

async fn unpin(conversations: &Conversations, id: &str, uri: &Uri) -> Answer {
    let parameters = Parameters::of(uri, &["tenant"])?;
    let (key, _) = find::one(conversations, id, parameters.text("tenant")?).await?;
    conversations.pin(key, None).await?;
    Ok(reply::no_content())
}

async fn delete(conversations: &Conversations, id: &str, uri: &Uri) -> Answer {
    let parameters = Parameters::of(uri, &["tenant"])?;
    let tenant = parameters.text("tenant")?;
    let key = id.parse().map_err(|_| Problem::WholeId)?;
    if tenant.is_some() {
        find::by_key(conversations, id, tenant).await?.ok_or(Problem::NoConversation)?;
    }
    if conversations.delete(key).await? { Ok(reply::no_content()) } else { Err(Problem::NoConversation) }
}

/// Writes an answer that can be large where nobody waits: the same thread answers the probes.
pub(crate) async fn aside(write: impl FnOnce() -> Answer + Send + 'static) -> Answer {
    tokio::task::spawn_blocking(write).await.unwrap_or(Err(Problem::Internal))
}
