//! Splits one JSON object into the elements of several of its arrays, in chunks of any size.

use memchr::memchr2;

/// A longer element is not kept: it counts as damage.
const MOST_BYTES: usize = 256 << 20;

/// A part of the document.
#[derive(Debug)]
pub enum Part<'a> {
    /// An object of one of the wanted arrays.
    Element {
        /// Which of the wanted arrays.
        array: usize,
        /// The inner array that it is in, for an array of arrays; else 0.
        list: usize,
        /// Its text, braces included.
        bytes: &'a [u8],
        /// The place of its text in the document.
        at: u64,
    },
    /// The key of a wanted array, before its first element.
    Array {
        /// Which of the wanted arrays.
        array: usize,
    },
    /// Any other member of the outermost object.
    Member {
        /// The key as the file spells it, without quotes.
        key: &'a [u8],
        /// Its value, white space around it included.
        value: &'a [u8],
    },
}

/// Takes the parts.
pub trait PartSink {
    /// Takes the next part.
    fn part(&mut self, part: Part<'_>);

    /// How many bytes of `rest`, which begins with an array inside an element, are a complete array that was seen before; 0 where that
    /// is not known. They are not looked at again. `at` is the place of `rest` in the document.
    fn known(&mut self, rest: &[u8], at: u64) -> usize {
        let _ = (rest, at);
        0
    }
}

impl<F: FnMut(Part<'_>)> PartSink for F {
    fn part(&mut self, part: Part<'_>) {
        self(part);
    }
}

/// An array whose elements are wanted: a key of the outermost object.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    key: &'static str,
    /// 2 for an array of objects, 3 for an array of arrays of objects.
    depth: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// Between the parts.
    None,
    /// A key of the outermost object.
    Key,
    /// The value of a member that is no wanted array.
    Value,
    /// An element of a wanted array.
    Element,
}

/// Finds the elements of several arrays of one object. Text inside an element is not judged: that is the reader's task.
///
/// The same bytes give the same parts in any chunking. Memory is bounded by the longest part.
#[derive(Debug)]
pub struct Splitter {
    wanted: Vec<Wanted>,
    depth: u32,
    in_string: bool,
    escape: bool,
    expects_key: bool,
    unit: Unit,
    carry: Vec<u8>,
    key: Vec<u8>,
    array: Option<usize>,
    list: usize,
    /// Where the current element starts in the document.
    start: u64,
    is_too_long: bool,
    /// Bytes before the current chunk.
    n_before: u64,
    /// The outermost object has ended.
    is_complete: bool,
    /// Parts above 256 MiB, which were left out.
    n_too_long: u64,
    /// Bytes other than white space after the outermost object.
    n_after: u64,
}

