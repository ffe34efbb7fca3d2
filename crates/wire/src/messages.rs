//! Anthropic's messages: the JSON shape of their requests, responses and event streams.
//!
//! A conversation alternates between user and assistant messages whose content is a text or a list of blocks. The instructions stand
//! outside of it, in `system`. A tool result is a block of a user message, before the user's own words.

mod answer;
mod answer_message;
mod answer_to_keep;
mod block;
mod canonical;
mod error;
mod facts;
mod message;
mod own_message;

pub(crate) use answer::{read_answer, read_event};
pub(crate) use answer_message::answer_message;
pub(crate) use answer_to_keep::answer_to_keep;
pub(crate) use error::{error_body, error_event};
pub(crate) use facts::facts;
pub(crate) use message::read_message;
pub(crate) use own_message::own_message;

use crate::MAX_DEPTH;
use crate::cursor::Value;
use crate::envelope::{ExtraKind, Meaning, MemberTable};

/// Anthropic's own path, and that of gateways that have the whole API below a path of their own. `/messages` alone is not enough:
/// OpenAI's threads end with it, too.
pub(crate) const PATH_SUFFIXES: &[&str] = &["/v1/messages", "/anthropic/messages"];

pub(crate) const MESSAGES_KEY: &str = "messages";

/// The member that marks a cache breakpoint. It may stand in every block, and in the blocks of a tool result's content.
const CACHE_CONTROL: &str = "cache_control";

pub(crate) const MEMBERS: MemberTable = MemberTable::new(&[
    ("model", Meaning::Model),
    ("stream", Meaning::Stream),
    ("max_tokens", Meaning::OutputLimit),
    ("tools", Meaning::Extra(ExtraKind::Tools)),
    ("system", Meaning::Extra(ExtraKind::Instructions)),
    ("output_format", Meaning::Extra(ExtraKind::ResponseFormat)),
    ("output_config", Meaning::Extra(ExtraKind::ResponseFormat)),
    ("metadata", Meaning::Metadata),
    ("cache_control", Meaning::Breakpoints),
    ("context_management", Meaning::Native),
    ("compaction", Meaning::Native),
    ("tool_choice", Meaning::Unused),
    ("thinking", Meaning::Unused),
]);

/// Whether a message has blocks that only this dialect knows: calls, and results that refer to them.
pub(crate) fn has_own_blocks(message: &[u8]) -> bool {
    let mut is_own = false;
    let read = Value::whole(message, MAX_DEPTH).members_of_object(|key, content| {
        if key != "content" || content.first() != Some(b'[') {
            return Ok(());
        }
        content.elements(|block| {
            block.members_of_object(|key, value| {
                let kind = if key == "type" { value.text()? } else { None };
                is_own |= matches!(kind.as_deref(), Some("tool_use" | "tool_result" | "thinking"));
                Ok(())
            })
        })
    });
    read.is_ok() && is_own
}
