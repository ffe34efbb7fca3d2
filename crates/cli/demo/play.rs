//! The recorded agent: sends its requests in order and prints what happened to each.

use super::http::{Message, write};
use super::ink::Ink;
use super::story::{Edits, Story};
use crate::conversations::terminal::{one_line, print};
use anyhow::{Context, bail};
use serde_json::Value;
use std::io::{BufReader, IsTerminal};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::Settings;
use tidegate_explain::grouped;
use tidegate_replay::{Billed, Cost, Provider, Recorded, Regime};
use tidegate_tokens::Model;
use tidegate_wire::{AnswerCall, Dialect};

/// The delay between lines on a terminal, so that people can follow.
const PAUSE: Duration = Duration::from_millis(150);

/// The totals so far.
#[derive(Default)]
struct Totals {
    sent: u64,
    forwarded: u64,
    cached: u64,
    cost: Cost,
    without: Cost,
}

pub(super) fn play(
    recorded: &Recorded,
    (proxy, dialect): (SocketAddr, Dialect),
    model: &Arc<Model>,
    settings: &Settings,
    is_paced: bool,
) -> anyhow::Result<()> {
    let is_paced = is_paced && std::io::stdout().is_terminal();
    let ink = Ink::of_terminal();
    // Bills the same requests as if there were no proxy.
    let mut direct = Provider::new(model.clone(), settings);
    let mut totals = Totals::default();
    let mut story = Story::new(settings, model);
    print(introduction(recorded.len(), model, ink).as_bytes());
    for turn in 0..recorded.len() {
        let body = recorded.body(turn);
        let response = exchange(proxy, dialect, &body)?;
        let edits = Edits::parse(response.header("x-tidegate-edits").unwrap_or_default());
        let answer = dialect.read_answer(&response.body).context("the response cannot be read")?;
        let usage = answer.usage.unwrap_or_default();
        let (forwarded, cached) = (usage.prompt_tokens, usage.cached_tokens);
        let now = u64::try_from(turn).unwrap_or(u64::MAX) * 1_000;
        let raw = direct.bill(&body, now).unwrap_or_default();
        totals.add(model, &raw, forwarded, cached);
        let happened = story.tell(turn, edits);
        let line = format!(
            "{:>4}  {:>7}  {:>9}  {:>4} %  {:>11}  {:>9}  {}\n",
            turn + 1,
            grouped(raw.tokens()),
            grouped(forwarded),
            (cached * 100).checked_div(forwarded).unwrap_or(0),
            money(&totals.cost),
            money(&totals.without),
            if happened.is_new { ink.green(&happened.what) } else { happened.what },
        );
        print(line.as_bytes());
        let action = action(answer.tool_calls.first());
        print(format!("{}\n", ink.dim(&format!("      {action}"))).as_bytes());
        for reason in happened.why {
            print(format!("      {}\n", ink.yellow(reason)).as_bytes());
        }
        if is_paced {
            std::thread::sleep(PAUSE);
        }
    }
    print(totals.render(model).as_bytes());
    Ok(())
}

fn introduction(requests: usize, model: &Model, ink: Ink) -> String {
    let head = "turn     sent  forwarded  cached  cost so far     direct  what happened";
    format!(
        "An agent fixes a bug in {requests} requests to {}, through Tidegate.\n\
         Tokens per request; the costs are sums of the input so far, through Tidegate\n\
         and as if the agent had asked the provider directly.\n\n{}\n",
        model.name,
        ink.bold(head)
    )
}

fn exchange(proxy: SocketAddr, dialect: Dialect, body: &[u8]) -> anyhow::Result<Message> {
    let mut stream = TcpStream::connect(proxy).context("cannot reach the proxy")?;
    let start = format!("POST {} HTTP/1.1", dialect.path());
    let headers = format!(
        "host: {proxy}\r\nauthorization: Bearer demo\r\nx-conversation-id: demo\r\nconnection: close\r\n"
    );
    write(&mut stream, &start, &headers, body)?;
    let response = Message::read(&mut BufReader::new(stream))?.context("the proxy did not respond")?;
    if !response.start.contains(" 200 ") {
        bail!("the proxy returned `{}`: {}", response.start, String::from_utf8_lossy(&response.body));
    }
    Ok(response)
}

impl Totals {
    fn add(&mut self, model: &Model, raw: &Billed, forwarded: u64, cached: u64) {
        let step = model.caching.step.0.max(1);
        // Providers bill everything not read from the cache as written, up to the last whole step.
        let end = if forwarded < model.caching.minimum.0 { 0 } else { forwarded - forwarded % step };
        let written = end.saturating_sub(cached);
        let billed = Billed { read: cached, written, plain: forwarded - cached - written, is_moved: false };
        self.sent += raw.tokens();
        self.forwarded += forwarded;
        self.cached += cached;
        self.cost.add(&Regime::Table.cost(model, &billed));
        self.without.add(&Regime::Table.cost(model, raw));
    }

    fn render(&self, model: &Model) -> String {
        let reduction = |new: f64, old: f64| if old > 0.0 { (1.0 - new / old) * 100.0 } else { 0.0 };
        let tokens = reduction(self.forwarded as f64, self.sent as f64);
        let cost = reduction(self.cost.units, self.without.units);
        format!(
            "\nThe agent sent {} tokens and {} were forwarded: {tokens:.0} % fewer.\n\
             {} % of these were read from the provider's cache.\n\
             The input cost {} instead of {}, at the prices of {}: {cost:.0} % less.\n",
            grouped(self.sent),
            grouped(self.forwarded),
            (self.cached * 100).checked_div(self.forwarded).unwrap_or(0),
            money(&self.cost),
            money(&self.without),
            model.name,
        )
    }
}

fn money(cost: &Cost) -> String {
    cost.known_usd().map_or("n/a".to_owned(), |usd| format!("${usd:.4}"))
}

/// The agent's next command, on one line.
fn action(call: Option<&AnswerCall>) -> String {
    const MAX_WIDTH: usize = 72;
    let command = call.and_then(|call| serde_json::from_str::<Value>(&call.arguments).ok());
    let command = command.as_ref().and_then(|command| command["command"].as_str());
    let text = command.map_or_else(
        || "the agent reports what it did".to_owned(),
        |command| format!("$ {}", command.lines().next().unwrap_or_default()),
    );
    let text = one_line(&text);
    if text.chars().count() > MAX_WIDTH {
        text.chars().take(MAX_WIDTH - 1).chain(['…']).collect()
    } else {
        text
    }
}
