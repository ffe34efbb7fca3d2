use std::collections::BTreeSet;

use super::cue;
use super::setting::{Setting, settings};
use crate::sentence::Sentence;
use crate::word::{Kind, is_stopword, phrases, stem};

/// What a sentence is about and what it says of it, roughly: enough to see that a later one replaces it.
#[derive(Clone, Debug, Default)]
pub(super) struct Claim {
    /// Stems of what it is about. Of `The budget for May is 500` that is `budget` and `may`.
    pub(super) subject: BTreeSet<String>,
    /// The words of the subject as they were written, to tell a reader what a bare `make it 40` is about.
    pub(super) about: Vec<String>,
    /// Those of the subject that are names or figures: two claims with different ones are about different
    /// things.
    labels: BTreeSet<String>,
    /// Those of the subject that a sentence of its form is mainly about: what stands before the verb, or else
    /// what it calls `the` or `our` something.
    topics: BTreeSet<String>,
    /// Names and figures that it gives to the subject.
    pub(super) values: BTreeSet<String>,
    /// What it says is no longer so.
    pub(super) replaced: BTreeSet<String>,
    settings: Vec<Setting>,
    is_change: bool,
    may_change: bool,
    states: bool,
    has_date: bool,
    /// Whether a number, a date or a time of day occurs.
    has_measure: bool,
    has_figure: bool,
}

impl Claim {
    pub(super) fn of(sentence: &Sentence<'_>) -> Self {
        let words: Vec<String> = sentence.words.iter().map(|word| stem(word.text)).collect();
        let lower: Vec<String> =
            sentence.words.iter().map(|word| word.text.to_lowercase().replace('’', "'")).collect();
        let verb = lower.iter().position(|word| is_listed(VERBS, word));
        // `Note: the port is 80` is about the port; what stands before the last clause mark is not the
        // subject. `Blue it is for the door` is about the door.
        let inverted =
            verb.is_some_and(|verb| verb > 0 && is_listed("it, that, this, there, which", &lower[verb - 1]));
        let clause = verb.map_or(0, |verb| {
            if inverted {
                return verb;
            }
            sentence.words[..verb].iter().rposition(|word| word.ends_clause).map_or(0, |mark| mark + 1)
        });
        let mut claim = Self {
            is_change: cue::changes(sentence),
            may_change: cue::may_change(sentence),
            states: verb.is_some_and(|verb| verb > clause),
            settings: settings(sentence, &lower),
            ..Self::default()
        };
        let mut taken_back = 0;
        let mut definite = false;
        for (index, word) in sentence.words.iter().enumerate() {
            let before = (
                index.checked_sub(1).map(|at| lower[at].as_str()),
                index.checked_sub(2).map(|at| lower[at].as_str()),
            );
            if takes_back(before, &lower[index..]) {
                taken_back = 3;
            }
            let ignored = word.kind == Kind::Plain && (is_stopword(&lower[index]) || words[index].is_empty());
            if ignored {
                taken_back = if is_listed(BOUNDARIES, &lower[index]) { 0 } else { taken_back };
                definite = is_listed("the, our, my, your, this, that, their", &lower[index]);
                continue;
            }
            let stem = words[index].clone();
            claim.has_date |= is_listed(DATES, &lower[index]);
            claim.has_measure |= word.kind == Kind::Figure || is_listed(DATES, &lower[index]);
            if taken_back > 0 {
                claim.replaced.insert(stem);
                taken_back = if word.ends_clause { 0 } else { taken_back - 1 };
                continue;
            }
            let is_label = word.kind != Kind::Plain || is_listed(DATES, &lower[index]);
            let leads = verb.is_some_and(|verb| (clause..verb).contains(&index))
                || word.text.ends_with("'s")
                || word.text.ends_with("’s");
            if is_label && !leads {
                claim.has_figure |= word.kind == Kind::Figure;
                claim.values.insert(stem);
            } else {
                if is_label {
                    claim.labels.insert(stem.clone());
                }
                let is_topic = if claim.states { leads } else { definite };
                if is_topic {
                    claim.topics.insert(stem.clone());
                }
                if claim.subject.insert(stem) {
                    claim.about.push(word.text.to_owned());
                }
            }
            definite &= !word.ends_clause;
        }
        claim
    }

    /// Whether the claim names nothing that it is about, like `make it 40`.
    pub(super) fn is_bare(&self) -> bool {
        self.is_change && self.subject.is_empty() && self.replaced.is_empty() && !self.values.is_empty()
    }

