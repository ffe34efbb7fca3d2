//! What was recalled stands in the next request, where the client does not have it.

use super::{EVERY_TURN, RECALL, TOOL, TOOLS, call, calling, original, recalling};
use crate::support::agent::{Message, body, conversation};
use crate::support::client::{CHAT, exchange, post, request as plain};
use crate::support::tidegate::{Setup, Tidegate};
use crate::trimming::{TRIM, log};
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_testkit::{Answer, MockUpstream, RedisServer};

const NAMED: (&str, &str) = ("x-conversation-id", "dry-dock");

fn request(messages: &[Message]) -> String {
    body("gpt-4o", messages, &[]).replacen("\"top_p\"", &format!("{TOOLS}\"top_p\""), 1)
}

async fn start(store: &str, upstream: &MockUpstream) -> Tidegate {
    let config = format!("[store]\nurl = \"{store}\"\n{EVERY_TURN}{RECALL}");
    Setup::new(&config).upstream(&upstream.url()).start().await
}

/// Sends a request that the upstream answers with these, and returns what arrived there last.
async fn ask(
    tidegate: &Tidegate,
    upstream: &MockUpstream,
    named: &[(&str, &str)],
    sent: &str,
    answers: Vec<Answer>,
) -> String {
    let count = answers.len();
    for answer in answers {
        upstream.then(answer);
    }
    let reply = exchange(tidegate.address, post(CHAT, named, sent)).await;
    assert_eq!((reply.status, reply.header("x-tidegate-degraded")), (200, None), "{}", reply.text());
    let mut arrived = String::new();
    for _ in 0..count {
        arrived = String::from_utf8(upstream.next_request().await.body).unwrap();
    }
    arrived
}

fn messages(request: &str) -> Vec<Value> {
    serde_json::from_str::<Value>(request).unwrap()["messages"].as_array().unwrap().clone()
}

fn reference(arrived: &str) -> String {
    let at = arrived.find("ref ").unwrap_or_else(|| panic!("no reference: {arrived}")) + 4;
    arrived[at..at + 8].to_owned()
}

/// The next request of a client that got this answer.
fn after(answer: Message) -> String {
    let mut messages = conversation(4);
    messages.extend([answer, Message::user("Are you sure?")]);
    request(&messages)
}

fn dry() -> Message {
    Message::assistant("It is dry.")
}

/// Every call has its results behind it, and nothing else has any.
fn assert_paired(messages: &[Value]) {
    let mut open: Vec<Value> = Vec::new();
    for message in messages {
        if message["role"] == "tool" {
            let at = open.iter().position(|id| *id == message["tool_call_id"]);
            open.remove(at.unwrap_or_else(|| panic!("no call: {message}")));
        } else {
            assert!(open.is_empty(), "no result for {open:?}");
            open = message["tool_calls"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|call| call["id"].clone())
                .collect();
        }
    }
    assert!(open.is_empty(), "no result for {open:?}");
}

/// Recalls in one process, and returns the messages of the next request in another.
async fn across(
    one: &Tidegate,
    other: &Tidegate,
    upstream: &MockUpstream,
    named: &[(&str, &str)],
) -> Vec<Value> {
    let first = request(&conversation(4));
    let reference = reference(&ask(one, upstream, named, &first, vec![Answer::chat("ok")]).await);
    ask(one, upstream, named, &first, vec![recalling(&reference), Answer::chat("It is dry.")]).await;
    messages(&ask(other, upstream, named, &after(dry()), vec![Answer::chat("Quite.")]).await)
}

fn assert_put_back(messages: &[Value]) {
    assert_paired(messages);
    let [.., asked, result, answer, question] = messages else { panic!("{messages:?}") };
    assert_eq!(asked["tool_calls"][0]["function"]["name"], TOOL, "{messages:?}");
    assert_eq!((&result["tool_call_id"], &result["content"]), (&json!("r1"), &json!(original().trim_end())));
    assert_eq!((&answer["content"], &question["content"]), (&json!("It is dry."), &json!("Are you sure?")));
}

