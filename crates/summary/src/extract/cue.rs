//! The words by which English tells what a sentence is for.
//!
//! Phrases are in lower case and match whole words. They are hints: a sentence without any of them can still
//! be kept as a fact.

use super::claim::Claim;
use crate::sentence::Sentence;
use crate::word::Kind;

/// Whether the sentence settles something.
pub(super) fn settles(sentence: &Sentence<'_>, claim: &Claim, from_user: bool) -> bool {
    if sentence.is_question() || sentence.says(HEDGES) {
        return false;
    }
    let rule = from_user && (sentence.says(RULES) || sentence.starts_with(ORDERS));
    sentence.says(DECISIONS) || rule || (from_user && claim.is_change && gives_something(claim))
}

/// Whether the sentence takes back or replaces something said before.
pub(super) fn changes(sentence: &Sentence<'_>) -> bool {
    sentence.says(CHANGES) && !sentence.starts_with("don't, do not, please don't, please do not, never, only")
}

/// Whether the sentence may replace something said before, if it is about the same thing and gives the same
/// sort of value.
pub(super) fn may_change(sentence: &Sentence<'_>) -> bool {
    sentence
        .says("now, again, earlier, previous, previously, before, sorry, wrong, mistake, new, other, better")
}

/// Whether the sentence sets out to correct what was just said.
pub(super) fn hesitates(sentence: &Sentence<'_>) -> bool {
    let is_short = sentence.words.len() < 6;
    !sentence.starts_with("never mind")
        && (sentence.starts_with("no, nope, nah, wait, sorry, rather, better")
            || (is_short && sentence.starts_with("hm, hmm, oh, or, well, ah"))
            || sentence
                .says("typo, i meant, i mean, let's say, should be, should read, is better, on reflection"))
}

/// Whether the sentence speaks of what somebody wants or takes.
pub(super) fn chooses(sentence: &Sentence<'_>) -> bool {
    sentence.says(
        "want, wants, prefer, prefers, rather, take, takes, took, pick, picked, choose, chose, happy, vote, voted, go, going, \
         use, using, put, treat, consider, settle, settled, decided, plan, make, keep, have, having, like",
    )
}

/// Whether the sentence asks for or promises something that is still to be done.
pub(super) fn is_pending(sentence: &Sentence<'_>) -> bool {
    !sentence.is_question() && sentence.says(PENDING)
}

/// Whether an assistant announces its next step.
pub(super) fn announces(sentence: &Sentence<'_>) -> bool {
    !sentence.is_question() && sentence.says(PROMISES)
}

/// Whether a user asks for something now.
pub(super) fn requests(sentence: &Sentence<'_>) -> bool {
    sentence.starts_with(REQUESTS) || sentence.says("please")
}

/// Whether a question is an order in disguise.
pub(super) fn asks_politely(sentence: &Sentence<'_>) -> bool {
    sentence.starts_with("could, can, may, might")
        || sentence.says("could you, can you, would you, may i, might i, can we, could we")
}

/// Whether a user says what it is all for.
pub(super) fn aims(sentence: &Sentence<'_>) -> bool {
    !sentence.is_question() && sentence.says(AIMS)
}

/// Whether the sentence says that something is not known or decided yet.
pub(super) fn leaves_open(sentence: &Sentence<'_>) -> bool {
    sentence.says(OPEN)
}

/// Whether the sentence only keeps the conversation going.
pub(super) fn is_chatter(sentence: &Sentence<'_>) -> bool {
    let words = sentence.words.len();
    let names_nothing = sentence.count(Kind::Plain) == words;
    words < 2 && names_nothing
        || (words < 12 && names_nothing && sentence.starts_with(CHATTER))
        || sentence.says(SMALL_TALK)
}

/// Whether there is something that a change can be about or lead to: `I switched it off and on again` has
/// neither.
fn gives_something(claim: &Claim) -> bool {
    !claim.values.is_empty()
        || !claim.disowned.is_empty()
        || claim.topics.iter().any(|topic| topic.head.is_some())
}

const DECISIONS: &str = "\
    let's use, lets use, let's go with, let's go for, lets go with, let's stick, let's keep, let's make, let's have, let's call, \
    let's do, let's switch, let's pick, let us, we'll use, we will use, we'll go, we will go, i'll take, \
    we'll take, decided, decision, decide on, we agreed, agreed to, agreed on, agree on, go with, going \
    with, went with, settle on, settled on, settle for, settled, stick with, sticking with, stick to, opt \
    for, opted for, opting for, chose, chosen, we choose, i choose, picked, from now on, going forward, \
    final answer, instead of, rather than, switch to, switched to, switching to, change it to, change that \
    to, changed it to, make it, make that, it's settled, approved, signed off, we're using, we are using, \
    ruled out, rejected, conclusion";

const RULES: &str = "\
    must, must not, mustn't, don't want, do not want, never, always, should be, should not, shouldn't, has to be, \
    have to be, needs to be, need to be, only use, no more than, at most, at least, make sure, prefer, i'd \
    rather, we'd rather, avoid, not allowed, required, forbidden, will be, is to be";

/// How a user tells what to do once and for all.
const ORDERS: &str = "\
    don't, do not, please don't, please do not, use, keep, set, call it, name it, stick, go, leave, limit, drop, remove, replace, switch";

