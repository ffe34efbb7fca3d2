//! The command line of `tidegate replay`.

use crate::args::{ConfigArgs, parse_strategy};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;
use tidegate_engine::Strategy;
use tidegate_replay::{Policy, Regime};

pub(crate) const MORE: &str = "\
Examples:
  tidegate replay runs.jsonl                          every strategy and pace, at the model's prices
  tidegate replay runs.jsonl --price 1,0.5,0.1        with cached input at ×1, ×0.5 and ×0.1
  tidegate replay runs.jsonl --need                   how often the model needed what was shortened
  tidegate replay runs.jsonl --html report.html       an HTML report with plots
  tidegate replay runs.jsonl --recommend              the cheapest policy, as TOML for proxy.toml
  tidegate replay runs.jsonl --recommend --keep-at-least 10 --only masking
                                                      the cheapest within these limits
  tidegate replay runs.jsonl --config proxy.toml      include the routes of your configuration
  tidegate replay runs.jsonl --policy masking:break_even@20 --policy hybrid
                                                      only these, compared with raw
  tidegate conversations export my-agent-42 | tidegate replay -
                                                      a stored conversation

Files (JSON Lines; the format is detected from the first line):
  conversations   {\"id\",\"model\",\"messages\",\"tools\"?}, the format of `conversations export`.
                  Request n is everything before the n-th assistant message
  request logs    bodies of chat completions, alone or as the member `body` or `request` next to
                  a time, `headers` or a `conversation_id`. A request that begins with an
                  earlier one continues its conversation
  The member `timestamp`, `created_at`, `time`, `ts` or `created` of a message or a log line is the
  time it was sent, in seconds, milliseconds or as a date. It is not part of the request.

Policies (--policy; separate several with commas or repeat the flag):
  raw, masking:every_turn, masking:batch=N, masking:break_even, masking+trim, summarization, hybrid,
  window, coding-agent (the profile), route:NAME. Append @TURNS to set the window of a policy that masks or folds:
  masking:break_even@20. All other settings come from the configuration for the conversation's model.

The cost is that of the input of every request, with a model of the provider's prompt cache: a
repeated prefix is read from the cache in whole steps, above a minimum length and while the cache
lives; the rest is written to it. Output costs the same under every policy and is excluded. `worst`
is the conversation with the highest cost relative to raw. `edited` counts requests that are
forwarded edited, `moves` those whose edits change a prefix that the provider has cached. The
built-in summarizer writes all summaries.

The need (--need, at the first price) is the share of answers that use an identifier (a path, id, name
or number) which stands in a masked or trimmed result and nowhere in the forwarded request. `chance`
is the same with the shortened results of another conversation: so many would match anyway.

JSON (--json) is one object. Members may be added, but these stay:
  conversations, requests, untimed, gap_s, models[], notes[]
  prices[]        price, policies[], and with --recommend recommended: null, or policy,
                  ratio_to_raw, snippet
  …policies[]     policy, requests, tokens_before, tokens_sent, tokens_cached, cached_share,
                  cost_usd (null if a price is unknown), cost_units (tokens at the plain input
                  price), ratio_to_raw, worst (id, ratio_to_raw), refused, over_window, unreadable,
                  edited, moves, summaries, peak_tokens
  need[]          with --need: policy, answers, needed, by_chance, share, chance, conversations,
                  conversations_in_need
  each[]          id, and prices[] with, for each policy, policy, cost_usd, cost_units,
                  tokens_sent, refused";

#[derive(Clone, Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Recorded conversations or requests as JSON Lines; `-` reads standard input
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    /// Compare only these policies with raw [default: every strategy and pace, and the routes of the configuration]
    #[arg(short, long = "policy", value_name = "NAME", value_delimiter = ',')]
    pub(crate) policies: Vec<Policy>,
    /// How cached input is billed: `table` uses the model's own prices, `0.1` a tenth of the input price, `0.1/1.25` the
    /// same with cache writes at 1.25 times the input price
    #[arg(long = "price", value_name = "PRICE", value_delimiter = ',', default_value = "table")]
    pub(crate) prices: Vec<Regime>,
    /// Windows, in turns, to try with the policies that mask [default with --html or --recommend: 3,5,10,20,40]
    #[arg(long, value_name = "TURNS", value_delimiter = ',')]
    pub(crate) windows: Vec<std::num::NonZeroU32>,
    /// Replay everything as if it had been sent to this model
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// The time to assume between requests without timestamps
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = humantime::parse_duration)]
    pub(crate) gap: Duration,
    /// Print one JSON object instead of tables
    #[arg(long)]
    pub(crate) json: bool,
    /// Write an HTML report with plots to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write every forwarded request to this file, one JSON object per request and policy
    #[arg(long, value_name = "FILE")]
    pub(crate) forwarded: Option<PathBuf>,
    /// Measure how many answers use an identifier that only a masked or trimmed result held
    #[arg(long)]
    pub(crate) need: bool,
    /// Recommend the cheapest policy under which no request would have been refused, with a window no shorter than the
    /// configured one unless --windows, --policy or --keep-at-least ask for it
    #[arg(long)]
    pub(crate) recommend: bool,
    /// Recommend only policies that keep at least this many turns unedited
    #[arg(long, value_name = "TURNS", requires = "recommend")]
    pub(crate) keep_at_least: Option<u32>,
    /// Recommend only policies that never send more than this many tokens in a request
    #[arg(long, value_name = "TOKENS", requires = "recommend")]
    pub(crate) peak: Option<u64>,
    /// Recommend only these strategies
    #[arg(long, value_name = "STRATEGY", value_delimiter = ',', requires = "recommend", value_parser = parse_strategy)]
    pub(crate) only: Vec<Strategy>,
}
