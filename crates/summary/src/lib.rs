//! The summary: what stands in the place of messages that left the context.
//!
//! This crate fixes what a summary is, how a model is asked for one and how its answer is read, how it is
//! shown, shortened and rid of what is known anyway; and it makes one without a model. It deliberately does
//! no I/O and has no clock, no randomness and no tokenizer: whoever calls a model, counts tokens or stores a
//! summary does so elsewhere. It knows nothing of HTTP or of requests: messages come as [`Source`]s.
//!
//! - [`Summary`], with its [`Entry`]s and [`MessageRef`]s, is the state and its stored form.
//! - [`prompt`] and [`schema`] ask a model; [`parse`] reads the answer or says what [`Nonsense`] it is, and [`keep`] saves
//!   what a model forgets as a whole. A small model is asked in another [`Style`], and within [`Bounds`].
//! - [`extract`] is the built-in summarizer.
//! - [`cap`] and [`without`] make a summary smaller, [`render`] makes it a message.
//!
//! Text in a summary comes from anywhere. It passes through the same cleaning wherever it enters and again
//! where it is rendered, so that it stays a record and never becomes structure.
//!
//! ```
//! use tidegate_summary::*;
//!
//! let said = |number, speaker, text: &'static str| {
//!     Source { number: MessageRef(number), speaker, text: text.into(), calls: vec![] }
//! };
//! let messages = [
//!     said(1, Speaker::User, "Help me plan the archive import. The archive has 48,000 files."),
//!     said(2, Speaker::Assistant, "Where should the import write to?"),
//!     said(3, Speaker::User, "Let's use Postgres for the index."),
//!     said(4, Speaker::Observation { tool: Some("df") }, "error: disk /data is full"),
//!     said(5, Speaker::User, "Then switch the index to redb."),
//! ];
//! let summary = extract(None, &messages, 1_500);
//! assert_eq!(summary.decisions, [Entry::new("Then switch the index to redb.", [MessageRef(5)])]);
//!
//! let short = cap(&summary, messages.len(), &|text| text.len() < 500);
//! let shown = render(&short, messages.len());
//! assert!(shown.contains("- Then switch the index to redb.") && !shown.contains("Postgres"));
//! ```

mod bounds;
mod brief;
mod cap;
mod excerpt;
mod extract;
mod fence;
mod json;
mod keep;
mod loose;
mod nonsense;
mod once;
mod parse;
mod pinned;
mod prompt;
mod reference;
mod render;
mod schema;
mod sentence;
mod source;
mod summary;
mod whole;
mod word;

pub use bounds::Bounds;
pub use cap::cap;
pub use extract::extract;
pub use keep::keep;
pub use nonsense::Nonsense;
pub use parse::parse;
pub use pinned::without;
pub use prompt::{Limits, Prompt, Style, prompt};
pub use render::render;
pub use schema::{Schema, bounded_schema, schema};
pub use source::{Call, Source, Speaker};
pub use summary::{Entry, MAX_ENTRIES, MAX_ENTRY_CHARS, MAX_TEXT_CHARS, MessageRef, Section, Summary};
