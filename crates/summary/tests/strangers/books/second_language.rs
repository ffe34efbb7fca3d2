//! People whose English is good enough, and not their first language.

use crate::book::{Book, Change, Reach, assistant, tool, twins, user};

pub(crate) const SECOND_LANGUAGE: Book = Book {
    name: "second language",
    tasks: &[
        "Hello, i need help for make the web shop of my uncle. He sells olive oil and wants sell also in other countries.",
        "Good day! We are doing a student project about weather stations and I ask for your support.",
    ],
    facts: &[
        user("My uncle is called {v} and he decides all.", "uncle", &["Spyros", "Anselmo", "Zoltan"]),
        user("The shop have {v} products in the moment.", "products", &["43", "118"]),
        user("For the transport we work together with {v}.", "transport", &["Danfreight", "Kuehl Logistik"]),
        user("We are in the group {v} persons.", "group", &["6", "9"]),
        user("Our professor, Dr. {v}, she wants to see it before.", "professor", &["Nakagawa", "Lindqvist"]),
        user("The bottle costs {v} without the tax.", "bottle", &["8.90 euro", "11.40 euro"]),
        user("I have to tell that the station number {v} is broken.", "broken", &["14", "22"]),
        user("In {v} we have holidays, so nobody answers.", "holidays", &["August", "September"]),
        user("It exists already a domain: {v}", "domain", &["elaia-shop.example", "wetter-ag.example"]),
        user("The bank gives us a credit of {v}.", "bank", &["15.000 euro", "22.500 euro"]),
        user(
            "Please consider the sensor measures only until {v}.",
            "sensor",
            &["minus 20 degrees", "65 degrees"],
        ),
        user("The contact at the customs office is Mrs {v}.", "customs", &["Ferreira", "Yılmaz"]),
        assistant(
            "I calculated that shipping to Sweden costs {v} per box.",
            "sweden",
            &["14.20 euros", "19.75 euros"],
        ),
        assistant("The station sends a packet every {v}.", "packet", &["17 seconds", "5 minutes"]),
        tool("vat_rate: {v}", "vat_rate", &["0.24", "0.21"]),
        tool("error: could not open serial port {v}", "serial", &["/dev/ttyUSB3", "COM7"]),
    ],
    changes: &[
        Change {
            settled: &[
                "For the payment we take {v}.",
                "We want that the payment goes over {v}.",
                "The payment we make with {v}.",
            ],
            revised: &[
                "I changed idea, for the payment is better {v}.",
                "Since now we use {v} for the payment.",
                "My uncle doesn't want {o}, we take {v}.",
                "The payment must to be {v}, i was wrong.",
                "Please not {o}. We go to {v}.",
            ],
            values: &["Klarna", "PayPal", "Stripe"],
            reach: Reach::Far,
        },
        Change {
            settled: &[
                "The opening of the shop is at {v}.",
                "We open the shop the {v}.",
                "We decided open the shop on {v}.",
            ],
            revised: &[
                "The opening of the shop is shifted to {v}.",
                "Sorry, we will open the shop the {v} and not the {o}.",
                "It is a new date for the opening: {v}.",
                "We must open the shop more late, on {v}.",
                "The {o} is not possible any more, so the {v}.",
            ],
            values: &["10 September", "24 September", "8 October"],
            reach: Reach::Far,
        },
        Change {
            settled: &[
                "The colour of the page shall be {v}.",
                "We like {v} as colour of the page.",
                "Colour of the page: {v}.",
            ],
            revised: &[
                "The colour of the page shall now be {v}.",
                "We prefer now {v} as colour of the page.",
                "{o} looks ugly, please make the page {v}.",
                "Colour of the page, new wish: {v}.",
                "Instead {o} we want {v} for the page.",
            ],
            values: &["dark olive", "light yellow", "warm grey"],
            reach: Reach::Far,
        },
        Change {
            settled: &[
                "The minimum order is {v}.",
                "Minimum order we say {v}.",
                "One must order minimum {v}.",
            ],
            revised: &[
                "The minimum order goes up to {v}.",
                "I made a mistake with the minimum order, it is {v}.",
                "Minimum order is not {o} but {v}.",
                "We made the minimum order {v} yesterday.",
                "New minimum order: {v}.",
            ],
            values: &["4 bottles", "6 bottles", "12 bottles"],
            reach: Reach::Far,
        },
        Change {
            settled: &["We measure each {v}.", "The measuring is all {v}."],
            revised: &["No, better {v}.", "Ah excuse me, {v}.", "We take {v} instead.", "I mean {v}, sorry."],
            values: &["3 hours", "8 hours", "16 hours"],
            reach: Reach::Near,
        },
    ],
    twins: &[
        twins("The price for Germany is 13.50.", "13.50", "The price for Finland is 15.90.", "15.90"),
        twins("Giorgos makes the photos.", "giorgos", "Despina makes the texts.", "despina"),
        twins(
            "For the invoices we take the program Lexia.",
            "lexia",
            "For the stock we take the program Depot3.",
            "depot3",
        ),
        twins(
            "We changed the small bottle to 250 ml.",
            "250 ml",
            "We changed the big bottle to 750 ml.",
            "750 ml",
        ),
        twins(
            "The station in the north has battery.",
            "battery",
            "The station in the south has solar panel.",
            "solar",
        ),
    ],
    echoes: &["Okay, {v}.", "Good, I will use {v}.", "All clear.", "I have written down {v}."],
    user_filler: &[
        "Thank you very much for the explication!",
        "I don't understand good the last part.",
        "Wait please, I must look in the dictionary.",
        "Yes it is like this.",
        "How do you say this in more simple words?",
        "Yesterday I tried {n} times and then it functioned.",
        "My friend says that is normal.",
        "Super!",
        "It is already {n} o'clock here, I continue tomorrow.",
    ],
    assistant_filler: &[
        "Of course. In simpler words: the page asks the server for the list and shows it.",
        "You can do this in {n} steps. Start with the product pictures, because they take the longest.",
        "I recommend that you write one short text for each product. A good text says where the oil comes from, how it tastes and what it goes well with. Two or three sentences are enough, and customers read the first one only. I can propose a first version if you send me some notes.",
        "The diagram shows the values of {n} days. They look normal.",
        "That is correct. Shall we continue with the next part?",
    ],
    tool_filler: &[
        "uploaded picture_{n}.jpg\nuploaded picture_{n}b.jpg\nok\n",
        "temp;hum;press\n{n}.1;40;1012\n{n}.3;41;1012\n",
        "{\"ok\": true, \"count\": {n}}",
    ],
};
