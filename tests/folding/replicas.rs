//! Many concurrent requests of one conversation in two processes make one summary.

use super::scene::{
    FACT, ask, good_summary, send, start, summarization, summarizer, upstream, with_budget, with_store,
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

    /// Sends the same request many times, alternating between the processes.
    fn ask_at_once(&self, questions: usize) -> JoinSet<Reply> {
        let mut asking = JoinSet::new();
        for number in 0..AT_ONCE {
            let address = self.processes[number % 2].address;
            asking.spawn(async move { ask(address, "a", &chat(questions)).await });
        }
        asking
    }
}

/// Requests within budget do not wait for the summary of another request.
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

/// No request fits without the summary, so all wait for it.
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
    assert!(bodies.iter().all(|body| *body == bodies[0]), "two requests differ");
}

/// One process forwards the other's summary byte for byte.
#[tokio::test]
async fn processes_share_summaries() {
    let scene = Scene::new(&summarization("mode = \"inline\"\n")).await;
    let [one, other] = &scene.processes;
    let (_, first) = send(one, &scene.upstream, "a", &chat(4)).await;
    let (_, second) = send(other, &scene.upstream, "a", &chat(5)).await;
    assert!(second.summary().unwrap().text.contains(FACT));
    assert!(second.body.starts_with(first.prefix()));
    assert_eq!(scene.summarizer.requests().len(), 1);
}

/// Requests that wait for another request's summary stop waiting once it has failed.
#[tokio::test]
async fn a_failed_summary_releases_all_waiting_requests() {
    // Too little for any summary, so that the built-in summarizer fails, too.
    let scene = Scene::new(&with_budget(&summarization("max_tokens = 20\n"), 1500)).await;
    scene.summarizer.answer(Answer::new(500));
    let begun = Instant::now();
    let replies = within("all are answered", scene.ask_at_once(6).join_all()).await;
    let took = begun.elapsed();
    for reply in &replies {
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert!(edited(reply, "dropped") > 0, "{:?}", reply.headers);
    }
    // Each process makes its own calls and one retry. The number depends on the timing, but not on the number of waiting requests.
    let asked = scene.summarizer.requests().len();
    assert!(asked <= 8, "{asked} calls");
    assert!(
        took < Duration::from_secs(15),
        "the last one waited {took:?}, more than half of the summarizer timeout"
    );
}
