//! What can be typed after `tidegate replay`.

use crate::args::{ConfigArgs, strategy};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;
use tidegate_engine::Strategy;
use tidegate_replay::{Policy, Regime};

pub(crate) const MORE: &str = "\
Examples:
  tidegate replay runs.jsonl                          every strategy and pace, at the model's prices
  tidegate replay runs.jsonl --price 1,0.5,0.1        where cached input costs ×1, ×0.5, ×0.1
  tidegate replay runs.jsonl --html report.html       one page with plots, for a browser
  tidegate replay runs.jsonl --recommend              the cheapest policy, for proxy.toml
  tidegate replay runs.jsonl --recommend --keep-at-least 10 --only masking
                                                      the cheapest that does no more than that
  tidegate replay runs.jsonl --config proxy.toml      with the routes of your own configuration
  tidegate replay runs.jsonl --policy masking:break_even@20 --policy hybrid
                                                      only these, against raw
  tidegate conversations export my-agent-42 | tidegate replay -
                                                      a conversation that was kept

Files (JSON, one object a line; detected by the first line):
  conversations   {\"id\",\"model\",\"messages\",\"tools\"?}, also as `conversations export` writes them.
                  Request n is everything before the n-th assistant message
  request logs    bodies of chat completions, alone or as `body` or `request` beside a time,
                  `headers` or a `conversation_id`. Requests that begin with an earlier one
                  continue its conversation
  A `timestamp`, `created_at`, `time`, `ts` or `created` of a message or a log line says when it
  was sent, in seconds, milliseconds or as a date; it is not part of the request.

Policies (--policy; more than one with commas or repeated):
  raw, masking:every_turn, masking:batch=N, masking:break_even, summarization, hybrid, window,
  route:NAME. @TURNS behind one that masks or folds is its window: masking:break_even@20. What a
  name does not say is as the configuration says it for the conversation's model.

What is billed is the input of every request, by a model of the provider's prompt cache: what was
sent before is found again in whole steps, from a minimum on, while it lives; the rest is written.
Answers cost the same under every policy and are not in it. `worst` is the conversation in which a
policy does worst, with its cost / raw. `edited` are requests that go out edited, `moves` those
that change what the provider has seen before, and so miss its cache. Summaries are made by the
built-in summarizer.

JSON (--json), one object; more members may come, none of these goes:
  conversations, requests, untimed, gap_s, models[], notes[]
  prices[]        price, policies[], and with --recommend recommended: null, or policy,
                  ratio_to_raw, snippet
  …policies[]     policy, requests, tokens_before, tokens_sent, tokens_cached, cached_share,
                  cost_usd (null where a price is unknown), cost_units (tokens at the plain input
                  price), ratio_to_raw, worst (id, ratio_to_raw), refused, over_window, unreadable,
                  edited, moves, summaries, peak_tokens
  each[]          id, and prices[] with, for each policy, policy, cost_usd, cost_units,
                  tokens_sent, refused";

#[derive(Clone, Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Recorded conversations or requests, JSON Lines; `-` reads standard input
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    /// Compare only these policies with raw [default: every strategy and pace, and the routes of the configuration]
    #[arg(short, long = "policy", value_name = "NAME", value_delimiter = ',')]
    pub(crate) policies: Vec<Policy>,
    /// How cached input is billed: `table` for the model's own prices, `0.1` for a tenth of the input price, `0.1/1.25` with
    /// writes at 1.25 times of it
    #[arg(long = "price", value_name = "PRICE", value_delimiter = ',', default_value = "table")]
    pub(crate) prices: Vec<Regime>,
    /// Windows in turns to try the policies that mask with [default with --html or --recommend: 3,5,10,20,40]
    #[arg(long, value_name = "TURNS", value_delimiter = ',')]
    pub(crate) windows: Vec<std::num::NonZeroU32>,
    /// Replay everything as if it had been sent to this model
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// The time between two requests that have no timestamps
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = humantime::parse_duration)]
    pub(crate) gap: Duration,
    /// Print one JSON object instead of tables
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a page with plots to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write what would be forwarded to this file, one JSON object for each request and policy
    #[arg(long, value_name = "FILE")]
    pub(crate) forwarded: Option<PathBuf>,
    /// Name the cheapest policy under which every request would have been answered
    #[arg(long)]
    pub(crate) recommend: bool,
    /// Recommend only what keeps so many turns as they were
    #[arg(long, value_name = "TURNS", requires = "recommend")]
    pub(crate) keep_at_least: Option<u32>,
    /// Recommend only what never sends more than so many tokens in one request
    #[arg(long, value_name = "TOKENS", requires = "recommend")]
    pub(crate) peak: Option<u64>,
    /// Recommend only these strategies
    #[arg(long, value_name = "STRATEGY", value_delimiter = ',', requires = "recommend", value_parser = strategy)]
    pub(crate) only: Vec<Strategy>,
}
