//! Example bodies for the documentation of these operations.

/// The member `graph` of an example.
macro_rules! graph_member {
    () => {
        r#"  "graph": {
    "format": "graph/1",
    "nodes": [
      {
        "name": "answer",
        "type": "reply",
        "text": "You said: {{ inputs.message }}"
      }
    ],
    "edges": [
      {
        "from": "START",
        "to": "answer"
      },
      {
        "from": "answer",
        "to": "END"
      }
    ]
  }"#
    };
}

pub(super) const CREATE: &str = r#"{
  "name": "Order desk",
  "handle": "order-desk",
  "description": "Says where an order is.",
  "tags": [
    "support"
  ]
}"#;

pub(super) const WORKFLOW: &str = r#"{
  "id": "0198c2e7-5d3f-7a41-b0c2-1d2e3f4a5b6c",
  "handle": "order-desk",
  "name": "Order desk",
  "description": "Says where an order is.",
  "tags": [
    "support"
  ],
  "workspace_id": "0198c2e0-51aa-7d03-b1f6-0c9d8e7f6a5b",
  "is_public": true,
  "require_login": false,
  "published_at": "2026-01-01T12:00:00.000Z",
  "published_by": null,
  "share_url": "http://localhost:8000/chat/0198c2e7-5d3f-7a41-b0c2-1d2e3f4a5b6c",
  "is_archived": false,
  "latest_version": 1,
  "live_version": 1,
  "chat": {
    "start_prompts": [],
    "models": [],
    "busy": "enqueue",
    "uploads": true,
    "transcription": null,
    "title": "words",
    "limits": {
      "session_tokens_per_day": 20000,
      "usd_per_day": 5.0
    },
    "retention_days": 90
  },
  "max_concurrent_runs": null,
  "created_at": "2026-01-01T12:00:00.000Z",
  "updated_at": "2026-01-01T12:00:00.000Z"
}"#;

pub(super) const USES: &str = r#"{
  "is_public": true,
  "triggers": [
    "cron"
  ],
  "apps": [
    {
      "app": "menu",
      "binding": "order"
    }
  ],
  "workflows": [
    "support"
  ]
}"#;

pub(super) const UPDATE: &str = r#"{
  "description": null,
  "chat": {
    "start_prompts": [
      {
        "label": "My order",
        "prompt": "Where is my order?"
      }
    ],
    "models": [
      {
        "id": "openai/gpt-4o-mini",
        "label": "Quick"
      }
    ],
    "busy": "interrupt"
  },
  "max_concurrent_runs": 8
}"#;

pub(super) const PUBLIC: &str = r#"{
  "id": "0198c2e7-5d3f-7a41-b0c2-1d2e3f4a5b6c",
  "name": "Order desk",
  "description": "Says where an order is.",
  "require_login": false,
  "share_url": "http://localhost:8000/chat/0198c2e7-5d3f-7a41-b0c2-1d2e3f4a5b6c",
  "chat": {
    "start_prompts": [],
    "models": [],
    "busy": "enqueue",
    "uploads": true,
    "dictation": false
  }
}"#;

pub(super) const SAVE_VERSION: &str = concat!(
    "{\n",
    graph_member!(),
    r#",
  "runnable_config": null,
  "metadata": null,
  "notes": "First."
}"#
);

pub(super) const VERSIONS: &str = r#"{
  "data": [
    {
      "id": "0198c2e9-0c44-7f21-a3b2-4d5e6f708192",
      "workflow_id": "0198c2e7-5d3f-7a41-b0c2-1d2e3f4a5b6c",
      "version": 1,
      "draft": false,
      "digest": "9f2c…",
      "notes": "First.",
      "created_by": null,
      "created_at": "2026-01-01T12:00:00.000Z"
    }
  ],
  "next_cursor": null
}"#;

pub(super) const SET_LIVE: &str = r#"{}"#;

pub(super) const VERSION: &str = concat!(
    r#"{
  "id": "0198c2e9-0c44-7f21-a3b2-4d5e6f708192",
  "workflow_id": "0198c2e7-5d3f-7a41-b0c2-1d2e3f4a5b6c",
  "version": 1,
  "draft": false,
  "digest": "9f2c…",
"#,
    graph_member!(),
    r#",
  "runnable_config": null,
  "metadata": {},
  "notes": "First.",
  "created_by": null,
  "created_at": "2026-01-01T12:00:00.000Z"
}"#
);

pub(super) const DIFF: &str = r#"{
  "base": 1,
  "target": 2,
  "changes": [
    {
      "node": "answer",
      "field": "text",
      "before": "You said: {{ inputs.message }}",
      "after": "Thank you."
    },
    {
      "node": "note",
      "field": null,
      "before": null,
      "after": {
        "name": "note",
        "type": "log",
        "message": "x"
      }
    },
    {
      "node": null,
      "field": "edges",
      "before": {
        "from": "START",
        "to": "answer"
      },
      "after": {
        "from": "START",
        "to": "note"
      }
    },
    {
      "node": null,
      "field": "edges",
      "before": null,
      "after": {
        "from": "note",
        "to": "answer"
      }
    },
    {
      "node": null,
      "field": "runnable_config.prompts.sort.text",
      "before": "Be kind.",
      "after": "Be brief."
    }
  ]
}"#;

pub(super) const PUBLISH: &str = r#"{
  "require_login": false
}"#;

pub(super) const CHECK: &str = concat!("{\n", graph_member!(), "\n}");

pub(super) const CHECKED: &str = r#"{
  "valid": false,
  "errors": [
    {
      "pointer": "/nodes/0/type",
      "code": "unknown_type",
      "message": "unknown node type 'replay'",
      "suggestion": "did you mean 'reply'?"
    }
  ],
  "warnings": [
    {
      "pointer": "/nodes/1/workflow",
      "code": "unknown_workflow",
      "message": "this workspace has no workflow 'refnud'",
      "suggestion": "did you mean 'refund'?"
    }
  ]
}"#;
