use serde::{Deserialize, Serialize};

/// The maximum number of entries in a list, after parsing or extracting.
pub const MAX_ENTRIES: usize = 1_000;
/// The maximum number of characters of an entry, after parsing or extracting.
pub const MAX_ENTRY_CHARS: usize = 400;
/// The maximum number of characters of the prose, after parsing or extracting.
pub const MAX_TEXT_CHARS: usize = 16_000;

/// What is known from the folded messages.
///
/// Lists are in chronological order, oldest first. [`cap`](crate::cap()) relies on it, and the rendering says that the later of two
/// conflicting entries holds.
///
/// This is also the stored form. Unknown members are ignored and missing ones are empty, so two versions of the proxy can share a
/// store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub summary_text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub key_facts: Vec<Entry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub goals: Vec<Entry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Entry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub open_questions: Vec<Entry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub action_items: Vec<Entry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Entry>,
}

impl Summary {
    pub fn is_empty(&self) -> bool {
        self.summary_text.trim().is_empty()
            && Section::ALL.iter().all(|&section| self.list(section).is_empty())
    }

    pub fn list(&self, section: Section) -> &[Entry] {
        match section {
            Section::Goals => &self.goals,
            Section::Decisions => &self.decisions,
            Section::KeyFacts => &self.key_facts,
            Section::OpenQuestions => &self.open_questions,
            Section::ActionItems => &self.action_items,
            Section::Artifacts => &self.artifacts,
        }
    }

    pub fn list_mut(&mut self, section: Section) -> &mut Vec<Entry> {
        match section {
            Section::Goals => &mut self.goals,
            Section::Decisions => &mut self.decisions,
            Section::KeyFacts => &mut self.key_facts,
            Section::OpenQuestions => &mut self.open_questions,
            Section::ActionItems => &mut self.action_items,
            Section::Artifacts => &mut self.artifacts,
        }
    }

    /// Returns the messages that facts, decisions and open questions rest on, sorted. These must not be pruned.
    pub fn anchors(&self) -> Vec<MessageRef> {
        let entries = self.key_facts.iter().chain(&self.decisions).chain(&self.open_questions);
        let mut anchors: Vec<_> = entries.flat_map(|entry| entry.rests_on.iter().copied()).collect();
        anchors.sort_unstable();
        anchors.dedup();
        anchors
    }
}

/// One piece of information, and the messages that it rests on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Entry {
    pub text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rests_on: Vec<MessageRef>,
}

impl Entry {
    pub fn new(text: impl Into<String>, rests_on: impl Into<Vec<MessageRef>>) -> Self {
        Self { text: text.into(), rests_on: rests_on.into() }
    }
}

/// A message number, which the caller assigns. It must be unique within a conversation, across folds, because a new summary keeps the
/// references of the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MessageRef(pub u32);

/// The lists of a summary, in the order in which they are rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    Goals,
    Decisions,
    KeyFacts,
    OpenQuestions,
    ActionItems,
    Artifacts,
}

impl Section {
    pub const ALL: [Self; 6] = [
        Self::Goals,
        Self::Decisions,
        Self::KeyFacts,
        Self::OpenQuestions,
        Self::ActionItems,
        Self::Artifacts,
    ];

    /// The list's name in the stored form, in the schema and in answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Goals => "goals",
            Self::Decisions => "decisions",
            Self::KeyFacts => "key_facts",
            Self::OpenQuestions => "open_questions",
            Self::ActionItems => "action_items",
            Self::Artifacts => "artifacts",
        }
    }

    pub fn heading(self) -> &'static str {
        match self {
            Self::Goals => "Goals",
            Self::Decisions => "Decisions",
            Self::KeyFacts => "Key facts",
            Self::OpenQuestions => "Open questions",
            Self::ActionItems => "Action items",
            Self::Artifacts => "Artifacts",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_form_omits_empty_members() {
        let summary = Summary { goals: vec![Entry::new("Ship it", [MessageRef(3)])], ..Summary::default() };
        let stored = serde_json::to_string(&summary).unwrap();
        assert_eq!(stored, r#"{"goals":[{"text":"Ship it","rests_on":[3]}]}"#);
        assert_eq!(serde_json::from_str::<Summary>(&stored).unwrap(), summary);
    }

    #[test]
    fn unknown_members_are_ignored() {
        let stored = r#"{"mood":"good","decisions":[{"text":"Use redb","weight":3}]}"#;
        let summary: Summary = serde_json::from_str(stored).unwrap();
        assert_eq!(summary.decisions, [Entry::new("Use redb", [])]);
    }

    #[test]
    fn anchors_are_sorted_and_come_from_three_lists() {
        let summary = Summary {
            key_facts: vec![Entry::new("a", [MessageRef(9), MessageRef(2)])],
            decisions: vec![Entry::new("b", [MessageRef(2)])],
            open_questions: vec![Entry::new("c", [MessageRef(5)])],
            artifacts: vec![Entry::new("d", [MessageRef(7)])],
            ..Summary::default()
        };
        assert_eq!(summary.anchors(), [MessageRef(2), MessageRef(5), MessageRef(9)]);
    }

    #[test]
    fn a_summary_of_blanks_is_empty() {
        assert!(Summary { summary_text: " \n".into(), ..Summary::default() }.is_empty());
        assert!(!Summary { artifacts: vec![Entry::new("a", [])], ..Summary::default() }.is_empty());
    }
}
