//! What a summary does not say is brought back when the user asks for it, by every process and after a restart.

use super::forwarded::Forwarded;
use super::scene::{FOLD, ask, edits, send, start, summarizer, upstream, with_store, with_summarizer};
use crate::support::chat::{assistant, calls, result, system, user};
use crate::support::client::{CHAT, admin, exchange, post, request};
use crate::support::reply::{edited, figure};
use crate::support::tidegate::Tidegate;
use rustix::process::Signal;
use tempfile::TempDir;
use tidegate_testkit::{MockUpstream, RedisServer};

const PLANTED: &str = "The access code of the vault is 4711-blue.";
const ASKED: &str = "Which access code does the vault have?";

fn settings() -> String {
    format!(
        "[store]\nurl = \"memory:\"\n[context]\nstrategy = \"summarization\"\n[context.fold]\nmode = \"inline\"\nplacement = \"merge\"\n{FOLD}"
    )
}

/// A talk of this many turns. The second one holds the fact, which no summary by [`summarizer`] does.
fn talk(turns: usize) -> Vec<String> {
    let mut messages = vec![system("Be brief.")];
    for turn in 0..turns {
        let said =
            if turn == 1 { PLANTED } else { "Tell me a long story about the sea, the wind and the gulls." };
        messages.push(user(&format!("Turn {turn}. {said}")));
        messages.push(assistant(
            &format!("Story {turn}: the gulls cried, and the wind came up from the sea. ").repeat(8),
        ));
    }
    messages
}

fn asking(turns: usize) -> Vec<String> {
    let mut messages = talk(turns);
    messages.push(user(ASKED));
    messages
}

fn looped(mut messages: Vec<String>, steps: usize) -> Vec<String> {
    for step in 0..steps {
        let ids = [format!("call_{step}")];
        messages.push(calls(&ids));
        messages.push(result(&ids[0], "nothing there"));
    }
    messages
}

fn last(forwarded: &Forwarded) -> &str {
    forwarded.messages.last().unwrap()
}

/// Plays the talk up to the question.
async fn play(process: &Tidegate, upstream: &MockUpstream, name: &str) -> Forwarded {
    for turn in 2..8 {
        let mut messages = talk(turn);
        messages.pop();
        send(process, upstream, name, &messages).await;
    }
    let (reply, forwarded) = send(process, upstream, name, &asking(8)).await;
    assert!(edited(&reply, "folded") > 0 && edits(&reply).contains(",recalled="), "{}", edits(&reply));
    assert!(last(&forwarded).contains(PLANTED) && last(&forwarded).contains(ASKED), "{}", last(&forwarded));
    assert!(figure(&reply, "x-tidegate-tokens-after") < figure(&reply, "x-tidegate-tokens-before"));
    forwarded
}

#[tokio::test]
async fn an_excerpt_is_the_same_in_every_process() {
    let (redis, upstream, summarizer) = (RedisServer::start().await, upstream().await, summarizer().await);
    let settings = with_summarizer(&with_store(&settings(), &redis.url()), &summarizer, "30s");
    let (one, other) = (start(&settings, &upstream).await, start(&settings, &upstream).await);
    let mut before = play(&one, &upstream, "a").await;
    let (_, again) = send(&other, &upstream, "a", &asking(8)).await;
    assert_eq!(again, before, "a retry");
    for step in 1..5 {
        let process = if step % 2 == 0 { &one } else { &other };
        let (_, next) = send(process, &upstream, "a", &looped(asking(8), step)).await;
        assert!(next.body.starts_with(before.prefix()), "step {step}: {}", next.body);
        before = next;
    }
}

