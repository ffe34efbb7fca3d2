//! Files, links and commands.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::unit::Origin;
use super::without_numbers;
use crate::excerpt::head;
use crate::fence::clean_line;
use crate::word::phrases;
use crate::{Call, Entry, MessageRef};

/// Everything that was named so far, by its exact spelling.
#[derive(Debug, Default)]
pub(super) struct Artifacts {
    places: HashMap<String, usize>,
    named: Vec<Named>,
}

#[derive(Debug)]
struct Named {
    text: String,
    weight: i32,
    mentions: i32,
    rests_on: Vec<MessageRef>,
}

/// References kept for one artifact: where it came up first, and the latest.
const MAX_REFERENCES: usize = 4;
const MAX_COMMAND_CHARS: usize = 120;
const COMMAND_PREFIX: &str = "command: ";

impl Artifacts {
    pub(super) fn read_earlier(&mut self, entries: &[Entry]) {
        for entry in entries {
            let text = clean_line(&entry.text);
            if !text.is_empty() {
                self.add(text, 4, &entry.rests_on);
            }
        }
    }

    pub(super) fn read_text(&mut self, text: &str, origin: Origin, number: MessageRef) {
        let weight = match origin {
            Origin::User => 3,
            Origin::Assistant | Origin::Earlier => 1,
            // A listing names hundreds of files. One of them counts when it comes up elsewhere.
            Origin::Tool => -1,
        };
        for word in text.split(|c: char| {
            c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '(' | ')' | ',' | '=' | '<' | '>' | ';')
        }) {
            if let Some(name) = file_or_link(word) {
                self.add(name.to_owned(), weight, &[number]);
            }
        }
        if origin != Origin::Tool {
            for command in quoted_commands(text) {
                self.add(format!("{COMMAND_PREFIX}{command}"), weight, &[number]);
            }
        }
    }

    pub(super) fn read_call(&mut self, call: &Call<'_>, number: MessageRef) {
        let tool = call.tool.to_lowercase();
        let writes = ["write", "edit", "create", "patch", "save", "replace", "upload"]
            .iter()
            .any(|verb| tool.contains(verb));
        let weight = if writes { 4 } else { 1 };
        let Ok(Value::Object(members)) = serde_json::from_str(&call.arguments) else {
            self.read_text(&call.arguments, Origin::Assistant, number);
            return;
        };
        for (key, value) in &members {
            let Some(text) = value.as_str() else { continue };
            match key.to_lowercase().as_str() {
                "command" | "cmd" | "script" => {
                    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
                    let command = head(&clean_line(line), MAX_COMMAND_CHARS);
                    if !command.is_empty() {
                        self.add(format!("{COMMAND_PREFIX}{command}"), 1, &[number]);
                    }
                    self.read_text(line, Origin::Assistant, number);
                }
                "content" | "contents" | "text" | "body" | "old_str" | "new_str" | "old_string"
                | "new_string" | "patch" => {}
                _ => text.split_whitespace().take(8).filter_map(file_or_link).for_each(|name| {
                    self.add(name.to_owned(), weight, &[number]);
                }),
            }
        }
    }

    /// The most relevant ones that fit, in the order in which they first came up.
    pub(super) fn best(&self, max_entries: usize, max_chars: usize) -> Vec<Entry> {
        let mut ranked: Vec<(usize, &Named)> =
            self.named.iter().enumerate().filter(|(_, named)| named.score() > 0).collect();
        ranked.sort_by_key(|(place, named)| std::cmp::Reverse((named.score(), *place)));
        let mut room = max_chars;
        // Of commands that differ only in their numbers one tells of all.
        let mut commands = HashSet::new();
        ranked.retain(|(_, named)| {
            if named.text.starts_with(COMMAND_PREFIX) && !commands.insert(without_numbers(&named.text)) {
                return false;
            }
            let cost = named.text.chars().count() + 3;
            let fits = cost <= room;
            room -= if fits { cost } else { 0 };
            fits
        });
        ranked.truncate(max_entries);
        ranked.sort_by_key(|(place, _)| *place);
        ranked.into_iter().map(|(_, named)| Entry::new(named.text.clone(), named.rests_on.clone())).collect()
    }

    fn add(&mut self, text: String, weight: i32, rests_on: &[MessageRef]) {
        let place = *self.places.entry(text.clone()).or_insert_with(|| {
            self.named.push(Named { text, weight, mentions: 0, rests_on: Vec::new() });
            self.named.len() - 1
        });
        let named = &mut self.named[place];
        named.weight = named.weight.max(weight);
        named.mentions += 1;
        for &number in rests_on {
            if named.rests_on.contains(&number) {
                continue;
            }
            if named.rests_on.len() == MAX_REFERENCES {
                named.rests_on.remove(1);
            }
            named.rests_on.push(number);
        }
    }
}

