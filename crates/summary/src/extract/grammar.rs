//! The small words that show what a word does in its sentence.

use crate::word::{is_stopword, word_list};

/// Whether a word ties a subject to what is said of it.
pub(super) fn is_verb(lower: &str) -> bool {
    FORMS_OF_BE.contains(lower) || VERBS.contains(lower) || OPINIONS.contains(lower)
}

/// Whether a word says nothing inside a noun phrase. The second prize is not the first one.
pub(super) fn is_filler(lower: &str) -> bool {
    is_stopword(lower) && lower != "second"
}

word_list! {
    /// What can stand between a subject and its verb.
    ADVERBS = "now, only, also, still, just, then, really, actually, probably"
}
word_list! {
    /// What takes its value after `for`.
    EXCHANGES = "swap, swapped, exchanged, traded, changed"
}
word_list! {
    DETERMINERS = "the, our, my, your, their, his, her, its"
}
word_list! {
    /// What may stand between an article and the matter without telling which one it is.
    ADJECTIVES = "new, same, own, final, best, other"
}
word_list! {
    TOPIC_PREPOSITIONS = "for, about, on, as, of, regarding, concerning"
}
word_list! {
    VALUE_PREPOSITIONS = "to, with, in, at, off, from, by, into, than, like, using, via, until, over"
}

word_list! {
    /// Verbs whose object is what gets a value.
    SETTERS = "\
        set, make, change, changed, switch, switched, switching, move, moved, moving, bump, bumped, raise, raised, lower, \
        lowered, increase, increased, reduce, reduced, update, updated, push, pushed, postpone, postponed, \
        extend, extended, rename, renamed, cut, limit, correct, shift, shifted, shifting, swap, swapped, call, name, leave, \
        keep"
}

word_list! {
    /// Verbs whose object is the value.
    CHOOSERS = "\
        use, using, take, taking, pick, picked, choose, chose, want, prefer, like, have, having, get, book, \
        booked, order, ordered, go, say, put, read, forget, drop, scrap, cancel, need, reserved, hired, bought, rented, selected"
}

word_list! {
    FORMS_OF_BE = "\
        is, are, was, were, be, been, being, become, becomes, became, isn't, aren't, wasn't, weren't, =, →, ->, -->, =>, equals"
}

word_list! {
    VERBS = "\
        will, shall, should, must, would, can, could, may, might, needs, need, has, have, had, ought, goes, go, \
        gets, got, stays, remains, runs, starts, ends, moves, moved, uses, lives, costs, means, stands, won't, \
        can't, cannot, doesn't, didn't, don't, shouldn't, hasn't, comes, belongs, takes, changed, changes, \
        went, fell, leads"
}

word_list! {
    /// What somebody does who has a say.
    OPINIONS = "\
        wants, want, prefers, says, said, decided, insists, asked, asks, thinks, likes, hates, chose, picked, \
        voted, gave, approved, suggested, proposed, told, wrote, agreed"
}

word_list! {
    /// What can stand before the subject of a clause.
    OPENERS = "\
        so, but, and, because, that, since, however, then, well, ok, okay, no, yes, actually, right, now, also, \
        hmm, hm, nah, sorry, please, if, when, while, though, anyway, oh, recap"
}

word_list! {
    /// Words that tell nothing about the matter that they stand in.
    VAGUE = "\
        morning, evening, afternoon, night, day, week, weekend, month, year, moment, rest, other, whole, \
        news, question, point, fact, wrong, right, old, current, earlier, previous, actual, correct, last"
}
