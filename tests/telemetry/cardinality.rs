//! The number of series does not depend on how many conversations and models clients use.

use super::scene::{MASKING, page, upstream};
use crate::support::client::{CHAT, Client, post};
use crate::support::cores::busy;
use crate::support::metrics::value;
use crate::support::tidegate::Tidegate;
use tidegate_testkit::until;
use tokio::task::JoinSet;

const CONVERSATIONS: usize = 10_000;
const MODELS: usize = 1_000;
const TASKS: usize = 16;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_conversations_and_models_add_no_series() {
    let _busy = busy().await;
    let upstream = upstream().await;
    let tidegate = Tidegate::start(MASKING, &upstream).await;
    let address = tidegate.address;
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        tasks.spawn(async move {
            let mut client = Client::connect(address).await;
            for number in (task..CONVERSATIONS).step_by(TASKS) {
                let (name, model) = (format!("c{number}"), number % MODELS);
                let body = format!(
                    r#"{{"model":"model-{model}","messages":[{{"role":"user","content":"{number}"}}]}}"#
                );
                client.send(post(CHAT, &[("x-conversation-id", &name)], body)).await;
                assert_eq!(client.reply().await.status, 200);
            }
        });
    }
    tasks.join_all().await;
    until("all are counted", async || {
        value(&page(&tidegate).await, "gen_ai_client_token_usage_count", &["input"])
            == Some(CONVERSATIONS as f64)
    })
    .await;
    let page = page(&tidegate).await;
    let series = page.lines().filter(|line| !line.starts_with('#')).count();
    assert!(series < 250, "{series} series in\n{page}");
    assert_eq!(value(&page, "agent_context_turn_count", &["model=\"other\""]), Some(CONVERSATIONS as f64));
    assert!(!page.contains("model-7"), "a label has a name that a client chose");
}
