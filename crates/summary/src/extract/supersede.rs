//! Whether a later claim stands in the place of an earlier one.

use std::collections::BTreeSet;

use super::claim::Claim;
use super::topic::{Fit, Topic};
use super::value::Measure;
use crate::revoke::is_mark;

/// Up to this certainty one must not choose among several.
pub(super) const UNSURE: usize = 40;

/// How sure it is that the later claim replaces the earlier one, from 0 to 100.
///
/// `is_rare` tells words that hardly come up otherwise: sharing one of them means more than sharing `system`.
pub(super) fn supersedes(later: &Claim, earlier: &Claim, is_rare: &dyn Fn(&str) -> bool) -> usize {
    if says_all_of(later, earlier) {
        return 100;
    }
    if takes_back(later, earlier, is_rare) {
        return 95;
    }
    if gives_instead(later, earlier, is_rare) && !later.is_rival_of(earlier) {
        return 90;
    }
    if are_apart(later, earlier) || !later.is_like(earlier) || !differ(later, earlier) {
        return 0;
    }
    let Some(fit) = best_fit(later, earlier, is_rare) else {
        // `Call me on 555-0178 from now on` speaks of no number but gives one, and `We switch to redb` of
        // nothing at all.
        let is_alike = (later.is_change || later.may_change) && later.has_rare_shape_of(earlier);
        let is_choice = later.is_change && earlier.is_choice() && later.has_shape_of(earlier);
        return if is_alike {
            UNSURE
        } else if is_choice {
            UNSURE - 5
        } else {
            0
        };
    };
    let certainty = match fit {
        Fit::Same => 30,
        Fit::Wider => 10,
        Fit::Narrower => 5,
        Fit::Loose => 0,
    } + later.all.intersection(&earlier.all).count().min(3)
        + 2 * usize::from(later.has_shape_of(earlier));
    if later.is_change || (later.may_change && (fit >= Fit::Wider || later.is_setting())) {
        return 60 + certainty;
    }
    if fit == Fit::Same && sets_anew(later, earlier, is_rare) { 50 + certainty } else { 0 }
}

/// Whether the later claim names the matter and the value of the earlier one, and more.
fn says_all_of(later: &Claim, earlier: &Claim) -> bool {
    let topics = topic_words(earlier);
    !topics.is_empty()
        && !earlier.given().is_empty()
        && later.all.len() > earlier.all.len()
        && topics.is_subset(&later.all)
        && earlier.given().is_subset(&later.all)
}

/// Whether the later claim names the value of the earlier one and gives another in its place, about the same
/// thing or doing the same: `The Grand is full, we stay at the Astoria`.
fn gives_instead(later: &Claim, earlier: &Claim, is_rare: &dyn Fn(&str) -> bool) -> bool {
    let given = earlier.given();
    let shares =
        || earlier.all.iter().any(|stem| !given.contains(stem) && later.all.contains(stem) && is_rare(stem));
    let brings = || later.given().iter().any(|stem| !earlier.all.contains(stem));
    !given.is_empty() && given.is_subset(&later.all) && later.is_like(earlier) && shares() && brings()
}

/// Whether the later claim gives up the value of the earlier one by name.
fn takes_back(later: &Claim, earlier: &Claim, is_rare: &dyn Fn(&str) -> bool) -> bool {
    let given = earlier.given();
    let is_related = best_fit(later, earlier, is_rare).is_some() && !are_apart(later, earlier);
    let is_given_up = |stem: &String| later.disowned.iter().any(|phrase| phrase.contains(stem));
    let is_news = |stem: &String| !earlier.all.contains(stem) && !is_given_up(stem) && !is_mark(stem);
    let brings = later.all.iter().any(is_news);
    let is_alike = later.is_like(earlier) && brings;
    later.disowned.iter().any(|phrase| {
        let named = given.intersection(phrase).count();
        // `The boathouse door is broken` is not about the boathouse.
        let is_it = phrase.is_subset(&earlier.all) || given.len() > 1;
        named > 0
            && !earlier.disowned.iter().any(|before| before.is_superset(given))
            && ((named == given.len() && is_it && is_alike)
                || (named > 1 && named * 3 >= given.len() * 2 && is_alike)
                || (is_related && named * 2 >= given.len()))
    })
}

fn best_fit(later: &Claim, earlier: &Claim, is_rare: &dyn Fn(&str) -> bool) -> Option<Fit> {
    let pairs = later.topics.iter().flat_map(|one| earlier.topics.iter().map(move |other| one.fit(other)));
    let by_topic = pairs.flatten().max();
    // Another word than the head is only a hint: `the client timeout` is not about clients.
    let hints = later.has_shape_of(earlier) || (later.values.is_empty() && earlier.values.is_empty());
    let among = |topic: &Topic, other: &Claim| {
        let is_it = |stem: &&String| other.loose.contains(*stem) && is_rare(stem);
        let is_value = other.topics.iter().any(|topic| topic.head.is_some());
        let counts =
            |stem: &String| (hints && !is_value) || topic.head.as_ref().is_none_or(|head| head == stem);
        topic.labels.is_empty() && topic.words.iter().filter(is_it).any(counts)
    };
    let by_word = later.topics.iter().any(|topic| among(topic, earlier))
        || earlier.topics.iter().any(|topic| among(topic, later));
    // `Let's meet at seven instead` has no matter but what is done.
    let is_plain = |claim: &Claim| claim.topics.iter().all(|topic| topic.head.is_none());
    let by_deed = is_plain(later)
        && is_plain(earlier)
        && later.loose.iter().any(|stem| earlier.loose.contains(stem) && is_rare(stem));
    by_topic.or((by_word || by_deed).then_some(Fit::Loose))
}

