//! A changed configuration takes effect, an invalid one does not, and no request fails.

use crate::support::client::{Client, chat, exchange};
use crate::support::tidegate::{Setup, Tidegate};
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;
use tidegate_testkit::{Answer, Gate, MockUpstream};

const RELOADED: &str = "configuration reloaded";
const INVALID: &str = "the running one stays";

async fn two_upstreams() -> (MockUpstream, MockUpstream) {
    let (a, b) = (MockUpstream::start_http1().await, MockUpstream::start_http1().await);
    a.answer(Answer::json(200, "a"));
    b.answer(Answer::json(200, "b"));
    (a, b)
}

fn pointing_at(upstream: &MockUpstream) -> String {
    format!("[upstreams.default]\nurl = \"{}\"\n", upstream.url())
}

async fn answering_upstream(tidegate: &Tidegate) -> String {
    exchange(tidegate.address, chat()).await.text()
}

/// Replaces the file by renaming a new one over it, like an editor or a deployment tool.
fn replace(path: &Path, text: &str) {
    let beside = path.with_extension("new");
    fs::write(&beside, text).unwrap();
    fs::rename(beside, path).unwrap();
}

#[tokio::test]
async fn a_file_written_in_place_is_loaded() {
    let (a, b) = two_upstreams().await;
    let mut tidegate = Setup::new(&pointing_at(&a)).start().await;
    assert_eq!(answering_upstream(&tidegate).await, "a");
    fs::write(tidegate.config_file(), pointing_at(&b)).unwrap();
    tidegate.logged_times(RELOADED, 1).await;
    assert_eq!(answering_upstream(&tidegate).await, "b");
}

#[tokio::test]
async fn every_replacement_of_the_file_is_loaded() {
    let (a, b) = two_upstreams().await;
    let mut tidegate = Setup::new(&pointing_at(&a)).start().await;
    for (count, upstream, name) in [(1, &b, "b"), (2, &a, "a"), (3, &b, "b")] {
        replace(&tidegate.config_file(), &pointing_at(upstream));
        tidegate.logged_times(RELOADED, count).await;
        assert_eq!(answering_upstream(&tidegate).await, name);
    }
}

#[tokio::test]
async fn a_symlink_swapped_by_kubernetes_is_followed() {
    let (a, b) = two_upstreams().await;
    let setup = Setup::new("");
    let mount = setup.path().join("mount");
    let publish = |version: &str, text: String| {
        fs::create_dir_all(mount.join(version)).unwrap();
        fs::write(mount.join(version).join("proxy.toml"), text).unwrap();
        symlink(version, mount.join("..data_tmp")).unwrap();
        fs::rename(mount.join("..data_tmp"), mount.join("..data")).unwrap();
    };
    publish("..1", pointing_at(&a));
    symlink("..data/proxy.toml", mount.join("proxy.toml")).unwrap();
    let mut tidegate = setup.config("mount/proxy.toml").start().await;
    assert_eq!(answering_upstream(&tidegate).await, "a");
    for (count, upstream, name) in [(1, &b, "b"), (2, &a, "a"), (3, &b, "b")] {
        publish(&format!("..{}", count + 1), pointing_at(upstream));
        fs::remove_dir_all(mount.join(format!("..{count}"))).unwrap();
        tidegate.logged_times(RELOADED, count).await;
        assert_eq!(answering_upstream(&tidegate).await, name);
    }
}

#[tokio::test]
async fn sighup_reloads_the_file() {
    let (a, _) = two_upstreams().await;
    let mut tidegate = Setup::new(&pointing_at(&a)).start().await;
    for count in 1..3 {
        tidegate.signal(Signal::HUP);
        tidegate.logged_times(RELOADED, count).await;
    }
    assert_eq!(answering_upstream(&tidegate).await, "a");
}

