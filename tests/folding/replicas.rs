//! Many requests of one conversation at once, in two processes: one summary.

use super::scene::{
    FACT, ask, good_summary, say, start, summarization, summarizer, upstream, with_budget, with_store,
    with_summarizer,
};
use crate::support::chat::chat;
use crate::support::reply::{Reply, edited};
use crate::support::tidegate::Tidegate;
use crate::support::{until, within};
use std::time::Duration;
use tidegate_testkit::{Answer, Gate, MockUpstream, RedisServer};
use tokio::task::JoinSet;
use tokio::time::Instant;

const AT_ONCE: usize = 50;

struct Scene {
    _redis: RedisServer,
    upstream: MockUpstream,
    summarizer: MockUpstream,
    processes: [Tidegate; 2],
}

impl Scene {
    async fn new(settings: &str) -> Scene {
        let (redis, upstream, summarizer) =
            (RedisServer::start().await, upstream().await, summarizer().await);
        let settings = with_summarizer(&with_store(settings, &redis.url()), &summarizer, "30s");
        let processes = [start(&settings, &upstream).await, start(&settings, &upstream).await];
        Scene { _redis: redis, upstream, summarizer, processes }
    }

    /// The same request many times, every second one to the other process.
    fn ask_at_once(&self, questions: usize) -> JoinSet<Reply> {
        let mut asking = JoinSet::new();
        for number in 0..AT_ONCE {
            let address = self.processes[number % 2].address;
            asking.spawn(async move { ask(address, "a", &chat(questions)).await });
        }
        asking
    }
}

/// Those that come second do not wait where they fit as they are.
#[tokio::test]
async fn concurrent_requests_at_the_trigger_make_one_summary() {
    let scene = Scene::new(&summarization("mode = \"inline\"\n")).await;
    let gate = Gate::new();
    let answer = good_summary();
    let held = Answer { steps: Vec::new(), ..answer.clone() }.wait(&gate);
    let held = answer.steps.into_iter().fold(held, Answer::step);
    scene.summarizer.answer(held);
    let asking = scene.ask_at_once(4);
    let arrived = async || scene.upstream.requests().len();
    until("all but one are sent", Duration::from_secs(30), arrived, |count| *count >= AT_ONCE - 1).await;
    gate.open();
    let replies = within("all are answered", asking.join_all()).await;
    assert!(replies.iter().all(|reply| reply.status == 200));
    assert_eq!(replies.iter().filter(|reply| edited(reply, "folded") > 0).count(), 1);
    assert_eq!(scene.summarizer.requests().len(), 1, "summarizer calls");
}

/// None fits without it, so all of them wait for the one.
#[tokio::test]
async fn concurrent_requests_over_budget_share_one_summary() {
    let scene = Scene::new(&with_budget(&summarization(""), 1200)).await;
    let answer = good_summary();
    let slow = Answer { steps: Vec::new(), ..answer.clone() }.pause(Duration::from_millis(500));
    scene.summarizer.answer(answer.steps.into_iter().fold(slow, Answer::step));
    let replies = within("all are answered", scene.ask_at_once(6).join_all()).await;
    for reply in &replies {
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert!(edited(reply, "folded") > 0 && edited(reply, "dropped") == 0, "{:?}", reply.headers);
    }
    assert_eq!(scene.summarizer.requests().len(), 1, "summarizer calls");
    let bodies: Vec<Vec<u8>> = scene.upstream.requests().into_iter().map(|request| request.body).collect();
    assert!(bodies.iter().all(|body| *body == bodies[0]), "two of them differ");
}

/// What one process folded, the other repeats byte for byte.
#[tokio::test]
async fn processes_share_summaries() {
    let scene = Scene::new(&summarization("mode = \"inline\"\n")).await;
    let [one, other] = &scene.processes;
    let (_, first) = say(one, &scene.upstream, "a", &chat(4)).await;
    let (_, second) = say(other, &scene.upstream, "a", &chat(5)).await;
    assert!(second.summary().unwrap().text.contains(FACT));
    assert!(second.body.starts_with(first.prefix()));
    assert_eq!(scene.summarizer.requests().len(), 1);
}

/// Who waits for another's summary does not wait for one that has already failed.
#[tokio::test]
async fn a_failed_summary_releases_all_waiting_requests() {
    let scene = Scene::new(&with_budget(&summarization(""), 1500)).await;
    scene.summarizer.answer(Answer::new(500));
    let begun = Instant::now();
    let replies = within("all are answered", scene.ask_at_once(6).join_all()).await;
    let took = begun.elapsed();
    for reply in &replies {
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert!(edited(reply, "dropped") > 0, "{:?}", reply.headers);
    }
    // Each process asks for itself, and once more: how often that is depends on who comes when, but not on how many wait.
    let asked = scene.summarizer.requests().len();
    assert!(asked <= 8, "{asked} calls");
    assert!(took < Duration::from_secs(15), "the last waited for {took:?}, half of what a summary may take");
}
