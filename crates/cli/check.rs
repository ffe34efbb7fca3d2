mod cost;
mod limits;
mod live;
mod startup;
mod templates;

use crate::args::CheckArgs;
use crate::settings;
use anyhow::bail;
use comfy_table::{ContentArrangement, Table, presets};
use std::fmt::Write;
use std::io::{IsTerminal, Write as _};
use tidegate_config::{Origin, Resolved, Route, Settings};

pub(crate) fn run(args: &CheckArgs) -> anyhow::Result<()> {
    let settings = settings::read(&args.config)?;
    let mut report = report(&settings, args)?;
    let started = startup::check(&settings);
    if started.is_ok() {
        report.push_str(&valid(&settings, args));
    }
    // Ignores a closed pipe, such as `| head`.
    let _ = std::io::stdout().write_all(report.as_bytes());
    started?;
    if args.live { live::run(&settings) } else { Ok(()) }
}

fn report(settings: &Settings, args: &CheckArgs) -> anyhow::Result<String> {
    let names: Vec<&str> = settings.routes.iter().map(|route| route.name.as_str()).collect();
    if let Some(wanted) = &args.route
        && !names.contains(&wanted.as_str())
    {
        bail!("no such route: `{wanted}`\n  hint: the routes are {}", names.join(", "));
    }
    let mut out = String::new();
    if args.route.is_none() {
        let process = settings.resolved.iter().filter(|value| !value.path.starts_with("routes["));
        section(&mut out, "process", process, "", args.changed);
    }
    for (number, route) in settings.routes.iter().enumerate() {
        if args.route.as_ref().is_some_and(|wanted| *wanted != route.name) {
            continue;
        }
        let prefix = format!("routes[{number}].");
        let values = settings.resolved.iter().filter(|value| value.path.starts_with(&prefix));
        let title = format!("route `{}`, upstream `{}`", route.name, route.upstream.name);
        section(&mut out, &title, values, &prefix, args.changed);
    }
    let wanted = |route: &&Route| args.route.as_ref().is_none_or(|wanted| *wanted == route.name);
    let routes: Vec<&Route> = settings.routes.iter().filter(wanted).collect();
    let (costs, limits) = (cost::warnings(settings, &routes), limits::warnings(settings, &routes));
    for warning in settings.warnings.iter().chain(&costs).chain(&limits) {
        let _ = writeln!(out, "warning: {warning}");
    }
    for note in cost::notes(settings).into_iter().chain(templates::notes(&routes)) {
        let _ = writeln!(out, "note: {note}");
    }
    Ok(out)
}

fn valid(settings: &Settings, args: &CheckArgs) -> String {
    let name = settings::path(&args.config)
        .map_or("built-in defaults".to_owned(), |path| path.display().to_string());
    let routes = match settings.routes.len() {
        1 => "1 route".to_owned(),
        count => format!("{count} routes"),
    };
    format!("{name}: valid, {routes}\n")
}

fn section<'a>(
    out: &mut String,
    title: &str,
    values: impl Iterator<Item = &'a Resolved>,
    prefix: &str,
    only_changed: bool,
) {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    if !std::io::stdout().is_terminal() {
        // A pipe has no width: print one value per line, never wrapped.
        table.set_content_arrangement(ContentArrangement::Disabled);
    }
    for value in values.filter(|value| !only_changed || value.origin != Origin::Default) {
        let key = value.path.strip_prefix(prefix).unwrap_or(&value.path);
        table.add_row([key, &value.value, &value.origin.to_string()]);
    }
    let _ = writeln!(out, "{title}");
    if table.is_empty() {
        let _ = writeln!(out, "  only defaults");
    } else {
        let _ = writeln!(out, "{}", table.trim_fmt());
    }
    out.push('\n');
}