    /// Whether every name and figure of this claim is in the other one too, and there are some.
    pub(super) fn gives_only(&self, other: &Self) -> bool {
        let mut given = self.values.union(&self.labels).peekable();
        given.peek().is_some() && given.all(|stem| other.values.contains(stem) || other.labels.contains(stem))
    }

    /// Whether both give the same sort of value, so that one can stand in the place of the other.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.has_date == other.has_date
            && self.has_figure == other.has_figure
            && self.values.is_empty() == other.values.is_empty()
    }

    /// Whether this later claim takes back the earlier one by name.
    pub(super) fn takes_back(&self, earlier: &Self) -> bool {
        let named = |stem: &String| earlier.values.contains(stem) || earlier.subject.contains(stem);
        let said_again = self.replaced.iter().all(|stem| earlier.replaced.contains(stem));
        let is_value = self.replaced.iter().any(|stem| earlier.values.contains(stem));
        let is_most_of_it = self.replaced.len() * 2 > earlier.subject.len() + earlier.values.len();
        let is_related = self.subject.iter().any(|stem| earlier.subject.contains(stem));
        !self.replaced.is_empty()
            && !said_again
            && self.replaced.iter().all(named)
            && (is_value || is_most_of_it || is_related)
    }

    /// How much the two are about the same thing, from 0 to 100, if this later one can replace the earlier
    /// one at all.
    ///
    /// `is_rare` tells words that hardly come up otherwise: sharing one of them means more than sharing
    /// `system`.
    pub(super) fn overlap(&self, earlier: &Self, is_rare: &dyn Fn(&str) -> bool) -> usize {
        let shared = self.subject.intersection(&earlier.subject).count();
        let smaller = self.subject.len().min(earlier.subject.len());
        let larger = self.subject.len().max(earlier.subject.len());
        let foreign = |one: &Self, other: &Self| {
            one.labels.iter().any(|label| !other.subject.contains(label) && !other.values.contains(label))
        };
        let other_thing = foreign(self, earlier) && foreign(earlier, self);
        let says_more =
            earlier.values.is_empty() || earlier.values.iter().any(|value| !self.values.contains(value));
        // `The boathouse door is broken` says nothing about `The venue is the boathouse`.
        let on_topic =
            earlier.topics.is_empty() || earlier.topics.iter().any(|stem| self.subject.contains(stem));
        if !other_thing && self.sets_anew(earlier, is_rare) {
            return 90;
        }
        if smaller == 0 || other_thing || !says_more || !on_topic {
            return 0;
        }
        let needed =
            if self.subject.intersection(&earlier.subject).any(|stem| is_rare(stem)) { 3 } else { 2 };
        let one_topic = self.topics.intersection(&earlier.topics).any(|stem| is_rare(stem));
        // A change that brings nothing new, like `I changed the login page`, replaces nothing.
        let brings =
            !self.values.is_empty() || self.subject.iter().any(|stem| !earlier.subject.contains(stem));
        let replaces = self.is_change && brings;
        let may_replace = self.may_change && self.is_like(earlier);
        if (replaces || may_replace) && (one_topic || shared * needed >= smaller) {
            return 50 + shared * 50 / larger;
        }
        let contained =
            shared == smaller && shared * 2 >= larger && (shared == larger || self.is_like(earlier));
        if self.states && contained && !self.values.is_empty() { 50 + shared * 50 / larger } else { 0 }
    }

    /// Whether both give a value of one sort to one matter. A change needs no announcement then.
    fn sets_anew(&self, earlier: &Self, is_rare: &dyn Fn(&str) -> bool) -> bool {
        let is_specific =
            |matter: &BTreeSet<String>| matter.len() > 1 || matter.iter().any(|stem| is_rare(stem));
        let repeats = |stem: &String| earlier.subject.contains(stem) || earlier.values.contains(stem);
        let says_something_else = !self.subject.iter().chain(&self.values).all(repeats);
        says_something_else
            && self.has_measure == earlier.has_measure
            && self
                .settings
                .iter()
                .filter(|later| later.is_firm && is_specific(&later.matter))
                .any(|later| earlier.settings.iter().any(|earlier| earlier.matter == later.matter))
    }
}