#[tokio::test]
async fn what_was_recalled_stands_before_its_answer() {
    let upstream = MockUpstream::start().await;
    let tidegate = start("memory:", &upstream).await;
    for named in [&[NAMED][..], &[]] {
        assert_put_back(&across(&tidegate, &tidegate, &upstream, named).await);
    }
    // Somebody else who asks the same has recalled nothing.
    let stranger = [NAMED, ("authorization", "Bearer bob")];
    let theirs = ask(&tidegate, &upstream, &stranger, &after(dry()), vec![Answer::chat("Quite.")]).await;
    assert!(!messages(&theirs).iter().any(|message| message["tool_call_id"] == "r1"), "{theirs}");
}

#[tokio::test]
async fn another_replica_and_a_restart_put_it_back() {
    let (redis, upstream) = (RedisServer::start().await, MockUpstream::start().await);
    let one = start(&redis.url(), &upstream).await;
    let other = start(&redis.url(), &upstream).await;
    assert_put_back(&across(&one, &other, &upstream, &[NAMED]).await);
    assert_put_back(&across(&one, &other, &upstream, &[]).await);

    let directory = TempDir::new().unwrap();
    let url = format!("embedded:{}", directory.path().join("data").display());
    let mut first = start(&url, &upstream).await;
    assert_put_back(&across(&first, &first, &upstream, &[NAMED]).await);
    first.signal(Signal::KILL);
    first.ended().await;
    let second = start(&url, &upstream).await;
    let again = ask(&second, &upstream, &[NAMED], &after(dry()), vec![Answer::chat("Quite.")]).await;
    assert_put_back(&messages(&again));
}

#[tokio::test]
async fn the_prefix_stays_the_same() {
    let upstream = MockUpstream::start().await;
    let config = format!("[store]\nurl = \"memory:\"\n{RECALL}");
    let tidegate = Tidegate::start(&config, &upstream).await;
    let first = request(&conversation(4));
    let named = [NAMED];
    ask(&tidegate, &upstream, &named, &first, vec![Answer::chat("ok")]).await;
    // Nothing is masked yet, so nothing is named; the reference is that of a message nonetheless.
    let search = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "search_history", "arguments": { "query": "result 1" } } });
    let found = exchange(tidegate.address, post("/tidegate/mcp", &named, search.to_string())).await.text();
    let asked = recalling(&reference(&found));
    let before = ask(&tidegate, &upstream, &named, &first, vec![asked, Answer::chat("It is dry.")]).await;
    let next = ask(&tidegate, &upstream, &named, &after(dry()), vec![Answer::chat("Quite.")]).await;
    let end = before.rfind("\"role\":\"tool\"").unwrap();
    assert_eq!(before[..end], next[..end], "up to the recalled text");
    let more = after(dry())
        .replace("Are you sure?\"}", "Are you sure?\"} , {\"role\":\"assistant\",\"content\":\"Yes.\"}");
    let last = ask(&tidegate, &upstream, &named, &more, vec![Answer::chat("Quite.")]).await;
    let end = next.find("Are you sure?").unwrap();
    assert_eq!(next[..end], last[..end]);
}

