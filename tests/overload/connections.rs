//! Limits of connections.

use super::scene::{metric, slowest_of, small, warm};
use crate::support::client::{Client, admin, exchange};
use crate::support::tidegate::Tidegate;
use std::time::Duration;
use tidegate_testkit::MockUpstream;

#[tokio::test]
async fn connections_beyond_the_limit_are_told_so_and_closed() {
    for (config, limit) in [
        ("[server]\nmax_connections = 3\n", "connections"),
        ("[server]\nmax_connections_per_address = 3\n", "address_connections"),
    ] {
        let upstream = MockUpstream::start().await;
        let mut tidegate = Tidegate::start(config, &upstream).await;
        let mut open = Vec::new();
        for _ in 0..3 {
            let mut client = Client::connect(tidegate.address).await;
            client.send(small("open")).await;
            assert_eq!(client.reply().await.status, 200);
            open.push(client);
        }
        let mut refused = Client::connect(tidegate.address).await;
        let answer = String::from_utf8(refused.until_closed().await).unwrap();
        assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("retry-after: 1"), "{answer}");
        assert!(answer.contains(r#""code":"overloaded""#), "{answer}");
        assert_eq!(tidegate.logged_message("connections refused").await["limit"], limit);
        assert_eq!(metric(&tidegate, "tidegate_overload_total", &[&format!("limit=\"{limit}\"")]).await, 1.0);
        assert_eq!(metric(&tidegate, "tidegate_connections", &[]).await, 3.0);
        assert!(admin(tidegate.admin, "/readyz").await.text().contains("overloaded"));
        // Those that are open are not affected, and the place of one that leaves is free.
        open[0].send(small("open")).await;
        assert_eq!(open[0].reply().await.status, 200);
        drop(open);
        let what = "connections are closed";
        let closed = async || metric(&tidegate, "tidegate_connections", &[]).await;
        crate::support::until(what, Duration::from_secs(10), closed, |open| *open == 0.0).await;
        assert_eq!(exchange(tidegate.address, small("later")).await.status, 200);
    }
}

#[tokio::test]
async fn many_idle_connections_cost_little_and_disturb_nobody() {
    // Both ends are in this test's limit of open files.
    const COUNT: usize = 3_000;
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let before = warm(&tidegate).await;
    let mut idle = Vec::new();
    for _ in 0..COUNT {
        idle.push(Client::connect(tidegate.address).await);
    }
    let accepted = async || metric(&tidegate, "tidegate_connections", &[]).await;
    let is_all = |open: &f64| *open >= COUNT as f64;
    crate::support::until("all are accepted", Duration::from_secs(30), accepted, is_all).await;
    slowest_of(&tidegate, 20, "meanwhile").await;
    let each = tidegate.memory().0.saturating_sub(before) / COUNT as u64;
    assert!(each < 16 * 1024, "{each} bytes for each connection");
}

#[tokio::test]
async fn silent_connections_make_room_when_places_are_short() {
    let upstream = MockUpstream::start().await;
    let config = "[server]\nmax_connections = 8\nheader_timeout = \"300ms\"\n";
    let tidegate = Tidegate::start(config, &upstream).await;
    let mut silent = Vec::new();
    for _ in 0..8 {
        silent.push(Client::connect(tidegate.address).await);
    }
    // They would be allowed to keep their place for more than a minute, were it not for those who need it.
    assert_eq!(silent[7].until_closed().await, b"");
    assert_eq!(exchange(tidegate.address, small("later")).await.status, 200);
}
