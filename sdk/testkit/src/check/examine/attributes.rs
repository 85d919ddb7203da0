//! Whether anybody reads each attribute that the op's author declared.
//!
//! An attribute that neither the shape function nor a kernel of the op ever asks for changes nothing, whatever a
//! graph says: a slip of the author, who forgot it, or left it over. One that a kernel asks for and ignores is
//! found by its values, held against a reference that does not. Types, numbers of inputs and what begins with `_`
//! are the host's to read. Of a standard op the kernel's author did not choose the attributes: nothing is said.

use super::{choice::Chosen, site::Site, verdicts::Verdicts};
use crate::{
    check::{case::CheckCase, clause::Clause},
    harness::Form,
    node::Node,
};
use std::sync::Arc;
use tenon_framework::{
    abi::AttrKind,
    attr_view::AttrTable,
    op::{AttrDef, OpDef},
    registry::KernelDef,
};
use tenon_runtime::host::instance::KernelInstance;

/// Judges the clause; reports nothing if there is nothing to judge.
pub(super) fn examine(site: &Site<'_>, cases: &[CheckCase], verdicts: &mut Verdicts<'_>) {
    let op = &*site.subject.op;
    let is_own = op.source.krate == site.subject.kernel.source.krate;
    let mut unread: Vec<&AttrDef> = op.attrs.iter().filter(|attr| is_read(op, attr)).collect();
    if !is_own || op.remote.is_some() || unread.is_empty() {
        return;
    }
    for case in cases {
        if unread.is_empty() {
            break;
        }
        verdicts.set_case(&case.name);
        verdicts.begin(Clause::Attributes);
        for form in [Form::Unknown, Form::Shapes] {
            unread.retain(|attr| !asks(site, case, form, &attr.name));
        }
    }
    verdicts.set_case("");
    let Some(first) = unread.first() else { return verdicts.pass(Clause::Attributes) };
    let names: Vec<String> = unread.iter().map(|attr| format!("'{}'", attr.name)).collect();
    let what = if unread.len() == 1 { "attribute" } else { "attributes" };
    verdicts.fail(
        Clause::Attributes,
        format!(
            "{what} {} of op {}: nobody asks for it, neither the shape function nor a kernel, in none of {} \
             cases: read '{}', or take it out of the op",
            names.join(", "),
            op.name,
            cases.len(),
            first.name
        ),
    );
}

/// Whether shape functions or kernels are the readers of an attribute.
fn is_read(op: &OpDef, attr: &AttrDef) -> bool {
    let args = || op.inputs.iter().chain(&op.outputs);
    let is_count = args().any(|arg| arg.number_attr.as_ref() == Some(&attr.name));
    attr.ty.kind != AttrKind::TYPE && !is_count && !attr.name.starts_with('_')
}

/// Whether an attribute is asked for when a case is prepared: by the shape function, the kernel, or another kernel
/// of the op.
fn asks(site: &Site<'_>, case: &CheckCase, form: Form, attr: &str) -> bool {
    let Some(Chosen { inputs, .. }) = Chosen::new(case) else { return false };
    let Ok(node) = site.node(case, &inputs, form) else { return false };
    let asked = |attrs: &AttrTable| attrs.was_asked(attr);
    let _ = node.infer();
    if asked(&node.attrs) {
        return true;
    }
    let others = site.others();
    std::iter::once(&site.subject.kernel).chain(&others).any(|kernel| {
        make(site, &node, kernel);
        asked(&node.attrs)
    })
}

/// Asks a kernel whether it takes a node, and makes it; refusals are ignored here.
fn make(site: &Site<'_>, node: &Node, kernel: &Arc<KernelDef>) {
    let spec = node.spec(kernel, Some(site.device()), site.knobs());
    let _ = spec.supports();
    let _ = KernelInstance::create(&spec);
}
