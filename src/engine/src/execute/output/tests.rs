use super::*;

#[derive(Default)]
struct Collected(Mutex<String>);

#[async_trait]
impl Output for Collected {
    async fn text(&self, _node: &str, piece: &str) {
        self.0.lock().push_str(piece);
        for _ in 0..piece.len() {
            tokio::task::yield_now().await;
        }
    }

    async fn annotate(&self, annotations: Vec<SentAnnotation>) {
        self.0.lock().push_str(&format!("[{}]", annotations.len()));
    }

    async fn undo(&self, _node: &str, parts: &[Undone]) {
        let mut text = self.0.lock();
        for part in parts {
            let left = match part {
                Undone::Text(bytes) => text.len() - bytes,
                Undone::Message(bytes) => text.strip_suffix('|').unwrap_or(&text).len() - bytes,
                Undone::Item => text.rfind('<').unwrap(),
            };
            text.truncate(left);
        }
    }

    async fn item(&self, item: SentItem) {
        self.0.lock().push_str(&format!("<{}>", item.key.unwrap()));
    }

    async fn new_message(&self) {
        self.0.lock().push('|');
    }

    async fn immediate(&self, _event: ImmediateEvent) {}

    async fn change_thread(&self, _change: ThreadChange) {}
}

#[tokio::test]
async fn a_slow_output_keeps_held_text_before_live_text() {
    let sink = Collected::default();
    let output = StepOutput::new(&sink, 2);
    output.text(1, "b", "held for long, ").await;
    futures_util::join!(output.finish(0), output.text(1, "b", "now"));
    assert_eq!(*sink.0.lock(), "held for long, now");
}

#[tokio::test]
async fn a_piece_of_a_dropped_node_is_undone_exactly() {
    let sink = Collected::default();
    let output = StepOutput::new(&sink, 2);
    output.text(0, "a", "kept ").await;
    output.text(1, "b", "long and longer, ").await;
    // The second slot is dropped with an unsent piece while the output is busy with buffered text.
    let dropped = async {
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
        tokio::select! {
            biased;
            () = output.text(1, "b", "dropped") => panic!("it did not wait"),
            () = std::future::ready(()) => {}
        }
        output.restart(1, "b").await;
        output.text(1, "b", "again").await;
    };
    futures_util::join!(output.finish(0), dropped);
    output.finish(1).await;
    assert_eq!(*sink.0.lock(), "kept again");
}

#[tokio::test]
async fn text_is_ordered_by_file_not_by_arrival() {
    let sink = Collected::default();
    let output = StepOutput::new(&sink, 3);
    output.text(2, "c", "c").await;
    output.text(0, "a", "a").await;
    output.finish(2).await;
    output.text(1, "b", "b").await;
    output.new_message(1).await;
    assert_eq!(*sink.0.lock(), "a");
    output.finish(0).await;
    assert_eq!(*sink.0.lock(), "ab|");
    output.text(1, "b", "B").await;
    output.finish(1).await;
    assert_eq!(*sink.0.lock(), "ab|Bc");
}

#[tokio::test]
async fn a_repeated_attempt_undoes_its_text() {
    let sink = Collected::default();
    let output = StepOutput::new(&sink, 2);
    output.text(1, "b", "first").await;
    output.new_message(1).await;
    output.text(1, "b", "half").await;
    output.restart(1, "b").await;
    output.text(1, "b", "whole").await;
    output.text(0, "a", "a: ").await;
    output.finish(0).await;
    assert_eq!(*sink.0.lock(), "a: whole");
    output.restart(1, "b").await;
    assert_eq!(*sink.0.lock(), "a: ", "also when it is live by then");
    output.finish(1).await;
}

#[tokio::test]
async fn items_keep_their_order_and_are_undone_with_their_attempt() {
    let item = |key: &str| SentItem { key: Some(key.to_owned()), body: None, more: false };
    for held in [true, false] {
        let sink = Collected::default();
        let output = StepOutput::new(&sink, 2);
        output.text(0, "a", "a: ").await;
        if !held {
            output.finish(0).await;
        }
        output.text(1, "b", "text").await;
        output.item(1, item("x")).await;
        output.new_message(1).await;
        output.text(1, "b", "more").await;
        output.new_message(1).await;
        output.item(1, item("y")).await;
        output.restart(1, "b").await;
        assert_eq!(*sink.0.lock(), "a: ");
        output.finish(0).await;
        output.text(1, "b", "!").await;
        output.item(1, item("z")).await;
        assert!(matches!(sink.0.lock().as_str(), "a: !<z>" | "a: |!<z>"), "{}", sink.0.lock());
    }
}

