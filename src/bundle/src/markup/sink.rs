//! The HTML parser's sink: collects only the data that the rules need, without a tree.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

use html5ever::interface::tree_builder::{ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::tendril::StrTendril;
use html5ever::{Attribute, ExpandedName, QualName, local_name, ns};

use super::counters::Counters;
use super::report::Report;
use super::rules::{self, Tag};
use super::scripts::Script;
use super::{MarkupKind, xml};
use crate::code::Code;

/// A node that the parser can refer to.
pub(super) type Handle = Rc<Node>;

pub(super) struct Node {
    name: QualName,
    depth: Cell<usize>,
    has_parent: Cell<bool>,
    text: TextTarget,
    /// A template's content.
    content: Option<Handle>,
    annotates_html: bool,
}

/// A node's text destination.
#[derive(Clone, Copy)]
enum TextTarget {
    Nowhere,
    Script(usize),
    Deferred(usize),
}

/// A text that is checked once it is complete.
pub(super) struct DeferredText {
    pub(super) line: u32,
    pub(super) text: String,
    pub(super) what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Style,
    /// A nested document; browsers with scripts do not show `noscript`.
    NoScript,
    SourceDocument,
}

/// A document's parse state.
pub(super) struct ParseState<'a> {
    pub(super) report: Report<'a>,
    pub(super) kind: MarkupKind,
    /// The document line at which the parsed text begins.
    pub(super) first_line: u32,
    pub(super) scripting: bool,
    /// Whether a document that is too complex is refused; well-formed SVG has already been counted as XML.
    pub(super) counts: bool,
    pub(super) counters: Counters,
    pub(super) scripts: Vec<Script>,
    pub(super) kept: Vec<DeferredText>,
}

pub(super) struct Sink<'a> {
    pub(super) state: RefCell<ParseState<'a>>,
    document: Handle,
}

impl<'a> Sink<'a> {
    pub(super) fn new(state: ParseState<'a>) -> Self {
        let name = QualName::new(None, ns!(), local_name!(""));
        Self { state: RefCell::new(state), document: node(name, TextTarget::Nowhere, None, false) }
    }

    fn attach(&self, parent: &Handle, child: NodeOrText<Handle>) {
        match child {
            NodeOrText::AppendNode(child) => {
                let depth = parent.depth.get() + 1;
                child.depth.set(depth);
                child.has_parent.set(true);
                if let Some(content) = &child.content {
                    content.depth.set(depth);
                }
                self.state.borrow_mut().counters.depth(depth);
            }
            NodeOrText::AppendText(text) => {
                let mut state = self.state.borrow_mut();
                match parent.text {
                    TextTarget::Nowhere => {}
                    TextTarget::Script(number) => {
                        if let Some(script) = state.scripts.get_mut(number) {
                            script.add(&text);
                        }
                    }
                    TextTarget::Deferred(number) => {
                        if let Some(kept) = state.kept.get_mut(number) {
                            kept.text.push_str(&text);
                        }
                    }
                }
            }
        }
    }
}

/// Avoids allocations: nearly all names are lowercase, and a document has very many.
fn lower_case(name: &str) -> Cow<'_, str> {
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(name.to_ascii_lowercase())
    } else {
        Cow::Borrowed(name)
    }
}

fn attribute_name(attribute: &Attribute) -> Cow<'_, str> {
    let name = &attribute.name;
    match &name.prefix {
        Some(prefix) => Cow::Owned(format!("{prefix}:{}", name.local).to_ascii_lowercase()),
        None => lower_case(&name.local),
    }
}

fn node(name: QualName, text: TextTarget, content: Option<Handle>, annotates_html: bool) -> Handle {
    let (depth, has_parent) = (Cell::new(0), Cell::new(false));
    Rc::new(Node { name, depth, has_parent, text, content, annotates_html })
}

