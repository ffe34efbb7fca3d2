//! What can be typed after `tidegate conversations`.

use crate::args::ConfigArgs;
use clap::{Args, Subcommand};
use std::path::PathBuf;

pub(crate) const MORE: &str = "\
Examples:
  tidegate conversations list                         the newest 50
  tidegate conversations list --search 'gpt-5 agents' of this model and route
  tidegate conversations show 3f9a2c                  one of them: figures, turns, what was said
  tidegate conversations show build-7 --full | less   by its name, nothing shortened
  tidegate conversations export build-7 -o run.jsonl  to send it again, or to keep it
  tidegate conversations memory build-7 --set 'Deploys are on Fridays.'
                                                      what every request of it is to carry
  tidegate conversations list --json | jq -r '.conversations[].id'
  tidegate conversations delete build-7 --tenant 1d0c5e2f9a7b4c36
                                                      one of two conversations with the same name

An ID is the 32 digits of a conversation, the first 6 or more of them, or its name.
Names belong to tenants: if several use the same, the answer lists their ids, and --tenant or an
id says which one.

Exit codes:
  0  done    1  something is wrong    2  wrong usage    4  no such conversation, or several";

const EXPORT_MORE: &str = "\
Format: one line of JSON for every branch of the conversation,
  {\"id\":\"NAME\",\"model\":\"gpt-4o\",\"messages\":[...],\"times\":[...]}
with the messages as the client sent them, nothing masked, and when each was recorded, in
milliseconds since 1970. `tidegate replay` reads it. The first line is the branch that
was continued last; those that were left (an edited question, a regenerated answer) follow as
NAME#2, NAME#3 and so on, the newest first, at most 100. The first line has \"branches\" with
their number if there are more, and \"memory\" if a text is pinned. A line with
\"incomplete\": true lacks its beginning, because it has expired or cannot be decrypted.";

const MEMORY_MORE: &str = "\
Examples:
  tidegate conversations memory build-7               print it
  tidegate conversations memory build-7 --set \"Answer in French.\"
  tidegate conversations memory build-7 --file notes.md
  tidegate conversations memory build-7 > notes.md    to edit it, and to pin it again with --file
  my-notes | tidegate conversations memory build-7 --file -
                                                      a text that no list of processes shows
  tidegate conversations memory build-7 --clear

The memory stands behind the system messages, under the heading `## Your Memory`, in every
request of the conversation that Tidegate may edit (so not under the strategy `passthrough`). It
is never masked, summarized or dropped, and it counts towards the budget. The limits of
`context.blocks` shorten what is sent, not what is kept. It takes effect with the next request,
outlives restarts, is encrypted like messages are, and ends with the conversation.

A memory is UTF-8 text of at most 64 KiB. To print nothing is no error: nothing is pinned then.";

#[derive(Clone, Debug, Args)]
pub(crate) struct ConversationsArgs {
    #[command(subcommand)]
    pub(crate) command: ConversationsCommand,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ConversationsCommand {
    /// The newest conversations, with what was saved in them
    List(ListArgs),
    /// One conversation: its figures, its turns, its summaries, and what was said
    ///
    /// A message that the last turn masked is marked and still shown: what was kept from the model is here. So is its memory,
    /// if it has one.
    Show(ShowArgs),
    /// One conversation as JSONL that can be sent again
    #[command(after_long_help = EXPORT_MORE)]
    Export(ExportArgs),
    /// What is always in the context of one conversation: print it, or pin another text
    #[command(after_long_help = MEMORY_MORE)]
    Memory(MemoryArgs),
    /// Forget a conversation: its messages, its turns, its counts, its memory and what was decided about it
    Delete(DeleteArgs),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct WhoseArgs {
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    /// Only of this tenant, as `list` shows it; those of all others are not there
    #[arg(long, value_name = "TENANT")]
    pub(crate) tenant: Option<String>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) whose: WhoseArgs,
    /// Only those that their client calls so
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Only those with these words in their name, id, tenant, route, model or strategy
    #[arg(long, value_name = "WORDS")]
    pub(crate) search: Option<String>,
    /// At most so many
    #[arg(long, value_name = "N", default_value = "50", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
    /// Print one JSON object instead: `conversations` as the admin API gives them, and `next`
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ShowArgs {
    /// An id, the beginning of one, or a name
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) whose: WhoseArgs,
    /// Only the last so many turns, summaries and messages
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: Option<u32>,
    /// Every line of every message and of every summary
    #[arg(long)]
    pub(crate) full: bool,
    /// Everything that was recorded of every turn, instead of what was said
    #[arg(long, conflicts_with = "full")]
    pub(crate) turns: bool,
    /// Print one JSON object instead: `conversation`, `memory`, `turns`, `summaries`, `messages`, `unreadable`
    #[arg(long, conflicts_with_all = ["full", "turns"])]
    pub(crate) json: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ExportArgs {
    /// An id, the beginning of one, or a name
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) whose: WhoseArgs,
    /// Write to this file, readable by you alone, instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct MemoryArgs {
    /// An id, the beginning of one, or a name
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) whose: WhoseArgs,
    /// Pin this text, in the place of the one that was
    // A list begins with a hyphen.
    #[arg(long, value_name = "TEXT", group = "change", allow_hyphen_values = true)]
    pub(crate) set: Option<String>,
    /// Pin what is in this file; `-` reads standard input
    #[arg(long, value_name = "FILE", group = "change")]
    pub(crate) file: Option<PathBuf>,
    /// Take away what is pinned
    #[arg(long, group = "change")]
    pub(crate) clear: bool,
    /// Print one JSON object instead: `memory`, as it is then; null if there is none
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct DeleteArgs {
    /// An id, the beginning of one, or a name
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) whose: WhoseArgs,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Print what was deleted as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

impl ConversationsCommand {
    pub(crate) fn whose(&self) -> &WhoseArgs {
        match self {
            ConversationsCommand::List(ListArgs { whose, .. })
            | ConversationsCommand::Show(ShowArgs { whose, .. })
            | ConversationsCommand::Export(ExportArgs { whose, .. })
            | ConversationsCommand::Memory(MemoryArgs { whose, .. })
            | ConversationsCommand::Delete(DeleteArgs { whose, .. }) => whose,
        }
    }

    pub(crate) fn whose_mut(&mut self) -> &mut WhoseArgs {
        match self {
            ConversationsCommand::List(ListArgs { whose, .. })
            | ConversationsCommand::Show(ShowArgs { whose, .. })
            | ConversationsCommand::Export(ExportArgs { whose, .. })
            | ConversationsCommand::Memory(MemoryArgs { whose, .. })
            | ConversationsCommand::Delete(DeleteArgs { whose, .. }) => whose,
        }
    }
}