const CHANGES: &str = "\
    actually, instead, instead of, rather than, change, changed, changes, changing, switch, switched, \
    switching, move to, moved, moving to, replace, replaced, replacing, no longer, not anymore, any more, \
    anymore, scratch that, scratch, on second thought, second thoughts, correction, i was wrong, we were \
    wrong, update, updated, revised, revise, revert, reverted, reconsidered, changed my mind, change of \
    plan, change of plans, change of heart, forget, scrap, ditch, drop, dropped, abandon, abandoned, bump, \
    bumped, raise, raised, lower, lowered, increase, increased, reduce, reduced, cut to, postponed, \
    postpone, pushed, push, brought forward, delayed, after all, in the end, turns out, overruled, \
    overrule, rename, renamed, new plan, but now, now it's, is now, are now, should now, will now, make \
    that, make it, take back, took back, no more, swap, swapped, swapping, out with, rethink, rethought, not going to be, won't be, \
    supersedes, extended, extension, move, cut, slip, slips, slipped, takes over, took over, off the table, \
    shift, shifted, shifting, rescheduled, amended, amend, overridden, out of the question, from now on, from \
    here on, henceforth, mistyped, misspoke, misread, meant, typo, in place of, cancel, cancelled, topped up, goes up, \
    went up, goes down, went down, on reflection, fell through, nah, nope, ->, →, replaces, succeeds, withdrawn, \
    corrected, is out, are out, wrong, mistaken, migrate, migrated, migrating, convert, converted, upgrade, \
    upgraded, downgrade, downgraded, delay, reschedule, extend, shorten, shortened, doubled, halved, \
    reassigned, relocate, relocated, retarget, redo";

const HEDGES: &str = "\
    could use, might use, maybe we, perhaps, what if, how about, we could, you could, should we, shall we, \
    i suggest, one option, another option, options are, haven't decided, not decided, undecided, yet to \
    decide, before we decide, let me know, if you want, if you like, would you like, to be decided";

const PENDING: &str = "\
    todo, to-do, fixme, next step, next steps, remember to, don't forget, do not forget, follow up, \
    follow-up, action item, still need, still needs, still have to, still has to, still missing, left to \
    do, remains to, needs to be done, i owe, remind me, later we, after that we, once that is done, \
    waiting for, waiting on, blocked on, blocked by, has to send, will send, will call, will deliver, get \
    back to";

const PROMISES: &str = "\
    i'll, i will, i am going to, i'm going to, next i, my next step, then i";

const REQUESTS: &str = "\
    please, can you, could you, would you, add, fix, write, create, implement, update, run, check, send";

const AIMS: &str = "\
    the goal, our goal, my goal, the aim, our aim, my aim, objective, purpose, i want to, i want you, we \
    want to, i'd like to, we'd like to, i would like, help me, i need to, i need you, your task, the task, \
    new task, trying to, i'm building, we're building, i am building, we are building, i'm writing, i'm \
    planning, we're planning, i am planning, the plan is to";

const OPEN: &str = "\
    open question, unclear, tbd, to be decided, to be determined, to be confirmed, tbc, undecided, not \
    sure yet, not decided, haven't decided, don't know yet, still don't know, do not know yet, need to \
    find out, remains open, yet to decide, no idea yet, pending confirmation, needs clarification, wonder \
    whether, wonder if";

const CHATTER: &str = "\
    hi, hello, hey, thanks, thank you, great, perfect, ok, okay, sure, yes, no, yep, nope, cool, nice, \
    awesome, sounds good, looks good, got it, understood, alright, of course, certainly, absolutely, \
    you're welcome, no problem, good morning, good afternoon, good evening, i see, makes sense, right, \
    good point, fair enough, excellent, wonderful, here is, here's, here are, one moment, let me, sorry, \
    continue, go on, carry on, go ahead, well done, good job, never mind";

const SMALL_TALK: &str = "\
    let me know if, feel free to, happy to help, hope this helps, hope that helps, anything else, how are \
    you, have a nice, have a great, as you can see, is there anything";

#[cfg(test)]
mod tests {
    use super::*;

    fn settles(text: &str, from_user: bool) -> bool {
        let sentence = Sentence::new(text);
        super::settles(&sentence, &Claim::of(&sentence), from_user)
    }

    #[test]
    fn decisions_are_told_from_proposals() {
        for text in [
            "Let's use Kafka.",
            "We agreed on four weeks.",
            "Never push to main.",
            "Use tabs.",
            "It should be blue.",
        ] {
            assert!(settles(text, true), "{text}");
        }
        for text in
            ["Should we use Kafka?", "Maybe we go with Kafka.", "We could use Kafka.", "The sky is blue."]
        {
            assert!(!settles(text, true), "{text}");
        }
    }

    #[test]
    fn rules_are_for_users_to_make() {
        assert!(!settles("It should be ready now.", false));
        assert!(settles("I went with redb rather than sled.", false));
    }

    #[test]
    fn chatter_is_known() {
        assert!(is_chatter(&Sentence::new("Great, thanks a lot!")));
        assert!(!is_chatter(&Sentence::new("The invoice is due on 3 May.")));
    }
}