impl Splitter {
    /// A splitter that wants the elements of `arrays`: key, and how many brackets are open around an element (2 for an array
    /// of objects, 3 for an array of arrays).
    #[must_use]
    pub fn new(arrays: &[(&'static str, u32)]) -> Self {
        Self {
            wanted: arrays.iter().map(|(key, depth)| Wanted { key, depth: *depth }).collect(),
            depth: 0,
            in_string: false,
            escape: false,
            expects_key: false,
            unit: Unit::None,
            carry: Vec::new(),
            key: Vec::new(),
            array: None,
            list: 0,
            start: 0,
            is_too_long: false,
            n_before: 0,
            is_complete: false,
            n_too_long: 0,
            n_after: 0,
        }
    }

    /// Whether the outermost object has ended.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Parts above 256 MiB, which were left out.
    #[must_use]
    pub fn n_too_long(&self) -> u64 {
        self.n_too_long
    }

    /// Bytes other than white space after the outermost object.
    #[must_use]
    pub fn n_after(&self) -> u64 {
        self.n_after
    }

    /// The beginning of an element that the end of the file cuts.
    #[must_use]
    pub fn cut_element(&self) -> Option<Part<'_>> {
        let array = self.array.filter(|_| self.unit == Unit::Element)?;
        let (list, bytes, at) = (self.list.saturating_sub(1), &*self.carry, self.start);
        Some(Part::Element { array, list, bytes, at })
    }

    /// Reads the next bytes.
    pub fn push(&mut self, chunk: &[u8], sink: &mut dyn PartSink) {
        if self.is_complete {
            self.count_after(chunk);
            return;
        }
        // Where the current unit starts in this chunk.
        let mut from = 0;
        let mut at = 0;
        while let Some(&byte) = chunk.get(at) {
            if self.in_string {
                at = self.string(chunk, at);
                if !self.in_string && self.unit == Unit::Key {
                    self.end_key(chunk.get(from..at.saturating_sub(1)).unwrap_or_default());
                }
                continue;
            }
            match byte {
                b'"' => {
                    self.in_string = true;
                    if self.depth == 1 && self.expects_key {
                        self.unit = Unit::Key;
                        from = at + 1;
                    }
                }
                b'[' if self.unit == Unit::Element => {
                    let place = self.n_before + at as u64;
                    let known = sink.known(chunk.get(at..).unwrap_or_default(), place);
                    if known > 0 {
                        at += known;
                        continue;
                    }
                    self.open();
                }
                b'{' | b'[' => {
                    if self.opens_element(byte) {
                        self.unit = Unit::Element;
                        self.start = self.n_before + at as u64;
                        from = at;
                    }
                    self.open();
                }
                b'}' | b']' => {
                    if self.depth == 1 && self.unit == Unit::Value {
                        self.end_value(chunk.get(from..at).unwrap_or_default(), sink);
                    }
                    self.depth = self.depth.saturating_sub(1);
                    if self.ends_element() {
                        self.end_element(chunk.get(from..=at).unwrap_or_default(), sink);
                    }
                    self.is_complete |= self.depth == 0;
                    if self.is_complete {
                        self.count_after(chunk.get(at + 1..).unwrap_or_default());
                        return;
                    }
                }
                b':' if self.depth == 1 && self.unit == Unit::None => {
                    self.start_value(sink);
                    from = at + 1;
                }
                b',' if self.depth == 1 => {
                    if self.unit == Unit::Value {
                        self.end_value(chunk.get(from..at).unwrap_or_default(), sink);
                    }
                    self.array = None;
                    self.expects_key = true;
                }
                _ => {}
            }
            at += 1;
        }
        if self.unit != Unit::None {
            self.keep(chunk.get(from..).unwrap_or_default());
        }
        self.n_before += chunk.len() as u64;
    }

    /// Moves over text inside a string.
    fn string(&mut self, chunk: &[u8], at: usize) -> usize {
        if self.escape {
            self.escape = false;
            return at + 1;
        }
        let rest = chunk.get(at..).unwrap_or_default();
        match memchr2(b'"', b'\\', rest) {
            None => chunk.len(),
            Some(n) => {
                self.escape = rest.get(n) == Some(&b'\\');
                self.in_string = self.escape;
                at + n + 1
            }
        }
    }

    fn count_after(&mut self, bytes: &[u8]) {
        self.n_after += bytes.iter().filter(|byte| !byte.is_ascii_whitespace()).count() as u64;
    }

    fn opens_element(&self, byte: u8) -> bool {
        self.unit == Unit::None
            && byte == b'{'
            && self.array.and_then(|array| self.wanted.get(array)).map(|wanted| wanted.depth)
                == Some(self.depth)
    }

    fn ends_element(&self) -> bool {
        self.unit == Unit::Element
            && self.array.and_then(|array| self.wanted.get(array)).map(|wanted| wanted.depth)
                == Some(self.depth)
    }

    fn open(&mut self) {
        if self.depth == 0 {
            self.expects_key = true;
        }
        if self.depth == 2 && self.unit == Unit::None {
            self.list += 1;
        }
        self.depth += 1;
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.carry.len() + bytes.len() > MOST_BYTES {
            self.is_too_long = true;
            self.carry = Vec::new();
        } else if !self.is_too_long {
            self.carry.extend_from_slice(bytes);
        }
    }

    fn end_key(&mut self, bytes: &[u8]) {
        self.keep(bytes);
        self.key = std::mem::take(&mut self.carry);
        self.is_too_long = false;
        self.unit = Unit::None;
        self.expects_key = false;
    }

    fn start_value(&mut self, sink: &mut dyn PartSink) {
        self.array = self.wanted.iter().position(|wanted| wanted.key.as_bytes() == self.key);
        self.list = 0;
        // (Also where the key is missing.)
        self.expects_key = false;
        match self.array {
            Some(array) => sink.part(Part::Array { array }),
            None => self.unit = Unit::Value,
        }
    }

    fn end_value(&mut self, bytes: &[u8], sink: &mut dyn PartSink) {
        let key = std::mem::take(&mut self.key);
        self.end(bytes, &mut |value| sink.part(Part::Member { key: &key, value }));
    }

    fn end_element(&mut self, bytes: &[u8], sink: &mut dyn PartSink) {
        let (array, list) = (self.array.unwrap_or_default(), self.list.saturating_sub(1));
        let at = self.start;
        self.end(bytes, &mut |bytes| sink.part(Part::Element { array, list, bytes, at }));
    }

    /// Hands over a unit of which `bytes` are in the current chunk.
    fn end(&mut self, bytes: &[u8], sink: &mut dyn FnMut(&[u8])) {
        self.unit = Unit::None;
        if self.carry.is_empty() && !self.is_too_long {
            sink(bytes);
            return;
        }
        self.keep(bytes);
        if self.is_too_long {
            self.n_too_long += 1;
        } else {
            sink(&self.carry);
        }
        self.carry.clear();
        self.is_too_long = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str, size: usize) -> Vec<String> {
        let mut splitter = Splitter::new(&[("a", 2), ("t", 3)]);
        let mut parts = Vec::new();
        let bytes = text.as_bytes();
        for chunk in bytes.chunks(size) {
            splitter.push(chunk, &mut |part: Part<'_>| {
                let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
                parts.push(match part {
                    Part::Array { array } => format!("array {array}"),
                    Part::Element { array, list, bytes: found, at } => {
                        let bytes = &bytes[at as usize..];
                        assert!(bytes.starts_with(found), "{at}: {}", text(found));
                        format!("{array}/{list} {}", text(found))
                    }
                    Part::Member { key, value } => format!("{}={}", text(key), text(value).trim()),
                });
            });
        }
        if let Some(Part::Element { array, list, bytes, .. }) = splitter.cut_element() {
            parts.push(format!("cut {array}/{list} {}", String::from_utf8_lossy(bytes)));
        }
        parts.push(format!("{} {}", splitter.is_complete(), splitter.n_after()));
        parts
    }

