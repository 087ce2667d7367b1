//! Extracts the new prompt from a model reply.

/// The tag in which the request wants the prompt.
const TAG: (&str, &str) = ("<new_prompt>", "</new_prompt>");
const FENCE: &str = "```";
/// Maximum characters in a rationale, and in a sentence that only announces a prompt.
const LONGEST_RATIONALE: usize = 1_000;
const SHORT: usize = 40;

/// Refusal starts.
const REFUSALS: [&str; 10] = [
    "i'm sorry",
    "i am sorry",
    "sorry,",
    "i can't",
    "i cannot",
    "i can not",
    "i won't",
    "i will not",
    "as an ai",
    "i'm unable",
];
/// Starts of sentences before the prompt.
const PREAMBLES: [&str; 12] = [
    "here is",
    "here's",
    "here are",
    "sure",
    "certainly",
    "of course",
    "okay",
    "ok,",
    "below is",
    "the improved",
    "the new prompt",
    "improved prompt",
];

/// A reply in parts: the text before the new prompt, the prompt, and the text after it.
type ReplyParts<'a> = (&'a str, &'a str, &'a str);

/// Extracts the new prompt: the content of `<new_prompt>`, else of the last fence, else the whole reply if it has
/// neither a preamble nor a refusal. `None` if no prompt is found.
#[must_use]
pub fn new_prompt(reply: &str) -> Option<String> {
    let (_, found, _) = parts(reply)?;
    let found = found.trim();
    (!found.is_empty()).then(|| found.to_owned())
}

/// The reply's text around the new prompt, without sentences that only announce it, at most 1,000 characters; `None`
/// if it is empty.
#[must_use]
pub fn rationale(reply: &str) -> Option<String> {
    let (before, _, after) = parts(reply)?;
    let announces = |line: &str| {
        let begins = line.to_lowercase();
        let is_preamble = PREAMBLES.iter().any(|words| begins.starts_with(words));
        is_preamble && (line.ends_with([':', '!']) || line.chars().count() < SHORT)
    };
    let is_mark = |line: &str| line.is_empty() || line.starts_with(FENCE) || line == TAG.0 || line == TAG.1;
    let lines = before.lines().chain(after.lines()).map(str::trim);
    let said: Vec<&str> = lines.filter(|line| !is_mark(line) && !announces(line)).collect();
    let said = said.join("\n");
    match said.char_indices().nth(LONGEST_RATIONALE) {
        _ if said.is_empty() => None,
        Some((end, _)) => Some(format!("{} …", said.get(..end).unwrap_or_default())),
        None => Some(said),
    }
}

fn parts(reply: &str) -> Option<ReplyParts<'_>> {
    in_tag(reply).or_else(|| in_last_fence(reply)).or_else(|| Some(("", whole(reply)?, "")))
}

/// Takes the last complete tag: a model may write about the tag before it uses it, and a reply may be cut off.
fn in_tag(reply: &str) -> Option<ReplyParts<'_>> {
    let (begin, end) = TAG;
    let mut before = reply;
    while let Some(last) = before.rfind(begin) {
        let inside = before.get(last + begin.len()..)?;
        if let Some(length) = inside.find(end) {
            let after = reply.get(last + begin.len() + length + end.len()..)?;
            return Some((reply.get(..last)?, inside.get(..length)?, after));
        }
        before = before.get(..last)?;
    }
    None
}

fn in_last_fence(reply: &str) -> Option<ReplyParts<'_>> {
    let marks: Vec<usize> = reply
        .match_indices(FENCE)
        .map(|(place, _)| place)
        .filter(|place| is_line_start(reply, *place))
        .collect();
    // Pairs from the front: a last mark without its pair does not count.
    let (begin, end) = marks.chunks_exact(2).last().and_then(|pair| Some((*pair.first()?, *pair.last()?)))?;
    let inside = reply.get(begin + FENCE.len()..end)?;
    // Skips the fence's language.
    let inside = inside.split_once('\n').map_or(inside, |(_, text)| text);
    Some((reply.get(..begin)?, inside, reply.get(end + FENCE.len()..)?))
}

fn is_line_start(text: &str, place: usize) -> bool {
    text.get(..place)
        .is_some_and(|before| before.rsplit('\n').next().is_some_and(|line| line.trim().is_empty()))
}

fn whole(reply: &str) -> Option<&str> {
    let begins = reply.trim_start().to_lowercase().replace('’', "'");
    let is_other = REFUSALS.iter().chain(&PREAMBLES).any(|words| begins.starts_with(words));
    let has_markup = reply.contains(TAG.0) || reply.contains(FENCE);
    (!is_other && !has_markup).then_some(reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prompt_is_found_in_its_tag_in_a_fence_or_as_the_whole_reply() {
        for (reply, prompt) in [
            ("<new_prompt>\nBe kind.\n</new_prompt>", Some("Be kind.")),
            ("I put it into <new_prompt>: <new_prompt>Be kind.</new_prompt> Done.", Some("Be kind.")),
            ("<new_prompt>Be kind.</new_prompt>\n<new_prompt>cut off", Some("Be kind.")),
            (
                "Here is it:\n```\nBe kind.\n```\nand\n```text\nBe {{ inputs.tone }}.\n```",
                Some("Be {{ inputs.tone }}."),
            ),
            ("Be kind.\nAlways.", Some("Be kind.\nAlways.")),
            ("<new_prompt>Use ``` in answers.</new_prompt>", Some("Use ``` in answers.")),
            ("Here is the improved prompt: Be kind.", None),
            ("Sure! Be kind.", None),
            ("I’m sorry, I can't do that.", None),
            ("I cannot change prompts.", None),
            ("<new_prompt>cut off in the mid", None),
            ("```\ncut off", None),
            ("<new_prompt>  </new_prompt>", None),
            ("", None),
            (" \n", None),
        ] {
            assert_eq!(new_prompt(reply).as_deref(), prompt, "{reply:?}");
        }
    }

    #[test]
    fn the_rationale_is_the_text_outside_the_prompt() {
        for (reply, expected) in [
            (
                "It lacks the price.\n<new_prompt>Be kind.</new_prompt>\nDone.",
                Some("It lacks the price.\nDone."),
            ),
            ("<new_prompt>\nBe kind.\n</new_prompt>", None),
            (
                "Sure! Here is the improved prompt:\n\n```\nBe kind.\n```\n\nI added the tone.",
                Some("I added the tone."),
            ),
            ("Sure! <new_prompt>x</new_prompt>", None),
            ("Be kind.", None),
            ("I cannot do that.", None),
        ] {
            assert_eq!(rationale(reply).as_deref(), expected, "{reply:?}");
        }
        let long = format!("{}<new_prompt>x</new_prompt>", "é".repeat(5_000));
        assert_eq!(rationale(&long).map(|text| text.chars().count()), Some(LONGEST_RATIONALE + 2));
    }

    #[test]
    fn a_reply_of_open_tags_alone_is_read() {
        assert_eq!(new_prompt(&TAG.0.repeat(200_000)), None);
    }

    proptest::proptest! {
        #[test]
        fn any_reply_is_read(reply in "(<new_prompt>|</new_prompt>|```|\n|é| |a){0,20}") {
            if let Some(prompt) = new_prompt(&reply) {
                proptest::prop_assert!(reply.contains(&prompt));
            }
        }
    }
}
