//! Parses request targets: the path below `/api/conversations`, and query parameters.

use crate::error::ApiError;
use http::{Method, Uri};
use percent_encoding::percent_decode_str;
use std::collections::BTreeMap;

/// The resource that a path names.
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
    pub(crate) fn parse(path: &str) -> Result<Target, ApiError> {
        let rest = path.strip_prefix(ROOT).ok_or(ApiError::UnknownPath)?;
        if rest.is_empty() || rest == "/" {
            return Ok(Target::List);
        }
        let rest = rest.strip_prefix('/').ok_or(ApiError::UnknownPath)?;
        let (id, part) = rest.split_once('/').map_or((rest, None), |(id, part)| (id, Some(part)));
        let id = percent_decode_str(id).decode_utf8().map_err(|_| ApiError::UnknownPath)?.into_owned();
        match part {
            _ if id.is_empty() => Err(ApiError::UnknownPath),
            None => Ok(Target::Conversation(id)),
            Some("messages") => Ok(Target::Messages(id)),
            Some("export") => Ok(Target::Export(id)),
            Some("memory") => Ok(Target::Memory(id)),
            Some(part) => {
                let number = part.strip_prefix("turns/").and_then(|number| number.parse().ok());
                number.map(|number| Target::Turn(id, number)).ok_or(ApiError::UnknownPath)
            }
        }
    }

    /// The methods it allows.
    pub(crate) fn allow(&self) -> &'static str {
        match self {
            Target::Conversation(_) => "GET, HEAD, DELETE",
            Target::Memory(_) => "GET, HEAD, PUT, DELETE",
            Target::List | Target::Turn(..) | Target::Messages(_) | Target::Export(_) => "GET, HEAD",
        }
    }
}

/// What a method does to a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Read,
    Replace,
    Delete,
}

impl Verb {
    pub(crate) fn parse(method: &Method, allow: &'static str) -> Result<Verb, ApiError> {
        match *method {
            Method::GET | Method::HEAD => Ok(Verb::Read),
            Method::PUT if allow.contains("PUT") => Ok(Verb::Replace),
            Method::DELETE if allow.ends_with("DELETE") => Ok(Verb::Delete),
            _ => Err(ApiError::MethodNotAllowed { allow }),
        }
    }
}

/// The query parameters of a request. Unknown ones are rejected: a misspelled `tenant` would otherwise list
/// every tenant.
#[derive(Debug)]
pub(crate) struct QueryParams(BTreeMap<String, String>);

/// The maximum page size.
pub(crate) const MAX_LIMIT: usize = 500;
/// The page size if none is given.
const DEFAULT_LIMIT: usize = 50;

impl QueryParams {
    pub(crate) fn parse(uri: &Uri, known: &[&str]) -> Result<QueryParams, ApiError> {
        let mut parameters = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
            if !known.contains(&name.as_ref()) {
                return Err(ApiError::invalid_parameter(
                    &name,
                    format!("is unknown; expected one of: {}", known.join(", ")),
                ));
            }
            if parameters.insert(name.clone().into_owned(), value.into_owned()).is_some() {
                return Err(ApiError::invalid_parameter(&name, "is given twice"));
            }
        }
        Ok(QueryParams(parameters))
    }

    /// Rejects an empty value: a script with an unset variable would otherwise select everything.
    pub(crate) fn text(&self, name: &str) -> Result<Option<&str>, ApiError> {
        match self.0.get(name).map(String::as_str) {
            Some("") => Err(ApiError::invalid_parameter(name, "is empty; omit it to select all")),
            value => Ok(value),
        }
    }

    pub(crate) fn offset(&self, name: &str) -> Result<usize, ApiError> {
        self.number(name, 0, 0..=usize::MAX, "a non-negative number")
    }

    pub(crate) fn limit(&self, name: &str) -> Result<usize, ApiError> {
        self.limit_or(name, DEFAULT_LIMIT)
    }

    pub(crate) fn limit_or(&self, name: &str, default: usize) -> Result<usize, ApiError> {
        self.number(name, default, 1..=MAX_LIMIT, &format!("a number from 1 to {MAX_LIMIT}"))
    }

    /// Returns the choice with the given name, or the default if the parameter is absent.
    pub(crate) fn choice<T: Copy + Default>(&self, name: &str, choices: &[(&str, T)]) -> Result<T, ApiError> {
        let Some(value) = self.0.get(name) else { return Ok(T::default()) };
        let found = choices.iter().find(|(name, _)| name == value).map(|(_, choice)| *choice);
        found.ok_or_else(|| {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            ApiError::invalid_parameter(name, format!("must be one of {}", names.join(", ")))
        })
    }

    fn number(
        &self,
        name: &str,
        default: usize,
        range: std::ops::RangeInclusive<usize>,
        expected: &str,
    ) -> Result<usize, ApiError> {
        let Some(value) = self.0.get(name) else { return Ok(default) };
        let number = value.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| ApiError::invalid_parameter(name, format!("must be {expected}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_resources() {
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
            assert_eq!(Target::parse(path), Ok(target), "{path}");
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
            assert_eq!(Target::parse(bad), Err(ApiError::UnknownPath), "{bad}");
        }
    }

    #[test]
    fn parameters_must_be_known_unique_and_in_range() {
        let parameters = |query: &str| {
            let uri = format!("/?{query}").parse().unwrap();
            let all = QueryParams::parse(&uri, &["offset", "limit", "tenant"])?;
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
            let error: ApiError = parameters(bad).unwrap_err();
            assert!(
                matches!(&error, ApiError::InvalidParameter { name: named, .. } if named == name),
                "{bad}"
            );
        }
    }

    #[test]
    fn each_target_allows_only_its_methods() {
        let verb = |path: &str, method: Method| Verb::parse(&method, Target::parse(path).unwrap().allow());
        assert_eq!(verb("/api/conversations/a/memory", Method::PUT), Ok(Verb::Replace));
        assert_eq!(verb("/api/conversations/a/memory", Method::DELETE), Ok(Verb::Delete));
        for read_only in ["/api/conversations", "/api/conversations/a", "/api/conversations/a/export"] {
            assert!(verb(read_only, Method::PUT).is_err(), "{read_only}");
        }
        assert_eq!(verb("/api/conversations/a", Method::DELETE), Ok(Verb::Delete));
        assert_eq!(verb("/api/conversations/a", Method::HEAD), Ok(Verb::Read));
        assert_eq!(
            verb("/api/conversations", Method::DELETE),
            Err(ApiError::MethodNotAllowed { allow: "GET, HEAD" })
        );
        assert!(verb("/api/conversations/a", Method::POST).is_err());
    }
}
