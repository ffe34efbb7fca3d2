//! Any text either loads or gives errors that name a line and never show what a variable expands to.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_config::{Flags, Source, load};

const SECRET: &str = "hunter2-secret";

fuzz_target!(|text: &str| {
    let environment = |name: &str| (name == "SECRET").then(|| SECRET.to_owned());
    let source = || Source::new("fuzz.toml", text);
    let loaded = load(source(), &Flags::default(), &environment);
    match &loaded {
        Ok(settings) => {
            assert!(!settings.routes.is_empty());
            assert!(settings.upstreams.contains_key("default"));
            assert!(settings.resolved.iter().all(|value| !value.value.contains(SECRET)));
        }
        Err(errors) => {
            assert!(errors.iter().next().is_some());
            let lines = text.split('\n').count();
            for error in errors.iter() {
                let message = error.to_string();
                let line = message.strip_prefix("fuzz.toml:").and_then(|rest| rest.split_once(':'));
                let line = line.and_then(|(line, _)| line.parse::<usize>().ok());
                assert!(line.is_some_and(|line| (1..=lines).contains(&line)), "no such line: {message}");
                assert!(!error.hint().is_empty(), "no hint: {message}");
                assert!(!message.contains(SECRET) && !error.hint().contains(SECRET), "a secret: {message}");
            }
        }
    }
    assert_eq!(load(source(), &Flags::default(), &environment), loaded);
});
