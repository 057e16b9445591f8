use super::{FIELDS, Field, Filter, Mistake, Operator, Test};

/// Recursive descent; what comes next decides.
pub(super) struct Parser<'a> {
    text: &'a str,
    tokens: Vec<(usize, &'a str)>,
    next: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            tokens: tokens(text),
            next: 0,
            depth: 0,
        }
    }

    pub(super) fn whole(mut self) -> Result<Filter, Mistake> {
        if self.tokens.is_empty() {
            return Ok(Filter::All);
        }
        let filter = self.or()?;
        match self.peek() {
            None => Ok(filter),
            Some(_) => Err(self.mistake("expected and, or, or the end")),
        }
    }

    fn or(&mut self) -> Result<Filter, Mistake> {
        let mut left = self.and()?;
        while self.take(&["or", "||", "|"]) {
            left = Filter::Or(left.into(), self.and()?.into());
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Filter, Mistake> {
        let mut left = self.not()?;
        loop {
            let said = self.take(&["and", "&&", "&"]);
            let goes_on = !matches!(self.peek(), None | Some(")" | "or" | "||" | "|"));
            if !said && !goes_on {
                return Ok(left);
            }
            left = Filter::And(left.into(), self.not()?.into());
        }
    }

    fn not(&mut self) -> Result<Filter, Mistake> {
        if self.depth == DEPTH_MAX {
            return Err(self.mistake("too deep"));
        }
        self.depth += 1;
        let filter = if self.take(&["not", "!"]) {
            Filter::Not(self.not()?.into())
        } else if self.take(&["("]) {
            let inner = self.or()?;
            if !self.take(&[")"]) {
                return Err(self.mistake("expected )"));
            }
            inner
        } else {
            Filter::Test(self.test()?)
        };
        self.depth -= 1;
        Ok(filter)
    }

    fn test(&mut self) -> Result<Test, Mistake> {
        let Some(field) = self.peek().and_then(Field::find) else {
            let names = FIELDS.map(|(name, _)| name).join(", ");
            return Err(self.mistake(&format!("expected one of {names}, not or (")));
        };
        self.next += 1;
        let mut operator = Operator::Equal;
        if let Some(found) = self.peek().and_then(Operator::find) {
            if !field.is_ordered() && !matches!(found, Operator::Equal | Operator::Unequal) {
                return Err(self.mistake("expected = or !=: there is no more and less of this"));
            }
            operator = found;
            self.next += 1;
        }
        let value = match self.peek() {
            Some(text) if !matches!(text, "(" | ")") => field.value(text),
            _ => Err("expected a value".to_owned()),
        };
        let value = value.map_err(|message| self.mistake(&message))?;
        self.next += 1;
        Ok(Test {
            field,
            operator,
            value,
        })
    }

    fn peek(&self) -> Option<&str> {
        self.tokens.get(self.next).map(|(_, token)| *token)
    }

    fn take(&mut self, any: &[&str]) -> bool {
        let found = self.peek().is_some_and(|token| any.contains(&token));
        self.next += usize::from(found);
        found
    }

    fn mistake(&self, message: &str) -> Mistake {
        let at = self
            .tokens
            .get(self.next)
            .map_or(self.text.len(), |(at, _)| *at);
        Mistake {
            text: self.text.to_owned(),
            at,
            message: message.to_owned(),
        }
    }
}

/// Words, parentheses and operators, and where they begin.
fn tokens(text: &str) -> Vec<(usize, &str)> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(|byte: char| !byte.is_whitespace()) {
        rest = rest.get(start..).unwrap_or_default();
        let kind = |byte: char| match byte {
            '(' | ')' => 0,
            '=' | '!' | '<' | '>' | '&' | '|' => 1,
            _ if byte.is_whitespace() => 2,
            _ => 3,
        };
        let first = rest.chars().next().map_or(2, kind);
        let len = match first {
            0 => 1,
            // Operators may stand side by side, as in `&&!`.
            1 => 1 + usize::from(DOUBLES.iter().any(|double| rest.starts_with(double))),
            _ => rest.find(|byte| kind(byte) != first).unwrap_or(rest.len()),
        };
        let (token, after) = rest.split_at(len);
        tokens.push((text.len() - rest.len(), token));
        rest = after;
    }
    tokens
}

/// Operators of two letters.
const DOUBLES: [&str; 6] = ["&&", "||", "==", "!=", "<=", ">="];
/// Of parentheses and negations.
const DEPTH_MAX: usize = 100;
