//! The conversations API, called over HTTP by the router and in process by [`Source`](crate::Source).

use crate::error::ApiError;
use crate::explain::PageParams;
use crate::find::{self, Filter, Trouble};
use crate::page::{
    ConversationSummary, FoldEntry, MemoryPage, MessageEntry, MessagePage, TurnPage, UnreadableCounts,
};
use crate::response::FullResponse;
use crate::sort::{Direction, Sort};
use crate::target::{QueryParams, Target, Verb};
use crate::turn::TurnInputs;
use crate::{branch, memory, response};
use bytes::Bytes;
use http::{Request, StatusCode, Uri};
use hyper::body::Body;
use std::sync::Arc;
use tidegate_config::Settings;
use tidegate_context::decode_turns;
use tidegate_store::Conversations;
use tidegate_wire::Reader;
use tokio::sync::Semaphore;

type ApiResult = Result<FullResponse, ApiError>;

/// What is needed to explain a turn. A serving process has it; a command that opened a store does not.
#[derive(Clone, Debug)]
pub(crate) struct Explainer {
    pub(crate) settings: Arc<Settings>,
    pub(crate) reader: Arc<Reader>,
    /// Limits concurrent explanations.
    pub(crate) cpu_permits: Arc<Semaphore>,
}

/// Handles an authorized request. Authorization happens in the router.
pub(crate) async fn handle<B: Body<Data = Bytes>>(
    conversations: &Arc<Conversations>,
    explainer: Option<Explainer>,
    request: Request<B>,
) -> ApiResult {
    let uri = request.uri();
    let target = Target::parse(uri.path())?;
    match (Verb::parse(request.method(), target.allow())?, target) {
        (Verb::Read, Target::List) => list_conversations(conversations, uri).await,
        (Verb::Read, Target::Conversation(id)) => get_conversation(conversations, &id, uri).await,
        (Verb::Read, Target::Turn(id, number)) => {
            let explainer = explainer.ok_or(ApiError::UnknownPath)?;
            get_turn(conversations, explainer, &id, number, uri).await
        }
        (Verb::Read, Target::Messages(id)) => list_messages(conversations, &id, uri).await,
        (Verb::Read, Target::Export(id)) => export(conversations, &id, uri).await,
        (Verb::Read, Target::Memory(id)) => get_memory(conversations, &id, uri).await,
        (Verb::Replace, Target::Memory(id)) => put_memory(conversations, &id, request).await,
        (Verb::Delete, Target::Memory(id)) => delete_memory(conversations, &id, uri).await,
        (Verb::Delete, Target::Conversation(id)) => delete_conversation(conversations, &id, uri).await,
        // Unreachable: `Verb::parse` has already rejected methods that the target does not allow.
        (Verb::Replace | Verb::Delete, target) => Err(ApiError::MethodNotAllowed { allow: target.allow() }),
    }
}

async fn list_conversations(conversations: &Conversations, uri: &Uri) -> ApiResult {
    let known = [
        "offset", "limit", "tenant", "name", "route", "model", "strategy", "search", "hint", "trouble",
        "since", "sort", "order",
    ];
    let parameters = QueryParams::parse(uri, &known)?;
    let text = |name| Ok::<_, ApiError>(parameters.text(name)?.map(str::to_owned));
    let filter = Filter {
        tenant: text("tenant")?,
        name: text("name")?,
        route: text("route")?,
        model: text("model")?,
        strategy: text("strategy")?,
        search: text("search")?,
        with_hint: parameters.choice("hint", &[("0", false), ("1", true)])?,
        trouble: parameters.choice("trouble", &Trouble::NAMES)?,
        since: parameters.offset("since")? as u64,
        sort: parameters.choice("sort", &Sort::NAMES)?,
        direction: parameters.choice("order", &Direction::NAMES)?,
    };
    let (offset, limit) = (parameters.offset("offset")?, parameters.limit("limit")?);
    response::json(&find::list(conversations, &filter, offset, limit).await?)
}

async fn get_conversation(conversations: &Arc<Conversations>, id: &str, uri: &Uri) -> ApiResult {
    let parameters = QueryParams::parse(uri, &["tenant", "turns_offset", "turns_limit"])?;
    let (offset, limit) = (parameters.offset("turns_offset")?, parameters.limit("turns_limit")?);
    let (key, head) = find::find_one(conversations, id, parameters.text("tenant")?).await?;
    let turns = decode_turns(&conversations.turns(key).await?);
    let memory = MemoryPage::new(conversations.pinned(key).await?);
    let recalled = conversations.recall(key).await;
    response::json(&TurnPage {
        conversation: ConversationSummary::new(key, &head),
        memory,
        turns_total: turns.len(),
        turns: turns.into_iter().skip(offset).take(limit).collect(),
        turns_offset: offset,
        turns_limit: limit,
        summaries: recalled.folds.iter().map(FoldEntry::new).collect(),
        summaries_degraded: recalled.degraded.map(|degraded| degraded.reason().to_owned()),
    })
}

