//! Bytes to engine and back: cuts the body of an LLM request into messages, reads them, and applies edits.
//!
//! The crate has no I/O, no async code and no decisions. It reports what a request contains, applies the edits that a plan names, and
//! reads an answer while its bytes pass. It never builds a tree of a client's JSON and never serializes one again: bytes that no edit
//! touches are forwarded as they came in.
//!
//! - [`split`] cuts a body into message slices and checks everything around them.
//! - [`Dialect::read_message`] reads and checks one slice; [`Dialect::facts`] extracts what is worth caching.
//! - [`Reader`] does both for whole requests, and caches what it has read.
//! - [`chain`] extends a conversation's digest by one message.
//! - [`Substitutes`] are the placeholders and excerpts of an observation.
//! - [`splice`](splice()) applies edits and returns the new body as pieces.
//! - [`SideReader`], [`DocumentReader`] and [`Dialect::read_answer`] read answers.
//!
//! # Dialects
//!
//! A [`Dialect`] is an API that clients speak. It knows the JSON: which paths it serves, where the messages are in a body, how one is
//! read, masked and hashed, how a message or an error of our own is written, and where usage and the answer are in a response or a
//! stream. Everything else (scanning, spans, splicing, caches, digest chains, token counts) is shared and asks the dialect. An
//! [`Outline`] carries its dialect, so most callers need not name one. `chat`, `messages` and
//! `responses` are the dialects so far.
//!
//! # Example
//!
//! Masks the only message of a request:
//!
//! ```
//! use tidegate_engine::Digest;
//! use tidegate_wire::{Dialect, Edit, Placeholder, assemble, chain, splice, split};
//!
//! let body = br#"{"model":"m","messages":[{"role":"tool","tool_call_id":"c","content":"a long output"}]}"#;
//! let outline = split(Dialect::Chat, body)?;
//! let mut facts = Vec::new();
//! let mut digest = Digest::default();
//! for span in &outline.messages {
//!     let message = outline.dialect.read_facts(span.of(body))?;
//!     digest = chain(digest, &message.canonical);
//!     facts.push(message);
//! }
//! let edits = [Edit::Mask { message: 0, placeholder: Placeholder::new("[gone]") }];
//! let pieces = splice(body, &outline, &facts, &edits)?;
//! let expected = br#"{"model":"m","messages":[{"role":"tool","tool_call_id":"c","content":"[gone]"}]}"#;
//! assert_eq!(assemble(body, &pieces), expected);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod branch_points;
mod chat;
mod content_pieces;
mod cursor;
mod dialect;
mod digest;
mod digest_cache;
mod document;
mod edit;
mod engine_messages;
mod envelope;
mod events;
mod facts;
mod field_hasher;
mod fingerprint;
mod json_hash;
mod large_event;
mod measure;
mod message;
mod messages;
mod model_list;
mod overflow;
mod prompt_head;
mod reader;
mod recall_offer;
mod refused_thinking;
mod responses;
mod scan;
mod session;
mod skim;
mod span;
mod splice;
mod split;
mod substitute;
mod substitute_cache;
mod terms;
mod text;
mod unreadable;

pub use answer::{Answer, AnswerCall, Usage};
pub use branch_points::{Anchor, BranchPoints};
pub use chat::{Asked, CallBeside, RecallAnswer, RecallCall, RecallStream};
pub use dialect::{Dialect, OwnRole};
pub use digest::chain;
pub use document::DocumentReader;
pub use edit::{BadEdit, Edit, OwnText, Piece, Placeholder, Side};
pub use envelope::{Extra, ExtraKind, OutputLimit, lives_an_hour};
pub use events::SideReader;
pub use facts::{Bond, Call, CallId, MessageFacts, Results};
pub use fingerprint::{Fingerprint, Fingerprinter};
pub use measure::{Measure, Meter, Unit, words};
pub use message::{Content, FunctionCall, MessageView, Part, ToolCall, ToolResult};
pub use model_list::read_model_windows;
pub use overflow::{Opening, Overflow, Used, read_opening, read_overflow};
pub use prompt_head::extras_head;
pub use reader::{CacheLookup, ParsedMessage, ParsedRequest, Predicate, ReadOptions, Reader};
pub use recall_offer::{RECALL_TOOL, RecallOffer, forbid_calls};
pub use refused_thinking::refuses_thinking;
pub use session::Session;
pub use span::Span;
pub use splice::{assemble, splice, spliced_len};
pub use split::{Outline, split, split_and_fingerprint, split_envelope};
pub use substitute::{Shortening, Substitutes, TextSpan, TrimLimits, identifiers, message_texts};
pub use terms::{Posting, TermCount, Terms};
pub use unreadable::Unreadable;

/// The maximum nesting depth of objects and arrays, the body itself included.
pub const MAX_DEPTH: usize = 128;
