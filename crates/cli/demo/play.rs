//! The recorded agent: sends its requests in order and prints what happened to each.

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
    proxy: SocketAddr,
    model: &Arc<Model>,
    settings: &Settings,
    is_paced: bool,
) -> anyhow::Result<()> {
    let is_paced = is_paced && std::io::stdout().is_terminal();
    // Bills the same requests as if there were no proxy.
    let mut direct = Provider::new(model.clone(), settings);
    let mut totals = Totals::default();
    let requests = recorded.len();
    print(
        format!("An agent fixes a bug in {requests} requests to {}, through Tidegate.\n\n", model.name)
            .as_bytes(),
    );
    print(
        b"turn         sent    forwarded  cached  edits                cost  without  action of the agent\n",
    );
    for turn in 0..requests {
        let body = recorded.body(turn);
        let response = exchange(proxy, &body)?;
        let header = |name: &str| response.header(name).unwrap_or_default().to_owned();
        let completion: Value = serde_json::from_slice(&response.body).context("the response is not JSON")?;
        let usage = &completion["usage"];
        let (forwarded, cached) =
            (figure(&usage["prompt_tokens"]), figure(&usage["prompt_tokens_details"]["cached_tokens"]));
        let now = u64::try_from(turn).unwrap_or(u64::MAX) * 1_000;
        let raw = direct.bill(&body, now).unwrap_or_default();
        totals.add(model, &raw, forwarded, cached);
        let line = format!(
            "{:>4}  {:>11}  {:>11}  {:>4} %  {:<16}  {:>7}  {:>7}  {}\n",
            turn + 1,
            grouped(raw.tokens()),
            grouped(forwarded),
            (cached * 100).checked_div(forwarded).unwrap_or(0),
            edits(&header("x-tidegate-edits")),
            money(&totals.cost),
            money(&totals.without),
            action(&completion["choices"][0]["message"])
        );
        print(line.as_bytes());
        if is_paced {
            std::thread::sleep(PAUSE);
        }
    }
    print(totals.render(model).as_bytes());
    Ok(())
}

fn exchange(proxy: SocketAddr, body: &[u8]) -> anyhow::Result<Message> {
    let mut stream = TcpStream::connect(proxy).context("cannot reach the proxy")?;
    let start = "POST /v1/chat/completions HTTP/1.1";
    let headers = format!(
        "host: {proxy}\r\nauthorization: Bearer demo\r\nx-conversation-id: demo\r\nconnection: close\r\n"
    );
    write(&mut stream, start, &headers, body)?;
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
             At the prices of {}, the input cost {} instead of {}: {cost:.0} % less. {} % of it was read from the provider's cache.\n",
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

/// Formats `masked=3,folded=0,dropped=0` without the zeros.
fn edits(header: &str) -> String {
    let done: Vec<String> = header
        .split(',')
        .filter_map(|part| part.split_once('='))
        .filter(|(_, number)| *number != "0")
        .map(|(edit, number)| format!("{number} {edit}"))
        .collect();
    if done.is_empty() { "-".to_owned() } else { done.join(", ") }
}

/// The agent's next command, on one line.
fn action(message: &Value) -> String {
    const MAX_WIDTH: usize = 60;
    let arguments = message["tool_calls"][0]["function"]["arguments"].as_str();
    let command = arguments.and_then(|text| serde_json::from_str::<Value>(text).ok());
    let command = command.as_ref().and_then(|command| command["command"].as_str());
    let text = command.map_or("reports what it did", |command| command.lines().next().unwrap_or_default());
    let text = one_line(text);
    if text.chars().count() > MAX_WIDTH {
        text.chars().take(MAX_WIDTH - 1).chain(['…']).collect()
    } else {
        text
    }
}
