// An example request for the "Try it" view: an agent run with sixteen tool results, so that the older ones are masked.

const STEPS = [
  ['list_files', { path: '.' }, 'Cargo.toml\nREADME.md\nsrc/main.rs\nsrc/parse.rs\nsrc/report.rs\ntests/parse.rs'],
  ['read_file', { path: 'src/parse.rs' }, 'pub fn parse(text: &str) -> Result<Order, ParseError> {\n    let mut fields = text.split(\',\');\n    let id = fields.next().ok_or(ParseError::Empty)?;\n    let amount = fields.next().ok_or(ParseError::NoAmount)?.trim().parse()?;\n    Ok(Order { id: id.to_owned(), amount })\n}'],
  ['run_tests', {}, 'running 14 tests\ntest parse::accepts_spaces ... ok\ntest parse::rejects_empty ... ok\ntest parse::keeps_cents ... FAILED\n\n---- parse::keeps_cents ----\nassertion `left == right` failed\n  left: 12\n right: 1250'],
  ['search', { words: 'amount' }, 'src/parse.rs:4: let amount = …\nsrc/report.rs:18: total += order.amount;\nsrc/report.rs:31: write!(out, "{}", order.amount)?;\ntests/parse.rs:22: assert_eq!(order.amount, 1250);'],
  ['read_file', { path: 'src/report.rs' }, 'pub fn total(orders: &[Order]) -> u64 {\n    orders.iter().map(|order| order.amount).sum()\n}\n\npub fn line(order: &Order) -> String {\n    format!("{:>10} {:>8}", order.id, order.amount)\n}'],
  ['read_file', { path: 'tests/parse.rs' }, '#[test]\nfn keeps_cents() {\n    let order = parse("a-1, 12.50").unwrap();\n    assert_eq!(order.amount, 1250);\n}'],
  ['edit_file', { path: 'src/parse.rs', change: 'parse cents' }, 'src/parse.rs: 1 insertion, 1 deletion'],
  ['run_tests', {}, 'running 14 tests\ntest parse::keeps_cents ... ok\ntest report::aligns ... FAILED\n\n---- report::aligns ----\n  left: "       a-1     1250"\n right: "       a-1    12.50"'],
  ['edit_file', { path: 'src/report.rs', change: 'print cents' }, 'src/report.rs: 2 insertions, 1 deletion'],
  ['run_tests', {}, 'running 14 tests\n14 passed; 0 failed'],
  ['lint', {}, 'warning: needless borrow\n  --> src/report.rs:6:31\nwarning: 1 warning emitted'],
  ['edit_file', { path: 'src/report.rs', change: 'remove the borrow' }, 'src/report.rs: 1 insertion, 1 deletion'],
  ['lint', {}, 'no warnings'],
  ['run_tests', {}, 'running 14 tests\n14 passed; 0 failed'],
  ['read_file', { path: 'README.md' }, '# orders\n\nReads orders from a file, one on each line: an id, a comma, an amount.'],
  ['edit_file', { path: 'README.md', change: 'say that amounts have cents' }, 'README.md: 1 insertion'],
];

const messages = () => [
  { role: 'system', content: 'You are a careful programmer. Use the tools, one at a time.' },
  { role: 'user', content: 'Amounts lose their cents when orders are read. Please fix it.' },
  ...STEPS.flatMap(([name, input, result], index) => [
    { role: 'assistant', content: null, tool_calls: [{ id: `call_${index + 1}`, type: 'function', function: { name, arguments: JSON.stringify(input) } }] },
    { role: 'tool', tool_call_id: `call_${index + 1}`, content: result },
  ]),
];

export const example = () => JSON.stringify({ model: 'gpt-4o', messages: messages() }, null, 2);
