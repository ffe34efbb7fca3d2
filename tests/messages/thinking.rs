//! Thinking that its provider binds to everything before it: a simulated one refuses a request in which that has changed.

use super::{HEADERS, MESSAGES, conversation, send, upstream};
use crate::support::agent::EVERY_TURN;
use crate::support::client::{admin, exchange, post};
use crate::support::reply::Reply;
use crate::support::tidegate::{Setup, Tidegate};
use crate::support::{PATIENCE, until};
use serde_json::{Value, json};
use std::hash::{DefaultHasher, Hash, Hasher};
use tidegate_testkit::{Answer, MockUpstream, RedisServer};

const REFUSED: &str = "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. \
                       Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\".";

/// A hash of what stands before a message: the instructions, the tools, and all messages.
fn signature(request: &Value, before: usize) -> String {
    let mut hasher = DefaultHasher::new();
    let messages = &request["messages"].as_array().unwrap()[..before];
    format!("{}{}{messages:?}", request["system"], request["tools"]).hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Whether all thinking in a request was made after what stands before it now.
fn is_intact(request: &Value) -> bool {
    let messages = request["messages"].as_array().unwrap();
    messages.iter().enumerate().all(|(index, message)| {
        let blocks = message["content"].as_array().map_or(&[][..], Vec::as_slice);
        let mut signatures = blocks.iter().filter_map(|block| block["signature"].as_str());
        signatures.all(|stated| stated == signature(request, index))
    })
}

/// A provider that signs its thinking, makes a call in every answer, and checks what it has signed.
async fn binding_upstream() -> MockUpstream {
    let upstream = MockUpstream::start().await;
    upstream.script(|request| {
        let request: Value = serde_json::from_slice(&request.body).unwrap();
        if !is_intact(&request) {
            let error = json!({"type": "invalid_request_error", "message": REFUSED});
            return Answer::json(400, json!({"type": "error", "error": error}));
        }
        let messages = request["messages"].as_array().unwrap().len();
        let content = json!([{"type": "thinking", "thinking": "", "signature": signature(&request, messages)},
            {"type": "tool_use", "id": format!("t{messages}"), "name": "shell", "input": {"n": messages}}]);
        Answer::json(
            200,
            json!({"id": "m", "type": "message", "role": "assistant", "model": "claude", "content": content,
            "stop_reason": "tool_use"}),
        )
    });
    upstream
}

/// A client that resends all of its history, with a long result for every call.
struct Agent {
    request: Value,
}

impl Agent {
    fn new(model: &str) -> Agent {
        let question = json!({"role": "user", "content": "Fix the bug."});
        let tools = json!([{"name": "shell", "input_schema": {"type": "object"}}]);
        Agent {
            request: json!({"model": model, "max_tokens": 100, "system": "Be careful.", "tools": tools, "messages": [question]}),
        }
    }

    async fn ask(&self, tidegate: &Tidegate) -> Reply {
        let headers = [&HEADERS[..], &[("x-conversation-id", "c")]].concat();
        exchange(tidegate.address, post(MESSAGES, &headers, self.request.to_string())).await
    }

    async fn turn(&mut self, tidegate: &Tidegate) -> Reply {
        let reply = self.ask(tidegate).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        let answer: Value = reply.json();
        let id = answer["content"][1]["id"].clone();
        let result =
            json!({"type": "tool_result", "tool_use_id": id, "content": "a line of the output\n".repeat(60)});
        let messages = self.request["messages"].as_array_mut().unwrap();
        messages.push(json!({"role": "assistant", "content": answer["content"]}));
        messages.push(json!({"role": "user", "content": [result]}));
        reply
    }
}

const TURNS: usize = 14;

/// The records of all turns, once they are written.
async fn recorded(tidegate: &Tidegate) -> Vec<Value> {
    let ask = async || {
        let page: Value = admin(tidegate.admin, "/api/conversations/c").await.json();
        page["turns"].as_array().unwrap().clone()
    };
    until("the turns are recorded", PATIENCE, ask, |turns| turns.len() == TURNS).await
}

#[tokio::test]
async fn what_thinking_is_bound_to_is_never_edited() {
    for settings in [
        "[context]\nstrategy = \"hybrid\"\n[context.mask]\nkeep = { turns = 2 }\npace = \"every_turn\"\n[context.fold]\nmode = \"inline\"\n\
         when = { turns = 4 }\nkeep = { turns = 2 }\n[context.trim]\nmin_tokens = 200\nkeep_tokens = 80\n",
        "[context]\nstrategy = \"summarization\"\n[context.fold]\nmode = \"background\"\nwhen = { turns = 3 }\nkeep = { turns = 1 }\n",
    ] {
        let upstream = binding_upstream().await;
        let tidegate = Tidegate::start(&format!("[store]\nurl = \"memory:\"\n{settings}"), &upstream).await;
        let mut agent = Agent::new("claude-opus-5-5");
        for turn in 0..TURNS {
            let reply = agent.turn(&tidegate).await;
            assert_eq!(reply.header("x-tidegate-rescued"), None);
            let edits = reply.header("x-tidegate-edits").unwrap();
            assert_eq!(edits.contains(&format!(",bound={}", 2 * turn)), turn > 0, "{edits}");
            assert!(edits.starts_with("masked=0,") && edits.contains("folded=0,dropped=0"), "{edits}");
        }
        assert_eq!(upstream.requests().len(), TURNS, "nothing was sent twice");
        let turns = recorded(&tidegate).await;
        let last = turns.last().unwrap();
        assert_eq!((&last["bound"], &last["left_alone"]), (&json!(2 * (TURNS - 1)), &json!(false)), "{last}");
    }
}

/// Tidegate does not know every name of every model.
#[tokio::test]
async fn a_conversation_whose_edits_were_refused_is_left_alone_by_all() {
    let (redis, upstream) = (RedisServer::start().await, binding_upstream().await);
    let config = format!("[store]\nurl = \"{}\"\n{EVERY_TURN}", redis.url());
    let processes = [
        Setup::new(&config).before(&upstream).start().await,
        Setup::new(&config).before(&upstream).start().await,
    ];
    let mut agent = Agent::new("our-best-model");
    let mut rescued = Vec::new();
    for turn in 0..TURNS {
        let reply = agent.turn(&processes[turn % 2]).await;
        let edits = reply.header("x-tidegate-edits").unwrap();
        match reply.header("x-tidegate-rescued") {
            Some(reason) => {
                assert_eq!(reason, "thinking_refused");
                rescued.push(turn);
            }
            None => assert_eq!(edits == "left_alone", !rescued.is_empty(), "{turn}: {edits}"),
        }
    }
    assert_eq!(rescued.len(), 1, "{rescued:?}");
    let requests = upstream.requests();
    assert_eq!(requests.len(), TURNS + 1, "one was sent twice");
    let refused: Value = serde_json::from_slice(&requests[rescued[0]].body).unwrap();
    assert!(!is_intact(&refused));
    // The same request, as the client has sent it, and so are all that follow.
    for request in &requests[rescued[0] + 1..] {
        let body = String::from_utf8_lossy(&request.body);
        assert!(!body.contains(crate::support::agent::PLACEHOLDER), "{body}");
    }
    let turns = recorded(&processes[0]).await;
    let outcomes: Vec<(&Value, &Value)> =
        turns.iter().map(|turn| (&turn["outcome"], &turn["left_alone"])).collect();
    assert_eq!(outcomes[rescued[0]], (&json!("rescued"), &json!(true)));
    assert_eq!(outcomes[TURNS - 1], (&json!("answered"), &json!(true)));
}

#[tokio::test]
async fn a_refusal_names_the_thinking_that_is_in_the_way() {
    let upstream = binding_upstream().await;
    let settings =
        "[store]\nurl = \"memory:\"\n[context]\nstrategy = \"window\"\n[context.budget]\nmax_input = 1500\n";
    let tidegate = Tidegate::start(settings, &upstream).await;
    let mut agent = Agent::new("claude-opus-5-5");
    for _ in 0..3 {
        agent.turn(&tidegate).await;
    }
    let messages = agent.request["messages"].as_array_mut().unwrap();
    messages.push(json!({"role": "user", "content": "word ".repeat(1_500)}));
    let refused = agent.ask(&tidegate).await;
    assert_eq!(refused.status, 422);
    let text = refused.text();
    assert!(
        text.contains("The first 6 messages cannot be edited") && text.contains("bound to them"),
        "{text}"
    );
}

/// An error that no edit of ours has caused passes as it came, once.
#[tokio::test]
async fn refused_thinking_of_an_unedited_request_is_the_clients() {
    let upstream = binding_upstream().await;
    let tidegate = Tidegate::start("[store]\nurl = \"memory:\"\n", &upstream).await;
    let forged =
        json!([{"type": "thinking", "thinking": "", "signature": "f0"}, {"type": "text", "text": "hi"}]);
    let messages = json!([{"role": "user", "content": "hi"}, {"role": "assistant", "content": forged}, {"role": "user", "content": "x"}]);
    let sent = json!({"model": "claude-opus-5-5", "max_tokens": 10, "messages": messages}).to_string();
    let reply = exchange(tidegate.address, post(MESSAGES, &HEADERS, &sent)).await;
    assert_eq!((reply.status, reply.header("x-tidegate-rescued")), (400, None));
    assert!(reply.text().contains("bound to a different conversation"));
    assert_eq!(upstream.requests().len(), 1);
}

/// Other models do not check what stands before their thinking, and thinking without a signature is bound to nothing.
#[tokio::test]
async fn other_conversations_are_masked() {
    let upstream = upstream().await;
    let tidegate = Tidegate::start(EVERY_TURN, &upstream).await;
    let newest = conversation(6, 0).replace("claude-sonnet-4-5", "claude-opus-5-5");
    let (reply, arrived) = send(&tidegate, &upstream, &newest).await;
    assert_eq!(reply.header("x-tidegate-edits"), Some("masked=0,folded=0,dropped=0,bound=12"));
    assert_eq!(arrived, newest);
    let unsigned = newest.replace("\"redacted_thinking\",\"data\":\"AAAA\"", "\"text\",\"text\":\"x\"");
    let unsigned = (0..6).fold(unsigned, |body, step| body.replace(&format!("c2ln{step}"), ""));
    for sent in [conversation(6, 0), unsigned] {
        let tidegate = Tidegate::start(EVERY_TURN, &upstream).await;
        let (reply, arrived) = send(&tidegate, &upstream, &sent).await;
        assert_eq!(reply.header("x-tidegate-edits"), Some("masked=4,folded=0,dropped=0"), "{sent}");
        assert!(arrived.len() < sent.len());
    }
}
