//! A Rust file as the rules see it: code apart from comments and literals, paths written out, test lines marked.

/// One file, split into lines that are parallel in all the vectors.
#[derive(Debug)]
pub(super) struct Source {
    /// Relative to the workspace, with slashes.
    pub(super) path: String,
    pub(super) raw: Vec<String>,
    /// Without comments; the contents of string and character literals are blanks.
    pub(super) code: Vec<String>,
    pub(super) comment: Vec<String>,
    /// In an item that exists only under `cfg(test)` or `cfg(loom)`.
    pub(super) test: Vec<bool>,
    /// Names `x` of `#[cfg(test)] mod x;`.
    pub(super) test_modules: Vec<String>,
    pub(super) tokens: Vec<Token>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Token {
    /// Counted from 0.
    pub(super) line: usize,
    pub(super) text: String,
}

/// A path as it is written, with the braces of `use` resolved.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct PathUse {
    pub(super) line: usize,
    pub(super) segments: Vec<String>,
    /// Named by `use` or `extern crate`, so that one segment is already a path.
    pub(super) imported: bool,
}

impl PathUse {
    pub(super) fn starts_with(&self, segments: &[&str]) -> bool {
        self.segments.len() >= segments.len()
            && self
                .segments
                .iter()
                .zip(segments)
                .all(|(have, want)| have == want)
    }

    pub(super) fn contains(&self, segments: &[&str]) -> bool {
        self.segments
            .windows(segments.len())
            .any(|window| window.iter().zip(segments).all(|(have, want)| have == want))
    }
}

impl Source {
    pub(super) fn parse(path: &str, text: &str) -> Self {
        let (code, comment) = split_comments(text);
        let raw: Vec<String> = text.lines().map(str::to_owned).collect();
        let tokens = tokenize(&code);
        let mut source = Self {
            path: path.to_owned(),
            test: vec![false; raw.len()],
            test_modules: Vec::new(),
            raw,
            code,
            comment,
            tokens,
        };
        source.mark_tests();
        source
    }

    pub(super) fn mark_all_as_test(&mut self) {
        self.test.fill(true);
    }

    pub(super) fn is_test(&self, line: usize) -> bool {
        self.test.get(line).copied().unwrap_or(false)
    }

    pub(super) fn paths(&self) -> Vec<PathUse> {
        let mut out = Vec::new();
        let mut at = 0;
        while let Some(token) = self.tokens.get(at) {
            let word = is_identifier(&token.text) && !BEFORE_A_PATH.contains(&token.text.as_str());
            if word || (token.text == "::" && self.next_is_identifier(at)) {
                let before = at
                    .checked_sub(1)
                    .and_then(|i| self.tokens.get(i))
                    .map(|t| t.text.as_str());
                let imported = matches!(before, Some("use" | "crate"));
                let start = if token.text == "::" { at + 1 } else { at };
                at = self.path_tree(start, &[], imported, &mut out);
            } else {
                at += 1;
            }
        }
        out
    }

    fn next_is_identifier(&self, at: usize) -> bool {
        self.tokens
            .get(at + 1)
            .is_some_and(|t| is_identifier(&t.text))
    }

    /// Parses `a::b::{c, d::e}` that starts at `at`; returns the first token behind it.
    fn path_tree(
        &self,
        mut at: usize,
        prefix: &[String],
        imported: bool,
        out: &mut Vec<PathUse>,
    ) -> usize {
        let line = self.tokens.get(at).map_or(0, |t| t.line);
        let mut segments = prefix.to_vec();
        loop {
            match self.tokens.get(at).map(|t| t.text.as_str()) {
                Some("{") if segments.len() > prefix.len() || !prefix.is_empty() => {
                    at += 1;
                    while let Some(token) = self.tokens.get(at) {
                        match token.text.as_str() {
                            "}" => return at + 1,
                            "as" => at += 2,
                            text if is_identifier(text) || text == "{" => {
                                at = self.path_tree(at, &segments, imported, out);
                            }
                            _ => at += 1,
                        }
                    }
                    return at;
                }
                Some(text) if is_identifier(text) => segments.push(text.to_owned()),
                _ => break,
            }
            at += 1;
            let joined = self.tokens.get(at).is_some_and(|t| t.text == "::");
            let goes_on = self
                .tokens
                .get(at + 1)
                .is_some_and(|t| is_identifier(&t.text) || t.text == "{");
            if joined && goes_on {
                at += 1;
            } else {
                break;
            }
        }
        out.push(PathUse {
            line,
            segments,
            imported,
        });
        at
    }