    /// Knows the array `[{"f": 1}]`.
    struct Knowing(Vec<String>, Vec<u64>);

    impl PartSink for Knowing {
        fn part(&mut self, part: Part<'_>) {
            if let Part::Element { bytes, .. } = part {
                self.0.push(String::from_utf8_lossy(bytes).into_owned());
            }
        }

        fn known(&mut self, rest: &[u8], at: u64) -> usize {
            self.1.push(at);
            let known = br#"[{"f": 1}]"#;
            if rest.starts_with(known) { known.len() } else { 0 }
        }
    }

    #[test]
    fn what_is_known_is_passed_and_the_elements_are_the_same() {
        let text = r#"{"a": [{"x": [{"f": 1}], "y": "[{"}, {"x": [{"f": 2}]}, {"x": [{"f": 1}]}]}"#;
        for size in [1, 3, 10, 11, 40, 1000] {
            let mut splitter = Splitter::new(&[("a", 2)]);
            let mut knowing = Knowing(Vec::new(), Vec::new());
            for chunk in text.as_bytes().chunks(size) {
                splitter.push(chunk, &mut knowing);
            }
            let elements =
                [r#"{"x": [{"f": 1}], "y": "[{"}"#, r#"{"x": [{"f": 2}]}"#, r#"{"x": [{"f": 1}]}"#];
            assert_eq!(knowing.0, elements, "pieces of {size}");
            assert_eq!(knowing.1, [13, 43, 62], "asked once for each array, by its place");
        }
    }

    #[test]
    fn elements_of_several_arrays_in_any_chunking() {
        let text = r#" {"a": [{"x": "}\""}, {"a": [{}]}], "n\"": [1, {"b": ","}], "t": [[], [{"y": 1}, {}], [{}]], "v": -1} x"#;
        let expected = [
            "array 0",
            r#"0/0 {"x": "}\""}"#,
            r#"0/0 {"a": [{}]}"#,
            r#"n\"=[1, {"b": ","}]"#,
            "array 1",
            r#"1/1 {"y": 1}"#,
            "1/1 {}",
            "1/2 {}",
            "v=-1",
            "true 1",
        ];
        for size in 1..=text.len() {
            assert_eq!(parts(text, size), expected, "chunks of {size}");
        }
    }

    #[test]
    fn a_text_behind_a_missing_key_is_a_value_in_any_chunking() {
        let text = r#"{"v": 1, :un "w": 2, "x": 3}"#;
        for size in 1..=text.len() {
            assert_eq!(
                parts(text, size),
                ["v=1", r#"=un "w": 2"#, "x=3", "true 0"],
                "chunks of {size}"
            );
        }
    }

    #[test]
    fn a_cut_element_is_kept_and_the_object_is_not_complete() {
        for size in [1, 3, 100] {
            assert_eq!(
                parts(r#"{"t": [[{}], [{"y": "#, size),
                ["array 1", "1/0 {}", r#"cut 1/1 {"y": "#, "false 0"]
            );
        }
    }
}
