//! What can be typed after `tidegate`.

use crate::conversations::args::{self as conversations, ConversationsArgs};
use crate::demo::args::{self as demo, DemoArgs};
use crate::replay::args::{self as replay, ReplayArgs};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use std::path::PathBuf;
use tidegate_config::{Flags, strategy_name, strategy_named};
use tidegate_engine::Strategy;

/// An OpenAI-compatible reverse proxy that keeps every conversation inside its model's context window and its owner's
/// budget.
///
/// Point your SDK's `base_url` at it and change nothing else. Without a command, `tidegate` serves.
#[derive(Debug, Parser)]
#[command(name = "tidegate", version, max_term_width = 100, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: ServeArgs,
}

const EXAMPLES: &str = "\
Examples:
  tidegate                                            serve on 127.0.0.1:8080, forward to api.openai.com
  tidegate serve --upstream http://127.0.0.1:8000     forward to a local model server
  tidegate init && tidegate check                     write a proxy.toml, then see what it means
  OPENAI_BASE_URL=http://127.0.0.1:8080/v1 my-agent   send an application through it
  tidegate demo                                       watch it work, without a key or a network
  tidegate replay runs.jsonl                          what your own recordings would have cost";

const EXPLAIN_MORE: &str = "\
Examples:
  tidegate explain request.json                       a table, the budget and the verdict
  tidegate explain request.json --strategy passthrough
                                                      the same under another strategy
  tidegate explain request.json --strategy hybrid --diff
                                                      the summary that old messages would become
  tidegate explain request.json --diff                what would change in which message
  tidegate explain request.json --rewritten > new.json
                                                      the very bytes that would be forwarded
  my-agent --dump | tidegate explain - --json | jq .verdict.ending

JSON (--json), one object; more members may come, none of these goes:
  route, upstream, strategy, observe   under which policy; `route` is null if none matches
  messages[]   index, role, kind, tool, calls[], tokens, tokens_after, reason, why, and action:
               `keep`, `mask`, `untag`, `mask+untag`, `fold`, `drop`
  budget       window, window_source, safe, output, output_source, overhead, input
  usage        messages, fixed, before, saved, after
  masking      keep, pace, cause, postponed, note; null where the strategy masks nothing
  folding      when, keep, mode, prune_when, prune_keep, summarizer, cause, covered,
               summary_tokens, summary_role, summary_before (an index), later, note; null where
               the strategy folds nothing
  verdict      ending (`as_sent`, `edited`, `refused`), folded, dropped, masked, untagged, over,
               left, sentence
  model        asked, matched, source, window, max_output, encoding, fit, prices, cache_life_s
  Without a matching route there are only route, upstream, verdict and model.asked.

Folding: if a summary is due, the built-in summarizer makes it, whatever `fold.summarizer` is, and
everything shown is the request with it. `later` is true where this very request would go out
without it, because `fold.mode` is \"background\", and only the next one with it.

Exit codes:
  0  it would be forwarded    1  something is wrong    2  wrong usage    3  it would be refused";

