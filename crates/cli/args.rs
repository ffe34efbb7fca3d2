//! The command line of `tidegate`.

use crate::conversations::args::{self as conversations, ConversationsArgs};
use crate::demo::args::{self as demo, DemoArgs};
use crate::replay::args::{self as replay, ReplayArgs};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use std::path::PathBuf;
use tidegate_config::{Flags, strategy_from_name, strategy_name};
use tidegate_engine::Strategy;

/// An OpenAI-compatible reverse proxy that keeps every conversation within its model's context window and its
/// owner's budget.
///
/// Point your SDK's `base_url` at it; nothing else changes. Without a command, `tidegate` runs `serve`.
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
  tidegate                                            serve 127.0.0.1:8080 for api.openai.com
  tidegate serve --upstream http://127.0.0.1:8000     forward to a local model server
  tidegate init && tidegate check                     write proxy.toml and show its values
  OPENAI_BASE_URL=http://127.0.0.1:8080/v1 my-agent   send an application through it
  tidegate demo                                       see it work, without an API key or a network
  tidegate health                                     whether the running process is alive
  tidegate replay runs.jsonl                          compare the cost of your own recordings";

const EXPLAIN_MORE: &str = "\
Examples:
  tidegate explain request.json                       every message, the budget and the verdict
  tidegate explain request.json --strategy passthrough
                                                      with another strategy
  tidegate explain request.json --strategy hybrid --diff
                                                      including the summary of old messages
  tidegate explain request.json --diff                what would change in each message
  tidegate explain request.json --rewritten > new.json
                                                      the exact bytes that would be forwarded
  my-agent --dump | tidegate explain - --json | jq .verdict.ending

JSON (--json) is one object. Members may be added, but these stay:
  route, upstream, strategy, observe   the policy; `route` is null if none matches
  messages[]   index, role, kind, tool, calls[], tokens, tokens_after, reason, why, quotes[] if any, action:
               `keep`, `mask`, `trim`, `untag`, `mask+untag`, `trim+untag`, `fold`, `drop`
  budget       window, window_source, safe, output, output_source, overhead, input
  usage        messages, fixed, before, saved, after
  masking      keep, pace, cause, postponed, bound, note; null if the strategy does not mask
  folding      when, keep, mode, prune_when, prune_keep, summarizer, cause, covered,
               summary_tokens, summary_role, summary_before (an index), later, note; null if
               the strategy does not fold
  recall       max_tokens, excerpts[] (message, quotes[], passages, tokens, new), note; absent if
               the policy brings nothing back
  verdict      ending (`as_sent`, `edited`, `refused`), folded, dropped, masked, trimmed, untagged,
               over, left, sentence
  model        asked, matched, source, window, max_output, encoding, fit, prices, cache,
               cache_life_s
  Without a matching route, it has only route, upstream, verdict and model.asked.

Folding: if a summary is due, the built-in summarizer writes it, whatever `fold.summarizer` is, and
the output shows the request with that summary. `later` is true if `fold.mode` is \"background\": the
proxy would forward this request without the summary and use it from the next request on.

Exit codes:
  0  would be forwarded    1  error    2  wrong usage    3  would be refused";