async fn get_turn(
    conversations: &Arc<Conversations>,
    explainer: Explainer,
    id: &str,
    number: usize,
    uri: &Uri,
) -> ApiResult {
    let parameters = QueryParams::parse(uri, &["tenant", "offset", "limit"])?;
    let page = PageParams::parse(&parameters)?;
    let (key, head) = find::find_one(conversations, id, parameters.text("tenant")?).await?;
    let Explainer { settings, reader, cpu_permits } = explainer;
    let permit = cpu_permits.acquire_owned().await;
    let inputs = TurnInputs {
        conversation: ConversationSummary::new(key, &head),
        turns: decode_turns(&conversations.turns(key).await?),
        recalled: conversations.recall(key).await,
        timeline: match conversations.records_messages() {
            true => Some(conversations.timeline(key).await?),
            false => None,
        },
    };
    run_blocking(move || {
        // Held by the task itself: if the client disconnects, the work still runs to its end.
        let _permit = permit;
        response::json(&inputs.explain(number, page, &settings, &reader)?)
    })
    .await
}

async fn list_messages(conversations: &Arc<Conversations>, id: &str, uri: &Uri) -> ApiResult {
    let parameters = QueryParams::parse(uri, &["tenant", "offset", "limit"])?;
    let (offset, limit) = (parameters.offset("offset")?, parameters.limit("limit")?);
    let (key, _) = find::find_one(conversations, id, parameters.text("tenant")?).await?;
    let timeline = conversations.timeline(key).await?;
    let recorded = conversations.records_messages();
    run_blocking(move || {
        let page = timeline.messages.iter().skip(offset).take(limit);
        response::json(&MessagePage {
            messages: page.map(MessageEntry::new).collect(),
            total: timeline.messages.len(),
            offset,
            limit,
            recorded,
            unreadable: UnreadableCounts::new(&timeline.unreadable),
        })
    })
    .await
}

async fn export(conversations: &Arc<Conversations>, id: &str, uri: &Uri) -> ApiResult {
    let parameters = QueryParams::parse(uri, &["tenant"])?;
    let (key, head) = find::find_one(conversations, id, parameters.text("tenant")?).await?;
    let timeline = conversations.timeline(key).await?;
    let memory = conversations.pinned(key).await?.text;
    let summary = ConversationSummary::new(key, &head);
    run_blocking(move || {
        let lines = branch::export_lines(&summary, memory.as_deref(), &timeline.messages)
            .map_err(|_| ApiError::Internal)?;
        Ok(response::with_body(StatusCode::OK, response::NDJSON, lines))
    })
    .await
}

async fn get_memory(conversations: &Conversations, id: &str, uri: &Uri) -> ApiResult {
    let parameters = QueryParams::parse(uri, &["tenant"])?;
    let (key, _) = find::find_one(conversations, id, parameters.text("tenant")?).await?;
    response::json(&MemoryPage::new(conversations.pinned(key).await?))
}

/// Reads the body before looking up the conversation, so that a slow upload cannot pin to a conversation
/// deleted meanwhile.
async fn put_memory<B: Body<Data = Bytes>>(
    conversations: &Conversations,
    id: &str,
    request: Request<B>,
) -> ApiResult {
    let (head, body) = request.into_parts();
    let parameters = QueryParams::parse(&head.uri, &["tenant"])?;
    let text = memory::read_body(&head.headers, body).await?;
    let (key, head) = find::find_one(conversations, id, parameters.text("tenant")?).await?;
    if head.labels.get("unnamed").is_some_and(|unnamed| unnamed == "1") {
        return Err(ApiError::UnnamedConversation);
    }
    conversations.pin(key, Some(&text)).await?;
    Ok(response::no_content())
}

async fn delete_memory(conversations: &Conversations, id: &str, uri: &Uri) -> ApiResult {
    let parameters = QueryParams::parse(uri, &["tenant"])?;
    let (key, _) = find::find_one(conversations, id, parameters.text("tenant")?).await?;
    conversations.pin(key, None).await?;
    Ok(response::no_content())
}

async fn delete_conversation(conversations: &Conversations, id: &str, uri: &Uri) -> ApiResult {
    let parameters = QueryParams::parse(uri, &["tenant"])?;
    let tenant = parameters.text("tenant")?;
    let key = id.parse().map_err(|_| ApiError::FullIdRequired)?;
    if tenant.is_some() {
        find::find_by_key(conversations, id, tenant).await?.ok_or(ApiError::ConversationNotFound)?;
    }
    if conversations.delete(key).await? {
        Ok(response::no_content())
    } else {
        Err(ApiError::ConversationNotFound)
    }
}

/// Builds a possibly large response on a blocking thread: the admin thread must stay free to answer probes.
pub(crate) async fn run_blocking(build: impl FnOnce() -> ApiResult + Send + 'static) -> ApiResult {
    tokio::task::spawn_blocking(build).await.unwrap_or(Err(ApiError::Internal))
}
