//! One element of an XML file whose children are all read: what nobody asked for is noted.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Display;
use std::str::FromStr;

use roxmltree::{Document, Node, ParsingOptions};

use super::{ImportError, Notes};
use flashwise_block::names::nearest;

/// The largest whole number of a file, which is TOML's largest too.
pub(super) const COUNT_MAX: u64 = i64::MAX as u64;
/// Elements, texts and attributes of a file; the largest public one has a few thousand.
const NODES_MAX: u32 = 1 << 18;
/// Attributes of a file. The formats that are read have none; a parser may take time in the square of those of an
/// element.
const ATTRIBUTES_MAX: usize = 4096;

/// The names that forks of MQSim have given to its tags, and MQSim's own.
const ALIASES: [(&str, &str); 10] = [
    ("DeviceParameterSet", "Device_Parameter_Set"),
    ("ExecParameterSet", "Execution_Parameter_Set"),
    ("FlashParameterSet", "Flash_Parameter_Set"),
    ("HostParameterSet", "Host_Parameter_Set"),
    ("Page_Metadata_Capacity", "Page_Metadat_Capacity"),
    ("Replay_Count", "Relay_Count"),
    ("ResponseTime_Logging_Period", "ResponseTime_Logging_Period_Length"),
    ("SyntheticFlowParamSet", "IO_Flow_Parameter_Set_Synthetic"),
    ("TraceFlowParameterSet", "IO_Flow_Parameter_Set_Trace_Based"),
    ("TraceFlowParamSet", "IO_Flow_Parameter_Set_Trace_Based"),
];

/// The name that MQSim has for a tag.
fn canonical(name: &str) -> &str {
    ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, canonical)| canonical)
}

fn no_xml(file: &str, error: &roxmltree::Error) -> ImportError {
    ImportError::Syntax { file: file.to_owned(), line: error.pos().row, reason: format!("not XML: {error}") }
}

/// A file's text in a form that a strict parser reads: as it is, or else as MQSim's own parser reads it, which lets
/// blanks are before the declaration and takes a closing tag for that of the last open element whatever its name is.
///
/// # Errors
/// Where neither parser reads it.
pub(super) fn readable<'a>(text: &'a str, file: &str, notes: &mut Notes) -> Result<Cow<'a, str>, ImportError> {
    let text = text.trim_start_matches('\u{feff}');
    check_attributes(text, file)?;
    let Err(strict) = Xml::parse(text, file) else { return Ok(Cow::Borrowed(text)) };
    let mut told = Vec::new();
    let tolerant = tolerant(text, &mut told);
    if Xml::parse(&tolerant, file).is_err() {
        return Err(strict);
    }
    told.into_iter().for_each(|note| notes.add(format!("{file}: {note}")));
    Ok(Cow::Owned(tolerant))
}

fn tolerant(text: &str, told: &mut Vec<String>) -> String {
    let start = text.len().saturating_sub(text.trim_start().len());
    let (blank, rest) = text.split_at(start);
    // Line numbers stay right: the lines before the declaration become lines behind it.
    let declaration = if rest.starts_with("<?xml") { rest.find("?>").map_or(0, |at| at.saturating_add(2)) } else { 0 };
    let (declaration, body) = rest.split_at(declaration);
    let mut out = String::with_capacity(text.len());
    out.push_str(declaration);
    out.push_str(blank);
    close_as_opened(body, &mut out, |line, closed, open| {
        let skipped = lines(blank).saturating_add(lines(declaration));
        told.push(format!(
            "line {}: <{open}> is closed by </{closed}>; MQSim does not read the names of closing tags",
            line.saturating_add(skipped)
        ));
    });
    out
}

fn lines(text: &str) -> usize {
    text.bytes().filter(|&byte| byte == b'\n').count()
}

/// Refuses elements with more attributes than any file of these formats has, before a parser sees them.
fn check_attributes(text: &str, file: &str) -> Result<(), ImportError> {
    let (mut attributes, mut line, mut rest) = (0_usize, 1_usize, text);
    while let Some(at) = rest.find('<') {
        let (before, tag) = rest.split_at(at);
        line = line.saturating_add(lines(before));
        let (end, is_element) = tag_end(tag);
        let (whole, after) = tag.split_at(end.unwrap_or(tag.len()));
        if is_element {
            attributes = attributes.saturating_add(whole.bytes().filter(|&byte| byte == b'=').count());
        }
        if attributes > ATTRIBUTES_MAX {
            let reason = format!("not a configuration: more than {ATTRIBUTES_MAX} attributes ('=')");
            return Err(ImportError::Syntax {
                file: file.to_owned(),
                line: u32::try_from(line).unwrap_or(u32::MAX),
                reason,
            });
        }
        line = line.saturating_add(lines(whole));
        rest = after;
    }
    Ok(())
}

