use crate::excerpt::head;
use crate::word::has_substance;
use crate::{Entry, Section, Summary, render};

/// Drops the least valuable parts of a summary until its rendering fits. `covered` is the number of messages that it covers.
///
/// Parts go in this order, and the older of two entries first:
///
/// 1. prose beyond a few sentences, then facts that name neither a number nor a name,
/// 2. artifacts, action items, open questions,
/// 3. facts with numbers or names,
/// 4. decisions, then goals, the newest goal first, because the first goal is the task,
/// 5. the rest of the prose.
///
/// A smaller limit never keeps something that a larger one dropped. If nothing fits, the result is empty.
pub fn cap(summary: &Summary, covered: usize, fits: &dyn Fn(&str) -> bool) -> Summary {
    cap_completed(summary, 0, covered, fits)
}

/// Like [`cap()`], but the first `added` facts are dropped after everything else except goals: they rank highest of all that was said.
pub(crate) fn cap_completed(
    summary: &Summary,
    added: usize,
    covered: usize,
    fits: &dyn Fn(&str) -> bool,
) -> Summary {
    let order = dropping_order(summary, added);
    let steps = 1 + order.len() + TEXT_STEPS.len();
    let fitting = |step: usize| {
        let reduced = reduced(summary, &order, step);
        fits(&render(&reduced, covered)).then_some(reduced)
    };
    if let Some(whole) = fitting(0) {
        return whole;
    }
    // Binary search: the first step that fits is in `low + 1 ..= high`, and each step's rendering is at most as long as the one
    // before it.
    let (mut low, mut high) = (0, steps);
    let mut best = Summary::default();
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match fitting(middle) {
            Some(reduced) => (best, high) = (reduced, middle),
            None => low = middle,
        }
    }
    best
}

/// The length of the prose while entries are dropped.
const PROSE_CHARS: usize = 600;
/// The length of the prose after each of the last steps.
const TEXT_STEPS: [usize; 4] = [300, 150, 60, 0];

type Place = (Section, usize);

fn dropping_order(summary: &Summary, added: usize) -> Vec<Place> {
    let places = |section: Section| (0..summary.list(section).len()).map(move |index| (section, index));
    let solid = |&(section, index): &Place| has_substance(&summary.list(section)[index].text);
    let (added, facts): (Vec<Place>, Vec<Place>) =
        places(Section::KeyFacts).partition(|place| place.1 < added);
    let (numbered, plain): (Vec<Place>, Vec<Place>) = facts.into_iter().partition(solid);
    let mut order = plain;
    order.extend(places(Section::Artifacts));
    order.extend(places(Section::ActionItems));
    order.extend(places(Section::OpenQuestions));
    order.extend(numbered);
    order.extend(places(Section::Decisions));
    // The last of them ranks lowest.
    order.extend(added.into_iter().rev());
    order.extend(places(Section::Goals).rev());
    order
}

fn reduced(summary: &Summary, order: &[Place], step: usize) -> Summary {
    let Some(dropped) = step.checked_sub(1) else {
        return summary.clone();
    };
    let text_chars = match dropped.checked_sub(order.len()) {
        None | Some(0) => PROSE_CHARS,
        Some(further) => TEXT_STEPS.get(further - 1).copied().unwrap_or(0),
    };
    let gone = &order[..dropped.min(order.len())];
    let mut kept = Summary { summary_text: head(&summary.summary_text, text_chars), ..Summary::default() };
    for section in Section::ALL {
        let mut stays = vec![true; summary.list(section).len()];
        gone.iter().filter(|place| place.0 == section).for_each(|place| stays[place.1] = false);
        let entries = summary.list(section).iter().zip(stays);
        *kept.list_mut(section) =
            entries.filter(|(_, stays)| *stays).map(|(entry, _)| Entry::clone(entry)).collect();
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(texts: &[&str]) -> Vec<Entry> {
        texts.iter().map(|text| Entry::new(*text, [])).collect()
    }

    fn full() -> Summary {
        Summary {
            summary_text: "The work goes on. ".repeat(60),
            key_facts: entries(&["it was long ago", "the port is 8080"]),
            goals: entries(&["the task", "a side task"]),
            decisions: entries(&["first choice", "second choice"]),
            open_questions: entries(&["why?"]),
            action_items: entries(&["tidy up"]),
            artifacts: entries(&["a.rs", "b.rs"]),
        }
    }

    #[test]
    fn a_summary_that_fits_is_unchanged() {
        assert_eq!(cap(&full(), 5, &|_| true), full());
    }

    #[test]
    fn the_least_valuable_goes_first() {
        let summary = full();
        let order: Vec<_> =
            dropping_order(&summary, 0).into_iter().map(|(s, i)| summary.list(s)[i].text.as_str()).collect();
        let expected = [
            "it was long ago",
            "a.rs",
            "b.rs",
            "tidy up",
            "why?",
            "the port is 8080",
            "first choice",
            "second choice",
            "a side task",
            "the task",
        ];
        assert_eq!(order, expected);
    }

    #[test]
    fn every_limit_holds_and_a_smaller_one_keeps_less() {
        let summary = full();
        let longest = render(&summary, 5).len();
        let mut before = summary.clone();
        for limit in (0..=longest).rev().step_by(7) {
            let capped = cap(&summary, 5, &|text| text.len() <= limit);
            assert!(capped.is_empty() || render(&capped, 5).len() <= limit);
            for section in Section::ALL {
                assert!(capped.list(section).iter().all(|entry| before.list(section).contains(entry)));
            }
            assert!(capped.summary_text.len() <= before.summary_text.len());
            before = capped;
        }
        assert!(before.is_empty());
    }

    #[test]
    fn the_task_is_dropped_last() {
        let summary = Summary { summary_text: String::new(), ..full() };
        let shortest = render(&Summary { goals: entries(&["the task"]), ..Summary::default() }, 5).len();
        let capped = cap(&summary, 5, &|text| text.len() <= shortest);
        assert_eq!(capped.goals, entries(&["the task"]));
        assert!(capped.decisions.is_empty());
    }
}
