//! Families, parties and stories: everyday matters in a chatty tone.

use crate::book::{Book, Change, Reach, assistant, tool, twins, user};

pub(crate) const HOUSEHOLD: Book = Book {
    name: "household and stories",
    tasks: &[
        "My parents' golden wedding is coming up and I'm the one who has to organise it, heaven help me. Be my second brain?",
        "I'm running a fantasy campaign for my friends and need you to remember the world while I make it up.",
    ],
    facts: &[
        user("Aunt {v} can't do stairs, so nothing on the first floor.", "stairs", &["Philomena", "Gudrun"]),
        user(
            "The band charges {v} for the evening, daylight robbery if you ask me.",
            "band",
            &["850 quid", "1,300 quid"],
        ),
        user("Little {v} is turning six that week, we need a second cake.", "six", &["Tobias", "Amelie"]),
        user("Dad's old mate {v} is flying in from Perth.", "perth", &["Clive", "Barry"]),
        user(
            "The innkeeper goes by {v}, and she's secretly a dragon.",
            "innkeeper",
            &["Morwenna", "Old Tansy"],
        ),
        user(
            "Mum will kill me if there's {v} anywhere near the buffet.",
            "buffet",
            &["coriander", "blue cheese"],
        ),
        user(
            "The marquee measures {v}, which is bigger than our garden.",
            "marquee",
            &["9 by 12", "6 by 18"],
        ),
        user("Taxi firm's number: {v}", "taxi", &["01632 960 118", "01632 960 554"]),
        user("The magic sword was forged in {v}.", "sword", &["Karth Annor", "the Vale of Ehn"]),
        user("Cousin Jo is bringing {v} chairs, bless her.", "chairs", &["22", "34"]),
        user("They got married in {v}, on a boat of all places.", "married", &["1974", "1975"]),
        user("The key to the hall is with {v} next door.", "key", &["Mr Banerjee", "the Kowalczyks"]),
        assistant("The drive from the station takes about {v}.", "station", &["25 minutes", "40 minutes"]),
        assistant("For that many guests you will want {v} of wine.", "wine", &["28 bottles", "36 bottles"]),
        tool("forecast: {v} chance of rain", "rain", &["70%", "15%"]),
        tool("Hall hire total: {v}", "hire", &["£312", "£465"]),
    ],
    changes: &[
        Change {
            settled: &[
                "I've booked {v} for the do.",
                "We're having it at {v}.",
                "The party's at {v}, all sorted.",
            ],
            revised: &[
                "Ugh, {o} double-booked us. We're at {v}.",
                "You won't believe it, the party's been moved to {v}.",
                "Right, forget {o}, I got us {v}!",
                "Turns out {v} was free after all, so the party's there.",
                "{o} burned down. {v} it'll have to be.",
            ],
            values: &["the cricket club", "St Mary's hall", "the Bluebell"],
            reach: Reach::Far,
        },
        Change {
            settled: &[
                "The party starts at {v}.",
                "Kick-off for the party is {v}.",
                "Everybody should come at {v}.",
            ],
            revised: &[
                "The party starts at {v}, not {o}.",
                "Kick-off is {v} now because of the band.",
                "Could you note that the party starts at {v}, please? The other time was wrong.",
                "We're shifting the start of the party to {v}.",
                "Start of the party: {v}, I got muddled.",
            ],
            values: &["half past four", "six thirty", "quarter to eight"],
            reach: Reach::Far,
        },
        Change {
            settled: &[
                "The villain is {v}.",
                "I want {v} as the villain.",
                "{v} is going to be our villain.",
            ],
            revised: &[
                "Plot twist: the villain is {v}.",
                "The villain is no longer {o} but {v}.",
                "I've gone off {o}. The villain should be {v}.",
                "Let's make {v} the villain.",
                "Wouldn't it be nicer if {v} were the villain? Yes, let's do that.",
            ],
            values: &["the baker's widow", "Lord Oskarn", "a talking raven"],
            reach: Reach::Far,
        },
        Change {
            settled: &["Cake will be {v}.", "I ordered {v} for the cake.", "For the cake: {v}."],
            revised: &[
                "Cancel the {o}, mum wants {v}.",
                "The cake's going to be {v} now.",
                "Turns out nobody likes {o}, so the cake is {v}.",
                "I swapped the cake for {v}.",
                "As to the cake, {v} after all.",
            ],
            values: &["lemon drizzle", "black forest", "carrot and walnut"],
            reach: Reach::Far,
        },
        Change {
            settled: &["We need {v} for the tables.", "I'll get {v} for the tables."],
            revised: &["Or no, {v}.", "Nope, {v}!", "Oh, make that {v}.", "Better get {v}."],
            values: &["14 candles", "21 candles", "32 candles"],
            reach: Reach::Near,
        },
    ],
    twins: &[
        twins("Uncle Ted sits at the top table.", "ted", "Uncle Norman sits at the garden table.", "norman"),
        twins("The elves speak Sylvan.", "sylvan", "The dwarves speak Kharzûl.", "kharzûl"),
        twins(
            "I'd rather have lilies for the church.",
            "lilies",
            "I'd rather have poppies for the hall.",
            "poppies",
        ),
        twins("The starter is leek soup.", "leek", "The pudding is sticky toffee.", "toffee"),
        twins(
            "Let's move the photos to the porch.",
            "porch",
            "Let's move the speeches to the lounge.",
            "lounge",
        ),
    ],
    echoes: &["Lovely, {v}!", "Great choice. I've added {v}.", "Consider it done.", "{v}, got it."],
    user_filler: &[
        "Haha, true.",
        "I need a coffee.",
        "What would I do without you.",
        "The dog just ate {n} biscuits, hang on.",
        "Tell me that again but shorter?",
        "I've been on the phone for {n} minutes with my sister.",
        "Hmm, I'm not sure about that bit.",
        "Sounds about right.",
        "Oh that's clever!",
    ],
    assistant_filler: &[
        "That sounds like a wonderful idea. People will remember it for years.",
        "Here is a first version of the toast. It starts with how they met, goes on with the children and ends with a joke about the caravan. It takes about {n} minutes to read aloud, which is just right for this kind of evening. If you want it shorter, the second part is the one to cut.",
        "I'd keep the quiz to {n} questions.",
        "A list of what is left to do:\n- playlist\n- seating\n- thank-you notes\n\nNothing of that is urgent.",
        "Do you want me to write it in a more formal tone?",
    ],
    tool_filler: &[
        "rolled d20: {n}\nrolled d6: 3\n",
        "3 recipes found\n1. soup ({n} min)\n2. pie ({n} min)\n3. stew (95 min)\n",
        "{\"saved\": true, \"bytes\": {n}}",
    ],
};
