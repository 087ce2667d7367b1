//! Maps JSON pointers (RFC 6901) to line numbers in a JSON text.

use std::collections::HashMap;

/// The line, from 1, of the location or of its nearest existing ancestor. The text must be JSON.
#[must_use]
pub fn line_of(text: &str, pointer: &str) -> usize {
    Lines::read(text).line(pointer)
}

/// The lines of all locations in a JSON text, which is parsed once for any number of lookups.
#[derive(Debug)]
pub struct Lines(Vec<ValueLocation>);

#[derive(Debug)]
struct ValueLocation {
    /// Line of its name, or of the value itself if it has no name.
    line: usize,
    /// Line of its value.
    value: usize,
    inner: Inner,
}

#[derive(Debug)]
enum Inner {
    Nothing,
    Members(HashMap<String, usize>),
    Entries(Vec<usize>),
}

impl Lines {
    /// Parses a text, which must be JSON.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let mut scan = Scan { text: text.as_bytes(), at: 0, line: 1, counted: 0 };
        let mut lines = Self(Vec::new());
        let mut open: Vec<usize> = Vec::new();
        let mut named = None;
        while let Some(byte) = scan.peek() {
            if byte.is_ascii_whitespace() || matches!(byte, b',' | b':') {
                scan.at += 1;
                continue;
            }
            if matches!(byte, b'}' | b']') {
                scan.at += 1;
                open.pop();
                continue;
            }
            let (line, start) = (scan.line(), scan.at);
            scan.skip(byte);
            let parent = open.last().and_then(|parent| lines.0.get(*parent));
            if byte == b'"' && named.is_none() && parent.is_some_and(|parent| parent.inner.is_object()) {
                let name = scan.text.get(start..scan.at);
                let name = name.and_then(|name| serde_json::from_slice(name).ok()).unwrap_or_default();
                named = Some(lines.add(open.last(), Some(name), line));
                continue;
            }
            let place = named.take().unwrap_or_else(|| lines.add(open.last(), None, line));
            if let Some(found) = lines.0.get_mut(place) {
                found.value = line;
                found.inner = match byte {
                    b'{' => Inner::Members(HashMap::new()),
                    b'[' => Inner::Entries(Vec::new()),
                    _ => Inner::Nothing,
                };
            }
            if matches!(byte, b'{' | b'[') {
                open.push(place);
            }
        }
        lines
    }

    /// The line, from 1, of the location or of its nearest existing ancestor.
    #[must_use]
    pub fn line(&self, pointer: &str) -> usize {
        let Some(mut place) = self.0.first() else { return 1 };
        for part in pointer.split('/').skip(1) {
            let next = match &place.inner {
                Inner::Nothing => None,
                Inner::Members(members) => members.get(&part.replace("~1", "/").replace("~0", "~")),
                Inner::Entries(entries) => part.parse::<usize>().ok().and_then(|index| entries.get(index)),
            };
            let Some(next) = next.and_then(|next| self.0.get(*next)) else { return place.value };
            place = next;
        }
        place.line
    }

    fn add(&mut self, parent: Option<&usize>, name: Option<String>, line: usize) -> usize {
        let place = self.0.len();
        self.0.push(ValueLocation { line, value: line, inner: Inner::Nothing });
        match (parent.and_then(|parent| self.0.get_mut(*parent)).map(|parent| &mut parent.inner), name) {
            (Some(Inner::Members(members)), Some(name)) => {
                members.entry(name).or_insert(place);
            }
            (Some(Inner::Entries(entries)), None) => entries.push(place),
            _ => {}
        }
        place
    }
}

impl Inner {
    const fn is_object(&self) -> bool {
        matches!(self, Self::Members(_))
    }
}

struct Scan<'a> {
    text: &'a [u8],
    at: usize,
    line: usize,
    /// Position up to which lines are counted.
    counted: usize,
}

impl Scan<'_> {
    fn line(&mut self) -> usize {
        let passed = self.text.get(self.counted..self.at).unwrap_or_default();
        self.line += passed.iter().filter(|byte| **byte == b'\n').count();
        self.counted = self.at;
        self.line
    }

    /// Skips the string, number, word or bracket that begins here.
    fn skip(&mut self, first: u8) {
        self.at += 1;
        match first {
            b'"' => {
                while let Some(byte) = self.peek() {
                    self.at += if byte == b'\\' { 2 } else { 1 };
                    if byte == b'"' {
                        return;
                    }
                }
            }
            b'{' | b'[' => {}
            _ => {
                let ends = |byte: u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b':' | b'}' | b']');
                while self.peek().is_some_and(|byte| !ends(byte)) {
                    self.at += 1;
                }
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{
  "format": "graph/1",
  "nodes": [
    {"name": "a", "text": "}],\"{"},
    {
      "name": "b\"",
      "a/b~c": [1, 2.5e3,
        true],
      "text": null
    }
  ],
  "edges": []
}"#;

    #[test]
    fn each_pointer_has_its_line() {
        let lines = [
            ("", 1),
            ("/format", 2),
            ("/nodes", 3),
            ("/nodes/0/text", 4),
            ("/nodes/1", 5),
            ("/nodes/1/name", 6),
            ("/nodes/1/a~1b~0c", 7),
            ("/nodes/1/a~1b~0c/2", 8),
            ("/nodes/1/text", 9),
            ("/edges", 12),
        ];
        for (pointer, line) in lines {
            assert_eq!(line_of(TEXT, pointer), line, "{pointer}");
        }
    }

    #[test]
    fn a_missing_member_is_located_at_its_parent() {
        let lines =
            [("/nodes/1/retry", 5), ("/nodes/7", 3), ("/nodes/x", 3), ("/edges/0/from", 12), ("/output", 1)];
        for (pointer, line) in lines {
            assert_eq!(line_of(TEXT, pointer), line, "{pointer}");
        }
        assert_eq!(line_of("", "/a"), 1);
        assert_eq!(line_of("\n\n[", "/0"), 3);
        assert_eq!(line_of("{\"a\":\n{\"a\": 1}}", "/a"), 1);
        assert_eq!(line_of("{\"a\":\n{\"a\": 1}}", "/a/b"), 2);
        assert_eq!(line_of("{\"a\":\n1,\n\"a\": 2}", "/a"), 1);
    }
}
