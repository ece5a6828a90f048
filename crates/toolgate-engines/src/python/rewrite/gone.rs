//! The name of `except … as name` after its block, if the script sets the name elsewhere too.

use ruff_python_ast::{ExceptHandler, Expr, Stmt, StmtTry};
use ruff_text_size::TextRange;

use super::{Node, refused::Refusal, walk};

/// What happens to a name, in the order of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Set,
    /// A handler has deleted it.
    Gone,
    Read,
}

/// A read of a name that a handler has deleted before.
pub(super) fn again(body: &[Stmt]) -> Option<Refusal> {
    let mut scopes = vec![body];
    let mut handles = false;
    walk(body, |node| {
        match node {
            Node::Statement(Stmt::FunctionDef(function)) => scopes.push(&function.body),
            Node::Statement(Stmt::Try(tried)) => handles |= !named(tried).is_empty(),
            _ => {}
        }
        matches!(node, Node::Statement(_))
    });
    scopes.into_iter().filter(|_| handles).find_map(in_scope)
}

/// A handler that names the exception.
struct NamedHandler<'a> {
    name: &'a str,
    range: TextRange,
    /// Whether the script goes on after its block.
    goes_on: bool,
}

fn named(tried: &StmtTry) -> Vec<NamedHandler<'_>> {
    let handlers = tried.handlers.iter();
    handlers
        .filter_map(|ExceptHandler::ExceptHandler(handler)| {
            let leaves = matches!(
                handler.body.last(),
                Some(Stmt::Return(_) | Stmt::Raise(_) | Stmt::Continue(_) | Stmt::Break(_))
            );
            let name = handler.name.as_ref()?.as_str();
            Some(NamedHandler { name, range: handler.range, goes_on: !leaves })
        })
        .collect()
}

fn in_scope(body: &[Stmt]) -> Option<Refusal> {
    let mut handlers = Vec::new();
    let mut events = Vec::new();
    walk(body, |node| match node {
        Node::Statement(Stmt::FunctionDef(_) | Stmt::ClassDef(_)) => false,
        Node::Statement(Stmt::Try(tried)) => {
            handlers.extend(named(tried));
            true
        }
        Node::Statement(_) | Node::Parameter(_) => true,
        Node::Expression(Expr::Name(name)) => {
            let event = if name.ctx.is_load() { Event::Read } else { Event::Set };
            events.push((name.range, name.id.as_str(), event));
            true
        }
        // They have names of their own.
        Node::Expression(expression) => !matches!(
            expression,
            Expr::Lambda(_)
                | Expr::ListComp(_)
                | Expr::SetComp(_)
                | Expr::DictComp(_)
                | Expr::Generator(_)
        ),
    });
    let within = |name: &str, range: TextRange| {
        handlers.iter().any(|it| it.name == name && it.range.contains_range(range))
    };
    events.retain(|(range, name, _)| !within(name, *range));
    let ends = handlers.iter().filter(|it| it.goes_on);
    let ends = ends.map(|it| (TextRange::empty(it.range.end()), it.name, Event::Gone));
    events.extend(ends);
    events.sort_by_key(|(range, ..)| range.start());
    let gone = events.iter().enumerate().find(|(index, (_, name, event))| {
        let before = events
            .iter()
            .take(*index)
            .rfind(|(_, other, event)| other == name && *event != Event::Read);
        *event == Event::Read && before.is_some_and(|(.., last)| *last == Event::Gone)
    });
    let (_, (range, name, _)) = gone?;
    let what = format!("`{name}` after the block of its `except`");
    Some(Refusal::new(range, what, "keep the exception in another variable: error = e"))
}
