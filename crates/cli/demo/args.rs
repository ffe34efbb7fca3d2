//! What can be typed after `tidegate demo`.

use crate::args::strategy;
use clap::Args;
use tidegate_engine::Strategy;

pub(crate) const MORE: &str = "\
Examples:
  tidegate demo                                       masking, at the prices of gpt-4o
  tidegate demo --model gpt-5 --exit                  where cached input costs a tenth
  tidegate demo --strategy hybrid                     with another strategy
  tidegate demo --recording | tidegate replay -       the same run under every policy

Every command of the run was really run, in a small repository that was written for it: a bug is
found, fixed and tested. The provider counts tokens and remembers prompts as OpenAI does, so that `usage` in its
answers is what a real one would report. When the run is over, the dashboard at the address that
it prints shows every turn of it; `tidegate conversations` and curl can ask the same address.";

#[derive(Clone, Debug, Args)]
pub(crate) struct DemoArgs {
    /// Whose window and prices count
    #[arg(long, value_name = "NAME", default_value = "gpt-4o")]
    pub(crate) model: String,
    /// The strategy of the proxy
    #[arg(long, value_name = "NAME", default_value = "masking", value_parser = strategy)]
    pub(crate) strategy: Strategy,
    /// End when the run is over, instead of at Ctrl-C
    #[arg(long)]
    pub(crate) exit: bool,
    /// Print the recorded run instead, as a line for `tidegate replay`
    #[arg(long)]
    pub(crate) recording: bool,
}