impl Named {
    fn score(&self) -> i32 {
        self.weight + (self.mentions - 1).min(3)
    }
}

fn file_or_link(word: &str) -> Option<&str> {
    let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '/' | '.' | '~' | '_'));
    let word = word.trim_end_matches(['.', ':', ',']);
    if word.len() < 4 || word.len() > 200 {
        return None;
    }
    if word.starts_with("https://") || word.starts_with("http://") {
        return Some(word);
    }
    let path = word.split(':').next().unwrap_or(word);
    let is_spelt_so = path
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '~' | '@' | '+'));
    let name = path.rsplit('/').next().unwrap_or(path);
    let extension =
        name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).map(|(_, extension)| extension);
    let is_known = extension
        .is_some_and(|extension| phrases(EXTENSIONS).any(|known| extension.eq_ignore_ascii_case(known)));
    let is_rooted =
        ["/", "./", "../", "~/"].iter().any(|root| path.starts_with(root)) && path[1..].contains('/');
    let has_letters = path.chars().any(|c| c.is_ascii_alphabetic());
    let deep = path.matches('/').count() >= 2 && !path.contains("//");
    (is_spelt_so && has_letters && (is_known || is_rooted || deep)).then_some(path)
}

fn quoted_commands(text: &str) -> impl Iterator<Item = &str> {
    let outside_blocks = !text.contains("```");
    let spans = text.split('`').skip(1).step_by(2).filter(move |_| outside_blocks);
    spans.filter(|span| {
        let starts = span.starts_with(|c: char| c.is_ascii_lowercase() || c == '.' || c == '/');
        starts
            && !span.contains(" = ")
            && span.trim().contains(' ')
            && span.len() <= MAX_COMMAND_CHARS
            && !span.contains('\n')
    })
}

const EXTENSIONS: &str = "\
    rs, toml, lock, py, js, ts, tsx, jsx, go, java, kt, c, h, cc, cpp, hpp, cs, rb, php, swift, scala, sh, \
    bash, sql, md, txt, rst, json, jsonl, yaml, yml, xml, html, css, csv, tsv, ini, cfg, conf, env, log, \
    pdf, docx, xlsx, pptx, png, jpg, jpeg, svg, gif, zip, gz, tar, parquet, ipynb, proto, tf, diff, patch, \
    db, sqlite, key, pem";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_links_are_recognized() {
        for (word, name) in [
            ("src/main.rs:12:5", "src/main.rs"),
            ("(config.toml),", "config.toml"),
            ("https://example.com/a?b=1.", "https://example.com/a?b=1"),
            ("/etc/hosts", "/etc/hosts"),
            ("app/models/user", "app/models/user"),
        ] {
            assert_eq!(file_or_link(word), Some(name));
        }
        for word in
            ["and/or", "1/2", "3.50", "e.g", "km/h", "hello", "v1.2.3", "a.b", "2024/05/06", "/health", "…"]
        {
            assert_eq!(file_or_link(word), None, "{word}");
        }
    }

    #[test]
    fn written_files_come_before_listed_ones() {
        let mut artifacts = Artifacts::default();
        artifacts.read_text("a.rs b.rs c.rs d.rs", Origin::Tool, MessageRef(1));
        let call =
            Call { tool: "write_file".into(), arguments: r#"{"path":"c.rs","content":"see z.rs"}"#.into() };
        artifacts.read_call(&call, MessageRef(2));
        let call = Call { tool: "bash".into(), arguments: r#"{"command":"cargo test\n"}"#.into() };
        artifacts.read_call(&call, MessageRef(3));
        artifacts.read_call(&call, MessageRef(5));
        let best = artifacts.best(10, 1_000);
        assert_eq!(
            best,
            [
                Entry::new("c.rs", [MessageRef(1), MessageRef(2)]),
                Entry::new("command: cargo test", [MessageRef(3), MessageRef(5)])
            ]
        );
    }

    #[test]
    fn room_and_count_are_kept() {
        let mut artifacts = Artifacts::default();
        artifacts.read_text("one.rs two.rs three.rs", Origin::User, MessageRef(1));
        assert_eq!(artifacts.best(10, 20).len(), 2);
    }
}
