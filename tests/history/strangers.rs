//! Strangers who begin with the same words, and send nothing that names their conversation.

use crate::support::agent::{Message, body, conversation, output};
use crate::support::client::{CHAT, Client, admin, exchange, post};
use crate::support::cores::busy;
use crate::support::tidegate::{Setup, Tidegate};
use crate::support::until;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::Duration;
use tidegate_testkit::{Answer, MockUpstream, RedisServer};

const SETTINGS: &str = "[context.mask]\nkeep = { turns = 1 }\npace = { batch = 2 }\n";

async fn start(store: &str, settings: &str, upstream: &MockUpstream) -> Tidegate {
    let config = format!("[log]\naccess = false\n[store]\nurl = \"{store}\"\ntimeout = \"30s\"\n{settings}");
    Setup::new(&config).upstream(&upstream.url()).start().await
}

fn answering(text: &str, prompt_tokens: u64) -> Answer {
    let message = json!({ "role": "assistant", "content": text });
    let choice = json!({ "index": 0, "finish_reason": "stop", "message": message });
    let usage =
        json!({ "prompt_tokens": prompt_tokens, "completion_tokens": 1, "total_tokens": prompt_tokens + 1 });
    Answer::json(200, json!({ "model": "gpt-4o", "choices": [choice], "usage": usage }))
}

/// The requests of a stranger: the first three messages are everybody's.
fn requests(stranger: usize, turns: usize) -> Vec<Vec<Message>> {
    let everybody = conversation(1);
    let mut all = Vec::new();
    for turn in 1..=turns {
        let mut messages = conversation(turn);
        for (at, message) in messages.iter_mut().enumerate().skip(everybody.len().max(3)) {
            if at % 2 == 1 {
                let text = format!("{} of stranger {stranger}", output(at));
                message.content = serde_json::to_string(&text).unwrap();
            }
        }
        all.push(messages);
    }
    all
}

/// Each one's forwarded bytes equal those of the same conversation alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_strangers_get_what_each_would_get_alone() {
    const STRANGERS: usize = 1_000;
    const TURNS: usize = 5;
    let _busy = busy().await;
    let (redis, upstream) = (RedisServer::start().await, MockUpstream::start().await);
    upstream.answer(answering("ok", 10));
    let processes =
        [start(&redis.url(), SETTINGS, &upstream).await, start(&redis.url(), SETTINGS, &upstream).await];
    let mut clients =
        [Client::connect(processes[0].address).await, Client::connect(processes[1].address).await];
    let sent = async |client: &mut Client, credentials: &str, messages: &[Message]| {
        client.send(post(CHAT, &[("authorization", credentials)], body("gpt-4o", messages, &[]))).await;
        let reply = client.reply().await;
        assert_eq!((reply.status, reply.header("x-tidegate-degraded")), (200, None), "{}", reply.text());
        upstream.next_request().await.body
    };
    let mut together: HashMap<(usize, usize), Vec<u8>> = HashMap::new();
    for turn in 0..TURNS {
        for stranger in 0..STRANGERS {
            let messages = &requests(stranger, TURNS)[turn];
            let client = &mut clients[(stranger + turn) % 2];
            together.insert((stranger, turn), sent(client, "Bearer ada", messages).await);
        }
    }
    // With credentials of its own each is alone: tenants share nothing.
    let alone = start("memory:", SETTINGS, &upstream).await;
    let mut client = Client::connect(alone.address).await;
    let mut masked = 0;
    for stranger in 0..STRANGERS {
        let credentials = format!("Bearer {stranger}");
        for (turn, messages) in requests(stranger, TURNS).iter().enumerate() {
            let expected = sent(&mut client, &credentials, messages).await;
            masked += usize::from(String::from_utf8_lossy(&expected).contains("OMITTED_OBSERVATION"));
            assert!(together[&(stranger, turn)] == expected, "stranger {stranger}, turn {turn}");
        }
    }
    assert!(masked > STRANGERS, "only {masked} requests were masked");
}

