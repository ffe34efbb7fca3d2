//! Teachers who plan a trip and a term: brisk, friendly, in between lessons.

use crate::book::{Book, Change, Reach, assistant, tool, twins, user};

pub(crate) const SCHOOL: Book = Book {
    name: "school",
    tasks: &[
        "I'm taking year nine on a field trip this term and you're going to keep my notes together.",
        "Help me prepare the school's science week, I'll feed you bits and pieces between lessons.",
    ],
    facts: &[
        user(
            "The coach company is called {v}, ask for the lady in charge.",
            "coach",
            &["Harlow Travel", "Redline"],
        ),
        user("We've got {v} pupils signed up so far.", "pupils", &["58", "73"]),
        user("One girl in the group carries an EpiPen, her name's {v}.", "epipen", &["Zara", "Ottilie"]),
        user("The head wants a risk assessment by {v}.", "risk", &["14 March", "2 April"]),
        user("The museum entrance is {v} a head.", "museum", &["£7.20", "£9.80"]),
        user("Our lab assistant {v} is off on Wednesdays.", "lab", &["Mr Pugh", "Ms Delgado"]),
        user("Room {v} has the only working projector.", "projector", &["B14", "K3"]),
        user("Parents can ring {v} during the trip.", "parents", &["0118 496 0022", "0118 496 0075"]),
        user("The caretaker locks up at {v} sharp.", "caretaker", &["17:40", "18:20"]),
        user("Last year somebody lost {v} goggles, so count them.", "goggles", &["eleven", "nineteen"]),
        user("The photocopier code is {v}, don't tell the kids.", "photocopier", &["4486", "9027"]),
        user(
            "{v} from the council will visit us on the last day.",
            "council",
            &["Mrs Abernathy", "Mr Lindgren"],
        ),
        assistant("The walk from the car park to the site is {v}.", "walk", &["1.4 km", "850 m"]),
        assistant("With these numbers you need {v} adults by law.", "adults", &["5", "7"]),
        tool("tide table: low water at {v}", "tide", &["11:52", "13:07"]),
        tool("{\"budget_code\": \"{v}\", \"open\": true}", "budget_code", &["SCI-204", "TRIP-17"]),
    ],
    changes: &[
        Change {
            settled: &["We're going to {v}.", "The trip goes to {v}.", "I've settled on {v} for the trip."],
            revised: &[
                "The trip can't go to {o}, they're renovating. We're going to {v}.",
                "Right, new destination for the trip: {v}.",
                "{v} instead of {o}, the head insists.",
                "I've switched the trip to {v}.",
                "We won't go to {o} but to {v}.",
            ],
            values: &["Kestrel Bay", "the slate mine", "the bird reserve"],
            reach: Reach::Far,
        },
        Change {
            settled: &["We leave at {v}.", "Departure is {v}.", "Departure will be at {v}, tell everyone."],
            revised: &[
                "Departure is at {v} now.",
                "We have to leave earlier, at {v}.",
                "Change the departure to {v}, please.",
                "Departure isn't {o}, it's {v}.",
                "The driver says {o} is no good, so departure is {v}.",
            ],
            values: &["7:50", "8:25", "9:10"],
            reach: Reach::Far,
        },
        Change {
            settled: &[
                "{v} is coming along as first aider.",
                "Our first aider will be {v}.",
                "First aider: {v}",
            ],
            revised: &[
                "{o} has a wedding that day, {v} will be first aider.",
                "The first aider is {v} now.",
                "Please put {v} down as first aider instead of {o}.",
                "I asked {v} to step in for {o}.",
                "Update on the first aider: it's {v}.",
            ],
            values: &["Miss Okafor", "Mr Trevanion", "Mrs Lund"],
            reach: Reach::Far,
        },
        Change {
            settled: &[
                "The topic for science week is {v}.",
                "Science week is about {v}.",
                "We chose {v} as the topic.",
            ],
            revised: &[
                "The topic for science week has changed to {v}.",
                "We dropped {o}; the topic is {v}.",
                "The kids voted for {v} as the topic, so that's that.",
                "Scrap {o} as the topic and take {v}.",
                "Science week is going to be about {v}, not {o}.",
            ],
            values: &["volcanoes", "the human ear", "bridges"],
            reach: Reach::Far,
        },
        Change {
            settled: &["Each group gets {v}.", "Let's give each group {v}."],
            revised: &["No, {v}.", "Let's make it {v}.", "Sorry, {v} I mean.", "Actually {v} will do."],
            values: &["15 minutes", "25 minutes", "45 minutes"],
            reach: Reach::Near,
        },
    ],
    twins: &[
        twins(
            "The year eights bring packed lunches.",
            "packed",
            "The year tens bring pocket money.",
            "pocket",
        ),
        twins(
            "Bus one is for the girls from Elm House.",
            "elm",
            "Bus two is for the boys from Oak House.",
            "oak",
        ),
        twins(
            "The chemistry talk moves to the gym.",
            "gym",
            "The physics talk moves to the chapel.",
            "chapel",
        ),
        twins(
            "Registration for the quiz closes on 6 May.",
            "6 may",
            "Registration for the rocket contest closes on 13 May.",
            "13 may",
        ),
        twins("Use the blue forms for consent.", "blue", "Use the yellow forms for medication.", "yellow"),
    ],
    echoes: &["Got it, {v}.", "Fine. {v} is in the notes.", "Will do!", "I changed the notes to {v}."],
    user_filler: &[
        "Hang on, the bell.",
        "Can you turn that into a letter to parents?",
        "I've got {n} books to mark tonight.",
        "Brilliant.",
        "Remind me what we had so far?",
        "Someone threw a rubber at me, back in {n} minutes.",
        "Hm, that sounds a bit stiff.",
        "The staff room is freezing again.",
    ],
    assistant_filler: &[
        "Here is a friendlier version of the letter. It leaves out the legal part, which goes on the back.",
        "The notes have {n} entries now. Would you like a short overview?",
        "For a trip like this people usually prepare three things: a list of everybody who comes along, a plan for bad weather and a sheet with telephone numbers. The list is the most important of them, because it has to be checked at every stop, and it should fit on one page.",
        "That should take about {n} minutes of a lesson.",
        "Good idea. I would do it at the start, while they still listen.",
    ],
    tool_filler: &[
        "letter_{n}.docx saved\n",
        "weather: {n} % clouds\nwind: {n} km/h\n",
        "printed {n} pages\nprinted {n} pages\ntray 2 empty\n",
    ],
};
