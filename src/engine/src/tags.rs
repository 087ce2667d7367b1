//! Limits on the content of template tags.
//!
//! minijinja's parser recurses for every `-`, `not` and `elif`, and its compiler for every operator in a chain.
//! Neither has a limit, and a stack overflow ends the whole process. So long tags are refused first.

/// Maximum bytes per template.
const LONGEST_TEMPLATE: usize = 256 << 10;
/// Maximum bytes per `{{ … }}`, `{% … %}` or condition.
const LONGEST: usize = 1_024;
/// Maximum `elif`s per template.
const MOST_ELIFS: usize = 64;

/// Refuses a template that is too long, has a tag that is too long, or has too many `elif`s.
pub(crate) fn check(text: &str) -> Result<(), String> {
    if text.len() > LONGEST_TEMPLATE {
        return Err(format!("a template is longer than {} KiB", LONGEST_TEMPLATE >> 10));
    }
    if text.matches("elif").count() > MOST_ELIFS {
        return Err(format!("more than {MOST_ELIFS} elif"));
    }
    if text.len() <= LONGEST {
        return Ok(());
    }
    let mut rest = text;
    let mut balance = 0;
    while let Some(at) = next_opener(rest, false) {
        let tag = rest.get(at..).unwrap_or_default();
        let length = length(tag, &mut balance);
        if !tag.starts_with("{#") && !is_block(tag, "raw") {
            check_length(tag.get(..length).unwrap_or(tag))?;
        }
        rest = tag.get(length..).unwrap_or_default();
    }
    Ok(())
}

/// Returns the position of the next tag or comment, or of the next `[[` if `or_secret`.
pub(crate) fn next_opener(text: &str, or_secret: bool) -> Option<usize> {
    let pairs = text.as_bytes().windows(2);
    pairs.into_iter().position(|pair| match pair {
        b"{{" | b"{%" | b"{#" => true,
        b"[[" => or_secret,
        _ => false,
    })
}

/// Returns the length of the tag, comment or raw block at the beginning, as the parser sees it; the whole length if it
/// is unclosed. `balance` counts the brackets that earlier tags have left open; it begins at 0.
#[must_use]
pub fn length(tag: &str, balance: &mut i64) -> usize {
    if tag.starts_with("{#") {
        // `{#}` does not close itself.
        2 + past(tag.get(2..).unwrap_or_default(), "#}")
    } else if is_block(tag, "raw") {
        let rest = |at: usize| tag.get(at..).unwrap_or_default();
        let end = tag.match_indices("{%").find(|(at, _)| is_block(rest(*at), "endraw"));
        end.map_or(tag.len(), |(at, _)| at + past(rest(at), "%}"))
    } else {
        tag_length(tag, balance)
    }
}

/// Refuses an expression that is too long.
pub(crate) fn check_length(expression: &str) -> Result<(), String> {
    if expression.len() > LONGEST {
        return Err(format!("an expression is longer than {LONGEST} bytes"));
    }
    Ok(())
}

fn past(text: &str, end: &str) -> usize {
    text.find(end).map_or(text.len(), |at| at + end.len())
}

/// Whether `text` begins with the block `{% word %}`.
fn is_block(text: &str, word: &str) -> bool {
    let inside =
        text.strip_prefix("{%").map(|rest| rest.strip_prefix(['-', '+']).unwrap_or(rest).trim_start());
    let after = inside.and_then(|inside| inside.strip_prefix(word)).map(str::trim_start);
    after.is_some_and(|after| after.strip_prefix(['-', '+']).unwrap_or(after).starts_with("%}"))
}

/// Returns the length of the tag at the beginning: up to the closer outside strings and brackets, as the parser sees
/// it.
fn tag_length(text: &str, balance: &mut i64) -> usize {
    let closer = if text.starts_with("{{") { *b"}}" } else { *b"%}" };
    let mut quote = None;
    let mut bytes = text.bytes().enumerate().skip(2).peekable();
    while let Some((at, byte)) = bytes.next() {
        match (quote, byte) {
            (Some(_), b'\\') => {
                bytes.next();
            }
            (Some(open), _) if open == byte => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, _)
                if *balance == 0
                    && byte == closer[0]
                    && bytes.peek().map(|next| next.1) == Some(closer[1]) =>
            {
                return at + 2;
            }
            (None, b'(' | b'[' | b'{') => *balance += 1,
            (None, b')' | b']' | b'}') => *balance -= 1,
            (None, _) => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tags_have_a_length_limit() {
        let words = "word ".repeat(2_000);
        let chain = format!("1{}", " + 1".repeat(1_000));
        assert_eq!(
            check(&format!("{words}{{{{ a }}}}{words}{{# {words} #}}{{% raw %}}{{{{ {words}{{% endraw %}}")),
            Ok(())
        );
        for evil in [
            format!("{{{{ {chain} }}}}"),
            format!("{{% if {chain} %}}{{% endif %}}"),
            format!("{{{{ '}}}}' ~ {chain} }}}}"),
            format!("{{{{ {{'a': {{'b': 1}}}} ~ {chain} }}}}"),
            format!("{{# {{{{ ' #}}{{{{ {chain} }}}}"),
            format!("{{% raw %}}{{{{ ' {{% endraw %}}{{{{ ' }}}} ' ~ {chain} }}}}"),
            format!("{{{{ 'a\\' }}}}' ~ {chain} }}}}"),
            format!("{{% raw %}} endraw {{{{ ' {{%- endraw -%}}{{{{ ' }}}} ' ~ {chain} }}}}"),
            "{% elif a %}".repeat(100),
        ] {
            assert!(check(&evil).is_err(), "{evil:.60}");
        }
    }

    #[test]
    fn tags_end_where_the_parser_ends_them() {
        for tag in [
            "{{ {'a': {'b': 1}} }}",
            "{{ '}}' ~ x[y[0]] -}}",
            "{% set a = {'b': '%}'} %}",
            "{#} {{ x }} #}",
            "{%- raw %}{{ x }}{% raw %}{%- endraw +%}",
        ] {
            assert_eq!(length(&format!("{tag} ~ y }}}} %}} #}}"), &mut 0), tag.len(), "{tag}");
        }
    }

    #[test]
    fn accepted_templates_fit_on_the_stack_of_a_worker() {
        let deep = [
            format!("{{{{ {}1 }}}}", "-".repeat(LONGEST - 10)),
            format!("{{{{ {}a }}}}", "not ".repeat(LONGEST / 4 - 10)),
            format!("{{{{ a{} }}}}", "+a".repeat(LONGEST / 2 - 10)),
            format!("{{{{ a{} }}}}", ".a".repeat(LONGEST / 2 - 10)),
            format!("{{{{ a{} }}}}", "|e".repeat(LONGEST / 2 - 10)),
            format!("{{{{ a{} }}}}", "()".repeat(LONGEST / 2 - 10)),
            format!("{{{{ {}a{} }}}}", "(".repeat(LONGEST / 2 - 10), ")".repeat(LONGEST / 2 - 10)),
            format!("{{% if a %}}{}{{% endif %}}", "{% elif a %}".repeat(MOST_ELIFS)),
            format!("{}{}", "{% if a %}".repeat(150), "{% endif %}".repeat(150)),
        ];
        for text in deep {
            let worker = std::thread::Builder::new().stack_size(2 << 20);
            // The result does not matter; an overflow would end the test process.
            let _ = worker.spawn(move || crate::template::names_of_template(&text)).unwrap().join().unwrap();
        }
    }
}
