//! The policies that are compared, as they are named on the command line.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;
use tidegate_config::{Context, Limits, Settings, chat_route};
use tidegate_engine::{FoldPace, Keep, Pace, Strategy};

/// One policy: what it does, and how much of the end of a conversation it leaves alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Policy {
    pub kind: Kind,
    /// So many turns; as the configuration says where it is not given.
    pub keep: Option<NonZeroU32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Nothing is edited: what the others are compared with.
    Raw,
    EveryTurn,
    Batch(NonZeroU32),
    BreakEven,
    Summarization,
    Hybrid,
    Window,
    /// A route of the configuration, with all that it says.
    Route(String),
}

impl Policy {
    pub const RAW: Policy = Policy { kind: Kind::Raw, keep: None };

    /// Every strategy and every pace, and the routes of a configuration where there is one.
    #[must_use]
    pub fn all(routes: impl IntoIterator<Item = String>) -> Vec<Policy> {
        let ten = NonZeroU32::MIN.saturating_add(9);
        let built_in = [
            Kind::Raw,
            Kind::EveryTurn,
            Kind::Batch(ten),
            Kind::BreakEven,
            Kind::Summarization,
            Kind::Hybrid,
            Kind::Window,
        ];
        let kinds = built_in.into_iter().chain(routes.into_iter().map(Kind::Route));
        kinds.map(|kind| Policy { kind, keep: None }).collect()
    }

    /// The context that a conversation with this model gets. Nothing for a model that no route wants: it is not edited.
    ///
    /// What the policy's name does not say is as the route of that model says it.
    #[must_use]
    pub fn context(&self, settings: &Settings, model: &str) -> Option<Context> {
        if let Kind::Route(name) = &self.kind {
            return settings
                .routes
                .iter()
                .find(|route| route.name == *name)
                .map(|route| (*route.context).clone());
        }
        let model = Some(model).filter(|model| !model.is_empty());
        let mut context = (*chat_route(&settings.routes, model)?.context).clone();
        // Whoever asks what a policy would do wants it done.
        context.observe = false;
        context.strategy = self.strategy(&context);
        if self.kind == Kind::Raw {
            // Nobody else stops a conversation that goes past the proxy.
            context.limits = Limits::default();
        }
        match self.kind {
            Kind::EveryTurn => context.mask.policy.pace = Pace::EveryTurn,
            Kind::Batch(size) => context.mask.policy.pace = Pace::Batch(size),
            Kind::BreakEven => context.mask.policy.pace = Pace::BreakEven,
            Kind::Raw | Kind::Summarization | Kind::Hybrid | Kind::Window | Kind::Route(_) => {}
        }
        if let Some(turns) = self.keep {
            match context.strategy {
                Strategy::Masking => context.mask.policy.keep = Keep::Turns(turns),
                Strategy::Summarization => context.fold.keep = Keep::Turns(turns),
                Strategy::Hybrid => context.mask.policy.keep = Keep::Turns(turns),
                Strategy::Passthrough | Strategy::Window => {}
            }
        }
        Some(context)
    }

    /// What the policy does with messages. `of` is the context of a route, for a policy that is one.
    #[must_use]
    pub fn strategy(&self, of: &Context) -> Strategy {
        match self.kind {
            Kind::Raw => Strategy::Passthrough,
            Kind::EveryTurn | Kind::Batch(_) | Kind::BreakEven => Strategy::Masking,
            Kind::Summarization => Strategy::Summarization,
            Kind::Hybrid => Strategy::Hybrid,
            Kind::Window => Strategy::Window,
            Kind::Route(_) => of.strategy,
        }
    }
}

/// Whether prices change what is decided, and not only what it costs.
pub(crate) fn weighs_prices(context: &Context) -> bool {
    let masks = context.mask.policy.pace == Pace::BreakEven;
    let folds = context.fold.pace == FoldPace::BreakEven;
    match context.strategy {
        Strategy::Passthrough | Strategy::Window => false,
        Strategy::Masking => masks,
        Strategy::Summarization => folds,
        Strategy::Hybrid => masks || folds,
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Raw => f.write_str("raw")?,
            Kind::EveryTurn => f.write_str("masking:every_turn")?,
            Kind::Batch(size) => write!(f, "masking:batch={size}")?,
            Kind::BreakEven => f.write_str("masking:break_even")?,
            Kind::Summarization => f.write_str("summarization")?,
            Kind::Hybrid => f.write_str("hybrid")?,
            Kind::Window => f.write_str("window")?,
            Kind::Route(name) => write!(f, "route:{name}")?,
        }
        self.keep.map_or(Ok(()), |turns| write!(f, "@{turns}"))
    }
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(text: &str) -> Result<Policy, String> {
        let known = "raw, masking:every_turn, masking:batch=10, masking:break_even, summarization, hybrid, window, \
                     route:NAME; @20 behind those that mask or fold keeps twenty turns";
        let wrong = || format!("`{text}` is no policy: the policies are {known}");
        if let Some(name) = text.strip_prefix("route:") {
            return Ok(Policy { kind: Kind::Route(name.to_owned()), keep: None });
        }
        let (name, keep) = match text.split_once('@') {
            Some((name, turns)) => (name, Some(turns.parse().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let kind = match name {
            "raw" | "passthrough" => Kind::Raw,
            "masking" | "masking:break_even" => Kind::BreakEven,
            "masking:every_turn" => Kind::EveryTurn,
            "summarization" => Kind::Summarization,
            "hybrid" => Kind::Hybrid,
            "window" => Kind::Window,
            _ => {
                let size = name.strip_prefix("masking:batch=").and_then(|size| size.parse().ok());
                Kind::Batch(size.ok_or_else(wrong)?)
            }
        };
        if keep.is_some() && matches!(kind, Kind::Raw | Kind::Window) {
            return Err(wrong());
        }
        Ok(Policy { kind, keep })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_config::{Flags, Source, load};

    #[test]
    fn every_policy_is_written_as_it_is_read() {
        let mut all = Policy::all(["my route".to_owned()]);
        all.push("masking:break_even@20".parse().unwrap());
        all.push("hybrid@3".parse().unwrap());
        for policy in all {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        for wrong in ["", "mask", "raw@3", "window@3", "masking@0", "masking:batch=0", "hybrid@many"] {
            let error = wrong.parse::<Policy>().unwrap_err();
            assert!(error.contains("masking:every_turn"), "{error}");
        }
    }

    #[test]
    fn what_a_name_does_not_say_is_as_the_route_says() {
        let text = "[context.mask]\nkeep = { turns = 6 }\nplaceholder = \"-\"\n\
                    [[routes]]\nname = \"a\"\nmatch = { models = [\"gpt-*\"] }\ncontext.strategy = \"hybrid\"\n";
        let settings = load(Source::new("proxy.toml", text), &Flags::default(), &|_| None).unwrap();
        let policy: Policy = "masking:every_turn".parse().unwrap();
        let context = policy.context(&settings, "gpt-4o").unwrap();
        assert_eq!((context.strategy, context.mask.placeholder.as_str()), (Strategy::Masking, "-"));
        assert_eq!(context.mask.policy.pace, Pace::EveryTurn);
        assert_eq!(policy.context(&settings, "other"), None);
        let route: Policy = "route:a".parse().unwrap();
        assert_eq!(route.context(&settings, "other").unwrap().strategy, Strategy::Hybrid);
    }
}
