use serde_json::{Map, Value, json};

use crate::Section;

/// The JSON schema of the answer, strict: every member required and no other allowed, as `response_format:
/// json_schema` wants it.
pub fn schema() -> Value {
    let mut properties = Map::new();
    let text = "What happened and where things stand, in a few sentences without dialogue.";
    properties.insert("summary_text".into(), json!({ "type": "string", "description": text }));
    for section in Section::ALL {
        let list =
            json!({ "type": "array", "description": meaning(section), "items": { "$ref": "#/$defs/entry" } });
        properties.insert(section.name().into(), list);
    }
    let required: Vec<&String> = properties.keys().collect();
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": required,
        "properties": properties,
        "$defs": {
            "entry": {
                "type": "object",
                "additionalProperties": false,
                "required": ["text", "rests_on"],
                "properties": {
                    "text": { "type": "string", "description": "One short sentence that stands on its own." },
                    "rests_on": {
                        "type": "array",
                        "description": "Numbers of the messages that say so.",
                        "items": { "type": "integer" }
                    }
                }
            }
        }
    })
}

/// What belongs in a list. The prompt tells a model without schema support the same words.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Summary;

    #[test]
    fn every_object_is_closed_and_every_member_required() {
        let schema = schema();
        for object in [&schema, &schema["$defs"]["entry"]] {
            assert_eq!(object["additionalProperties"], false);
            let properties = object["properties"].as_object().unwrap();
            let required = object["required"].as_array().unwrap();
            assert_eq!(required.len(), properties.len());
            assert!(required.iter().all(|name| properties.contains_key(name.as_str().unwrap())));
        }
    }

    #[test]
    fn what_the_schema_asks_for_is_what_a_summary_stores() {
        let mut answer = json!({ "summary_text": "text" });
        for section in Section::ALL {
            answer[section.name()] = json!([{ "text": section.name(), "rests_on": [1] }]);
        }
        let summary: Summary = serde_json::from_value(answer.clone()).unwrap();
        assert_eq!(serde_json::to_value(&summary).unwrap(), answer);
    }
}
