//! OpenAI's responses: the JSON shape of their requests, responses and event streams.
//!
//! A conversation is a list of items. An answer of the model is several of them in a row (its reasoning, its words, each of its calls),
//! and so is what the client sends back (each result, the user's words). Here, a message is one item of the client's, or a whole run of
//! the model's: what was said at once stays together, whatever is cut or left out around it. A run is written like its items are in the
//! array, with commas between them. `input` can be a text, too: then that is the only message.

mod answer;
mod answer_to_keep;
mod canonical;
mod content;
mod error;
mod facts;
mod item;
mod message;
mod own_message;
mod record;
mod side;

pub(crate) use answer::{answer_message, read_answer, read_event};
pub(crate) use answer_to_keep::answer_to_keep;
pub(crate) use error::error_event;
pub(crate) use facts::facts;
pub(crate) use message::read_message;
pub(crate) use own_message::with_breakpoint;
pub(crate) use record::{is_recorded_item, recorded, sent};
pub(crate) use side::{Side, side};

use crate::content_pieces::PartSpelling;
use crate::envelope::{ExtraKind, Meaning, MemberTable};

/// OpenAI's own path, Azure's, and those of gateways. What stands below it, such as `/responses/compact`, is another endpoint.
pub(crate) const PATH_SUFFIXES: &[&str] = &["/responses"];

/// What nothing but a response begins with, or one of its events.
pub(crate) const ANSWER_MARKS: &[&[u8]] = &[
    br#""type":"response."#,
    br#""type": "response."#,
    br#""object":"response""#,
    br#""object": "response""#,
];

pub(crate) const MESSAGES_KEY: &str = "input";

/// The member of a part that marks a cache breakpoint.
const BREAKPOINT: &str = "prompt_cache_breakpoint";

pub(crate) const TEXT_PART: PartSpelling =
    PartSpelling { text: br#"{"type":"input_text","text":"#, marker: br#","prompt_cache_breakpoint":"# };

pub(crate) const MEMBERS: MemberTable = MemberTable::new(&[
    ("model", Meaning::Model),
    ("stream", Meaning::Stream),
    ("max_output_tokens", Meaning::OutputLimit),
    ("tools", Meaning::Extra(ExtraKind::Tools)),
    ("instructions", Meaning::Extra(ExtraKind::Instructions)),
    ("text", Meaning::Extra(ExtraKind::ResponseFormat)),
    ("metadata", Meaning::Metadata),
    ("prompt_cache_key", Meaning::Session),
    ("previous_response_id", Meaning::Upstream),
    ("conversation", Meaning::Upstream),
    ("context_management", Meaning::Native),
    ("tool_choice", Meaning::Unused),
    ("prompt", Meaning::Template),
    ("reasoning", Meaning::Reasoning),
]);
