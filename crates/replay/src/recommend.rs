//! Recommends the cheapest policy within bounds.

use crate::comparison::Comparison;
use crate::figures::Figures;
use crate::policy::{Kind, Policy};
use crate::run::Setup;
use tidegate_config::{Context, Trim, strategy_name};
use tidegate_engine::{Keep, Pace, Strategy};

/// Limits on a recommended policy. A policy under which requests are refused is never recommended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// The minimum number of turns that stay unedited.
    pub keep_at_least: Option<u32>,
    /// The maximum number of tokens in a request.
    pub peak: Option<u64>,
    /// The allowed strategies; empty allows any.
    pub only: Vec<Strategy>,
    /// Whether masks must keep at least the configured window. What a shorter window costs an agent in quality, no replay can
    /// tell, so nobody should get one without asking.
    pub keeps_configured: bool,
}

/// The cheapest policy within bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Recommendation {
    /// Its index in [`Setup::policies`].
    pub policy: usize,
    pub ratio: f64,
    /// Lines for `proxy.toml`.
    pub snippet: String,
}

/// Returns `None` if no policy is within the bounds. Among equally cheap policies, prefers the one that edits
/// nothing.
#[must_use]
pub fn recommend(
    setup: &Setup,
    comparison: &Comparison,
    regime: usize,
    bounds: &Bounds,
) -> Option<Recommendation> {
    // The policies are the same for every model without a route of its own, so the first model stands for
    // all.
    let model = comparison.models.first().map_or("", String::as_str);
    let totals = comparison.totals.get(regime)?;
    let raw = totals.first()?;
    let allowed = setup.policies.iter().zip(totals).enumerate().filter_map(|(index, (policy, figures))| {
        let context = policy.context(&setup.settings, model)?;
        let is_eligible = is_within(policy, &context, figures, bounds)
            && !(bounds.keeps_configured && masks_below(policy, &context, setup));
        is_eligible.then_some((index, policy, context, figures.cost.units))
    });
    // Ties go to raw, then to the pace that also suits other prices.
    let rank = |policy: &Policy| match policy.kind {
        Kind::Raw => 0,
        Kind::BreakEven => 1,
        _ => 2,
    };
    let is_better = |one: (f64, &Policy), best: (f64, &Policy)| {
        let is_same = (one.0 - best.0).abs() <= best.0 * 1e-9;
        if is_same { rank(one.1) < rank(best.1) } else { one.0 < best.0 }
    };
    let cheapest =
        allowed.reduce(|best, one| if is_better((one.3, one.1), (best.3, best.1)) { one } else { best });
    cheapest.map(|(index, policy, context, _)| Recommendation {
        policy: index,
        ratio: totals[index].cost.ratio_to(&raw.cost),
        snippet: snippet(policy, &context),
    })
}

fn is_within(policy: &Policy, context: &Context, figures: &Figures, bounds: &Bounds) -> bool {
    let strategy = policy.strategy(context);
    figures.unanswered() == 0
        && bounds.peak.is_none_or(|peak| figures.peak <= peak)
        && (bounds.only.is_empty() || bounds.only.contains(&strategy))
        && bounds
            .keep_at_least
            .is_none_or(|least| turns_kept(strategy, context).is_some_and(|kept| kept >= least))
}

/// Whether the policy masks what the configuration would keep. A route is itself what the configuration says, but a profile brings
/// a window of its own.
fn masks_below(policy: &Policy, context: &Context, setup: &Setup) -> bool {
    let is_route = matches!(policy.kind, Kind::Route(_));
    if is_route || !policy.strategy(context).masks() {
        return false;
    }
    let configured = setup.settings.routes.first().map(|route| route.context.mask.policy.keep);
    match (context.mask.policy.keep, configured) {
        (Keep::Turns(tried), Some(Keep::Turns(configured))) => tried < configured,
        // Windows in other units cannot be compared with turns.
        _ => false,
    }
}

