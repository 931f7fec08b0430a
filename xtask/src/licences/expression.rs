//! SPDX licence expressions: `OR`, `AND`, parentheses, `WITH`, and the slash that old manifests write for `OR`.

/// An expression with its operators resolved.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Expression {
    /// A licence, with its exception if it has one: `Apache-2.0 WITH LLVM-exception`.
    Term(String),
    /// All of them apply.
    And(Box<Self>, Box<Self>),
    /// One may be chosen.
    Or(Box<Self>, Box<Self>),
}

/// Text that is no expression.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ParseError {
    /// Something follows where the expression should end.
    #[error("unexpected `{0}`")]
    Unexpected(String),
    /// The text ends too early.
    #[error("it ends where a licence is expected")]
    End,
    /// Parentheses in parentheses, deeper than any licence needs.
    #[error("more than {MAX_DEPTH} parentheses in each other")]
    TooDeep,
}

const MAX_DEPTH: usize = 16;

impl Expression {
    /// Reads an expression. `AND` binds closer than `OR`.
    pub(super) fn parse(text: &str) -> Result<Self, ParseError> {
        let spaced = text.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
        let tokens: Vec<&str> = spaced.split_whitespace().collect();
        let mut parser = Parser { tokens: &tokens, depth: 0 };
        let expression = parser.or()?;
        match parser.tokens.first() {
            None => Ok(expression),
            Some(rest) => Err(ParseError::Unexpected((*rest).to_owned())),
        }
    }

    /// Whether the expression can be met with terms that `allowed` accepts.
    pub(super) fn met(&self, allowed: &impl Fn(&str) -> bool) -> bool {
        match self {
            Self::Term(term) => allowed(term),
            Self::And(a, b) => a.met(allowed) && b.met(allowed),
            Self::Or(a, b) => a.met(allowed) || b.met(allowed),
        }
    }
}

struct Parser<'a> {
    tokens: &'a [&'a str],
    depth: usize,
}

impl Parser<'_> {
    fn or(&mut self) -> Result<Expression, ParseError> {
        let mut left = self.and()?;
        while self.take("OR") {
            left = Expression::Or(Box::new(left), Box::new(self.and()?));
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Expression, ParseError> {
        let mut left = self.term()?;
        while self.take("AND") {
            left = Expression::And(Box::new(left), Box::new(self.term()?));
        }
        Ok(left)
    }

    fn term(&mut self) -> Result<Expression, ParseError> {
        if self.take("(") {
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                return Err(ParseError::TooDeep);
            }
            let inner = self.or()?;
            self.depth -= 1;
            return if self.take(")") { Ok(inner) } else { Err(self.unexpected()) };
        }
        let mut term = self.name()?.to_owned();
        if self.take("WITH") {
            term = format!("{term} WITH {}", self.name()?);
        }
        Ok(Expression::Term(term))
    }

    fn name(&mut self) -> Result<&str, ParseError> {
        match self.tokens.split_first() {
            Some((name, rest)) if !["AND", "OR", "WITH", "(", ")"].contains(name) => {
                self.tokens = rest;
                Ok(name)
            }
            _ => Err(self.unexpected()),
        }
    }

    fn take(&mut self, token: &str) -> bool {
        match self.tokens.split_first() {
            Some((first, rest)) if *first == token => {
                self.tokens = rest;
                true
            }
            _ => false,
        }
    }

    fn unexpected(&self) -> ParseError {
        self.tokens.first().map_or(ParseError::End, |token| ParseError::Unexpected((*token).to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met(text: &str, allowed: &[&str]) -> bool {
        Expression::parse(text).unwrap().met(&|term: &str| allowed.contains(&term))
    }

    #[test]
    fn one_of_several_is_enough_and_all_of_several_are_needed() {
        assert!(met("MIT OR LGPL-2.1-or-later", &["MIT"]));
        assert!(met("MIT/Apache-2.0", &["Apache-2.0"]));
        assert!(met("Apache-2.0 / MIT", &["MIT"]));
        assert!(!met("MIT AND GPL-3.0", &["MIT"]));
        assert!(met("(MIT OR Apache-2.0) AND Unicode-3.0", &["Apache-2.0", "Unicode-3.0"]));
        assert!(!met("(MIT OR Apache-2.0) AND Unicode-3.0", &["Apache-2.0", "MIT"]));
    }

    #[test]
    fn and_binds_closer_than_or() {
        assert!(met("MIT OR GPL-3.0 AND ISC", &["MIT"]));
        assert!(!met("GPL-3.0 AND ISC OR Zlib", &["ISC"]));
    }

    #[test]
    fn an_exception_belongs_to_its_licence() {
        assert!(!met("Apache-2.0 WITH LLVM-exception", &["Apache-2.0"]));
        assert!(met("Apache-2.0 WITH LLVM-exception", &["Apache-2.0 WITH LLVM-exception"]));
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        for text in [
            "",
            "MIT OR",
            "MIT Apache-2.0",
            "(MIT",
            "MIT)",
            "AND MIT",
            "MIT WITH",
            "()",
            &"(".repeat(100_000),
        ] {
            assert!(Expression::parse(text).is_err(), "{text}");
        }
    }
}
