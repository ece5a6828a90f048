//! Variables that hide the tool that they are assigned from: `const name = await name(…)`.

use oxc_ast::AstKind;
use oxc_semantic::NodeId;
use oxc_span::GetSpan;

use super::Script;
use crate::check::names::Hiding;

/// A call is looked for so far above a name.
const MAX_STEPS: usize = 100;

/// The variables that are called in their own initial value, whatever they are called.
pub(super) fn collect(script: &Script<'_, '_>) -> Vec<Hiding> {
    let semantic = script.semantic;
    let scoping = semantic.scoping();
    let mut hidings = Vec::new();
    for symbol in scoping.symbol_ids() {
        let declaration = scoping.symbol_declaration(symbol);
        if !matches!(semantic.nodes().kind(declaration), AstKind::VariableDeclarator(_)) {
            continue;
        }
        let mut references = scoping.get_resolved_references(symbol);
        if references.any(|reference| is_called(reference.node_id(), declaration, script)) {
            let name = scoping.symbol_name(symbol).to_owned();
            hidings.push(Hiding { name, offset: scoping.symbol_span(symbol).start as usize });
        }
    }
    hidings
}

/// Whether a name is called while the declaration that it is in is evaluated.
fn is_called(name: NodeId, declaration: NodeId, script: &Script<'_, '_>) -> bool {
    let nodes = script.semantic.nodes();
    let span = nodes.kind(name).span();
    let parent = nodes.parent_kind(name);
    if !matches!(parent, AstKind::CallExpression(call) if call.callee.span() == span) {
        return false;
    }
    let above = nodes.ancestor_ids(name).take(MAX_STEPS);
    let mut above = above.take_while(|node| {
        // What is in a function happens later.
        !matches!(nodes.kind(*node), AstKind::Function(_) | AstKind::ArrowFunctionExpression(_))
    });
    above.any(|node| node == declaration)
}
