//! Sections "Algorithm" and "Defense-in-Depth Layers": shares become turns, and fewer of them until they fit.

use super::tale::{Told, ask, tale};
use crate::conformance::scene::{Scene, Sent};
use crate::support::reply::{Reply, edited, figure};

/// Safe: 18,000. Less the fixed reserve there are 7,500 for the input and the answer, so that the limit of the answer sets the budget.
const MODEL: &str = "[models.\"m\"]\nwindow = 20000\n";
const SHARED: usize = 7_500;
const SCAFFOLD: usize = 100;

/// Tells a story where so many tokens are left for it.
async fn tell(scene: &Scene, parts: &[usize], room: usize) -> (Reply, Option<Told>) {
    let answer = (SHARED - SCAFFOLD - room) as u64;
    let name = format!("{}-{room}", parts.len());
    let reply = ask(scene, &name, "m", &tale(SCAFFOLD, parts), Some(answer)).await;
    assert_eq!(figure(&reply, "x-tidegate-budget"), (SCAFFOLD + room) as u64);
    if reply.status != 200 {
        assert_eq!((reply.status, reply.error_code().as_str()), (422, "context_budget_exceeded"));
        return (reply, None);
    }
    let sent = Sent(scene.upstream.next_request().await.json());
    assert_eq!(sent.0["model"], "m");
    assert!(figure(&reply, "x-tidegate-tokens-after") <= (SCAFFOLD + room) as u64);
    (reply, Some(Told::of(&sent)))
}

/// The document's steps two and three, in its own words but for the language. None where its loop gives up.
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

/// Both ends are long, and the middle is short.
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

/// What the marker costs, by what is used with it and without.
fn marker(reply: &Reply, told: &Told, parts: &[usize]) -> usize {
    let kept: usize = told.head.iter().chain(&told.tail).map(|&number| parts[number]).sum();
    figure(reply, "x-tidegate-tokens-after") as usize - SCAFFOLD - kept
}

#[tokio::test]
async fn turns_are_reduced_in_the_documents_order() {
    let scene = Scene::start("story", MODEL).await;
    let mut outcomes = Vec::new();
    for parts in [heavy_ends(), long_end(), vec![80; 70]] {
        let total: usize = parts.iter().sum();
        let (reply, told) = tell(&scene, &parts, total - 1).await;
        let marker = marker(&reply, told.as_ref().unwrap(), &parts);
        assert!((10..60).contains(&marker), "a marker of {marker} tokens");
        for room in (1_900..total).step_by(130) {
            let Some(expected) = by_the_document(&parts, room, marker) else { continue };
            let (_, told) = tell(&scene, &parts, room).await;
            assert_eq!(told.unwrap().counts(), expected, "{room} for {} parts", parts.len());
            outcomes.push(expected);
        }
    }
    // Not always the same: the shares alone, fewer at the end, fewer on both sides.
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
    let (reply, told) = tell(&scene, &parts, fits + 60).await;
    let told = told.unwrap();
    assert_eq!((told.head.as_slice(), told.tail.as_slice()), (&[0, 1, 2][..], &[35, 36, 37, 38, 39][..]));
    let marker = marker(&reply, &told, &parts);
    let sent = scene.upstream.requests().len();
    assert!(tell(&scene, &parts, fits + marker).await.1.is_some(), "to the last token");
    let (reply, told) = tell(&scene, &parts, fits + marker - 1).await;
    assert!(told.is_none());
    assert!(reply.text().contains(&(SCAFFOLD + fits + marker).to_string()), "{}", reply.text());
    assert_eq!(scene.upstream.requests().len(), sent + 1, "nothing was sent for it");
}

/// Where a step of two would pass a floor, the floor is tried; the document's loop would have given up there.
#[tokio::test]
async fn a_step_stops_at_the_floor() {
    let scene = Scene::start("story", MODEL).await;
    let mut parts = vec![6; 60];
    parts[..3].fill(300);
    parts[52..].fill(500);
    let room = 3 * 300 + 5 * 500 + 300;
    let (reply, told) = tell(&scene, &parts, room).await;
    let told = told.unwrap();
    assert_eq!(by_the_document(&parts, room, marker(&reply, &told, &parts)), None);
    assert_eq!(told.counts(), (4, 5));
}

/// The log tells a refused window too.
#[tokio::test]
async fn a_refused_window_is_logged() {
    let mut scene = Scene::start("story", MODEL).await;
    assert!(tell(&scene, &[300; 40], 2_000).await.1.is_none());
    let line = scene.tidegate.logged_message("window budget exceeded").await;
    assert_eq!((&line["story_budget"], &line["actual_story"]), (&2_000.into(), &12_000.into()));
    let line = scene.tidegate.logged_message("head and tail by their shares").await;
    assert_eq!((&line["start_turns"], &line["end_turns"]), (&3.into(), &5.into()));
}

#[tokio::test]
async fn a_marker_counts_the_missing_messages() {
    let scene = Scene::start("story", MODEL).await;
    let parts = vec![100; 50];
    let (reply, told) = tell(&scene, &parts, 3_000).await;
    let told = told.unwrap();
    let missing = 50 - told.head.len() - told.tail.len();
    assert_eq!(edited(&reply, "dropped"), missing);
    let expected = format!(
        "[{missing} messages from the middle of this conversation are left out here to fit the context window.]"
    );
    assert_eq!(told.marker, Some(expected));
    // What fits has none.
    let (reply, told) = tell(&scene, &parts, 5_000).await;
    let told = told.unwrap();
    assert_eq!((told.counts(), told.marker), ((50, 0), None));
    assert_eq!(edited(&reply, "dropped"), 0);
}
