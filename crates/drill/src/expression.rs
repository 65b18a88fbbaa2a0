//! The code between `%{` and `}%`: the small part of Python that scripts use, over the fields of `TCP_INFO`.
//!
//! Statements are `assert`, assignment and `print`; expressions have integers, text with `%` formatting, tuples,
//! arithmetic, bit operations, comparisons (chained as Python does), `and`, `or`, `not`. What is not there is refused
//! with its name, never passed over.

use super::backend::Info;
use std::collections::BTreeMap;

/// Variables that live as long as a script.
#[derive(Clone, Debug, Default)]
pub(super) struct Evaluator {
    assigned: BTreeMap<String, Value>,
}

/// Why code did not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// An assertion is false.
    Assertion(String),
    /// The evaluator cannot do it.
    Unsupported(String),
}

#[derive(Clone, Debug, PartialEq)]
enum Value {
    Number(i64),
    Text(String),
    Tuple(Vec<Value>),
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Number(i64),
    Text(String),
    Word(String),
    Sign(&'static str),
    /// End of a statement.
    Stop,
}

impl Evaluator {
    /// Runs `code`; returns what it prints.
    pub(super) fn run(&mut self, code: &str, info: &Info) -> Result<Vec<String>, Refusal> {
        let tokens = tokens(code).map_err(Refusal::Unsupported)?;
        let mut printed = Vec::new();
        for statement in tokens.split(|token| *token == Token::Stop) {
            if statement.is_empty() {
                continue;
            }
            let mut parser = Parser {
                tokens: statement,
                at: 0,
                depth: 0,
                info,
                assigned: &self.assigned,
                shown: Vec::new(),
            };
            match statement {
                [Token::Word(word), ..] if word == "assert" => {
                    parser.at = 1;
                    let value = parser.expression()?;
                    let shown = std::mem::take(&mut parser.shown);
                    let message = if parser.take(",") {
                        Some(parser.expression()?)
                    } else {
                        None
                    };
                    parser.end()?;
                    if !value.truth() {
                        let mut text = format!("assertion failed: {}", source(statement));
                        if !shown.is_empty() {
                            text.push_str(&format!(" with {}", shown.join(", ")));
                        }
                        if let Some(Value::Text(message)) = message {
                            text.push_str(&format!(": {message}"));
                        }
                        return Err(Refusal::Assertion(text));
                    }
                }
                [Token::Word(name), Token::Sign("="), ..] => {
                    parser.at = 2;
                    let value = parser.expression()?;
                    parser.end()?;
                    self.assigned.insert(name.clone(), value);
                }
                [Token::Word(word), ..] if word == "print" => {
                    parser.at = 1;
                    let value = if parser.at < statement.len() {
                        parser.expression()?
                    } else {
                        Value::Text(String::new())
                    };
                    parser.end()?;
                    printed.push(value.show());
                }
                [Token::Word(word), ..] if word == "pass" => {
                    parser.at = 1;
                    parser.end()?;
                }
                _ => {
                    return Err(Refusal::Unsupported(format!(
                        "the statement `{}`",
                        source(statement)
                    )));
                }
            }
        }
        Ok(printed)
    }
}

impl Value {
    fn truth(&self) -> bool {
        match self {
            Value::Number(number) => *number != 0,
            Value::Text(text) => !text.is_empty(),
            Value::Tuple(items) => !items.is_empty(),
        }
    }

