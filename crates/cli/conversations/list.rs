use super::args::ListArgs;
use super::{figures, terminal};
use crate::exit::Exit;
use tidegate_admin::{ConversationPage, ConversationSummary, Filter, Source};
use tidegate_explain::grouped;
use tidegate_store::wall_clock;

/// The maximum page size of the admin API.
const PAGE: usize = 500;

/// The number of digits of an id to show: enough to be unique in practice.
const DIGITS: usize = 12;

pub(super) async fn run(source: &Source, args: &ListArgs) -> anyhow::Result<Exit> {
    let filter = Filter {
        tenant: args.target.tenant.clone(),
        name: args.name.clone(),
        search: args.search.clone(),
        ..Filter::default()
    };
    let page = newest(source, &filter, usize::try_from(args.limit)?).await?;
    if args.json {
        terminal::print_json(format!("{}\n", serde_json::to_string(&page)?).as_bytes());
        return Ok(Exit::Success);
    }
    if page.conversations.is_empty() {
        terminal::notice("no matching conversations");
        return Ok(Exit::Success);
    }
    let now = wall_clock();
    let rows = page.conversations.iter().map(|conversation| row(conversation, now)).collect();
    let header =
        ["id", "name", "tenant", "route", "model", "turns", "requests", "tokens", "saved", "cost", "last"];
    terminal::print(format!("{}\n", figures::table(header, &[5, 6, 7, 8, 9], rows)).as_bytes());
    if page.next.is_some() {
        terminal::notice("more conversations match; raise --limit to see them");
    }
    Ok(Exit::Success)
}

/// Reads pages until there are `limit` conversations.
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

fn row(conversation: &ConversationSummary, now: u64) -> [String; 11] {
    [
        conversation.id.chars().take(DIGITS).collect(),
        terminal::one_line(&conversation.name),
        terminal::one_line(&conversation.tenant),
        terminal::one_line(&conversation.route),
        terminal::one_line(&conversation.model),
        grouped(conversation.turns),
        grouped(conversation.requests),
        figures::change(conversation.tokens_before, conversation.tokens_after),
        figures::saved(conversation.tokens_before, conversation.tokens_after),
        figures::usd(conversation.cost_usd),
        figures::ago(now, conversation.last),
    ]
}
