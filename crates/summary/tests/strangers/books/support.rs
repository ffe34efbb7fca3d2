//! A customer and a support agent, both very polite.

use crate::book::{Book, Change, Reach, assistant, tool, twins, user};

pub(crate) const SUPPORT: Book = Book {
    name: "polite support",
    tasks: &[
        "Good afternoon, I hope you can help me. The dishwasher I bought from you has stopped heating and I would like to have it repaired.",
        "Hello, I am having trouble with my internet connection and would be grateful for some assistance.",
    ],
    facts: &[
        user("My order number, if that helps, is {v}.", "order", &["AB-558-2031", "RX-90417"]),
        user("The serial on the back reads {v}.", "serial", &["SN7741-KD", "HH20-5512"]),
        user("You can reach my husband {v} during the day.", "husband", &["Benedikt", "Oluwaseun"]),
        user("We are on the {v} plan, I believe.", "plan", &["Comfort Plus", "Family 250"]),
        user("I bought it at your shop in {v}.", "shop", &["Maastricht", "Aarhus", "Ghent"]),
        user("It shows the code {v} whenever it stops.", "code", &["E-24", "F18"]),
        user("I paid {v} for it in spring.", "paid", &["649 euros", "1,120 euros"]),
        user(
            "The gentleman I spoke with last time was called {v}.",
            "gentleman",
            &["Mr Delacroix", "Mr Szymański"],
        ),
        user("Please note that the doorbell is broken, so knock at number {v}.", "doorbell", &["47b", "112"]),
        user("My membership runs until {v}, as far as I know.", "membership", &["31 October", "15 March"]),
        user(
            "I am afraid I am allergic to {v}, in case anyone comes with one.",
            "allergic",
            &["cats", "latex"],
        ),
        assistant(
            "I can see that your warranty is valid until {v}.",
            "warranty",
            &["8 December 2026", "19 July 2027"],
        ),
        assistant("I have opened case {v} for you.", "case", &["CS-30881", "CS-41270"]),
        assistant(
            "Your line currently delivers {v}, which is below what you pay for.",
            "line",
            &["11.8 Mbit/s", "23.5 Mbit/s"],
        ),
        tool("{\"customer_tier\": \"{v}\", \"since\": 2016}", "customer_tier", &["gold", "platinum"]),
        tool("Warehouse: {v} units of part 00-754 in stock", "warehouse", &["6", "39"]),
    ],
    changes: &[
        Change {
            settled: &[
                "Could the technician come on {v}, please? That would suit us for the visit.",
                "For the technician's visit, {v} would be perfect.",
                "assistant>I have booked the technician for {v}.",
            ],
            revised: &[
                "I am terribly sorry, but {o} no longer works for us. Could you make the visit {v}?",
                "assistant>Unfortunately we had to move the technician's visit to {v}. I apologise for the inconvenience.",
                "Might I trouble you to change the technician's visit to {v}?",
                "It turns out I am away that day, so please send the technician on {v}.",
                "assistant>The technician will now come on {v} instead of {o}.",
            ],
            values: &["Monday the 4th", "Wednesday the 6th", "Saturday the 9th"],
            reach: Reach::Far,
        },
        Change {
            settled: &[
                "I think I would prefer {v} as compensation.",
                "{v} would be fine as compensation, thank you.",
                "As compensation I will accept {v}.",
            ],
            revised: &[
                "On reflection, I would rather have {v} as compensation.",
                "I have reconsidered the compensation and would like {v}.",
                "If it is not too late, {v} as compensation, please, and not {o}.",
                "My wife says {o} is of no use to us, so let us settle on {v}.",
                "Regarding the compensation: {v}, please, we changed our minds.",
            ],
            values: &["a store voucher", "a bank refund", "a free filter set"],
            reach: Reach::Far,
        },
        Change {
            settled: &[
                "Kindly deliver it to {v}.",
                "The delivery address is {v}.",
                "Our delivery address would be {v}, if you need it.",
            ],
            revised: &[
                "We have moved the delivery address to {v}, I should have mentioned it.",
                "Could you please deliver it to {v} rather than {o}?",
                "Apologies, I gave you the wrong delivery address. The right one is {v}.",
                "The delivery address has to be {v}, I am afraid.",
                "Please disregard {o}; the parcel should go to {v}.",
            ],
            values: &["Lindenstraat 18", "Harbour Row 5", "Kastanienweg 77"],
            reach: Reach::Far,
        },
        Change {
            settled: &["You may call me on {v}.", "My telephone number is {v}."],
            revised: &[
                "Oh dear, I mistyped my telephone number, it is {v}.",
                "Please call me on {v} from now on, the other phone is broken.",
                "Would you be so kind as to replace {o} with {v}?",
                "My new telephone number is {v}.",
            ],
            values: &["020 555 0143", "020 555 0178", "020 555 0199"],
            reach: Reach::Far,
        },
        Change {
            settled: &["I would like to order {v} of the rinse aid, please."],
            revised: &[
                "Actually, make that {v}.",
                "Sorry, I meant {v}.",
                "Hmm, better {v}, to be on the safe side.",
            ],
            values: &["two bottles", "five bottles", "eight bottles"],
            reach: Reach::Near,
        },
    ],
    twins: &[
        twins(
            "The invoice should go to my office in Tilburg.",
            "tilburg",
            "The spare part should go to my home in Breda.",
            "breda",
        ),
        twins("My first name is spelt Kathryn.", "kathryn", "My last name is spelt Olufsen.", "olufsen"),
        twins(
            "The upstairs router has address 192.168.1.20.",
            "192.168.1.20",
            "The downstairs router has address 192.168.1.30.",
            "192.168.1.30",
        ),
        twins(
            "For the fridge I would like the extended cover.",
            "fridge",
            "For the oven I would like the basic cover.",
            "oven",
        ),
        twins(
            "I would prefer to be contacted by email for invoices.",
            "email",
            "I would prefer to be contacted by text message for appointments.",
            "text message",
        ),
    ],
    echoes: &[
        "Thank you very much, I have noted {v}.",
        "Certainly, {v} it is.",
        "That is no problem at all.",
        "Wonderful. I have put {v} into your file.",
    ],
    user_filler: &[
        "Thank you, that is very kind of you.",
        "I see. What would you suggest I try next?",
        "I have switched it off and on again, as you asked.",
        "The light on the front blinks {n} times and then goes out.",
        "Just a moment, please, I have to find the manual.",
        "Yes, I did that already, I am afraid.",
        "My neighbour says it is always the pump, but what does he know.",
        "Would that be on page {n} of the manual?",
        "Much appreciated!",
    ],
    assistant_filler: &[
        "Thank you for your patience. Could you please check whether the filter is clean?",
        "I understand how frustrating that must be. Let us go through the steps together, one at a time.",
        "Please hold the start button for {n} seconds until the light goes out.",
        "There are several possible reasons for this:\n\n1. The heating element does not receive power.\n2. The flow sensor reports too little water.\n3. The control board has lost its settings.\n\nThe first one is by far the most common, and it can be checked without opening the machine. Please let me know once you are ready and I will guide you through it.",
        "You are most welcome. Is there anything else I can do for you?",
        "Let me check that in our system, it will only take a moment.",
    ],
    tool_filler: &[
        "{\"status\":\"ok\",\"took_ms\":{n},\"results\":[]}",
        "ping gateway: {n} ms\nping gateway: {n} ms\nping gateway: 12 ms\nloss 0 %\n",
        "article {n}: How to clean the filter\narticle 18: How to reset the machine\narticle 22: Opening hours\n",
    ],
};
