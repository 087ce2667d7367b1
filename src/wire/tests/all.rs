//! Round trips for every variant, and the request parser with bad input.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]

use serde_json::{Map, Value, json};
use wire::chat::*;

fn thread(status: ThreadStatus) -> Thread {
    Thread {
        id: "thr_1".into(),
        created_at: "2026-01-01T00:00:00Z".into(),
        status,
        items: Page::default(),
        title: Some("T".into()),
        allowed_image_domains: None,
        metadata: Map::new(),
    }
}

fn items() -> Vec<ThreadItem> {
    let (id, thread_id, created_at) = ("msg_1", "thr_1", "2026-01-01T00:00:00Z");
    let sources = [
        SourcePlace::File { filename: "f.txt".into() },
        SourcePlace::Url { url: "https://example.org".into(), attribution: None },
        SourcePlace::Entity {
            id: "1".into(),
            icon: Some("bolt".into()),
            label: None,
            inline_label: None,
            interactive: true,
            data: Map::new(),
        },
    ];
    let annotations = sources.map(|place| Annotation { source: source(place), index: Some(3) }).to_vec();
    let task = Task {
        status_indicator: TaskStatus::Loading,
        body: TaskBody::Custom { title: Some("t".into()), icon: None, content: None },
    };
    let input = |form| StructuredInput {
        id: "q".into(),
        question: "Which?".into(),
        answer: Some(InputAnswer { values: vec!["a".into(), "b".into()], skipped: false }),
        form,
    };
    let bodies = [
        ItemBody::UserMessage {
            content: vec![
                UserMessageContent::InputText { text: "hé\u{0}".into() },
                UserMessageContent::InputTag {
                    id: "t".into(),
                    text: "ann".into(),
                    data: Map::new(),
                    group: Some("people".into()),
                    interactive: true,
                },
            ],
            attachments: vec![Attachment {
                id: "atc_1".into(),
                name: "a.png".into(),
                mime_type: "image/png".into(),
                kind: AttachmentKind::Image,
                storage_path: Some("chat/attachments/atc_1/a.png".into()),
                preview_url: Some("https://example.org/a.png".into()),
                upload_descriptor: Some(UploadDescriptor {
                    url: "https://example.org/up".into(),
                    method: "PUT".into(),
                    headers: Map::new(),
                }),
                thread_id: Some("thr_1".into()),
            }],
            quoted_text: Some("q".into()),
            inference_options: InferenceOptions {
                tool_choice: Some(ToolChoice { id: "search".into() }),
                model: Some("m".into()),
            },
        },
        ItemBody::AssistantMessage {
            content: vec![ContentPart::OutputText(OutputText { text: "x".into(), annotations })],
            status: None,
            reason: None,
        },
        ItemBody::ClientToolCall {
            status: ToolCallStatus::Completed,
            call_id: "c".into(),
            name: "where".into(),
            arguments: Map::new(),
            output: Some(serde_json::json!({"lat": 1})),
        },
        ItemBody::StructuredInput {
            status: InputStatus::Answered,
            inputs: vec![
                input(InputForm::MultipleChoice {
                    options: vec![InputOption { value: "a".into() }],
                    multiple: true,
                }),
                input(InputForm::Freeform { description: None }),
            ],
        },
        ItemBody::Widget { widget: root(), copy_text: None },
        ItemBody::Workflow {
            workflow: TaskList {
                kind: TaskListKind::Custom,
                tasks: vec![task.clone()],
                summary: Some(TaskSummary::Duration { duration: 3 }),
                expanded: true,
            },
        },
        ItemBody::Task { task },
        ItemBody::GeneratedImage { image: None, progress: None },
        ItemBody::EndOfTurn,
        ItemBody::HiddenContextItem { content: serde_json::json!({"a": 1}) },
        ItemBody::SdkHiddenContext { content: "stopped".into() },
    ];
    let item =
        |body| ThreadItem { id: id.into(), thread_id: thread_id.into(), created_at: created_at.into(), body };
    bodies.map(item).to_vec()
}

fn source(place: SourcePlace) -> Source {
    Source { title: "s".into(), description: None, timestamp: None, group: None, place }
}

fn root() -> WidgetRoot {
    WidgetRoot(serde_json::json!({"type": "Card", "children": []}).as_object().unwrap().clone())
}

