//! What is asked for: the path and the parameters behind it.

use crate::problem::Problem;
use http::{Method, Uri};
use percent_encoding::percent_decode_str;
use std::collections::BTreeMap;

/// What of the conversations is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    List,
    Conversation(String),
    Turn(String, usize),
    Messages(String),
    Export(String),
    Memory(String),
}

pub(crate) const ROOT: &str = "/api/conversations";

impl Target {
    pub(crate) fn of(path: &str) -> Result<Target, Problem> {
        let rest = path.strip_prefix(ROOT).ok_or(Problem::UnknownPath)?;
        if rest.is_empty() || rest == "/" {
            return Ok(Target::List);
        }
        let rest = rest.strip_prefix('/').ok_or(Problem::UnknownPath)?;
        let (id, part) = rest.split_once('/').map_or((rest, None), |(id, part)| (id, Some(part)));
        let id = percent_decode_str(id).decode_utf8().map_err(|_| Problem::UnknownPath)?.into_owned();
        match part {
            _ if id.is_empty() => Err(Problem::UnknownPath),
            None => Ok(Target::Conversation(id)),
            Some("messages") => Ok(Target::Messages(id)),
            Some("export") => Ok(Target::Export(id)),
            Some("memory") => Ok(Target::Memory(id)),
            Some(part) => {
                let number = part.strip_prefix("turns/").and_then(|number| number.parse().ok());
                number.map(|number| Target::Turn(id, number)).ok_or(Problem::UnknownPath)
            }
        }
    }

    /// What can be done with it.
    pub(crate) fn allow(&self) -> &'static str {
        match self {
            Target::Conversation(_) => "GET, HEAD, DELETE",
            Target::Memory(_) => "GET, HEAD, PUT, DELETE",
            Target::List | Target::Turn(..) | Target::Messages(_) | Target::Export(_) => "GET, HEAD",
        }
    }
}

/// What a method does, if it is one of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Read,
    Replace,
    Delete,
}

impl Verb {
    pub(crate) fn of(method: &Method, allow: &'static str) -> Result<Verb, Problem> {
        match *method {
            Method::GET | Method::HEAD => Ok(Verb::Read),
            Method::PUT if allow.contains("PUT") => Ok(Verb::Replace),
            Method::DELETE if allow.ends_with("DELETE") => Ok(Verb::Delete),
            _ => Err(Problem::Method { allow }),
        }
    }
}

/// The parameters of a request. One that nobody asked for is refused: a misspelled `tenant` would show everybody's.
#[derive(Debug)]
pub(crate) struct Parameters(BTreeMap<String, String>);

/// The most that one answer holds, and what it holds unless asked otherwise.
pub(crate) const MOST: usize = 500;
const USUAL: usize = 50;

