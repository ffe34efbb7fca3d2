//! Finding conversations in the store, which knows them by their key and by their age.

use crate::page::{ConversationPage, Summary};
use crate::problem::{Candidate, Problem};
use std::collections::BTreeMap;
use tidegate_store::{ConversationKey, Conversations, Head};

/// Which conversations are wanted. What is not given is any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub tenant: Option<String>,
    pub name: Option<String>,
    pub route: Option<String>,
    pub model: Option<String>,
    pub strategy: Option<String>,
    /// Words that must all occur in its id, its name or one of its other labels, in capitals or not.
    pub search: Option<String>,
    /// Only those whose last turn had a stop hint.
    pub with_hint: bool,
}

/// So many are looked at for one answer. Whoever wants more goes on from `next`.
const MOST_SCANNED: usize = 10_000;

/// So many are asked of the store at once where all have to be looked at.
const SCANNED_AT_ONCE: usize = 2_500;

/// So few digits mean too many conversations.
const SHORTEST_PREFIX: usize = 6;

pub(crate) async fn list(
    conversations: &Conversations,
    filter: &Filter,
    offset: usize,
    limit: usize,
) -> Result<ConversationPage, Problem> {
    if *filter == Filter::default() {
        let listing = conversations.list(offset, limit).await?;
        let end = offset.saturating_add(listing.conversations.len());
        let next = (!listing.conversations.is_empty() && end < listing.total).then_some(end);
        let found: Vec<Summary> =
            listing.conversations.iter().map(|(key, head)| Summary::of(*key, head)).collect();
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
    let mut found = Vec::new();
    let matcher = Matcher::of(filter);
    let scan = scan(conversations, offset, |key, head| {
        if matcher.matches(key, head) {
            found.push(Summary::of(key, head));
        }
        found.len() < limit
    });
    let (scanned, next) = scan.await?;
    Ok(ConversationPage { conversations: found, total: None, offset, limit, scanned, next })
}

/// The one conversation that `id` means: its key, the beginning of its key, or its name.
///
/// A key goes first, so that nobody can take another's place by calling a conversation like one. All else must be the only
/// one of its kind.
pub(crate) async fn one(
    conversations: &Conversations,
    id: &str,
    tenant: Option<&str>,
) -> Result<(ConversationKey, Head), Problem> {
    if let Some(found) = by_key(conversations, id, tenant).await? {
        return Ok(found);
    }
    let prefix = id.to_ascii_lowercase();
    let is_prefix = id.len() >= SHORTEST_PREFIX && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let meant = Filter { tenant: tenant.map(str::to_owned), ..Filter::default() };
    let meant = Matcher::of(&meant);
    let mut found = BTreeMap::new();
    let scan = scan(conversations, 0, |key, head| {
        let is_it = head.labels.get("name").is_some_and(|name| name == id)
            || (is_prefix && key.to_string().starts_with(&prefix));
        if is_it && meant.matches(key, head) {
            found.insert(key, head.clone());
        }
        true
    });
    let (scanned, next) = scan.await?;
    match found.len() {
        0 if next.is_some() => Err(Problem::NotAmongNewest { scanned }),
        0 | 1 => found.pop_first().ok_or(Problem::NoConversation),
        _ => Err(Problem::Ambiguous { candidates: found.iter().map(candidate).collect() }),
    }
}

/// The conversation with this key, if `id` is one.
pub(crate) async fn by_key(
    conversations: &Conversations,
    id: &str,
    tenant: Option<&str>,
) -> Result<Option<(ConversationKey, Head)>, Problem> {
    let Ok(key) = id.parse::<ConversationKey>() else { return Ok(None) };
    let meant = Filter { tenant: tenant.map(str::to_owned), ..Filter::default() };
    let head = conversations.head(key).await?;
    Ok(head.filter(|head| Matcher::of(&meant).matches(key, head)).map(|head| (key, head)))
}

/// A filter that is ready to be asked thousands of times.
struct Matcher<'a> {
    filter: &'a Filter,
    words: Vec<String>,
}

impl<'a> Matcher<'a> {
    fn of(filter: &'a Filter) -> Matcher<'a> {
        let words = filter.search.as_deref().unwrap_or_default().split_whitespace();
        Matcher { filter, words: words.map(str::to_lowercase).collect() }
    }

    fn matches(&self, key: ConversationKey, head: &Head) -> bool {
        let Filter { tenant, name, route, model, strategy, search: _, with_hint } = self.filter;
        let is = |label, wanted: &Option<String>| {
            wanted.as_ref().is_none_or(|wanted| head.labels.get(label) == Some(wanted))
        };
        is("tenant", tenant)
            && is("name", name)
            && is("route", route)
            && is("model", model)
            && is("strategy", strategy)
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

/// Shows conversations to `look`, the newest first, until it has seen enough. How many it saw, and where to go on.
async fn scan(
    conversations: &Conversations,
    offset: usize,
    mut look: impl FnMut(ConversationKey, &Head) -> bool,
) -> Result<(usize, Option<usize>), Problem> {
    let mut scanned = 0;
    loop {
        let at = offset.saturating_add(scanned);
        let listing = conversations.list(at, SCANNED_AT_ONCE).await?;
        if listing.conversations.is_empty() {
            return Ok((scanned, None));
        }
        for (key, head) in &listing.conversations {
            scanned += 1;
            if !look(*key, head) || scanned == MOST_SCANNED {
                let next = offset.saturating_add(scanned);
                return Ok((scanned, (next < listing.total).then_some(next)));
            }
        }
    }
}
