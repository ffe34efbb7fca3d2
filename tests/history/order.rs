//! The order of turns: one after another, by the chain and not by a clock.

use super::scene::{OWNER, Scene, answer, ask, said, texts};
use crate::support::client::{CHAT, Client, exchange, post, request};
use crate::support::tidegate::Tidegate;
use crate::support::{until, within};
use rustix::process::Signal;
use serde_json::json;
use std::time::Duration;
use tidegate_testkit::{Answer, Gate, MockUpstream, RedisServer, TcpProxy};
use tokio::task::JoinSet;

#[tokio::test]
async fn requests_at_once_run_one_after_another() {
    let scene = Scene::start(2, "").await;
    let mut tasks = JoinSet::new();
    for number in 0..8 {
        let address = scene.address(number % 2);
        tasks.spawn(async move { ask(address, &[], &[said(&format!("u{number}"))]).await.status });
    }
    assert_eq!(tasks.join_all().await, [200; 8]);
    for _ in 0..8 {
        scene.forwarded().await;
    }
    let all = scene.said(0, "u9").await;
    assert_eq!(all.len(), 17, "{all:?}");
    for turn in all[..16].chunks(2) {
        assert_eq!(turn[1], turn[0].replace('u', "a"), "{all:?}");
    }
}

#[tokio::test]
async fn a_conversation_that_stays_busy_is_refused() {
    let scene = Scene::start(2, "[conversation]\nturn_timeout = \"300ms\"\n").await;
    let gate = Gate::new();
    let choice =
        json!({ "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": "a1" } });
    scene.upstream.then(
        Answer::new(200)
            .header("content-type", "application/json")
            .wait(&gate)
            .chunk(json!({ "choices": [choice] }).to_string()),
    );
    let address = scene.address(0);
    let first = tokio::spawn(async move { ask(address, &[], &[said("u1")]).await });
    scene.forwarded().await;
    for process in [0, 1] {
        let reply = scene.say(process, "u2").await;
        assert_eq!((reply.status, reply.error_code().as_str()), (409, "conversation_busy"));
        assert!(reply.header("retry-after").is_some());
    }
    gate.open();
    assert_eq!(within("the first turn", first).await.unwrap().status, 200);
    assert_eq!(scene.said(1, "u2").await, ["u1", "a1", "u2"]);
}

/// A process whose clock is a minute ahead writes one turn; the others must not take it for the newest for a minute.
#[tokio::test]
async fn a_clock_that_runs_ahead_hides_no_turn() {
    let mut scene = Scene::start(2, "").await;
    let ahead = scene.setup("").faketime("+60s").start().await;
    scene.processes.push(ahead);
    scene.said(0, "u1").await;
    scene.said(2, "u2").await;
    scene.said(0, "u3").await;
    assert_eq!(scene.said(1, "u4").await, ["u1", "a1", "u2", "a2", "u3", "a3", "u4"]);
}

#[tokio::test]
async fn a_retry_is_there_once() {
    let scene = Scene::start(2, "").await;
    scene.said(0, "u1").await;
    for process in [0, 1, 0] {
        let reply = ask(scene.address(process), &[("idempotency-key", "k")], &[said("u2")]).await;
        assert_eq!(reply.status, 200);
        assert_eq!(scene.forwarded().await, ["u1", "a1", "u2"]);
    }
    assert_eq!(scene.said(0, "u9").await, ["u1", "a1", "u2", "a2", "u9"]);
}

/// SDKs count attempts that reached no turn, too: someone who says the same twice, and whose second request is lost on the way, must
/// not lose the first.
#[tokio::test]
async fn a_retry_takes_the_place_of_no_turn_that_was_answered() {
    let scene = Scene::start(2, "").await;
    scene.said(0, "u1").await;
    for process in [0, 1] {
        let before = scene.said(process, "yes").await;
        scene.upstream.then(Answer::error(500, "server_error", "Something went wrong."));
        assert_eq!(scene.say(process, "yes").await.status, 500);
        scene.forwarded().await;
        let reply = ask(scene.address(process), &[("x-stainless-retry-count", "1")], &[said("yes")]).await;
        assert_eq!(reply.status, 200);
        assert_eq!(scene.forwarded().await, [&before[..], &["yes".to_owned(), "yes".to_owned()]].concat());
    }
}

/// A process that is killed cannot note any more that its client has no answer.
#[tokio::test]
async fn a_turn_of_a_killed_process_is_there_once() {
    let scene = Scene::start(1, "[conversation]\nturn_timeout = \"60s\"\n").await;
    let link = TcpProxy::start(([127, 0, 0, 1], scene.redis.port()).into()).await;
    let store = format!("[store]\nurl = \"redis://{}\"\ntimeout = \"30s\"\n", link.address());
    let mut killed = scene.setup_with(&store, "").upstream(&scene.upstream.url()).start().await;
    scene.said(0, "u1").await;
    let gate = Gate::new();
    let choice =
        json!({ "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": "lost" } });
    let answer = Answer::new(200).header("content-type", "application/json").wait(&gate);
    scene.upstream.then(answer.chunk(json!({ "choices": [choice] }).to_string()));
    let mut client = Client::connect(killed.address).await;
    let body = json!({ "model": "gpt-4o", "messages": [said("u2")] }).to_string();
    client.send(post(CHAT, &OWNER, body)).await;
    scene.forwarded().await;
    // The store appends the turn, and the process does not learn of it.
    link.pause_answers();
    gate.open();
    let log = scene.redis.cli(&["--scan", "--pattern", "tg:1:*:l"]).await;
    let length = async || scene.redis.cli(&["LLEN", log.trim()]).await;
    until("the turn is in the log", Duration::from_secs(30), length, |length| length.trim() == "2").await;
    killed.signal(Signal::KILL);
    killed.ended().await;
    assert_eq!(scene.said(0, "u2").await, ["u1", "a1", "u2"]);
    assert_eq!(scene.said(0, "u2").await, ["u1", "a1", "u2", "a2", "u2"]);
}

