//! The policies to compare, and their names on the command line.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;
use tidegate_config::{Context, Flags, Fold, Limits, Mask, Settings, Source, Trim, load, saved_route};
use tidegate_engine::{FoldPace, Keep, Pace, Strategy};
use tidegate_wire::Dialect;

/// One policy to compare.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Policy {
    pub kind: Kind,
    /// The number of recent turns that it leaves unedited, or `None` for the configured value.
    pub keep: Option<NonZeroU32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Edits nothing. The baseline of the comparison.
    Raw,
    EveryTurn,
    Batch(NonZeroU32),
    BreakEven,
    /// Masking at break-even, and excerpts of long results before that.
    Trim,
    Summarization,
    Hybrid,
    Window,
    /// The profile `coding-agent`, with the route's budget.
    CodingAgent,
    /// A route of the configuration, unchanged.
    Route(String),
}

impl Policy {
    pub const RAW: Policy = Policy { kind: Kind::Raw, keep: None };

    /// Returns every strategy with every pace, and the configured routes.
    #[must_use]
    pub fn all(routes: impl IntoIterator<Item = String>) -> Vec<Policy> {
        let ten = NonZeroU32::MIN.saturating_add(9);
        let built_in = [
            Kind::Raw,
            Kind::EveryTurn,
            Kind::Batch(ten),
            Kind::BreakEven,
            Kind::Trim,
            Kind::Summarization,
            Kind::Hybrid,
            Kind::Window,
            Kind::CodingAgent,
        ];
        let kinds = built_in.into_iter().chain(routes.into_iter().map(Kind::Route));
        kinds.map(|kind| Policy { kind, keep: None }).collect()
    }

    /// Returns the context of a conversation with this model, or `None` if no route matches the model, which means that it is not
    /// edited.
    ///
    /// Settings that the policy does not determine come from the route.
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
        let routed = |dialect: Dialect| saved_route(&settings.routes, dialect.path(), model);
        let route = [Dialect::Chat, Dialect::Messages, Dialect::Responses].into_iter().find_map(routed)?;
        let mut context = (*route.context).clone();
        // The comparison needs the policy's edits, even if the route only observes.
        context.observe = false;
        context.strategy = self.strategy(&context);
        if self.kind == Kind::Raw {
            // Without the proxy there are no limits.
            context.limits = Limits::default();
        }
        match self.kind {
            Kind::Trim => _ = context.trim.get_or_insert_with(Trim::default),
            Kind::CodingAgent => {}
            // Excerpts are what the other two are compared for.
            _ => context.trim = None,
        }
        match self.kind {
            Kind::EveryTurn => context.mask.policy.pace = Pace::EveryTurn,
            Kind::Batch(size) => context.mask.policy.pace = Pace::Batch(size),
            Kind::BreakEven | Kind::Trim => context.mask.policy.pace = Pace::BreakEven,
            Kind::CodingAgent => as_coding_agent(&mut context),
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

    /// Returns the policy's strategy. `route` is only used by [`Kind::Route`].
    #[must_use]
    pub fn strategy(&self, route: &Context) -> Strategy {
        match self.kind {
            Kind::Raw => Strategy::Passthrough,
            Kind::EveryTurn | Kind::Batch(_) | Kind::BreakEven | Kind::Trim => Strategy::Masking,
            Kind::Summarization => Strategy::Summarization,
            Kind::Hybrid | Kind::CodingAgent => Strategy::Hybrid,
            Kind::Window => Strategy::Window,
            Kind::Route(_) => route.strategy,
        }
    }
}

/// The profile's settings, on top of a route's budget, observations and limits.
fn as_coding_agent(context: &mut Context) {
    let source = Source::new("coding-agent", "[context]\nprofile = \"coding-agent\"\n");
    // The profile is built in, and a test checks that it is valid.
    let Ok(settings) = load(source, &Flags::default(), &|_| None) else { return };
    let profile = &settings.routes[0].context;
    let mask = Mask {
        placeholder: context.mask.placeholder.clone(),
        exclude_tools: context.mask.exclude_tools.clone(),
        ..profile.mask.clone()
    };
    let Context { fold, prune, recall, trim, .. } = (**profile).clone();
    let fold = Fold { summarizer: context.fold.summarizer.clone(), ..fold };
    let profile = profile.profile.clone();
    *context = Context { profile, mask, fold, prune, recall, trim, ..context.clone() };
}

/// Whether prices influence the decisions, not only the bill.
pub(crate) fn weighs_prices(context: &Context) -> bool {
    let trims = context.trim.as_ref().is_some_and(|trim| trim.policy.pace == Pace::BreakEven);
    let masks = context.mask.policy.pace == Pace::BreakEven || trims;
    let folds = context.fold.pace == FoldPace::BreakEven;
    match context.strategy {
        Strategy::Passthrough | Strategy::Window => false,
        Strategy::Masking => masks,
        Strategy::Summarization => folds || trims,
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
            Kind::Trim => f.write_str("masking+trim")?,
            Kind::CodingAgent => f.write_str("coding-agent")?,
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
        let known = "raw, masking:every_turn, masking:batch=10, masking:break_even, masking+trim, summarization, hybrid, window, \
                     coding-agent, route:NAME; append @20 to one that masks or folds to keep twenty turns";
        let wrong = || format!("unknown policy `{text}`; expected one of: {known}");
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
            "masking+trim" => Kind::Trim,
            "coding-agent" => Kind::CodingAgent,
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

    #[test]
    fn the_displayed_name_of_a_policy_parses_back() {
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
    fn settings_that_the_policy_does_not_determine_come_from_the_route() {
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
