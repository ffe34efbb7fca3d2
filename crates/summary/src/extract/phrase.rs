//! What a sentence is about: the noun phrases that stand where English puts the matter and not the value.
//!
//! There is no grammar here, only positions: what stands before a verb or a colon, after `for` or `about`, or
//! after `the`. That is wrong now and then, and those who compare two sentences must bear it.

use std::collections::BTreeSet;

use super::cue;
use super::grammar::*;
use super::topic::{Topic, stems};
use super::value::is_value;
use crate::sentence::Sentence;
use crate::word::{Kind, Word, is_stopword};

/// The topics of a sentence, in their order.
pub(super) fn topics(sentence: &Sentence<'_>, lower: &[String]) -> Vec<Topic> {
    let mut finder =
        Finder { words: &sentence.words, lower, chooses: cue::chooses(sentence), found: Vec::new() };
    finder.find();
    finder.found
}

struct Finder<'s> {
    words: &'s [Word<'s>],
    lower: &'s [String],
    chooses: bool,
    found: Vec<Topic>,
}

/// A noun phrase and what stands around it.
#[derive(Clone, Copy)]
struct Phrase<'s> {
    start: usize,
    end: usize,
    /// Whether an article or the like comes before it.
    is_determined: bool,
    /// Whether it begins a clause.
    opens: bool,
    /// Whether it begins the sentence.
    is_first: bool,
    /// The word before it in its clause, or nothing.
    before: &'s str,
    /// The word after it in its clause, or nothing.
    after: &'s str,
    has_verb: bool,
    /// Whether it ends its clause.
    is_last: bool,
    introduces: bool,
}

/// Why a phrase is taken for a topic.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// `The deadline is …`
    Subject,
    /// `Deadline: …`
    Label,
    /// `… for the deadline`
    Mentioned,
    /// `May 3 is the deadline`
    Complement,
    /// `Move the deadline …`
    Set,
    /// `… before the deadline`
    Object,
    /// `deadline 3 May`
    Opening,
}

impl<'s> Finder<'s> {
    fn find(&mut self) {
        let mut at = 0;
        let mut opens = true;
        while at < self.words.len() {
            let word = self.lower[at].as_str();
            if let Some(phrase) = self.phrase_at(at, opens) {
                opens = phrase.is_last;
                at = phrase.end;
                self.take(phrase);
                continue;
            }
            opens = self.words[at].ends_clause || OPENERS.contains(word) || (opens && SETTERS.contains(word));
            at += 1;
        }
    }

