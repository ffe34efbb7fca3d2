//! Writes generated agent runs as requests of each dialect.

/// How a request is spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spelling {
    Chat,
    Messages,
    /// The same for a model of Anthropic's, which caches up to explicit breakpoints.
    Claude,
    Responses,
}

/// An agent's run.
pub(crate) struct Run {
    task: String,
    steps: Vec<Step>,
}

/// What a model says and does at once, and what it gets back.
struct Step {
    thinks: bool,
    says: String,
    calls: Vec<Call>,
    question: Option<String>,
}

struct Call {
    id: String,
    output: String,
    /// Whether the output is sent as a list of parts.
    in_parts: bool,
    /// Whether the call is spelled in the dialect's other way, if it has one.
    is_custom: bool,
}

const STEPS: usize = 45;

impl Run {
    pub(crate) fn new(seed: u64) -> Run {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut steps = Vec::new();
        for step in 0..STEPS {
            let calls = [1, 1, 1, 2, 3][dice.below(5)];
            let mut call = |index: usize| {
                let words = [3, 20, 120, 400][dice.below(4)];
                Call {
                    id: format!("call_{seed}_{step}_{index}"),
                    output: dice.text(words),
                    in_parts: dice.below(3) == 0,
                    is_custom: dice.below(4) == 0,
                }
            };
            let calls = (0..calls).map(&mut call).collect();
            let question = (dice.below(4) == 0).then(|| format!("And {}?", dice.text(6)));
            steps.push(Step { thinks: dice.below(2) == 0, says: dice.text(12), calls, question });
        }
        Run { task: format!("Find out about {}.", dice.text(8)), steps }
    }

    /// What a client sends before each of the model's answers.
    pub(crate) fn requests(&self, spelling: Spelling) -> Vec<String> {
        let request = |steps: usize| match spelling {
            Spelling::Chat => wrapped(
                "{\"model\" : \"gpt-4o\",\"seed\":1e0, \"messages\": [",
                self.chat(steps),
                "] ,\"x_n\": 12345678901234567890123}\n",
            ),
            Spelling::Messages => wrapped(
                "{ \"max_tokens\":500,\"system\":\"Be exact.\",\"messages\":[ ",
                self.messages(steps),
                "],\"model\":\"gpt-5\", \"x_n\":1.50 }",
            ),
            Spelling::Claude => wrapped(
                "{ \"max_tokens\":500,\"cache_control\":{\"type\":\"ephemeral\"},\"system\":\"Be exact.\",\"messages\":[ ",
                self.messages(steps),
                "],\"model\":\"claude-sonnet-4-5\", \"x_n\":1.50 }",
            ),
            Spelling::Responses => wrapped(
                "{\"model\":\"gpt-5\" ,\"instructions\":\"Be exact.\", \"input\":[",
                self.responses(steps),
                "\n], \"store\":false,\"x_n\":2E+3}",
            ),
        };
        (1..=STEPS).map(request).collect()
    }

    fn chat(&self, steps: usize) -> Vec<String> {
        let text = |role: &str, text: &str| format!("{{\"role\":\"{role}\", \"content\":{text:?}}}");
        let mut items = vec![text("system", "Be exact."), text("user", &self.task)];
        for step in &self.steps[..steps - 1] {
            let calls = step.calls.iter().map(|call| {
                format!("{{\"type\":\"function\",\"id\":\"{}\",\"function\":{{\"name\":\"shell\",\"arguments\":\"{{}}\"}} }}", call.id)
            });
            let reasoning = if step.thinks { ",\"reasoning_content\":\"hm\\u002e\"" } else { "" };
            items.push(format!(
                "{{ \"role\":\"assistant\",\"content\":{:?}{reasoning} ,\"tool_calls\":[{}]}}",
                step.says,
                calls.collect::<Vec<_>>().join(" , ")
            ));
            items.extend(step.calls.iter().map(|call| {
                let content = call.content("[{\"text\":", ", \"type\":\"text\"} ]");
                format!(
                    "{{\"tool_call_id\" : \"{}\",\"content\": {content},\"x_u\":null, \"role\":\"tool\"}}",
                    call.id
                )
            }));
            items.extend(step.question.iter().map(|question| text("user", question)));
        }
        items
    }

