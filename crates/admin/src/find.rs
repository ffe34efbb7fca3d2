//! Finding conversations in the store, which knows them by their key and by their age.

use crate::page::{ConversationPage, Summary};
use crate::problem::{Candidate, Problem};
use crate::target::MOST;
use std::collections::BTreeMap;
use tidegate_store::{ConversationKey, Conversations, Head};

/// Which conversations are wanted. What is not given is any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub tenant: Option<String>,
    pub name: Option<String>,
}

/// So many are looked at for one answer. Whoever wants more goes on from `next`.
const MOST_SCANNED: usize = 10_000;

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
    let scan = scan(conversations, offset, |key, head| {
        if filter.matches(head) {
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
    let meant = Filter { tenant: tenant.map(str::to_owned), name: None };
    let mut found = BTreeMap::new();
    let scan = scan(conversations, 0, |key, head| {
        let is_it = head.labels.get("name").is_some_and(|name| name == id)
            || (is_prefix && key.to_string().starts_with(&prefix));
        if is_it && meant.matches(head) {
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
    let meant = Filter { tenant: tenant.map(str::to_owned), name: None };
    let head = conversations.head(key).await?;
    Ok(head.filter(|head| meant.matches(head)).map(|head| (key, head)))
}

impl Filter {
    fn matches(&self, head: &Head) -> bool {
        let is = |name, wanted: &Option<String>| {
            wanted.as_ref().is_none_or(|wanted| head.labels.get(name) == Some(wanted))
        };
        is("tenant", &self.tenant) && is("name", &self.name)
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
        let listing = conversations.list(at, MOST).await?;
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
