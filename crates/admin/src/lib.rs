//! The address for operators: is this process alive, what has it done, what was said in which conversation, and what would it do?
//!
//! [`serve`] answers on the admin address. `/healthz` and `/readyz` need no token, because whoever probes them has none and
//! learns one word; neither do the dashboard's own files, one of which asks for it. Everything else needs the token where there is one, as a
//! bearer or as the cookie that signing in gives, and is closed to web pages but ours where there is none.
//! [`Source`] asks the same questions from a command: of a running process, or of a store that nobody else has open, by
//! the same code.
//!
//! | request | answer |
//! | --- | --- |
//! | `GET /` and `/assets/…` | the dashboard |
//! | `GET /api/overview?range=&route=&model=` | what this process has done lately, over time, by route and by model |
//! | `GET /api/overview/live` | the same while it changes, as server-sent events |
//! | `GET /api/conversations?offset=&limit=&tenant=&name=&route=&model=&strategy=&search=&hint=` | a [`ConversationPage`], the newest first |
//! | `GET /api/conversations/{id}?turns_offset=&turns_limit=` | a [`TurnPage`]: every figure of every turn, the summaries, the memory |
//! | `GET /api/conversations/{id}/turns/{number}?offset=&limit=` | one turn: its plan with its reasons, the summary as it stood, what changed |
//! | `GET /api/conversations/{id}/messages?offset=&limit=` | a [`MessagePage`]: the raw timeline |
//! | `GET /api/conversations/{id}/export` | one line of JSON a branch: `id`, `model`, `messages` |
//! | `GET /api/conversations/{id}/memory` | a [`MemoryPage`]: what is pinned to it |
//! | `PUT /api/conversations/{id}/memory` | `204`; the body is `{"memory": "…"}`, or the text itself as `text/plain` |
//! | `DELETE /api/conversations/{id}/memory` | `204` |
//! | `DELETE /api/conversations/{id}` | `204` |
//! | `POST /api/explain` | what would happen to a request, as `tidegate explain` says it |
//! | `GET /api/config` | the configuration in force, with where each value came from, and the last reload |
//! | `GET`, `POST`, `DELETE /api/session` | whether a token is needed; signing in and out |
//! | `GET /api/openapi.json` | all of this, described for machines |
//! | `GET /metrics` | what was counted, as Prometheus reads it |
//!
//! `{id}` is the 32 digits of a conversation, the beginning of them, or what its client calls it; to delete it, all of them.
//! With `?tenant=` the conversations of all other tenants are not there. Nothing is changed for a page of another site.
//!
//! This crate never touches a request on its way, and never writes a path or a message into a log.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! use std::{sync::Arc, time::Duration};
//! use tidegate_admin::{Filter, Source};
//! use tidegate_store::{Conversations, MemoryStore, Options};
//!
//! let store = Arc::new(MemoryStore::new(Duration::from_secs(60)));
//! let options = Options { timeout: Duration::from_millis(250), raw: true, keyring: None };
//! let source = Source::Opened(Conversations::new(store, options));
//! assert_eq!(source.list(&Filter::default(), 0, 50).await.unwrap().total, Some(0));
//! # }
//! ```

mod api;
mod assets;
mod auth;
mod branch;
mod chronicle;
mod client;
mod configuration;
mod desk;
mod find;
mod incoming;
mod live;
mod memory;
mod overview;
mod page;
mod problem;
mod reloads;
mod reply;
mod serve;
mod session;
mod target;
#[cfg(test)]
mod tests;
mod try_it;
mod turn;

pub use auth::Token;
pub use client::{AdminError, Source};
pub use find::Filter;
pub use memory::MEMORY_BYTES;
pub use page::{
    ConversationPage, FoldEntry, MemoryPage, MessageEntry, MessagePage, Summary, TurnPage, Unreadable,
};
pub use reloads::{Reload, ReloadOutcome, Reloads};
pub use serve::{Admin, Readiness, serve};
