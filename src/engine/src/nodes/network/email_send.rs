//! `email_send`: sends a mail through the service's own mail server. As with `webhook_send`, the mail enters the
//! outbox with the node's journal row, so it is sent if and only if the step is done.

use async_trait::async_trait;
use minijinja::Value as View;
use serde_json::{Map, Value, json};
use wire::FieldError;

use crate::NodeError;
use crate::check::Check;
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::nodes::fields::{optional_text_field, text_field, value_field};
use crate::outbox::{Delivery, Mail};
use crate::template::{as_text, fill, has_holes};

/// Maximum recipients, `to` and `cc` together.
const MOST_RECIPIENTS: usize = 50;
/// Characters allowed in an address besides letters and digits.
const MARKS: &str = "!#$%&'*+-/=?^_`{|}~";
/// Maximum subject characters.
const MOST_SUBJECT: usize = 200;
/// Maximum bytes of the text, and of its HTML form.
const MOST_TEXT: usize = 256 * 1024;

pub(crate) const TYPE: NodeType = NodeType {
    name: "email_send",
    group: "network",
    summary: "Sends an email through the service's mail server (SERVICE_SMTP_URL), from SERVICE_MAIL_FROM.",
    effect: Effect::Outbound,
    secrets: &[],
    schema,
    result: "`{delivery_id, status, recipients}`; the status is `queued`: the run does not wait for the mail server.",
    members: &["delivery_id", "status", "recipients"],
    example: || {
        json!({"name": "tell", "type": "email_send", "to": ["{{ inputs.email }}"], "subject": "Your order {{ inputs.order }}",
               "text": "It is on its way."})
    },
    build,
};

struct EmailSend {
    to: Value,
    cc: Option<Value>,
    reply_to: Option<Value>,
    subject: Value,
    text: Value,
    html: Option<Value>,
}

fn schema() -> Value {
    let list = |what: &str| {
        json!({"type": ["string", "array"], "items": {"type": "string"},
               "description": format!("{what}: an address, a list of addresses, or a template of either.")})
    };
    json!({"type": "object", "required": ["to", "subject", "text"], "properties": {
        "to": list("Recipients; at most 50 together with `cc`"),
        "cc": list("Recipients of a copy"),
        "reply_to": {"type": "string", "description": "Address for replies; a template."},
        "subject": {"type": "string", "description": "One line of at most 200 characters; a template."},
        "text": {"type": "string", "description": "The email as plain text, at most 256 KiB; a template."},
        "html": {"type": "string", "description": "The email as HTML, for mail clients that display HTML; a template."}}})
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let to = addresses_field(fields, "to", check);
    let cc = fields.value("cc").is_some().then(|| addresses_field(fields, "cc", check));
    let reply_to = optional_text_field(fields, "reply_to", check);
    check_address("reply_to", reply_to.as_ref(), fields.at("reply_to"), check);
    let subject = text_field(fields, "subject", check);
    let text = text_field(fields, "text", check);
    let html = optional_text_field(fields, "html", check);
    let cc = match cc {
        Some(cc) => Some(cc?),
        None => None,
    };
    Some(Box::new(EmailSend { to: to?, cc, reply_to, subject: subject?, text: text?, html }))
}

fn addresses_field(fields: &mut Fields<'_>, name: &'static str, check: &mut Check) -> Option<Value> {
    let value = value_field(fields, name, check)?;
    let good = match &value {
        Value::String(_) => true,
        Value::Array(items) => items.iter().all(Value::is_string),
        _ => false,
    };
    if !good {
        let problem = FieldError::new(fields.at(name), "type", "must be an address or a list of addresses");
        check.note(problem.suggest(format!("\"{name}\": [\"ada@example.com\"]")));
    }
    let pointer = fields.at(name);
    match &value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                check_address(name, Some(item), format!("{pointer}/{index}"), check);
            }
        }
        one => check_address(name, Some(one), pointer, check),
    }
    good.then_some(value)
}

/// Reports a literal address that is invalid.
fn check_address(field: &str, given: Option<&Value>, pointer: String, check: &mut Check) {
    let given = given.and_then(Value::as_str).filter(|given| !has_holes(given));
    if let Some(Err(error)) = given.map(|given| address(field, given)) {
        check.note_at_saving(FieldError::new(pointer, "address", error.message).suggest("ada@example.com"));
    }
}

