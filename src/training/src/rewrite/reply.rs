//! The new prompt in a model's reply.

/// Where the request asks for it.
const TAG: (&str, &str) = ("<new_prompt>", "</new_prompt>");
const FENCE: &str = "```";

/// How refusals begin.
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
/// How a sentence before the prompt begins.
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

/// The new prompt of a reply: what is in `<new_prompt>`, else in its last fence, else the whole reply if it has neither a preamble nor a
/// refusal. `None` if there is none.
#[must_use]
pub fn new_prompt(reply: &str) -> Option<String> {
    let found = in_tag(reply).or_else(|| in_last_fence(reply)).or_else(|| whole(reply))?;
    let found = found.trim();
    (!found.is_empty()).then(|| found.to_owned())
}

/// The last complete one: a model may write about the tag before it uses it, and a reply may be cut off.
fn in_tag(reply: &str) -> Option<&str> {
    let (begin, end) = TAG;
    let mut before = reply;
    while let Some(last) = before.rfind(begin) {
        let inside = before.get(last + begin.len()..)?;
        if let Some(length) = inside.find(end) {
            return inside.get(..length);
        }
        before = before.get(..last)?;
    }
    None
}

fn in_last_fence(reply: &str) -> Option<&str> {
    let marks: Vec<usize> = reply
        .match_indices(FENCE)
        .map(|(place, _)| place)
        .filter(|place| is_line_start(reply, *place))
        .collect();
    // Pairs from the front: a last mark without its pair does not count.
    let (begin, end) = marks.chunks_exact(2).last().and_then(|pair| Some((*pair.first()?, *pair.last()?)))?;
    let inside = reply.get(begin + FENCE.len()..end)?;
    // The language of the fence.
    Some(inside.split_once('\n').map_or(inside, |(_, text)| text))
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
