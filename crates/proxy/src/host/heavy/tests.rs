use super::*;
use crate::transport::overload::{MemoryBudget, Share};
use std::sync::mpsc;

fn charged(budget: &Arc<MemoryBudget>) -> Arc<Charge> {
    let charge = Charge::new(budget);
    assert!(charge.grow(100, Share::Small));
    Arc::new(charge)
}

#[tokio::test]
async fn work_is_done_and_a_panic_fails_its_request_alone() {
    let pool = HeavyPool::start().unwrap();
    let budget = MemoryBudget::new(1_000);
    let lane = pool.lane(b"tenant", charged(&budget));
    assert_eq!(lane.run(10, || 1 + 1).await, Ok(2));
    let crashed: Result<(), Crashed> = lane.run(10, || panic!("on purpose")).await;
    assert_eq!(crashed, Err(Crashed));
    assert_eq!(lane.run(10 << 20, || "still there").await, Ok("still there"));
}

#[tokio::test]
async fn what_takes_a_worker_too_long_to_walk_through_leaves_it() {
    let pool = HeavyPool::start().unwrap();
    let lane = pool.lane(b"tenant", charged(&MemoryBudget::new(1_000)));
    let thread = || thread::current().name().unwrap_or_default().to_owned();
    assert_eq!(lane.scan(SCANNED_AT_ONCE, thread).await, Ok(thread()));
    let elsewhere = lane.scan(SCANNED_AT_ONCE + 1, thread).await.unwrap();
    assert!(elsewhere.starts_with("heavy-"), "{elsewhere}");
}

#[tokio::test]
async fn small_work_is_done_while_large_work_keeps_every_other_thread() {
    let pool = HeavyPool::start().unwrap();
    let budget = MemoryBudget::new(1_000);
    let lane = pool.lane(b"tenant", charged(&budget));
    let cores = thread::available_parallelism().unwrap().get();
    let (release, held) = mpsc::channel::<()>();
    let held = Arc::new(Mutex::new(held));
    let large: Vec<_> = (0..cores)
        .map(|_| {
            let (lane, held) = (lane.clone(), held.clone());
            tokio::spawn(async move { lane.run(SMALL + 1, move || held.lock().unwrap().recv()).await })
        })
        .collect();
    assert_eq!(lane.run(SMALL, || "small").await, Ok("small"));
    drop(release);
    for one in large {
        assert!(one.await.unwrap().is_ok());
    }
}

#[tokio::test]
async fn what_waits_is_limited_and_stays_accounted_for_when_its_client_leaves() {
    let pool = HeavyPool::start().unwrap();
    let budget = MemoryBudget::new(1_000);
    let cores = thread::available_parallelism().unwrap().get();
    let (release, held) = mpsc::channel::<()>();
    let held = Arc::new(Mutex::new(held));
    let (started, starts) = mpsc::channel();
    let own = pool.own_lane();
    let running: Vec<_> = (0..cores)
        .map(|_| {
            let (own, held, started) = (own.clone(), held.clone(), started.clone());
            let work = move || {
                started.send(()).unwrap();
                held.lock().unwrap().recv()
            };
            tokio::spawn(async move { own.run(SMALL + 1, work).await })
        })
        .collect();
    let starts = tokio::task::spawn_blocking(move || (0..cores).for_each(|_| starts.recv().unwrap()));
    starts.await.unwrap();
    let lane = pool.lane(b"tenant", charged(&budget));
    {
        let waiting = lane.run(SMALL + 1, || ());
        tokio::pin!(waiting);
        assert!(futures_poll(waiting.as_mut()).is_pending());
        let admit = |most, is_under_way| pool.admit(NonZeroU32::new(most).unwrap(), is_under_way);
        assert_eq!((admit(1, true), admit(1, false)), (Err(Limit::Queue), Err(Limit::Queue)));
        assert_eq!((admit(2, true), admit(2, false)), (Ok(()), Ok(())));
    }
    drop(lane);
    assert_eq!(budget.used(), 100, "the queue still holds the body");
    drop(release);
    for one in running {
        assert!(one.await.unwrap().is_ok());
    }
    assert_eq!(own.run(SMALL + 1, || ()).await, Ok(()));
    while budget.used() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(pool.queued(), 0);
}

fn futures_poll<F: Future>(future: std::pin::Pin<&mut F>) -> std::task::Poll<F::Output> {
    future.poll(&mut std::task::Context::from_waker(std::task::Waker::noop()))
}
