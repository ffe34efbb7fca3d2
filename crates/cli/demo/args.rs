//! The command line of `tidegate demo`.

use crate::args::parse_strategy;
use clap::Args;
use tidegate_engine::Strategy;
use tidegate_wire::Dialect;

pub(crate) const MORE: &str = "\
Examples:
  tidegate demo                                       masking, with the prices of gpt-4o
  tidegate demo --model gpt-5 --exit                  where cached input costs a tenth
  tidegate demo --strategy hybrid                     with another strategy
  tidegate demo --dialect messages --model claude-sonnet-4-5   through Anthropic's API
  tidegate demo --recording | tidegate replay -       the same run under every policy

The recorded agent finds, fixes and tests a bug in a small repository; every command output in it
is real. The simulated provider counts tokens and caches prompts like OpenAI, so that the `usage` in
its responses is what a real provider would report. After the run, the printed dashboard address
shows every turn; `tidegate conversations` and curl work with the same address.";

#[derive(Clone, Debug, Args)]
pub(crate) struct DemoArgs {
    /// The model whose window and prices to use
    #[arg(long, value_name = "NAME", default_value = "gpt-4o")]
    pub(crate) model: String,
    /// The strategy of the proxy: passthrough, masking, summarization, hybrid or window
    #[arg(long, value_name = "NAME", default_value = "masking", value_parser = parse_strategy)]
    pub(crate) strategy: Strategy,
    /// The API that the agent speaks: chat, messages or responses
    #[arg(long, value_name = "NAME", default_value = "chat", value_parser = parse_dialect)]
    pub(crate) dialect: Dialect,
    /// Exit after the run instead of waiting for Ctrl-C
    #[arg(long)]
    pub(crate) exit: bool,
    /// Print the recorded run as input for `tidegate replay` instead
    #[arg(long)]
    pub(crate) recording: bool,
}

fn parse_dialect(name: &str) -> Result<Dialect, String> {
    Dialect::from_name(name).ok_or_else(|| "expected one of: chat, messages, responses".to_owned())
}
