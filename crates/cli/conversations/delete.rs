use super::args::DeleteArgs;
use super::terminal;
use crate::exit::Exit;
use std::io::IsTerminal;
use tidegate_admin::{ConversationSummary, Source};
use tidegate_explain::grouped;

pub(super) async fn run(source: &Source, args: &DeleteArgs) -> anyhow::Result<Exit> {
    let tenant = args.target.tenant.as_deref();
    let found = source.conversation(&args.id, tenant, 0).await?.conversation;
    if !args.yes {
        if !std::io::stdin().is_terminal() {
            terminal::notice(&format!(
                "would delete {}\n  hint: standard input is not a terminal; confirm with --yes",
                describe(&found)
            ));
            return Ok(Exit::ConfirmationRequired);
        }
        if !confirm(&found)? {
            terminal::notice("nothing was deleted");
            return Ok(Exit::Cancelled);
        }
    }
    source.delete(&found.id, tenant).await?;
    if args.json {
        let deleted = format!("{{\"deleted\":{}}}\n", serde_json::to_string(&found)?);
        terminal::print_json(deleted.as_bytes());
    } else {
        terminal::print(format!("deleted {}\n", describe(&found)).as_bytes());
    }
    Ok(Exit::Success)
}

fn confirm(found: &ConversationSummary) -> std::io::Result<bool> {
    terminal::notice(&format!("permanently delete {}? [y/N]", describe(found)));
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Identifies a conversation that the user may have named by a prefix or name.
pub(super) fn describe(found: &ConversationSummary) -> String {
    format!(
        "{} (`{}` of tenant {}, {} turns in {} requests)",
        found.id,
        terminal::one_line(&found.name),
        terminal::one_line(&found.tenant),
        grouped(found.turns),
        grouped(found.requests)
    )
}
