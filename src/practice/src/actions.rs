//! Parses instruction actions.

use super::instruction::{Action, Field, Tone};
use super::parse::{list, skip_marks, strip};
use super::text::{Token, number};

/// Words that may precede the verb.
const LEAD: [&str; 18] = [
    "please", "always", "you", "must", "should", "shall", "then", "the", "answer", "answers", "reply",
    "replies", "response", "it", "be", "is", "also", "just",
];
const SAY: [&str; 12] = [
    "answer", "reply", "respond", "say", "return", "output", "write", "choose", "pick", "give", "use",
    "state",
];
const CLASSIFY: [&str; 7] = ["classify", "label", "categorize", "categorise", "category", "mark", "tag"];
const LISTS: [&str; 6] = ["labels", "categories", "classes", "options", "choices", "topics"];
/// The value kinds that a field can have.
pub(super) const KINDS: [&str; 14] = [
    "number", "word", "words", "text", "date", "amount", "price", "email", "address", "link", "url", "name",
    "phone", "code",
];

/// Parses the action after a condition, or a sentence without one.
pub(super) fn parse(tokens: &[Token], conditional: bool) -> Option<Action> {
    let tokens = skip_marks(tokens);
    field(tokens)
        .or_else(|| labels(tokens))
        .or_else(|| tool(tokens))
        .or_else(|| set(tokens))
        .or_else(|| wording(tokens))
        .or_else(|| form(tokens))
        .or_else(|| answer(tokens, conditional))
}

fn quotes(tokens: &[Token]) -> Vec<String> {
    tokens.iter().filter_map(|token| token.quote().map(str::to_owned)).collect()
}

fn has(tokens: &[Token], wanted: &[&str]) -> bool {
    tokens.iter().any(|token| token.word().is_some_and(|word| wanted.contains(&word)))
}

/// The tokens from the verb on.
fn verb(tokens: &[Token]) -> &[Token] {
    let mut rest = tokens;
    while let [Token::Word(word), behind @ ..] = rest
        && LEAD.contains(&word.as_str())
        && matches!(behind.first(), Some(Token::Word(_)))
    {
        rest = behind;
    }
    rest
}

/// `order: the number after "order"`.
fn field(tokens: &[Token]) -> Option<Action> {
    let (name, rest) = match tokens {
        [Token::Word(article), name, rest @ ..] if article == "the" && !KINDS.contains(&name.word()?) => {
            (name, rest)
        }
        [name, rest @ ..] => (name, rest),
        [] => return None,
    };
    let (rest, plain) = match rest {
        [Token::Mark(':' | '='), rest @ ..] => (rest, true),
        [Token::Word(is), rest @ ..] if is == "is" => (rest, false),
        _ => return None,
    };
    let kind = rest.iter().filter_map(Token::word).find(|word| KINDS.contains(word))?;
    let behind = |word: &[&str]| {
        let at = rest.iter().position(|token| token.word().is_some_and(|found| word.contains(&found)))?;
        rest.get(at..)?.iter().find_map(Token::quote).map(str::to_owned)
    };
    let between = quotes(rest);
    let (after, before) = match (has(rest, &["between"]), between.as_slice()) {
        (true, [from, to]) => (Some(from.clone()), Some(to.clone())),
        _ => (behind(&["after", "behind", "following"]), behind(&["before"])),
    };
    // "Cal is the name of our shop" does not locate a field.
    if !plain && after.is_none() && before.is_none() {
        return None;
    }
    let name = name.word().or(name.quote())?.to_owned();
    Some(Action::Field(Field { name, kind: kind.to_owned(), after, before }))
}

/// `Labels: a, b, c`, `Answer with one of: a, b, c`, `Classify the message as a, b or c`.
fn labels(tokens: &[Token]) -> Option<Action> {
    let position =
        |wanted: &[&str]| tokens.iter().position(|t| t.word().is_some_and(|w| wanted.contains(&w)));
    let one_of = tokens.windows(2).position(|pair| strip(pair, &["one", "of"]).is_some());
    let start = if let Some(at) = one_of {
        let rest = tokens.get(at.checked_add(2)?..)?;
        // "one of these labels: …"
        let colon = rest.iter().position(|token| matches!(token, Token::Mark(':')));
        colon.map_or(rest, |colon| rest.get(colon..).unwrap_or(rest))
    } else if let Some(at) = position(&LISTS).filter(|at| {
        tokens
            .get(at.saturating_add(1))
            .is_some_and(|next| matches!(next, Token::Mark(':')) || next.word() == Some("are"))
    }) {
        tokens.get(at.checked_add(2)?..)?
    } else if tokens.first()?.word().is_some_and(|word| CLASSIFY.contains(&word) || word == "sort") {
        let at = position(&["into", "as"])?;
        tokens.get(at.checked_add(1)?..)?
    } else {
        return None;
    };
    let items = list(skip_marks(start));
    (items.len() > 1 && items.iter().all(|item| item.split(' ').count() <= 4))
        .then_some(Action::Labels(items))
}

/// `Call the tool weather.`
fn tool(tokens: &[Token]) -> Option<Action> {
    let rest = verb(tokens);
    if !matches!(rest.first()?.word()?, "call" | "use" | "run" | "invoke")
        || !has(rest, &["tool", "function"])
    {
        return None;
    }
    let name = rest.get(1..)?.iter().find(|token| match token {
        Token::Word(word) => !matches!(word.as_str(), "the" | "tool" | "function" | "a"),
        Token::Quote(_) => true,
        Token::Mark(_) => false,
    })?;
    Some(Action::Call(name.word().or(name.quote())?.to_owned()))
}