#[derive(Debug)]
pub(crate) struct Arguments {
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the proxy
    ///
    /// Forwards chat completions according to the policy of their route, and everything else untouched. Reloads the
    /// configuration when its file changes or on SIGHUP; an invalid file is reported and the running configuration
    /// stays active. SIGTERM drains: /readyz returns 503 and open responses may finish within
    /// `server.drain_timeout`; a second signal stops at once.
    Serve(ServeArgs),
    /// Validate a configuration and show its resolved values
    ///
    /// Prints every value with its origin (default, file and line, environment, flag), for the process and for each
    /// route. If something is wrong, prints what to change and exits with 1.
    Check(CheckArgs),
    /// Show what the proxy would do with a saved request, and why
    ///
    /// Reads the body of one chat completion and runs it through the proxy's own code without sending it anywhere.
    /// Shows the tokens of each message and what would happen to it, the budget calculation and the verdict. The route
    /// is the one that a POST to /v1/chat/completions with this body and no special headers would match.
    #[command(after_long_help = EXPLAIN_MORE)]
    Explain(ExplainArgs),
    /// Compare the cost of recorded conversations under every policy
    ///
    /// Reads recorded conversations, reconstructs every request and runs the proxy's own code over them, once for each
    /// policy, without sending anything. A model of the provider's prompt cache turns tokens into billed cost. Use it
    /// to choose a policy before putting the proxy into production.
    #[command(after_long_help = replay::MORE)]
    Replay(ReplayArgs),
    /// Run the real proxy with a simulated provider and a recorded agent
    ///
    /// Starts the proxy on a free local port in front of a provider simulated in this process, sends it the recorded
    /// requests of a coding agent over HTTP, and prints for each turn what the agent sent, what was forwarded and what
    /// that saved. Needs no API key, no network and no files.
    #[command(after_long_help = demo::MORE)]
    Demo(DemoArgs),
    /// List, show, export and delete stored conversations, and pin notes to them
    ///
    /// Talks to the running process through its admin address (`admin.listen`, with the token in `admin.token_env` if it
    /// has one). If no process listens there, opens the configured store directly.
    #[command(after_long_help = conversations::MORE)]
    Conversations(ConversationsArgs),
    /// Ask the running process whether it is alive, for container health checks
    ///
    /// Asks `/healthz` of the admin address and prints the answer. Needs no shell and no curl in the image:
    /// HEALTHCHECK CMD ["tidegate", "health"]. Exits with 0 if the process is well, else with 1.
    Health(HealthArgs),
    /// Write a starter proxy.toml
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
    #[command(flatten)]
    overrides: OverrideArgs,
}

/// The configuration file, for every command that reads it.
#[derive(Clone, Debug, Args)]
pub(crate) struct ConfigArgs {
    /// Configuration file [default: ./proxy.toml if it exists, else built-in defaults]
    #[arg(short, long, value_name = "FILE", env = "TIDEGATE_CONFIG", hide_env_values = true)]
    pub(crate) config: Option<PathBuf>,
    /// What other flags and variables override in it.
    #[arg(skip)]
    pub(crate) flags: Flags,
}

