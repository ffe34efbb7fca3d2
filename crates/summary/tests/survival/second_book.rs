//! A second phrasebook, which shares no phrase with the first one.

use crate::phrasebook::{Book, FactPhrase, Matter};

pub(crate) const SECOND: Book = Book {
    user_facts: USER_FACTS,
    assistant_facts: ASSISTANT_FACTS,
    tool_facts: TOOL_FACTS,
    decisions: DECISIONS,
    matters: MATTERS,
    settled: SETTLED,
    resettled: RESETTLED,
    echoes: ECHOES,
    tasks: TASKS,
    user_chatter: USER_CHATTER,
    assistant_chatter: ASSISTANT_CHATTER,
    tool_output: TOOL_OUTPUT,
};

const fn said(text: &'static str, beside: &'static str, values: &'static [&'static str]) -> FactPhrase {
    FactPhrase { text, beside, values }
}

const USER_FACTS: &[FactPhrase] = &[
    said("fyi the wifi password at the cabin is {v}", "wifi", &["moose-4-dinner", "Lakeside22"]),
    said("Talk to {v} if you need access to the vault.", "vault", &["Henrike Boll", "Sandro"]),
    said("We've had this bug since release {v}.", "bug", &["3.8", "2024.2"]),
    said("There's a hard cap of {v} uploads per hour on their API.", "uploads", &["120", "4,000"]),
    said("Grandma arrives on the {v} train.", "grandma", &["16:42", "09:05"]),
    said("I can't lift anything heavier than {v} after the operation.", "operation", &["5 kg", "ten pounds"]),
    said("The main character is a lighthouse keeper named {v}.", "lighthouse", &["Elias", "Runa"]),
    said(
        "Invoices go to {v}, never to the old address.",
        "invoices",
        &["billing@example.org", "ap@example.com"],
    ),
    said("The roof was last done in {v}.", "roof", &["1987", "2011"]),
    said("Our warehouse software only understands {v}.", "software", &["latin1", "EBCDIC"]),
    said("Two of the kids are scared of {v}, keep that in mind.", "kids", &["dogs", "heights"]),
    said("The lab closes at {v} on weekdays.", "lab", &["18:30", "seven"]),
    said("For what it's worth, the sensor drifts about {v} a week.", "sensor", &["0.3 degrees", "2 %"]),
    said(
        "The landlord, a certain {v}, has the last word on paint.",
        "landlord",
        &["Mr Achterberg", "Mrs Quill"],
    ),
];

const ASSISTANT_FACTS: &[FactPhrase] = &[
    said("From the logs, memory peaks at {v} during the export.", "memory", &["11.4 GB", "920 MB"]),
    said("The shortest route is {v} by car.", "route", &["284 km", "61 miles"]),
];

const TOOL_FACTS: &[FactPhrase] = &[
    said("FAILED tests/test_tax.py::test_{v} - AssertionError: 19 != 21", "failed", &["rounding", "refund"]),
    said("order_id={v} state=backordered", "order_id", &["PO-6612", "PO-901"]),
];

const DECISIONS: &[FactPhrase] = &[
    said("Everything in {v}, please, I don't want a mix of units.", "units", &["metric", "imperial"]),
    said("I've made up my mind: the story ends in {v}.", "story", &["winter", "a storm"]),
    said("No meetings before {v}, that's a promise I made to the team.", "meetings", &["ten", "9:30"]),
    said("We are committing to {v} for authentication.", "authentication", &["Keycloak", "passkeys"]),
    said("The walls get {v}, my wife has spoken.", "walls", &["sage", "eggshell"]),
];

const MATTERS: &[Matter] = &[
    Matter { name: "the departure time", values: &["7:15", "8:40", "noon"] },
    Matter { name: "the queue library", values: &["Celery", "Dramatiq", "Huey"] },
    Matter { name: "the keynote speaker", values: &["Amara Diallo", "Jens Holt", "Mei Tanaka"] },
    Matter { name: "the page size", values: &["25 rows", "50 rows", "100 rows"] },
    Matter { name: "the main course", values: &["mushroom risotto", "roast lamb", "baked cod"] },
];

const SETTLED: &[&str] = &[
    "We can consider {m} done: {v}.",
    "I'm happy with {v} for {m}.",
    "As for {m}, everyone voted {v}.",
    "{m} is going to be {v}.",
    "Write {v} into the plan for {m}.",
];

const RESETTLED: &[&str] = &[
    "Bad news, {v} has to be {m}, {o} fell through.",
    "Update on {m}: {v}.",
    "Let's not do {o} for {m}. I prefer {v}.",
    "{m} needs to be {v}, my mistake.",
    "After sleeping on it, I would rather have {v} for {m}.",
    "Scrap {o}. We want {v} for {m}.",
    "Remember {m}? It became {v} yesterday.",
];

const ECHOES: &[&str] = &["Great, {v} for {m} then.", "I've put {v} down for {m}.", "Will do."];

const TASKS: &[&str] = &[
    "Hey, I want to turn my grandfather's letters into a small book. You will help me with structure and style.",
    "We need a load test for the checkout before Black Friday. Let's build it together.",
    "Plan a week in the mountains for nine people, please. Some of them have never hiked.",
];

const USER_CHATTER: &[&str] = &[
    "Mm, fair.",
    "Can you shorten that?",
    "I had to restart my machine {n} times today.",
    "Show me the next one.",
    "What does that do exactly?",
    "That's a lot of text. I read about half of it.",
    "Let me think about it over lunch.",
    "Interesting!",
    "Try that with {n} instead.",
    "I forwarded it to Carla.",
    "Not what I expected, but okay.",
];

const ASSISTANT_CHATTER: &[&str] = &[
    "Here is a shorter version. It drops the second paragraph and keeps the rest as it was.",
    "That takes about {n} lines. I can make it more compact if you prefer.",
    "It reads the input, groups it by day and writes one line for each group. Nothing else depends on it.",
    "I compared both variants and they differ in {n} places, all of them cosmetic.",
    "Of course. What tone do you have in mind?",
    "I ran it with the new setting. The result is the same as in round {n}.",
];

const TOOL_OUTPUT: &[&str] = &[
    "ok {n}\nok {n}\nskipped 1\n",
    "<html><head><title>Results {n}</title></head><body>...</body></html>",
    "name,amount\nalpha,{n}\nbeta,{n}\ngamma,3\n",
    "Downloading part {n} of 99\nDownloading part {n} of 99\nverified\n",
];
