//! Command-line flags of this crate's binaries: `--name value` and `--name`.

use std::collections::HashMap;
use std::str::FromStr;

/// The flags as given. Take each with [`value`](Self::value) or [`switch`](Self::switch), then call [`finish`](Self::finish).
#[derive(Debug)]
pub struct Flags {
    given: HashMap<String, Option<String>>,
}

impl Flags {
    /// Prints `usage` and exits if `--help` is among the arguments. Panics if one is not a flag, which is good enough for
    /// developer tools.
    pub fn from_env(usage: &str) -> Self {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        if arguments.iter().any(|argument| ["--help", "-h", "help"].contains(&argument.as_str())) {
            #[expect(clippy::print_stdout, reason = "a person asked for it")]
            {
                println!("{usage}");
            }
            std::process::exit(0);
        }
        Self::parse(arguments.into_iter())
    }

    fn parse(arguments: impl Iterator<Item = String>) -> Self {
        let mut given = HashMap::new();
        let mut arguments = arguments.peekable();
        while let Some(argument) = arguments.next() {
            let Some(name) = argument.strip_prefix("--") else { panic!("`{argument}` is not a flag") };
            let value = arguments.next_if(|next| !next.starts_with("--"));
            given.insert(name.to_owned(), value);
        }
        Flags { given }
    }

    /// The value of `--name`, or `None` if the flag is not given.
    pub fn value<T: FromStr>(&mut self, name: &str) -> Option<T> {
        let value = self.given.remove(name)?;
        let value = value.unwrap_or_else(|| panic!("`--{name}` needs a value"));
        Some(value.parse().unwrap_or_else(|_| panic!("`{value}` is not a valid value for `--{name}`")))
    }

    pub fn switch(&mut self, name: &str) -> bool {
        match self.given.remove(name) {
            None => false,
            Some(None) => true,
            Some(Some(value)) => panic!("`--{name}` takes no value, but got `{value}`"),
        }
    }

    /// Panics if a flag was not taken: a misspelt one would silently measure something else.
    pub fn finish(self) {
        if let Some(name) = self.given.keys().next() {
            panic!("unknown flag `--{name}`");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(line: &str) -> Flags {
        Flags::parse(line.split(' ').map(str::to_owned))
    }

    #[test]
    fn values_and_switches_are_distinguished() {
        let mut flags = flags("--json --connections 64");
        assert_eq!(flags.value::<usize>("connections"), Some(64));
        assert!(flags.switch("json"));
        assert!(!flags.switch("stream"));
        flags.finish();
    }

    #[test]
    #[should_panic(expected = "unknown flag `--conections`")]
    fn a_misspelt_flag_is_refused() {
        flags("--conections 64").finish();
    }
}
