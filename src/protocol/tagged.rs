//! One list of variants gives a tagged union: the enum, its names and its reader.

/// Defines an enum that is written with its `type` first and read the same way. By hand because
/// serde's own reader of tagged unions copies every value into a buffer, which opaque JSON does not
/// survive.
macro_rules! tagged {
    ($(#[$doc:meta])* $union:ident, $what:literal, { $($name:literal $variant:ident $body:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
        #[serde(tag = "type")]
        pub enum $union {
            $(#[serde(rename = $name)] $variant($body),)*
        }

        impl $union {
            /// The value of `type`.
            pub fn kind(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name,)* }
            }
        }

        impl<'de> serde::Deserialize<'de> for $union {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl<'de> serde::de::Visitor<'de> for Visitor {
                    type Value = $union;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str(concat!($what, " that starts with its type"))
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(
                        self,
                        mut map: A,
                    ) -> Result<$union, A::Error> {
                        use serde::Deserialize as _;
                        use serde::de::Error as _;
                        use serde::de::value::MapAccessDeserializer;
                        match map.next_entry::<&str, &str>()? {
                            $(Some(("type", $name)) => <$body>::deserialize(
                                MapAccessDeserializer::new(map)).map($union::$variant),)*
                            Some(("type", other)) => Err(A::Error::custom(format_args!(
                                concat!("unknown type `{}` of ", $what), other))),
                            _ => Err(A::Error::custom(concat!("the type of ", $what,
                                " does not come first"))),
                        }
                    }
                }
                deserializer.deserialize_map(Visitor)
            }
        }
    };
}

pub(super) use tagged;