    fn show(&self) -> String {
        match self {
            Value::Number(number) => number.to_string(),
            Value::Text(text) => text.clone(),
            Value::Tuple(items) => {
                let items: Vec<_> = items.iter().map(Value::show).collect();
                format!("({})", items.join(", "))
            }
        }
    }
}

const SIGNS: [&str; 24] = [
    "<<", ">>", "==", "!=", "<=", ">=", "//", "**", "<", ">", "=", "+", "-", "*", "/", "%", "&", "|", "^",
    "~", "(", ")", ",", ".",
];

/// Cuts code into tokens. A line ends a statement unless a bracket is open or a backslash ends it.
fn tokens(code: &str) -> Result<Vec<Token>, String> {
    let mut out = Vec::new();
    let mut open = 0_usize;
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let word_len = rest
            .find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'))
            .unwrap_or(rest.len());
        let mut len = first.len_utf8();
        match first {
            '\n' | ';' => {
                if first == ';' || open == 0 {
                    out.push(Token::Stop);
                }
            }
            '\\' if rest[1..].trim_start_matches([' ', '\t', '\r']).starts_with('\n') => {
                len = rest.find('\n').map_or(rest.len(), |at| at + 1);
            }
            '#' => len = rest.find('\n').unwrap_or(rest.len()),
            '\'' | '"' => {
                let Some(end) = rest[1..].find(first) else {
                    return Err("text without a closing quote".to_owned());
                };
                out.push(Token::Text(rest[1..=end].to_owned()));
                len = end + 2;
            }
            _ if first.is_whitespace() => {}
            _ if first.is_ascii_digit() => {
                let digits = &rest[..word_len];
                let value = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
                    Some(digits) => i64::from_str_radix(digits, 16),
                    None => digits.parse(),
                };
                out.push(Token::Number(
                    value.map_err(|_| format!("the number `{digits}`"))?,
                ));
                len = word_len;
            }
            _ if word_len > 0 => {
                out.push(Token::Word(rest[..word_len].to_owned()));
                len = word_len;
            }
            _ => {
                let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) else {
                    return Err(format!("`{first}`"));
                };
                match sign {
                    "(" => open += 1,
                    ")" => open = open.saturating_sub(1),
                    _ => {}
                }
                out.push(Token::Sign(sign));
                len = sign.len();
            }
        }
        rest = &rest[len..];
    }
    Ok(out)
}

/// A statement as text.
fn source(tokens: &[Token]) -> String {
    let mut text = String::new();
    for token in tokens {
        let piece = match token {
            Token::Number(number) => number.to_string(),
            Token::Text(inside) => format!("'{inside}'"),
            Token::Word(word) => word.clone(),
            Token::Sign(sign) => (*sign).to_owned(),
            Token::Stop => continue,
        };
        let tight = matches!(piece.as_str(), ")" | "," | ".") || text.ends_with('(') || text.is_empty();
        if !tight {
            text.push(' ');
        }
        text.push_str(&piece);
    }
    text
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    depth: usize,
    info: &'a Info,
    assigned: &'a BTreeMap<String, Value>,
    /// Variables that were looked at, for messages.
    shown: Vec<String>,
}