    /// The noun phrase that starts here, if one can be a topic.
    fn phrase_at(&self, at: usize, opens: bool) -> Option<Phrase<'s>> {
        let word = self.lower[at].as_str();
        let is_determined = !self.words[at].ends_clause
            && (DETERMINERS.contains(word) || (opens && word == "new") || self.is_measured(at));
        let mut start = at + usize::from(is_determined);
        while is_determined && self.lower.get(start).is_some_and(|word| ADJECTIVES.contains(word.as_str())) {
            start += 1;
        }
        let before = at.checked_sub(1).filter(|&before| !self.words[before].ends_clause);
        let before = before.map_or("", |before| self.lower[before].as_str());
        // `As to the cake, …`
        let before = if before == "to" && at > 1 && self.lower[at - 2] == "as" { "as" } else { before };
        if !(is_determined || opens || SETTERS.contains(before) || TOPIC_PREPOSITIONS.contains(before)) {
            return None;
        }
        let end = self.end(start);
        let last = end.checked_sub(1).filter(|_| end > start)?;
        let is_last = self.words[last].ends_clause;
        // `The loan now runs …`
        let after = (end..self.lower.len()).find(|&at| !ADVERBS.contains(self.lower[at].as_str()));
        let verb = after.filter(|_| !is_last).map_or("", |after| self.lower[after].as_str());
        let is_first = self.words[..start].iter().all(|word| !word.ends_clause)
            && self.lower[..start].iter().all(|word| is_stopword(word));
        Some(Phrase {
            start,
            end,
            is_determined,
            opens,
            is_first,
            before,
            after: self.lower.get(end).filter(|_| !is_last).map_or("", String::as_str),
            has_verb: is_verb(verb) || self.is_contraction(last),
            is_last,
            introduces: self.words[last].introduces,
        })
    }

    /// Whether `a budget of 500` starts here.
    fn is_measured(&self, at: usize) -> bool {
        if !matches!(self.lower[at].as_str(), "a" | "an") {
            return false;
        }
        let end = self.end(at + 1);
        end > at + 1
            && self.lower.get(end).is_some_and(|word| word == "of")
            && self.words.get(end + 1).is_some_and(|word| is_value(word, &self.lower[end + 1]))
    }

    /// Where the noun phrase that starts here ends.
    fn end(&self, start: usize) -> usize {
        let mut end = start;
        while let Some(word) = self.lower.get(end) {
            let is_plain = self.words[end].kind == Kind::Plain;
            if is_verb(word) || (is_plain && is_filler(word) && !(end > start && word == "time")) {
                break;
            }
            end += 1;
            if self.words[end - 1].ends_clause || self.is_contraction(end - 1) {
                break;
            }
        }
        end
    }

    /// Whether the word is `party's` of `The party's at noon`, and not that of `the party's budget`.
    fn is_contraction(&self, at: usize) -> bool {
        let after = self.lower.get(at + 1);
        self.lower[at].ends_with("'s") && after.is_none_or(|after| is_stopword(after) || is_verb(after))
    }

    fn take(&mut self, phrase: Phrase<'s>) {
        let phrase = self.trimmed(phrase);
        let Phrase { start, end, is_determined, .. } = phrase;
        if end <= start || self.is_value_phrase(phrase) {
            return;
        }
        let Some(mut role) = self.role(phrase) else { return };
        match role {
            Role::Complement => {
                // `The venue is the boathouse` is about the venue, `Cod is the main course` is about the course.
                let subject = self.found.iter().rposition(|topic| topic.place.1 + 4 > start);
                match subject {
                    Some(subject) if self.is_determined(subject) || !is_determined => return,
                    Some(subject) => drop(self.found.remove(subject)),
                    None if !is_determined => return,
                    None => {}
                }
            }
            // `Make the raven the villain` is about the villain.
            Role::Object if self.found.last().is_some_and(|topic| topic.place.1 + 1 == start) => {
                self.found.pop();
                role = Role::Set;
            }
            Role::Subject | Role::Label | Role::Mentioned | Role::Set | Role::Object | Role::Opening => {}
        }
        let is_firm = match role {
            Role::Subject | Role::Label | Role::Complement | Role::Set => true,
            Role::Mentioned => self.chooses || self.has_value(start, end),
            Role::Object => self.chooses,
            Role::Opening => false,
        } || phrase.after == "of";
        let is_direct = match role {
            Role::Subject | Role::Label | Role::Complement | Role::Set => true,
            Role::Mentioned => phrase.before == "as",
            Role::Object | Role::Opening => false,
        };
        // `Kick-off for the party is …`
        let is_subject = matches!(phrase.after, "for" | "of") && self.goes_on(end);
        let is_certain =
            is_determined || phrase.has_verb || is_subject || matches!(role, Role::Mentioned | Role::Label);
        let topic = self.topic(start, end, is_certain);
        self.found.extend(topic.map(|topic| Topic { is_firm, is_direct, ..topic }));
    }

    fn topic(&self, start: usize, end: usize, is_certain: bool) -> Option<Topic> {
        let (mut words, mut labels, mut head) = (BTreeSet::new(), BTreeSet::new(), None);
        for at in start..end {
            let word = &self.words[at];
            if VAGUE.contains(self.lower[at].as_str()) || is_filler(&self.lower[at]) {
                continue;
            }
            // The first word of a sentence is no name by itself, but `Ann` of `Ann Lee` is.
            let is_first_name = at == start
                && word.text.starts_with(char::is_uppercase)
                && at + 1 < end
                && self.words[at + 1].kind == Kind::Name;
            let is_label = is_first_name || is_value(word, &self.lower[at]);
            for stem in stems(word.text) {
                if is_label && !word.text.contains('_') {
                    labels.insert(stem.clone());
                }
                head = Some(stem.clone());
                words.insert(stem);
            }
        }
        let head = head.filter(|_| is_certain);
        let place = (start, end);
        (!words.is_empty()).then_some(Topic { words, head, labels, is_firm: false, is_direct: false, place })
    }

    /// Why the phrase is a topic, if it is one.
    fn role(&self, phrase: Phrase<'_>) -> Option<Role> {
        let Phrase { start, end, is_determined, before, after, .. } = phrase;
        // `The band got swapped for a trio.`
        let mut said = self.lower[..start].iter().rev().take(6);
        let is_exchange = before == "for" && said.any(|word| EXCHANGES.contains(word.as_str()));
        // `… because of the band`
        let mut said = self.lower[..start].iter().rev().take(3);
        let is_reason = before == "of" && said.any(|word| word == "because");
        // `The boathouse it is.`
        let next = self.lower.get(end + 1);
        let is_inverted = matches!(after, "it" | "it'll") && next.is_some_and(|verb| is_verb(verb));
        // `Redis for the cache`: what comes first is the value, unless a verb or a colon follows the rest.
        let gives_way = !is_determined && matches!(after, "for" | "as") && !self.goes_on(end);
        // `It's the lake house.`
        let mut said = self.lower[..start].iter().rev().skip(1).take(2);
        let is_pronoun = before == "it's" || (FORMS_OF_BE.contains(before) && said.any(|word| word == "it"));
        // Who wants something is not what it is about.
        let is_person = phrase.opens && phrase.has_verb && OPINIONS.contains(after);
        if is_exchange || is_reason || is_inverted || gives_way || is_pronoun || is_person {
            return None;
        }
        let is_label = phrase.introduces || (phrase.is_last && is_determined);
        // `Use the barn` names a value, `have the wedding in the barn` a matter.
        let is_chosen =
            CHOOSERS.contains(before) && !(self.found.is_empty() && VALUE_PREPOSITIONS.contains(after));
        let is_apposition = before.is_empty() && !phrase.is_first;
        let is_object = is_determined && !VALUE_PREPOSITIONS.contains(before) && !is_chosen && !is_apposition;
        if phrase.opens && phrase.has_verb {
            Some(Role::Subject)
        } else if phrase.opens && phrase.is_first && is_label && end < self.words.len() {
            Some(Role::Label)
        } else if TOPIC_PREPOSITIONS.contains(before) {
            Some(Role::Mentioned)
        } else if FORMS_OF_BE.contains(before) {
            Some(Role::Complement)
        } else if SETTERS.contains(before) {
            Some(Role::Set)
        } else if is_object {
            Some(Role::Object)
        } else {
            // Without an article, a verb or a colon only the beginning of a sentence can be the matter.
            (phrase.opens && phrase.is_first).then_some(Role::Opening)
        }
    }

    /// Whether the phrase can only be a value: `70 people`, or `Ann Lee` where she does nothing.
    fn is_value_phrase(&self, phrase: Phrase<'_>) -> bool {
        let Phrase { start, end, .. } = phrase;
        let is_identifier = |at: usize| self.words[at].text.contains('_');
        let is_named = (start..end).all(|at| self.words[at].kind != Kind::Plain && !is_identifier(at))
            || (start + 1 < end && self.words[start + 1].kind == Kind::Name);
        let counts = self.words[start].kind == Kind::Figure;
        !phrase.is_determined && (counts || (is_named && !phrase.has_verb))
    }

    /// The phrase without what only looks like a part of it.
    ///
    /// That is a value at its end: `timeout 35s` is about the timeout. Without an article, what comes before a
    /// value may as well be a verb: `write 25 rows`. And it is a verb that nobody knows: `The band plays at
    /// eight`.
    fn trimmed(&self, phrase: Phrase<'s>) -> Phrase<'s> {
        let Phrase { start, end, .. } = phrase;
        if phrase.has_verb {
            return phrase;
        }
        // `For room 12 use key 44` is about room 12.
        let is_number = |at: usize| self.lower[at].chars().all(char::is_numeric);
        let is_numbered = matches!(phrase.before, "for" | "of" | "about" | "regarding")
            && end == start + 2
            && is_number(end - 1)
            && !is_number(start);
        let is_value = |at: &usize| is_value(&self.words[*at], &self.lower[*at]);
        let end = if is_numbered {
            end
        } else if phrase.is_determined {
            end - (start..end).rev().take_while(is_value).count()
        } else {
            (start + 1..end).find(is_value).unwrap_or(end)
        };
        let last = self.lower.get(end.saturating_sub(1)).map_or("", String::as_str);
        let is_inflected = (last.ends_with('s') && !last.ends_with("ss")) || last.ends_with("ed");
        let is_verb = (phrase.opens || phrase.before == "of")
            && end > start + 1
            && end == phrase.end
            && is_inflected
            && VALUE_PREPOSITIONS.contains(phrase.after);
        if is_verb { Phrase { end: end - 1, has_verb: true, ..phrase } } else { Phrase { end, ..phrase } }
    }

    /// Whether there is a value besides the phrase.
    fn has_value(&self, start: usize, end: usize) -> bool {
        let mut others = (0..self.words.len()).filter(|at| !(start..end).contains(at));
        others.any(|at| is_value(&self.words[at], &self.lower[at]))
    }

    fn is_determined(&self, topic: usize) -> bool {
        let before = self.lower[..self.found[topic].place.0].iter();
        let word = before.rev().find(|word| !ADJECTIVES.contains(word.as_str()));
        word.is_some_and(|word| DETERMINERS.contains(word.as_str()))
    }

    /// Whether a verb or a colon comes later, so that what was said so far is still the matter.
    fn goes_on(&self, from: usize) -> bool {
        let mut rest = from..self.words.len();
        rest.any(|at| is_verb(&self.lower[at]) || (self.words[at].ends_clause && at + 1 < self.words.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matters(text: &str) -> Vec<(String, bool)> {
        let sentence = Sentence::new(text);
        let lower: Vec<String> = sentence.words.iter().map(|word| word.text.to_lowercase()).collect();
        let topics = topics(&sentence, &lower).into_iter();
        topics.map(|topic| (topic.words.into_iter().collect::<Vec<_>>().join(" "), topic.is_firm)).collect()
    }

    #[test]
    fn a_matter_is_found_on_either_side_of_its_value() {
        for text in [
            "The main course is cod.",
            "Cod has to be the main course.",
            "I would rather have cod for the main course.",
            "Remember the main course? It became cod.",
            "Main course will be cod.",
            "main course: cod",
            "main course = cod",
            "Change the main course to cod.",
            "The main course's going to be cod.",
        ] {
            assert!(
                matters(text).iter().any(|(words, _)| words == "cours main"),
                "{text}: {:?}",
                matters(text)
            );
        }
    }

    #[test]
    fn a_mention_is_not_firm() {
        assert_eq!(matters("You can buy plates for the main course."), [("cours main".into(), false)]);
    }

    #[test]
    fn values_are_not_matters() {
        for (text, expected) in [
            ("timeout 35s", vec!["timeout"]),
            ("redis for the cache", vec!["cach"]),
            ("The venue is the boathouse.", vec!["venu"]),
            ("Let's use the boathouse.", vec![]),
            ("bump timeout to 40s", vec!["timeout"]),
            ("70 people", vec![]),
        ] {
            let found: Vec<String> = matters(text).into_iter().map(|(words, _)| words).collect();
            assert_eq!(found, expected, "{text}");
        }
    }
}
