//! A plain model of conversations against real processes on one Redis, in random interleavings of turns, retries, aborts, upstream
//! failures, deletions, expiries, faults of the store, killed processes and a clock that is ahead.
//!
//! Every forwarded context must be a history of turns that were acknowledged, or whose outcome their client could not know; nothing
//! acknowledged is lost, nothing deleted or expired comes back, and nobody sees another's. `TIDEGATE_MODEL_OPERATIONS`,
//! `TIDEGATE_MODEL_FAULTS` and `TIDEGATE_MODEL_KILLS` choose the least that happens, `TIDEGATE_MODEL_SEED` the run.

use super::chaos::{Chaos, FAULTS};
use super::reply::{Reply, send};
use super::scene::{completion, said, texts};
use crate::support::client::{CHAT, post, request};
use crate::support::cores::busy;
use crate::support::tidegate::{Setup, Tidegate};
use rustix::process::Signal;
use serde_json::json;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;
use tidegate_testkit::{Answer, MockUpstream, Recorded};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

const PROCESSES: usize = 3;
const CONVERSATIONS: usize = 16;

/// What the drivers share.
struct World {
    addresses: RwLock<Vec<SocketAddr>>,
    /// What was forwarded with each message, by its text. Texts are unique, except those of retries, whose last one counts.
    contexts: Mutex<HashMap<String, Vec<String>>>,
    left: AtomicUsize,
    /// Whether enough has happened to the store and the processes.
    is_disturbed: AtomicBool,
    /// Drivers take it to run an operation; whoever expires everything takes it alone.
    expiring: tokio::sync::RwLock<()>,
    expiries: AtomicU64,
    tally: Mutex<HashMap<&'static str, usize>>,
}

/// A turn: what was asked and answered.
type Turn = (String, String);

