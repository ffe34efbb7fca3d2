//! Prints, replaces or removes the memory pinned to a conversation.

use super::args::MemoryArgs;
use super::delete::describe;
use super::terminal;
use super::transcript::{Length, write_text};
use crate::exit::Exit;
use anyhow::{Context, bail};
use std::fs::File;
use std::io::{IsTerminal, Read};
use std::path::Path;
use tidegate_admin::{MAX_MEMORY_BYTES, MemoryPage, Source};
use tidegate_explain::grouped;

/// The hint for a memory that is too long.
pub(super) const TOO_LONG_HINT: &str =
    "every request carries the memory: keep only what must never be forgotten";

pub(super) async fn run(source: &Source, args: &MemoryArgs) -> anyhow::Result<Exit> {
    let tenant = args.target.tenant.as_deref();
    let text = match (&args.set, &args.file) {
        (Some(text), _) => Some(text.clone()),
        (None, Some(path)) => Some(read(path)?),
        (None, None) if args.clear => None,
        (None, None) => {
            print(&source.pinned(&args.id, tenant).await?, args.json)?;
            return Ok(Exit::Success);
        }
    };
    let found = source.conversation(&args.id, tenant, 0).await?.conversation;
    // By id, because another conversation may take the same name between two requests.
    source.pin(&found.id, tenant, text.as_deref()).await?;
    match (args.json, &text) {
        (true, _) => print(&MemoryPage { memory: text, memory_degraded: None }, true)?,
        (false, Some(text)) => {
            let bytes = grouped(text.len().try_into().unwrap_or(u64::MAX));
            terminal::print(format!("pinned {bytes} bytes to {}\n", describe(&found)).as_bytes());
        }
        (false, None) => {
            terminal::print(format!("removed the memory of {}\n", describe(&found)).as_bytes());
        }
    }
    Ok(Exit::Success)
}

/// Renders the memory for `show`. Empty if nothing is pinned.
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

/// The members of the page without the enclosing braces, to embed in another object.
pub(super) fn members(page: &MemoryPage) -> serde_json::Result<String> {
    let object = serde_json::to_string(page)?;
    Ok(object.trim_start_matches('{').trim_end_matches('}').to_owned())
}

fn print(page: &MemoryPage, as_json: bool) -> anyhow::Result<()> {
    if let Some(reason) = &page.memory_degraded {
        bail!("the pinned memory cannot be read: {}", why(reason));
    }
    match &page.memory {
        memory if as_json => {
            let object = serde_json::json!({ "memory": memory });
            terminal::print_json(format!("{object}\n").as_bytes());
        }
        Some(text) => {
            // Escaped only on a terminal, so that a file written from this can be pinned again unchanged.
            let shown = if std::io::stdout().is_terminal() { terminal::plain(text) } else { text.clone() };
            let end = if shown.ends_with('\n') { "" } else { "\n" };
            terminal::print(format!("{shown}{end}").as_bytes());
        }
        None => terminal::notice("nothing is pinned to this conversation"),
    }
    Ok(())
}

fn why(reason: &str) -> String {
    match reason {
        "store_no_key" => "it is encrypted with a key that is not configured (`store.key_env`)".to_owned(),
        "store_newer_record" => "it was written by a newer version".to_owned(),
        "store_corrupt" => "it is damaged".to_owned(),
        other => terminal::one_line(other),
    }
}

/// Reads a file up to the maximum length of a memory, because it may be an endless device.
fn read(path: &Path) -> anyhow::Result<String> {
    let (name, mut input): (_, Box<dyn Read>) = if path == Path::new("-") {
        ("standard input".to_owned(), Box::new(std::io::stdin().lock()))
    } else {
        let name = format!("`{}`", path.display());
        let file = File::open(path).with_context(|| format!("cannot read {name}"))?;
        (name, Box::new(file))
    };
    let mut bytes = Vec::new();
    let max = MAX_MEMORY_BYTES.saturating_add(1).try_into().unwrap_or(u64::MAX);
    input.by_ref().take(max).read_to_end(&mut bytes).with_context(|| format!("cannot read {name}"))?;
    if bytes.len() > MAX_MEMORY_BYTES {
        bail!(
            "{name} has more than {MAX_MEMORY_BYTES} bytes, the maximum for a memory\n  hint: {TOO_LONG_HINT}"
        );
    }
    String::from_utf8(bytes).map_err(|_| anyhow::anyhow!("{name} is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(memory: &str) -> MemoryPage {
        MemoryPage { memory: Some(memory.to_owned()), memory_degraded: None }
    }

    #[test]
    fn control_characters_are_escaped_and_lines_are_indented() {
        let shown = render(&page("a\u{1b}[2J\n#0 system\u{202e}"), Length::Short);
        assert_eq!(shown, "memory\n    a\\u{1b}[2J\n    #0 system\\u{202e}\n\n");
    }

    #[test]
    fn an_absent_memory_renders_empty_and_an_unreadable_one_does_not() {
        assert_eq!(render(&MemoryPage::default(), Length::Full), "");
        let sealed = MemoryPage { memory: None, memory_degraded: Some("store_no_key".to_owned()) };
        assert_eq!(
            render(&sealed, Length::Full),
            "memory\n  cannot be read: it is encrypted with a key that is not configured (`store.key_env`)\n\n"
        );
        assert!(print(&sealed, true).is_err());
    }

    #[test]
    fn members_match_the_api() {
        assert_eq!(members(&page("{a}")).unwrap(), r#""memory":"{a}""#);
        assert_eq!(members(&MemoryPage::default()).unwrap(), r#""memory":null"#);
    }
}
