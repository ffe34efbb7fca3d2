//! Metrics about what is in use of the limits of the process.

use crate::names::{label, metric};
use opentelemetry::KeyValue;
use opentelemetry::metrics::Meter;
use std::sync::Arc;

/// What is in use, and what was refused so far.
#[derive(Clone, Debug, Default)]
pub struct Load {
    /// Bytes by what they are for.
    pub memory: Vec<(&'static str, u64)>,
    /// The most that bodies and answers may take.
    pub memory_limit: u64,
    pub requests: u64,
    pub connections: u64,
    pub queued: u64,
    /// Refusals by the limit that was reached.
    pub refused: Vec<(&'static str, u64)>,
    /// The bytes of conversations in the store, and how many conversations were removed for others; `None` where another system bounds it.
    pub store: Option<(u64, u64)>,
}

pub(crate) fn register(meter: &Meter, load: &Arc<dyn Fn() -> Load + Send + Sync>) {
    let gauge = |name: &'static str, help: &'static str, read: fn(&Load) -> u64| {
        let load = load.clone();
        let gauge = meter.u64_observable_gauge(name).with_description(help);
        gauge.with_callback(move |observer| observer.observe(read(&load()), &[])).build();
    };
    gauge(metric::IN_FLIGHT, "Requests in flight.", |load| load.requests);
    gauge(metric::CONNECTIONS, "Open connections of clients.", |load| load.connections);
    gauge(metric::QUEUED_WORK, "Pieces of heavy work that wait for a thread.", |load| load.queued);
    let limit = load.clone();
    meter
        .u64_observable_gauge(metric::MEMORY_LIMIT)
        .with_unit("By")
        .with_description("The most memory that request bodies and answers in flight may take.")
        .with_callback(move |observer| observer.observe(limit().memory_limit, &[]))
        .build();
    let memory = load.clone();
    meter
        .u64_observable_gauge(metric::MEMORY_IN_USE)
        .with_unit("By")
        .with_description(
            "Memory by what it is for: requests in flight, and each of the caches. All are bounded.",
        )
        .with_callback(move |observer| {
            for (kind, bytes) in memory().memory {
                observer.observe(bytes, &[KeyValue::new(label::KIND, kind)]);
            }
        })
        .build();
    let store = load.clone();
    meter
        .u64_observable_gauge(metric::STORE_SIZE)
        .with_unit("By")
        .with_description(
            "About how much the conversations in this process's store take. At most store.max_size.",
        )
        .with_callback(move |observer| {
            if let Some((bytes, _)) = store().store {
                observer.observe(bytes, &[]);
            }
        })
        .build();
    let store = load.clone();
    meter
        .u64_observable_counter(metric::STORE_EVICTED)
        .with_description(
            "Conversations removed before their time because the store had reached store.max_size.",
        )
        .with_callback(move |observer| {
            if let Some((_, evicted)) = store().store {
                observer.observe(evicted, &[]);
            }
        })
        .build();
    let refused = load.clone();
    meter
        .u64_observable_counter(metric::OVERLOAD)
        .with_description("Requests and connections refused because a limit was reached, by limit.")
        .with_callback(move |observer| {
            for (limit, count) in refused().refused {
                observer.observe(count, &[KeyValue::new(label::LIMIT, limit)]);
            }
        })
        .build();
}
