//! What is said of a matter: names, numbers, dates.

use crate::word::{Kind, Word, word_list};

/// The sort of value that a sentence gives. One of another sort is rarely in its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Measure {
    /// A name or plain words.
    #[default]
    None,
    Number,
    Date,
}

/// Whether a word is a name, a figure, a date or a number in words.
pub(super) fn is_value(word: &Word<'_>, lower: &str) -> bool {
    word.kind != Kind::Plain || measure(word, lower) != Measure::None
}

pub(super) fn measure(word: &Word<'_>, lower: &str) -> Measure {
    let starts_with_digit = || {
        let digits = lower.trim_start_matches(|c: char| !c.is_alphanumeric());
        digits.starts_with(char::is_numeric)
    };
    // `may` and `march` are verbs, too.
    let is_month = || word.text.starts_with(char::is_uppercase) || !matches!(lower, "may" | "march");
    if DATES.contains(lower) && is_month() {
        Measure::Date
    } else if (word.kind == Kind::Figure && starts_with_digit()) || NUMBERS.contains(lower) {
        Measure::Number
    } else {
        Measure::None
    }
}

word_list! {
    DATES = "\
        january, february, march, april, may, june, july, august, september, october, november, december, jan, \
        feb, apr, jun, jul, aug, sept, oct, nov, dec, monday, tuesday, wednesday, thursday, friday, saturday, \
        sunday, mondays, tuesdays, wednesdays, thursdays, fridays, saturdays, sundays, tomorrow, tonight"
}

word_list! {
    NUMBERS = "\
        two, three, four, five, six, seven, eight, nine, ten, eleven, twelve, fifteen, twenty, thirty, forty, \
        fifty, sixty, seventy, eighty, ninety, hundred, thousand, dozen, half, quarter, noon, midnight"
}