    fn mark_tests(&mut self) {
        let mut at = 0;
        while at < self.tokens.len() {
            let Some((inner, end)) = self.cfg_attribute(at) else {
                at += 1;
                continue;
            };
            let condition: Vec<&str> = self.tokens[at..end]
                .iter()
                .map(|t| t.text.as_str())
                .collect();
            if !implies_test(&condition) {
                at = end;
            } else if inner {
                self.mark_all_as_test();
                return;
            } else {
                let first = self.tokens[at].line;
                let (last, module) = self.item_end(end);
                self.test_modules.extend(module);
                let last_line = self.tokens.get(last).map_or(self.raw.len(), |t| t.line);
                self.test
                    .iter_mut()
                    .take(last_line + 1)
                    .skip(first)
                    .for_each(|mark| *mark = true);
                at = last + 1;
            }
        }
    }

    /// `#[cfg(…)]` or `#![cfg(…)]` at `at`: whether it is an inner one, and the token behind it.
    fn cfg_attribute(&self, at: usize) -> Option<(bool, usize)> {
        let text = |i: usize| self.tokens.get(i).map(|t| t.text.as_str());
        if text(at) != Some("#") {
            return None;
        }
        let inner = text(at + 1) == Some("!");
        let bracket = at + 1 + usize::from(inner);
        if text(bracket) != Some("[") || text(bracket + 1) != Some("cfg") {
            return None;
        }
        Some((inner, self.matching(bracket) + 1))
    }

    /// The closing token of the bracket at `open`, or the last token.
    fn matching(&self, open: usize) -> usize {
        let mut depth = 0usize;
        for (i, token) in self.tokens.iter().enumerate().skip(open) {
            match token.text.as_str() {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return i;
                    }
                }
                _ => {}
            }
        }
        self.tokens.len().saturating_sub(1)
    }

    /// The last token of the item, statement or field at `at`, and the name if it is `mod name;`.
    fn item_end(&self, mut at: usize) -> (usize, Option<String>) {
        while self.tokens.get(at).is_some_and(|t| t.text == "#") {
            at = self.matching(at + 1) + 1;
        }
        let is_item = self
            .tokens
            .get(at)
            .is_some_and(|t| ITEM_WORDS.contains(&t.text.as_str()));
        let mut module = None;
        while let Some(token) = self.tokens.get(at) {
            match token.text.as_str() {
                "{" => return (self.matching(at), None),
                ";" => return (at, module),
                "(" | "[" => at = self.matching(at),
                "," | "}" if !is_item => return (at, None),
                "mod" => module = self.tokens.get(at + 1).map(|t| t.text.clone()),
                _ => {}
            }
            at += 1;
        }
        (at.saturating_sub(1), module)
    }
}

/// Whether the tokens of an attribute `#[cfg(…)]` say: only under `test` or `loom`.
fn implies_test(tokens: &[&str]) -> bool {
    fn arguments<'t>(tokens: &'t [&'t str]) -> Vec<&'t [&'t str]> {
        let mut depth = 0;
        tokens
            .split(|t| {
                match *t {
                    "(" => depth += 1,
                    ")" => depth -= 1,
                    _ => {}
                }
                depth == 0 && *t == ","
            })
            .filter(|part| !part.is_empty())
            .collect()
    }
    fn holds(expression: &[&str]) -> bool {
        match expression {
            ["test" | "loom"] => true,
            ["all", "(", inner @ .., ")"] => arguments(inner).iter().any(|e| holds(e)),
            ["any", "(", inner @ .., ")"] => arguments(inner).iter().all(|e| holds(e)),
            _ => false,
        }
    }
    let open = tokens
        .iter()
        .position(|t| *t == "(")
        .map_or(tokens.len(), |i| i + 1);
    let close = tokens
        .iter()
        .rposition(|t| *t == ")")
        .unwrap_or(open)
        .max(open);
    holds(&tokens[open..close])
}

fn is_identifier(text: &str) -> bool {
    text.starts_with(|c: char| c == '_' || c.is_alphabetic())
}

fn tokenize(code: &[String]) -> Vec<Token> {
    let mut tokens = Vec::new();
    for (line, text) in code.iter().enumerate() {
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            let length = if is_identifier(rest) {
                rest.find(|c: char| c != '_' && !c.is_alphanumeric())
                    .unwrap_or(rest.len())
            } else if rest.starts_with("::") {
                2
            } else {
                first.len_utf8()
            };
            tokens.push(Token {
                line,
                text: rest[..length].to_owned(),
            });
            rest = rest[length..].trim_start();
        }
    }
    tokens
}