#[async_trait]
impl Node for EmailSend {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        let mut input = Map::new();
        for (name, field) in [
            ("to", Some(&self.to)),
            ("cc", self.cc.as_ref()),
            ("reply_to", self.reply_to.as_ref()),
            ("subject", Some(&self.subject)),
            ("text", Some(&self.text)),
            ("html", self.html.as_ref()),
        ] {
            if let Some(field) = field {
                input.insert(name.to_owned(), fill(field, scope)?);
            }
        }
        Ok(Value::Object(input))
    }

    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        let text = |name: &str| input.get(name).map(as_text);
        let (to, cc) = (addresses("to", input.get("to"))?, addresses("cc", input.get("cc"))?);
        let recipients = to.len() + cc.len();
        if to.is_empty() || recipients > MOST_RECIPIENTS {
            let message = format!(
                "the email has {recipients} recipients; it needs at least one in 'to' and at most {MOST_RECIPIENTS}"
            );
            return Err(NodeError::failed(message).into());
        }
        let reply_to = match text("reply_to") {
            Some(reply_to) => Some(address("reply_to", &reply_to)?),
            None => None,
        };
        let subject = text("subject").unwrap_or_default();
        if subject.trim().is_empty()
            || subject.chars().count() > MOST_SUBJECT
            || subject.chars().any(char::is_control)
        {
            let message = format!("'subject' must be one line of 1 to {MOST_SUBJECT} characters");
            return Err(NodeError::failed(message).into());
        }
        let (plain, html) = (text("text").unwrap_or_default(), text("html"));
        for (name, body) in [("text", Some(&plain)), ("html", html.as_ref())] {
            if body.is_some_and(|body| body.len() > MOST_TEXT || body.contains('\0')) {
                let message = format!("'{name}' must have at most {MOST_TEXT} bytes and no U+0000");
                return Err(NodeError::failed(message).into());
            }
        }
        let mail = Mail { to, cc, reply_to, subject, text: plain, html };
        let delivery = Delivery::mail(&call.idempotency_key(), &mail);
        let id = delivery.id;
        call.deliver(delivery);
        Ok(json!({"delivery_id": id, "status": "queued", "recipients": recipients}))
    }

    /// It is sent once its row is stored, and a second row would be identical.
    fn is_idempotent(&self) -> bool {
        true
    }
}

/// Each address once.
fn addresses(field: &str, given: Option<&Value>) -> Result<Vec<String>, NodeError> {
    let given = match given {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(several)) => several.iter().map(as_text).collect(),
        Some(one) => vec![as_text(one)],
    };
    let mut found: Vec<String> = Vec::new();
    for one in given {
        let one = address(field, &one)?;
        if !found.contains(&one) {
            found.push(one);
        }
    }
    Ok(found)
}

/// Accepts exactly `local@domain`: no name, no list, no line break.
fn address(field: &str, text: &str) -> Result<String, NodeError> {
    let text = text.trim_matches(' ');
    let bad = || {
        let shown: String = text.chars().filter(|letter| !letter.is_control()).take(60).collect();
        NodeError::failed(format!("'{field}': '{shown}' is not an address such as ada@example.com"))
    };
    let (local, domain) = text.rsplit_once('@').ok_or_else(bad)?;
    // A dot-atom by RFC 5322, with the letters allowed by RFC 6531.
    let atom = |atom: &str| {
        !atom.is_empty() && atom.chars().all(|letter| letter.is_alphanumeric() || MARKS.contains(letter))
    };
    let local_good = local.len() <= 64 && local.split('.').all(atom);
    let label = |label: &str| {
        let letters = label.chars().all(|letter| letter.is_alphanumeric() || letter == '-');
        !label.is_empty() && label.len() <= 63 && letters && !label.starts_with('-') && !label.ends_with('-')
    };
    let domain_good = domain.len() <= 253 && domain.split('.').all(label);
    if local_good && domain_good && text.len() <= 254 { Ok(text.to_owned()) } else { Err(bad()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipient_is_exactly_one_address() {
        for good in ["ada@example.com", " ada.l+x@mail.example.co.uk ", "o'neil@x", "größe@exämple.de"] {
            assert_eq!(address("to", good).as_deref(), Ok(good.trim()), "{good}");
        }
        for bad in [
            "",
            "ada",
            "@example.com",
            "ada@",
            "ada@example.com\r\nBcc: eve@example.com",
            "a@b, c@d",
            "Ada <a@b.de>",
            "a b@c.de",
            "a@b@c.de",
            "a@-b.de",
            "a@b..de",
            "a@[127.0.0.1]",
            "\"a b\"@c.de",
            "a\u{0}@b.de",
            "a..b@c.de",
            ".a@c.de",
            "a.@c.de",
            "o’neil@c.de",
        ] {
            assert!(address("to", bad).is_err_and(|error| !error.message.contains('\r')), "{bad}");
        }
        assert!(address("to", &format!("{}@b.de", "a".repeat(65))).is_err());
    }
}
