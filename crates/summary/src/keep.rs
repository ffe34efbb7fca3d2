use crate::{Section, Summary};

/// The new state, with the entries of the one before if it has none at all.
///
/// Rewriting a state may empty any list: questions get answers, and decisions are taken back. But a model that
/// lists nothing after there was something has not read it, and its prose alone would be the end of every fact.
/// The prose is the new one's: it was written last.
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
    fn prose_alone_does_not_end_what_is_known() {
        let next = Summary { summary_text: "The index moved.".into(), ..Summary::default() };
        let kept = keep(&previous(), next);
        assert_eq!(kept, Summary { summary_text: "The index moved.".into(), ..previous() });
    }

    #[test]
    fn what_a_model_takes_back_is_gone() {
        let next = Summary { open_questions: vec![Entry::new("Which database?", [])], ..Summary::default() };
        assert_eq!(keep(&previous(), next.clone()), next);
    }
}