/// Binary operators from weakest to strongest, without comparisons and words.
const LEVELS: [&[&str]; 6] = [
    &["|"],
    &["^"],
    &["&"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "//", "/", "%"],
];

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn take(&mut self, sign: &str) -> bool {
        let is = matches!(self.peek(), Some(Token::Sign(next)) if *next == sign);
        self.at += usize::from(is);
        is
    }

    fn take_word(&mut self, word: &str) -> bool {
        let is = matches!(self.peek(), Some(Token::Word(next)) if next == word);
        self.at += usize::from(is);
        is
    }

    fn end(&self) -> Result<(), Refusal> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.refuse(&source(&self.tokens[self.at..]))),
        }
    }

    fn refuse(&self, what: &str) -> Refusal {
        Refusal::Unsupported(format!("`{what}` in `{}`", source(self.tokens)))
    }

    fn expression(&mut self) -> Result<Value, Refusal> {
        self.depth += 1;
        if self.depth > 64 {
            return Err(Refusal::Unsupported("an expression nested so deeply".to_owned()));
        }
        let mut value = self.conjunction()?;
        while self.take_word("or") {
            let right = self.conjunction()?;
            if !value.truth() {
                value = right;
            }
        }
        self.depth -= 1;
        Ok(value)
    }

    fn conjunction(&mut self) -> Result<Value, Refusal> {
        let mut value = self.negation()?;
        while self.take_word("and") {
            let right = self.negation()?;
            if value.truth() {
                value = right;
            }
        }
        Ok(value)
    }

    fn negation(&mut self) -> Result<Value, Refusal> {
        let mut odd = None;
        while self.take_word("not") {
            odd = Some(!odd.unwrap_or(false));
        }
        let value = self.comparison()?;
        Ok(match odd {
            None => value,
            Some(odd) => Value::Number(i64::from(value.truth() != odd)),
        })
    }

    fn comparison(&mut self) -> Result<Value, Refusal> {
        let mut left = self.operation(0)?;
        let mut holds = None;
        while let Some(Token::Sign(sign @ ("==" | "!=" | "<=" | ">=" | "<" | ">"))) = self.peek().cloned() {
            self.at += 1;
            let right = self.operation(0)?;
            let ordering = match (&left, &right) {
                (Value::Number(left), Value::Number(right)) => Some(left.cmp(right)),
                (Value::Text(left), Value::Text(right)) => Some(left.cmp(right)),
                _ => None,
            };
            let this = match (sign, ordering) {
                ("==", _) => left == right,
                ("!=", _) => left != right,
                ("<=", Some(ordering)) => ordering.is_le(),
                (">=", Some(ordering)) => ordering.is_ge(),
                ("<", Some(ordering)) => ordering.is_lt(),
                (">", Some(ordering)) => ordering.is_gt(),
                _ => return Err(self.refuse(sign)),
            };
            holds = Some(holds.unwrap_or(true) && this);
            left = right;
        }
        Ok(holds.map_or(left, |holds| Value::Number(i64::from(holds))))
    }

    fn operation(&mut self, level: usize) -> Result<Value, Refusal> {
        let Some(signs) = LEVELS.get(level) else {
            return self.unary();
        };
        let mut left = self.operation(level + 1)?;
        while let Some(Token::Sign(sign)) = self.peek().cloned()
            && signs.contains(&sign)
        {
            self.at += 1;
            let right = self.operation(level + 1)?;
            left = self.apply(sign, left, right)?;
        }
        Ok(left)
    }

    fn apply(&self, sign: &str, left: Value, right: Value) -> Result<Value, Refusal> {
        let (left, right) = match (left, right) {
            (Value::Text(format), right) if sign == "%" => return self.format(&format, right),
            (Value::Number(left), Value::Number(right)) => (left, right),
            _ => return Err(self.refuse(sign)),
        };
        let value = match sign {
            "|" => Some(left | right),
            "^" => Some(left ^ right),
            "&" => Some(left & right),
            "<<" => u32::try_from(right).ok().and_then(|by| left.checked_shl(by)),
            ">>" => u32::try_from(right).ok().and_then(|by| left.checked_shr(by)),
            "+" => left.checked_add(right),
            "-" => left.checked_sub(right),
            "*" => left.checked_mul(right),
            "//" => floor_div(left, right),
            "/" if right != 0 && left % right == 0 => Some(left / right), // fractions are not there
            "%" => floor_div(left, right)
                .and_then(|quotient| quotient.checked_mul(right))
                .and_then(|product| left.checked_sub(product)),
            _ => None,
        };
        value.map(Value::Number).ok_or_else(|| self.refuse(sign))
    }

    /// `'%d of %d' % (a, b)`: `%d`, `%u`, `%s`, `%x` and `%%`.
    fn format(&self, format: &str, values: Value) -> Result<Value, Refusal> {
        let mut values = match values {
            Value::Tuple(items) => items,
            single => vec![single],
        }
        .into_iter();
        let mut text = String::new();
        let mut letters = format.chars();
        while let Some(letter) = letters.next() {
            if letter != '%' {
                text.push(letter);
                continue;
            }
            match (letters.next(), letters.as_str()) {
                (Some('%'), _) => text.push('%'),
                (Some('d' | 'u' | 's' | 'i'), _) => {
                    text.push_str(&values.next().ok_or_else(|| self.refuse("%"))?.show());
                }
                (Some('x'), _) => match values.next() {
                    Some(Value::Number(number)) => text.push_str(&format!("{number:x}")),
                    _ => return Err(self.refuse("%x")),
                },
                _ => return Err(self.refuse(format)),
            }
        }
        Ok(Value::Text(text))
    }

    fn unary(&mut self) -> Result<Value, Refusal> {
        let mut signs = Vec::new();
        while let Some(Token::Sign(sign @ ("-" | "+" | "~"))) = self.peek().cloned() {
            signs.push(sign);
            self.at += 1;
        }
        let mut value = self.atom()?;
        for sign in signs.into_iter().rev() {
            value = match (sign, value) {
                ("-", Value::Number(number)) => Value::Number(number.wrapping_neg()),
                ("~", Value::Number(number)) => Value::Number(!number),
                (_, value) => value,
            };
        }
        Ok(value)
    }

    fn atom(&mut self) -> Result<Value, Refusal> {
        let Some(token) = self.peek().cloned() else {
            return Err(self.refuse("the end"));
        };
        self.at += 1;
        match token {
            Token::Number(number) => Ok(Value::Number(number)),
            Token::Text(text) => Ok(Value::Text(text)),
            Token::Sign("(") => {
                let mut items = vec![self.expression()?];
                let mut tuple = false;
                while self.take(",") {
                    tuple = true;
                    if matches!(self.peek(), Some(Token::Sign(")"))) {
                        break;
                    }
                    items.push(self.expression()?);
                }
                if !self.take(")") {
                    return Err(self.refuse("a missing )"));
                }
                match (tuple, items.pop()) {
                    (false, Some(only)) => Ok(only),
                    (_, last) => {
                        items.extend(last);
                        Ok(Value::Tuple(items))
                    }
                }
            }
            Token::Word(word) => self.variable(&word),
            Token::Sign(sign) => Err(self.refuse(sign)),
            Token::Stop => Err(self.refuse("the end")),
        }
    }

    fn variable(&mut self, name: &str) -> Result<Value, Refusal> {
        let value = match name {
            "True" => Value::Number(1),
            "False" => Value::Number(0),
            _ => {
                let known = self.assigned.get(name).cloned();
                let known = known.or_else(|| self.info.get(name).map(Value::Number));
                if let Some(value) = &known {
                    let shown = format!("{name} = {}", value.show());
                    if !self.shown.contains(&shown) {
                        self.shown.push(shown);
                    }
                }
                match known.or_else(|| constant(name).map(Value::Number)) {
                    Some(value) => value,
                    None => return Err(Refusal::Unsupported(format!("the variable `{name}`"))),
                }
            }
        };
        Ok(value)
    }
}

