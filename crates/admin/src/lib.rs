//! The admin address: health and readiness probes, metrics, the admin API and the dashboard.
//!
//! [`serve`] runs it. `/healthz` and `/readyz` need no token, because probes have none and learn nothing but a
//! status; neither do the dashboard's own files, which include the sign-in form. Everything else requires the token
//! if one is configured, either as a bearer token or as the session cookie that signing in sets. Without a token,
//! only loopback clients are served, and no web pages of other sites.
//! [`Source`] is a client of the same API for commands: it talks to a running process, or to a store that no other
//! process has open, through the same code.
//!
//! | request | response |
//! | --- | --- |
//! | `GET /` and `/assets/…` | the dashboard |
//! | `GET /api/overview?range=&route=&model=` | recent figures of this process over time, by route and by model |
//! | `GET /api/overview/live` | the same as server-sent events |
//! | `GET /api/conversations?offset=&limit=&tenant=&name=&route=&model=&strategy=&search=&hint=` | a [`ConversationPage`], newest first |
//! | `GET /api/conversations/{id}?turns_offset=&turns_limit=` | a [`TurnPage`]: every figure of every turn, the summaries, the memory |
//! | `GET /api/conversations/{id}/turns/{number}?offset=&limit=` | one turn: its plan with reasons, the summary it used, what changed |
//! | `GET /api/conversations/{id}/messages?offset=&limit=` | a [`MessagePage`]: the raw timeline |
//! | `GET /api/conversations/{id}/export` | one line of JSON per branch: `id`, `model`, `messages` |
//! | `GET /api/conversations/{id}/memory` | a [`MemoryPage`]: the pinned memory |
//! | `PUT /api/conversations/{id}/memory` | `204`; the body is `{"memory": "…"}`, or the text itself as `text/plain` |
//! | `DELETE /api/conversations/{id}/memory` | `204` |
//! | `DELETE /api/conversations/{id}` | `204` |
//! | `POST /api/explain` | what the proxy would do with a request, as `tidegate explain --json` prints it |
//! | `GET /api/config` | the active configuration with the origin of each value, and the last reload |
//! | `GET`, `POST`, `DELETE /api/session` | whether a token is required; sign in; sign out |
//! | `GET /api/windows` | the context windows that upstreams have named |
//! | `GET /api/openapi.json` | the OpenAPI description of all of this |
//! | `GET /metrics` | the metrics in the Prometheus text format |
//!
//! `{id}` is the 32 digits of a conversation's key, a prefix of them, or the name its client gave it; deleting takes
//! all 32 digits. With `?tenant=`, conversations of other tenants are invisible. Cross-site requests change nothing.
//!
//! The figures of the overview are kept in the store by minute, so that it survives a restart and has those of all processes.
//!
//! This crate never touches a proxied request, and never logs a path or a message.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! use std::{sync::Arc, time::Duration};
//! use tidegate_admin::{Filter, Source};
//! use tidegate_store::{Conversations, MemoryStore, Options};
//!
//! let store = Arc::new(MemoryStore::new(Duration::from_secs(60)));
//! let options = Options { timeout: Duration::from_millis(250), ttl: Duration::from_secs(3600), raw: true, keyring: None };
//! let source = Source::Opened(Conversations::new(store, options));
//! assert_eq!(source.list(&Filter::default(), 0, 50).await.unwrap().total, Some(0));
//! # }
//! ```

mod api;
mod assets;
mod auth;
mod body;
mod branch;
mod client;
mod configuration;
mod connections;
mod error;
mod event_stream;
mod explain;
mod find;
mod history;
mod memory;
mod overview;
mod page;
mod reloads;
mod response;
mod router;
mod serve;
mod session;
mod shared_history;
mod sort;
mod target;
#[cfg(test)]
mod tests;
mod turn;
mod windows;

pub use auth::Token;
pub use client::{AdminError, Source};
pub use find::{Filter, Trouble};
pub use memory::MAX_MEMORY_BYTES;
pub use page::{
    ConversationPage, ConversationSummary, FoldEntry, MemoryPage, MessageEntry, MessagePage, TurnPage,
    UnreadableCounts,
};
pub use reloads::{Reload, ReloadOutcome, Reloads};
pub use serve::{Admin, Readiness, serve};
pub use sort::Sort;