/// One conversation and all states that it may be in.
struct Conversation {
    number: usize,
    tenant: String,
    random: u64,
    asked: usize,
    possible: Vec<Vec<Turn>>,
    expiries: u64,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_context_is_a_history_of_acknowledged_turns() {
    let _busy = busy().await;
    let number = |name: &str, default: usize| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (operations, seed) = (number("TIDEGATE_MODEL_OPERATIONS", 20_000), number("TIDEGATE_MODEL_SEED", 1));
    let least = [number("TIDEGATE_MODEL_FAULTS", FAULTS.len()), number("TIDEGATE_MODEL_KILLS", 2)];
    let (chaos, upstream) = (Chaos::start().await, MockUpstream::start().await);
    let world = Arc::new(World {
        addresses: RwLock::default(),
        contexts: Mutex::default(),
        left: AtomicUsize::new(operations),
        is_disturbed: AtomicBool::new(false),
        expiring: tokio::sync::RwLock::default(),
        expiries: AtomicU64::new(0),
        tally: Mutex::default(),
    });
    let seen = world.clone();
    upstream.script(move |request| seen.answer(request));
    let mut processes = Vec::new();
    for index in 0..PROCESSES {
        processes.push(start(&chaos, &upstream, index).await);
    }
    *world.addresses.write().unwrap() = processes.iter().map(|process| process.address).collect();
    let mut drivers = JoinSet::new();
    for number in 0..CONVERSATIONS {
        let world = world.clone();
        // Two tenants have conversations of the same names.
        let mut conversation = Conversation {
            number: number / 2,
            tenant: format!("Bearer {}", number % 2),
            random: (seed as u64 * 0x9e37_79b9 + number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            asked: 0,
            possible: vec![vec![]],
            expiries: 0,
        };
        drivers.spawn(async move {
            while world.goes_on() {
                let _running = world.expiring.read().await;
                conversation.operate(&world).await;
            }
        });
    }
    let disturbing = disturb(&world, &chaos, &upstream, processes, seed as u64, least);
    let driving = async {
        while let Some(done) = drivers.join_next().await {
            done.unwrap();
        }
    };
    tokio::select! {
        () = driving => {}
        () = disturbing => unreachable!(),
    }
    let tally = world.tally.lock().unwrap();
    let count = |what: &str| tally.get(what).copied().unwrap_or(0);
    for what in
        ["answered", "retried", "failed", "aborted", "deleted", "at once", "expired", "killed", "said again"]
            .into_iter()
            .chain(FAULTS)
    {
        assert!(count(what) > 0, "no operation was {what}: {tally:?}");
    }
    assert!(count("answered") > operations / 4, "{tally:?}");
}

async fn start(chaos: &Chaos, upstream: &MockUpstream, index: usize) -> Tidegate {
    let config = format!(
        "[log]\naccess = false\n[store]\nurl = \"{}\"\n[context]\nhistory = \"proxy\"\nstrategy = \"passthrough\"\n",
        chaos.url()
    );
    let setup = Setup::new(&config).upstream(&upstream.url());
    let setup = if index == 0 { setup.faketime("+60s") } else { setup };
    setup.start().await
}

/// Does something to the store, kills processes, and expires everything, again and again.
async fn disturb(
    world: &World,
    chaos: &Chaos,
    upstream: &MockUpstream,
    mut processes: Vec<Tidegate>,
    seed: u64,
    least: [usize; 2],
) {
    let mut random = seed.wrapping_mul(0x2545_f491_4f6c_dd1d) | 1;
    let (mut faults, mut kills) = (0, 0);
    let mut next = Instant::now();
    for round in 0_u64.. {
        next = Instant::now().max(next + Duration::from_millis(1_500));
        tokio::time::sleep_until(next).await;
        match round % 16 {
            7 => {
                // Alone, so that every driver knows when it was.
                let _alone = world.expiring.write().await;
                chaos.expire().await;
                world.expiries.fetch_add(1, Ordering::Relaxed);
                world.note("expired");
            }
            1 | 5 | 9 | 13 => {
                let index = draw(&mut random, PROCESSES);
                processes[index].signal(Signal::KILL);
                processes[index].ended().await;
                processes[index] = start(chaos, upstream, index).await;
                world.addresses.write().unwrap()[index] = processes[index].address;
                world.note("killed");
                kills += 1;
            }
            _ => {
                let fault = FAULTS[faults % FAULTS.len()];
                chaos.inflict(fault).await;
                world.note(fault);
                faults += 1;
            }
        }
        if faults >= least[0] && kills >= least[1] && round >= 7 {
            world.is_disturbed.store(true, Ordering::Relaxed);
        }
    }
}

fn draw(random: &mut u64, below: usize) -> usize {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    (*random >> 33) as usize % below
}

impl World {
    fn note(&self, what: &'static str) {
        *self.tally.lock().unwrap().entry(what).or_default() += 1;
    }

    /// Whether a driver has another operation to run.
    fn goes_on(&self) -> bool {
        let one = |left: usize| left.checked_sub(1);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one).is_ok()
            || !self.is_disturbed.load(Ordering::Relaxed)
    }

    fn answer(&self, request: &Recorded) -> Answer {
        let context = texts(&request.json());
        let last = context.last().cloned().unwrap_or_default();
        self.contexts.lock().unwrap().insert(last.clone(), context);
        if last.contains("fail") {
            return Answer::error(500, "server_error", "Something went wrong.");
        }
        if last.contains("abort") {
            return Answer::chat_stream(["half", " an answer"]).stall_after_chunks(1);
        }
        static ANSWERS: AtomicU64 = AtomicU64::new(0);
        let unique = ANSWERS.fetch_add(1, Ordering::Relaxed);
        completion(&json!({ "role": "assistant", "content": format!("answer {unique} to {last}") }))
    }

    fn context(&self, text: &str) -> Option<Vec<String>> {
        self.contexts.lock().unwrap().remove(text)
    }

    fn address(&self, random: &mut u64) -> SocketAddr {
        self.addresses.read().unwrap()[draw(random, PROCESSES)]
    }
}

impl Conversation {
    async fn operate(&mut self, world: &World) {
        let expiries = world.expiries.load(Ordering::Relaxed);
        if self.expiries != expiries {
            self.expiries = expiries;
            self.possible = vec![vec![]];
        }
        match draw(&mut self.random, 100) {
            0..6 => self.say_again(world).await,
            6..60 => {
                let text = self.text("say");
                let reply = self.ask(world, &text, &[]).await;
                self.settle(world, &text, &reply);
            }
            60..72 => self.retry(world).await,
            72..80 => {
                let text = self.text("fail");
                let reply = self.ask(world, &text, &[]).await;
                assert!(!matches!(reply, Reply::Answered(_)), "{reply:?}");
                world.note("failed");
            }
            80..86 => self.abort(world).await,
            86..95 => self.at_once(world).await,
            _ => self.delete(world).await,
        }
    }

    fn text(&mut self, what: &str) -> String {
        self.asked += 1;
        format!("{what} {} of {} by {}", self.asked, self.number, self.tenant)
    }

    fn message(&self, text: &str, headers: &[(&str, &str)], is_streamed: bool) -> Vec<u8> {
        let name = format!("c{}", self.number);
        let own =
            [("x-conversation-id", name.as_str()), ("authorization", &self.tenant), ("connection", "close")];
        let body = json!({ "model": "gpt-4o", "stream": is_streamed, "messages": [said(text)] });
        post(CHAT, &[&own[..], headers].concat(), body.to_string())
    }

    async fn ask(&mut self, world: &World, text: &str, headers: &[(&str, &str)]) -> Reply {
        let address = world.address(&mut self.random);
        send(address, self.message(text, headers, false)).await
    }

    /// Says the same twice, knowing the first answer: that makes two turns.
    async fn say_again(&mut self, world: &World) {
        let [state] = &self.possible[..] else { return };
        let Some((text, _)) = state.last().filter(|(_, answer)| !answer.is_empty()).cloned() else { return };
        let reply = self.ask(world, &text, &[]).await;
        self.settle(world, &text, &reply);
        world.note("said again");
    }

    /// Asks for the last turn again, as an SDK does that has not received the answer. If its client knows the answer, that is another
    /// turn.
    async fn retry(&mut self, world: &World) {
        let Some((text, _)) = self.possible.iter().rev().find_map(|state| state.last()).cloned() else {
            return;
        };
        let reply = self.ask(world, &text, &[("x-stainless-retry-count", "1")]).await;
        self.settle(world, &text, &reply);
        world.note("retried");
    }

