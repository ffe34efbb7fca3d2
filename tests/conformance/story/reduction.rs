//! Sections "Algorithm" and "Defense-in-Depth Layers": shares become turns, which are reduced until they fit.

use super::narrative::{Window, ask, narrative};
use crate::conformance::scene::{Scene, Sent};
use crate::support::reply::{Reply, edited, figure};

/// 18,000 tokens are safe. Minus the fixed reserve, 7,500 are left for input and answer, so `max_tokens` sets the budget.
const MODEL: &str = "[models.\"m\"]\nwindow = 20000\n";
const SHARED: usize = 7_500;
const SCAFFOLD: usize = 100;

/// Sends a story with a budget of `room` tokens.
async fn send(scene: &Scene, parts: &[usize], room: usize) -> (Reply, Option<Window>) {
    let answer = (SHARED - SCAFFOLD - room) as u64;
    let name = format!("{}-{room}", parts.len());
    let reply = ask(scene, &name, "m", &narrative(SCAFFOLD, parts), Some(answer)).await;
    assert_eq!(figure(&reply, "x-tidegate-budget"), (SCAFFOLD + room) as u64);
    if reply.status != 200 {
        assert_eq!((reply.status, reply.error_code().as_str()), (422, "context_budget_exceeded"));
        return (reply, None);
    }
    let sent = Sent(scene.upstream.next_request().await.json());
    assert_eq!(sent.0["model"], "m");
    assert!(figure(&reply, "x-tidegate-tokens-after") <= (SCAFFOLD + room) as u64);
    (reply, Some(Window::of(&sent)))
}

/// The document's steps two and three in Rust. `None` if its loop gives up.
fn by_the_document(parts: &[usize], room: usize, marker: usize) -> Option<(usize, usize)> {
    let total: usize = parts.iter().sum();
    let average = total as f64 / parts.len() as f64;
    let start = ((room as f64 * 0.25 / average) as usize).min(20).min(parts.len() / 2);
    let end = ((room as f64 * 0.70 / average) as usize).min(20).min(parts.len() - start);
    let (mut start, mut end) = (start.max(3), end.max(5));
    while start >= 3 && end >= 5 {
        let kept: usize = parts[..start].iter().chain(&parts[parts.len() - end..]).sum();
        if kept + marker <= room {
            return Some((start, end));
        }
        if start > 3 && start >= end {
            start -= 2;
        } else if end > 5 {
            end -= 2;
        } else {
            break;
        }
    }
    None
}

/// Long messages at both ends and short ones in the middle.
fn heavy_ends() -> Vec<usize> {
    let mut parts = vec![6; 100];
    parts[..20].fill(100);
    parts[80..].fill(100);
    parts
}

fn long_end() -> Vec<usize> {
    let mut parts = vec![20; 60];
    parts[46..].fill(250);
    parts
}

/// The tokens of the marker.
fn marker(reply: &Reply, window: &Window, parts: &[usize]) -> usize {
    let kept: usize = window.head.iter().chain(&window.tail).map(|&number| parts[number]).sum();
    figure(reply, "x-tidegate-tokens-after") as usize - SCAFFOLD - kept
}

#[tokio::test]
async fn turns_are_reduced_in_the_documents_order() {
    let scene = Scene::start("story", MODEL).await;
    let mut outcomes = Vec::new();
    for parts in [heavy_ends(), long_end(), vec![80; 70]] {
        let total: usize = parts.iter().sum();
        let (reply, window) = send(&scene, &parts, total - 1).await;
        let marker = marker(&reply, window.as_ref().unwrap(), &parts);
        assert!((10..60).contains(&marker), "a marker of {marker} tokens");
        for room in (1_900..total).step_by(130) {
            let Some(expected) = by_the_document(&parts, room, marker) else { continue };
            let (_, window) = send(&scene, &parts, room).await;
            assert_eq!(window.unwrap().counts(), expected, "{room} for {} parts", parts.len());
            outcomes.push(expected);
        }
    }
    // The cases include the shares alone, fewer at the end, and fewer on both sides.
    for outcome in [(20, 20), (18, 20), (18, 18), (16, 18)] {
        assert!(outcomes.contains(&outcome), "{outcome:?} in {outcomes:?}");
    }
    assert!(outcomes.iter().any(|(start, end)| start < end) && outcomes.len() > 30);
}

#[tokio::test]
async fn three_and_five_turns_are_kept_or_the_request_is_refused() {
    let scene = Scene::start("story", MODEL).await;
    let parts = vec![300; 40];
    let fits = 8 * 300;
    let (reply, window) = send(&scene, &parts, fits + 60).await;
    let window = window.unwrap();
    assert_eq!((window.head.as_slice(), window.tail.as_slice()), (&[0, 1, 2][..], &[35, 36, 37, 38, 39][..]));
    let marker = marker(&reply, &window, &parts);
    let sent = scene.upstream.requests().len();
    assert!(
        send(&scene, &parts, fits + marker).await.1.is_some(),
        "a request that uses the whole budget was refused"
    );
    let (reply, window) = send(&scene, &parts, fits + marker - 1).await;
    assert!(window.is_none());
    assert!(reply.text().contains(&(SCAFFOLD + fits + marker).to_string()), "{}", reply.text());
    assert_eq!(scene.upstream.requests().len(), sent + 1, "a refused request was sent");
}

/// If a step of two would pass a floor, the floor is tried; the document's loop would give up.
#[tokio::test]
async fn a_step_stops_at_the_floor() {
    let scene = Scene::start("story", MODEL).await;
    let mut parts = vec![6; 60];
    parts[..3].fill(300);
    parts[52..].fill(500);
    let room = 3 * 300 + 5 * 500 + 300;
    let (reply, window) = send(&scene, &parts, room).await;
    let window = window.unwrap();
    assert_eq!(by_the_document(&parts, room, marker(&reply, &window, &parts)), None);
    assert_eq!(window.counts(), (4, 5));
}

#[tokio::test]
async fn a_refused_window_is_logged() {
    let mut scene = Scene::start("story", MODEL).await;
    assert!(send(&scene, &[300; 40], 2_000).await.1.is_none());
    let line = scene.tidegate.logged_message("window budget exceeded").await;
    assert_eq!((&line["story_budget"], &line["actual_story"]), (&2_000.into(), &12_000.into()));
    let line = scene.tidegate.logged_message("head and tail by their shares").await;
    assert_eq!((&line["start_turns"], &line["end_turns"]), (&3.into(), &5.into()));
}

#[tokio::test]
async fn a_marker_counts_the_missing_messages() {
    let scene = Scene::start("story", MODEL).await;
    let parts = vec![100; 50];
    let (reply, window) = send(&scene, &parts, 3_000).await;
    let window = window.unwrap();
    let missing = 50 - window.head.len() - window.tail.len();
    assert_eq!(edited(&reply, "dropped"), missing);
    let expected = format!(
        "[{missing} messages from the middle of this conversation are left out here to fit the context window.]"
    );
    assert_eq!(window.marker, Some(expected));
    // A story that fits has none.
    let (reply, window) = send(&scene, &parts, 5_000).await;
    let window = window.unwrap();
    assert_eq!((window.counts(), window.marker), ((50, 0), None));
    assert_eq!(edited(&reply, "dropped"), 0);
}