/// Where a text that starts with `<` has the end of its tag, if it has, and whether that is an element's.
fn tag_end(tag: &str) -> (Option<usize>, bool) {
    let other = [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>"), ("<!", ">")];
    let special = other.iter().find(|(start, _)| tag.starts_with(start));
    let mark = special.map_or(">", |(_, end)| end);
    (tag.find(mark).map(|end| end.saturating_add(mark.len())), special.is_none())
}

/// Copies `text` and gives each closing tag the name of the element that is open there; reports the line (the first is
/// 1) and both names where they differed.
fn close_as_opened(text: &str, out: &mut String, mut report: impl FnMut(usize, &str, &str)) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = text;
    let mut line = 1_usize;
    let mut copy = |part: &str, line: &mut usize| {
        *line = line.saturating_add(lines(part));
        out.push_str(part);
    };
    while let Some(at) = rest.find('<') {
        let (before, tag) = rest.split_at(at);
        copy(before, &mut line);
        // What is no element goes through unread, up to its own end.
        let (end, is_element) = tag_end(tag);
        let Some(end) = end else {
            copy(tag, &mut line);
            return;
        };
        let (whole, after) = tag.split_at(end);
        if let Some(closed) = whole.strip_prefix("</").and_then(|it| it.strip_suffix('>')) {
            match open.pop() {
                Some(name) if name != closed.trim_end() => {
                    report(line, closed.trim(), name);
                    line = line.saturating_add(lines(whole));
                    out_of(&mut copy, name, &mut line);
                }
                _ => copy(whole, &mut line),
            }
        } else {
            let name = whole[1..].split(|c: char| c.is_whitespace() || "/>".contains(c)).next().unwrap_or_default();
            if is_element && !whole.ends_with("/>") {
                open.push(name);
            }
            copy(whole, &mut line);
        }
        rest = after;
    }
    copy(rest, &mut line);
}

/// Writes the closing tag of `name`.
fn out_of(copy: &mut impl FnMut(&str, &mut usize), name: &str, line: &mut usize) {
    for part in ["</", name, ">"] {
        copy(part, line);
    }
}

/// A parsed file.
pub(super) struct Xml<'a> {
    document: Document<'a>,
    /// Where the lines start, bytes.
    line_starts: Vec<usize>,
}

impl<'a> Xml<'a> {
    pub(super) fn parse(text: &'a str, file: &str) -> Result<Self, ImportError> {
        let options = ParsingOptions { nodes_limit: NODES_MAX, ..ParsingOptions::default() };
        let document = Document::parse_with_options(text, options).map_err(|error| no_xml(file, &error))?;
        let ends = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        let line_starts = ends.map(|(at, _)| at.saturating_add(1)).collect();
        Ok(Self { document, line_starts })
    }

    /// The line of an element; the first is 1.
    fn line(&self, node: Node<'_, '_>) -> u32 {
        let before = self.line_starts.partition_point(|&start| start <= node.range().start);
        u32::try_from(before.saturating_add(1)).unwrap_or(u32::MAX)
    }
}

/// An element whose children are values with a name each.
pub(super) struct Section<'a> {
    file: &'a str,
    xml: &'a Xml<'a>,
    node: Node<'a, 'a>,
    /// The children by their names; those of a file that names one twice are in order.
    children: BTreeMap<&'a str, Vec<Node<'a, 'a>>>,
    /// Names that were asked for, and whether the file has them.
    known: RefCell<BTreeMap<&'static str, bool>>,
}

impl<'a> Section<'a> {
    fn new(file: &'a str, xml: &'a Xml<'a>, node: Node<'a, 'a>) -> Self {
        let mut children: BTreeMap<&'a str, Vec<Node<'a, 'a>>> = BTreeMap::new();
        for child in node.children().filter(Node::is_element) {
            match children.entry(canonical(child.tag_name().name())) {
                Entry::Vacant(entry) => drop(entry.insert(vec![child])),
                Entry::Occupied(mut entry) => entry.get_mut().push(child),
            }
        }
        Self { file, xml, node, children, known: RefCell::default() }
    }