    fn messages(&self, steps: usize) -> Vec<String> {
        let mut items = vec![format!("{{\"role\":\"user\",\"content\": {:?}}}", self.task)];
        for (number, step) in self.steps[..steps - 1].iter().enumerate() {
            let mut blocks = Vec::new();
            if step.thinks {
                blocks.push(format!(
                    "{{\"type\":\"thinking\",\"thinking\":\"Hm\\u002e\", \"signature\":\"s{number}\"}}"
                ));
            }
            blocks.push(format!("{{\"type\": \"text\",\"text\":{:?}}}", step.says));
            blocks.extend(step.calls.iter().map(|call| {
                format!(
                    "{{\"type\":\"tool_use\",\"id\":\"{}\",\"name\":\"shell\",\"input\": {{\"a\":1.0}}}}",
                    call.id
                )
            }));
            items.push(format!("{{\"role\":\"assistant\" ,\"content\":[{}]}}", blocks.join(", ")));
            let mut blocks: Vec<String> = step
                .calls
                .iter()
                .map(|call| {
                    let content = call.content("[ {\"type\":\"text\",\"text\":", "}]");
                    let error = if call.is_custom { ",\"is_error\":true" } else { "" };
                    format!(
                        "{{\"tool_use_id\":\"{}\" , \"content\":{content}{error},\"type\":\"tool_result\"}}",
                        call.id
                    )
                })
                .collect();
            blocks.extend(
                step.question.iter().map(|question| format!("{{\"type\":\"text\",\"text\":{question:?} }}")),
            );
            items.push(format!("{{\"content\": [{}], \"role\":\"user\"}}", blocks.join(",")));
        }
        items
    }

    fn responses(&self, steps: usize) -> Vec<String> {
        let user = |text: &str| {
            format!("{{\"role\":\"user\",\"content\":[ {{\"type\":\"input_text\",\"text\":{text:?}}}]}}")
        };
        let mut items = vec![user(&self.task)];
        for (number, step) in self.steps[..steps - 1].iter().enumerate() {
            if step.thinks {
                items.push(format!("{{\"type\":\"reasoning\" ,\"id\":\"rs_{number}\",\"summary\":[],\"encrypted_content\":\"gAA{number}\"}}"));
            }
            items.push(format!(
                "{{\"type\":\"message\",\"id\":\"msg_{number}\", \"role\":\"assistant\",\"content\":[{{\"type\":\"output_text\",\"text\":{:?}, \"annotations\":[] }}]}}",
                step.says
            ));
            items.extend(step.calls.iter().map(|call| match call.is_custom {
                true => format!("{{\"type\":\"custom_tool_call\",\"call_id\":\"{}\", \"name\":\"patch\",\"input\":\"*\"}}", call.id),
                false => format!("{{\"type\":\"function_call\",\"call_id\":\"{}\",\"name\":\"shell\" ,\"arguments\":\"{{}}\"}}", call.id),
            }));
            items.extend(step.calls.iter().map(|call| {
                let kind = if call.is_custom { "custom_tool_call_output" } else { "function_call_output" };
                let output = call.content("[{\"type\":\"input_text\", \"text\":", "}]");
                format!("{{\"call_id\": \"{}\",\"output\":{output} , \"type\":\"{kind}\"}}", call.id)
            }));
            items.extend(step.question.iter().map(|question| user(question)));
        }
        items
    }
}

impl Call {
    /// The output as a string, or as the text of a single part.
    fn content(&self, before: &str, behind: &str) -> String {
        match self.in_parts {
            true => format!("{before}{:?}{behind}", self.output),
            false => format!("{:?}", self.output),
        }
    }
}

fn wrapped(before: &str, items: Vec<String>, behind: &str) -> String {
    format!("{before}{}{behind}", items.join(" ,\n"))
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % count
    }

    /// So many words, which JSON and Rust escape the same way.
    fn text(&mut self, words: usize) -> String {
        const WORDS: [&str; 12] = [
            "tide",
            "gate",
            "harbour",
            "pilot",
            "buoy",
            "draft",
            "mast",
            "keel",
            "\"quay\"",
            "ebb\nflow",
            "wharf",
            "lock",
        ];
        let words: Vec<String> =
            (0..words).map(|_| format!("{} {}", WORDS[self.below(WORDS.len())], self.below(1000))).collect();
        words.join(" ")
    }
}