#[tokio::test]
async fn nested_output_keeps_its_order_inside_a_slot() {
    let sink = Collected::default();
    let outer = StepOutput::new(&sink, 2);
    let slot = SlotOutput { output: &outer, slot: 1 };
    let inner = StepOutput::new(&slot, 2);
    inner.text(1, "y", "y").await;
    inner.text(0, "x", "x").await;
    inner.finish(0).await;
    inner.restart(1, "y").await;
    inner.text(1, "y", "Y").await;
    inner.finish(1).await;
    assert_eq!(*sink.0.lock(), "");
    outer.text(0, "a", "a").await;
    outer.finish(0).await;
    assert_eq!(*sink.0.lock(), "axY");
}

/// Takes back exactly what it has, as a chat's receiver does: messages, each with whether it is complete, and items.
#[derive(Default)]
struct Exact(Mutex<Vec<(Option<String>, bool)>>);

#[async_trait]
impl Output for Exact {
    async fn text(&self, _node: &str, piece: &str) {
        let mut parts = self.0.lock();
        match parts.last_mut() {
            Some((Some(text), false)) => text.push_str(piece),
            _ => parts.push((Some(piece.to_owned()), false)),
        }
    }

    async fn annotate(&self, _annotations: Vec<SentAnnotation>) {}

    async fn undo(&self, _node: &str, undone: &[Undone]) {
        let mut parts = self.0.lock();
        for part in undone {
            let (text, is_complete) = parts.pop().unwrap();
            let (Undone::Text(bytes) | Undone::Message(bytes)) = part else {
                assert_eq!(text, None, "an item");
                continue;
            };
            assert_eq!(is_complete, matches!(part, Undone::Message(_)));
            let mut text = text.unwrap();
            text.truncate(text.len() - bytes);
            if !text.is_empty() {
                parts.push((Some(text), false));
            }
        }
    }

    async fn item(&self, _item: SentItem) {
        self.new_message().await;
        self.0.lock().push((None, true));
    }

    async fn new_message(&self) {
        if let Some((_, is_complete)) = self.0.lock().last_mut() {
            *is_complete = true;
        }
    }

    async fn immediate(&self, _event: ImmediateEvent) {}

    async fn change_thread(&self, _change: ThreadChange) {}
}

#[tokio::test]
async fn output_that_fails_inside_and_with_its_container_is_undone_once() {
    let item = || SentItem { key: None, body: None, more: false };
    for ends_with_item in [true, false] {
        let sink = Exact::default();
        sink.item(item()).await;
        let outer = StepOutput::new(&sink, 1);
        let slot = SlotOutput { output: &outer, slot: 0 };
        let inner = StepOutput::new(&slot, 2);
        inner.text(0, "a", "aa").await;
        inner.finish(0).await;
        inner.text(1, "b", "bb").await;
        if ends_with_item {
            inner.item(1, item()).await;
        } else {
            inner.new_message(1).await;
        }
        inner.restart(1, "b").await;
        assert_eq!(*sink.0.lock(), [(None, true), (Some("aa".to_owned()), false)]);
        outer.restart(0, "each").await;
        assert_eq!(*sink.0.lock(), [(None, true)], "the item of another node stays");
    }
}

#[tokio::test]
async fn annotations_follow_their_text_and_are_undone_with_it() {
    let annotation = || {
        let source =
            serde_json::from_value(serde_json::json!({"type": "file", "title": "t", "filename": "f"}));
        vec![SentAnnotation { source: source.unwrap(), from_end: 0 }]
    };
    let sink = Collected::default();
    let output = StepOutput::new(&sink, 2);
    output.text(1, "b", "first").await;
    output.annotate(1, annotation()).await;
    output.text(1, "b", " and").await;
    output.annotate(1, annotation()).await;
    output.restart(1, "b").await;
    output.text(1, "b", "second").await;
    output.annotate(1, annotation()).await;
    output.text(0, "a", "a ").await;
    output.finish(0).await;
    output.text(1, "b", ".").await;
    assert_eq!(*sink.0.lock(), "a second[1].");
}
