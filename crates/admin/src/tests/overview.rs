use super::{admin_with, call, error_code, memory_store, options, test_router};
use http::{Method, Request};
use http_body_util::{BodyExt, Either, Empty};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tidegate_store::Conversations;
use tidegate_telemetry::{ModelTally, Tally};

fn counted(route: &str, model: &str, tally: Tally) -> ModelTally {
    ModelTally { route: route.to_owned(), model: model.to_owned(), tally }
}

fn priced() -> Tally {
    Tally {
        requests: 4,
        tokens_before: 9_000,
        tokens_after: 5_000,
        prompt_tokens: 5_100,
        cached_tokens: 4_000,
        billed: 250_000_000,
        unedited: 1_000_000_000,
        summarizers: 50_000_000,
        priced: 4,
        folds: 1,
        degraded: [("store_timeout", 2)].into(),
        refusals: [("context_budget_exceeded", 1)].into(),
        overhead: vec![0, 0, 4],
        ..Tally::default()
    }
}

#[tokio::test]
async fn figures_are_grouped_by_route_and_model() {
    let unpriced = Tally { requests: 1, unpriced: 1, ..Tally::default() };
    let tallies = move || {
        vec![
            counted("chat", "gpt-4o", priced()),
            counted("agents", "gpt-4o", unpriced.clone()),
            counted("chat", "other", unpriced.clone()),
        ]
    };
    let router = test_router(admin_with(Conversations::new(memory_store(), options()), "", tallies));
    router.sample();
    let read = async |target: &str| -> Value {
        let (status, text) = call(&router, Method::GET, target).await;
        assert_eq!(status, 200, "{text}");
        serde_json::from_str(&text).unwrap()
    };
    let page = read("/api/overview").await;
    let totals = &page["totals"];
    assert_eq!(
        (&totals["requests"], &totals["tokens_before"], &totals["cost_usd"]),
        (&json!(6), &json!(9_000), &json!(0.25))
    );
    assert_eq!((&totals["avoided_usd"], &totals["unpriced"]), (&json!(0.7), &json!(2)), "net of summarizers");
    assert_eq!(
        (&totals["degraded"], &totals["refusals"], &totals["folds"]),
        (&json!(2), &json!(1), &json!(1))
    );
    assert!(totals["overhead_p50_us"].as_f64().unwrap() > 10.0);
    let names = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        (names(&page["routes"]), names(&page["models"])),
        (vec!["agents".to_owned(), "chat".to_owned()], vec!["gpt-4o".to_owned(), "other".to_owned()])
    );
    assert_eq!(page["routes"][0]["cost_usd"], Value::Null, "no known price");
    assert_eq!(page["degraded"], json!([{"name": "store_timeout", "count": 2}]));
    let series = page["series"].as_object().unwrap();
    assert!(series.values().all(|column| column.as_array().unwrap().len() == 450), "equal columns");
    let sum: u64 = series["requests"].as_array().unwrap().iter().filter_map(Value::as_u64).sum();
    assert_eq!((sum, page["step"].as_u64(), series.len()), (6, Some(2_000), 31));

    let chat = read("/api/overview?range=24h&route=chat&model=other").await;
    assert_eq!((&chat["totals"]["requests"], &chat["totals"]["cost_usd"]), (&json!(1), &Value::Null));
    assert_eq!(
        (names(&chat["routes"]), names(&chat["models"])),
        (vec!["chat".to_owned()], vec!["gpt-4o".to_owned(), "other".to_owned()])
    );
    assert_eq!(chat["series"]["t"].as_array().unwrap().len(), 1_440);
    assert_eq!(chat["process"]["records_messages"], true);
    for bad in ["range=5m", "range=", "rout=x", "route="] {
        let (status, text) = call(&router, Method::GET, &format!("/api/overview?{bad}")).await;
        assert_eq!((status, error_code(&text).as_str()), (400, "invalid_parameter"), "{bad}");
    }
}

