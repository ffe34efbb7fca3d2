//! OpenAI's chat completions: the JSON shape of their requests, responses and event streams.

mod answer;
mod answer_message;
mod answer_to_keep;
mod canonical;
mod content;
mod error;
mod facts;
mod message;
mod own_message;
mod recall_answer;
mod recall_calls;
mod recall_stream;
mod tool_call;
mod usage;

pub(crate) use answer::{read_answer, read_event};
pub(crate) use answer_message::answer_message;
pub(crate) use answer_to_keep::answer_to_keep;
pub(crate) use error::{error_body, error_event};
pub(crate) use facts::facts;
pub(crate) use message::read_message;
pub(crate) use own_message::{joined, own_message, own_text, with_breakpoint, with_part};
pub use recall_answer::{Asked, CallBeside, RecallAnswer, RecallCall};
pub use recall_stream::RecallStream;
pub(crate) use usage::read_usage;

use crate::content_pieces::PartSpelling;
use crate::envelope::{ExtraKind, Meaning, MemberTable};

/// `/v1/chat/completions`, and Azure's form with a deployment in front.
pub(crate) const PATH_SUFFIXES: &[&str] = &["/chat/completions"];

/// What nothing but a chat completion begins with, or one of its chunks.
pub(crate) const ANSWER_MARKS: &[&[u8]] =
    &[br#""object":"chat.completion"#, br#""object": "chat.completion"#];

pub(crate) const MESSAGES_KEY: &str = "messages";

pub(crate) const TEXT_PART: PartSpelling =
    PartSpelling { text: br#"{"type":"text","text":"#, marker: br#","cache_control":"# };

/// The first output limit in the table wins: `max_completion_tokens` has replaced `max_tokens`.
pub(crate) const MEMBERS: MemberTable = MemberTable::new(&[
    ("model", Meaning::Model),
    ("stream", Meaning::Stream),
    ("max_completion_tokens", Meaning::OutputLimit),
    ("max_tokens", Meaning::OutputLimit),
    ("tools", Meaning::Extra(ExtraKind::Tools)),
    ("functions", Meaning::Extra(ExtraKind::Tools)),
    ("response_format", Meaning::Extra(ExtraKind::ResponseFormat)),
    ("session_id", Meaning::Session),
    ("litellm_session_id", Meaning::Session),
    ("metadata", Meaning::Metadata),
    ("prompt_cache_key", Meaning::Session),
    ("cache_control", Meaning::Breakpoints),
    ("n", Meaning::Unused),
    ("context_management", Meaning::Native),
    ("tool_choice", Meaning::Unused),
    ("stream_options", Meaning::Unused),
    ("reasoning_effort", Meaning::Reasoning),
]);
