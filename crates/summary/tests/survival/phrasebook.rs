//! What people say in the generated conversations. Written as people write, and not after the extractor's
//! rules: many of these phrasings have no rule there.

/// A fact: what is said, with `{v}` for a value, and the word that a summary must show beside the value.
#[derive(Clone, Copy)]
pub(crate) struct FactPhrase {
    pub(crate) text: &'static str,
    pub(crate) beside: &'static str,
    pub(crate) values: &'static [&'static str],
}

/// Everything that can be said in a conversation.
pub(crate) struct Book {
    pub(crate) user_facts: &'static [FactPhrase],
    pub(crate) assistant_facts: &'static [FactPhrase],
    pub(crate) tool_facts: &'static [FactPhrase],
    pub(crate) decisions: &'static [FactPhrase],
    pub(crate) matters: &'static [Matter],
    pub(crate) settled: &'static [&'static str],
    pub(crate) resettled: &'static [&'static str],
    pub(crate) echoes: &'static [&'static str],
    pub(crate) tasks: &'static [&'static str],
    pub(crate) user_chatter: &'static [&'static str],
    pub(crate) assistant_chatter: &'static [&'static str],
    pub(crate) tool_output: &'static [&'static str],
}

pub(crate) const FIRST: Book = Book {
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

const PEOPLE: &[&str] =
    &["Ottoline Varga", "Ravi Menon", "Birgit Aas", "Tomasz Kruk", "Imani Okoye", "Lucía Prado"];
const PLACES: &[&str] = &["Trondheim", "Valparaíso", "Leipzig", "Galway", "Porto", "Tartu"];

const USER_FACTS: &[FactPhrase] = &[
    FactPhrase { text: "By the way, procurement goes through {v}.", beside: "procurement", values: PEOPLE },
    FactPhrase {
        text: "If anything breaks at night, {v} carries the pager.",
        beside: "pager",
        values: PEOPLE,
    },
    FactPhrase { text: "My counterpart on the customer side is {v}.", beside: "counterpart", values: PEOPLE },
    FactPhrase {
        text: "{v} will review the legal wording before anything goes out.",
        beside: "legal",
        values: PEOPLE,
    },
    FactPhrase {
        text: "we can spend {v} on this and not a cent more",
        beside: "spend",
        values: &["18,400 euros", "$7,250", "92k"],
    },
    FactPhrase {
        text: "The staging box listens on port {v}, don't ask me why.",
        beside: "staging",
        values: &["9417", "18081", "7733"],
    },
    FactPhrase {
        text: "Oh, and there are {v} of them in the warehouse.",
        beside: "warehouse",
        values: &["1,312", "486", "20,955"],
    },
    FactPhrase {
        text: "The contract runs out on {v}.",
        beside: "contract",
        values: &["14 August", "2 November", "30 January"],
    },
    FactPhrase {
        text: "Their office moved to {v} last autumn, so mind the time zone.",
        beside: "office",
        values: PLACES,
    },
    FactPhrase {
        text: "Ticket {v} tracks the permission mess.",
        beside: "permission",
        values: &["OPS-2291", "HELP-817", "INF-4410"],
    },
    FactPhrase {
        text: "We are stuck on {v} of the driver until the vendor ships a fix.",
        beside: "driver",
        values: &["4.7.1", "2.19.0", "11.3"],
    },
    FactPhrase {
        text: "The old documentation sits at {v} in case you need it.",
        beside: "documentation",
        values: &["https://wiki.example.org/x/81", "https://docs.example.net/old"],
    },
    FactPhrase {
        text: "Half of the guests can't eat {v}.",
        beside: "guests",
        values: &["gluten", "shellfish", "peanuts"],
    },
    FactPhrase {
        text: "One thing the auditors insist on: records stay for {v}.",
        beside: "auditors",
        values: &["7 years", "18 months", "90 days"],
    },
    FactPhrase {
        text: "customer id for the pilot: {v}",
        beside: "pilot",
        values: &["cus_88fQ2", "acct-51907", "K-3304"],
    },
    FactPhrase {
        text: "My daughter plays the lead and her name is {v}.",
        beside: "daughter",
        values: &["Saskia", "Noor", "Philippa"],
    },
    FactPhrase {
        text: "The mascot, since you asked, answers to {v}.",
        beside: "mascot",
        values: &["Biscuit", "Admiral", "Pickle"],
    },
    FactPhrase {
        text: "Whatever happens, response times above {v} get us fined.",
        beside: "response",
        values: &["350 ms", "2 seconds", "800 ms"],
    },
    FactPhrase {
        text: "The boiler room keys hang behind the {v} door.",
        beside: "boiler",
        values: &["green", "cellar", "pantry"],
    },
    FactPhrase {
        text: "Payroll closes every {v}, so nothing may run then.",
        beside: "payroll",
        values: &["Thursday", "Tuesday", "25th"],
    },
];

const ASSISTANT_FACTS: &[FactPhrase] = &[
    FactPhrase {
        text: "I measured it: the nightly import takes {v} on average.",
        beside: "import",
        values: &["47 minutes", "3.2 hours"],
    },
    FactPhrase {
        text: "The certificate turned out to expire on {v}.",
        beside: "certificate",
        values: &["9 October", "21 February"],
    },
    FactPhrase {
        text: "According to the registry the domain belongs to {v}.",
        beside: "domain",
        values: &["Halden Media AS", "Brightwater Ltd"],
    },
];

const TOOL_FACTS: &[FactPhrase] = &[
    FactPhrase {
        text: "{\"account_balance\": {v}, \"currency\": \"EUR\"}",
        beside: "account_balance",
        values: &["4312.75", "88190.10"],
    },
    FactPhrase {
        text: "error: disk quota exceeded on volume {v}",
        beside: "quota",
        values: &["vol-77", "nas-12"],
    },
    FactPhrase {
        text: "thread 'main' panicked at src/ledger.rs:{v}: index out of bounds",
        beside: "panicked",
        values: &["214", "77"],
    },
];

const DECISIONS: &[FactPhrase] = &[
    FactPhrase {
        text: "OK, {v} for the message broker, that's final.",
        beside: "broker",
        values: &["NATS", "RabbitMQ", "Pulsar"],
    },
    FactPhrase {
        text: "I talked to everyone and we are doing the rollout in {v}.",
        beside: "rollout",
        values: &["four waves", "two regions", "one go"],
    },
    FactPhrase {
        text: "The cover will be {v}, no discussion.",
        beside: "cover",
        values: &["burgundy", "matte black", "teal"],
    },
    FactPhrase {
        text: "We're taking {v} as the license.",
        beside: "license",
        values: &["MPL-2.0", "Apache-2.0", "GPLv3"],
    },
    FactPhrase {
        text: "Nobody touches the {v} table without a ticket.",
        beside: "ticket",
        values: &["ledger", "invoices", "consent"],
    },
    FactPhrase {
        text: "My vote, and the vote that counts, goes to {v} for the logo font.",
        beside: "font",
        values: &["Garamond", "Inter", "Futura"],
    },
];

/// A matter that is settled and then settled otherwise: its name as it is said, the word a summary must show,
/// the values.
#[derive(Clone, Copy)]
pub(crate) struct Matter {
    pub(crate) name: &'static str,
    pub(crate) values: &'static [&'static str],
}

