//! Exceptions that a script defines.
//!
//! Monty raises exceptions of its own types, made of one text. An exception of another class is kept
//! by the prelude, and one of Monty's types that names it travels in its place. Handlers become one
//! handler that asks the prelude which of them is meant. Scripts without such classes stay as they
//! are.

use ruff_python_ast::{
    ExceptHandler, ExceptHandlerExceptHandler, StmtRaise, StmtTry, visitor::Visitor,
};
use ruff_text_size::{Ranged, TextRange, TextSize};

use super::Rewriter;

impl<'a> Rewriter<'a> {
    pub(super) fn raise(&mut self, raise: &'a StmtRaise) {
        let Some(exception) = raise.exc.as_deref() else { return };
        if !self.own_exceptions {
            self.visit_expr(exception);
            if let Some(cause) = &raise.cause {
                self.visit_expr(cause);
            }
            return;
        }
        self.need("<classes>");
        self.edits.open(exception, "_tg_raise(");
        self.visit_expr(exception);
        self.edits.close(exception, ")");
        if raise.cause.is_some() {
            // A cause may be one of the script's, which Monty would refuse.
            self.edits.replace(TextRange::new(self.after(exception.end()), raise.end()), "");
        }
    }

    pub(super) fn tried(&mut self, tried: &'a StmtTry) {
        self.visit_body(&tried.body);
        if self.own_exceptions && self.can_merge(tried) {
            self.merge(tried);
        } else {
            for ExceptHandler::ExceptHandler(handler) in &tried.handlers {
                if let Some(kind) = &handler.type_ {
                    self.visit_expr(kind);
                }
                self.visit_body(&handler.body);
            }
        }
        self.visit_body(&tried.orelse);
        self.visit_body(&tried.finalbody);
    }

    /// One handler with a chain of conditions. They are indented by one space, which is less than
    /// any block below them, so that no other line moves.
    fn merge(&mut self, tried: &'a StmtTry) {
        self.need("<classes>");
        let caught = self.fresh();
        let mut has_default = false;
        for (index, ExceptHandler::ExceptHandler(handler)) in tried.handlers.iter().enumerate() {
            let indentation = self.before(handler.start()).to_owned();
            let header = if index == 0 {
                format!("except BaseException as {caught}:\n{indentation} if ")
            } else {
                " elif ".to_owned()
            };
            let Some(colon) = self.colon(handler) else { continue };
            let bound = handler.name.as_ref().map_or_else(String::new, |name| {
                format!(" and [{name} := _tg_caught({caught})] is not None")
            });
            if let Some(kind) = &handler.type_ {
                let start = TextRange::new(handler.start(), kind.start());
                self.edits.replace(start, format!("{header}_tg_is({caught}, ("));
                self.visit_expr(kind);
                self.edits.replace(TextRange::new(kind.end(), colon), format!(")){bound}"));
            } else {
                has_default = true;
                let start = TextRange::new(handler.start(), colon);
                self.edits.replace(start, format!("{header}True"));
            }
            self.visit_body(&handler.body);
            if index + 1 == tried.handlers.len()
                && !has_default
                && let Some(last) = handler.body.last()
            {
                let at = self.end_of_line(last);
                self.edits.insert(at, format!("\n{indentation} else: raise"));
            }
        }
    }

    fn can_merge(&self, tried: &StmtTry) -> bool {
        tried.handlers.iter().all(|ExceptHandler::ExceptHandler(handler)| {
            let around = self.before(handler.start());
            let blank = around.chars().all(|c| c == ' ');
            let body = handler.body.first().and_then(|first| self.indentation(first));
            blank && body.is_none_or(|body| body.len() > around.len() + 1 && !body.contains('\t'))
        })
    }

    /// What stands in front of a place on its line.
    fn before(&self, place: TextSize) -> &str {
        let before = &self.source[..place.to_usize()];
        &before[before.rfind('\n').map_or(0, |index| index + 1)..]
    }

    /// The place behind the brackets that may close behind an expression.
    fn after(&self, place: TextSize) -> TextSize {
        let rest = &self.source[place.to_usize()..];
        let length = rest.len() - rest.trim_start_matches([')', ' ']).len();
        // Only brackets count: the space in front of what follows stays with it.
        let closed = rest[..length].rfind(')').map_or(0, |index| index + 1);
        place + TextSize::try_from(closed).unwrap_or_default()
    }

    /// The colon of a handler's header.
    fn colon(&self, handler: &ExceptHandlerExceptHandler) -> Option<TextSize> {
        let from = match (&handler.name, &handler.type_) {
            (Some(name), _) => name.end(),
            (None, Some(kind)) => kind.end(),
            (None, None) => handler.start(),
        };
        let colon = self.source[from.to_usize()..].find(':')?;
        Some(from + TextSize::try_from(colon).ok()?)
    }
}
