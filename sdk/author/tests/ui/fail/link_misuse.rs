use tenon_sdk::prelude::*;

tenon_sdk::extension_link! {
    struct Padded(tag = 0x8000_0001, version = 1) {
        small: u32,
    }
}

tenon_sdk::extension_link! {
    struct Foreign(tag = 6, version = 1) {
        number: u64,
    }
}

static PADDED: Padded = Padded::new(1);
static FOREIGN: Foreign = Foreign::new(1);

register_op!("Same", ext = &PADDED);
register_op!("Other", ext = &FOREIGN);
register_op!("Plain", ext = &7u64);

fn main() {}
