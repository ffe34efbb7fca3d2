use std::collections::BTreeSet;

use super::cue;
use super::disown::disowned;
use super::phrase::topics;
use super::topic::{Topic, stems};
use super::value::{Measure, is_value, measure};
use crate::revoke::is_mark;
use crate::sentence::Sentence;
use crate::word::{is_stopword, stem};

/// What a sentence is about and what it says of it, roughly: enough to see that a later one replaces it.
#[derive(Clone, Debug, Default)]
pub(super) struct Claim {
    pub(super) topics: Vec<Topic>,
    /// Its words but for the values, as they were written, to tell a reader what a bare `make it 40` is about.
    pub(super) about: Vec<String>,
    /// Stems of the names and figures that it gives to them.
    pub(super) values: BTreeSet<String>,
    /// Stems of all other words that mean something.
    pub(super) loose: BTreeSet<String>,
    /// What it says is no longer so.
    pub(super) disowned: Vec<BTreeSet<String>>,
    /// All of these words.
    pub(super) all: BTreeSet<String>,
    pub(super) measure: Measure,
    /// Whether it names something besides.
    pub(super) has_names: bool,
    pub(super) is_change: bool,
    pub(super) may_change: bool,
    /// The stem of the word that follows the first topic, unless that is its value.
    pub(super) predicate: Option<String>,
    /// The values without their letters and digits: `aa-aaaa-9` of `eu-west-1`.
    shapes: BTreeSet<String>,
    /// Where the clause ends that gives the first value.
    main_end: usize,
    hesitates: bool,
    length: usize,
}

/// So many words are enough to tell what something is about.
const MAX_ABOUT: usize = 6;

/// More words than this are about something of their own.
const BARE_WORDS: usize = 10;

impl Claim {
    pub(super) fn of(sentence: &Sentence<'_>) -> Self {
        let words = &sentence.words;
        let lower: Vec<String> =
            words.iter().map(|word| word.text.to_lowercase().replace('’', "'")).collect();
        let mut claim = Self {
            topics: topics(sentence, &lower),
            disowned: disowned(sentence, &lower),
            is_change: cue::changes(sentence),
            may_change: cue::may_change(sentence),
            hesitates: cue::hesitates(sentence),
            length: words.len(),
            ..Self::default()
        };
        // Who does something is a value where something else is the matter: `Ann Lee leads the team`.
        if claim.topics.iter().any(|topic| !topic.is_name()) {
            claim.topics.retain(|topic| !topic.is_name());
        }
        for (at, word) in words.iter().enumerate() {
            let is_value = is_value(word, &lower[at]);
            if !is_value && is_stopword(&lower[at]) {
                continue;
            }
            let topic = claim.topics.iter().find(|topic| (topic.place.0..topic.place.1).contains(&at));
            let is_certain = topic.is_some_and(|topic| topic.head.is_some() && !topic.is_name());
            if (topic.is_some() || !is_value) && claim.about.len() < MAX_ABOUT {
                claim.about.push(word.text.to_owned());
            }
            if is_value && !is_certain {
                claim.shapes.insert(shape(word.text));
                match measure(word, &lower[at]) {
                    Measure::None => claim.has_names = true,
                    Measure::Date => claim.measure = Measure::Date,
                    Measure::Number if claim.measure == Measure::None => claim.measure = Measure::Number,
                    Measure::Number => {}
                }
            }
            for stem in stems(word.text).filter(|stem| !stem.is_empty()) {
                if is_value && !is_certain {
                    claim.values.insert(stem.clone());
                } else if !is_certain {
                    claim.loose.insert(stem.clone());
                }
                claim.all.insert(stem);
            }
        }
        let is_given = |at: usize| {
            is_value(&words[at], &lower[at])
                && !claim.topics.iter().any(|topic| (topic.place.0..topic.place.1).contains(&at))
        };
        let first = (0..words.len()).find(|&at| is_given(at)).unwrap_or(words.len());
        claim.main_end =
            (first..words.len()).find(|&at| words[at].ends_clause).map_or(words.len(), |at| at + 1);
        let after = claim.topics.first().map_or(words.len(), |topic| topic.place.1);
        claim.predicate = (after..words.len())
            .find(|&at| is_value(&words[at], &lower[at]) || !is_stopword(&lower[at]))
            .filter(|&at| !is_value(&words[at], &lower[at]))
            .map(|at| stem(words[at].text));
        claim
    }