    /// Takes what the client has learnt into the model.
    fn settle(&mut self, world: &World, text: &str, reply: &Reply) {
        let context = world.context(text);
        // What is said again takes the place of the turn whose answer did not arrive, if that is there.
        let base = |state: &Vec<Turn>| {
            let mut state = state.clone();
            if state.last().is_some_and(|(asked, answer)| asked == text && answer.is_empty()) {
                state.pop();
            }
            state
        };
        match reply {
            Reply::Answered(answer) => {
                let context = context.expect("an answered request was forwarded");
                let mut bases: Vec<Vec<Turn>> = self.possible.iter().map(base).collect();
                bases.retain(|state| told(state, text) == context);
                let Some(mut state) = bases.pop() else {
                    panic!("forwarded\n{context:#?}\nbut may be one of\n{:#?}", self.possible);
                };
                state.push((text.to_owned(), answer.clone()));
                self.possible = vec![state];
                world.note("answered");
            }
            // The answer is not known, so the next context tells it.
            Reply::Unknown => {
                let after: Vec<Vec<Turn>> = self.possible.iter().map(base).collect();
                for mut state in after {
                    state.push((text.to_owned(), String::new()));
                    if !self.possible.contains(&state) {
                        self.possible.push(state);
                    }
                }
                world.note("unknown");
            }
            Reply::Refused(_) => world.note("refused"),
        }
    }

    /// Leaves in the middle of an answer.
    async fn abort(&mut self, world: &World) {
        let text = self.text("abort");
        let address = world.address(&mut self.random);
        let request = self.message(&text, &[], true);
        let leave = async {
            let mut stream = TcpStream::connect(address).await.ok()?;
            stream.write_all(&request).await.ok()?;
            let mut first = [0; 16];
            stream.read_exact(&mut first).await.ok()
        };
        let _ = timeout(Duration::from_secs(20), leave).await;
        world.context(&text);
        world.note("aborted");
    }

    /// Sends two turns through two processes at once.
    async fn at_once(&mut self, world: &World) {
        let texts = [self.text("one"), self.text("two")];
        let requests = [self.message(&texts[0], &[], false), self.message(&texts[1], &[], false)];
        let addresses = [world.address(&mut self.random), world.address(&mut self.random)];
        let [first, second] = requests;
        let (one, two) = tokio::join!(send(addresses[0], first), send(addresses[1], second));
        let mut replies = [(texts[0].clone(), one), (texts[1].clone(), two)];
        let length = |text: &String| world.contexts.lock().unwrap().get(text).map_or(0, Vec::len);
        replies.sort_by_key(|(text, _)| length(text));
        for (text, reply) in replies.iter().filter(|(_, reply)| *reply == Reply::Unknown) {
            self.settle(world, text, reply);
        }
        for (text, reply) in replies.iter().filter(|(_, reply)| *reply != Reply::Unknown) {
            self.settle(world, text, reply);
        }
        for (text, reply) in replies.iter().filter(|(_, reply)| *reply == Reply::Unknown) {
            if !self.possible.iter().all(|state| state.iter().any(|(asked, _)| asked == text)) {
                self.settle(world, text, reply);
            }
        }
        world.note("at once");
    }

    async fn delete(&mut self, world: &World) {
        let name = format!("c{}", self.number);
        let own =
            [("x-conversation-id", name.as_str()), ("authorization", &self.tenant), ("connection", "close")];
        let address = world.address(&mut self.random);
        match send(address, request("DELETE", "/tidegate/v1/conversation", &own, b"")).await {
            Reply::Answered(_) => {
                self.possible = vec![vec![]];
                world.note("deleted");
            }
            Reply::Refused(404) => {
                // There was nothing, or nothing but what was being written.
                let is_empty = |state: &Vec<Turn>| state.is_empty();
                assert!(
                    self.possible.iter().any(is_empty),
                    "an acknowledged turn is lost: {:#?}",
                    self.possible
                );
                self.possible = vec![vec![]];
            }
            Reply::Refused(_) | Reply::Unknown => {
                if !self.possible.contains(&vec![]) {
                    self.possible.push(vec![]);
                }
            }
        }
    }
}

/// The texts of a context: a history and a message. The empty string stands for an answer that is not known.
fn told<'a>(state: &'a [Turn], text: &'a str) -> Told<'a> {
    Told { state, text }
}

struct Told<'a> {
    state: &'a [Turn],
    text: &'a str,
}

impl PartialEq<Vec<String>> for Told<'_> {
    fn eq(&self, context: &Vec<String>) -> bool {
        let mut expected =
            self.state.iter().flat_map(|(asked, answered)| [asked.as_str(), answered.as_str()]);
        context.len() == 2 * self.state.len() + 1
            && context.last().is_some_and(|last| last == self.text)
            && context[..context.len() - 1]
                .iter()
                .all(|text| expected.next().is_some_and(|expected| expected.is_empty() || expected == text))
    }
}
