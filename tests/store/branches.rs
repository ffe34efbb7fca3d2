//! Edited histories, regenerated answers, branches and retries never get another branch's decision.
//!
//! Sends random trees of requests in one conversation through two processes on one Redis. Each is forwarded with its own messages,
//! and masked only where its own window allows it. One whose ancestors were the last requests is forwarded, byte for byte, as if
//! only they had been sent.

use super::turns::{start, upstream};
use crate::support::agent::{Message, PLACEHOLDER, body, conversation, output};
use crate::support::client::{CHAT, exchange, post};
use std::net::SocketAddr;
use tidegate_testkit::{MockUpstream, RedisServer};

const TREES: u64 = 12;
const REQUESTS: usize = 14;

/// One request of a tree.
struct Node {
    messages: Vec<Message>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_gets_the_decision_of_another_branch() {
    let (redis, upstream) = (RedisServer::start().await, upstream().await);
    let processes = [start(&redis.url(), &upstream).await, start(&redis.url(), &upstream).await];
    let separate = start("memory:", &upstream).await;
    let mut branched = 0;
    for seed in 0..TREES {
        let tree = tree(seed);
        for (index, node) in tree.iter().enumerate() {
            let process = processes[(index + usize::from(seed % 2 == 0)) % 2].address;
            let forwarded = forward(process, &upstream, &format!("tree-{seed}"), node).await;
            // The same request after only its ancestors.
            let alone = format!("alone-{seed}-{index}");
            let mut last = Vec::new();
            for ancestor in ancestors(&tree, index) {
                last = forward(separate.address, &upstream, &alone, &tree[ancestor]).await;
            }
            let masks = masks(&forwarded);
            assert_eq!(forwarded, body("gpt-4o", &node.messages, &masks).into_bytes());
            let kept_from = node.messages.len() - 2;
            assert!(masks.iter().all(|&mask| mask < kept_from), "tree {seed}, request {index}: {masks:?}");
            let is_only_branch = ancestors(&tree, index).len() == index + 1;
            assert!(
                !is_only_branch || forwarded == last,
                "tree {seed}, request {index} differs from the same alone"
            );
            branched += usize::from(index > 0 && !continues(node, &tree[index - 1]));
        }
    }
    assert!(branched > 20, "only {branched} requests branched off");
}

async fn forward(process: SocketAddr, upstream: &MockUpstream, name: &str, node: &Node) -> Vec<u8> {
    let headers = [("x-conversation-id", name), ("authorization", "Bearer ada")];
    let reply = exchange(process, post(CHAT, &headers, body("gpt-4o", &node.messages, &[]))).await;
    assert_eq!((reply.status, reply.header("x-tidegate-degraded")), (200, None), "{}", reply.text());
    upstream.next_request().await.body
}

/// The indexes of the masked messages of a forwarded request.
fn masks(forwarded: &[u8]) -> Vec<usize> {
    let forwarded: serde_json::Value = serde_json::from_slice(forwarded).unwrap();
    let messages = forwarded["messages"].as_array().unwrap().iter().enumerate();
    messages.filter(|(_, message)| message["content"] == PLACEHOLDER).map(|(index, _)| index).collect()
}

/// The requests that are prefixes of this one, ending with itself.
fn ancestors(tree: &[Node], index: usize) -> Vec<usize> {
    (0..=index).filter(|&earlier| continues(&tree[index], &tree[earlier])).collect()
}

fn continues(later: &Node, earlier: &Node) -> bool {
    let written = |messages: &[Message]| body("", messages, &[]);
    let length = earlier.messages.len();
    later.messages.len() >= length && written(&later.messages[..length]) == written(&earlier.messages)
}

/// Every request continues an earlier one with new turns, changes one of its turns, or repeats it as a retry.
fn tree(seed: u64) -> Vec<Node> {
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut draw = move |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 33) as usize % below
    };
    let mut tree = vec![Node { messages: conversation(1) }];
    while tree.len() < REQUESTS {
        let parent = if draw(3) == 0 { draw(tree.len()) } else { tree.len() - 1 };
        let mut messages = tree[parent].messages.clone();
        match draw(6) {
            0 => {}
            1 if messages.len() > 4 => {
                // A changed result makes everything after it a different history.
                let at = 3 + 2 * draw((messages.len() - 2) / 2);
                let changed = Message::new("", &format!("changed by {}", tree.len()), "");
                messages[at].content = changed.content;
                tree.push(Node { messages });
                continue;
            }
            _ => {
                for _ in 0..=draw(2) {
                    let number = (messages.len() - 2) / 2;
                    let mut more = conversation(number + 1).split_off(messages.len());
                    // Different from the same turn of another branch.
                    let text = format!("{} in request {}", output(number), tree.len());
                    more[1].content = serde_json::to_string(&text).unwrap();
                    messages.extend(more);
                }
            }
        }
        tree.push(Node { messages });
    }
    tree
}
