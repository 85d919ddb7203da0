use std::{cell::Cell, rc::Rc};
use tenon_sdk::prelude::*;

struct Shared(Rc<i64>);

impl ResourceValue for Shared {
    const NAME: &'static str = "ui.Shared";
}

#[derive(Clone)]
struct Unshared(Cell<i64>);

impl VariantValue for Unshared {
    const NAME: &'static str = "ui.Unshared";
}

struct Unclonable;

impl VariantValue for Unclonable {
    const NAME: &'static str = "ui.Unclonable";
}

fn main() {}