    /// The root of a document, which must have this name.
    pub(super) fn root(file: &'a str, xml: &'a Xml<'a>, name: &str) -> Result<Self, ImportError> {
        let section = Self::new(file, xml, xml.document.root_element());
        if section.name() == name {
            return Ok(section);
        }
        Err(section.wrong(format!("the file starts with <{}>, not with <{name}>", section.written_name())))
    }

    /// MQSim's name of the element itself.
    pub(super) fn name(&self) -> &'a str {
        canonical(self.written_name())
    }

    /// The name of the element as the file has it.
    pub(super) fn written_name(&self) -> &'a str {
        self.node.tag_name().name()
    }

    /// The line where the element starts; the first is 1.
    pub(super) fn line(&self) -> u32 {
        self.xml.line(self.node)
    }

    /// An error at this element.
    pub(super) fn wrong(&self, reason: String) -> ImportError {
        self.error(self.node, reason)
    }

    /// All child elements.
    pub(super) fn children(&self) -> impl Iterator<Item = Section<'a>> + use<'a> {
        let (file, xml) = (self.file, self.xml);
        self.node.children().filter(Node::is_element).map(move |node| Section::new(file, xml, node))
    }

    /// A child that has children.
    pub(super) fn section(&self, name: &'static str) -> Result<Self, ImportError> {
        match self.find(name)? {
            Some(node) => Ok(Self::new(self.file, self.xml, node)),
            None => Err(self.wrong(format!("<{}> has no <{name}>", self.written_name()))),
        }
    }

    /// The text of a child.
    pub(super) fn text(&self, name: &'static str) -> Result<Option<&'a str>, ImportError> {
        Ok(self.find(name)?.map(|node| node.text().unwrap_or_default().trim()))
    }

    /// The value of a child, or a default where it is absent.
    pub(super) fn value<T: FromStr>(&self, name: &'static str, default: T, what: &str) -> Result<T, ImportError> {
        let Some(node) = self.find(name)? else { return Ok(default) };
        let text = node.text().unwrap_or_default().trim();
        text.parse().map_err(|_| self.error(node, format!("<{name}> is '{text}', it should be {what}")))
    }

    /// A whole number, at most [`COUNT_MAX`]; `1200.0` is one too.
    pub(super) fn count(&self, name: &'static str, default: u64) -> Result<u64, ImportError> {
        let Some(text) = self.text(name)? else { return Ok(default) };
        let whole = text
            .split_once('.')
            .map_or(Some(text), |(whole, part)| part.bytes().all(|digit| digit == b'0').then_some(whole));
        let count = whole.and_then(|whole| whole.parse::<u64>().ok()).filter(|&count| count <= COUNT_MAX);
        count.ok_or_else(|| self.refused(name, &text, &format!("a whole number, at most {COUNT_MAX}")))
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

    /// One of a few words; a word that only a fork knows is noted, and the first one of the list is taken.
    pub(super) fn nearest_choice<T: Copy>(
        &self,
        name: &'static str,
        default: T,
        choices: &[(&str, T)],
        notes: &mut Notes,
    ) -> Result<T, ImportError> {
        if let (Some(text), [(first, choice), ..]) = (self.text(name)?, choices)
            && !choices.iter().any(|(word, _)| word.eq_ignore_ascii_case(text))
        {
            notes.add(format!("<{name}> = {text}: unknown; {first} is used"));
            return Ok(*choice);
        }
        self.choice(name, default, choices)
    }

    /// The error for a child's value.
    pub(super) fn refused(&self, name: &'static str, value: &dyn Display, right: &str) -> ImportError {
        let found = self.find(name).ok().flatten();
        // As the file has it: a number of 1e308 would take 309 digits.
        let written = found.and_then(|node| node.text()).map(str::trim).filter(|text| !text.is_empty());
        let value = written.map_or_else(|| value.to_string(), str::to_owned);
        self.error(found.unwrap_or(self.node), format!("<{name}> is '{value}', it should be {right}"))
    }

    fn find(&self, name: &'static str) -> Result<Option<Node<'a, 'a>>, ImportError> {
        let found = self.children.get(name).map_or(&[][..], |nodes| nodes.as_slice());
        self.known.borrow_mut().insert(name, !found.is_empty());
        match found {
            [] => Ok(None),
            [only] => Ok(Some(*only)),
            [_, second, ..] => Err(self.error(*second, format!("<{name}> is repeated"))),
        }
    }

    /// Notes the children that nobody asked for.
    pub(super) fn finish(&self, notes: &mut Notes) {
        let known = self.known.borrow();
        for (name, nodes) in self.children.iter().filter(|(name, _)| !known.contains_key(*name)) {
            notes.add(self.unknown(name, nodes.first().copied(), &known));
        }
    }

    /// The note on an element that is not known inside another one.
    pub(super) fn is_unknown_in(&self, parent: &str) -> String {
        format!(
            "{}: line {}: <{}> is unknown in <{parent}> and has no effect",
            self.file,
            self.line(),
            self.written_name()
        )
    }

    fn unknown(&self, name: &str, node: Option<Node<'a, 'a>>, known: &BTreeMap<&'static str, bool>) -> String {
        let absent = known.iter().filter(|(_, is_there)| !**is_there).map(|(name, _)| *name);
        let hint = nearest(name, absent).map_or_else(String::new, |near| {
            format!("; if you meant <{near}>: it is missing, and MQSim's default is used")
        });
        let line = node.map_or_else(|| self.line(), |node| self.xml.line(node));
        format!("{}: line {line}: <{name}> is unknown in <{}> and has no effect{hint}", self.file, self.written_name())
    }

    fn error(&self, node: Node<'_, '_>, reason: String) -> ImportError {
        ImportError::Syntax { file: self.file.to_owned(), line: self.xml.line(node), reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(String, Vec<String>), ImportError> {
        let mut notes = Notes::default();
        let readable = readable(text, "f", &mut notes)?.into_owned();
        Ok((readable, notes.into_list()))
    }

    #[test]
    fn a_closing_tag_closes_the_last_open_element_whatever_its_name() {
        let (text, notes) = read("<?xml version='1.0'?>\n<a>\n<b>1</x>\n<c/><!-- </d> --><d>2</<d>\n</a>").unwrap();
        assert_eq!(text, "<?xml version='1.0'?>\n<a>\n<b>1</b>\n<c/><!-- </d> --><d>2</d>\n</a>");
        assert_eq!(notes.len(), 2);
        assert!(notes[0].starts_with("f: line 3: <b> is closed by </x>"), "{notes:?}");
        assert!(notes[1].starts_with("f: line 4: <d> is closed by </<d>"), "{notes:?}");
    }

    #[test]
    fn blanks_before_the_declaration_move_no_line() {
        let (text, notes) = read("\u{feff}\n\n<?xml version='1.0'?>\n<a/>").unwrap();
        assert_eq!((text.as_str(), notes.len()), ("<?xml version='1.0'?>\n\n\n<a/>", 0));
    }

    #[test]
    fn what_neither_parser_reads_is_refused_at_its_place() {
        for (text, line) in [("<a>\n<b>\n</a>", 3), ("<a>\n<<< b\n</a>", 2), ("", 1), ("<a", 1), ("</a>", 1)] {
            let refused = read(text).unwrap_err().to_string();
            assert!(refused.starts_with(&format!("f: line {line}: not XML")), "{text}: {refused}");
        }
    }

    #[test]
    fn rules_of_equals_signs_in_comments_and_text_are_no_attributes() {
        let rule = "=".repeat(80);
        let text = format!("<a><!-- {rule} -->{}</a>", format!("<b>{rule}</b><!--\n{rule}\n-->").repeat(60));
        assert!(read(&text).is_ok());
    }

    /// Each of these takes a parser without bounds time in the square of its length, or memory without end.
    #[test]
    fn huge_files_end_soon() {
        let start = std::time::Instant::now();
        let attributes: String = (0..200_000).map(|n| format!(" a{n}='1'")).collect();
        assert!(read(&format!("<a{attributes}/>")).unwrap_err().to_string().contains("more than 4096 attributes"));
        for text in ["<a>".repeat(2_000_000), "<a>".repeat(100_000) + &"</b>".repeat(100_000), "<!--".repeat(500_000)] {
            let _ = read(&text);
        }
        let flat = format!("<a>{}</a>", "<b>\n</b>".repeat(100_000));
        let xml = Xml::parse(&flat, "f").unwrap();
        let section = Section::root("f", &xml, "a").unwrap();
        assert_eq!(section.children().map(|child| u64::from(child.line())).sum::<u64>(), 100_000 * 100_001 / 2);
        assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
    }
}
