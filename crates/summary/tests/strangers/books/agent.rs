//! A coding agent at work: much tool output, long reports, few words from the user.

use crate::book::{Book, Change, Reach, assistant, tool, twins, user};

pub(crate) const AGENT: Book = Book {
    name: "agent run",
    tasks: &[
        "Migrate the `orders` service from REST to gRPC. Keep the public API stable, add tests, and report when you are done.",
        "Investigate why the nightly ETL job produces duplicate rows and fix the root cause.",
    ],
    facts: &[
        user(
            "The integration environment is reachable at {v}.",
            "integration",
            &["https://int.example.com:8443", "https://qa.example.com:9443"],
        ),
        user("Credentials are in the vault under {v}.", "vault", &["kv/orders/ci", "kv/etl/nightly"]),
        user("Only {v} may approve changes to the proto files.", "approve", &["@svetlana-k", "@marcus-o"]),
        user("Coverage must not fall below {v}.", "coverage", &["83%", "91%"]),
        user("We support clients back to version {v}.", "clients", &["2.6", "3.11"]),
        user(
            "There is a known issue with {v} on ARM, you can ignore it.",
            "arm",
            &["protoc 3.19", "grpcio 1.54"],
        ),
        user("The incident report is {v} if you want background.", "incident", &["INC-20817", "INC-19302"]),
        assistant(
            "I found the root cause: `{v}` is called twice per batch.",
            "root cause",
            &["flush_pending", "commit_offsets"],
        ),
        assistant("The table has {v} duplicate rows at the moment.", "duplicate", &["18,233", "4,907"]),
        assistant(
            "The handler in `{v}` swallows the exception.",
            "swallows",
            &["orders/rpc/handler.py", "etl/sinks/bigquery.py"],
        ),
        assistant("Benchmarks: median latency went down to {v}.", "latency", &["3.4 ms", "12.1 ms"]),
        tool(
            "FAILED tests/test_batch.py::test_{v} - AssertionError",
            "failed",
            &["idempotent_retry", "late_arrival"],
        ),
        tool(
            "TypeError: {v}() missing 1 required positional argument: 'ctx'",
            "typeerror",
            &["build_channel", "open_cursor"],
        ),
        tool("current_user: {v}", "current_user", &["svc_orders_ro", "etl_runner"]),
        tool("{\"job_id\": \"{v}\", \"state\": \"QUEUED\"}", "job_id", &["job-77c1", "job-90ab"]),
        tool("Python {v}", "python", &["3.11.9", "3.12.4"]),
    ],
    changes: &[
        Change {
            settled: &[
                "Use {v} for serialization.",
                "assistant>I'll use {v} for serialization.",
                "assistant>Decision: serialization is done with {v}.",
            ],
            revised: &[
                "Update: use {v} for serialization.",
                "assistant>{o} does not support maps, so I am switching serialization to {v}.",
                "Please replace {o} by {v} everywhere.",
                "assistant>After the benchmark I decided against {o}; serialization uses {v}.",
                "Serialization should be {v}, the gateway team can't read {o}.",
            ],
            values: &["Protobuf", "FlatBuffers", "MessagePack"],
            reach: Reach::Far,
        },
        Change {
            settled: &[
                "Set the batch size to {v}.",
                "assistant>I set `batch_size = {v}` in the config.",
                "Batch size: {v}.",
            ],
            revised: &[
                "assistant>Raised `batch_size` to {v} because the job was too slow.",
                "The batch size must be {v}, ops asked for it.",
                "Lower the batch size to {v}.",
                "assistant>I changed the batch size from {o} to {v}.",
                "batch_size={v} please, {o} makes the broker choke.",
            ],
            values: &["250", "800", "1500"],
            reach: Reach::Far,
        },
        Change {
            settled: &["Put the new code into {v}.", "The new module goes to {v}."],
            revised: &[
                "Move the new code to {v}.",
                "The new module belongs in {v}, not in {o}.",
                "Nothing goes to {o} any more, use {v}.",
                "Let's relocate the new module: {v}.",
                "I'd rather see the new code in {v}.",
            ],
            values: &["src/transport", "src/rpc", "pkg/wire"],
            reach: Reach::Far,
        },
        Change {
            settled: &[
                "Target release is {v}.",
                "This ships with {v}.",
                "It has to make it into release {v}.",
            ],
            revised: &[
                "We missed the train, it ships with {v}.",
                "Target release is now {v}.",
                "Retarget this to {v}, {o} is frozen.",
                "It won't be release {o}. Aim for {v}.",
                "Postponed to release {v}.",
            ],
            values: &["7.2.0", "7.3.0", "8.0.0"],
            reach: Reach::Far,
        },
        Change {
            settled: &["Name the new endpoint {v}.", "Call the new endpoint {v}."],
            revised: &["Hmm, call it {v}.", "{v} is a better name.", "No, {v}.", "Rename that to {v}."],
            values: &["PlaceOrder", "SubmitOrder", "CreateOrder"],
            reach: Reach::Near,
        },
    ],
    twins: &[
        twins("Use Postgres for the index.", "postgres", "Use Redis for the cache.", "redis"),
        twins(
            "The staging cluster runs Kubernetes 1.27.",
            "1.27",
            "The production cluster runs Kubernetes 1.25.",
            "1.25",
        ),
        twins(
            "Update the client timeout to 12 seconds.",
            "12 seconds",
            "Update the server timeout to 40 seconds.",
            "40 seconds",
        ),
        twins("Errors go to Sentry.", "sentry", "Metrics go to Prometheus.", "prometheus"),
        twins(
            "Don't change `orders.proto`.",
            "orders.proto",
            "Don't change `billing.proto`.",
            "billing.proto",
        ),
    ],
    echoes: &[
        "Understood, {v}. I'll adapt the code.",
        "Done: {v}.",
        "Applied. Running the test suite next.",
        "OK. I'll go with {v}.",
    ],
    user_filler: &[
        "continue",
        "ok, go on",
        "What is the status?",
        "Show me the failing test.",
        "Looks reasonable.",
        "yes",
        "Please run the full suite again.",
        "Did you look at attempt {n}?",
    ],
    assistant_filler: &[
        "I will read the file first.",
        "The suite finished: {n} passed, 0 failed. I am going to look at the next module.",
        "I looked at the call sites. There are {n} of them, and all but two only forward their arguments. The two others build a new context, which means that the change has to keep both signatures for now. I will add an adapter, move the callers one by one and remove the adapter at the end.",
        "Here is the plan:\n1. Add the new interface next to the old one.\n2. Port the callers.\n3. Delete the old code.\n\nStep 1 touches {n} files.",
        "That file only re-exports names, nothing to change there.",
        "Let me check the logs of run {n}.",
    ],
    tool_filler: &[
        "collected {n} items\n\ntests/test_a.py ........\ntests/test_b.py ....\n\n{n} passed in 4.{n}s\n",
        "src/main.py\nsrc/server.py\nsrc/client.py\nsrc/util_{n}.py\ntests/test_a.py\n",
        "import os\nimport sys\n\ndef main(argv):\n    parser = build_parser()\n    args = parser.parse_args(argv)\n    return run(args)\n\nif __name__ == \"__main__\":\n    sys.exit(main(sys.argv[1:]))\n",
        "[main 7f3a{n}] wip\n 3 files changed, {n} insertions(+), 4 deletions(-)\n",
        "2024-06-0{n} INFO batch {n} done\n2024-06-0{n} INFO batch {n} done\n2024-06-0{n} INFO idle\n",
    ],
};
