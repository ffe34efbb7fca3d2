//! Agents that share a conversation and its instructions, as the sub-agents of a coding agent do, each keep their own economy.

use crate::support::agent::{Message, body, conversation, send};
use crate::support::tidegate::Tidegate;
use serde_json::json;
use tidegate_testkit::{Answer, MockUpstream};

const AGENTS: usize = 4;
const TURNS: usize = 22;
const SETTINGS: &str = "[store]\nurl = \"memory:\"\n[context.mask]\nkeep = { turns = 2 }\n";

/// The request of an agent after this many turns.
fn request(agent: usize, turns: usize) -> String {
    let mut messages = conversation(turns);
    messages[1] = Message::user(&format!("Look after pier {agent}."));
    // Their results have different lengths, so that they are masked at different times.
    for message in messages.iter_mut().skip(3).step_by(2) {
        let output: String = serde_json::from_str(&message.content).unwrap();
        message.content = serde_json::to_string(&output.repeat(1 + agent)).unwrap();
    }
    body("gpt-5", &messages, &[])
}

/// The order in which the agents send their requests: each its own, at changing speed.
fn schedule() -> Vec<(usize, usize)> {
    let (mut done, mut order, mut random) = ([0; AGENTS], Vec::new(), 7usize);
    while done.iter().any(|&turns| turns < TURNS) {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let agent = (random >> 33) % AGENTS;
        if done[agent] < TURNS {
            done[agent] += 1;
            order.push((agent, done[agent]));
        }
    }
    order
}

#[tokio::test]
async fn interleaved_agents_are_masked_as_if_each_were_alone() {
    let upstream = MockUpstream::start().await;
    // Usage would calibrate the counts of all agents.
    let answer = json!({ "role": "assistant", "content": "ok" });
    let choice = json!({ "index": 0, "finish_reason": "stop", "message": answer });
    upstream.answer(Answer::json(200, json!({ "id": "c", "model": "gpt-5", "choices": [choice] })));
    for name in [&[("x-conversation-id", "shared")][..], &[]] {
        let tidegate = Tidegate::start(SETTINGS, &upstream).await;
        let mut together = vec![Vec::new(); AGENTS];
        for (agent, turns) in schedule() {
            let (reply, arrived) = send(&tidegate, &upstream, name, &request(agent, turns)).await;
            let trigger = reply.header("x-tidegate-trigger").map(str::to_owned);
            together[agent].push((trigger, arrived));
        }
        let mut moves = Vec::new();
        for (agent, together) in together.iter().enumerate() {
            let tidegate = Tidegate::start(SETTINGS, &upstream).await;
            for turns in 1..=TURNS {
                let (reply, arrived) = send(&tidegate, &upstream, name, &request(agent, turns)).await;
                let trigger = reply.header("x-tidegate-trigger").map(str::to_owned);
                assert_eq!(together[turns - 1], (trigger, arrived), "agent {agent}, {turns} turns");
            }
            moves.push(together.iter().filter(|(trigger, _)| trigger.is_some()).count());
        }
        assert!(moves.iter().all(|moves| (1..TURNS / 3).contains(moves)), "{moves:?}");
    }
}