/// A client that lost its connection says the same again, and no header tells that it is a retry.
#[tokio::test]
async fn a_turn_whose_answer_did_not_arrive_is_there_once() {
    let scene = Scene::start(1, "").await;
    let link = TcpProxy::start(([127, 0, 0, 1], scene.redis.port()).into()).await;
    let store = format!("[store]\nurl = \"redis://{}\"\ntimeout = \"10s\"\n", link.address());
    let mut lost = scene.setup_with(&store, "").upstream(&scene.upstream.url()).start().await;
    let mut expected = scene.said(0, "u1").await;
    for attempt in 0.. {
        assert!(attempt < 20, "every turn was abandoned before its answer was complete");
        let text = format!("u{}", attempt + 2);
        let gate = Gate::new();
        let message = json!({ "role": "assistant", "content": text.replacen('u', "a", 1) });
        let choice = json!({ "index": 0, "finish_reason": "stop", "message": message });
        let answer = Answer::new(200).header("content-type", "application/json").wait(&gate);
        scene.upstream.then(answer.chunk(json!({ "choices": [choice] }).to_string()));
        let mut client = Client::connect(lost.address).await;
        let body = json!({ "model": "gpt-4o", "messages": [said(&text)] }).to_string();
        client.send(post(CHAT, &OWNER, body)).await;
        scene.forwarded().await;
        // The answer is complete, but is not passed on before it is kept.
        link.pause();
        gate.open();
        client.head().await;
        drop(client);
        let outcome = lost.access_log(attempt + 1).await[attempt]["outcome"].clone();
        assert_eq!(outcome, "client_closed");
        link.resume();
        let leases = async || scene.redis.cli(&["--scan", "--pattern", "tg:1:*:r"]).await;
        until("the turn is over", Duration::from_secs(20), leases, |keys| keys.trim().is_empty()).await;
        let log = scene.redis.cli(&["--scan", "--pattern", "tg:1:*:l"]).await;
        let is_kept = scene.redis.cli(&["LLEN", log.trim()]).await.trim() == "2";
        let resent = scene.said(0, &text).await;
        let answered = [expected.remove(0), "a1".to_owned()];
        assert_eq!(resent, [&answered[..], std::slice::from_ref(&text)].concat());
        // It has the answer now, so this is another turn.
        let again = scene.said(0, &text).await;
        assert_eq!(again, [&resent[..], &[text.replacen('u', "a", 1), text]].concat());
        if is_kept {
            return;
        }
        let delete = request("DELETE", "/tidegate/v1/conversation", &OWNER, b"");
        assert_eq!(exchange(scene.address(0), delete).await.status, 204);
        expected = scene.said(0, "u1").await;
    }
}

/// What the turn before has cost is known when the next one begins, however many wait for it.
#[tokio::test]
async fn turns_that_wait_for_each_other_keep_to_the_limit() {
    let (redis, upstream) = (RedisServer::start().await, MockUpstream::start().await);
    // $2.5 for each answer.
    upstream.answer(Answer::json(
        200,
        json!({ "choices": [{ "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": "a" } }],
            "usage": { "prompt_tokens": 1_000_000, "completion_tokens": 0 } }),
    ));
    let config = format!(
        "[store]\nurl = \"{}\"\ntimeout = \"10s\"\n[conversation]\nturn_timeout = \"120s\"\n\
         [context]\nhistory = \"proxy\"\n[context.limits]\nmax_cost_usd = 4.0\n",
        redis.url()
    );
    let processes = [Tidegate::start(&config, &upstream).await, Tidegate::start(&config, &upstream).await];
    let mut tasks = JoinSet::new();
    for number in 0..8 {
        let address = processes[number % 2].address;
        tasks.spawn(async move { ask(address, &[], &[said(&format!("u{number}"))]).await.status });
    }
    let mut statuses = tasks.join_all().await;
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 422, 422, 422, 422, 422, 422]);
    assert_eq!(upstream.requests().len(), 2);
}

/// A retry that fails leaves the turn as it was.
#[tokio::test]
async fn a_failed_retry_loses_nothing() {
    let scene = Scene::start(1, "").await;
    scene.said(0, "u1").await;
    scene.upstream.then(Answer::error(500, "server_error", "Something went wrong."));
    let reply = ask(scene.address(0), &[("x-stainless-retry-count", "1")], &[said("u1")]).await;
    assert_eq!(reply.status, 500);
    scene.forwarded().await;
    assert_eq!(scene.said(0, "u2").await, ["u1", "a1", "u2"]);
}

/// The owner reads what is kept.
#[tokio::test]
async fn the_owner_reads_the_log() {
    let scene = Scene::start(2, "").await;
    scene.said(0, "u1").await;
    let read = request("GET", "/tidegate/v1/conversation", &OWNER, b"");
    let state = exchange(scene.address(1), read).await.json();
    let recent = json!({ "messages": state["recent_messages"] });
    assert_eq!(texts(&recent), ["u1", "a1"]);
    let mut client = Client::connect(scene.address(1)).await;
    client.send(post(CHAT, &OWNER, json!({ "model": "gpt-4o", "messages": [said("u2")] }).to_string())).await;
    assert_eq!(client.reply().await.status, 200);
    scene.upstream.script(answer);
}
