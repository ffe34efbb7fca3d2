//! Learns the windows that a list of models tells, as it passes.

use crate::host::windows::{LearntWindow, Source};
use crate::host::worker::Worker;
use crate::pipeline::send::Forwarded;
use crate::transport::decode::{self, Coding};
use http::{Method, Response};
use tidegate_engine::Tokens;
use tidegate_store::wall_clock;
use tidegate_wire::read_model_windows;

/// The longest list that is read. The largest public one has half a megabyte.
const MAX_LIST: usize = 4 * 1024 * 1024;

/// The most models whose windows are learnt from a list, so that a list leaves room for others. The largest public one has about as many.
const MAX_MODELS: usize = 500;

/// Whether this request asks for models.
pub(crate) fn is_model_list(method: &Method, path: &str) -> bool {
    let path = path.trim_end_matches('/');
    let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
    method == Method::GET && (path.ends_with("/models") || parent.ends_with("/models"))
}

/// Reads the answer ahead and learns from it. It is relayed unchanged.
pub(crate) async fn learn_windows(worker: &Worker, forwarded: Forwarded) -> Forwarded {
    let Forwarded { response, headers, upstream, turn } = forwarded;
    let (head, body) = response.into_parts();
    if !head.status.is_success() {
        return Forwarded { response: Response::from_parts(head, body), headers, upstream, turn };
    }
    let (body, whole) = body.peeked(MAX_LIST, upstream.idle_timeout, None).await;
    if let Some(whole) = whole {
        let coding = decode::coding(&head.headers);
        let read = move || match coding {
            Coding::Identity => read_model_windows(&whole),
            Coding::Unknown => Vec::new(),
            coding => decode::decode(coding, &whole, MAX_LIST as u64)
                .map_or_else(|_| Vec::new(), |plain| read_model_windows(&plain)),
        };
        // Parsing a long list takes milliseconds.
        let windows = worker.gateway.heavy.own_lane().run(MAX_LIST, read).await.unwrap_or_default();
        let (gateway, upstream) = (worker.gateway.clone(), upstream.clone());
        drop(worker.shutdown.tasks.spawn(async move {
            let at = wall_clock();
            for (model, window) in windows.into_iter().take(MAX_MODELS) {
                let window = LearntWindow::new(Tokens(window), Source::List, at);
                gateway.windows.learn(&gateway.conversations, &upstream, &model, window).await;
            }
        }));
    }
    Forwarded { response: Response::from_parts(head, body), headers, upstream, turn }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_single_models_are_recognised() {
        for path in ["/v1/models", "/v1/models/", "/v1/models/gpt-4o", "/api/v1/models"] {
            assert!(is_model_list(&Method::GET, path), "{path}");
        }
        assert!(!is_model_list(&Method::DELETE, "/v1/models/ft:gpt-4o"));
        assert!(!is_model_list(&Method::GET, "/v1/files"));
    }
}