impl ParseState<'_> {
    /// Checks an element; returns its text destination.
    fn element(&mut self, name: &QualName, attributes: &[Attribute]) -> TextTarget {
        self.counters.element(attributes.len());
        let lower = lower_case(&name.local);
        let attributes = attributes.iter().map(|one| (attribute_name(one), &*one.value)).collect();
        let tag = Tag { name: &lower, attributes };
        if self.kind != MarkupKind::Html {
            xml::element(&tag, self.kind, &mut self.report);
            return TextTarget::Nowhere;
        }
        rules::element(&tag, &mut self.report);
        let line = self.report.line;
        if let Some(source) = tag.get("srcdoc").filter(|_| tag.name == "iframe") {
            self.kept.push(DeferredText { line, text: source.to_owned(), what: What::SourceDocument });
        }
        let what = match tag.name {
            "script" => {
                let script = Script::new(&tag, name.ns == ns!(svg), line);
                if script.is_inline() {
                    self.counters.inline_script();
                }
                self.scripts.push(script);
                return TextTarget::Script(self.scripts.len() - 1);
            }
            "style" => What::Style,
            "noscript" if self.scripting => What::NoScript,
            _ => return TextTarget::Nowhere,
        };
        self.kept.push(DeferredText { line, text: String::new(), what });
        TextTarget::Deferred(self.kept.len() - 1)
    }
}

impl<'a> TreeSink for Sink<'a> {
    type Handle = Handle;
    type Output = ParseState<'a>;
    type ElemName<'n>
        = ExpandedName<'n>
    where
        Self: 'n;

    fn finish(self) -> Self::Output {
        self.state.into_inner()
    }

    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> Handle {
        Rc::clone(&self.document)
    }

    fn elem_name<'n>(&'n self, target: &'n Handle) -> ExpandedName<'n> {
        target.name.expanded()
    }

    fn create_element(&self, name: QualName, attributes: Vec<Attribute>, flags: ElementFlags) -> Handle {
        let text = self.state.borrow_mut().element(&name, &attributes);
        let content = flags.template.then(|| node(name.clone(), TextTarget::Nowhere, None, false));
        node(name, text, content, flags.mathml_annotation_xml_integration_point)
    }

    fn create_comment(&self, text: StrTendril) -> Handle {
        let state = &mut *self.state.borrow_mut();
        if let Some(encoding) = text.strip_prefix("?xml ").and_then(xml::declared) {
            rules::encoding(encoding, &mut state.report);
        }
        Rc::clone(&self.document)
    }

    fn create_pi(&self, _: StrTendril, _: StrTendril) -> Handle {
        Rc::clone(&self.document)
    }

    fn append(&self, parent: &Handle, child: NodeOrText<Handle>) {
        match child {
            // Comments have no node.
            NodeOrText::AppendNode(child) if Rc::ptr_eq(&child, &self.document) => {}
            child => self.attach(parent, child),
        }
    }

    fn append_based_on_parent_node(&self, element: &Handle, previous: &Handle, child: NodeOrText<Handle>) {
        if element.has_parent.get() {
            self.append_before_sibling(element, child);
        } else {
            self.append(previous, child);
        }
    }

    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {}

    fn get_template_contents(&self, target: &Handle) -> Handle {
        target.content.as_ref().map_or_else(|| Rc::clone(target), Rc::clone)
    }

    fn same_node(&self, one: &Handle, other: &Handle) -> bool {
        Rc::ptr_eq(one, other)
    }

    fn set_quirks_mode(&self, _: QuirksMode) {}

    fn append_before_sibling(&self, sibling: &Handle, child: NodeOrText<Handle>) {
        // Text before a table never belongs to a script; an element is as deep as its sibling.
        match child {
            NodeOrText::AppendNode(child) if !Rc::ptr_eq(&child, &self.document) => {
                child.depth.set(sibling.depth.get());
                child.has_parent.set(true);
            }
            _ => {}
        }
    }

    fn add_attrs_if_missing(&self, target: &Handle, attributes: Vec<Attribute>) {
        // Attributes of a repeated `<html>` or `<body>` are merged.
        self.state.borrow_mut().element(&target.name, &attributes);
    }

    fn remove_from_parent(&self, target: &Handle) {
        target.has_parent.set(false);
    }

    fn reparent_children(&self, _: &Handle, _: &Handle) {}

    fn is_mathml_annotation_xml_integration_point(&self, handle: &Handle) -> bool {
        handle.annotates_html
    }

    fn set_current_line(&self, line: u64) {
        let mut state = self.state.borrow_mut();
        let line = u32::try_from(line).unwrap_or(u32::MAX).saturating_sub(1);
        state.report.line = state.first_line.saturating_add(line);
    }
}

impl ParseState<'_> {
    /// Reports that the document is too complex.
    pub(super) fn too_complex(&mut self, detail: String) {
        if self.counts {
            self.report.findings.line(Code::HtmlParseLimit, self.report.path, None, detail);
        }
    }
}