/// One gets no refusal for what another has spent, and a text cannot be pinned to what may be several people's conversation.
#[tokio::test]
async fn strangers_do_not_share_cost() {
    let upstream = MockUpstream::start().await;
    // $2.5 per million tokens.
    upstream.answer(answering("hello", 1_000_000));
    let limited = "[context.limits]\nmax_cost_usd = 5.0\n";
    let tidegate = start("memory:", limited, &upstream).await;
    let mut client = Client::connect(tidegate.address).await;
    let mut ask = async |messages: &Value| {
        let body = json!({ "model": "gpt-4o", "messages": messages }).to_string();
        client.send(post(CHAT, &[("authorization", "Bearer ada")], body)).await;
        client.reply().await.status
    };
    let user = |text: &str| json!({ "role": "user", "content": text });
    let hello = json!({ "role": "assistant", "content": "hello" });
    // A stranger spends all of it.
    let mut spender = vec![user("hi")];
    let mut statuses = Vec::new();
    for turn in 0..6 {
        statuses.push(ask(&json!(spender)).await);
        spender.extend([hello.clone(), user(&format!("more {turn}"))]);
    }
    assert_eq!(statuses[0], 200);
    assert_eq!(statuses[5], 422, "{statuses:?}");
    // Others begin with the same words.
    for other in 0..3 {
        assert_eq!(ask(&json!([user("hi"), hello, user(&format!("other {other}"))])).await, 200);
    }
    let list = async || admin(tidegate.admin, "/api/conversations").await.json();
    let is_listed = |list: &Value| list["conversations"][0]["id"].is_string();
    let listed = until("it is listed", Duration::from_secs(5), list, is_listed).await;
    let id = listed["conversations"][0]["id"].as_str().unwrap();
    let path = format!("/api/conversations/{id}/memory");
    let headers = [("content-type", "text/plain"), ("content-length", "5"), ("host", "localhost")];
    let head: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let reply = exchange(tidegate.admin, format!("PUT {path} HTTP/1.1\r\n{head}\r\nnotes")).await;
    assert_eq!((reply.status, reply.error_code().as_str()), (409, "unnamed_conversation"));
}

/// Each one's limit is its own, even if others have sent the same requests: what a request has cost does not depend on how many have
/// sent it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_strangers_with_equal_requests_spend_their_own() {
    const STRANGERS: usize = 50;
    let (redis, upstream) = (RedisServer::start().await, MockUpstream::start().await);
    // $2.5 per million tokens: everybody may send four requests.
    upstream.answer(answering("hello", 1_000_000));
    let folding = "[context.fold]\nmode = \"inline\"\nwhen = { user_turns = 2 }\nkeep = { user_turns = 1 }\n";
    for strategy in ["passthrough", "masking", "summarization", "hybrid"] {
        let settings =
            format!("[context]\nstrategy = \"{strategy}\"\n{folding}[context.limits]\nmax_cost_usd = 9.0\n");
        let processes = [
            start(&redis.url(), &settings, &upstream).await,
            start(&redis.url(), &settings, &upstream).await,
        ];
        let mut clients =
            [Client::connect(processes[0].address).await, Client::connect(processes[1].address).await];
        let long = "about the harbour and its tides, ".repeat(100);
        let user = |text: &str| json!({ "role": "user", "content": format!("{text} {long}") });
        let owner = format!("Bearer {strategy}");
        let mut folded = 0;
        for turn in 0..5 {
            for stranger in 0..STRANGERS {
                let mut messages = Vec::new();
                for number in 0..=turn {
                    // The first two requests are everybody's.
                    let own = if number < 2 { String::new() } else { format!(" of stranger {stranger}") };
                    messages.push(user(&format!("question {number}{own}")));
                    messages.push(json!({ "role": "assistant", "content": "hello" }));
                }
                messages.pop();
                let body = json!({ "model": "gpt-4o", "messages": messages }).to_string();
                let client = &mut clients[(stranger + turn) % 2];
                client.send(post(CHAT, &[("authorization", &owner)], body)).await;
                let reply = client.reply().await;
                let expected = if turn < 4 { 200 } else { 422 };
                assert_eq!(
                    reply.status,
                    expected,
                    "{strategy}, stranger {stranger}, turn {turn}: {}",
                    reply.text()
                );
                folded += usize::from(
                    reply
                        .header("x-tidegate-edits")
                        .is_some_and(|edits| edits.contains("folded=") && !edits.contains("folded=0")),
                );
            }
        }
        let folds = matches!(strategy, "summarization" | "hybrid");
        assert!(!folds || folded > STRANGERS, "{strategy}: only {folded} requests were folded");
    }
}
