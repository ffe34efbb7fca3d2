//! Finds conversations. The store only looks up by key and lists by age; everything else is a bounded scan.

use crate::error::{ApiError, Candidate};
use crate::page::{ConversationPage, ConversationSummary};
use crate::sort::{Direction, Sort};
use std::collections::BTreeMap;
use tidegate_store::{ConversationKey, Conversations, Head};

/// Selects conversations. `None` matches any value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub tenant: Option<String>,
    pub name: Option<String>,
    pub route: Option<String>,
    pub model: Option<String>,
    pub strategy: Option<String>,
    /// Words that must all occur in the id or a label of the conversation, ignoring case.
    pub search: Option<String>,
    /// Only conversations whose last turn had a stop hint.
    pub with_hint: bool,
    /// Only conversations in which something went wrong.
    pub trouble: Option<Trouble>,
    /// Only conversations with a request since then, in milliseconds since 1970.
    pub since: u64,
    pub sort: Sort,
    pub direction: Direction,
}

/// What can go wrong in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    Any,
    Errors,
    Refusals,
    Degraded,
}

impl Trouble {
    pub(crate) const NAMES: [(&str, Option<Trouble>); 4] = [
        ("any", Some(Trouble::Any)),
        ("errors", Some(Trouble::Errors)),
        ("refusals", Some(Trouble::Refusals)),
        ("degraded", Some(Trouble::Degraded)),
    ];

    fn is_in(self, head: &Head) -> bool {
        let has = |count: &str| head.counts.get(count).is_some_and(|count| *count > 0);
        match self {
            Trouble::Any => has("errors") || has("refusals") || has("degraded"),
            Trouble::Errors => has("errors"),
            Trouble::Refusals => has("refusals"),
            Trouble::Degraded => has("degraded"),
        }
    }
}

/// The maximum number of conversations scanned per request. Clients continue from `next`.
const MAX_SCANNED: usize = 10_000;

/// The number of conversations fetched from the store at a time during a scan.
const SCAN_BATCH: usize = 2_500;

/// The minimum number of digits in an id prefix; shorter ones would match too many conversations.
const MIN_PREFIX: usize = 6;

pub(crate) async fn list(
    conversations: &Conversations,
    filter: &Filter,
    offset: usize,
    limit: usize,
) -> Result<ConversationPage, ApiError> {
    if *filter == Filter::default() {
        let listing = conversations.list(offset, limit).await?;
        let end = offset.saturating_add(listing.conversations.len());
        let next = (!listing.conversations.is_empty() && end < listing.total).then_some(end);
        let found: Vec<ConversationSummary> =
            listing.conversations.iter().map(|(key, head)| ConversationSummary::new(*key, head)).collect();
        let scanned = found.len();
        return Ok(ConversationPage {
            conversations: found,
            total: Some(listing.total),
            offset,
            limit,
            scanned,
            next,
        });
    }
    if (filter.sort, filter.direction) != (Sort::Last, Direction::Descending) {
        return sorted(conversations, filter, offset, limit).await;
    }
    let mut found = Vec::new();
    let matcher = Matcher::new(filter);
    let scan = scan(conversations, offset, |key, head| {
        if matcher.matches(key, head) {
            found.push(ConversationSummary::new(key, head));
        }
        found.len() < limit
    });
    let (scanned, next) = scan.await?;
    Ok(ConversationPage { conversations: found, total: None, offset, limit, scanned, next })
}

/// A page of all matches among the newest conversations, sorted.
async fn sorted(
    conversations: &Conversations,
    filter: &Filter,
    offset: usize,
    limit: usize,
) -> Result<ConversationPage, ApiError> {
    let mut found = Vec::new();
    let matcher = Matcher::new(filter);
    let scan = scan(conversations, 0, |key, head| {
        if matcher.matches(key, head) {
            found.push(ConversationSummary::new(key, head));
        }
        true
    });
    let (scanned, _) = scan.await?;
    filter.sort.sort(filter.direction, &mut found);
    let end = offset.saturating_add(limit);
    let next = (end < found.len()).then_some(end);
    let page = found.into_iter().skip(offset).take(limit).collect();
    Ok(ConversationPage { conversations: page, total: None, offset, limit, scanned, next })
}

