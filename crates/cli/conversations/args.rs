//! The command line of `tidegate conversations`.

use crate::args::{AdminArg, ConfigArgs, StoreArg};
use clap::{Args, Subcommand};
use std::path::PathBuf;

pub(crate) const MORE: &str = "\
Examples:
  tidegate conversations list                         the newest 50
  tidegate conversations list --search 'gpt-5 agents' for this model and route
  tidegate conversations show 3f9a2c                  one of them: figures, turns and messages
  tidegate conversations show build-7 --full | less   by its name, without shortening
  tidegate conversations export build-7 -o run.jsonl  to replay it or keep a copy
  tidegate conversations memory build-7 --set 'Deploys are on Fridays.'
                                                      a note for every request
  tidegate conversations list --json | jq -r '.conversations[].id'
  tidegate conversations delete build-7 --tenant 1d0c5e2f9a7b4c36
                                                      if two tenants use the same name

An ID is the 32 digits of a conversation, the first 6 or more of them, or its name.
Tenants choose names independently: if a name is ambiguous, the error lists the matching ids; use
one of them, or --tenant.

Exit codes:
  0  success    1  error    2  wrong usage    4  no such conversation, or ambiguous ID";

const EXPORT_MORE: &str = "\
Format: one line of JSON per branch of the conversation,
  {\"id\":\"NAME\",\"model\":\"gpt-4o\",\"messages\":[...],\"times\":[...]}
with the messages as the client sent them, unmasked, and the time each was recorded, in
milliseconds since 1970. `tidegate replay` reads this format. The first line is the most recent
branch; abandoned ones (an edited question, a regenerated response) follow as NAME#2, NAME#3 and
so on, newest first, at most 100. The first line has \"branches\" with the total number if there
are more, and \"memory\" if a note is pinned. In a line with \"incomplete\": true, the first messages
have expired or cannot be decrypted.";

const MEMORY_MORE: &str = "\
Examples:
  tidegate conversations memory build-7               print it
  tidegate conversations memory build-7 --set \"Answer in French.\"
  tidegate conversations memory build-7 --file notes.md
  tidegate conversations memory build-7 > notes.md    to edit it and pin it again with --file
  my-notes | tidegate conversations memory build-7 --file -
                                                      keeps the text out of the process list
  tidegate conversations memory build-7 --clear

Tidegate inserts the memory after the system messages, under the heading `## Your Memory`, in every
request of the conversation that it may edit (so not with the strategy `passthrough`). The memory
is never masked, summarized or dropped, and it counts towards the budget. The limits of
`context.blocks` shorten what is sent, not what is stored. A change takes effect with the next
request. The memory survives restarts, is encrypted like messages, and is deleted with the
conversation.

A memory is UTF-8 text of at most 64 KiB. If nothing is pinned, nothing is printed and the exit
code is 0.";

#[derive(Clone, Debug, Args)]
pub(crate) struct ConversationsArgs {
    #[command(subcommand)]
    pub(crate) command: ConversationsCommand,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ConversationsCommand {
    /// List the newest conversations with their savings
    List(ListArgs),
    /// Show one conversation: its figures, turns, summaries, memory and messages
    ///
    /// Messages that the last turn masked are marked and still shown.
    Show(ShowArgs),
    /// Export one conversation as JSON Lines that can be replayed
    #[command(after_long_help = EXPORT_MORE)]
    Export(ExportArgs),
    /// Print or change the note that is pinned to one conversation
    #[command(after_long_help = MEMORY_MORE)]
    Memory(MemoryArgs),
    /// Delete a conversation with its messages, turns, counts, memory and decisions
    Delete(DeleteArgs),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct TargetArgs {
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    #[command(flatten)]
    admin: AdminArg,
    #[command(flatten)]
    store: StoreArg,
    /// Only conversations of this tenant, as `list` shows it
    #[arg(long, value_name = "TENANT")]
    pub(crate) tenant: Option<String>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Only conversations with this name
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Only conversations with all of these words in their name, id, tenant, route, model or strategy
    #[arg(long, value_name = "WORDS")]
    pub(crate) search: Option<String>,
    /// The maximum number of conversations
    #[arg(long, value_name = "N", default_value = "50", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
    /// Print one JSON object instead: `conversations` as in the admin API, and `next`
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ShowArgs {
    /// An id, a prefix of one, or a name
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Show only the last N turns, summaries and messages
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: Option<u32>,
    /// Show every line of every message and summary
    #[arg(long)]
    pub(crate) full: bool,
    /// Show all recorded figures of every turn instead of the messages
    #[arg(long, conflicts_with = "full")]
    pub(crate) turns: bool,
    /// Print one JSON object instead: `conversation`, `memory`, `turns`, `summaries`, `messages`, `unreadable`
    #[arg(long, conflicts_with_all = ["full", "turns"])]
    pub(crate) json: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ExportArgs {
    /// An id, a prefix of one, or a name
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Write to this file, readable only by you, instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct MemoryArgs {
    /// An id, a prefix of one, or a name
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Pin this text, replacing the current one
    // Lists begin with a hyphen.
    #[arg(long, value_name = "TEXT", group = "change", allow_hyphen_values = true)]
    pub(crate) set: Option<String>,
    /// Pin the content of this file; `-` reads standard input
    #[arg(long, value_name = "FILE", group = "change")]
    pub(crate) file: Option<PathBuf>,
    /// Remove the pinned text
    #[arg(long, group = "change")]
    pub(crate) clear: bool,
    /// Print one JSON object instead: the resulting `memory`, null if there is none
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct DeleteArgs {
    /// An id, a prefix of one, or a name
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Delete without asking for confirmation
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Print the deleted conversation as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

impl ConversationsCommand {
    pub(crate) fn target(&self) -> &TargetArgs {
        match self {
            ConversationsCommand::List(ListArgs { target, .. })
            | ConversationsCommand::Show(ShowArgs { target, .. })
            | ConversationsCommand::Export(ExportArgs { target, .. })
            | ConversationsCommand::Memory(MemoryArgs { target, .. })
            | ConversationsCommand::Delete(DeleteArgs { target, .. }) => target,
        }
    }

    pub(crate) fn target_mut(&mut self) -> &mut TargetArgs {
        match self {
            ConversationsCommand::List(ListArgs { target, .. })
            | ConversationsCommand::Show(ShowArgs { target, .. })
            | ConversationsCommand::Export(ExportArgs { target, .. })
            | ConversationsCommand::Memory(MemoryArgs { target, .. })
            | ConversationsCommand::Delete(DeleteArgs { target, .. }) => target,
        }
    }
}