const MATTERS: &[Matter] = &[
    Matter { name: "the launch date", values: &["12 May", "26 May", "9 June"] },
    Matter { name: "the search backend", values: &["Meilisearch", "OpenSearch", "Typesense"] },
    Matter { name: "the venue", values: &["the old brewery", "the boathouse", "the town hall"] },
    Matter { name: "the retry limit", values: &["3 attempts", "5 attempts", "8 attempts"] },
    Matter { name: "the catering budget", values: &["2,400 euros", "3,100 euros", "1,950 euros"] },
    Matter { name: "the default language", values: &["Norwegian", "Portuguese", "Estonian"] },
    Matter { name: "the accent colour", values: &["ochre", "cobalt", "moss green"] },
];

const SETTLED: &[&str] = &[
    "For {m} I have {v} in mind, so plan on that.",
    "{v} it is for {m}.",
    "We talked it over and {m} will be {v}.",
    "Put down {v} as {m}.",
    "Let's go for {v} when it comes to {m}.",
    "Good question; {m} is {v}.",
    "We settled {m} this morning: {v}.",
];

const RESETTLED: &[&str] = &[
    "Hold on, {v} is what we want for {m} now, forget {o}.",
    "Small change on {m}: {v}.",
    "The board overruled me on {m}, so {v} from here.",
    "I've had second thoughts about {m}; make it {v}.",
    "News from upstairs: {m} has moved to {v}, please work from that.",
    "No more {o} for {m}, we take {v}.",
    "About {m} again: it's {v} now, the earlier answer is void.",
    "Turns out {o} was a bad idea for {m}, so {v}.",
    "Sorry to do this to you, but {m} is {v} after all.",
    "Can we please treat {v} as {m} and drop what I said before.",
    "I take back what I said on {m}. It should be {v}.",
];