/// Finds the conversation that `id` names: its key, a prefix of its key, or its name.
///
/// A full key takes precedence, so that a client cannot impersonate a conversation by using its key as a
/// name. A prefix or name must be unambiguous.
pub(crate) async fn find_one(
    conversations: &Conversations,
    id: &str,
    tenant: Option<&str>,
) -> Result<(ConversationKey, Head), ApiError> {
    if let Some(found) = find_by_key(conversations, id, tenant).await? {
        return Ok(found);
    }
    let prefix = id.to_ascii_lowercase();
    let is_prefix = id.len() >= MIN_PREFIX && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let filter = Filter { tenant: tenant.map(str::to_owned), ..Filter::default() };
    let matcher = Matcher::new(&filter);
    let mut found = BTreeMap::new();
    let scan = scan(conversations, 0, |key, head| {
        let is_named = head.labels.get("name").is_some_and(|name| name == id)
            || (is_prefix && key.to_string().starts_with(&prefix));
        if is_named && matcher.matches(key, head) {
            found.insert(key, head.clone());
        }
        true
    });
    let (scanned, next) = scan.await?;
    match found.len() {
        0 if next.is_some() => Err(ApiError::NotAmongNewest { scanned }),
        0 | 1 => found.pop_first().ok_or(ApiError::ConversationNotFound),
        _ => Err(ApiError::AmbiguousId { candidates: found.iter().map(candidate).collect() }),
    }
}

/// Returns the conversation whose full key is `id`, if it exists and belongs to the tenant.
pub(crate) async fn find_by_key(
    conversations: &Conversations,
    id: &str,
    tenant: Option<&str>,
) -> Result<Option<(ConversationKey, Head)>, ApiError> {
    let Ok(key) = id.parse::<ConversationKey>() else { return Ok(None) };
    let filter = Filter { tenant: tenant.map(str::to_owned), ..Filter::default() };
    let head = conversations.head(key).await?;
    Ok(head.filter(|head| Matcher::new(&filter).matches(key, head)).map(|head| (key, head)))
}

/// A filter with its search words prepared once for a whole scan.
struct Matcher<'a> {
    filter: &'a Filter,
    words: Vec<String>,
}

impl<'a> Matcher<'a> {
    fn new(filter: &'a Filter) -> Matcher<'a> {
        let words = filter.search.as_deref().unwrap_or_default().split_whitespace();
        Matcher { filter, words: words.map(str::to_lowercase).collect() }
    }

    fn matches(&self, key: ConversationKey, head: &Head) -> bool {
        let Filter { tenant, name, route, model, strategy, search: _, with_hint, trouble, since, .. } =
            self.filter;
        let is = |label, wanted: &Option<String>| {
            wanted.as_ref().is_none_or(|wanted| head.labels.get(label) == Some(wanted))
        };
        is("tenant", tenant)
            && is("name", name)
            && is("route", route)
            && is("model", model)
            && is("strategy", strategy)
            && head.last >= *since
            && trouble.is_none_or(|trouble| trouble.is_in(head))
            && (!with_hint || head.labels.get("stop_hint").is_some_and(|hint| !hint.is_empty()))
            && self.has_words(key, head)
    }

    fn has_words(&self, key: ConversationKey, head: &Head) -> bool {
        if self.words.is_empty() {
            return true;
        }
        let labels =
            ["name", "tenant", "route", "model", "strategy"].iter().filter_map(|name| head.labels.get(*name));
        let mut texts: Vec<String> = labels.map(|label| label.to_lowercase()).collect();
        texts.push(key.to_string());
        self.words.iter().all(|word| texts.iter().any(|text| text.contains(word)))
    }
}

fn candidate((key, head): (&ConversationKey, &Head)) -> Candidate {
    let tenant = head.labels.get("tenant").cloned().unwrap_or_default();
    Candidate { id: key.to_string(), tenant }
}

/// Calls `visit` for conversations, newest first, until it returns `false` or [`MAX_SCANNED`] is reached.
/// Returns the number visited and the offset to continue from.
async fn scan(
    conversations: &Conversations,
    offset: usize,
    mut visit: impl FnMut(ConversationKey, &Head) -> bool,
) -> Result<(usize, Option<usize>), ApiError> {
    let mut scanned = 0;
    loop {
        let start = offset.saturating_add(scanned);
        let listing = conversations.list(start, SCAN_BATCH).await?;
        if listing.conversations.is_empty() {
            return Ok((scanned, None));
        }
        for (key, head) in &listing.conversations {
            scanned += 1;
            if !visit(*key, head) || scanned == MAX_SCANNED {
                let next = offset.saturating_add(scanned);
                return Ok((scanned, (next < listing.total).then_some(next)));
            }
        }
    }
}