#[tokio::test]
async fn an_excerpt_survives_a_restart() {
    let (directory, upstream, summarizer) = (TempDir::new().unwrap(), upstream().await, summarizer().await);
    let url = format!("embedded:{}", directory.path().join("data").display());
    let settings = with_summarizer(&with_store(&settings(), &url), &summarizer, "5s");
    let mut first = start(&settings, &upstream).await;
    let before = play(&first, &upstream, "a").await;
    first.signal(Signal::KILL);
    first.ended().await;
    let second = start(&settings, &upstream).await;
    let (reply, next) = send(&second, &upstream, "a", &looped(asking(8), 1)).await;
    assert!(next.body.starts_with(before.prefix()), "{} {}", edits(&reply), next.body);
}

/// A conversation without a name carries its excerpts from request to request.
#[tokio::test]
async fn an_excerpt_moves_on_with_a_conversation_without_a_name() {
    let (upstream, summarizer) = (upstream().await, summarizer().await);
    let process = start(&with_summarizer(&settings(), &summarizer, "5s"), &upstream).await;
    let send = async |messages: &[String]| {
        let body = crate::support::chat::body(messages);
        let reply = exchange(process.address, post(CHAT, &[("authorization", "Bearer ada")], body)).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        Forwarded::new(String::from_utf8(upstream.next_request().await.body).unwrap())
    };
    for turn in 2..8 {
        let mut messages = talk(turn);
        messages.pop();
        send(&messages).await;
    }
    let mut before = send(&asking(8)).await;
    assert!(last(&before).contains(PLANTED), "{}", before.body);
    for step in 1..4 {
        let next = send(&looped(asking(8), step)).await;
        assert!(next.body.starts_with(before.prefix()), "step {step}: {}", next.body);
        before = next;
    }
}

/// An excerpt is not the client's word: neither the state nor the turn's record has it as one.
#[tokio::test]
async fn an_excerpt_is_reported_and_not_recorded() {
    let (upstream, summarizer) = (upstream().await, summarizer().await);
    let process = start(&with_summarizer(&settings(), &summarizer, "5s"), &upstream).await;
    play(&process, &upstream, "a").await;
    let headers = [("x-conversation-id", "a"), ("authorization", "Bearer ada")];
    let state = exchange(process.address, request("GET", "/tidegate/v1/conversation", &headers, b"")).await;
    assert!(state.text().contains(ASKED) && !state.text().contains("earlier_excerpts"), "{}", state.text());
    let metrics = admin(process.admin, "/metrics").await.text();
    let recalled = metrics.lines().find(|line| line.starts_with("tidegate_recalled_tokens_total"));
    let recalled: f64 = recalled.and_then(|line| line.rsplit(' ').next()).unwrap().parse().unwrap();
    assert!(recalled > 0.0, "{metrics}");
}

#[tokio::test]
async fn without_raw_messages_nothing_is_brought_back() {
    let (upstream, summarizer) = (upstream().await, summarizer().await);
    let settings = settings().replace("[store]\n", "[store]\nraw = false\n");
    let process = start(&with_summarizer(&settings, &summarizer, "5s"), &upstream).await;
    let messages = asking(8);
    let reply = ask(process.address, "a", &messages).await;
    assert!(edited(&reply, "folded") > 0 && !edits(&reply).contains("recalled"), "{}", edits(&reply));
    assert!(!String::from_utf8(upstream.next_request().await.body).unwrap().contains("earlier_excerpts"));
}

/// Nothing of the talk bears on it, so the request is no longer than before.
#[tokio::test]
async fn small_talk_brings_nothing_back() {
    let upstream = upstream().await;
    let process = start(&settings(), &upstream).await;
    for text in ["Thanks, please go on.", "Ok, great!", "Danke, weiter bitte.", "谢谢，请继续。"] {
        let mut messages = talk(8);
        messages.push(user(text));
        let name = format!("talk-{}", text.len());
        let (reply, forwarded) = send(&process, &upstream, &name, &messages).await;
        assert!(edited(&reply, "folded") > 0 && !edits(&reply).contains("recalled"), "{}", edits(&reply));
        assert!(last(&forwarded).contains(text), "{}", last(&forwarded));
    }
}