impl Parameters {
    pub(crate) fn of(uri: &Uri, known: &[&str]) -> Result<Parameters, Problem> {
        let mut parameters = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
            if !known.contains(&name.as_ref()) {
                return Err(Problem::parameter(&name, format!("is not one of {}", known.join(", "))));
            }
            if parameters.insert(name.clone().into_owned(), value.into_owned()).is_some() {
                return Err(Problem::parameter(&name, "is there twice"));
            }
        }
        Ok(Parameters(parameters))
    }

    /// An empty one is refused: a script whose variable is not set would get everything.
    pub(crate) fn text(&self, name: &str) -> Result<Option<&str>, Problem> {
        match self.0.get(name).map(String::as_str) {
            Some("") => Err(Problem::parameter(name, "is empty; leave it out to mean all")),
            value => Ok(value),
        }
    }

    pub(crate) fn offset(&self, name: &str) -> Result<usize, Problem> {
        self.number(name, 0, 0..=usize::MAX, "a number from 0 on")
    }

    pub(crate) fn limit(&self, name: &str) -> Result<usize, Problem> {
        self.limit_or(name, USUAL)
    }

    pub(crate) fn limit_or(&self, name: &str, usual: usize) -> Result<usize, Problem> {
        self.number(name, usual, 1..=MOST, &format!("a number from 1 to {MOST}"))
    }

    /// One of few words; the first where it is not given.
    pub(crate) fn choice<T: Copy + Default>(&self, name: &str, choices: &[(&str, T)]) -> Result<T, Problem> {
        let Some(value) = self.0.get(name) else { return Ok(T::default()) };
        let found = choices.iter().find(|(word, _)| word == value).map(|(_, choice)| *choice);
        found.ok_or_else(|| {
            let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
            Problem::parameter(name, format!("must be one of {}", words.join(", ")))
        })
    }

    fn number(
        &self,
        name: &str,
        usual: usize,
        range: std::ops::RangeInclusive<usize>,
        wanted: &str,
    ) -> Result<usize, Problem> {
        let Some(value) = self.0.get(name) else { return Ok(usual) };
        let number = value.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| Problem::parameter(name, format!("must be {wanted}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_what_there_is() {
        let good = [
            ("/api/conversations", Target::List),
            ("/api/conversations/", Target::List),
            ("/api/conversations/abc", Target::Conversation("abc".to_owned())),
            ("/api/conversations/team%2Fa:1/messages", Target::Messages("team/a:1".to_owned())),
            ("/api/conversations/a%20b/export", Target::Export("a b".to_owned())),
            ("/api/conversations/memory/memory", Target::Memory("memory".to_owned())),
            ("/api/conversations/a/turns/12", Target::Turn("a".to_owned(), 12)),
        ];
        for (path, target) in good {
            assert_eq!(Target::of(path), Ok(target), "{path}");
        }
        for bad in [
            "/",
            "/api",
            "/api/conversationsx",
            "/api/conversations//messages",
            "/api/conversations/a/b",
            "/api/conversations/a/messages/",
            "/api/conversations/a/turns",
            "/api/conversations/a/turns/-1",
            "/api/conversations/a/turns/1/2",
            "/api/conversations/%ff",
        ] {
            assert_eq!(Target::of(bad), Err(Problem::UnknownPath), "{bad}");
        }
    }

    #[test]
    fn parameters_are_known_and_once_and_in_range() {
        let parameters = |query: &str| {
            let uri = format!("/?{query}").parse().unwrap();
            let all = Parameters::of(&uri, &["offset", "limit", "tenant"])?;
            Ok((all.offset("offset")?, all.limit("limit")?, all.text("tenant")?.map(str::to_owned)))
        };
        assert_eq!(parameters(""), Ok((0, 50, None)));
        assert_eq!(parameters("offset=7&limit=500&tenant=a%2Fb"), Ok((7, 500, Some("a/b".to_owned()))));
        for (bad, name) in [
            ("limit=0", "limit"),
            ("limit=501", "limit"),
            ("limit=-1", "limit"),
            ("offset=x", "offset"),
            ("tenant=", "tenant"),
            ("tenat=a", "tenat"),
            ("tenant=a&tenant=b", "tenant"),
        ] {
            let problem: Problem = parameters(bad).unwrap_err();
            assert!(matches!(&problem, Problem::Parameter { name: named, .. } if named == name), "{bad}");
        }
    }

    #[test]
    fn only_what_can_be_changed_is_changed() {
        let verb = |path: &str, method: Method| Verb::of(&method, Target::of(path).unwrap().allow());
        assert_eq!(verb("/api/conversations/a/memory", Method::PUT), Ok(Verb::Replace));
        assert_eq!(verb("/api/conversations/a/memory", Method::DELETE), Ok(Verb::Delete));
        for fixed in ["/api/conversations", "/api/conversations/a", "/api/conversations/a/export"] {
            assert!(verb(fixed, Method::PUT).is_err(), "{fixed}");
        }
        assert_eq!(verb("/api/conversations/a", Method::DELETE), Ok(Verb::Delete));
        assert_eq!(verb("/api/conversations/a", Method::HEAD), Ok(Verb::Read));
        assert_eq!(verb("/api/conversations", Method::DELETE), Err(Problem::Method { allow: "GET, HEAD" }));
        assert!(verb("/api/conversations/a", Method::POST).is_err());
    }
}
