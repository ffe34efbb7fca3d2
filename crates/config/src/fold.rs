use crate::choice::{Choice, choices};
use crate::section::Section;
use crate::value;
use std::num::NonZeroU32;
use std::time::Duration;
use tidegate_engine::{FoldPace, Keep, Tokens, Trigger};

#[derive(Clone, Debug, PartialEq)]
pub struct Fold {
    pub when: Trigger,
    pub keep: Keep,
    pub pace: FoldPace,
    pub mode: FoldMode,
    pub max_tokens: Tokens,
    pub timeout: Duration,
    pub role: FoldRole,
    /// `extractive`, or a key of `Settings::summarizers`.
    pub summarizer: String,
    /// Whether the first user message stays verbatim for ever.
    pub pin_task: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoldMode {
    /// At the trigger, before forwarding.
    Inline,
    /// At the trigger, for the next request.
    Background,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoldRole {
    User,
    System,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Prune {
    pub when: Trigger,
    pub keep: Keep,
}

/// The head and the tail that `strategy = "window"` keeps.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    pub head_ratio: f64,
    pub tail_ratio: f64,
    pub head_max: NonZeroU32,
    pub tail_max: NonZeroU32,
    pub head_min: NonZeroU32,
    pub tail_min: NonZeroU32,
}

impl Choice for FoldPace {
    const ALL: &'static [(&'static str, FoldPace)] =
        &[("at_trigger", FoldPace::AtTrigger), ("break_even", FoldPace::BreakEven)];
}

choices!(FoldMode { "inline" => Inline, "background" => Background });
choices!(FoldRole { "user" => User, "system" => System });

impl Fold {
    pub(crate) fn read(section: &mut Section<'_>, summarizers: &[&str]) -> Fold {
        let when =
            Trigger { budget_ratio: Some(0.70), user_turns: Some(at_least_one(8)), ..Trigger::default() };
        // Who names a moment wants it then; the moment that nobody chose waits until it costs nothing.
        let pace = if section.has("when") { FoldPace::AtTrigger } else { FoldPace::BreakEven };
        Fold {
            when: section.trigger("when", when),
            keep: section.keep("keep", Keep::Turns(at_least_one(4))),
            pace: section.choice("pace", pace),
            mode: section.choice("mode", FoldMode::Background),
            max_tokens: section.some_tokens("max_tokens", 1500),
            timeout: section.duration("timeout", Duration::from_secs(20)),
            role: section.choice("role", FoldRole::User),
            summarizer: section
                .text("summarizer", "extractive", |node| value::one_of(node, summarizers).map(str::to_owned)),
            pin_task: section.flag("pin_task", false),
        }
    }
}

impl Prune {
    pub(crate) fn read(section: &mut Section<'_>) -> Prune {
        let when = Trigger { budget_ratio: Some(0.90), ..Trigger::default() };
        Prune {
            when: section.trigger("when", when),
            keep: section.keep("keep", Keep::Turns(at_least_one(4))),
        }
    }
}

impl Window {
    pub(crate) fn read(section: &mut Section<'_>) -> Window {
        let window = Window {
            head_ratio: section.ratio("head_ratio", 0.25),
            tail_ratio: section.ratio("tail_ratio", 0.70),
            head_max: section.count("head_max", at_least_one(20)),
            tail_max: section.count("tail_max", at_least_one(20)),
            head_min: section.count("head_min", at_least_one(3)),
            tail_min: section.count("tail_min", at_least_one(5)),
        };
        if window.head_ratio + window.tail_ratio > 1.0 {
            let hint = "the head and the tail share one budget";
            section.blame(
                &["tail_ratio", "head_ratio"],
                "must not exceed 1 together with the other ratio",
                hint,
            );
        }
        let hint = "lower the one or raise the other";
        if window.head_min > window.head_max {
            section.blame(&["head_min", "head_max"], "`head_min` must not exceed `head_max`", hint);
        }
        if window.tail_min > window.tail_max {
            section.blame(&["tail_min", "tail_max"], "`tail_min` must not exceed `tail_max`", hint);
        }
        window
    }
}

/// For the defaults, which are all more than zero.
pub(crate) fn at_least_one(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN)
}
