use serde::{Serialize, Serializer};

use crate::{Bounds, Section, Style};

/// A JSON schema. Its members are in order of importance: a model that follows a schema writes them in that order, so a truncated
/// answer loses the least important ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Schema(Shape);

/// Returns the schema of the answer. It is strict, as `response_format: json_schema` requires: every member is required, and no other is
/// allowed.
pub fn schema(style: Style) -> Schema {
    let entry = match style {
        Style::Full => entry(),
        Style::Brief => text(SENTENCE, None),
    };
    answer(text(PROSE, None), &|_| (entry.clone(), None))
}

/// Returns the brief schema with maximum lengths. Without them, a small model that follows a schema continues a list until it is
/// stopped.
///
/// Some endpoints ignore lengths in a schema, and some reject them.
pub fn bounded_schema(bounds: Bounds) -> Schema {
    // Lists may be empty, but the prose may not.
    let prose = text(PROSE, Some((bounds.shortest_prose(), bounds.prose_chars)));
    let entry = text(SENTENCE, Some((1, bounds.entry_chars)));
    answer(prose, &|section| (entry.clone(), Some(bounds.entries(section))))
}

/// Describes what belongs in a list. The prompt contains the same words, for models without schema support.
pub(crate) fn meaning(section: Section) -> &'static str {
    match section {
        Section::Goals => "What the user wants to reach, the original task first, and lasting preferences.",
        Section::Decisions => "What was settled and still holds, with every constraint the user set.",
        Section::KeyFacts => {
            "Names, numbers, dates, identifiers, results and errors that later work may need."
        }
        Section::OpenQuestions => "What was asked or left undecided and has no answer yet.",
        Section::ActionItems => "What somebody promised or was told to do and has not done yet.",
        Section::Artifacts => {
            "Files, links, commands and other things that were made or used, by their exact names."
        }
    }
}

const PROSE: &str = "What happened and where things stand, in a few sentences without dialogue.";
const SENTENCE: &str = "One short sentence that stands on its own.";

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
enum Shape {
    String {
        description: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        min_length: Option<usize>,
        #[serde(skip_serializing_if = "Option::is_none")]
        max_length: Option<usize>,
    },
    Integer {},
    Array {
        description: &'static str,
        items: Box<Shape>,
        #[serde(skip_serializing_if = "Option::is_none")]
        max_items: Option<usize>,
    },
    Object {
        additional_properties: bool,
        required: Vec<&'static str>,
        #[serde(serialize_with = "in_order")]
        properties: Vec<(&'static str, Shape)>,
    },
}

fn answer(prose: Shape, list: &dyn Fn(Section) -> (Shape, Option<usize>)) -> Schema {
    let mut properties = vec![("summary_text", prose)];
    for section in Section::ALL {
        let (items, max_items) = list(section);
        let shape = Shape::Array { description: meaning(section), items: Box::new(items), max_items };
        properties.push((section.name(), shape));
    }
    Schema(object(properties))
}

fn entry() -> Shape {
    let rests_on = Shape::Array {
        description: "Numbers of the messages that say so.",
        items: Box::new(Shape::Integer {}),
        max_items: None,
    };
    object(vec![("text", text(SENTENCE, None)), ("rests_on", rests_on)])
}

fn object(properties: Vec<(&'static str, Shape)>) -> Shape {
    let required = properties.iter().map(|(name, _)| *name).collect();
    Shape::Object { additional_properties: false, required, properties }
}

fn text(description: &'static str, length: Option<(usize, usize)>) -> Shape {
    let (min_length, max_length) = length.unzip();
    Shape::String { description, min_length, max_length }
}

fn in_order<S: Serializer>(members: &[(&'static str, Shape)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(members.iter().map(|(name, shape)| (name, shape)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Summary;
    use serde_json::{Value, json};

    fn written(schema: &Schema) -> (String, Value) {
        let text = serde_json::to_string(schema).unwrap();
        (text.clone(), serde_json::from_str(&text).unwrap())
    }

    #[test]
    fn every_object_is_closed_and_every_member_required() {
        let (_, full) = written(&schema(Style::Full));
        let (_, brief) = written(&schema(Style::Brief));
        let (_, bounded) = written(&bounded_schema(Bounds::of(300)));
        for object in [&full, &full["properties"]["goals"]["items"], &brief, &bounded] {
            assert_eq!((&object["type"], &object["additionalProperties"]), (&json!("object"), &json!(false)));
            let properties = object["properties"].as_object().unwrap();
            let required = object["required"].as_array().unwrap();
            assert_eq!(required.len(), properties.len());
            assert!(required.iter().all(|name| properties.contains_key(name.as_str().unwrap())));
        }
    }

    #[test]
    fn members_are_in_order_of_importance() {
        let names = ["summary_text", "goals", "decisions", "key_facts", "open_questions", "action_items"];
        for schema in [schema(Style::Full), schema(Style::Brief), bounded_schema(Bounds::of(300))] {
            let (text, _) = written(&schema);
            let places: Vec<_> = names.iter().map(|name| text.rfind(&format!("\"{name}\":"))).collect();
            assert!(places.is_sorted() && places[0].is_some(), "{places:?} in {text}");
        }
        let (text, _) = written(&schema(Style::Full));
        assert!(text.find("\"text\":") < text.find("\"rests_on\":"));
    }

    #[test]
    fn the_schema_has_the_members_of_the_stored_form() {
        let mut answer = json!({ "summary_text": "text" });
        for section in Section::ALL {
            answer[section.name()] = json!([{ "text": section.name(), "rests_on": [1] }]);
        }
        let summary: Summary = serde_json::from_value(answer.clone()).unwrap();
        assert_eq!(serde_json::to_value(&summary).unwrap(), answer);
    }

    #[test]
    fn only_the_bounded_schema_has_lengths() {
        let has_lengths = |schema: &Schema| {
            let (text, _) = written(schema);
            ["minLength", "maxLength", "maxItems"].map(|word| text.contains(word))
        };
        assert_eq!(has_lengths(&schema(Style::Full)), [false; 3]);
        assert_eq!(has_lengths(&schema(Style::Brief)), [false; 3]);
        assert_eq!(has_lengths(&bounded_schema(Bounds::of(300))), [true; 3]);
    }
}
