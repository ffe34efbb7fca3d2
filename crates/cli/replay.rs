//! What recorded conversations would have cost under every policy. They are replayed by the code of the running proxy, and sent
//! nowhere.

pub(crate) mod args;
mod forwarded;
mod json;
mod notes;
mod progress;
mod table;

use crate::conversations::terminal;
use crate::settings;
use anyhow::{Context as _, bail};
use args::ReplayArgs;
use std::num::NonZeroU32;
use std::process::ExitCode;
use tidegate_config::Settings;
use tidegate_replay::{
    Bounds, Comparison, Defaults, Kind, Policy, Recommendation, Setup, compare, recommend, report,
};

/// A replay that is done.
struct Outcome<'a> {
    setup: &'a Setup,
    comparison: &'a Comparison,
    /// What is worth knowing about the figures, in sentences.
    notes: Vec<String>,
    /// For each price, where it was asked for.
    recommended: Option<Vec<Option<Recommendation>>>,
}

/// The windows that are tried where none are named.
const WINDOWS: [u32; 5] = [3, 5, 10, 20, 40];

pub(crate) fn run(args: &ReplayArgs) -> anyhow::Result<ExitCode> {
    let settings = settings::read(&args.config)?;
    let setup = setup(args, settings)?;
    let defaults = Defaults { model: args.model.clone() };
    let bar = progress::Bar::over(&args.files);
    let comparison = compare(&args.files, &setup, &defaults, &|progress| bar.show(progress))?;
    bar.finish();
    if comparison.totals.iter().all(|totals| totals.iter().all(|figures| figures.requests == 0)) {
        bail!(
            "there is no request in it\n  hint: a conversation needs an assistant message; request n is everything before the n-th"
        );
    }
    let bounds = Bounds { keep_at_least: args.keep_at_least, peak: args.peak, only: args.only.clone() };
    let outcome = Outcome {
        setup: &setup,
        comparison: &comparison,
        notes: notes::of(&setup, &comparison, args.gap),
        recommended: args.recommend.then(|| {
            let regimes = 0..setup.regimes.len();
            regimes.map(|regime| recommend(&setup, &comparison, regime, &bounds)).collect()
        }),
    };
    if let Some(path) = &args.forwarded {
        forwarded::write(path, &args.files, &setup, &defaults)?;
    }
    if let Some(path) = &args.html {
        let page =
            report(&setup, &comparison, &outcome.notes, outcome.recommended.as_deref().unwrap_or_default());
        std::fs::write(path, page).with_context(|| format!("cannot write `{}`", path.display()))?;
        terminal::say(&format!("the report is in {}", path.display()));
    }
    if args.json {
        terminal::print_json(format!("{:#}\n", json::of(&outcome)).as_bytes());
    } else {
        terminal::print(table::render(&outcome).as_bytes());
    }
    Ok(ExitCode::SUCCESS)
}

fn setup(args: &ReplayArgs, settings: Settings) -> anyhow::Result<Setup> {
    let mut policies = if args.policies.is_empty() {
        // Without a configuration the only route is what `masking:break_even` is already.
        let has_file = settings::path(&args.config).is_some();
        let routes = settings.routes.iter().filter(|_| has_file).map(|route| route.name.clone());
        Policy::all(routes)
    } else {
        args.policies.clone()
    };
    for policy in &policies {
        if let Kind::Route(name) = &policy.kind
            && !settings.routes.iter().any(|route| route.name == *name)
        {
            let names: Vec<&str> = settings.routes.iter().map(|route| route.name.as_str()).collect();
            bail!("there is no route `{name}`\n  hint: the routes are {}", names.join(", "));
        }
    }
    policies.retain(|policy| *policy != Policy::RAW);
    policies.insert(0, Policy::RAW);
    let main = policies.len();
    let sweeps = args.recommend || args.html.is_some();
    let windows: Vec<NonZeroU32> = match args.windows.as_slice() {
        [] if sweeps => WINDOWS.into_iter().filter_map(NonZeroU32::new).collect(),
        windows => windows.to_vec(),
    };
    for kind in [Kind::EveryTurn, Kind::BreakEven, Kind::Hybrid] {
        let with = |keep: &NonZeroU32| Policy { kind: kind.clone(), keep: Some(*keep) };
        policies.extend(windows.iter().map(with));
    }
    let gap = u64::try_from(args.gap.as_millis()).context("the gap is too long")?;
    Ok(Setup { settings, policies, regimes: args.prices.clone(), main, gap })
}
