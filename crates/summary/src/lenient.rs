//! Reads a summary from an object whose members differ from the schema.

use serde_json::{Map, Value};

use crate::fence::without_bullet;
use crate::reference::{references, trailing};
use crate::word::phrases;
use crate::{Entry, Section, Summary};

/// The meaning of an answer's member.
enum Member {
    Text,
    List(Section),
}

/// Whether the object has a member of a summary, at the top level or one level below.
pub(crate) fn is_summary(object: &Map<String, Value>) -> bool {
    object.iter().any(|(key, value)| {
        member(key).is_some()
            || value.as_object().is_some_and(|inner| inner.keys().any(|key| member(key).is_some()))
    })
}

/// Reads every known member. References are not validated yet.
pub(crate) fn read(object: &Map<String, Value>) -> Summary {
    let mut summary = Summary::default();
    read_into(&mut summary, object, 0);
    summary
}

fn read_into(summary: &mut Summary, object: &Map<String, Value>, depth: usize) {
    for (key, value) in object {
        match (member(key), value) {
            // The whole answer is wrapped in one member, as in `{"summary": {…}}`.
            (None | Some(Member::Text), Value::Object(inner)) if depth < 2 => {
                read_into(summary, inner, depth + 1)
            }
            (Some(Member::Text), value) => {
                let lines: Vec<String> = entries(value).into_iter().map(|entry| entry.text).collect();
                if !summary.summary_text.is_empty() && !lines.is_empty() {
                    summary.summary_text.push('\n');
                }
                summary.summary_text.push_str(&lines.join("\n"));
            }
            (Some(Member::List(section)), value) => summary.list_mut(section).extend(entries(value)),
            (None, _) => {}
        }
    }
}

fn member(key: &str) -> Option<Member> {
    let key: String =
        key.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    let section = match key.as_str() {
        "summarytext" | "summary" | "text" | "overview" | "state" | "memory" => return Some(Member::Text),
        "keyfacts" | "keyfact" | "facts" | "constraints" | "factsandconstraints" => Section::KeyFacts,
        "goals" | "goal" | "objectives" | "preferences" | "goalsandpreferences" => Section::Goals,
        "decisions" | "decision" | "decisionsmade" | "keydecisions" => Section::Decisions,
        "openquestions" | "openquestion" | "questions" | "openitems" | "unresolved" => Section::OpenQuestions,
        "actionitems" | "actionitem" | "actions" | "todos" | "todo" | "nextsteps" | "tasks" => {
            Section::ActionItems
        }
        "artifacts" | "artifact" | "keyartifacts" | "files" | "references" | "links" => Section::Artifacts,
        _ => return None,
    };
    Some(Member::List(section))
}

fn entries(value: &Value) -> Vec<Entry> {
    match value {
        Value::Array(items) => items.iter().flat_map(item).collect(),
        Value::String(text) => text.lines().filter_map(sentence).collect(),
        Value::Object(members) if text_of(members).is_none() && references_of(members).is_empty() => {
            // `{"owner": "Ann", "port": 8080}` instead of a list is a list of pairs.
            members
                .iter()
                .filter_map(|(key, value)| {
                    plain(value).map(|value| Entry::new(format!("{key}: {value}"), []))
                })
                .collect()
        }
        other => item(other),
    }
}

/// Reads an item of a list. A nested list is flattened.
fn item(value: &Value) -> Vec<Entry> {
    match value {
        Value::Object(members) => {
            let text = text_of(members).unwrap_or_else(|| pairs(members));
            let (text, named) = trailing(&text);
            let mut rests_on = references_of(members);
            rests_on.extend(named);
            vec![Entry::new(text, rests_on)]
        }
        Value::Array(items) => items.iter().filter_map(plain).filter_map(|text| sentence(&text)).collect(),
        other => plain(other).and_then(|text| sentence(&text)).into_iter().collect(),
    }
}

fn sentence(text: &str) -> Option<Entry> {
    let (text, rests_on) = trailing(text);
    let text = without_bullet(text.trim());
    (!text.is_empty()).then(|| Entry::new(text, rests_on))
}

/// The members that can contain an entry's text, in order of preference.
const TEXTS: &str = "\
    text, fact, decision, goal, question, item, action, task, artifact, statement, content, description, \
    summary, title, name, path";

fn text_of(members: &Map<String, Value>) -> Option<String> {
    phrases(TEXTS).find_map(|key| members.get(key).and_then(Value::as_str)).map(str::to_owned)
}

fn is_reference(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    [
        "rests_on",
        "restson",
        "refs",
        "references",
        "ref",
        "sources",
        "source",
        "messages",
        "message",
        "evidence",
        "message_ids",
    ]
    .contains(&key.as_str())
}

fn references_of(members: &Map<String, Value>) -> Vec<crate::MessageRef> {
    members.iter().filter(|(key, _)| is_reference(key)).flat_map(|(_, value)| references(value)).collect()
}

fn pairs(members: &Map<String, Value>) -> String {
    let pairs = members.iter().filter(|(key, _)| !is_reference(key));
    let pairs: Vec<_> =
        pairs.filter_map(|(key, value)| plain(value).map(|value| format!("{key}: {value}"))).collect();
    pairs.join(", ")
}

fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MessageRef;
    use serde_json::json;

    fn facts(value: Value) -> Vec<Entry> {
        let Value::Object(object) = json!({ "key_facts": value }) else { unreachable!() };
        read(&object).key_facts
    }

    #[test]
    fn lists_are_read_in_many_forms() {
        let expected = [Entry::new("port: 80", [])];
        for value in [
            json!(["port: 80"]),
            json!("- port: 80\n\n"),
            json!({ "port": 80 }),
            json!([{ "port": 80 }]),
            json!([["port: 80"]]),
        ] {
            assert_eq!(facts(value.clone()), expected, "{value}");
        }
        assert!(facts(Value::Null).is_empty());
        assert_eq!(facts(json!(5)), [Entry::new("5", [])]);
    }

    #[test]
    fn entries_are_read_with_other_member_names() {
        let expected = [Entry::new("Ann owns it", [MessageRef(2)])];
        for value in [
            json!([{ "text": "Ann owns it", "rests_on": [2] }]),
            json!([{ "fact": "Ann owns it", "source": "m2" }]),
            json!([{ "content": "Ann owns it [2]" }]),
            json!({ "text": "Ann owns it", "refs": "2" }),
            json!("Ann owns it (#2)"),
        ] {
            assert_eq!(facts(value.clone()), expected, "{value}");
        }
    }

    #[test]
    fn a_wrapped_answer_is_read() {
        let Value::Object(object) =
            json!({ "summary": { "Key Facts": ["a"], "nextSteps": "b", "summary_text": ["c", "d"] } })
        else {
            unreachable!()
        };
        assert!(is_summary(&object));
        let summary = read(&object);
        assert_eq!(summary.key_facts, [Entry::new("a", [])]);
        assert_eq!(summary.action_items, [Entry::new("b", [])]);
        assert_eq!(summary.summary_text, "c\nd");
    }
}
