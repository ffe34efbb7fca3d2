//! What would happen to one saved request. It is read, measured, decided and rewritten by the code of the running proxy,
//! and sent nowhere.

mod diff;
mod table;
#[cfg(test)]
mod tests;

use crate::args::ExplainArgs;
use crate::settings;
use anyhow::bail;
use std::io::{Read, Write};
use std::path::Path;
use std::process::ExitCode;
use tidegate_config::{Route, Settings};
use tidegate_explain::{
    Case, EXAMPLE, Ending, Failure, Request, figures, folding, grouped, json, located, place,
};
use tidegate_proxy::{chat_route, model_table};
use tidegate_wire::{Dialect, Outline, Reader, Unreadable};

/// The exit code for a request that the proxy would refuse, so that a script can tell it from a mistake of its own.
const REFUSED: u8 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum View {
    Table,
    Json,
    Diff,
    Rewritten,
}

pub(crate) fn run(args: &ExplainArgs) -> anyhow::Result<ExitCode> {
    let settings = settings::read(&args.config)?;
    let name = if is_stdin(&args.file) { "standard input".into() } else { args.file.display().to_string() };
    let body = match read(&args.file) {
        Ok(body) => body,
        // Not as a context: the reason belongs before the hint.
        Err(error) => {
            bail!("{name}: cannot be read: {error}\n  hint: check the path, or use `-` for standard input")
        }
    };
    let limit = settings.server.max_body;
    if body.len() as u64 > limit {
        say(&format!(
            "{name}: would be refused with 413 request_too_large: it has {} bytes, and `server.max_body` is {}",
            grouped(body.len() as u64),
            grouped(limit)
        ));
        return Ok(ExitCode::from(REFUSED));
    }
    let reader = Reader::default();
    let outline = match reader.outline(Dialect::Chat, &body) {
        Ok(outline) => outline,
        Err(error) => return unreadable(&name, &body, &error),
    };
    let Some(route) = route(&settings, args.route.as_deref(), outline.model.as_deref())? else {
        return Ok(without_route(args, &name, &settings, &body, &outline));
    };
    let model = model_table(&settings.models).lookup(outline.model.as_deref().unwrap_or_default());
    let strategy = args.strategy.unwrap_or(route.context.strategy);
    let request =
        Request { body: &body, outline: &outline, settings: &settings, route, strategy, model: &model };
    match Case::unseen(&reader, request) {
        Ok(case) => Ok(show(args, &name, &case)),
        Err(Failure::Unreadable(error)) => unreadable(&name, &body, &located(&body, &outline, error)),
        Err(failure @ Failure::Plan(_)) => Err(failure.into()),
    }
}

fn show(args: &ExplainArgs, name: &str, case: &Case<'_>) -> ExitCode {
    let ending = case.ending();
    match view(args) {
        View::Table => print(table::render(name, case).as_bytes()),
        View::Json => print(format!("{:#}\n", json::of(case)).as_bytes()),
        View::Diff => print(diff::render(case).as_bytes()),
        View::Rewritten if ending == Ending::Refused => {}
        View::Rewritten => print(case.rewritten.as_deref().unwrap_or(case.request.body)),
    }
    // These two views show the request alone; why there is nothing to see, or nothing to send, is said beside it.
    if matches!(view(args), View::Diff | View::Rewritten) {
        if ending != Ending::Edited {
            say(&format!("{name}: {}", figures::verdict(case)));
        }
        folding::caveats(case).iter().for_each(|caveat| say(&format!("{name}: {caveat}")));
    }
    if ending == Ending::Refused { ExitCode::from(REFUSED) } else { ExitCode::SUCCESS }
}

/// The route that was asked for, else the one that the proxy would take.
fn route<'a>(
    settings: &'a Settings,
    wanted: Option<&str>,
    model: Option<&str>,
) -> anyhow::Result<Option<&'a Route>> {
    let Some(wanted) = wanted else { return Ok(chat_route(&settings.routes, model)) };
    let found = settings.routes.iter().find(|route| route.name == wanted);
    if found.is_none() {
        let names: Vec<&str> = settings.routes.iter().map(|route| route.name.as_str()).collect();
        bail!("there is no route `{wanted}`\n  hint: the routes are {}", names.join(", "));
    }
    Ok(found)
}

/// A request that no route wants goes to the default upstream as it came.
fn without_route(
    args: &ExplainArgs,
    name: &str,
    settings: &Settings,
    body: &[u8],
    outline: &Outline,
) -> ExitCode {
    let names: Vec<&str> = settings.routes.iter().map(|route| route.name.as_str()).collect();
    let model = outline.model.as_deref();
    let asked = model.map_or("without a model".to_owned(), |model| {
        format!("for the model `{}`", figures::printable(model))
    });
    let sentence = format!(
        "no route matches a request {asked}: it would be forwarded to `default`, byte for byte as sent"
    );
    let hint =
        format!("a route that asks for headers is tried with --route; the routes are {}", names.join(", "));
    match view(args) {
        View::Table => print(format!("{name}: {sentence}\n  hint: {hint}\n").as_bytes()),
        View::Json => print(format!("{:#}\n", json::without_route(model, &sentence)).as_bytes()),
        View::Diff => say(&format!("{name}: {sentence}\n  hint: {hint}")),
        View::Rewritten => {
            print(body);
            say(&format!("{name}: {sentence}\n  hint: {hint}"));
        }
    }
    ExitCode::SUCCESS
}

/// An error for what is no request, a refusal for what the proxy refuses too.
fn unreadable(name: &str, body: &[u8], error: &Unreadable) -> anyhow::Result<ExitCode> {
    if matches!(error, Unreadable::DuplicateMessages { .. }) {
        say(&format!("{name}: would be refused with 400 ambiguous_request: {error}\n  hint: send it once"));
        return Ok(ExitCode::from(REFUSED));
    }
    bail!(
        "{name}: not the body of a chat completion: {error}{}\n  \
         hint: one looks like {EXAMPLE}; the proxy would forward this one as it came",
        place(body, error)
    )
}

fn view(args: &ExplainArgs) -> View {
    if args.json {
        View::Json
    } else if args.diff {
        View::Diff
    } else if args.rewritten {
        View::Rewritten
    } else {
        View::Table
    }
}

fn is_stdin(file: &Path) -> bool {
    file.as_os_str() == "-"
}

fn read(file: &Path) -> std::io::Result<Vec<u8>> {
    if !is_stdin(file) {
        return std::fs::read(file);
    }
    let mut body = Vec::new();
    std::io::stdin().read_to_end(&mut body)?;
    Ok(body)
}

fn print(bytes: &[u8]) {
    // A reader that closes early, such as `head`, has seen what it wanted.
    let _ = std::io::stdout().write_all(bytes);
}

fn say(text: &str) {
    #[expect(clippy::print_stderr, reason = "standard output holds the request, and a person is waiting")]
    {
        eprintln!("{text}");
    }
}
