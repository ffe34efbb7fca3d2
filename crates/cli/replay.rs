//! `tidegate replay`: compares the cost of recorded conversations under every policy. Uses the proxy's own
//! code and sends nothing.

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
use tidegate_config::Settings;
use tidegate_replay::{
    Bounds, Comparison, Defaults, Kind, Need, Policy, Recommendation, Setup, compare, measure_need,
    recommend, report,
};

/// The result of a replay.
struct ReplayResult<'a> {
    setup: &'a Setup,
    comparison: &'a Comparison,
    /// Caveats about the figures, in sentences.
    notes: Vec<String>,
    /// One for each policy, with `--need`.
    needs: Option<Vec<Need>>,
    /// One for each price, with `--recommend`.
    recommendations: Option<Vec<Option<Recommendation>>>,
}

/// The windows to try if none are given.
const DEFAULT_WINDOWS: [u32; 5] = [3, 5, 10, 20, 40];

pub(crate) fn run(args: &ReplayArgs) -> anyhow::Result<()> {
    let settings = settings::read(&args.config)?;
    let setup = setup(args, settings)?;
    let defaults = Defaults { model: args.model.clone() };
    let bar = progress::ProgressDisplay::new(&args.files);
    let comparison = compare(&args.files, &setup, &defaults, &|progress| bar.show(progress))?;
    bar.finish();
    if comparison.totals.iter().all(|totals| totals.iter().all(|figures| figures.requests == 0)) {
        bail!(
            "the input has no requests\n  hint: a conversation needs an assistant message; request n is everything before the n-th"
        );
    }
    // Who names windows or a bound asks for shorter windows than the configured one.
    let keeps_configured =
        args.keep_at_least.is_none() && args.windows.is_empty() && args.policies.is_empty();
    let bounds = Bounds {
        keep_at_least: args.keep_at_least,
        peak: args.peak,
        only: args.only.clone(),
        keeps_configured,
    };
    let result = ReplayResult {
        setup: &setup,
        comparison: &comparison,
        needs: if args.need { Some(measure_need(&args.files, &setup, &defaults)?) } else { None },
        notes: notes::of(&setup, &comparison, args.gap),
        recommendations: args.recommend.then(|| {
            let regimes = 0..setup.regimes.len();
            regimes.map(|regime| recommend(&setup, &comparison, regime, &bounds)).collect()
        }),
    };
    if let Some(path) = &args.forwarded {
        forwarded::write(path, &args.files, &setup, &defaults)?;
    }
    if let Some(path) = &args.html {
        let page =
            report(&setup, &comparison, &result.notes, result.recommendations.as_deref().unwrap_or_default());
        std::fs::write(path, page).with_context(|| format!("cannot write `{}`", path.display()))?;
        terminal::notice(&format!("wrote the report to {}", path.display()));
    }
    if args.json {
        terminal::print_json(format!("{:#}\n", json::of(&result)).as_bytes());
    } else {
        terminal::print(table::render(&result).as_bytes());
    }
    Ok(())
}

fn setup(args: &ReplayArgs, settings: Settings) -> anyhow::Result<Setup> {
    let mut policies = if args.policies.is_empty() {
        // Without a configuration, the only route is identical to `masking:break_even`.
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
            bail!("no such route: `{name}`\n  hint: the routes are {}", names.join(", "));
        }
    }
    policies.retain(|policy| *policy != Policy::RAW);
    policies.insert(0, Policy::RAW);
    let main = policies.len();
    let sweeps = args.recommend || args.html.is_some();
    let windows: Vec<NonZeroU32> = match args.windows.as_slice() {
        [] if sweeps => DEFAULT_WINDOWS.into_iter().filter_map(NonZeroU32::new).collect(),
        windows => windows.to_vec(),
    };
    for kind in [Kind::EveryTurn, Kind::BreakEven, Kind::Trim, Kind::Hybrid, Kind::CodingAgent] {
        let with_window = |keep: &NonZeroU32| Policy { kind: kind.clone(), keep: Some(*keep) };
        policies.extend(windows.iter().map(with_window));
    }
    let gap = u64::try_from(args.gap.as_millis()).context("the gap is too long")?;
    Ok(Setup { settings, policies, regimes: args.prices.clone(), main, gap })
}
