//! What is said in the generated dialogues.

mod chinese;
mod english;
mod french;
mod german;
mod japanese;
mod spanish;

/// A statement with `{v}` for its value, the question for it, and the values.
type FactPhrase = (&'static str, &'static str, &'static [&'static str]);

/// What people say in one language.
#[derive(Clone, Copy)]
pub(super) struct Phrases {
    pub(super) name: &'static str,
    pub(super) task: &'static str,
    pub(super) facts: &'static [FactPhrase],
    pub(super) matters: &'static [(&'static str, &'static [&'static str])],
    pub(super) settled: &'static [&'static str],
    pub(super) revised: &'static [&'static str],
    /// Statements about many things of one kind, which differ in their numbers: `{i}` is which one, `{v}` its value.
    pub(super) series: &'static [(&'static str, &'static str)],
    /// What happens to the user: `{a}` and `{b}` are two of the things.
    pub(super) stories: &'static [&'static str],
    pub(super) things: &'static [&'static str],
    pub(super) user_chatter: &'static [&'static str],
    pub(super) assistant_chatter: &'static [&'static str],
}

const PEOPLE: &[&str] = &["Ottoline Varga", "Ravi Menon", "Birgit Aas", "Imani Okoye"];
const PLACES: &[&str] = &["Trondheim", "Valparaíso", "Leipzig", "Galway"];
const TOOLS: &[&str] = &["Postgres", "Redis", "Kafka"];

pub(super) const LANGUAGES: [Phrases; 6] = [
    english::PHRASES,
    german::PHRASES,
    spanish::PHRASES,
    french::PHRASES,
    chinese::PHRASES,
    japanese::PHRASES,
];
