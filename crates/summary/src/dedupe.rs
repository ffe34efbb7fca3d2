use std::collections::HashSet;

use crate::pinned::normal;
use crate::sentence::parts;
use crate::{Section, Summary};

/// Removes repeated sentences and entries. Small models repeat the same entry in every list, and a sentence until they are
/// stopped.
///
/// An entry in several lists stays in the first. The prose may repeat an entry.
pub(crate) fn dedupe(mut summary: Summary) -> Summary {
    let mut said = HashSet::new();
    let lines: Vec<String> = summary.summary_text.lines().map(|line| new_parts(line, &mut said)).collect();
    summary.summary_text =
        lines.iter().filter(|line| !line.is_empty()).map(String::as_str).collect::<Vec<_>>().join("\n");
    let mut listed = HashSet::new();
    for section in Section::ALL {
        summary.list_mut(section).retain(|entry| listed.insert(normal(&entry.text)));
    }
    summary
}

fn new_parts(line: &str, said: &mut HashSet<String>) -> String {
    let parts = parts(line);
    let is_new: Vec<bool> = parts.iter().map(|part| said.insert(normal(&line[part.clone()]))).collect();
    if is_new.iter().all(|&is_new| is_new) {
        return line.to_owned();
    }
    let kept = parts.into_iter().zip(is_new).filter(|(_, is_new)| *is_new);
    kept.map(|(part, _)| &line[part]).collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Entry;

    #[test]
    fn repeated_sentences_of_the_prose_are_removed() {
        let prose = "It is 3 metres deep. It is 4. It is 3 metres deep.  It is 4.\nYes. It is 4! -";
        let summary = dedupe(Summary { summary_text: prose.into(), ..Summary::default() });
        assert_eq!(summary.summary_text, "It is 3 metres deep. It is 4.\nYes.");
    }

    #[test]
    fn an_entry_stays_in_the_first_list_that_has_it() {
        let entry = |text: &str| Entry::new(text, []);
        let summary = dedupe(Summary {
            summary_text: "Use redb.".into(),
            goals: vec![entry("Ship")],
            decisions: vec![entry("Use redb.")],
            key_facts: vec![entry("use redb"), entry("Port 80")],
            artifacts: vec![entry("- ship.")],
            ..Summary::default()
        });
        assert_eq!(summary.summary_text, "Use redb.");
        assert_eq!((summary.goals.len(), summary.decisions.len(), summary.artifacts.len()), (1, 1, 0));
        assert_eq!(summary.key_facts, [entry("Port 80")]);
    }
}
