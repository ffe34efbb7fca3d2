//! Bytes to engine and back: the body of a chat completion is cut into messages, read, and put together again.
//!
//! Nothing here does I/O, waits, or decides: it says what a request holds, carries out the edits that a plan names, and
//! picks up what an answer says while its bytes pass. It never builds a tree of a client's JSON and never writes one
//! anew: what no edit touches goes out as the very bytes that came in.
//!
//! - [`split`] cuts a body into message slices and checks all around them; [`split_seen`] also fingerprints them.
//! - [`read_message`] reads and checks one slice that has not been seen before; [`facts`] are what is worth keeping of it.
//! - [`chain`] makes the conversation's digest out of the messages' [`canonical_hash`]es.
//! - [`splice`] makes the edits and returns the new body as pieces.
//! - [`SideReader`] and [`read_completion`] read answers; [`error_body`] and [`error_event`] write our own.
//!
//! ```
//! use tidegate_engine::Digest;
//! use tidegate_wire::{Edit, Placeholder, assemble, chain, facts, read_message, splice, split};
//!
//! let body = br#"{"model":"m","messages":[{"role":"tool","tool_call_id":"c","content":"a long output"}]}"#;
//! let outline = split(body)?;
//! let mut known = Vec::new();
//! let mut digest = Digest::default();
//! for span in &outline.messages {
//!     let facts = facts(&read_message(span.of(body))?);
//!     digest = chain(digest, &facts.canonical);
//!     known.push(facts);
//! }
//! let edits = [Edit::Mask { message: 0, placeholder: Placeholder::new("[gone]") }];
//! let pieces = splice(body, &outline, &known, &edits)?;
//! let expected = br#"{"model":"m","messages":[{"role":"tool","tool_call_id":"c","content":"[gone]"}]}"#;
//! assert_eq!(assemble(body, &pieces), expected);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod answer_message;
mod chains;
mod content;
mod cursor;
mod digest;
mod edit;
mod envelope;
mod error_body;
mod events;
mod facts;
mod fingerprint;
mod measure;
mod message;
mod reader;
mod scan;
mod span;
mod splice;
mod split;
mod text;
mod tool_call;
mod unreadable;

pub use answer::{Answer, AnswerCall, Usage, read_completion};
pub use answer_message::answer_message;
pub use content::{Content, Part};
pub use digest::{canonical_hash, chain};
pub use edit::{BadEdit, Edit, Piece, Placeholder};
pub use error_body::{error_body, error_event};
pub use events::SideReader;
pub use facts::{Call, CallId, ContentKind, MessageFacts, facts};
pub use fingerprint::{Fingerprint, Fingerprinter};
pub use measure::{Measure, Meter, Unit, words};
pub use message::{MessageView, read_message};
pub use reader::{Chat, Known, LookedUp, Reader, Reading, Remembered, Test};
pub use span::Span;
pub use splice::{assemble, splice, spliced_len};
pub use split::{Outline, split, split_seen};
pub use tool_call::{FunctionCall, ToolCall};
pub use unreadable::Unreadable;

/// The most objects and arrays that may be open at once, the body itself included.
pub const MAX_DEPTH: usize = 128;
