use super::*;
use std::net::IpAddr;
use std::num::NonZeroU32;
use tidegate_config::{Flags, Source, load};

fn settings(change: impl FnOnce(&mut Server)) -> Server {
    let mut server = load(Source::none(), &Flags::default(), &|_| None).unwrap().server;
    change(&mut server);
    server
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn small_requests_get_what_large_ones_must_leave() {
    let budget = MemoryBudget::new(1_000);
    let large = Charge::new(&budget);
    assert!(large.grow(750, Share::Large) && !large.grow(1, Share::Large));
    assert!(large.grow(125, Share::UnderWay) && !large.grow(1, Share::UnderWay));
    let small = Charge::new(&budget);
    assert!(small.grow(125, Share::Small) && !small.grow(1, Share::Small));
    assert_eq!((budget.used(), budget.is_crowded()), (1_000, true));
    large.shrink_to(100);
    assert_eq!(budget.used(), 225);
    drop((large, small));
    assert_eq!((budget.used(), budget.is_crowded()), (0, false));
}

#[test]
fn an_answer_counts_even_if_nothing_is_left() {
    let budget = MemoryBudget::new(100);
    let answer = Charge::new(&budget);
    answer.grow_regardless(500);
    assert!(!Charge::new(&budget).grow(1, Share::Small));
    drop(answer);
    assert_eq!(budget.used(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_large_request_waits_for_memory_but_not_for_ever() {
    let budget = MemoryBudget::new(1_000);
    let holder = Charge::new(&budget);
    assert!(holder.grow(700, Share::Large));
    assert!(!budget.wait_for(100, Share::Large).await);
    assert!(!budget.wait_for(2_000, Share::Large).await, "it never fits");
    let waiting = budget.clone();
    let waiting = tokio::spawn(async move { waiting.wait_for(100, Share::Large).await });
    tokio::task::yield_now().await;
    drop(holder);
    assert!(waiting.await.unwrap());
}

#[test]
fn requests_in_flight_are_limited() {
    let overload = Overload::new(&settings(|server| server.max_requests = NonZeroU32::new(2).unwrap()));
    let first = overload.enter().unwrap();
    let second = overload.enter().unwrap();
    assert_eq!(overload.enter().err(), Some(Limit::Requests));
    assert!(overload.is_crowded());
    drop(first);
    assert!(overload.enter().is_ok());
    drop(second);
    assert_eq!(overload.requests(), 0);
}

#[test]
fn the_connections_of_a_public_address_are_limited_by_default() {
    let connections = Overload::new(&settings(|server| server.max_connections = NonZeroU32::new(5_000)))
        .connections
        .clone();
    let open = |text: &str| connections.admit(address(text));
    for private in ["127.0.0.1", "::1", "10.1.2.3", "192.168.0.9", "100.64.3.4", "fd00::1", "::ffff:10.0.0.1"]
    {
        let all: Vec<_> = (0..2_001).map(|_| open(private)).collect();
        assert!(all.iter().all(Result::is_ok), "{private}");
    }
    let mut public: Vec<_> = (0..2_000).map(|_| open("203.0.113.7").unwrap()).collect();
    assert_eq!(open("203.0.113.7").err(), Some(Limit::AddressConnections));
    assert!(open("203.0.113.8").is_ok());
    public.pop();
    assert!(open("::ffff:203.0.113.7").is_ok());
    drop(public);
    assert_eq!(connections.open(), 0);
}

#[test]
fn a_limit_that_is_set_holds_for_every_address() {
    let connections = Overload::new(&settings(|server| {
        server.max_connections = NonZeroU32::new(4);
        server.max_connections_per_address = NonZeroU32::new(2);
    }))
    .connections
    .clone();
    let one = connections.admit(address("127.0.0.1")).unwrap();
    let _two = connections.admit(address("127.0.0.1")).unwrap();
    assert_eq!(connections.admit(address("127.0.0.1")).err(), Some(Limit::AddressConnections));
    // The addresses of one subscriber.
    let _three = connections.admit(address("2001:db8::1")).unwrap();
    let _four = connections.admit(address("2001:db8::2")).unwrap();
    assert!(connections.is_crowded());
    assert_eq!(connections.admit(address("198.51.100.1")).err(), Some(Limit::Connections));
    drop(one);
    assert_eq!(connections.admit(address("2001:db8::ffff")).err(), Some(Limit::AddressConnections));
    assert!(connections.admit(address("2001:db8:0:1::")).is_ok());
}
