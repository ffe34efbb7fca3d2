//! What is pinned to a conversation: printed, replaced, taken away.

use super::args::MemoryArgs;
use super::delete::named;
use super::terminal;
use super::transcript::{Length, write_text};
use anyhow::{Context, bail};
use std::fs::File;
use std::io::{IsTerminal, Read};
use std::path::Path;
use std::process::ExitCode;
use tidegate_admin::{MAX_MEMORY_BYTES, MemoryPage, Source};
use tidegate_explain::grouped;

/// What to do about a memory that is too long.
pub(super) const SHORTER: &str =
    "every request carries it: keep what must never be forgotten, and nothing else";

pub(super) async fn run(source: &Source, args: &MemoryArgs) -> anyhow::Result<ExitCode> {
    let tenant = args.whose.tenant.as_deref();
    let text = match (&args.set, &args.file) {
        (Some(text), _) => Some(text.clone()),
        (None, Some(path)) => Some(read(path)?),
        (None, None) if args.clear => None,
        (None, None) => {
            print(&source.pinned(&args.id, tenant).await?, args.json)?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    let found = source.conversation(&args.id, tenant, 0).await?.conversation;
    // By its id: a name may get a second owner between two questions.
    source.pin(&found.id, tenant, text.as_deref()).await?;
    match (args.json, &text) {
        (true, _) => print(&MemoryPage { memory: text, memory_degraded: None }, true)?,
        (false, Some(text)) => {
            let bytes = grouped(text.len().try_into().unwrap_or(u64::MAX));
            terminal::print(format!("pinned {bytes} bytes to {}\n", named(&found)).as_bytes());
        }
        (false, None) => {
            terminal::print(format!("nothing is pinned any more to {}\n", named(&found)).as_bytes());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// As part of what `show` prints. Nothing where nothing is pinned.
pub(super) fn render(page: &MemoryPage, length: Length) -> String {
    let mut out = String::new();
    match page {
        MemoryPage { memory: Some(text), .. } => {
            out.push_str("memory\n");
            write_text(&mut out, text, length);
            out.push('\n');
        }
        MemoryPage { memory_degraded: Some(reason), .. } => {
            out.push_str("memory\n  cannot be read: ");
            out.push_str(&why(reason));
            out.push_str("\n\n");
        }
        MemoryPage { memory: None, memory_degraded: None } => {}
    }
    out
}

/// As members of a JSON object that has others too.
pub(super) fn members(page: &MemoryPage) -> serde_json::Result<String> {
    let object = serde_json::to_string(page)?;
    Ok(object.trim_start_matches('{').trim_end_matches('}').to_owned())
}

fn print(page: &MemoryPage, as_json: bool) -> anyhow::Result<()> {
    if let Some(reason) = &page.memory_degraded {
        bail!("something is pinned to this conversation that cannot be read: {}", why(reason));
    }
    match &page.memory {
        memory if as_json => {
            let object = serde_json::json!({ "memory": memory });
            terminal::print_json(format!("{object}\n").as_bytes());
        }
        Some(text) => {
            // Whoever writes it to a file pins the same again.
            let shown = if std::io::stdout().is_terminal() { terminal::plain(text) } else { text.clone() };
            let end = if shown.ends_with('\n') { "" } else { "\n" };
            terminal::print(format!("{shown}{end}").as_bytes());
        }
        None => terminal::say("nothing is pinned to this conversation"),
    }
    Ok(())
}

fn why(reason: &str) -> String {
    match reason {
        "store_no_key" => "it is encrypted with a key that is not given (`store.key_env`)".to_owned(),
        "store_newer_record" => "it was written by a newer version".to_owned(),
        "store_corrupt" => "it is damaged".to_owned(),
        other => terminal::one_line(other),
    }
}

/// What a file holds, but never more than can be pinned: it may be a device that never ends.
fn read(path: &Path) -> anyhow::Result<String> {
    let (name, mut input): (_, Box<dyn Read>) = if path == Path::new("-") {
        ("standard input".to_owned(), Box::new(std::io::stdin().lock()))
    } else {
        let name = format!("`{}`", path.display());
        let file = File::open(path).with_context(|| format!("cannot read {name}"))?;
        (name, Box::new(file))
    };
    let mut bytes = Vec::new();
    let most = MAX_MEMORY_BYTES.saturating_add(1).try_into().unwrap_or(u64::MAX);
    input.by_ref().take(most).read_to_end(&mut bytes).with_context(|| format!("cannot read {name}"))?;
    if bytes.len() > MAX_MEMORY_BYTES {
        bail!("{name} has more than {MAX_MEMORY_BYTES} bytes, which a memory cannot have\n  hint: {SHORTER}");
    }
    String::from_utf8(bytes).map_err(|_| anyhow::anyhow!("{name} is not a text in UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(memory: &str) -> MemoryPage {
        MemoryPage { memory: Some(memory.to_owned()), memory_degraded: None }
    }

    #[test]
    fn no_memory_commands_the_terminal_or_looks_like_a_message() {
        let shown = render(&page("a\u{1b}[2J\n#0 system\u{202e}"), Length::Short);
        assert_eq!(shown, "memory\n    a\\u{1b}[2J\n    #0 system\\u{202e}\n\n");
    }

    #[test]
    fn nothing_pinned_is_nothing_said_and_what_cannot_be_read_is() {
        assert_eq!(render(&MemoryPage::default(), Length::Full), "");
        let sealed = MemoryPage { memory: None, memory_degraded: Some("store_no_key".to_owned()) };
        assert_eq!(
            render(&sealed, Length::Full),
            "memory\n  cannot be read: it is encrypted with a key that is not given (`store.key_env`)\n\n"
        );
        assert!(print(&sealed, true).is_err());
    }

    #[test]
    fn members_are_those_of_the_api() {
        assert_eq!(members(&page("{a}")).unwrap(), r#""memory":"{a}""#);
        assert_eq!(members(&MemoryPage::default()).unwrap(), r#""memory":null"#);
    }
}
