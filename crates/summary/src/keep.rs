use crate::{Section, Summary};

/// Returns the new summary, with the entries of the previous one if it has none at all.
///
/// A rewrite may legitimately empty a list: questions get answered, and decisions are revoked. But a model that returns no entries at
/// all has ignored the previous ones, and every fact would be lost. The prose is always the new one.
pub fn keep(previous: &Summary, next: Summary) -> Summary {
    let lists_something = Section::ALL.iter().any(|&section| !next.list(section).is_empty());
    if lists_something {
        return next;
    }
    Summary { summary_text: next.summary_text, ..previous.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Entry, MessageRef};

    fn previous() -> Summary {
        Summary {
            summary_text: "The index is in Postgres.".into(),
            decisions: vec![Entry::new("Use Postgres", [MessageRef(3)])],
            key_facts: vec![Entry::new("The port is 8080", [MessageRef(2)])],
            ..Summary::default()
        }
    }

    #[test]
    fn a_summary_without_entries_keeps_the_previous_ones() {
        let next = Summary { summary_text: "The index moved.".into(), ..Summary::default() };
        let kept = keep(&previous(), next);
        assert_eq!(kept, Summary { summary_text: "The index moved.".into(), ..previous() });
    }

    #[test]
    fn entries_that_a_model_drops_are_gone() {
        let next = Summary { open_questions: vec![Entry::new("Which database?", [])], ..Summary::default() };
        assert_eq!(keep(&previous(), next.clone()), next);
    }
}
