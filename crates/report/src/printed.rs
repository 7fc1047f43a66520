//! Text that a terminal may be given: the one type that output for people goes through.
//!
//! It is made of texts whose control characters are escaped on input, or by the renderers of this crate, which escape
//! what they are given and then add colours of their own. Nothing foreign reaches a terminal otherwise.

use std::fmt;
use std::ops::Deref;

use flashwise_block::shown;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Printed(String);

impl Printed {
    /// A renderer's text, whose foreign parts are escaped already.
    pub(crate) fn rendered(text: String) -> Self {
        Self(text)
    }

    /// Text of the program's own, without anything from outside in it.
    pub fn own(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// This and then more.
    #[must_use]
    pub fn and(mut self, more: impl Into<Self>) -> Self {
        self.0.push_str(&more.into().0);
        self
    }

    /// More in front of it.
    #[must_use]
    pub fn behind(self, more: impl Into<Self>) -> Self {
        more.into().and(self)
    }
}

impl From<String> for Printed {
    fn from(text: String) -> Self {
        Self(shown::lines(&text).into_owned())
    }
}

impl From<&str> for Printed {
    fn from(text: &str) -> Self {
        Self(shown::lines(text).into_owned())
    }
}

impl Deref for Printed {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Printed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl PartialEq<&str> for Printed {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_is_escaped_once_and_a_renderer_s_colours_stay() {
        let rendered = Printed::rendered("\u{1b}[1mname\u{1b}[0m\n".to_owned());
        let text = rendered.and(format!("file: {}\n", "a\u{1b}[2J")).behind("x\u{7}\n");
        assert_eq!(text, "x\\u{7}\n\u{1b}[1mname\u{1b}[0m\nfile: a\\u{1b}[2J\n");
    }
}
