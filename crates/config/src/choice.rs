/// A setting that is one of a few words.
pub(crate) trait Choice: Copy + PartialEq + 'static {
    const ALL: &'static [(&'static str, Self)];

    fn name(self) -> &'static str {
        // Every value is in its own list: the macro below writes both, and `Strategy` has a test.
        Self::ALL.iter().find(|(_, value)| *value == self).map_or("", |(name, _)| name)
    }
}

/// The words of an enum, as they are in the file and as `Display` shows them.
macro_rules! choices {
    ($enum:ident { $($name:literal => $variant:ident),+ $(,)? }) => {
        impl crate::choice::Choice for $enum {
            const ALL: &'static [(&'static str, $enum)] = &[$(($name, $enum::$variant)),+];

            fn name(self) -> &'static str {
                match self {
                    $($enum::$variant => $name),+
                }
            }
        }

        impl std::fmt::Display for $enum {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(crate::choice::Choice::name(*self))
            }
        }
    };
}

pub(crate) use choices;