/// Overrides of the configuration, for commands that are about all of it.
#[derive(Clone, Debug, Args)]
struct OverrideArgs {
    /// Address for clients; overrides `server.listen`
    #[arg(long, value_name = "ADDR", env = "TIDEGATE_LISTEN", hide_env_values = true)]
    listen: Option<String>,
    #[command(flatten)]
    admin: AdminArg,
    /// URL to forward requests to; overrides `upstreams.default.url`
    #[arg(long, value_name = "URL", env = "TIDEGATE_UPSTREAM", hide_env_values = true)]
    upstream: Option<String>,
    #[command(flatten)]
    store: StoreArg,
    /// Forward every request unchanged and report what would be done to it; overrides `context.observe`, as TIDEGATE_OBSERVE=true does
    #[arg(long)]
    observe: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct AdminArg {
    /// Address for health checks, metrics and the dashboard; overrides `admin.listen`
    #[arg(long, value_name = "ADDR", env = "TIDEGATE_ADMIN", hide_env_values = true)]
    admin: Option<String>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct StoreArg {
    /// Where to store conversations: `memory:`, `embedded:DIR` or `redis://…`; overrides `store.url`
    #[arg(long, value_name = "URL", env = "TIDEGATE_STORE", hide_env_values = true)]
    store: Option<String>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    #[command(flatten)]
    overrides: OverrideArgs,
    /// Show only values that differ from the defaults
    #[arg(long)]
    pub(crate) changed: bool,
    /// Show only this route
    #[arg(long, value_name = "NAME")]
    pub(crate) route: Option<String>,
    /// Also connect to upstreams, store, archive and collector
    #[arg(long)]
    pub(crate) live: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The body of a chat completion, as JSON; `-` reads standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    /// The route to use, whether it matches or not [default: the first that matches]
    #[arg(long, value_name = "NAME")]
    pub(crate) route: Option<String>,
    /// The strategy to use instead of the route's own: passthrough, masking, summarization, hybrid or window
    #[arg(long, value_name = "NAME", value_parser = parse_strategy)]
    pub(crate) strategy: Option<Strategy>,
    /// Print one JSON object instead
    #[arg(long, group = "view")]
    pub(crate) json: bool,
    /// Print a diff of each changed message instead, with long lines shortened; empty if nothing changes
    #[arg(long, group = "view")]
    pub(crate) diff: bool,
    /// Print the request as it would be forwarded instead, byte for byte
    #[arg(long, group = "view")]
    pub(crate) rewritten: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct HealthArgs {
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    #[command(flatten)]
    admin: AdminArg,
    /// Ask `/readyz` instead: a process that drains is alive, but not ready
    #[arg(long)]
    pub(crate) ready: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct InitArgs {
    /// The file to write
    #[arg(default_value = "proxy.toml", value_name = "FILE")]
    pub(crate) path: PathBuf,
    /// Overwrite an existing file
    #[arg(long)]
    pub(crate) force: bool,
    /// Write the reference instead: every key, explained, with its default
    #[arg(long)]
    pub(crate) full: bool,
}

pub(crate) fn parse() -> Arguments {
    let command = Cli::command().args_conflicts_with_subcommands(true);
    let matches = command.get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let inner = matches.subcommand().map_or(&matches, |(_, inner)| inner);
    let mut command = cli.command.unwrap_or(Command::Serve(cli.serve));
    match &mut command {
        Command::Serve(ServeArgs { config, .. })
        | Command::Check(CheckArgs { config, .. })
        | Command::Health(HealthArgs { config, .. }) => config.resolve_flags(inner),
        // These read only policies and models from the configuration.
        Command::Explain(_) | Command::Replay(_) => {}
        Command::Conversations(ConversationsArgs { command }) => {
            let inner = inner.subcommand().map_or(inner, |(_, inner)| inner);
            command.target_mut().config.resolve_flags(inner);
        }
        Command::Demo(_) | Command::Init(_) | Command::Completions { .. } => {}
    }
    Arguments { command }
}

pub(crate) fn print_completions(shell: Shell) {
    clap_complete::generate(shell, &mut Cli::command(), "tidegate", &mut std::io::stdout());
}

pub(crate) fn parse_strategy(name: &str) -> Result<Strategy, String> {
    use Strategy::{Hybrid, Masking, Passthrough, Summarization, Window};
    strategy_from_name(name).ok_or_else(|| {
        let all = [Passthrough, Masking, Summarization, Hybrid, Window];
        format!("expected one of: {}", all.map(strategy_name).join(", "))
    })
}

impl ConfigArgs {
    /// Records the flag or environment variable that set each value, for error messages and for `check`.
    fn resolve_flags(&mut self, matches: &ArgMatches) {
        let with_origin = |id: &str, flag, variable| {
            // Not every command has every flag.
            let value = matches.try_get_one::<String>(id).ok().flatten()?;
            let is_variable = matches.value_source(id) == Some(ValueSource::EnvVariable);
            Some((value.clone(), if is_variable { variable } else { flag }))
        };
        self.flags = Flags {
            listen: with_origin("listen", "--listen", "TIDEGATE_LISTEN"),
            admin: with_origin("admin", "--admin", "TIDEGATE_ADMIN"),
            upstream: with_origin("upstream", "--upstream", "TIDEGATE_UPSTREAM"),
            store: with_origin("store", "--store", "TIDEGATE_STORE"),
            observe: matches
                .try_get_one("observe")
                .ok()
                .flatten()
                .is_some_and(|&is_on| is_on)
                .then_some("--observe"),
        };
    }
}
