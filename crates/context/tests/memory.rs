//! The built-in summarizer keeps more facts than arithmetic on rare words does, and recall finds what it could not keep, in every language.
//!
//! `./tests/bench --only memory` prints the shares of more dialogues.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that reports a measurement")]

#[path = "../examples/memory/measure.rs"]
mod measure;

use measure::{Case, MEMORIES, share};
use tidegate_testkit::dialogue::languages;

/// A few dialogues differ by chance.
const DIALOGUES: u64 = 4;

/// More cannot be asked for where nearly everything fits.
const NEARLY_ALL: f64 = 0.96;

#[test]
fn the_built_in_summarizer_and_recall_keep_more_than_simpler_memories() {
    let [(_, truncation), (_, rarest), (_, built_in), (_, with_recall)] = MEMORIES;
    for language in languages() {
        let cases: Vec<Case> = (1..=DIALOGUES).map(|seed| Case::generated(language, seed)).collect();
        for size in [500, 1_500] {
            let [truncated, rare, kept] =
                [truncation, rarest, built_in].map(|memory| share(&cases, memory, size));
            let found = share(&cases[..1], with_recall, size);
            println!("{language}, {size}: {truncated:.3} {rare:.3} {kept:.3} {found:.3}");
            assert!(kept >= (1.15 * rare).min(NEARLY_ALL), "{language}, {size}: {kept} after {rare}");
            assert!(found >= 3.0 * truncated, "{language}, {size}: {found} after {truncated}");
        }
    }
}
