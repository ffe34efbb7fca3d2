//! What an operator reads on the admin address.

use crate::support::client::exchange;
use crate::support::tidegate::Tidegate;
use crate::support::within;
use serde_json::Value;

async fn body(tidegate: &Tidegate, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    let reply = exchange(tidegate.admin, request).await;
    assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    reply.text()
}

/// A conversation with its turns and summaries, once so many turns are counted. They are when the answer is over already.
pub(crate) async fn conversation(tidegate: &Tidegate, name: &str, turns: u64) -> Value {
    let look = async {
        loop {
            let request = format!(
                "GET /api/conversations/{name} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
            );
            let reply = exchange(tidegate.admin, request).await;
            // Until the first one is counted, nobody has heard of it.
            if reply.status == 200 && reply.json()["turns_total"] == turns {
                return reply.json();
            }
        }
    };
    within(&format!("{turns} turns of {name} are counted"), look).await
}

/// The value of a metric, for all its labels together.
pub(crate) async fn metric(tidegate: &Tidegate, name: &str) -> f64 {
    let text = body(tidegate, "/metrics").await;
    assert!(text.contains(&format!("# TYPE {name} ")), "no {name} in\n{text}");
    let values = text.lines().filter_map(|line| {
        let rest = line.strip_prefix(name).filter(|rest| rest.starts_with([' ', '{']))?;
        Some(rest.rsplit_once(' ')?.1.parse::<f64>().unwrap())
    });
    values.sum()
}
