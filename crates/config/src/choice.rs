/// A setting with a fixed set of values.
pub(crate) trait Choice: Copy + PartialEq + 'static {
    const ALL: &'static [(&'static str, Self)];

    fn name(self) -> &'static str {
        // Every variant is in `ALL`: the macro below generates both, and the other implementations are tested.
        Self::ALL.iter().find(|(_, value)| *value == self).map_or("", |(name, _)| name)
    }
}

/// Defines the names of an enum's variants in the file, and its `Display`.
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
