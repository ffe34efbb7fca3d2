/// Colours, where standard output is a terminal and `NO_COLOR` does not forbid them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ink {
    is_coloured: bool,
}

impl Ink {
    pub(super) fn of_terminal() -> Ink {
        use std::io::IsTerminal;
        let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Ink { is_coloured: std::io::stdout().is_terminal() && !is_plain }
    }

    pub(super) fn bold(self, text: &str) -> String {
        self.write("1", text)
    }

    pub(super) fn dim(self, text: &str) -> String {
        self.write("2", text)
    }

    pub(super) fn green(self, text: &str) -> String {
        self.write("32", text)
    }

    pub(super) fn yellow(self, text: &str) -> String {
        self.write("33", text)
    }

    fn write(self, code: &str, text: &str) -> String {
        if self.is_coloured { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