/// The number of turns that stay unedited; `None` if it depends on the conversation.
fn turns_kept(strategy: Strategy, context: &Context) -> Option<u32> {
    let turns = |keep: Keep| match keep {
        Keep::Turns(turns) => Some(turns.get()),
        Keep::UserTurns(_) | Keep::Messages(_) | Keep::Tokens(_) | Keep::Ratio(_) => None,
    };
    match strategy {
        Strategy::Passthrough => Some(u32::MAX),
        Strategy::Masking => turns(context.mask.policy.keep),
        Strategy::Summarization => turns(context.fold.keep),
        Strategy::Hybrid => Some(turns(context.mask.policy.keep)?.min(turns(context.fold.keep)?)),
        Strategy::Window => None,
    }
}

fn snippet(policy: &Policy, context: &Context) -> String {
    if let Kind::Route(name) = &policy.kind {
        return format!("# The route `{name}`, unchanged.\n");
    }
    if policy.kind == Kind::CodingAgent {
        let keep = toml(context.mask.policy.keep);
        return format!("[context]\nprofile = \"coding-agent\"\n\n[context.mask]\nkeep = {keep}\n");
    }
    let strategy = policy.strategy(context);
    let mut lines = format!("[context]\nstrategy = \"{}\"\n", strategy_name(strategy));
    if strategy.masks() {
        let (keep, pace) = (toml(context.mask.policy.keep), paced(context.mask.policy.pace));
        lines += &format!("\n[context.mask]\nkeep = {keep}\npace = {pace}\n");
    }
    if let Some(Trim { policy, min_tokens, keep_tokens, exclude_tools }) = &context.trim {
        let (after, pace) = (toml(policy.after), paced(policy.pace));
        lines += &format!(
            "\n[context.trim]\nafter = {after}\nmin_tokens = {min_tokens}\nkeep_tokens = {keep_tokens}\npace = {pace}\n"
        );
        if !exclude_tools.is_empty() {
            // What a glob may consist of is written alike in TOML and in Rust.
            let globs: Vec<String> =
                exclude_tools.iter().map(|glob| format!("{:?}", glob.to_string())).collect();
            lines += &format!("exclude_tools = [{}]\n", globs.join(", "));
        }
    }
    if strategy.folds() {
        lines += &format!("\n[context.fold]\nkeep = {}\n", toml(context.fold.keep));
    }
    lines
}

fn paced(pace: Pace) -> String {
    match pace {
        Pace::EveryTurn => "\"every_turn\"".to_owned(),
        Pace::Batch(size) => format!("{{ batch = {size} }}"),
        Pace::BreakEven => "\"break_even\"".to_owned(),
    }
}