const ECHOES: &[&str] = &[
    "Noted, {v} for {m}.",
    "All right, I'll work with {v} as {m}.",
    "Good. That makes {m} {v}, and the rest follows from it.",
    "Understood.",
];

const TASKS: &[&str] = &[
    "Hi there! I'd like you to help me get our reporting service ready for the migration. It is a bit of a mess.",
    "Hello. We have to organise the summer festival and I need somebody who keeps track of things.",
    "I'm rewriting the onboarding guide of our company and want to go through it with you chapter by chapter.",
    "Our inventory scripts keep crashing and nobody knows why. Find out and fix them.",
];

const USER_CHATTER: &[&str] = &[
    "Looks fine to me, carry on.",
    "Hm, I don't quite get that step. Can you say it again in other words?",
    "Great, thanks!",
    "Could you go through the next part as well?",
    "ok next",
    "That page took {n} seconds to load on my laptop, funny.",
    "I was away for {n} minutes, where were we?",
    "Please open section {n} and check the tone.",
    "I like the second version more than the first.",
    "Is there a way to see that as a list?",
    "My colleague Jonas says hello.",
    "It rained all day here in Bergen.",
    "Run the thing once more and tell me what it prints.",
    "Yes, exactly what I meant.",
    "Never mind the typo in line {n}.",
];

const ASSISTANT_CHATTER: &[&str] = &[
    "I went through {n} rows and everything lines up so far. Let me look at the remaining ones before we move on.",
    "Sure! Here is the part you asked for, with the wording made a little tighter. Let me know if it reads better now.",
    "That step only prepares the input. Nothing is written until the last one, so you can repeat it as often as you like.",
    "I'll open the file and see what is in there. After that I will run the checks again.",
    "The list has {n} items now. Would you like me to sort it?",
    "There are two ways to do this. The first is simpler, the second is faster for large inputs. I would start with the simple one.",
    "Done. The output of run {n} looks the same as before, apart from the order of the lines.",
    "Good point. I have moved that paragraph up and shortened the introduction to Chapter {n}.",
    "It depends on how often the job runs. What would you expect on a normal day?",
];

const TOOL_OUTPUT: &[&str] = &[
    "total {n}\ndrwxr-xr-x 2 app app 4096 reports\n-rw-r--r-- 1 app app 812 reports/a{n}.csv\n-rw-r--r-- 1 app app 77 reports/b.csv\n",
    "checked {n} rows\nchecked {n} more rows\nall rows checked\nelapsed {n} s\n",
    "{\"status\": \"ok\", \"page\": {n}, \"items\": []}",
    "warning: unused variable `count`\nwarning: {n} warnings emitted\nfinished in {n}.2 s\n",
    "GET /health 200 {n}ms\nGET /health 200 {n}ms\nGET /items?page={n} 200 41ms\nGET /items?page=2 200 39ms\n",
];
