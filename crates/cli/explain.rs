//! `tidegate explain`: shows what the proxy would do with a saved request. Uses the proxy's own code and
//! sends nothing.

mod diff;
mod table;
#[cfg(test)]
mod tests;

use crate::args::ExplainArgs;
use crate::exit::Exit;
use crate::settings;
use anyhow::bail;
use std::io::{Read, Write};
use std::path::Path;
use tidegate_config::{Route, Settings, saved_route};
use tidegate_context::model_table;
use tidegate_explain::{
    Case, EXAMPLE, Ending, Failure, Request, figures, folding, grouped, json, located, place,
};
use tidegate_wire::{Dialect, Outline, Reader, Unreadable};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum View {
    Table,
    Json,
    Diff,
    Rewritten,
}

pub(crate) fn run(args: &ExplainArgs) -> anyhow::Result<Exit> {
    let settings = settings::read(&args.config)?;
    let name = if is_stdin(&args.file) { "standard input".into() } else { args.file.display().to_string() };
    let body = match read(&args.file) {
        Ok(body) => body,
        // Not added as context, because the reason belongs before the hint.
        Err(error) => {
            bail!("{name}: cannot be read: {error}\n  hint: check the path, or use `-` for standard input")
        }
    };
    let limit = settings.server.max_body;
    if body.len() as u64 > limit {
        notice(&format!(
            "{name}: would be refused with 413 request_too_large: it has {} bytes, but `server.max_body` is {}",
            grouped(body.len() as u64),
            grouped(limit)
        ));
        return Ok(Exit::Refused);
    }
    let reader = Reader::default();
    let outline = match reader.outline(Dialect::of_body(&body), &body) {
        Ok(outline) => outline,
        Err(error) => return invalid_body(&name, &body, &error),
    };
    let Some(route) = route(&settings, args.route.as_deref(), &outline)? else {
        return Ok(without_route(args, &name, &settings, &body, &outline));
    };
    let model = model_table(&settings.models).lookup(outline.model.as_deref().unwrap_or_default());
    let strategy = args.strategy.unwrap_or(route.context.strategy);
    let request =
        Request { body: &body, outline: &outline, settings: &settings, route, strategy, model: &model };
    match Case::unseen(&reader, request) {
        Ok(case) => Ok(show(args, &name, &case)),
        Err(Failure::Unreadable(error)) => invalid_body(&name, &body, &located(&body, &outline, error)),
        Err(failure @ (Failure::Plan(_) | Failure::Internal)) => Err(failure.into()),
    }
}

fn show(args: &ExplainArgs, name: &str, case: &Case<'_>) -> Exit {
    let ending = case.ending();
    match view(args) {
        View::Table => print(table::render(name, case).as_bytes()),
        View::Json => print(format!("{:#}\n", json::of(case)).as_bytes()),
        View::Diff => print(diff::render(case).as_bytes()),
        View::Rewritten if ending == Ending::Refused => {}
        View::Rewritten => print(case.rewritten.as_deref().unwrap_or(case.request.body)),
    }
    // These views print only the request, so the verdict goes to standard error.
    if matches!(view(args), View::Diff | View::Rewritten) {
        if ending != Ending::Edited {
            notice(&format!("{name}: {}", figures::verdict(case)));
        }
        folding::caveats(case).iter().for_each(|caveat| notice(&format!("{name}: {caveat}")));
    }
    if ending == Ending::Refused { Exit::Refused } else { Exit::Success }
}

/// The route given by `--route`, or the one that the proxy would match.
fn route<'a>(
    settings: &'a Settings,
    wanted: Option<&str>,
    outline: &Outline,
) -> anyhow::Result<Option<&'a Route>> {
    let Some(wanted) = wanted else {
        let (path, model) = (outline.dialect.path(), outline.model.as_deref());
        return Ok(saved_route(&settings.routes, path, model));
    };
    let found = settings.routes.iter().find(|route| route.name == wanted);
    if found.is_none() {
        let names: Vec<&str> = settings.routes.iter().map(|route| route.name.as_str()).collect();
        bail!("no such route: `{wanted}`\n  hint: the routes are {}", names.join(", "));
    }
    Ok(found)
}

/// A request that no route matches is forwarded to the default upstream unchanged.
fn without_route(
    args: &ExplainArgs,
    name: &str,
    settings: &Settings,
    body: &[u8],
    outline: &Outline,
) -> Exit {
    let names: Vec<&str> = settings.routes.iter().map(|route| route.name.as_str()).collect();
    let model = outline.model.as_deref();
    let request = model.map_or("without a model".to_owned(), |model| {
        format!("for the model `{}`", figures::printable(model))
    });
    let sentence = format!(
        "no route matches a request {request}: it would be forwarded to `default`, byte for byte as sent"
    );
    let hint =
        format!("use --route to try a route that matches headers; the routes are {}", names.join(", "));
    match view(args) {
        View::Table => print(format!("{name}: {sentence}\n  hint: {hint}\n").as_bytes()),
        View::Json => print(format!("{:#}\n", json::without_route(model, &sentence)).as_bytes()),
        View::Diff => notice(&format!("{name}: {sentence}\n  hint: {hint}")),
        View::Rewritten => {
            print(body);
            notice(&format!("{name}: {sentence}\n  hint: {hint}"));
        }
    }
    Exit::Success
}

/// An error for an invalid body, or a refusal if the proxy would refuse it too.
fn invalid_body(name: &str, body: &[u8], error: &Unreadable) -> anyhow::Result<Exit> {
    if matches!(error, Unreadable::DuplicateMessages { .. }) {
        notice(&format!(
            "{name}: would be refused with 400 ambiguous_request: {error}\n  hint: send it once"
        ));
        return Ok(Exit::Refused);
    }
    bail!(
        "{name}: not the body of {}: {error}{}\n  \
         hint: expected something like {EXAMPLE}; the proxy would forward this body unchanged",
        Dialect::of_body(body).noun(),
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
    // Ignores a closed pipe, such as `| head`.
    let _ = std::io::stdout().write_all(bytes);
}

fn notice(text: &str) {
    #[expect(clippy::print_stderr, reason = "standard output is for the result, and a person is waiting")]
    {
        eprintln!("{text}");
    }
}