fn toml(keep: Keep) -> String {
    match keep {
        Keep::Turns(turns) => format!("{{ turns = {turns} }}"),
        Keep::UserTurns(turns) => format!("{{ user_turns = {turns} }}"),
        Keep::Messages(messages) => format!("{{ messages = {messages} }}"),
        Keep::Tokens(tokens) => format!("{{ tokens = {tokens} }}"),
        Keep::Ratio(ratio) => format!("{{ ratio = {ratio} }}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::price::{Cost, Regime};
    use tidegate_config::{Flags, Source, load};

    fn setup(policies: &[&str]) -> Setup {
        let settings = load(Source::none(), &Flags::default(), &|_| None).unwrap();
        let policies = policies.iter().map(|policy| policy.parse().unwrap()).collect();
        Setup { settings, policies, regimes: vec![Regime::Table], gap: 0, main: 0 }
    }

    /// A comparison with the given cost units, refused requests and peak for each policy.
    fn comparison(setup: &Setup, figures: &[(f64, u64, u64)]) -> Comparison {
        let mut comparison = Comparison::new(setup);
        comparison.totals[0] = figures
            .iter()
            .map(|&(units, refused, peak)| Figures {
                cost: Cost { units, ..Cost::default() },
                refused,
                peak,
                ..Figures::default()
            })
            .collect();
        comparison
    }

    #[test]
    fn the_cheapest_policy_within_bounds_is_recommended() {
        let setup =
            setup(&["raw", "masking:break_even@20", "masking:every_turn@3", "hybrid@5", "summarization"]);
        let found =
            comparison(&setup, &[(100., 0, 90), (60., 0, 50), (50., 0, 20), (40., 0, 9), (10., 1, 5)]);
        let named = |bounds: &Bounds| {
            let best = recommend(&setup, &found, 0, bounds)?;
            Some((setup.policies[best.policy].to_string(), best.ratio))
        };
        let some = |name: &str, ratio| Some((name.to_owned(), ratio));
        // A policy that refuses requests is not eligible.
        assert_eq!(named(&Bounds::default()), some("hybrid@5", 0.4));
        let least = |turns| Bounds { keep_at_least: Some(turns), ..Bounds::default() };
        // A share of the budget is as many turns as the conversation makes it.
        assert_eq!(named(&least(4)), some("masking:break_even@20", 0.6));
        assert_eq!(named(&least(5)), some("masking:break_even@20", 0.6));
        assert_eq!(named(&least(21)), some("raw", 1.0));
        let masks = Bounds { only: vec![Strategy::Masking], ..Bounds::default() };
        assert_eq!(named(&masks), some("masking:every_turn@3", 0.5));
        assert_eq!(named(&Bounds { peak: Some(10), ..masks.clone() }), None);
    }

    #[test]
    fn a_window_below_the_configured_one_has_to_be_asked_for() {
        let setup = setup(&["raw", "masking:break_even", "masking:break_even@3", "masking:break_even@20"]);
        let found = comparison(&setup, &[(100., 0, 90), (60., 0, 50), (40., 0, 20), (70., 0, 60)]);
        let best = |bounds: &Bounds| recommend(&setup, &found, 0, bounds).unwrap().policy;
        assert_eq!(best(&Bounds::default()), 2);
        // Ten turns, by default.
        assert_eq!(best(&Bounds { keeps_configured: true, ..Bounds::default() }), 1);
    }

    #[test]
    fn a_profile_with_a_shorter_window_has_to_be_asked_for_too() {
        let file = Source::new("proxy.toml", "[context.mask]\nkeep = { turns = 20 }\n");
        let settings = load(file, &Flags::default(), &|_| None).unwrap();
        let setup =
            Setup { settings, ..setup(&["raw", "masking:break_even", "coding-agent", "coding-agent@20"]) };
        let found = comparison(&setup, &[(100., 0, 90), (60., 0, 50), (40., 0, 20), (50., 0, 30)]);
        let best = |bounds: &Bounds| recommend(&setup, &found, 0, bounds).unwrap().policy;
        assert_eq!(best(&Bounds::default()), 2);
        assert_eq!(best(&Bounds { keeps_configured: true, ..Bounds::default() }), 3);
    }

    #[test]
    fn the_snippet_is_a_valid_configuration_of_the_policy() {
        for name in [
            "raw",
            "masking:break_even@20",
            "masking:batch=7",
            "masking+trim",
            "masking+trim@5",
            "hybrid@5",
            "summarization@2",
            "window",
            "coding-agent",
            "coding-agent@20",
        ] {
            let setup = setup(&[name]);
            let found = comparison(&setup, &[(1.0, 0, 1)]);
            let best = recommend(&setup, &found, 0, &Bounds::default()).unwrap();
            let settings =
                load(Source::new("proxy.toml", &best.snippet), &Flags::default(), &|_| None).unwrap();
            let parsed = &*settings.routes[0].context;
            assert_eq!(
                Some(parsed),
                setup.policies[0].context(&setup.settings, "").as_ref(),
                "{}",
                best.snippet
            );
        }
    }
}
