//! The recorded agent: sends its requests one after the other, and tells what became of each.

use super::http::{Message, write};
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

/// So long a person has to read a line.
const PAUSE: Duration = Duration::from_millis(150);

/// What was counted so far.
#[derive(Default)]
struct Sums {
    sent: u64,
    forwarded: u64,
    cached: u64,
    cost: Cost,
    without: Cost,
}

pub(super) fn play(
    recorded: &Recorded,
    proxy: SocketAddr,
    model: &Arc<Model>,
    settings: &Settings,
    is_shown_slowly: bool,
) -> anyhow::Result<()> {
    let is_shown_slowly = is_shown_slowly && std::io::stdout().is_terminal();
    // What the provider would have billed without a proxy before it.
    let mut directly = Provider::new(model.clone(), settings);
    let mut sums = Sums::default();
    let number = recorded.len();
    print(
        format!("An agent mends a bug in {number} requests to {}, through Tidegate.\n\n", model.name)
            .as_bytes(),
    );
    print(
        b"turn    asks with    forwarded  cached  edits                cost  without  what the agent does\n",
    );
    for turn in 0..number {
        let body = recorded.body(turn);
        let answer = exchange(proxy, &body)?;
        let header = |name: &str| answer.header(name).unwrap_or_default().to_owned();
        let said: Value = serde_json::from_slice(&answer.body).context("the answer is no JSON")?;
        let usage = &said["usage"];
        let (forwarded, cached) =
            (figure(&usage["prompt_tokens"]), figure(&usage["prompt_tokens_details"]["cached_tokens"]));
        let now = u64::try_from(turn).unwrap_or(u64::MAX) * 1_000;
        let raw = directly.bill(&body, now).unwrap_or_default();
        sums.add(model, &raw, forwarded, cached);
        let line = format!(
            "{:>4}  {:>11}  {:>11}  {:>4} %  {:<16}  {:>7}  {:>7}  {}\n",
            turn + 1,
            grouped(raw.tokens()),
            grouped(forwarded),
            (cached * 100).checked_div(forwarded).unwrap_or(0),
            edits(&header("x-tidegate-edits")),
            money(&sums.cost),
            money(&sums.without),
            action(&said["choices"][0]["message"])
        );
        print(line.as_bytes());
        if is_shown_slowly {
            std::thread::sleep(PAUSE);
        }
    }
    print(sums.told(model).as_bytes());
    Ok(())
}

fn exchange(proxy: SocketAddr, body: &[u8]) -> anyhow::Result<Message> {
    let mut stream = TcpStream::connect(proxy).context("the proxy cannot be reached")?;
    let start = "POST /v1/chat/completions HTTP/1.1";
    let headers = format!(
        "host: {proxy}\r\nauthorization: Bearer demo\r\nx-conversation-id: demo\r\nconnection: close\r\n"
    );
    write(&mut stream, start, &headers, body)?;
    let answer = Message::read(&mut BufReader::new(stream))?.context("the proxy did not answer")?;
    if !answer.start.contains(" 200 ") {
        bail!("the proxy answered `{}`: {}", answer.start, String::from_utf8_lossy(&answer.body));
    }
    Ok(answer)
}

impl Sums {
    fn add(&mut self, model: &Model, raw: &Billed, forwarded: u64, cached: u64) {
        let step = model.caching.step.0.max(1);
        // As a bill says it: what was not read from the cache was written to it, up to the last whole step.
        let end = if forwarded < model.caching.minimum.0 { 0 } else { forwarded - forwarded % step };
        let written = end.saturating_sub(cached);
        let billed = Billed { read: cached, written, plain: forwarded - cached - written, is_moved: false };
        self.sent += raw.tokens();
        self.forwarded += forwarded;
        self.cached += cached;
        self.cost.add(&Regime::Table.cost(model, &billed));
        self.without.add(&Regime::Table.cost(model, raw));
    }

    fn told(&self, model: &Model) -> String {
        let less = |new: f64, old: f64| if old > 0.0 { (1.0 - new / old) * 100.0 } else { 0.0 };
        let tokens = less(self.forwarded as f64, self.sent as f64);
        let cost = less(self.cost.units, self.without.units);
        format!(
            "\n{} tokens were asked with and {} forwarded: {tokens:.0} % fewer.\n\
             At the prices of {} the input cost {} instead of {}: {cost:.0} % less. {} % of it came from the provider's cache.\n",
            grouped(self.sent),
            grouped(self.forwarded),
            model.name,
            money(&self.cost),
            money(&self.without),
            (self.cached * 100).checked_div(self.forwarded).unwrap_or(0)
        )
    }
}

fn figure(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

fn money(cost: &Cost) -> String {
    cost.known_usd().map_or("n/a".to_owned(), |usd| format!("${usd:.4}"))
}

/// `masked=3,folded=0,dropped=0` without what is nothing.
fn edits(header: &str) -> String {
    let done: Vec<String> = header
        .split(',')
        .filter_map(|part| part.split_once('='))
        .filter(|(_, number)| *number != "0")
        .map(|(what, number)| format!("{number} {what}"))
        .collect();
    if done.is_empty() { "-".to_owned() } else { done.join(", ") }
}

/// The command that the agent runs next, on one line.
fn action(message: &Value) -> String {
    const MOST: usize = 60;
    let arguments = message["tool_calls"][0]["function"]["arguments"].as_str();
    let command = arguments.and_then(|text| serde_json::from_str::<Value>(text).ok());
    let command = command.as_ref().and_then(|command| command["command"].as_str());
    let text = command.map_or("says what it has done", |command| command.lines().next().unwrap_or_default());
    let text = one_line(text);
    if text.chars().count() > MOST { text.chars().take(MOST - 1).chain(['…']).collect() } else { text }
}