    /// Whether the claim names nothing that it is about, like `make it 40`.
    pub(super) fn is_bare(&self) -> bool {
        let is_empty = |topic: &Topic| topic.head.is_none() || topic.is_name() || !self.is_main(topic);
        let names_nothing = self.topics.iter().all(is_empty);
        (self.is_change || self.may_change || self.hesitates)
            && names_nothing
            && self.disowned.is_empty()
            && self.length <= BARE_WORDS
            && (!self.values.is_empty() || !self.topics.is_empty())
    }

    /// Whether the topic comes before the value or in its clause. What follows is an afterthought.
    pub(super) fn is_main(&self, topic: &Topic) -> bool {
        topic.place.0 < self.main_end
    }

    /// Whether they speak of two things of one kind.
    pub(super) fn is_rival_of(&self, other: &Self) -> bool {
        self.topics.iter().any(|one| other.topics.iter().any(|other| one.is_rival_of(other)))
    }

    /// Whether both give the same sort of value, so that one can stand in the place of the other.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.measure == other.measure || (self.has_names && other.has_names)
    }

    /// Whether a bare claim can be about what the earlier one is about.
    pub(super) fn can_mean(&self, earlier: &Self) -> bool {
        // Too many words of its own, and it is about something else.
        let unknown = self.loose.iter().filter(|stem| !earlier.all.contains(*stem) && !is_mark(stem)).count();
        let shares = self.loose.iter().any(|stem| earlier.all.contains(stem));
        self.measure == earlier.measure
            && !earlier.all.is_empty()
            && (unknown == 0
                || (shares && unknown < 3)
                || (unknown == 1 && self.length < 7 && (self.hesitates || self.may_change)))
            && (self.measure != Measure::None || self.has_shape_of(earlier))
            && !self.all.is_subset(&earlier.all)
    }

    /// Whether one of the values is spelt like one of the other's.
    pub(super) fn has_shape_of(&self, other: &Self) -> bool {
        !self.shapes.is_disjoint(&other.shapes)
    }

    /// Whether a value is spelt like one of the other's and like few other things: an address, a version, a
    /// telephone number.
    pub(super) fn has_rare_shape_of(&self, other: &Self) -> bool {
        let is_rare = |shape: &&String| {
            shape.len() > 3 && shape.chars().collect::<BTreeSet<char>>().len() > 1 && !shape.contains(',')
        };
        let numbers =
            |claim: &Self| claim.shapes.iter().filter(|shape| shape.chars().all(|c| c == '9')).count();
        self.shapes.intersection(&other.shapes).any(|shape| is_rare(&shape))
            || (self.shapes == other.shapes && numbers(self) > 1)
    }

    /// Takes over what a bare claim turned out to be about.
    pub(super) fn inherit(&mut self, earlier: Self) {
        self.all.extend(earlier.topics.iter().flat_map(|topic| topic.words.iter().cloned()));
        self.topics = earlier.topics;
        self.about = earlier.about;
    }

    /// Whether it only names something: `We decided to use MySQL`.
    pub(super) fn is_choice(&self) -> bool {
        self.topics.iter().all(|topic| topic.head.is_none()) && self.has_names && self.loose.len() < 2
    }

    /// Whether the form of the sentence gives a value to something.
    pub(super) fn is_setting(&self) -> bool {
        self.topics.iter().any(|topic| topic.is_firm) && !self.given().is_empty()
    }

    /// What it gives: names and figures, or else whatever is not its topic.
    pub(super) fn given(&self) -> &BTreeSet<String> {
        if self.values.is_empty() { &self.loose } else { &self.values }
    }

    /// Whether every name and figure of this claim is in the other one too, and there are some.
    pub(super) fn gives_only(&self, other: &Self) -> bool {
        !self.values.is_empty() && self.values.is_subset(&other.all)
    }
}

fn shape(word: &str) -> String {
    let class = |c: char| match c {
        c if c.is_numeric() => '9',
        c if c.is_uppercase() => 'A',
        c if c.is_alphabetic() => 'a',
        c => c,
    };
    let mut shape: String = word.chars().map(class).collect();
    // Digits are counted, letters are not.
    for letter in ["aa", "AA"] {
        while shape.contains(letter) {
            shape = shape.replace(letter, &letter[..1]);
        }
    }
    shape
}

/// How much two claims have in common, whatever each says of it, as a share in percent of the smaller one.
pub(super) fn likeness(one: &Claim, other: &Claim) -> usize {
    let shared = one.all.intersection(&other.all).count();
    shared * 100 / one.all.len().min(other.all.len()).max(1)
}
