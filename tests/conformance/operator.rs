//! Reads conversations and metrics from the admin address.

use crate::support::client::admin;
use crate::support::metrics::value;
use crate::support::tidegate::Tidegate;
use crate::support::within;
use serde_json::Value;

/// A conversation with its turns and summaries, once this many turns are counted. A turn is counted after its answer has ended.
pub(crate) async fn conversation(tidegate: &Tidegate, name: &str, turns: u64) -> Value {
    let poll = async {
        loop {
            let reply = admin(tidegate.admin, &format!("/api/conversations/{name}")).await;
            // Until its first turn is counted, the conversation is unknown.
            if reply.status == 200 && reply.json()["turns_total"] == turns {
                return reply.json();
            }
        }
    };
    within(&format!("{turns} turns of {name} are counted"), poll).await
}

/// The value of a metric, summed over all its labels.
pub(crate) async fn metric(tidegate: &Tidegate, name: &str) -> f64 {
    let reply = admin(tidegate.admin, "/metrics").await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let page = reply.text();
    assert!(page.contains(&format!("# TYPE {name} ")), "no {name} in\n{page}");
    value(&page, name, &[]).unwrap_or(0.0)
}