#[test]
fn an_item_of_a_newer_build_is_read_but_hidden() {
    let text = r#"{"type":"hologram","beam":{"x":1},"id":"holo_1","thread_id":"thr_1","created_at":"t"}"#;
    let item: ThreadItem = serde_json::from_str(text).unwrap();
    assert_eq!((&item.body, item.id()), (&ItemBody::Unknown, "holo_1"));
    assert!(item.is_hidden() && item.as_message().is_none());
}

/// The store distinguishes items by it (`USER_MESSAGE`).
#[test]
fn the_json_of_an_item_begins_with_its_type() {
    for item in items() {
        let text = serde_json::to_string(&item).unwrap();
        assert!(text.starts_with(r#"{"type":""#), "{text}");
    }
}

#[test]
fn items_are_rendered_for_models_as_the_table_defines() {
    let read: Vec<String> = items()
        .iter()
        .map(|item| item.as_message().map_or("-".to_owned(), |(role, text)| format!("{role}: {text}")))
        .collect();
    assert_eq!(
        read,
        [
            "user: hé\u{0}@ann",
            "assistant: x",
            "-",
            "user: Which?: a, b\nWhich?: a, b",
            r#"assistant: {"type":"Card","children":[]}"#,
            "-",
            "-",
            "assistant: [image]",
            "-",
            r#"system: {"a":1}"#,
            "system: stopped",
        ]
    );
}

fn events() -> Vec<ChatEvent> {
    let text = ContentPart::text("x");
    let mark = Annotation { source: source(SourcePlace::File { filename: "f".into() }), index: None };
    let updates = [
        ItemUpdate::PieceAdded { part: PiecePart { text: "x".into() } },
        ItemUpdate::PartAdded { content_index: 0, content: text.clone() },
        ItemUpdate::TextDelta { content_index: 0, delta: "x".into() },
        ItemUpdate::AnnotationAdded { content_index: 0, annotation_index: 0, annotation: mark },
        ItemUpdate::PartDone { content_index: 0, content: text },
        ItemUpdate::WidgetUpdated { widget: root() },
        ItemUpdate::ComponentUpdated { component_id: "c".into(), component: root().0 },
        ItemUpdate::ComponentText { component_id: "c".into(), delta: "x".into(), done: false },
        ItemUpdate::ImageUpdated {
            image: GeneratedImage { id: "i".into(), url: "https://example.org/i".into() },
            progress: Some(0.5),
        },
    ];
    let mut events: Vec<ChatEvent> = updates
        .into_iter()
        .map(|update| ChatEvent::ItemUpdated { item_id: "msg_1".into(), update })
        .collect();
    for status in [
        ThreadStatus::Active,
        ThreadStatus::Locked { reason: Some("busy".into()) },
        ThreadStatus::Closed { reason: None },
    ] {
        events.push(ChatEvent::ThreadCreated { thread: thread(status.clone()) });
        events.push(ChatEvent::ThreadUpdated { thread: thread(status) });
    }
    for item in items() {
        events.push(ChatEvent::ItemAdded { item: item.clone() });
        events.push(ChatEvent::ItemDone { item: item.clone() });
        events.push(ChatEvent::ItemReplaced { item });
    }
    events.push(ChatEvent::ItemRemoved { item_id: "msg_1".into() });
    events.push(ChatEvent::StreamOptions { stream_options: StreamOptions { allow_cancel: true } });
    events.push(ChatEvent::ProgressUpdate { text: "p".into(), icon: Some("bolt".into()) });
    events.push(ChatEvent::ClientEffect { name: "n".into(), data: Map::new() });
    for level in [NoticeLevel::Info, NoticeLevel::Warning, NoticeLevel::Danger] {
        events.push(ChatEvent::Notice { level, message: "m".into(), title: None });
    }
    for code in [StreamErrorCode::Stream, StreamErrorCode::Custom] {
        events.push(ChatEvent::Error { code, message: None, allow_retry: true, error_code: None });
    }
    events.extend(wire::ErrorCode::ALL.iter().map(|code| ChatEvent::failure(*code, true)));
    events
}

#[test]
fn every_event_round_trips_on_one_line() {
    for event in events() {
        let text = serde_json::to_string(&event).unwrap();
        assert!(!text.contains('\n'));
        assert!(!text.contains("null"), "unset fields are absent: {text}");
        assert_eq!(serde_json::from_str::<ChatEvent>(&text).unwrap(), event, "{text}");
    }
}

#[test]
fn the_text_piece_has_exactly_its_documented_shape() {
    let update = ItemUpdate::PieceAdded { part: PiecePart { text: "Hi".into() } };
    let event = ChatEvent::ItemUpdated { item_id: "msg_1".into(), update };
    assert_eq!(
        serde_json::to_value(event).unwrap(),
        json!({"type": "thread.item.updated", "item_id": "msg_1",
               "update": {"type": "content_part_added", "part": {"type": "output_text", "text": "Hi"}}})
    );
}

fn parse(body: Value) -> Result<ChatRequest, Vec<(String, String)>> {
    ChatRequest::parse(body.as_object().unwrap())
        .map_err(|problems| problems.into_iter().map(|p| (p.pointer, p.code)).collect())
}

fn pointers(body: Value) -> Vec<String> {
    parse(body).unwrap_err().into_iter().map(|(pointer, code)| format!("{pointer} {code}")).collect()
}

#[test]
fn requests_round_trip() {
    let input = UserMessageInput::text("hello");
    let page = PageRequest { limit: Some(7), order: Some(Order::Asc), after: Some("msg_1".into()) };
    for operation in [
        ChatOperation::CreateThread { input: input.clone() },
        ChatOperation::AddUserMessage { thread_id: "thr_1".into(), input },
        ChatOperation::RetryAfterItem { thread_id: "thr_1".into(), item_id: "msg_1".into() },
        ChatOperation::GetThread { thread_id: "thr_1".into() },
        ChatOperation::ListThreads(PageRequest::default()),
        ChatOperation::ListItems { thread_id: "thr_1".into(), page },
        ChatOperation::UpdateThread { thread_id: "thr_1".into(), title: "T".into() },
        ChatOperation::DeleteThread { thread_id: "thr_1".into() },
        ChatOperation::ItemFeedback {
            thread_id: "thr_1".into(),
            item_ids: vec!["msg_1".into(), "msg_2".into()],
            kind: FeedbackKind::Negative,
            comment: Some("too long".into()),
        },
    ] {
        let request = ChatRequest { operation, metadata: Map::new() };
        assert_eq!(parse(serde_json::to_value(&request).unwrap()), Ok(request));
    }
}

#[test]
fn attachments_may_be_ids_or_objects_and_the_rest_is_lenient() {
    let body = json!({"type": "threads.create", "workflow_id": "w", "surprise": 1, "metadata": null,
        "params": {"input": {"content": [{"type": "input_tag", "id": "1", "text": "ann"}],
                             "attachments": ["atc_1", {"id": "atc_2", "name": "x"}], "quoted_text": null}}});
    let ChatOperation::CreateThread { input } = parse(body).unwrap().operation else { panic!("other type") };
    assert_eq!(input.attachments.iter().map(|a| a.id()).collect::<Vec<_>>(), ["atc_1", "atc_2"]);
    assert_eq!(input.model_text(), "@ann");
}

#[test]
fn invalid_requests_list_all_problems_at_once() {
    assert_eq!(pointers(json!({})), ["/type required"]);
    assert_eq!(pointers(json!({"type": 1})), ["/type type"]);
    assert_eq!(pointers(json!({"type": "threads.explode", "params": {}})), ["/type unknown"]);
    assert_eq!(
        pointers(json!({"type": "threads.add_structured_input", "params": {}})),
        ["/params/thread_id required", "/params/item_id required", "/params/input required"]
    );
    assert_eq!(pointers(json!({"type": "threads.create"})), ["/params required"]);
    assert_eq!(
        pointers(json!({"type": "threads.add_user_message", "metadata": 1, "params": {}})),
        ["/params/thread_id required", "/params/input required", "/metadata type"]
    );
    let input = json!({"content": [1, {"type": "input_text"}, {"type": "x"}, {"type": "input_tag", "id": 1}],
                       "attachments": [1], "quoted_text": 2, "inference_options": {"model": 3, "tool_choice": 4}});
    assert_eq!(
        pointers(json!({"type": "threads.create", "params": {"input": input}})),
        [
            "/params/input/content/0 type",
            "/params/input/content/1/text required",
            "/params/input/content/2/type unknown",
            "/params/input/content/3/id type",
            "/params/input/content/3/text required",
            "/params/input/attachments/0 type",
            "/params/input/quoted_text type",
            "/params/input/inference_options/model type",
            "/params/input/inference_options/tool_choice type",
        ]
    );
    for content in [json!([]), json!([{"type": "input_text", "text": "  "}])] {
        let body = json!({"type": "threads.create", "params": {"input": {"content": content}}});
        assert_eq!(pointers(body), ["/params/input/content empty"]);
    }
}

#[test]
fn page_requests_are_parsed_leniently_within_bounds() {
    let page = |params: Value| {
        let body = json!({"type": "threads.list", "params": params});
        parse(body).map(|request| match request.operation {
            ChatOperation::ListThreads(page) => (page.records(), page.direction(), page.after),
            _ => panic!("other type"),
        })
    };
    let usual = Ok((20, Order::Desc, None));
    for params in [
        json!({}),
        json!({"limit": null, "order": null, "after": null, "x": 1}),
        json!({"limit": 0, "after": ""}),
    ] {
        assert_eq!(page(params), usual);
    }
    let request = json!({"limit": 3, "order": "asc", "after": "thr_1"});
    assert_eq!(page(request), Ok((3, Order::Asc, Some("thr_1".into()))));
    for much in [101, u64::from(u32::MAX) + 1, u64::MAX] {
        assert_eq!(page(json!({"limit": much})), Ok((100, Order::Desc, None)));
    }
    let params = json!({"limit": -1, "order": "newest", "after": 1});
    assert_eq!(
        pointers(json!({"type": "items.list", "params": params})),
        ["/params/thread_id required", "/params/limit range", "/params/order unknown", "/params/after type"]
    );
    for wrong in [json!("3"), json!(1.5), json!(true), json!([1])] {
        assert_eq!(
            pointers(json!({"type": "threads.list", "params": {"limit": wrong}})),
            ["/params/limit type"]
        );
    }
    assert_eq!(pointers(json!({"type": "threads.list"})), ["/params required"]);
}

#[test]
fn invalid_changes_list_all_problems_at_once() {
    let problems = |kind: &str, params: Value| pointers(json!({"type": kind, "params": params}));
    assert_eq!(
        problems("items.feedback", json!({"item_ids": [1, "msg_1", null], "kind": "good"})),
        [
            "/params/thread_id required",
            "/params/item_ids/0 type",
            "/params/item_ids/2 type",
            "/params/kind unknown"
        ]
    );
    for (item_ids, code) in [
        (json!(null), "required"),
        (json!("msg_1"), "type"),
        (json!([]), "length"),
        (json!(vec!["msg_1"; 101]), "length"),
    ] {
        let params = json!({"thread_id": "t", "item_ids": item_ids, "kind": "positive"});
        assert_eq!(problems("items.feedback", params), [format!("/params/item_ids {code}")]);
    }
    for (title, code) in [
        (json!(null), "required"),
        (json!(1), "type"),
        (json!(" \n "), "length"),
        (json!("x".repeat(201)), "length"),
    ] {
        let params = json!({"thread_id": "t", "title": title});
        assert_eq!(problems("threads.update", params), [format!("/params/title {code}")]);
    }
    let body = json!({"type": "threads.update", "params": {"thread_id": "t", "title": " a\nb\u{0} "}});
    let expected = ChatOperation::UpdateThread { thread_id: "t".into(), title: "a b".into() };
    assert_eq!(parse(body).unwrap().operation, expected);
}

#[test]
fn a_failure_allows_a_retry_only_if_it_may_help() {
    let allows = |code, allow| match ChatEvent::failure(code, allow) {
        ChatEvent::Error { allow_retry, .. } => allow_retry,
        _ => panic!("an error"),
    };
    for code in wire::ErrorCode::ALL {
        assert_eq!(allows(*code, true), code.retry_may_help());
        assert!(!allows(*code, false));
    }
    assert!(allows(wire::ErrorCode::NodeTimeout, true) && !allows(wire::ErrorCode::ChatNoReply, true));
}