fn floor_div(left: i64, right: i64) -> Option<i64> {
    let quotient = left.checked_div(right)?;
    let inexact = left % right != 0 && (left < 0) != (right < 0);
    Some(quotient - i64::from(inexact))
}

/// Names that the code of scripts knows beside the fields of `TCP_INFO`.
fn constant(name: &str) -> Option<i64> {
    const STATES: [(&str, i64); 18] = [
        ("ESTABLISHED", 1),
        ("SYN_SENT", 2),
        ("SYN_RECV", 3),
        ("SYN_RECEIVED", 3),
        ("FIN_WAIT1", 4),
        ("FIN_WAIT_1", 4),
        ("FIN_WAIT2", 5),
        ("FIN_WAIT_2", 5),
        ("TIME_WAIT", 6),
        ("CLOSE", 7),
        ("CLOSED", 7),
        ("CLOSE_WAIT", 8),
        ("LAST_ACK", 9),
        ("LISTEN", 10),
        ("CLOSING", 11),
        ("NEW_SYN_RECV", 12),
        ("CA_NONE", 0),
        ("MAX_STATES", 13),
    ];
    let state = name.strip_prefix("TCPI_").or_else(|| name.strip_prefix("TCP_"));
    if let Some(state) = state.and_then(|state| STATES.iter().find(|known| known.0 == state)) {
        return Some(state.1);
    }
    Some(match name {
        "TCP_CA_Open" => 0,
        "TCP_CA_Disorder" => 1,
        "TCP_CA_CWR" => 2,
        "TCP_CA_Recovery" => 3,
        "TCP_CA_Loss" => 4,
        "TCPI_OPT_TIMESTAMPS" => 1,
        "TCPI_OPT_SACK" => 2,
        "TCPI_OPT_WSCALE" => 4,
        "TCPI_OPT_ECN" => 8,
        "TCPI_OPT_ECN_SEEN" => 16,
        "TCPI_OPT_SYN_DATA" => 32,
        "TCPI_OPT_USEC_TS" => 64,
        "TCPI_OPT_TFO_CHILD" => 128,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{Evaluator, Refusal};
    use crate::backend::Info;

    fn run(code: &str) -> Result<Vec<String>, Refusal> {
        let mut info = Info::default();
        for (name, value) in [("tcpi_snd_cwnd", 10), ("tcpi_options", 7), ("tcpi_rtt", 100_000)] {
            info.set(name, value);
        }
        Evaluator::default().run(code, &info)
    }

    #[test]
    fn what_python_says_is_true() {
        for code in [
            "assert tcpi_snd_cwnd == 10, tcpi_snd_cwnd",
            "X = 0x7fffffff\nassert X == 2147483647",
            "assert 98000 <= tcpi_rtt <= 110000, tcpi_rtt",
            "assert not 3 < 2 < 4",
            "assert (tcpi_options & TCPI_OPT_SACK) != 0 and tcpi_options & 8 == 0",
            "assert 1 + 2 * 3 == 7 and (1 + 2) * 3 == 9; assert -7 // 2 == -4; assert -7 % 3 == 2",
            "assert 1 == 2 or 1 << 4 == 16; # note",
            "assert 10 <= tcpi_snd_cwnd;\\\n   assert (1 ==\n 1)\n",
            "assert tcpi_options == (TCPI_OPT_TIMESTAMPS | TCPI_OPT_SACK | TCPI_OPT_WSCALE)",
            "assert 0 or 5",
            "assert 'a' < 'b' and TCPI_CLOSE_WAIT == TCP_CLOSE_WAIT, 'x=%d' % 1",
            "assert not not 2",
        ] {
            assert_eq!(run(code), Ok(vec![]), "{code}");
        }
        assert_eq!(
            run("print(tcpi_snd_cwnd); print('a %d%% %x' % (5, 255))"),
            Ok(vec!["10".into(), "a 5% ff".into()])
        );
    }

    #[test]
    fn a_false_assertion_says_what_was_looked_at() {
        assert_eq!(
            run("assert tcpi_snd_cwnd == 11, 'window %d' % tcpi_snd_cwnd"),
            Err(Refusal::Assertion(
                "assertion failed: assert tcpi_snd_cwnd == 11, 'window %d' % tcpi_snd_cwnd with tcpi_snd_cwnd = 10: window 10"
                    .into()
            ))
        );
        assert!(matches!(run("assert not 1"), Err(Refusal::Assertion(_))));
    }

    #[test]
    fn what_is_not_there_is_refused() {
        for (code, what) in [
            ("import os", "the statement `import os`"),
            ("assert unknown == 1", "the variable `unknown`"),
            ("assert f(1)", "the variable `f`"),
            ("assert 1 / 2 == 0", "`/` in `assert 1 / 2 == 0`"),
            ("assert [1]", "`[`"),
            ("assert 1 1", "`1` in `assert 1 1`"),
            ("assert 'abc", "text without a closing quote"),
            ("x = (1", "`a missing )` in `x = (1`"),
        ] {
            assert_eq!(run(code), Err(Refusal::Unsupported(what.into())), "{code}");
        }
        let deep = format!("assert {}1", "(".repeat(1000));
        assert!(matches!(run(&deep), Err(Refusal::Unsupported(_))));
    }
}
