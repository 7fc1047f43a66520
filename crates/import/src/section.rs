//! One element of an XML file whose children are all looked at.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::str::FromStr;

use roxmltree::{Document, Node};

use super::ImportError;
use flashwise_ssd::config::nearest;

/// Parses a whole file.
pub(super) fn parse<'a>(text: &'a str, file: &str) -> Result<Document<'a>, ImportError> {
    Document::parse(text).map_err(|e| ImportError::Syntax {
        file: file.to_owned(),
        line: e.pos().row,
        reason: format!("this is no XML: {e}"),
    })
}

/// An element whose children are values with a name each.
pub(super) struct Section<'a> {
    file: &'a str,
    node: Node<'a, 'a>,
    /// Names that were asked for.
    known: RefCell<BTreeSet<&'static str>>,
}

impl<'a> Section<'a> {
    pub(super) fn new(file: &'a str, node: Node<'a, 'a>) -> Self {
        Self { file, node, known: RefCell::default() }
    }

    /// The root of a document, which must have this name.
    pub(super) fn root(file: &'a str, document: &'a Document<'a>, name: &str) -> Result<Self, ImportError> {
        let section = Self::new(file, document.root_element());
        if section.node.tag_name().name() == name {
            return Ok(section);
        }
        Err(section.wrong(format!("the file begins with <{}>, not with <{name}>", section.node.tag_name().name())))
    }

    /// The name of the element itself.
    pub(super) fn name(&self) -> &'a str {
        self.node.tag_name().name()
    }

    /// The line where the element begins; the first is 1.
    pub(super) fn line(&self) -> u32 {
        line(self.node)
    }

    /// An error at this element.
    pub(super) fn wrong(&self, reason: String) -> ImportError {
        error(self.file, self.node, reason)
    }

    /// All child elements.
    pub(super) fn children(&self) -> impl Iterator<Item = Section<'a>> + use<'a> {
        let file = self.file;
        self.node.children().filter(Node::is_element).map(move |node| Section::new(file, node))
    }

    /// A child that has children.
    pub(super) fn section(&self, name: &'static str) -> Result<Self, ImportError> {
        match self.find(name)? {
            Some(node) => Ok(Self::new(self.file, node)),
            None => Err(self.wrong(format!("<{}> lacks <{name}>", self.name()))),
        }
    }

    /// The text of a child.
    pub(super) fn text(&self, name: &'static str) -> Result<Option<&'a str>, ImportError> {
        Ok(self.find(name)?.map(|node| node.text().unwrap_or_default().trim()))
    }

    /// The value of a child, or a default where it is not there.
    pub(super) fn value<T: FromStr>(&self, name: &'static str, default: T, what: &str) -> Result<T, ImportError> {
        let Some(node) = self.find(name)? else { return Ok(default) };
        let text = node.text().unwrap_or_default().trim();
        text.parse().map_err(|_| error(self.file, node, format!("<{name}> is '{text}', it should be {what}")))
    }

    /// A whole number.
    pub(super) fn count(&self, name: &'static str, default: u64) -> Result<u64, ImportError> {
        self.value(name, default, "a whole number")
    }

    /// A number, not negative.
    pub(super) fn number(&self, name: &'static str, default: f64) -> Result<f64, ImportError> {
        let value = self.value(name, default, "a number")?;
        if value.is_finite() && value >= 0.0 {
            Ok(value)
        } else {
            Err(self.refused(name, &value, "a number from 0 on"))
        }
    }

    /// `true` or `false`.
    pub(super) fn flag(&self, name: &'static str, default: bool) -> Result<bool, ImportError> {
        let text = self.text(name)?.map(str::to_ascii_lowercase);
        match text.as_deref() {
            None => Ok(default),
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            Some(other) => Err(self.refused(name, &other, "true or false")),
        }
    }

    /// One of a few words, in upper case.
    pub(super) fn choice<T: Copy>(
        &self,
        name: &'static str,
        default: T,
        choices: &[(&str, T)],
    ) -> Result<T, ImportError> {
        let Some(text) = self.text(name)? else { return Ok(default) };
        let found = choices.iter().find(|(word, _)| word.eq_ignore_ascii_case(text));
        let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
        found.map(|&(_, choice)| choice).ok_or_else(|| self.refused(name, &text, &words.join(", ")))
    }

    /// The error for a child's value.
    pub(super) fn refused(&self, name: &'static str, value: &dyn std::fmt::Display, right: &str) -> ImportError {
        let node = self.find(name).ok().flatten().unwrap_or(self.node);
        error(self.file, node, format!("<{name}> is '{value}', it should be {right}"))
    }

    fn find(&self, name: &'static str) -> Result<Option<Node<'a, 'a>>, ImportError> {
        self.known.borrow_mut().insert(name);
        let mut found = self.node.children().filter(|child| child.has_tag_name(name));
        match (found.next(), found.next()) {
            (_, Some(second)) => Err(error(self.file, second, format!("<{name}> stands here a second time"))),
            (first, None) => Ok(first),
        }
    }

    /// Refuses children that nobody asked for.
    pub(super) fn finish(&self) -> Result<(), ImportError> {
        let known = self.known.borrow();
        let Some(unknown) = self.node.children().find(|c| c.is_element() && !known.contains(c.tag_name().name()))
        else {
            return Ok(());
        };
        let name = unknown.tag_name().name();
        let hint =
            nearest(name, known.iter().copied()).map_or_else(String::new, |near| format!("; is <{near}> meant?"));
        Err(error(self.file, unknown, format!("<{name}> is unknown in <{}>{hint}", self.name())))
    }
}

fn line(node: Node<'_, '_>) -> u32 {
    node.document().text_pos_at(node.range().start).row
}

fn error(file: &str, node: Node<'_, '_>, reason: String) -> ImportError {
    ImportError::Syntax { file: file.to_owned(), line: line(node), reason }
}