/// The lines of code and the lines of comment of a Rust (or C) text.
fn split_comments(text: &str) -> (Vec<String>, Vec<String>) {
    let chars: Vec<char> = text.chars().collect();
    let mut split = Split {
        code: String::new(),
        comment: String::new(),
    };
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        let next = chars.get(at + 1).copied();
        at = match (c, next) {
            ('/', Some('/')) => split.comment_until(&chars, at, line_end(&chars, at)),
            ('/', Some('*')) => split.comment_until(&chars, at, block_end(&chars, at)),
            ('"', _) => split.literal(&chars, at, string_end(&chars, at)),
            ('r', _) if !follows_identifier(&chars, at) && raw_string_end(&chars, at).is_some() => {
                let end = raw_string_end(&chars, at).unwrap_or(at + 1);
                split.literal(&chars, at, end)
            }
            ('\'', Some('\\')) => split.literal(&chars, at, character_end(&chars, at)),
            ('\'', _) if chars.get(at + 2) == Some(&'\'') => split.literal(&chars, at, at + 3),
            _ => {
                split.code.push(c);
                split.comment.push(if c == '\n' { '\n' } else { ' ' });
                at + 1
            }
        };
    }
    let lines = |text: String| text.lines().map(|l| l.trim_end().to_owned()).collect();
    (lines(split.code), lines(split.comment))
}

struct Split {
    code: String,
    comment: String,
}

impl Split {
    fn comment_until(&mut self, chars: &[char], from: usize, end: usize) -> usize {
        for &c in &chars[from..end] {
            self.comment.push(c);
            self.code.push(if c == '\n' { '\n' } else { ' ' });
        }
        end
    }

    /// Keeps the quotes, so that a literal is still seen to stand there.
    fn literal(&mut self, chars: &[char], from: usize, end: usize) -> usize {
        for (i, &c) in chars[from..end].iter().enumerate() {
            let edge = i == 0 || from + i + 1 == end;
            self.code.push(match c {
                '\n' => '\n',
                _ if edge && c != 'r' => '"',
                _ => ' ',
            });
            self.comment.push(if c == '\n' { '\n' } else { ' ' });
        }
        end
    }
}

fn line_end(chars: &[char], from: usize) -> usize {
    chars[from..]
        .iter()
        .position(|c| *c == '\n')
        .map_or(chars.len(), |n| from + n)
}

fn block_end(chars: &[char], from: usize) -> usize {
    let mut depth = 0usize;
    let mut at = from;
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => (depth, at) = (depth + 1, at + 2),
            ('*', Some('/')) => {
                (depth, at) = (depth - 1, at + 2);
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    chars.len()
}

fn string_end(chars: &[char], from: usize) -> usize {
    let mut at = from + 1;
    while let Some(c) = chars.get(at) {
        match c {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

fn character_end(chars: &[char], from: usize) -> usize {
    let behind_escape = (from + 3).min(chars.len());
    chars[behind_escape..]
        .iter()
        .position(|c| *c == '\'')
        .map_or(chars.len(), |n| behind_escape + n + 1)
}

fn raw_string_end(chars: &[char], from: usize) -> Option<usize> {
    let hashes = chars[from + 1..].iter().take_while(|c| **c == '#').count();
    let open = from + 1 + hashes;
    if chars.get(open) != Some(&'"') {
        return None;
    }
    let closing = |at: &usize| {
        chars[*at] == '"' && chars[at + 1..].iter().take_while(|c| **c == '#').count() >= hashes
    };
    Some(
        (open + 1..chars.len())
            .find(closing)
            .map_or(chars.len(), |at| at + 1 + hashes),
    )
}

/// Whether the character before `at` belongs to a name; the `b` and `c` of byte and C strings do not.
fn follows_identifier(chars: &[char], at: usize) -> bool {
    let name = |i: usize| {
        chars
            .get(i)
            .is_some_and(|c| *c == '_' || c.is_alphanumeric())
    };
    let Some(before) = at.checked_sub(1) else {
        return false;
    };
    match chars[before] {
        'b' | 'c' => before.checked_sub(1).is_some_and(name),
        _ => name(before),
    }
}

/// Keywords that a path with leading colons may follow.
const BEFORE_A_PATH: [&str; 8] = ["as", "dyn", "else", "impl", "in", "mut", "return", "use"];

const ITEM_WORDS: [&str; 16] = [
    "async",
    "const",
    "enum",
    "extern",
    "fn",
    "impl",
    "let",
    "macro_rules",
    "mod",
    "pub",
    "static",
    "struct",
    "trait",
    "type",
    "unsafe",
    "use",
];

#[cfg(test)]
mod tests;
