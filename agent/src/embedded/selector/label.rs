//! The language of label selectors: `a`, `!a`, `a=b`, `a!=b`, `a in (b, c)`, `a notin (b)`, `a>1`, `a<1`, joined by
//! commas.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::{CharIndices, FromStr};

use crate::embedded::admit::labels;

/// What an object's labels must be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    Exists,
    Missing,
    In(Vec<String>),
    NotIn(Vec<String>),
    Above(i64),
    Below(i64),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Sign(&'static str),
}

impl Labels {
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut tokens = tokens(text)?.into_iter().peekable();
        let mut requirements = Vec::new();
        while tokens.peek().is_some() {
            requirements
                .push(requirement(&mut tokens).map_err(|why| format!("unable to parse requirement: {why}"))?);
            match tokens.next() {
                None => break,
                Some(Token::Sign(",")) if tokens.peek().is_some() => {}
                Some(other) => {
                    return Err(format!(
                        "unable to parse requirement: found '{}', expected: ',' or 'end of string'",
                        other.shown()
                    ));
                }
            }
        }
        Ok(Self(requirements))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn match_all(&self, labels: &BTreeMap<String, String>) -> bool {
        self.0.iter().all(|requirement| requirement.holds(labels.get(&requirement.key)))
    }
}

impl FromStr for Labels {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text)
    }
}

impl Requirement {
    fn holds(&self, value: Option<&String>) -> bool {
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.test {
            Test::Exists => value.is_some(),
            Test::Missing => value.is_none(),
            Test::In(values) => value.is_some_and(|value| values.contains(value)),
            Test::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            Test::Above(than) => number().is_some_and(|number| number > *than),
            Test::Below(than) => number().is_some_and(|number| number < *than),
        }
    }
}

impl Token {
    fn shown(&self) -> &str {
        match self {
            Self::Word(word) => word,
            Self::Sign(sign) => sign,
        }
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let mut then = |next: char| chars.next_if(|(_, c)| *c == next).is_some();
        tokens.push(match c {
            c if c.is_whitespace() => continue,
            ',' => Token::Sign(","),
            '(' => Token::Sign("("),
            ')' => Token::Sign(")"),
            '>' => Token::Sign(">"),
            '<' => Token::Sign("<"),
            '=' => {
                then('=');
                Token::Sign("=")
            }
            '!' => Token::Sign(if then('=') { "!=" } else { "!" }),
            _ => Token::Word(word(text, at, &mut chars)),
        });
    }
    Ok(tokens)
}

fn word(text: &str, from: usize, chars: &mut Peekable<CharIndices<'_>>) -> String {
    let ends = |c: char| c.is_whitespace() || ",()><=!".contains(c);
    let mut to = text.len();
    while let Some((at, c)) = chars.peek() {
        if ends(*c) {
            to = *at;
            break;
        }
        chars.next();
    }
    text[from..to].to_owned()
}

type Tokens = Peekable<std::vec::IntoIter<Token>>;

fn requirement(tokens: &mut Tokens) -> Result<Requirement, String> {
    if tokens.next_if_eq(&Token::Sign("!")).is_some() {
        return Ok(Requirement { key: key(tokens)?, test: Test::Missing });
    }
    let key = key(tokens)?;
    let sign = match tokens.peek() {
        None | Some(Token::Sign(",")) => return Ok(Requirement { key, test: Test::Exists }),
        Some(_) => tokens.next(),
    };
    let sign = sign.as_ref().map(Token::shown).unwrap_or_default();
    let test = match sign {
        "=" => Test::In(vec![value(tokens)?]),
        "!=" => Test::NotIn(vec![value(tokens)?]),
        ">" => Test::Above(number(tokens)?),
        "<" => Test::Below(number(tokens)?),
        "in" => Test::In(set(tokens)?),
        "notin" => Test::NotIn(set(tokens)?),
        other => return Err(format!("found '{other}', expected: in, notin, =, ==, !=, gt, lt")),
    };
    Ok(Requirement { key, test })
}

fn key(tokens: &mut Tokens) -> Result<String, String> {
    match tokens.next() {
        Some(Token::Word(key)) => match labels::wrong_key(&key) {
            Some(why) => Err(format!("key: Invalid value: {key:?}: {why}")),
            None => Ok(key),
        },
        Some(other) => Err(format!("found '{}', expected: !, identifier, or 'end of string'", other.shown())),
        None => Err("found '', expected: identifier".to_owned()),
    }
}

/// A value; nothing at all is the empty one.
fn value(tokens: &mut Tokens) -> Result<String, String> {
    match tokens.peek() {
        None | Some(Token::Sign(",")) => Ok(String::new()),
        Some(_) => match tokens.next() {
            Some(Token::Word(value)) => checked(value),
            other => Err(format!(
                "found '{}', expected: identifier",
                other.as_ref().map(Token::shown).unwrap_or_default()
            )),
        },
    }
}

fn checked(value: String) -> Result<String, String> {
    match labels::wrong_value(&value) {
        Some(why) => Err(format!("values: Invalid value: {value:?}: {why}")),
        None => Ok(value),
    }
}

fn number(tokens: &mut Tokens) -> Result<i64, String> {
    let text = value(tokens)?;
    text.parse().map_err(|_| {
        format!("values: Invalid value: {text:?}: for 'Gt', 'Lt' operators, the value must be an integer")
    })
}

fn set(tokens: &mut Tokens) -> Result<Vec<String>, String> {
    let expected = |token: Option<Token>, what: &str| {
        let found = token.as_ref().map(Token::shown).unwrap_or_default().to_owned();
        format!("found '{found}', expected: {what}")
    };
    match tokens.next() {
        Some(Token::Sign("(")) => {}
        other => return Err(expected(other, "'('")),
    }
    let mut values = Vec::new();
    loop {
        match tokens.next() {
            Some(Token::Word(word)) => values.push(checked(word)?),
            Some(Token::Sign(",")) => values.push(String::new()),
            Some(Token::Sign(")")) if values.is_empty() => return Ok(vec![String::new()]),
            other => return Err(expected(other, "',', or identifier")),
        }
        match tokens.next() {
            Some(Token::Sign(")")) => return Ok(values),
            Some(Token::Sign(",")) => {}
            other => return Err(expected(other, "',' or ')'")),
        }
    }
}