/// How much two claims have in common, whatever each says of it, as a share in percent of the smaller one.
pub(super) fn likeness(one: &Claim, other: &Claim) -> usize {
    let words = |claim: &Claim| claim.subject.union(&claim.values).cloned().collect::<BTreeSet<String>>();
    let (one, other) = (words(one), words(other));
    one.intersection(&other).count() * 100 / one.len().min(other.len()).max(1)
}

fn is_listed(list: &str, lower: &str) -> bool {
    phrases(list).any(|word| word == lower)
}

fn takes_back(before: (Option<&str>, Option<&str>), rest: &[String]) -> bool {
    match before {
        (Some("of"), Some("instead"))
        | (Some("than"), Some("rather"))
        | (Some("longer" | "more"), Some("no")) => true,
        (Some("forget" | "drop"), Some("don't" | "not" | "never")) => false,
        (
            Some(
                "replace" | "replacing" | "replaces" | "drop" | "ditch" | "scrap" | "forget" | "abandon"
                | "not",
            ),
            _,
        ) => true,
        (
            Some("about" | "use" | "using" | "with"),
            Some("forget" | "not" | "stop" | "away" | "out" | "don't"),
        ) => true,
        (Some("from"), _) => rest.iter().take(6).any(|word| word == "to"),
        _ => false,
    }
}

/// What ends the naming of the thing that is taken back.
const BOUNDARIES: &str = "\
    for, to, with, and, but, because, by, as, since, we, i, it, is, so, in, on, at";

/// The verbs that tie a subject to a value.
const VERBS: &str = "\
    is, are, was, were, be, becomes, equals, costs, means, stands, runs, lives, uses, gets, has, starts, \
    ends, goes, moves, moved, will, should, must, it's, that's, =, →, ->";

const DATES: &str = "\
    january, february, march, april, may, june, july, august, september, october, november, december, \
    monday, tuesday, wednesday, thursday, friday, saturday, sunday, tomorrow, tonight, noon, midnight";

#[cfg(test)]
mod tests {
    use super::*;

    fn replaces(later: &str, earlier: &str) -> bool {
        let (later, earlier) = (Claim::of(&Sentence::new(later)), Claim::of(&Sentence::new(earlier)));
        later.takes_back(&earlier) || later.overlap(&earlier, &|_| false) > 0
    }

    #[test]
    fn a_later_claim_about_the_same_thing_replaces() {
        for (later, earlier) in [
            ("Actually, switch the database to MySQL.", "Let's use Postgres for the database."),
            ("Use Memcached instead of Redis.", "We'll go with Redis for caching."),
            ("The deadline is 10 March.", "The deadline is 3 March."),
            ("We moved the launch to Friday.", "The launch will be on Monday."),
            ("Change the indentation to spaces.", "Let's use tabs for indentation."),
            ("The timeout should be 45 seconds, not 30.", "Set the timeout to 30 seconds."),
            ("The budget for May is now 700.", "The budget for May is 500."),
            ("Then switch the index to redb.", "Let's use Postgres for the index."),
            ("I would rather have cod for the main course.", "The main course is going to be lamb."),
            (
                "Bad news, 100 rows has to be the page size, 25 rows fell through.",
                "Write 25 rows into the plan for the page size.",
            ),
            ("I was wrong on the colour, it's blue.", "Red it is for the colour."),
        ] {
            assert!(replaces(later, earlier), "{later} / {earlier}");
        }
    }

    #[test]
    fn claims_about_other_things_stay() {
        for (later, earlier) in [
            ("Bob's phone is 555-9999.", "Alice's phone is 555-1234."),
            ("Actually the Q2 budget is 900.", "The Q1 budget is 500."),
            ("Let's use Kafka for events.", "Let's use Postgres for the database."),
            ("The analytics database is ClickHouse.", "The primary database is Postgres."),
            ("Server B is 10.0.0.2.", "Server A is 10.0.0.1."),
            ("The deadline is 3 March.", "The deadline is 3 March."),
            ("Actually the boathouse door is broken.", "The venue is the boathouse."),
            ("Don't forget Bob's password.", "Bob's password is in the safe."),
            ("Buy plates for the main course.", "The main course is going to be lamb."),
            ("The main course is served at 8.", "The main course is going to be lamb."),
            ("I changed the login page.", "The login page is served by nginx."),
            ("Drop the tests.", "The test server is 10.0.0.1."),
        ] {
            assert!(!replaces(later, earlier), "{later} / {earlier}");
        }
    }
}
