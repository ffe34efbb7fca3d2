use super::args::ListArgs;
use super::{figures, terminal};
use std::process::ExitCode;
use tidegate_admin::{ConversationPage, ConversationSummary, Filter, Source};
use tidegate_explain::grouped;
use tidegate_store::wall_clock;

/// What one question may ask for.
const PAGE: usize = 500;

/// So many digits of an id are shown. They are enough to name it, as few conversations as there are.
const DIGITS: usize = 12;

pub(super) async fn run(source: &Source, args: &ListArgs) -> anyhow::Result<ExitCode> {
    let filter = Filter {
        tenant: args.whose.tenant.clone(),
        name: args.name.clone(),
        search: args.search.clone(),
        ..Filter::default()
    };
    let page = newest(source, &filter, usize::try_from(args.limit)?).await?;
    if args.json {
        terminal::print_json(format!("{}\n", serde_json::to_string(&page)?).as_bytes());
        return Ok(ExitCode::SUCCESS);
    }
    if page.conversations.is_empty() {
        terminal::say("there are no such conversations");
        return Ok(ExitCode::SUCCESS);
    }
    let now = wall_clock();
    let rows = page.conversations.iter().map(|one| row(one, now)).collect();
    let header =
        ["id", "name", "tenant", "route", "model", "turns", "requests", "tokens", "saved", "cost", "last"];
    terminal::print(format!("{}\n", figures::table(header, &[5, 6, 7, 8, 9], rows)).as_bytes());
    if page.next.is_some() {
        terminal::say("there are more: --limit shows them");
    }
    Ok(ExitCode::SUCCESS)
}

/// As many pages as it takes.
async fn newest(source: &Source, filter: &Filter, limit: usize) -> anyhow::Result<ConversationPage> {
    let mut all = source.list(filter, 0, limit.min(PAGE)).await?;
    all.limit = limit;
    while let Some(next) = all.next.filter(|_| all.conversations.len() < limit) {
        let page = source.list(filter, next, (limit - all.conversations.len()).min(PAGE)).await?;
        all.conversations.extend(page.conversations);
        all.scanned += page.scanned;
        all.next = page.next;
    }
    Ok(all)
}

fn row(one: &ConversationSummary, now: u64) -> [String; 11] {
    [
        one.id.chars().take(DIGITS).collect(),
        terminal::one_line(&one.name),
        terminal::one_line(&one.tenant),
        terminal::one_line(&one.route),
        terminal::one_line(&one.model),
        grouped(one.turns),
        grouped(one.requests),
        figures::change(one.tokens_before, one.tokens_after),
        figures::saved(one.tokens_before, one.tokens_after),
        figures::usd(one.cost_usd),
        figures::ago(now, one.last),
    ]
}
