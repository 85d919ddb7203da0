use tenon_sdk::prelude::*;

register_fusion!("a_number": 7 => "Relu(x)");
register_fusion!("a_letter": "Relu(Relu(x))" => 'R');
register_fusion!("conditions": "Relu(Relu(x))" => "Relu(x)", where = ["scalar(x)", 4]);

fn main() {}