/// `Set urgent to true.`
fn set(tokens: &[Token]) -> Option<Action> {
    match verb(tokens) {
        [Token::Word(set), name, Token::Word(to), value] if set == "set" && to == "to" => {
            let text = |token: &Token| token.word().or(token.quote()).map(str::to_owned);
            Some(Action::Set(text(name)?, text(value)?))
        }
        _ => None,
    }
}

/// Parses actions about wording; their phrases are always quoted.
fn wording(tokens: &[Token]) -> Option<Action> {
    let quoted = quotes(tokens);
    let first = quoted.first()?;
    let rest = verb(tokens);
    let verb = rest.first()?.word()?;
    let not = matches!(verb, "never" | "avoid" | "dont" | "without") || strip(rest, &["do", "not"]).is_some();
    if not || has(tokens, &["never"]) || strip(rest, &["not"]).is_some() {
        return Some(Action::Avoid(quoted));
    }
    match verb {
        "replace" | "change" | "turn" | "write"
            if has(rest, &["with", "by", "to", "into", "for", "instead"]) =>
        {
            match quoted.as_slice() {
                // "write X instead of Y"
                [new, old] if has(rest, &["instead"]) => Some(Action::Replace(old.clone(), new.clone())),
                [old, new] => Some(Action::Replace(old.clone(), new.clone())),
                _ => None,
            }
        }
        "remove" | "delete" | "drop" | "omit" => Some(Action::Avoid(quoted)),
        "begin" | "begins" | "start" | "starts" | "open" => Some(Action::Begin(first.clone())),
        "end" | "ends" | "finish" | "close" | "sign" => Some(Action::End(first.clone())),
        "include" | "includes" | "mention" | "mentions" | "add" | "contain" | "contains" | "cite" => {
            Some(Action::Include(quoted))
        }
        _ => None,
    }
}

/// Parses actions about the form.
fn form(tokens: &[Token]) -> Option<Action> {
    if !quotes(tokens).is_empty() && !has(tokens, &["json"]) {
        return None;
    }
    let counted = |units: &[&str]| {
        tokens.windows(2).find_map(|pair| match pair {
            [Token::Word(count), Token::Word(unit)] if units.contains(&unit.as_str()) => number(count),
            _ => None,
        })
    };
    if has(tokens, &["json"]) {
        let at = tokens
            .iter()
            .position(|t| t.word().is_some_and(|w| matches!(w, "keys" | "key" | "fields" | "members")));
        let keys = at.and_then(|at| tokens.get(at.checked_add(1)?..)).map(|rest| list(skip_marks(rest)));
        return Some(Action::Json(keys.unwrap_or_default()));
    }
    if has(tokens, &["bullet", "bullets", "bulleted"]) {
        let most = counted(&["bullet", "bullets"]);
        return Some(Action::List { numbered: false, most });
    }
    if has(tokens, &["numbered"]) {
        return Some(Action::List { numbered: true, most: counted(&["points", "items", "steps"]) });
    }
    if let Some(count) = counted(&["word", "words"]).filter(|count| *count > 0) {
        return Some(Action::Words(count));
    }
    if let Some(count) = counted(&["sentence", "sentences", "short"]).filter(|count| *count > 0) {
        return Some(Action::Sentences(count));
    }
    if has(tokens, &["uppercase", "upper", "capitals", "capital"]) {
        return Some(Action::Upper);
    }
    if has(tokens, &["lowercase", "lower", "small"]) && !has(tokens, &["than"]) {
        return Some(Action::Lower);
    }
    let tone = |tone| verb(tokens).len().le(&6).then_some(Action::Tone(tone));
    if has(tokens, &["polite", "politely", "courteous"]) {
        return tone(Tone::Polite);
    }
    if has(tokens, &["friendly", "warm", "warmly"]) {
        return tone(Tone::Friendly);
    }
    if has(tokens, &["formal", "formally"]) {
        return tone(Tone::Formal);
    }
    None
}

/// `Answer "refund".`, `Classify it as refund.`, and after a condition `answer refund`.
fn answer(tokens: &[Token], conditional: bool) -> Option<Action> {
    let said = |word: &str| SAY.contains(&word) || CLASSIFY.contains(&word);
    let at = tokens.iter().position(|token| token.word().is_some_and(said))?;
    let lead = tokens.get(..at)?.iter().all(|token| token.word().is_some_and(|word| LEAD.contains(&word)));
    let behind = tokens.get(at.checked_add(1)?..)?;
    if let ([only], true) = (quotes(tokens).as_slice(), lead) {
        return Some(Action::Answer(only.clone()));
    }
    let small = [
        "with", "as", "is", "it", "only", "just", "message", "the", "text", "label", "category", "this", "to",
    ];
    let left: Vec<&str> =
        behind.iter().filter_map(Token::word).filter(|word| !small.contains(word)).collect();
    let named = has(behind, &["as", "is"]);
    match left.as_slice() {
        [only] if lead && (conditional || named) && !only.ends_with("ly") => {
            Some(Action::Answer((*only).to_owned()))
        }
        _ => None,
    }
}
