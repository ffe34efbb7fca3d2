//! The windows that upstreams have named.

use serde::Serialize;
use tidegate_telemetry::WindowFact;

#[derive(Clone, Debug, Serialize)]
pub(crate) struct WindowsPage {
    windows: Vec<WindowEntry>,
}

#[derive(Clone, Debug, Serialize)]
struct WindowEntry {
    upstream: String,
    model: String,
    window: u64,
}

impl WindowsPage {
    pub(crate) fn new(windows: Vec<WindowFact>) -> WindowsPage {
        let entry = |WindowFact { upstream, model, tokens }| WindowEntry { upstream, model, window: tokens };
        WindowsPage { windows: windows.into_iter().map(entry).collect() }
    }
}
