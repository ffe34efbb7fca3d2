use crate::choice::{Choice, choices};
use crate::section::Section;
use crate::value;
use std::num::NonZeroU32;
use std::time::Duration;
use tidegate_engine::{FoldPace, Keep, SummaryLimit, Tokens, Trigger};

/// When old messages are folded into a summary, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Fold {
    pub when: Trigger,
    pub keep: Keep,
    pub pace: FoldPace,
    pub mode: FoldMode,
    /// The maximum length of a summary.
    pub max_tokens: SummaryLimit,
    /// How long a summary may take.
    pub timeout: Duration,
    /// The role of the message that holds the summary.
    pub role: FoldRole,
    /// Whether the summary is a message of its own.
    pub placement: FoldPlacement,
    /// `extractive`, or a key of `Settings::summarizers`.
    pub summarizer: String,
    /// Whether the facts that a model leaves out are added to its summary.
    pub complete: bool,
    /// Whether the first user message is never folded.
    pub pin_task: bool,
}

/// When a summary that is due is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoldMode {
    /// Before the request is forwarded.
    Inline,
    /// While the request is forwarded, for the next one.
    Background,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoldRole {
    User,
    System,
}

/// Where a summary or a marker in role `user` stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoldPlacement {
    /// In the neighbouring user message, as a part of its own.
    Merge,
    /// In a message of its own.
    Message,
}

/// When messages beyond `fold.keep` go, too.
#[derive(Clone, Debug, PartialEq)]
pub struct Prune {
    pub when: Trigger,
    pub keep: Keep,
}

impl Choice for FoldPace {
    const ALL: &'static [(&'static str, FoldPace)] =
        &[("at_trigger", FoldPace::AtTrigger), ("break_even", FoldPace::BreakEven)];
}

choices!(FoldMode { "inline" => Inline, "background" => Background });
choices!(FoldPlacement { "merge" => Merge, "message" => Message });
choices!(FoldRole { "user" => User, "system" => System });

impl Fold {
    pub(crate) fn read(section: &mut Section<'_>, summarizers: &[&str]) -> Fold {
        let when = Trigger { budget_ratio: Some(0.85), ..Trigger::default() };
        // An operator who sets `when` wants summaries at that point. The default trigger waits until a summary pays off.
        let pace = if section.has("when") { FoldPace::AtTrigger } else { FoldPace::BreakEven };
        let when = section.trigger("when", when);
        Fold {
            when,
            keep: section.keep("keep", default_keep(&when)),
            pace: section.choice("pace", pace),
            mode: section.choice("mode", FoldMode::Background),
            max_tokens: section.summary_limit("max_tokens", MAX_TOKENS),
            timeout: section.duration("timeout", Duration::from_secs(20)),
            role: section.choice("role", FoldRole::User),
            placement: section.choice("placement", FoldPlacement::Merge),
            summarizer: section
                .text("summarizer", "extractive", |node| value::one_of(node, summarizers).map(str::to_owned)),
            complete: section.flag("complete", true),
            pin_task: section.flag("pin_task", false),
        }
    }
}

const MAX_TOKENS: SummaryLimit = SummaryLimit::Share { ratio: 0.10, min: Tokens(1500) };

/// What stays if only `when` is set: up to half of the budget, and less where the trigger fires earlier, so that there is something
/// to fold when it does. A trigger that counts turns or messages knows no budget.
fn default_keep(when: &Trigger) -> Keep {
    if when.messages.or(when.turns).or(when.user_turns).is_some() {
        return Keep::Turns(nonzero(4));
    }
    let ratio = when.budget_ratio.map_or(0.5, |ratio| (ratio * 0.6).min(0.5));
    Keep::Ratio((ratio * 100.0).round() / 100.0)
}

impl Prune {
    pub(crate) fn read(section: &mut Section<'_>) -> Prune {
        let when = Trigger { budget_ratio: Some(0.90), ..Trigger::default() };
        Prune { when: section.trigger("when", when), keep: section.keep("keep", Keep::Turns(nonzero(4))) }
    }
}

/// A default that is known not to be zero.
pub(crate) fn nonzero(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN)
}
