use super::args::DeleteArgs;
use super::terminal;
use std::io::IsTerminal;
use std::process::ExitCode;
use tidegate_admin::{ConversationSummary, Source};
use tidegate_explain::grouped;

/// The exit code that `clap` has for wrong usage.
const WRONG_USAGE: u8 = 2;

pub(super) async fn run(source: &Source, args: &DeleteArgs) -> anyhow::Result<ExitCode> {
    let tenant = args.whose.tenant.as_deref();
    let found = source.conversation(&args.id, tenant, 0).await?.conversation;
    if !args.yes {
        if !std::io::stdin().is_terminal() {
            terminal::say(&format!(
                "would delete {}\n  hint: say --yes where nobody can be asked",
                named(&found)
            ));
            return Ok(ExitCode::from(WRONG_USAGE));
        }
        if !is_confirmed(&found)? {
            terminal::say("nothing was deleted");
            return Ok(ExitCode::FAILURE);
        }
    }
    source.delete(&found.id, tenant).await?;
    if args.json {
        let deleted = format!("{{\"deleted\":{}}}\n", serde_json::to_string(&found)?);
        terminal::print_json(deleted.as_bytes());
    } else {
        terminal::print(format!("deleted {}\n", named(&found)).as_bytes());
    }
    Ok(ExitCode::SUCCESS)
}

fn is_confirmed(found: &ConversationSummary) -> std::io::Result<bool> {
    terminal::say(&format!("delete {} for good? [y/N]", named(found)));
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Which one it is, for whoever named it by something shorter.
pub(super) fn named(found: &ConversationSummary) -> String {
    format!(
        "{} (`{}` of tenant {}, {} turns in {} requests)",
        found.id,
        terminal::one_line(&found.name),
        terminal::one_line(&found.tenant),
        grouped(found.turns),
        grouped(found.requests)
    )
}
