//! Summaries of folded messages: their format, the prompt for a model, the parser of its answer, the rendering,
//! and a built-in summarizer that needs no model.
//!
//! This crate has no I/O, no clock, no randomness and no tokenizer. It does not call models, count tokens or store
//! summaries, and it knows nothing about HTTP: messages come as [`Source`]s.
//!
//! - [`Summary`], with its [`Entry`]s and [`MessageRef`]s, is the state and its stored form.
//! - [`prompt()`] and [`schema()`] ask a model for a summary. [`parse()`] reads its answer, or returns why it is
//!   [`Nonsense`]. [`keep()`] restores the entries if a model drops all of them. Small models get another [`Style`]
//!   and [`Bounds`].
//! - [`extract()`] is the built-in summarizer. [`complete()`] adds to a model's summary what that ranks highest and the model has left out.
//! - [`cap()`] and [`without`] shorten a summary, and [`render()`] turns it into the text of a message.
//!
//! Text in a summary is untrusted. It is cleaned wherever it enters and again when it is rendered, so that it stays
//! data and cannot become structure.
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
mod complete;
mod dedupe;
mod excerpt;
mod extract;
mod fence;
mod json;
mod keep;
mod lenient;
mod nonsense;
mod parse;
mod pinned;
mod prompt;
mod quotes;
mod reference;
mod render;
mod schema;
mod sentence;
mod source;
mod summary;
mod whole_sentences;
mod word;

pub use bounds::Bounds;
pub use cap::cap;
pub use complete::{Room, complete};
pub use extract::{extract, plain_words};
pub use keep::keep;
pub use nonsense::Nonsense;
pub use parse::parse;
pub use pinned::without;
pub use prompt::{Limits, Prompt, Style, prompt};
pub use quotes::{Quote, render_excerpts};
pub use render::render;
pub use schema::{Schema, bounded_schema, schema};
pub use source::{Call, Source, Speaker};
pub use summary::{Entry, MAX_ENTRIES, MAX_ENTRY_CHARS, MAX_TEXT_CHARS, MessageRef, Section, Summary};
