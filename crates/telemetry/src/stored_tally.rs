//! The stored form of tallies: JSON without zeros. What a member of another version does not know, it leaves out.

use crate::ModelTally;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

#[must_use]
pub fn encode_tallies(tallies: &[ModelTally]) -> Vec<u8> {
    // Neither has keys that are not strings.
    let mut value = serde_json::to_value(tallies).unwrap_or_default();
    remove_zeros(&mut value);
    serde_json::to_vec(&value).unwrap_or_default()
}

/// `None` if this is not what [`encode_tallies`] wrote.
#[must_use]
pub fn decode_tallies(stored: &[u8]) -> Option<Vec<ModelTally>> {
    serde_json::from_slice(stored).ok()
}

fn remove_zeros(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(remove_zeros),
        Value::Object(members) => {
            members.retain(|name, value| name == "tally" || !is_zero(value));
            members.values_mut().for_each(remove_zeros);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_u64() == Some(0),
        Value::Array(values) => values.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

/// Reads counts by outcome, status class, reason or code.
pub(crate) fn names<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<&'static str, u64>, D::Error> {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let counts = BTreeMap::<String, u64>::deserialize(from)?;
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(counts.into_iter().filter_map(|(name, count)| Some((intern(&mut names, name)?, count))).collect())
}

/// Far more names than there are.
const MAX_NAMES: usize = 256;
const MAX_NAME_LENGTH: usize = 64;

/// The same name for the life of the process, which has only so many.
fn intern(names: &mut BTreeSet<&'static str>, name: String) -> Option<&'static str> {
    if let Some(known) = names.get(name.as_str()) {
        return Some(known);
    }
    if names.len() >= MAX_NAMES || name.len() > MAX_NAME_LENGTH {
        return None;
    }
    let name: &'static str = name.leak();
    names.insert(name);
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tally;

    fn tallied(tally: Tally) -> ModelTally {
        ModelTally { route: "r \"ü\"".to_owned(), model: "m".to_owned(), tally }
    }

    #[test]
    fn tallies_decode_as_they_were_encoded() {
        let full = Tally {
            requests: u64::MAX,
            outcomes: [("answered", 1), ("rescued", 2)].into(),
            refusals: [("code", 3)].into(),
            overhead: vec![0, 0, 7, 0],
            ..Tally::default()
        };
        let all = [tallied(full), tallied(Tally::default())];
        assert_eq!(decode_tallies(&encode_tallies(&all)).unwrap(), all);
        let nothing = encode_tallies(&all[1..]);
        assert_eq!(nothing, "[{\"model\":\"m\",\"route\":\"r \\\"ü\\\"\",\"tally\":{}}]".as_bytes());
    }

    #[test]
    fn another_version_is_read_as_far_as_it_is_known() {
        let stored = br#"[{"route":"r","model":"m","more":1,"tally":{"requests":2,"later":[1],"outcomes":{"later":2}}}]"#;
        let tally = decode_tallies(stored).unwrap().remove(0).tally;
        assert_eq!((tally.requests, tally.outcomes), (2, [("later", 2)].into()));
        for bad in ["", "{}", "[1]", r#"[{"route":"r","model":"m","tally":{"requests":-1}}]"#] {
            assert_eq!(decode_tallies(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn no_store_makes_a_process_keep_more_and_more_names() {
        let mut names = BTreeSet::new();
        assert_eq!(intern(&mut names, "x".repeat(65)), None);
        for number in 0..1_000 {
            intern(&mut names, format!("name {number}"));
        }
        assert_eq!(names.len(), MAX_NAMES);
        assert_eq!(intern(&mut names, "name 7".to_owned()), Some("name 7"));
    }
}
