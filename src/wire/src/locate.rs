//! In which line of a JSON text the place is that a pointer (RFC 6901) names.

/// The line, from 1, of the place or of the nearest one around it that is there. The text has to be JSON.
#[must_use]
pub fn line_of(text: &str, pointer: &str) -> usize {
    let part = |part: &str| part.replace("~1", "/").replace("~0", "~");
    let path: Vec<String> = pointer.split('/').skip(1).map(part).collect();
    let mut scan = Scan { text: text.as_bytes(), at: 0 };
    let at = scan.find(&path).unwrap_or_default();
    let before = text.as_bytes().get(..at).unwrap_or_default();
    before.iter().filter(|byte| **byte == b'\n').count().saturating_add(1)
}

struct Scan<'a> {
    text: &'a [u8],
    at: usize,
}

impl Scan<'_> {
    /// Where the value is that `path` leads to from the value that comes next.
    fn find(&mut self, path: &[String]) -> Option<usize> {
        self.blanks();
        let start = self.at;
        let Some((first, rest)) = path.split_first() else { return Some(start) };
        let found = match self.peek()? {
            b'{' => self.member(first, rest),
            b'[' => first.parse().ok().and_then(|index| self.entry(index, rest)),
            _ => None,
        };
        found.or(Some(start))
    }

    fn member(&mut self, name: &str, rest: &[String]) -> Option<usize> {
        self.at += 1;
        loop {
            self.blanks();
            let key = self.at;
            if self.peek()? != b'"' {
                return None;
            }
            self.skip();
            let found = serde_json::from_slice::<String>(self.text.get(key..self.at)?).ok()?;
            self.until(b':')?;
            if found == name {
                return if rest.is_empty() { Some(key) } else { self.find(rest) };
            }
            self.skip();
            self.until(b',')?;
        }
    }

    fn entry(&mut self, index: usize, rest: &[String]) -> Option<usize> {
        self.at += 1;
        for _ in 0..index {
            self.skip();
            self.until(b',')?;
        }
        self.blanks();
        if self.peek()? == b']' { None } else { self.find(rest) }
    }

    /// Goes behind the value that comes next.
    fn skip(&mut self) {
        self.blanks();
        let mut depth = 0_usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => self.string(),
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' | b',' | b':' if depth == 0 => return,
                b'}' | b']' => {
                    depth -= 1;
                    self.at += 1;
                }
                _ => self.at += 1,
            }
            if depth == 0 && matches!(byte, b'"' | b'}' | b']') {
                return;
            }
        }
    }

    fn string(&mut self) {
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += if byte == b'\\' { 2 } else { 1 };
            if byte == b'"' {
                return;
            }
        }
    }

    /// Goes behind this sign, which has to come next.
    fn until(&mut self, sign: u8) -> Option<()> {
        self.blanks();
        (self.peek()? == sign).then(|| self.at += 1)
    }

    fn blanks(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
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
    fn each_place_has_its_line() {
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
    fn what_is_not_there_is_at_what_is_around_it() {
        let lines =
            [("/nodes/1/retry", 5), ("/nodes/7", 3), ("/nodes/x", 3), ("/edges/0/from", 12), ("/output", 1)];
        for (pointer, line) in lines {
            assert_eq!(line_of(TEXT, pointer), line, "{pointer}");
        }
        assert_eq!(line_of("", "/a"), 1);
        assert_eq!(line_of("\n\n[", "/0"), 3);
    }
}
