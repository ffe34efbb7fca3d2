//! People who dictate: what matters stands somewhere inside long sentences.

use crate::book::{Book, Change, Reach, assistant, tool, twins, user};

pub(crate) const RAMBLING: Book = Book {
    name: "dictated rambling",
    tasks: &[
        "So I'm writing this grant application for our river restoration thing and honestly I could use someone to bounce ideas off, so that's you now.",
        "Okay so we bought this old farmhouse and we're doing it up ourselves and I just want to talk things through while I drive.",
    ],
    facts: &[
        user(
            "I ran into the plumber, {v} is his name by the way, and he thinks the pipes are from before the war.",
            "plumber",
            &["Alasdair", "Wendell"],
        ),
        user(
            "So it seems the old owners, who never told us anything, left {v} of heating oil in the tank, which is nice.",
            "heating oil",
            &["1,900 litres", "600 litres"],
        ),
        user(
            "You know what, the foundation people told me on the phone they never give more than {v}, so there's no point asking for the moon.",
            "foundation",
            &["75,000 dollars", "40,000 dollars"],
        ),
        user(
            "My sister, who is a biologist and knows this stuff, counted {v} species on one afternoon.",
            "species",
            &["37", "62"],
        ),
        user(
            "And before I forget, the neighbour's bull is called {v} and he's not as friendly as he looks.",
            "bull",
            &["Hercules", "Fernando"],
        ),
        user(
            "There was this guy from the ministry, {v} something, and he said they'd back us if we asked nicely.",
            "ministry",
            &["Rasmussen", "Villanueva"],
        ),
        user(
            "The thing is the beam in the kitchen is only {v} thick and the new stove weighs a ton.",
            "beam",
            &["11 centimetres", "14 centimetres"],
        ),
        user(
            "We did the measurements again with the good tape and the barn is {v} long, not that it matters much.",
            "barn",
            &["23.4 metres", "18.7 metres"],
        ),
        user(
            "Apparently the form they want is the {v} one, which nobody could find for a week.",
            "form",
            &["RG-14", "B-220"],
        ),
        user(
            "I should say that we can only work on it on {v} because of the kids.",
            "kids",
            &["Sundays", "Fridays"],
        ),
        user(
            "What I learned the hard way is that the well runs dry in {v}, every single year.",
            "well",
            &["July", "late August"],
        ),
        assistant(
            "Given those numbers, the whole stretch loses roughly {v} of soil each year.",
            "soil",
            &["310 tonnes", "95 tonnes"],
        ),
        assistant(
            "From what you describe, the wiring was probably done around {v} and should be checked.",
            "wiring",
            &["1962", "1958"],
        ),
        tool("gauge 3 (mill bridge): {v}", "gauge", &["1.82 m", "2.46 m"]),
        tool("quote from roofer: {v} incl. scaffolding", "roofer", &["17,350", "21,900"]),
    ],
    changes: &[
        Change {
            settled: &[
                "I've been thinking about the roof and I reckon we'll just do it in {v} and be done with it.",
                "So the roof, right, that's going to be {v}, we talked about it all evening.",
                "Okay so for the roof we picked {v} in the end.",
            ],
            revised: &[
                "So about the roof, I know I said {o}, but we had another look and it's going to be {v}.",
                "My husband hates {o}, so we'll do the roof in {v}.",
                "I've come round to {v} for the roof, it just lasts longer.",
                "Funny story, they don't even sell {o} around here, so the roof will be {v}.",
                "The roof is going to be {v}, and this time I mean it.",
            ],
            values: &["red tiles", "slate shingles", "corrugated zinc"],
            reach: Reach::Far,
        },
        Change {
            settled: &[
                "The application goes out on {v}, I've circled it in red.",
                "They want the application by {v} and not a minute later.",
                "We said we'd send the application on {v}.",
            ],
            revised: &[
                "You'll laugh, they pushed the date for the application to {v}.",
                "I checked the website again and the application is due {v}, so we're fine.",
                "Forget {o}, we've got until {v} now.",
                "Well it turns out the application has to be there on {v}.",
                "It's {v} for the application, I misread the letter.",
            ],
            values: &["the 3rd of March", "the 18th of March", "the 29th of April"],
            reach: Reach::Far,
        },
        Change {
            settled: &[
                "We're asking for {v} in total, that's what the spreadsheet says.",
                "The total we ask for is {v}, I did the sums twice.",
                "So in total I'd put down {v}.",
            ],
            revised: &[
                "I had forgotten the fish ladder, so the total we ask for is {v}.",
                "We can't ask for {o}, that's too much, so it's {v} in total.",
                "The total went up to {v} once we added the insurance.",
                "Let's bring the total down to {v}, it looks better.",
                "The total in the spreadsheet was off, it should have been {v}.",
            ],
            values: &["58,400", "63,900", "71,250"],
            reach: Reach::Far,
        },
        Change {
            settled: &[
                "I asked around and {v} is going to do the electrics for us.",
                "We hired {v} for the electrics, nice people.",
                "The electrics are being done by {v}, I signed it this morning.",
            ],
            revised: &[
                "{o} never called back, so {v} is doing the electrics.",
                "Long story short, we fired {o} and got {v}.",
                "The electrics are now with {v}, let's hope for the best.",
                "We ended up with {v} for the electrics.",
                "I gave the electrics to {v} in the end, they had time.",
            ],
            values: &["Brogan Brothers", "Voltaire Electric", "Sparks & Daughter"],
            reach: Reach::Far,
        },
        Change {
            settled: &["I'd say we plant {v} along the bank to begin with."],
            revised: &[
                "Or let's say {v}, that's safer.",
                "No hang on, {v}.",
                "Well, {v} would be more like it.",
                "Actually no, {v}.",
            ],
            values: &["150 willows", "240 willows", "400 willows"],
            reach: Reach::Near,
        },
    ],
    twins: &[
        twins(
            "We'll paint the bedroom in that pale blue they had, cornflower I think.",
            "cornflower",
            "We'll paint the hallway in that cream they had, ivory I think.",
            "ivory",
        ),
        twins(
            "The upper stretch of the river belongs to the Hendersons, as far as anyone knows.",
            "hendersons",
            "The lower stretch of the river belongs to the abbey, as far as anyone knows.",
            "abbey",
        ),
        twins(
            "I changed the lock on the front door to one of those with a 6-digit code.",
            "6-digit",
            "I changed the lock on the cellar door to one of those with a padlock.",
            "padlock",
        ),
        twins(
            "For the sand we use the quarry at Dunmore, it's close.",
            "dunmore",
            "For the gravel we use the quarry at Ashby, it's cheap.",
            "ashby",
        ),
    ],
    echoes: &["Makes sense, {v} then.", "Okay, {v}, I'll keep that in mind.", "Good to know.", "Noted, {v}."],
    user_filler: &[
        "Anyway, where was I.",
        "It's raining so hard I can barely see the road, but never mind.",
        "I don't know, what do you think?",
        "There was a queue of {n} cars at the bridge, can you believe it.",
        "Let me just park and then I'll go on.",
        "Yeah yeah, that's what everybody says.",
        "I had this dream about the house having {n} doors.",
        "Sorry, that was the phone.",
    ],
    assistant_filler: &[
        "That makes sense. It often helps to write down the three most important points before going into detail.",
        "A good application tells a story: what the river was, what it is now and what it could be again. Reviewers read {n} of them in a week, so the first paragraph decides. Put the people who live there into it, say what they lost and what they would gain, and keep the technical part for the annex.",
        "I would ask two or three firms and compare.",
        "Old houses are full of surprises. Take photos before you open any wall.",
        "What would happen if you waited another {n} weeks?",
    ],
    tool_filler: &[
        "route recalculated\n{n} km to destination\n",
        "note {n} saved\n",
        "level;time\n1.{n};06:00\n1.{n};07:00\n",
    ],
};