#[tokio::test]
async fn an_invalid_file_is_reported_and_changes_nothing() {
    let (a, b) = two_upstreams().await;
    let mut tidegate = Setup::new(&pointing_at(&a)).start().await;
    let mistakes = [
        (format!("{}\nurll = 1\n", pointing_at(&b)), "did you mean `url`"),
        ("[upstreams.default\n".to_owned(), "proxy.toml:1"),
        (format!("{}api_key_env = \"NOT_SET_ANYWHERE\"\n", pointing_at(&b)), "NOT_SET_ANYWHERE"),
        (format!("{}ca = \"no-such.pem\"\n", pointing_at(&b).replace("http:", "https:")), "no-such.pem"),
    ];
    for (count, (text, expected)) in mistakes.iter().enumerate() {
        replace(&tidegate.config_file(), text);
        tidegate.logged_times(INVALID, count + 1).await;
        assert!(tidegate.output().contains(expected), "{expected}: {}", tidegate.output());
        assert_eq!(answering_upstream(&tidegate).await, "a", "{text}");
    }
    // A valid file is loaded again.
    replace(&tidegate.config_file(), &pointing_at(&b));
    tidegate.logged_times(RELOADED, 1).await;
    assert_eq!(answering_upstream(&tidegate).await, "b");
}

#[tokio::test]
async fn a_deleted_file_changes_nothing() {
    let (a, b) = two_upstreams().await;
    let mut tidegate = Setup::new(&pointing_at(&a)).start().await;
    fs::remove_file(tidegate.config_file()).unwrap();
    assert_eq!(answering_upstream(&tidegate).await, "a");
    fs::write(tidegate.config_file(), pointing_at(&b)).unwrap();
    tidegate.logged_times(RELOADED, 1).await;
    assert_eq!(answering_upstream(&tidegate).await, "b");
}

#[tokio::test]
async fn an_unchanged_file_is_not_reread() {
    let (a, _) = two_upstreams().await;
    let tidegate = Setup::new(&pointing_at(&a)).start().await;
    assert_eq!(answering_upstream(&tidegate).await, "a");
    // There is no signal to wait for if nothing happens, so this observes for a while: before the first sample twice as long as
    // a change takes to settle, and between samples several times as long.
    let mut ticks = tokio::time::interval(Duration::from_millis(200));
    let mut reads = Vec::new();
    for _ in 0..4 {
        ticks.tick().await;
        reads.push(tidegate.system_reads());
    }
    let busy = reads[3] - reads[1];
    assert!(busy < 5, "{busy} reads in 400 ms while idle: {reads:?}");
}

#[tokio::test]
async fn flags_override_a_reloaded_file() {
    let (a, b) = two_upstreams().await;
    let mut tidegate = Setup::new("").upstream(&a.url()).start().await;
    fs::write(tidegate.config_file(), pointing_at(&b)).unwrap();
    tidegate.logged_times(RELOADED, 1).await;
    assert_eq!(answering_upstream(&tidegate).await, "a");
}

#[tokio::test]
async fn changes_that_need_a_restart_are_logged() {
    let (a, _) = two_upstreams().await;
    let mut tidegate = Setup::new(&pointing_at(&a)).start().await;
    replace(&tidegate.config_file(), &format!("{}[server]\nworkers = 3\n", pointing_at(&a)));
    tidegate.logged_message("need a restart").await;
    assert_eq!(answering_upstream(&tidegate).await, "a");
}

#[tokio::test]
async fn no_request_fails_during_reloads() {
    let (a, b) = two_upstreams().await;
    let gate = Gate::new();
    a.then(Answer::sse(["1"]).wait(&gate).event("2"));
    let mut tidegate = Setup::new(&pointing_at(&a)).start().await;
    let mut streaming = Client::connect(tidegate.address).await;
    streaming.send(chat()).await;
    let mut stream = streaming.head().await;

    let address = tidegate.address;
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let load = (0..4).map(|_| {
        let stopped = stopped.clone();
        tokio::spawn(async move {
            let mut client = Client::connect(address).await;
            let mut answered = [0, 0];
            while !*stopped.borrow() {
                client.send(chat()).await;
                let reply = client.reply().await;
                match reply.text().as_str() {
                    "a" => answered[0] += 1,
                    "b" => answered[1] += 1,
                    other => panic!("{} {other}", reply.status),
                }
            }
            answered
        })
    });
    let load: Vec<_> = load.collect();
    for (count, upstream) in [&b, &a, &b, &a, &b].into_iter().enumerate() {
        replace(&tidegate.config_file(), &pointing_at(upstream));
        tidegate.logged_times(RELOADED, count + 1).await;
    }
    stop.send_replace(true);
    for task in load {
        let [from_a, from_b] = task.await.unwrap();
        assert!(from_a > 0 && from_b > 0, "{from_a} and {from_b}: one upstream was never used");
    }
    // A stream continues under the configuration that it started with.
    gate.open();
    streaming.rest(&mut stream).await;
    assert_eq!(stream.text(), "data: 1\n\ndata: 2\n\n");
}
