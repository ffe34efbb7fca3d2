//! Formal notes: headings, labels, numbered decisions.

use crate::book::{Book, Change, Reach, assistant, tool, twins, user};

pub(crate) const MINUTES: Book = Book {
    name: "formal minutes",
    tasks: &[
        "Please maintain the minutes of our working group on data protection. I will send items as they come up.",
        "You are the secretary of the audit committee. Record what is reported and keep the register of decisions.",
    ],
    facts: &[
        user("**Chair:** {v}", "chair", &["Prof. Ilse Maurer", "Dr. Kofi Asante"]),
        user(
            "Item 4: the retention period for applications amounts to {v}.",
            "retention",
            &["26 weeks", "14 months"],
        ),
        user("- Quorum: {v} members", "quorum", &["7", "11"]),
        user(
            "It was reported that {v} complaints were received in the period.",
            "complaints",
            &["53", "208"],
        ),
        user(
            "The external auditor is {v} (appointed in spring).",
            "auditor",
            &["Falk & Wieser", "Northgate LLP"],
        ),
        user("The register is kept under reference {v}.", "register", &["DP/2025/118", "AU-77/04"]),
        user("Action: {v} to circulate the revised policy.", "policy", &["Ms Okonkwo", "Mr Vandenberg"]),
        user("The penalty clause provides for {v} per day of delay.", "penalty", &["EUR 1,750", "EUR 420"]),
        user("The data centre in {v} was inspected without findings.", "inspected", &["Luleå", "Drogheda"]),
        user(
            "The committee took note that {v} has resigned.",
            "resigned",
            &["Dr. Hallgrímsson", "Ms Tremblay"],
        ),
        user("Next audit: {v}.", "audit", &["Q3 2026", "Q1 2027"]),
        user("The hotline is staffed from {v} on weekdays.", "hotline", &["07:45", "10:15"]),
        assistant("For the record, the previous report counted {v} processors.", "processors", &["64", "97"]),
        assistant(
            "Under the statutes, notice must be given {v} in advance.",
            "notice",
            &["21 days", "six weeks"],
        ),
        tool("document {v} checked out by secretariat", "document", &["POL-0031", "POL-0178"]),
        tool("signatures: {v} of 12", "signatures", &["5", "10"]),
    ],
    changes: &[
        Change {
            settled: &[
                "Decision: the pilot site shall be {v}.",
                "The group resolved that the pilot site is {v}.",
                "**Pilot site:** {v}",
            ],
            revised: &[
                "The resolution on the pilot site is amended: {v}.",
                "Decision (supersedes the earlier one): the pilot site shall be {v}.",
                "**Pilot site:** {v} (revised)",
                "The group withdrew {o} and designated {v} as the pilot site.",
                "{v} replaces {o}.",
            ],
            values: &["Rotterdam", "Graz", "Tampere"],
            reach: Reach::Far,
        },
        Change {
            settled: &[
                "The reporting threshold was fixed at {v}.",
                "Reporting threshold: {v}",
                "It was agreed that the reporting threshold be {v}.",
            ],
            revised: &[
                "The reporting threshold was raised to {v}.",
                "Reporting threshold: {v}",
                "The figure of {o} is void; {v} applies.",
                "With effect from today the reporting threshold is {v}.",
                "Erratum: for {o} read {v}.",
            ],
            values: &["EUR 5,000", "EUR 8,200", "EUR 12,600"],
            reach: Reach::Far,
        },
        Change {
            settled: &[
                "{v} was elected rapporteur.",
                "Rapporteur: {v}",
                "The committee appointed {v} as rapporteur.",
            ],
            revised: &[
                "{v} succeeds {o}.",
                "Rapporteur: {v} (vice {o})",
                "The role of rapporteur passes to {v}.",
                "The committee appointed {v} as rapporteur in place of {o}.",
                "Owing to illness, the rapporteur is now {v}.",
            ],
            values: &["Ms Duarte", "Mr Eskildsen", "Ms Banerji"],
            reach: Reach::Far,
        },
        Change {
            settled: &[
                "Next meeting: {v}",
                "The next meeting takes place on {v}.",
                "It was agreed to meet next on {v}.",
            ],
            revised: &[
                "Next meeting: {v} (rescheduled)",
                "The next meeting is postponed to {v}.",
                "The next meeting was brought forward from {o} to {v}.",
                "The date of the next meeting is corrected to {v}.",
                "The meeting of {o} is cancelled. The next meeting takes place on {v}.",
            ],
            values: &["17 November", "28 November", "5 December"],
            reach: Reach::Far,
        },
        Change {
            settled: &["The fee was set at {v}.", "Fee: {v}"],
            revised: &["Correction: {v}.", "This should read {v}.", "Amended to {v}.", "Strike that; {v}."],
            values: &["EUR 88", "EUR 96", "EUR 140"],
            reach: Reach::Near,
        },
    ],
    twins: &[
        twins(
            "Decision 3: the mailing list is closed to guests.",
            "mailing list",
            "Decision 4: the document archive is closed to vendors.",
            "archive",
        ),
        twins(
            "The budget for training is EUR 9,400.",
            "9,400",
            "The budget for translation is EUR 6,100.",
            "6,100",
        ),
        twins(
            "Deadline for comments: 6 October.",
            "6 october",
            "Deadline for nominations: 20 October.",
            "20 october",
        ),
        twins(
            "The deputy for finance is Ms Roux.",
            "roux",
            "The deputy for research is Mr Achebe.",
            "achebe",
        ),
        twins(
            "The quarterly report moved to appendix B.",
            "appendix b",
            "The annual report moved to appendix D.",
            "appendix d",
        ),
    ],
    echoes: &["Recorded: {v}.", "Entered into the register.", "The minutes now state {v}.", "Noted."],
    user_filler: &[
        "Please continue with the next item.",
        "No objections were raised.",
        "Kindly format the last item as a table.",
        "There were {n} attendees at this point.",
        "The discussion was adjourned for {n} minutes.",
        "Could you read back the last item?",
        "The floor was opened for remarks.",
    ],
    assistant_filler: &[
        "Item {n} has been recorded in the usual form.",
        "The last item reads as follows: the members discussed the matter at length and weighed the arguments on both sides. No vote was taken. The chair thanked the members for their contributions and proposed to return to the matter in due course, once the secretariat has collected the opinions of those who could not attend.",
        "The minutes currently run to {n} pages. Should the annexes be numbered separately?",
        "I have formatted it as a table with three columns.",
    ],
    tool_filler: &[
        "saved revision {n}\n",
        "spellcheck: 0 issues\nlinks: {n} ok\n",
        "page {n} exported\npage {n} exported\ndone\n",
    ],
};