/// What one process has counted, another one has after a restart, or at the same time.
#[tokio::test]
async fn figures_are_kept_in_the_store() {
    let store = memory_store();
    let process = |tally: Tally| {
        let tallies = move || vec![counted("chat", "gpt-4o", tally.clone())];
        test_router(admin_with(Conversations::new(store.clone(), options()), "", tallies))
    };
    let read = async |router, range| -> Value {
        let (status, text) = call(router, Method::GET, &format!("/api/overview?range={range}")).await;
        assert_eq!(status, 200, "{text}");
        serde_json::from_str(&text).unwrap()
    };
    let first = process(priced());
    first.save().await;
    assert_eq!(read(&first, "1h").await["others_changed"], 0);
    let second = process(Tally { requests: 1, unpriced: 1, ..Tally::default() });
    second.sample();
    assert_eq!(read(&second, "1h").await["totals"]["requests"], 1);
    for _ in 0..2 {
        second.share().await;
        for range in ["15m", "1h", "6h", "24h"] {
            let page = read(&second, range).await;
            let totals = &page["totals"];
            let figures =
                [&totals["requests"], &totals["tokens_before"], &totals["folds"], &totals["degraded"]];
            assert_eq!(figures, [&json!(5), &json!(9_000), &json!(1), &json!(2)], "{range}");
            assert_eq!((&totals["cost_usd"], &totals["unpriced"]), (&json!(0.25), &json!(1)), "{range}");
            let points = page["series"]["requests"].as_array().unwrap();
            assert_eq!(points.iter().filter_map(Value::as_u64).sum::<u64>(), 5, "{range}");
            assert!(page["others_changed"].as_u64().unwrap() > 0);
        }
    }
    // Nothing of its own is counted twice.
    first.share().await;
    first.share().await;
    assert_eq!(read(&first, "24h").await["totals"]["requests"], 5);
}

#[tokio::test]
async fn an_event_stream_sends_every_sample() {
    let newest = Arc::new(Mutex::new(Tally::default()));
    let shared = newest.clone();
    let tallies = move || vec![counted("chat", "gpt-4o", shared.lock().unwrap().clone())];
    let router = test_router(admin_with(Conversations::new(memory_store(), options()), "", tallies));
    let request = Request::get("/api/overview/live?range=1h").header("host", "localhost");
    let response = router.handle(request.body(Empty::new()).unwrap()).await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["content-type"]),
        (200, &"text/event-stream".parse().unwrap())
    );
    let Either::Right(mut stream) = response.into_body() else { panic!("not a stream") };
    let mut next = async || -> Value {
        let frame = stream.frame().await.unwrap().unwrap().into_data().unwrap();
        let text = String::from_utf8(frame.to_vec()).unwrap();
        let data = text.strip_prefix("event: tick\nretry: 1000\ndata: ").unwrap();
        serde_json::from_str(data.strip_suffix("\n\n").unwrap()).unwrap()
    };
    assert_eq!(next().await["totals"]["requests"], 0);
    *newest.lock().unwrap() = priced();
    router.sample();
    let update = next().await;
    assert_eq!((&update["totals"]["requests"], &update["step"]), (&json!(4), &json!(60_000)));
    assert_eq!(update["models"][0]["name"], "gpt-4o");
    assert!(update["point"]["t"].as_u64().unwrap() % 60_000 == 0, "{update}");
}

#[tokio::test]
async fn the_number_of_event_streams_is_limited() {
    let router = test_router(admin_with(Conversations::new(memory_store(), options()), "", Vec::new));
    let open = async || {
        let request = Request::get("/api/overview/live").header("host", "localhost");
        router.handle(request.body(Empty::new()).unwrap()).await
    };
    let mut streams = Vec::new();
    for _ in 0..32 {
        streams.push(open().await);
    }
    assert!(streams.iter().all(|response| response.status() == 200));
    assert_eq!(open().await.status(), 503);
    streams.pop();
    assert_eq!(open().await.status(), 200);
}