#[derive(Debug)]
pub(crate) struct Arguments {
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the proxy
    ///
    /// Listens, forwards chat completions under the policy of their route and everything else untouched. A changed
    /// configuration file, or SIGHUP, reloads it; an invalid one is reported and the running one stays. SIGTERM
    /// drains: readiness goes 503, open answers finish within `server.drain_timeout`, a second signal ends at once.
    Serve(ServeArgs),
    /// Validate a configuration and show what it means
    ///
    /// Prints every resolved value with where it came from (default, file and line, environment, flag), for the
    /// process and for each route. Exits with 1 and says what to change if something is wrong.
    Check(CheckArgs),
    /// Show what would happen to a saved request, and why
    ///
    /// Reads the body of one chat completion and runs it through the code of the proxy, without sending it anywhere: each
    /// message with its tokens and what would become of it, the budget line by line, and the verdict. The route is the
    /// one that a POST to /v1/chat/completions with this body and no special header would take.
    #[command(after_long_help = EXPLAIN_MORE)]
    Explain(ExplainArgs),
    /// Compare what recorded conversations would have cost under every policy
    ///
    /// Reads recorded conversations, reconstructs every request, and runs the code of the proxy over them for a set of policies, without
    /// sending anything anywhere. A model of the provider's prompt cache turns tokens into billed cost. See it before
    /// you trust it.
    #[command(after_long_help = replay::MORE)]
    Replay(ReplayArgs),
    /// Watch it work: the real proxy, a simulated provider and a recorded agent run
    ///
    /// Starts the proxy on a free port of this machine in front of a provider that only exists in this process, plays a recorded run of a coding
    /// agent through it over HTTP, and prints turn by turn what the agent sent, what was forwarded and what that saved. It needs nothing:
    /// no key, no network, no file.
    #[command(after_long_help = demo::MORE)]
    Demo(DemoArgs),
    /// List, read, export and delete the conversations that were kept, and pin notes to them
    ///
    /// Asks the running Tidegate over its admin address (`admin.listen`, with the token in `admin.token_env` if it has one). If
    /// nobody listens there, opens the configured store itself.
    #[command(after_long_help = conversations::MORE)]
    Conversations(ConversationsArgs),
    /// Write a starting proxy.toml, with every key and its default explained
    Init(InitArgs),
    /// Print a completion script for your shell
    ///
    /// For example: tidegate completions bash > /etc/bash_completion.d/tidegate
    Completions { shell: Shell },
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ConfigArgs {
    /// Configuration file [default: ./proxy.toml if there is one, else the built-in defaults]
    #[arg(short, long, value_name = "FILE", env = "TIDEGATE_CONFIG", hide_env_values = true)]
    pub(crate) config: Option<PathBuf>,
    /// Where clients connect, instead of `server.listen`
    #[arg(long, value_name = "ADDR", env = "TIDEGATE_LISTEN", hide_env_values = true)]
    listen: Option<String>,
    /// Where health and administration answer, instead of `admin.listen`
    #[arg(long, value_name = "ADDR", env = "TIDEGATE_ADMIN", hide_env_values = true)]
    admin: Option<String>,
    /// Where requests go, instead of `upstreams.default.url`
    #[arg(long, value_name = "URL", env = "TIDEGATE_UPSTREAM", hide_env_values = true)]
    upstream: Option<String>,
    /// Where conversations are kept, instead of `store.url`
    #[arg(long, value_name = "URL", env = "TIDEGATE_STORE", hide_env_values = true)]
    store: Option<String>,
    #[arg(skip)]
    pub(crate) flags: Flags,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    /// Show only values that are not defaults
    #[arg(long)]
    pub(crate) changed: bool,
    /// Show only this route
    #[arg(long, value_name = "NAME")]
    pub(crate) route: Option<String>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The body of a chat completion, as JSON; `-` reads standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    /// The route to take, whatever it matches [default: the first that matches]
    #[arg(long, value_name = "NAME")]
    pub(crate) route: Option<String>,
    /// The strategy to apply, instead of the route's
    #[arg(long, value_name = "NAME", value_parser = strategy)]
    pub(crate) strategy: Option<Strategy>,
    /// Print one JSON object instead
    #[arg(long, group = "view")]
    pub(crate) json: bool,
    /// Print what would change in each message instead, long lines shortened; nothing if nothing would
    #[arg(long, group = "view")]
    pub(crate) diff: bool,
    /// Print the request as it would be forwarded instead, byte for byte
    #[arg(long, group = "view")]
    pub(crate) rewritten: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct InitArgs {
    /// Where to write it
    #[arg(default_value = "proxy.toml", value_name = "FILE")]
    pub(crate) path: PathBuf,
    /// Replace a file that is there
    #[arg(long)]
    pub(crate) force: bool,
}

pub(crate) fn parse() -> Arguments {
    let command = Cli::command().args_conflicts_with_subcommands(true);
    let matches = command.get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let inner = matches.subcommand().map_or(&matches, |(_, inner)| inner);
    let mut command = cli.command.unwrap_or(Command::Serve(cli.serve));
    match &mut command {
        Command::Serve(ServeArgs { config })
        | Command::Check(CheckArgs { config, .. })
        | Command::Explain(ExplainArgs { config, .. })
        | Command::Replay(ReplayArgs { config, .. }) => config.note_flags(inner),
        Command::Conversations(ConversationsArgs { command }) => {
            let inner = inner.subcommand().map_or(inner, |(_, inner)| inner);
            command.whose_mut().config.note_flags(inner);
        }
        Command::Demo(_) | Command::Init(_) | Command::Completions { .. } => {}
    }
    Arguments { command }
}

pub(crate) fn print_completions(shell: Shell) {
    clap_complete::generate(shell, &mut Cli::command(), "tidegate", &mut std::io::stdout());
}

pub(crate) fn strategy(name: &str) -> Result<Strategy, String> {
    use Strategy::{Hybrid, Masking, Passthrough, Summarization, Window};
    strategy_named(name).ok_or_else(|| {
        let all = [Passthrough, Masking, Summarization, Hybrid, Window];
        format!("the strategies are {}", all.map(strategy_name).join(", "))
    })
}

impl ConfigArgs {
    /// Keeps with each value the name that it was set by, for error messages and for `check`.
    fn note_flags(&mut self, matches: &ArgMatches) {
        let named = |value: &Option<String>, id, flag, variable| {
            let source = matches.value_source(id);
            let name = if source == Some(ValueSource::EnvVariable) { variable } else { flag };
            value.clone().map(|value| (value, name))
        };
        self.flags = Flags {
            listen: named(&self.listen, "listen", "--listen", "TIDEGATE_LISTEN"),
            admin: named(&self.admin, "admin", "--admin", "TIDEGATE_ADMIN"),
            upstream: named(&self.upstream, "upstream", "--upstream", "TIDEGATE_UPSTREAM"),
            store: named(&self.store, "store", "--store", "TIDEGATE_STORE"),
        };
    }
}