/// Whether each speaks of a matter that the other does not know, or both of two things of one kind.
fn are_apart(later: &Claim, earlier: &Claim) -> bool {
    if later.is_rival_of(earlier) {
        return true;
    }
    let foreign = |one: &Claim, other: &Claim| {
        let is_unknown = |topic: &Topic| topic.words.iter().all(|stem| !other.all.contains(stem));
        one.topics.iter().filter(|topic| topic.head.is_some() && one.is_main(topic)).any(is_unknown)
    };
    foreign(later, earlier) && foreign(earlier, later)
}

/// Whether the later claim gives something that the earlier one does not.
fn differ(later: &Claim, earlier: &Claim) -> bool {
    let brings = match later.measure {
        Measure::None => later.values.union(&later.loose).any(|stem| !earlier.all.contains(stem)),
        Measure::Number | Measure::Date => later.values.iter().any(|stem| !earlier.all.contains(stem)),
    };
    let repeats = !earlier.values.is_empty() && earlier.values.is_subset(&later.values);
    brings && !repeats
}

/// Whether both give a value of one sort to one matter in the same way. A change needs no announcement then.
fn sets_anew(later: &Claim, earlier: &Claim, is_rare: &dyn Fn(&str) -> bool) -> bool {
    let is_specific = |topic: &Topic| topic.words.len() > 1 || topic.words.iter().any(|stem| is_rare(stem));
    let is_set = |topic: &&Topic| topic.is_firm && is_specific(topic);
    // A name and plain words are alike only where nothing but the value can be meant.
    let is_alike = later.measure != Measure::None || later.has_names == earlier.has_names;
    let sets = later.topics.iter().filter(is_set).any(|topic| {
        let is_same = |other: &&Topic| other.words == topic.words;
        let is_direct = |other: &Topic| topic.is_direct && other.is_direct;
        earlier.topics.iter().filter(is_same).any(|other| is_alike || is_direct(other))
    });
    // `The contract runs out on 3 May` and `The contract was signed on 2 April`.
    let says_otherwise = later.measure != Measure::None
        && later.predicate.is_some()
        && earlier.predicate.is_some()
        && later.predicate != earlier.predicate;
    sets && !says_otherwise
}

fn topic_words(claim: &Claim) -> BTreeSet<String> {
    claim.topics.iter().flat_map(|topic| topic.words.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sentence::Sentence;

    fn replaces(later: &str, earlier: &str) -> bool {
        let (later, earlier) = (Claim::of(&Sentence::new(later)), Claim::of(&Sentence::new(earlier)));
        supersedes(&later, &earlier, &|_| true) > 0
    }

    #[test]
    fn a_later_claim_about_the_same_thing_replaces() {
        let mut wrong = Vec::new();
        for (later, earlier) in [
            ("Actually, switch the database to MySQL.", "Let's use Postgres for the database."),
            ("Use Memcached instead of Redis.", "We'll go with Redis for caching."),
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
            ("Postgres is off the table; SQLite it is.", "We'll use Postgres for the index."),
            ("The deadline moved to May 12.", "The deadline is April 30."),
            ("correction: 4500 not 3000", "The budget is 3000."),
            ("My wife wants white for the fence.", "The colour of the fence will be green."),
            ("Let's meet at seven instead.", "We meet at half past five."),
            ("We're not flying to Lisbon, we take the train to Bordeaux.", "We are flying to Lisbon."),
            ("We're having the wedding in the garden.", "The wedding is in the old barn."),
            ("After the review we're switching to PostgreSQL.", "We decided to use MySQL."),
            ("Rotate the password every 90 days from now on.", "The password rotates every 30 days."),
        ] {
            if !replaces(later, earlier) {
                wrong.push(format!("{later} / {earlier}"));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn claims_about_other_things_stay() {
        let mut wrong = Vec::new();
        for (later, earlier) in [
            ("Bob's phone is 555-9999.", "Alice's phone is 555-1234."),
            ("Actually the Q2 budget is 900.", "The Q1 budget is 500."),
            ("Let's use Kafka for events.", "Let's use Postgres for the database."),
            ("Use Redis for the cache.", "Use Postgres for the index."),
            ("The production budget is 900.", "The staging budget is 500."),
            ("The production budget was raised to 900.", "The staging budget is 500."),
            ("The analytics database is ClickHouse.", "The primary database is Postgres."),
            ("Server B is 10.0.0.2.", "Server A is 10.0.0.1."),
            ("The deadline is 3 March.", "The deadline is 3 March."),
            ("Actually the boathouse door is broken.", "The venue is the boathouse."),
            ("Don't forget Bob's password.", "Bob's password is in the safe."),
            ("Buy plates for the main course.", "The main course is going to be lamb."),
            ("The main course is served at 8.", "The main course is going to be lamb."),
            ("I changed the login page.", "The login page is served by nginx."),
            ("Drop the tests.", "The test server is 10.0.0.1."),
            ("The lab opens at 9:00.", "The lab closes at 18:30."),
            ("For room 14 use key 51.", "For room 12 use key 44."),
            ("Item 15 costs 99 dollars.", "Item 12 costs 340 dollars."),
            ("The second prize is now a book.", "The first prize is a bike."),
            ("The lower half of the roof is now slate.", "The upper half of the roof is tin."),
            ("The invoice should go to my office in Tilburg.", "I prefer email for the invoice."),
            ("Don't change `billing.proto`.", "Don't change `orders.proto`."),
            ("Update the client timeout to 12 seconds.", "We support clients back to version 3.11."),
            ("Switch the formatter to black.", "Switch the linter to ruff."),
        ] {
            if replaces(later, earlier) {
                wrong.push(format!("{later} / {earlier}"));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