#[tokio::test]
async fn calls_beside_the_clients_own_are_put_back_among_them() {
    let upstream = MockUpstream::start().await;
    let tidegate = start("memory:", &upstream).await;
    let first = request(&conversation(4));
    let named = [NAMED];
    let reference = reference(&ask(&tidegate, &upstream, &named, &first, vec![Answer::chat("ok")]).await);
    let ours = |id: &str| call(id, TOOL, &json!({ "ref": reference }));
    let own = |id: &str| call(id, "shell", &json!({ "of": id }));
    let all = [ours("r1"), own("c1"), ours("r2"), own("c2"), ours("r3")];
    ask(&tidegate, &upstream, &named, &first, vec![calling(&all)]).await;

    let mut back = conversation(4);
    let calls = json!([own("c1"), own("c2")]).to_string();
    let answer = format!("{{\"role\":\"assistant\",\"content\":null , \"tool_calls\":{calls}}}");
    let raw = |json: String| Message { before: json, content: String::new(), behind: String::new() };
    back.push(raw(answer));
    for id in ["c1", "c2"] {
        back.push(raw(format!("{{\"role\":\"tool\",\"tool_call_id\":\"{id}\",\"content\":\"done\"}}")));
    }
    let arrived =
        messages(&ask(&tidegate, &upstream, &named, &request(&back), vec![Answer::chat("ok")]).await);
    assert_paired(&arrived);
    let [.., answer, r1, r2, r3, c1, c2] = &arrived[..] else { panic!("{arrived:?}") };
    assert_eq!(answer["tool_calls"], json!(all));
    let ids = [r1, r2, r3, c1, c2].map(|result| result["tool_call_id"].as_str().unwrap());
    assert_eq!(ids, ["r1", "r2", "r3", "c1", "c2"]);
    assert_eq!(r2["content"], json!(original().trim_end()));
}

/// It would only be asked for again.
#[tokio::test]
async fn a_recalled_text_is_not_trimmed() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start(&format!("[store]\nurl = \"memory:\"\n{TRIM}{RECALL}"), &upstream).await;
    let mut messages = conversation(3);
    for step in 0..3 {
        messages[3 + 2 * step].content = json!(log(step)).to_string();
    }
    let first = request(&messages);
    let named = [NAMED];
    let trimmed = ask(&tidegate, &upstream, &named, &first, vec![Answer::chat("ok")]).await;
    assert!(trimmed.contains("TRIMMED_OBSERVATION"), "{trimmed}");
    ask(
        &tidegate,
        &upstream,
        &named,
        &first,
        vec![recalling(&reference(&trimmed)), Answer::chat("It is dry.")],
    )
    .await;
    for _ in 0..3 {
        messages.extend([dry(), Message::user("Are you sure?")]);
        let arrived =
            ask(&tidegate, &upstream, &named, &request(&messages), vec![Answer::chat("It is dry.")]).await;
        let arrived = self::messages(&arrived);
        let recalled = arrived.iter().find(|message| message["tool_call_id"] == "r1").unwrap();
        assert_eq!(recalled["content"], json!(log(0)));
    }
}

#[tokio::test]
async fn a_deleted_conversation_has_recalled_nothing() {
    let upstream = MockUpstream::start().await;
    let tidegate = start("memory:", &upstream).await;
    assert_put_back(&across(&tidegate, &tidegate, &upstream, &[NAMED]).await);
    let deleted =
        exchange(tidegate.address, plain("DELETE", "/tidegate/v1/conversation", &[NAMED], b"")).await;
    assert_eq!(deleted.status, 204);
    let arrived = ask(&tidegate, &upstream, &[NAMED], &after(dry()), vec![Answer::chat("Quite.")]).await;
    assert!(!arrived.contains("\"r1\""), "{arrived}");
}

/// A client that gets no answer asks again, and its model recalls again: nothing is known of the first attempt.
#[tokio::test]
async fn a_recall_without_an_answer_leaves_nothing_behind() {
    let upstream = MockUpstream::start().await;
    let tidegate = start("memory:", &upstream).await;
    let first = request(&conversation(4));
    let named = [NAMED];
    let reference = reference(&ask(&tidegate, &upstream, &named, &first, vec![Answer::chat("ok")]).await);
    upstream.then(recalling(&reference)).then(Answer::error(500, "server_error", "it broke"));
    assert_eq!(exchange(tidegate.address, post(CHAT, &named, &first)).await.status, 500);
    upstream.next_request().await;
    upstream.next_request().await;
    let again = ask(&tidegate, &upstream, &named, &first, vec![Answer::chat("It is dry.")]).await;
    assert!(!again.contains("\"r1\""), "{again}");
    let next = ask(&tidegate, &upstream, &named, &after(dry()), vec![Answer::chat("Quite.")]).await;
    assert!(!next.contains("\"r1\""), "{next}");
}
